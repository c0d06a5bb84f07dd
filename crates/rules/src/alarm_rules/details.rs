//! The text of an alarm's details, with `${key}` replaced by values.

use super::convert::as_text;
use super::evaluate::Context;
use super::expression::Subject;

#[derive(Debug)]
pub(super) struct Template(Box<[Part]>);

#[derive(Debug)]
enum Part {
    Text(Box<str>),
    /// The first of the values that exists, else the text as it was written.
    Value {
        written: Box<str>,
        from: Box<[Subject]>,
    },
}

impl Template {
    /// A template; `lookup` gives the values that a name in it stands for, none for a name that is left as it is.
    pub(super) fn parse(text: &str, mut lookup: impl FnMut(&str) -> Vec<Subject>) -> Self {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            plain.push_str(before);
            let Some(end) = from.find('}') else {
                rest = from;
                break;
            };
            let (written, after) = from.split_at(end + 1);
            let name = written.trim_start_matches("${").trim_end_matches('}');
            let from = lookup(name);
            if from.is_empty() {
                plain.push_str(written);
            } else {
                parts.push(Part::Text(std::mem::take(&mut plain).into()));
                parts.push(Part::Value {
                    written: written.into(),
                    from: from.into(),
                });
            }
            rest = after;
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain.into()));
        Self(parts.into())
    }

    pub(super) fn render(&self, cx: &Context<'_>) -> Box<str> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Value { written, from } => match from.iter().find_map(|subject| subject.value(cx)) {
                    Some((_, value)) => text.push_str(&as_text(value)),
                    None => text.push_str(written),
                },
            }
        }
        text.into()
    }
}
