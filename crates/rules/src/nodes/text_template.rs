//! Patterns: texts with `${name}` for a value of the metadata and `$[path.to.field]` for one of the body.

use std::borrow::Cow;

use fieldline_model::budget::BudgetOverrun;
use fieldline_model::kv::unpack;
use serde_json::Value;

use super::text::plain;
use crate::message::{MessageBody, MessageMetadata, RuleMessage};
use crate::node::NodeError;

/// A pattern, taken apart once.
///
/// `${name}` becomes a value of the metadata, `$[a.b]` one of the body, `${*}` and `$[*]` all of either as JSON. What does
/// not exist stays as it is written. A path may itself contain `${name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextTemplate {
    text: String,
    pieces: Vec<TemplatePiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    /// The text as it is.
    Plain(String),
    /// A value of the metadata.
    Meta(String),
    /// All of the metadata.
    AllMeta,
    /// A value of the body; what stands between the brackets has no `$[` within.
    Body(Vec<TemplatePiece>),
    /// The body.
    AllBody,
}

impl TextTemplate {
    /// Takes a pattern apart.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            pieces: pieces(text, true),
        }
    }

    /// The pattern as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is the same text for all messages.
    pub(crate) fn is_plain(&self) -> bool {
        self.pieces
            .iter()
            .all(|piece| matches!(piece, TemplatePiece::Plain(_)))
    }

    /// The text for a message.
    ///
    /// # Errors
    /// It needs the body, which is no JSON; or it becomes longer than a node may make of a message.
    pub(crate) fn resolve(&self, msg: &mut RuleMessage) -> Result<Cow<'_, str>, NodeError> {
        self.resolve_with(msg, |value, out| out.push_str(value))
    }

    /// The text for a message, where values are written so that they fit between the quotes of a JSON text.
    ///
    /// # Errors
    /// It needs the body, which is no JSON; or it becomes longer than a node may make of a message.
    pub(crate) fn resolve_escaped(&self, msg: &mut RuleMessage) -> Result<Cow<'_, str>, NodeError> {
        self.resolve_with(msg, |value, out| {
            let quoted = Value::from(value).to_string();
            out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        })
    }

    fn resolve_with(
        &self,
        msg: &mut RuleMessage,
        put: fn(&str, &mut String),
    ) -> Result<Cow<'_, str>, NodeError> {
        if self.is_plain() {
            return Ok(Cow::Borrowed(&self.text));
        }
        let mut text = TemplateOutput {
            put,
            out: String::with_capacity(self.text.len().min(4096) + 32),
            all_meta: None,
        };
        let mut all_body = None;
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Body(path) => {
                    let mut inner = TemplateOutput {
                        out: String::new(),
                        all_meta: None,
                        ..text
                    };
                    for piece in path {
                        inner.add(piece, msg)?;
                    }
                    match body_value(msg, &inner.out)? {
                        Some(value) => text.put(&value, msg)?,
                        None => {
                            text.push("$[", msg)?;
                            text.push(&inner.out, msg)?;
                            text.push("]", msg)?;
                        }
                    }
                }
                TemplatePiece::AllBody => {
                    if all_body.is_none() {
                        msg.data.to_json().map_err(no_json)?;
                        let body = msg.data.to_text().into_owned();
                        msg.budget.allow_message(body.len());
                        all_body = Some(body);
                    }
                    text.push(all_body.as_deref().unwrap_or_default(), msg)?;
                }
                piece => text.add(piece, msg)?,
            }
        }
        Ok(Cow::Owned(text.out))
    }
}

fn no_json(error: NodeError) -> NodeError {
    NodeError::new(format!("failed to process a pattern: {error}"))
}

/// A text that a pattern becomes. What is written is counted first.
struct TemplateOutput {
    /// How values are written.
    put: fn(&str, &mut String),
    out: String,
    /// All metadata as JSON, once it was asked for.
    all_meta: Option<String>,
}

