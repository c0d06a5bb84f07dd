//! Values as ThingsBoard reads them: numbers and flags in quotes, numbers where a text is expected.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

/// A whole number, which may stand in quotes or have a fraction of zero.
pub(crate) fn integer<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) if text.trim().is_empty() => Some(0),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number
        .ok_or_else(|| D::Error::custom("must be a whole number"))
        .and_then(|number| T::try_from(number).map_err(|_| D::Error::custom("is out of range")))
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
}

/// A flag, which may stand in quotes.
pub(crate) fn boolean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Bool(value) => Ok(value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") || text.is_empty() => Ok(false),
        _ => Err(D::Error::custom("must be true or false")),
    }
}

/// A text, for which numbers and flags are taken too.
pub(crate) fn string<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text(Value::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("must be a text"))
}

/// Like [`string`], for a field that may be missing.
pub(crate) fn optional_string<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    string(deserializer).map(Some)
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// An object of texts, in its order.
pub(crate) fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    let Value::Object(object) = Value::deserialize(deserializer)? else {
        return Err(D::Error::custom("must be an object of texts"));
    };
    object
        .into_iter()
        .map(|(key, value)| match text(value) {
            Some(value) => Ok((key, value)),
            None => Err(D::Error::custom(format!("the value of '{key}' must be a text"))),
        })
        .collect()
}

/// The schema of what [`pairs`] reads.
pub(crate) fn pairs_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "additionalProperties": { "type": "string" }, "x-editor": "map" })
}
