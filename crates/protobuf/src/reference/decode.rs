//! Converts messages to key-values by a tree.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fieldline_model::json::{self, JsonRules};
use fieldline_model::kv::{self, KvValueRef, pack_key, pack_value};
use fieldline_model::record::TelemetryWriter;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage as _, Value};

use super::text::{self, map_key, sorted};
use crate::decode::{DecodeBudget, widen_float};
use crate::text::not_finite;
use crate::{MAX_MESSAGE_BYTES, MessageError, ProtobufSchema};

fn decode(schema: &ProtobufSchema, payload: &[u8]) -> Result<DynamicMessage, MessageError> {
    if payload.len() > MAX_MESSAGE_BYTES {
        return Err(MessageError::TooLarge);
    }
    Ok(DynamicMessage::decode(schema.root.clone(), payload)?)
}

/// See [`ProtobufSchema::telemetry`].
///
/// # Errors
/// The message violates the schema, or exceeds its budget. The writer then holds a part of it.
pub fn telemetry(
    schema: &ProtobufSchema,
    payload: &[u8],
    rules: &JsonRules,
    now: impl FnOnce() -> i64,
    out: &mut TelemetryWriter<'_>,
) -> Result<(), MessageError> {
    let message = decode(schema, payload)?;
    let mut budget = DecodeBudget::of(payload);
    let timed = schema
        .root
        .get_field_by_json_name("ts")
        .zip(schema.root.get_field_by_json_name("values"));
    let count = match &timed {
        Some((ts, values)) if is_present(&message, ts) && is_present(&message, values) => {
            let at = time(&message.get_field(ts))?;
            out.begin_row(at);
            match &*message.get_field(values) {
                Value::Message(values) => fields(values, rules, &mut budget, out.buffer())?,
                Value::Map(values) => entries(values, &map_value(&timed), rules, &mut budget, out.buffer())?,
                _ => return Err(MessageError::Invalid("`values` is no message")),
            }
        }
        _ => {
            out.begin_row(now());
            fields(&message, rules, &mut budget, out.buffer())?
        }
    };
    for _ in 0..count {
        out.count_point();
    }
    Ok(())
}

/// See [`ProtobufSchema::attributes`].
///
/// # Errors
/// The message violates the schema, or exceeds its budget. `out` is unchanged then.
pub fn attributes(
    schema: &ProtobufSchema,
    payload: &[u8],
    rules: &JsonRules,
    out: &mut Vec<u8>,
) -> Result<u32, MessageError> {
    let message = decode(schema, payload)?;
    let base = out.len();
    let packed = fields(&message, rules, &mut DecodeBudget::of(payload), out);
    if packed.is_err() {
        out.truncate(base);
    }
    packed
}

/// See [`ProtobufSchema::to_json`].
///
/// # Errors
/// The message violates the schema, or exceeds its budget.
pub fn to_json(schema: &ProtobufSchema, payload: &[u8]) -> Result<String, MessageError> {
    let message = decode(schema, payload)?;
    let mut out = String::new();
    text::write_message(&message, &mut DecodeBudget::of(payload), &mut out)?;
    Ok(out)
}

/// Returns whether a field appears in the JSON mapping with defaults: always, unless it has presence and is not set.
pub(crate) fn is_present(message: &DynamicMessage, field: &FieldDescriptor) -> bool {
    !field.supports_presence() || message.has_field(field)
}

fn fields(
    message: &DynamicMessage,
    rules: &JsonRules,
    budget: &mut DecodeBudget,
    out: &mut Vec<u8>,
) -> Result<u32, MessageError> {
    let mut count = 0;
    for field in message.descriptor().fields() {
        budget.spend(0)?;
        if is_present(message, &field) {
            entry(
                field.json_name(),
                &message.get_field(&field),
                &field.kind(),
                rules,
                budget,
                out,
            )?;
            count += 1;
        }
    }
    Ok(count)
}

fn entries(
    map: &std::collections::HashMap<MapKey, Value>,
    kind: &Kind,
    rules: &JsonRules,
    budget: &mut DecodeBudget,
    out: &mut Vec<u8>,
) -> Result<u32, MessageError> {
    for (key, value) in sorted(map) {
        entry(&map_key(key), value, kind, rules, budget, out)?;
    }
    Ok(u32::try_from(map.len()).unwrap_or(u32::MAX))
}

/// Returns the type of the map values if `values` is a map.
fn map_value(timed: &Option<(FieldDescriptor, FieldDescriptor)>) -> Kind {
    match timed.as_ref().map(|(_, values)| values.kind()) {
        Some(Kind::Message(entry)) if entry.is_map_entry() => entry.map_entry_value_field().kind(),
        Some(kind) => kind,
        None => Kind::String,
    }
}

fn entry(
    key: &str,
    value: &Value,
    kind: &Kind,
    rules: &JsonRules,
    budget: &mut DecodeBudget,
    out: &mut Vec<u8>,
) -> Result<(), MessageError> {
    if key.trim().is_empty() {
        return Err(MessageError::Invalid("key is empty"));
    }
    if key.len() > kv::MAX_KEY_BYTES {
        return Err(MessageError::Invalid("key is too long"));
    }
    budget.spend(key.len())?;
    pack_key(key, out);
    let mut pack = |value: KvValueRef<'_>| pack_value(value, out);
    match value {
        Value::Bool(value) => pack(KvValueRef::Bool(*value)),
        Value::I32(value) => pack(KvValueRef::Long((*value).into())),
        Value::I64(value) => pack(KvValueRef::Long(*value)),
        Value::U32(value) => pack(KvValueRef::Long((*value).into())),
        Value::U64(value) => match i64::try_from(*value) {
            Ok(long) => pack(KvValueRef::Long(long)),
            Err(_) => pack(KvValueRef::Text(&value.to_string())),
        },
        Value::F32(value) => pack(double(widen_float(*value), &mut String::new())),
        Value::F64(value) => pack(double(*value, &mut String::new())),
        Value::String(text) => {
            budget.spend(text.len())?;
            json::pack_text(text, rules, out)?;
        }
        Value::Bytes(bytes) => {
            budget.spend(bytes.len() * 2)?;
            pack(KvValueRef::Text(&BASE64_STANDARD.encode(bytes)));
        }
        Value::EnumNumber(number) => match text::enum_name(*number, kind) {
            Some(name) => pack(KvValueRef::Text(&name)),
            None => pack(KvValueRef::Long((*number).into())),
        },
        Value::Message(_) | Value::List(_) | Value::Map(_) => {
            let mut nested = String::new();
            text::write_value(value, kind, budget, &mut nested)?;
            pack(KvValueRef::Json(&nested));
        }
    }
    Ok(())
}

/// Returns the number, or the text that replaces it if it is not finite.
fn double<'t>(value: f64, name: &'t mut String) -> KvValueRef<'t> {
    match not_finite(value) {
        Some(known) => {
            name.push_str(known);
            KvValueRef::Text(name)
        }
        None => KvValueRef::Double(value),
    }
}

/// Reads the time in a field, milliseconds.
fn time(value: &Value) -> Result<i64, MessageError> {
    let found = match value {
        Value::I32(value) => Some((*value).into()),
        Value::I64(value) => Some(*value),
        Value::U32(value) => Some((*value).into()),
        Value::U64(value) => i64::try_from(*value).ok(),
        Value::F32(value) => Some(*value as i64),
        Value::F64(value) => Some(*value as i64),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    found.ok_or(MessageError::Invalid("`ts` is no time in milliseconds"))
}