impl TemplateOutput {
    fn push(&mut self, text: &str, msg: &mut RuleMessage) -> Result<(), BudgetOverrun> {
        msg.budget.step(1)?;
        msg.budget.make(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn put(&mut self, value: &str, msg: &mut RuleMessage) -> Result<(), BudgetOverrun> {
        msg.budget.step(1)?;
        msg.budget.make(value.len())?;
        let before = self.out.len();
        (self.put)(value, &mut self.out);
        // What escaping has added, less than sixfold of a value of the message.
        msg.budget
            .make((self.out.len() - before).saturating_sub(value.len()))
    }

    /// Adds a piece that needs no body.
    fn add(&mut self, piece: &TemplatePiece, msg: &mut RuleMessage) -> Result<(), BudgetOverrun> {
        match piece {
            TemplatePiece::Plain(text) => self.push(text, msg),
            TemplatePiece::Meta(key) => {
                msg.budget.step(msg.meta.len() / 8)?;
                match msg.meta.get(key).map(Cow::into_owned) {
                    Some(value) => self.put(&value, msg),
                    None => self.push(&format!("${{{key}}}"), msg),
                }
            }
            TemplatePiece::AllMeta => {
                let all = self
                    .all_meta
                    .take()
                    .unwrap_or_else(|| meta_json(&msg.meta).to_string());
                msg.budget.allow_message(all.len());
                let pushed = self.push(&all, msg);
                self.all_meta = Some(all);
                pushed
            }
            TemplatePiece::Body(_) | TemplatePiece::AllBody => Ok(()),
        }
    }
}

impl From<&str> for TextTemplate {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl schemars::JsonSchema for TextTemplate {
    fn schema_name() -> Cow<'static, str> {
        "TextTemplate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "null"], "x-editor": "template" })
    }
}

impl<'de> serde::Deserialize<'de> for TextTemplate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<String>::deserialize(deserializer).map(|text| Self::new(&text.unwrap_or_default()))
    }
}

