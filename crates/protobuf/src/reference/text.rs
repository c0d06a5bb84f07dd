//! The JSON mapping of messages, with all defaults: the form of nested values and of RPC responses.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fieldline_model::json::write_string;
use fieldline_model::kv::KvValueRef;
use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage as _, Value};

use super::decode::is_present;
use crate::MessageError;
use crate::decode::{DecodeBudget, widen_float};
use crate::text::not_finite;

/// Writes a message as an object, its fields in the order of their numbers.
pub(crate) fn write_message(
    message: &DynamicMessage,
    budget: &mut DecodeBudget,
    out: &mut String,
) -> Result<(), MessageError> {
    budget.spend(2)?;
    out.push('{');
    let mut first = true;
    for field in message.descriptor().fields() {
        budget.spend(0)?;
        if !is_present(message, &field) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        budget.spend(field.json_name().len() + 4)?;
        write_string(field.json_name(), out);
        out.push(':');
        write_value(&message.get_field(&field), &field.kind(), budget, out)?;
    }
    out.push('}');
    Ok(())
}

/// Writes the value of a field of that kind. 64-bit integers are strings, as the mapping requires.
pub(crate) fn write_value(
    value: &Value,
    kind: &Kind,
    budget: &mut DecodeBudget,
    out: &mut String,
) -> Result<(), MessageError> {
    budget.spend(2)?;
    let before = out.len();
    match value {
        Value::Bool(value) => KvValueRef::Bool(*value).write_json(out),
        Value::I32(value) => KvValueRef::Long((*value).into()).write_json(out),
        Value::U32(value) => KvValueRef::Long((*value).into()).write_json(out),
        Value::I64(value) => write_string(&value.to_string(), out),
        Value::U64(value) => write_string(&value.to_string(), out),
        Value::F32(value) => write_double(widen_float(*value), out),
        Value::F64(value) => write_double(*value, out),
        Value::String(text) => write_string(text, out),
        Value::Bytes(bytes) => write_string(&BASE64_STANDARD.encode(bytes), out),
        Value::EnumNumber(number) => match enum_name(*number, kind) {
            Some(name) => write_string(&name, out),
            None => KvValueRef::Long((*number).into()).write_json(out),
        },
        // These charge the budget themselves.
        Value::Message(message) => return write_message(message, budget, out),
        Value::List(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(value, kind, budget, out)?;
            }
            out.push(']');
            return Ok(());
        }
        Value::Map(map) => return write_map(map, kind, budget, out),
    }
    budget.spend(out.len() - before)
}

fn write_map(
    map: &HashMap<MapKey, Value>,
    kind: &Kind,
    budget: &mut DecodeBudget,
    out: &mut String,
) -> Result<(), MessageError> {
    let value_kind = match kind {
        Kind::Message(entry) if entry.is_map_entry() => entry.map_entry_value_field().kind(),
        other => other.clone(),
    };
    out.push('{');
    for (index, (key, value)) in sorted(map).into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let key = map_key(key);
        budget.spend(key.len() + 4)?;
        write_string(&key, out);
        out.push(':');
        write_value(value, &value_kind, budget, out)?;
    }
    out.push('}');
    Ok(())
}

/// Returns the entries of a map sorted by key, so that the same message always becomes the same text.
pub(crate) fn sorted(map: &HashMap<MapKey, Value>) -> Vec<(&MapKey, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Converts a map key to text.
pub(crate) fn map_key(key: &MapKey) -> Cow<'_, str> {
    match key {
        MapKey::Bool(key) => key.to_string().into(),
        MapKey::I32(key) => key.to_string().into(),
        MapKey::I64(key) => key.to_string().into(),
        MapKey::U32(key) => key.to_string().into(),
        MapKey::U64(key) => key.to_string().into(),
        MapKey::String(key) => key.as_str().into(),
    }
}

/// Returns the name of an enumeration value, if it has one.
pub(crate) fn enum_name(number: i32, kind: &Kind) -> Option<String> {
    let Kind::Enum(known) = kind else { return None };
    Some(known.get_value(number)?.name().to_owned())
}

fn write_double(value: f64, out: &mut String) {
    match not_finite(value) {
        Some(name) => write_string(name, out),
        None => KvValueRef::Double(value).write_json(out),
    }
}
