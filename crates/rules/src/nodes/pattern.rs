//! Patterns: texts with `${name}` for a value of the metadata and `$[path.to.field]` for one of the body.

use std::borrow::Cow;
use std::fmt::Write as _;

use fieldline_model::kv::unpack;
use serde_json::Value;

use super::text::plain;
use crate::message::{Data, Meta, Msg};
use crate::node::NodeError;

/// A pattern, taken apart once.
///
/// `${name}` becomes a value of the metadata, `$[a.b]` one of the body, `${*}` and `$[*]` all of either as JSON. What does
/// not exist stays as it is written. A path may itself contain `${name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// The text as it is.
    Plain(String),
    /// A value of the metadata.
    Meta(String),
    /// All of the metadata.
    AllMeta,
    /// A value of the body; what stands between the brackets has no `$[` within.
    Body(Vec<Piece>),
    /// The body.
    AllBody,
}

impl Pattern {
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
        self.pieces.iter().all(|piece| matches!(piece, Piece::Plain(_)))
    }

    /// The text for a message.
    ///
    /// # Errors
    /// It needs the body, which is no JSON.
    pub(crate) fn resolve(&self, msg: &mut Msg) -> Result<Cow<'_, str>, NodeError> {
        self.resolve_with(msg, |value, out| out.push_str(value))
    }

    /// The text for a message, where values are written so that they fit between the quotes of a JSON text.
    ///
    /// # Errors
    /// It needs the body, which is no JSON.
    pub(crate) fn resolve_escaped(&self, msg: &mut Msg) -> Result<Cow<'_, str>, NodeError> {
        self.resolve_with(msg, |value, out| {
            let quoted = Value::from(value).to_string();
            out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        })
    }

    fn resolve_with(&self, msg: &mut Msg, put: fn(&str, &mut String)) -> Result<Cow<'_, str>, NodeError> {
        if self.is_plain() {
            return Ok(Cow::Borrowed(&self.text));
        }
        let mut out = String::with_capacity(self.text.len() + 32);
        for piece in &self.pieces {
            match piece {
                Piece::Body(path) => {
                    let mut inner = String::new();
                    for piece in path {
                        write_piece(piece, &msg.meta, put, &mut inner);
                    }
                    match body_value(&mut msg.data, &inner)? {
                        Some(value) => put(&value, &mut out),
                        None => drop(write!(out, "$[{inner}]")),
                    }
                }
                Piece::AllBody => {
                    msg.data
                        .to_json()
                        .map_err(|error| NodeError::new(format!("failed to process a pattern: {error}")))?;
                    out.push_str(&msg.data.to_text());
                }
                piece => write_piece(piece, &msg.meta, put, &mut out),
            }
        }
        Ok(Cow::Owned(out))
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de> serde::Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<String>::deserialize(deserializer).map(|text| Self::new(&text.unwrap_or_default()))
    }
}