fn pieces(text: &str, with_body: bool) -> Vec<TemplatePiece> {
    let ends = with_body.then(|| BodyEnds::of(text));
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    // Where one `${` has no end none behind it has one: looking for each would take as long as the text is, each time.
    let mut closes = true;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let found = if let Some(inner) = from.strip_prefix("${") {
            let split = closes.then(|| inner.split_once('}')).flatten();
            closes = split.is_some();
            split.map(|(key, after)| (meta_piece(key), after))
        } else if let (Some(ends), Some(inner)) = (&ends, from.strip_prefix("$[")) {
            let start = text.len() - inner.len();
            ends.find(start).and_then(|end| {
                let (path, after) = (text.get(start..end)?, text.get(end + 1..)?);
                Some((body_piece(path), after))
            })
        } else {
            None
        };
        match found {
            Some((piece, after)) => {
                if !plain.is_empty() {
                    pieces.push(TemplatePiece::Plain(std::mem::take(&mut plain)));
                }
                pieces.push(piece);
                rest = after;
            }
            None => {
                plain.push('$');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(TemplatePiece::Plain(plain));
    }
    pieces
}

fn meta_piece(key: &str) -> TemplatePiece {
    if key == "*" {
        TemplatePiece::AllMeta
    } else {
        TemplatePiece::Meta(key.to_owned())
    }
}

fn body_piece(path: &str) -> TemplatePiece {
    if path == "*" {
        TemplatePiece::AllBody
    } else {
        TemplatePiece::Body(pieces(path, false))
    }
}

/// Where the brackets of `$[…]` end in a text: at the first `]`, but that one within `${…}` ends nothing. Looked up for all
/// places in one go, as what follows decides where each one ends.
struct BodyEnds {
    /// Places of `]`, of `${` and of `}`.
    brackets: Vec<usize>,
    opens: Vec<usize>,
    closes: Vec<usize>,
    /// Where a bracket ends that has not ended at that `}`.
    behind: Vec<Option<usize>>,
}

impl BodyEnds {
    fn of(text: &str) -> Self {
        let places = |what: &str| text.match_indices(what).map(|(at, _)| at).collect();
        let mut ends = Self {
            brackets: places("]"),
            opens: places("${"),
            closes: places("}"),
            behind: Vec::new(),
        };
        ends.behind = vec![None; ends.closes.len()];
        for index in (0..ends.closes.len()).rev() {
            let end = ends.closes.get(index).and_then(|at| ends.find(*at));
            if let Some(behind) = ends.behind.get_mut(index) {
                *behind = end;
            }
        }
        ends
    }

    /// Where a bracket ends that has not ended before a place.
    fn find(&self, from: usize) -> Option<usize> {
        let next = |places: &[usize], from: usize| {
            let index = places.partition_point(|at| *at < from);
            places.get(index).map(|at| (index, *at))
        };
        let (_, end) = next(&self.brackets, from)?;
        let open = next(&self.opens, from).filter(|(_, open)| *open < end);
        match open.and_then(|(_, open)| next(&self.closes, open)) {
            Some((index, close)) if close > end => self.behind.get(index).copied().flatten(),
            _ => Some(end),
        }
    }
}

/// The metadata as a JSON object.
pub(crate) fn meta_json(meta: &MessageMetadata) -> Value {
    let metadata = meta.to_metadata();
    Value::Object(
        metadata
            .iter()
            .map(|(key, value)| (key.to_owned(), Value::from(value)))
            .collect(),
    )
}

/// A value of the body that is no object and no array, as text.
fn body_value(msg: &mut RuleMessage, path: &str) -> Result<Option<String>, NodeError> {
    if let MessageBody::Packed(bytes) = &msg.data
        && !path.contains('.')
    {
        msg.budget.read(bytes.len())?;
        let found = unpack(bytes)
            .filter_map(Result::ok)
            .filter(|(key, _)| *key == path)
            .last();
        if !matches!(found, Some((_, fieldline_model::kv::KvValueRef::Json(_)))) {
            return Ok(found.map(|(_, value)| value.to_value().to_text()));
        }
    }
    msg.budget.read(path.len())?;
    let json = msg.data.to_json().map_err(no_json)?;
    let mut value = &*json;
    for key in path.trim_end_matches('.').split('.') {
        match value.get(key).filter(|_| !key.is_empty()) {
            Some(inner) => value = inner,
            None => return Ok(None),
        }
    }
    Ok((!value.is_object() && !value.is_array()).then(|| plain(value)))
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::{DataType, MetadataMap, MsgType, QueueMessage};
    use fieldline_model::{DeviceId, TenantId};
    use serde_json::json;

    use super::*;
    use fieldline_model::budget::EvaluationBudget;

    fn msg(body: &Value) -> RuleMessage {
        let metadata: MetadataMap = [("name", "pump"), ("key", "temp"), ("quote", "a\"b")]
            .into_iter()
            .collect();
        let message = QueueMessage::new(
            MsgType::PostTelemetry,
            DeviceId::new().into(),
            0,
            metadata,
            body.to_string(),
        );
        RuleMessage::of(TenantId::new(), message)
    }

    #[test]
    fn patterns_take_values_of_metadata_and_body() {
        let body = json!({"temp": 20.0, "a": {"b": 7, "n": null, "o": {}}, "t": "x"});
        for (pattern, expected) in [
            ("no pattern", "no pattern"),
            ("${name}", "pump"),
            ("<${name}|$[temp]|$[a.b]|$[t]>", "<pump|20.0|7|x>"),
            ("$[${key}] degrees", "20.0 degrees"),
            ("$[a.n]", "null"),
            (
                "${none} $[none] $[a.b.c] $[a.o] $[]",
                "${none} $[none] $[a.b.c] $[a.o] $[]",
            ),
            ("$ $$ ${ $[ x$", "$ $$ ${ $[ x$"),
            ("$${name}", "$pump"),
        ] {
            let pattern = TextTemplate::new(pattern);
            assert_eq!(pattern.resolve(&mut msg(&body)).unwrap(), expected);
        }
        let all = TextTemplate::new("$[*]|${*}");
        assert_eq!(
            all.resolve(&mut msg(&json!({"a": 1}))).unwrap(),
            r#"{"a":1}|{"name":"pump","key":"temp","quote":"a\"b"}"#
        );
    }

    #[test]
    fn packed_bodies_are_read_as_they_are() {
        let mut msg = msg(&json!({}));
        msg.data = MessageBody::Packed(crate::nodes::tests::packed(&json!({"t": 5.5, "j": {"a": true}})));
        let pattern = TextTemplate::new("$[t] $[j.a] $[j] $[x]");
        assert_eq!(pattern.resolve(&mut msg).unwrap(), "5.5 true $[j] $[x]");
    }

    #[test]
    fn values_are_escaped_for_json() {
        let pattern = TextTemplate::new(r#"{"q":"${quote}"}"#);
        assert_eq!(
            pattern.resolve_escaped(&mut msg(&json!({}))).unwrap(),
            r#"{"q":"a\"b"}"#
        );
    }

    #[test]
    fn a_body_that_is_no_json_matters_only_where_it_is_needed() {
        let mut msg = msg(&json!({}));
        msg.data = MessageBody::text("not json");
        msg.data_type = DataType::Text;
        assert_eq!(TextTemplate::new("${name}").resolve(&mut msg).unwrap(), "pump");
        assert!(TextTemplate::new("$[a]").resolve(&mut msg).is_err());
    }

    /// The pieces as they were found before one look for all ends was enough.
    fn end_step_by_step(text: &str) -> Option<usize> {
        let mut from = 0;
        loop {
            let end = from + text.get(from..)?.find(']')?;
            let Some(open) = text.get(from..end)?.find("${") else {
                return Some(end);
            };
            match text.get(from + open..)?.find('}') {
                Some(close) if from + open + close > end => from = from + open + close,
                _ => return Some(end),
            }
        }
    }

    #[test]
    fn brackets_end_where_looking_step_by_step_finds_their_ends() {
        let signs = ["$", "[", "]", "{", "}", "a"];
        for number in 0..6_usize.pow(7) {
            let text: String = (0..7)
                .map(|place| signs[number / 6_usize.pow(place) % 6])
                .collect();
            assert_eq!(BodyEnds::of(&text).find(0), end_step_by_step(&text), "{text}");
        }
    }

    #[test]
    fn patterns_are_compiled_in_one_go() {
        // Each of these took minutes where every `$` looked for its end anew.
        for unit in ["${", "$[", "$[${", "$[${]", "$[${]}", "$[${]}]", "$[${a}", "${$["] {
            let text = unit.repeat((1 << 20) / unit.len());
            let _ = TextTemplate::new(&text);
        }
    }

    #[test]
    fn a_message_becomes_only_so_much_text() {
        let body = json!({"a": "x".repeat(100_000)});
        for pattern in ["$[*]", "$[a]", "${big}", "${*}"] {
            let mut msg = msg(&body);
            msg.meta.set("big", "x".repeat(100_000));
            let few = TextTemplate::new(&pattern.repeat(20));
            assert_eq!(few.resolve(&mut msg).unwrap().len() / 1_900_000, 1, "{pattern}");
            msg.budget = EvaluationBudget::new();
            let many = TextTemplate::new(&pattern.repeat(20_000));
            let error = many.resolve(&mut msg).unwrap_err();
            assert!(error.is_over_budget());
            let text = error.to_string();
            assert!(text.contains("bytes that an evaluation makes: 4"), "{text}");
        }
        let mut msg = msg(&body);
        let one = TextTemplate::new("$[*]");
        let overrun = (0..100).find_map(|_| one.resolve(&mut msg).err());
        assert!(overrun.is_some(), "all patterns of a node count together");
        let mut large = self::msg(&json!({"a": "x".repeat(6 << 20)}));
        assert!(
            TextTemplate::new("<$[*]>").resolve(&mut large).is_ok(),
            "the message itself"
        );
    }
}
