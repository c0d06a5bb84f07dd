//! The text of an alarm's details, with `${key}` replaced by values.

use fieldline_model::budget::within;

use super::condition::FilterInput;
use super::convert::as_text;
use super::evaluate::EvaluationContext;

/// Longest text of details, bytes.
pub(super) const MAX_DETAILS: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct DetailsTemplate(Box<[DetailsPart]>);

#[derive(Debug)]
enum DetailsPart {
    Text(Box<str>),
    /// The first of the values that exists, else the text as it was written.
    Value {
        written: Box<str>,
        from: Box<[FilterInput]>,
    },
}

impl DetailsTemplate {
    /// A template; `lookup` gives the values that a name in it stands for, none for a name that is left as it is.
    pub(super) fn parse(text: &str, mut lookup: impl FnMut(&str) -> Vec<FilterInput>) -> Self {
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
                parts.push(DetailsPart::Text(std::mem::take(&mut plain).into()));
                parts.push(DetailsPart::Value {
                    written: written.into(),
                    from: from.into(),
                });
            }
            rest = after;
        }
        plain.push_str(rest);
        parts.push(DetailsPart::Text(plain.into()));
        Self(parts.into())
    }

    /// The text for the values of an evaluation.
    ///
    /// # Errors
    /// It becomes longer than [`MAX_DETAILS`], or the evaluation has made too much.
    pub(super) fn render(&self, cx: &EvaluationContext<'_>) -> Result<Box<str>, String> {
        let mut text = String::new();
        for part in &self.0 {
            let value;
            let added = match part {
                DetailsPart::Text(plain) => plain,
                DetailsPart::Value { written, from } => {
                    cx.step(from.len())?;
                    match from.iter().find_map(|subject| subject.value(cx)) {
                        Some((_, found)) => {
                            value = as_text(found);
                            &*value
                        }
                        None => written,
                    }
                }
            };
            let bytes = text.len() + added.len();
            within(
                "bytes of the details of an alarm",
                bytes as u64,
                MAX_DETAILS as u64,
            )
            .map_err(|overrun| overrun.to_string())?;
            cx.make(added.len())?;
            text.push_str(added);
        }
        Ok(text.into())
    }
}