fn pieces(text: &str, with_body: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let found = if let Some(inner) = from.strip_prefix("${") {
            inner.split_once('}').map(|(key, after)| (meta_piece(key), after))
        } else if let (true, Some(inner)) = (with_body, from.strip_prefix("$[")) {
            body_end(inner).map(|(path, after)| (body_piece(path), after))
        } else {
            None
        };
        match found {
            Some((piece, after)) => {
                if !plain.is_empty() {
                    pieces.push(Piece::Plain(std::mem::take(&mut plain)));
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
        pieces.push(Piece::Plain(plain));
    }
    pieces
}

fn meta_piece(key: &str) -> Piece {
    if key == "*" {
        Piece::AllMeta
    } else {
        Piece::Meta(key.to_owned())
    }
}

fn body_piece(path: &str) -> Piece {
    if path == "*" {
        Piece::AllBody
    } else {
        Piece::Body(pieces(path, false))
    }
}

/// Splits behind the bracket that ends a path; brackets within `${…}` do not.
fn body_end(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let end = from + text.get(from..)?.find(']')?;
        match text.get(from..end)?.find("${") {
            Some(open) => match text.get(from + open..)?.find('}') {
                Some(close) if from + open + close > end => from = from + open + close,
                _ => return Some((text.get(..end)?, text.get(end + 1..)?)),
            },
            None => return Some((text.get(..end)?, text.get(end + 1..)?)),
        }
    }
}

fn write_piece(piece: &Piece, meta: &Meta, put: fn(&str, &mut String), out: &mut String) {
    match piece {
        Piece::Plain(text) => out.push_str(text),
        Piece::Meta(key) => match meta.get(key) {
            Some(value) => put(&value, out),
            None => drop(write!(out, "${{{key}}}")),
        },
        Piece::AllMeta => out.push_str(&meta_json(meta).to_string()),
        Piece::Body(_) | Piece::AllBody => {}
    }
}

/// The metadata as a JSON object.
pub(crate) fn meta_json(meta: &Meta) -> Value {
    let metadata = meta.to_metadata();
    Value::Object(
        metadata
            .iter()
            .map(|(key, value)| (key.to_owned(), Value::from(value)))
            .collect(),
    )
}

/// A value of the body that is no object and no array, as text.
fn body_value(data: &mut Data, path: &str) -> Result<Option<String>, NodeError> {
    if let Data::Packed(bytes) = &*data
        && !path.contains('.')
    {
        let found = unpack(bytes)
            .filter_map(Result::ok)
            .filter(|(key, _)| *key == path)
            .last();
        if !matches!(found, Some((_, fieldline_model::kv::ValueRef::Json(_)))) {
            return Ok(found.map(|(_, value)| value.to_value().to_text()));
        }
    }
    let json = data
        .to_json()
        .map_err(|error| NodeError::new(format!("failed to process a pattern: {error}")))?;
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
    use fieldline_model::message::{DataType, Message, Metadata, MsgType};
    use fieldline_model::{DeviceId, TenantId};
    use serde_json::json;

    use super::*;

    fn msg(body: &Value) -> Msg {
        let metadata: Metadata = [("name", "pump"), ("key", "temp"), ("quote", "a\"b")]
            .into_iter()
            .collect();
        let message = Message::new(
            MsgType::PostTelemetry,
            DeviceId::new().into(),
            0,
            metadata,
            body.to_string(),
        );
        Msg::of(TenantId::new(), message)
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
            let pattern = Pattern::new(pattern);
            assert_eq!(pattern.resolve(&mut msg(&body)).unwrap(), expected);
        }
        let all = Pattern::new("$[*]|${*}");
        assert_eq!(
            all.resolve(&mut msg(&json!({"a": 1}))).unwrap(),
            r#"{"a":1}|{"name":"pump","key":"temp","quote":"a\"b"}"#
        );
    }

    #[test]
    fn packed_bodies_are_read_as_they_are() {
        let mut msg = msg(&json!({}));
        msg.data = Data::Packed(crate::nodes::tests::packed(&json!({"t": 5.5, "j": {"a": true}})));
        let pattern = Pattern::new("$[t] $[j.a] $[j] $[x]");
        assert_eq!(pattern.resolve(&mut msg).unwrap(), "5.5 true $[j] $[x]");
    }

    #[test]
    fn values_are_escaped_for_json() {
        let pattern = Pattern::new(r#"{"q":"${quote}"}"#);
        assert_eq!(
            pattern.resolve_escaped(&mut msg(&json!({}))).unwrap(),
            r#"{"q":"a\"b"}"#
        );
    }

    #[test]
    fn a_body_that_is_no_json_matters_only_where_it_is_needed() {
        let mut msg = msg(&json!({}));
        msg.data = Data::text("not json");
        msg.data_type = DataType::Text;
        assert_eq!(Pattern::new("${name}").resolve(&mut msg).unwrap(), "pump");
        assert!(Pattern::new("$[a]").resolve(&mut msg).is_err());
    }
}
