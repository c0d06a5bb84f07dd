//! Typed values of JSON.

use fieldline_model::kv::Value;
use serde_json::Value as Json;

/// A JSON value as a typed one; `None` for null.
pub(crate) fn of_json(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(long) => Value::Long(long),
            None => Value::Double(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Array(_) | Json::Object(_) => Value::Json(value.to_string().into()),
    })
}
