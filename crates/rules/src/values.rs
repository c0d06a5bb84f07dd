//! Typed values of JSON.

use fieldline_model::kv::KvValue;
use serde_json::Value as Json;

/// A JSON value as a typed one; `None` for null.
pub(crate) fn of_json(value: &Json) -> Option<KvValue> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(value) => KvValue::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(long) => KvValue::Long(long),
            None => KvValue::Double(number.as_f64()?),
        },
        Json::String(text) => KvValue::Text(text.as_str().into()),
        Json::Array(_) | Json::Object(_) => KvValue::Json(value.to_string().into()),
    })
}
