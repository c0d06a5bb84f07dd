//! Encodes RPC calls to devices as messages of their schema, as lenient about types as the JSON mapping that devices
//! know.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prost::Message as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use serde_json::{Map, Value as Json};

use crate::{MessageError, ProtobufSchema};

impl ProtobufSchema {
    /// Encodes a call as a message of this schema, which has `method`, `requestId` and `params`. `params` is JSON text;
    /// if the field is a string, an object or a list is stored as its text.
    ///
    /// # Errors
    /// The parameters do not fit the schema.
    pub fn encode_rpc(&self, method: &str, number: i32, params: &str) -> Result<Vec<u8>, MessageError> {
        let params = serde_json::from_str(params).unwrap_or_else(|_| Json::String(params.to_owned()));
        let mut message = DynamicMessage::new(self.root.clone());
        for (name, value) in [
            ("method", Json::from(method)),
            ("requestId", Json::from(number)),
            ("params", params),
        ] {
            if let Some(field) = self.root.get_field_by_name(name) {
                let value = match (&value, field.kind()) {
                    (Json::Object(_) | Json::Array(_), Kind::String) => Json::String(value.to_string()),
                    _ => value,
                };
                set(&mut message, &field, &value)?;
            }
        }
        Ok(message.encode_to_vec())
    }
}

/// Builds a message of these members; members without a field are omitted. The recursion is as deep as the JSON, which
/// the JSON parser limits.
fn message(
    descriptor: MessageDescriptor,
    members: &Map<String, Json>,
) -> Result<DynamicMessage, MessageError> {
    let mut message = DynamicMessage::new(descriptor.clone());
    for (name, value) in members {
        let field = descriptor
            .get_field_by_json_name(name)
            .or_else(|| descriptor.get_field_by_name(name));
        if let Some(field) = field {
            set(&mut message, &field, value)?;
        }
    }
    Ok(message)
}

fn set(message: &mut DynamicMessage, field: &FieldDescriptor, json: &Json) -> Result<(), MessageError> {
    if json.is_null() {
        return Ok(());
    }
    let value = if field.is_map() {
        map(field, json)?
    } else if field.is_list() {
        let Json::Array(items) = json else {
            return Err(type_mismatch(field, "a list"));
        };
        let items = items.iter().map(|item| single(field, &field.kind(), item));
        Value::List(items.collect::<Result<_, _>>()?)
    } else {
        single(field, &field.kind(), json)?
    };
    message
        .try_set_field(field, value)
        .map_err(|_| type_mismatch(field, "another type"))
}

fn map(field: &FieldDescriptor, json: &Json) -> Result<Value, MessageError> {
    let (Json::Object(members), Kind::Message(entry)) = (json, field.kind()) else {
        return Err(type_mismatch(field, "an object"));
    };
    let (key_field, value_kind) = (entry.map_entry_key_field(), entry.map_entry_value_field().kind());
    let entries = members.iter().map(|(key, value)| {
        let key = match single(&key_field, &key_field.kind(), &Json::String(key.clone()))? {
            Value::Bool(key) => MapKey::Bool(key),
            Value::I32(key) => MapKey::I32(key),
            Value::I64(key) => MapKey::I64(key),
            Value::U32(key) => MapKey::U32(key),
            Value::U64(key) => MapKey::U64(key),
            Value::String(key) => MapKey::String(key),
            _ => return Err(type_mismatch(field, "other keys")),
        };
        Ok((key, single(field, &value_kind, value)?))
    });
    Ok(Value::Map(entries.collect::<Result<_, _>>()?))
}

fn single(field: &FieldDescriptor, kind: &Kind, json: &Json) -> Result<Value, MessageError> {
    let (value, expected) = match kind {
        Kind::Bool => (boolean(json).map(Value::Bool), "true or false"),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => (
            as_integer(json).and_then(|n| n.try_into().ok()).map(Value::I32),
            "a whole number of 32 bits",
        ),
        Kind::Uint32 | Kind::Fixed32 => (
            as_integer(json).and_then(|n| n.try_into().ok()).map(Value::U32),
            "a positive whole number of 32 bits",
        ),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => (
            as_integer(json).and_then(|n| n.try_into().ok()).map(Value::I64),
            "a whole number of 64 bits",
        ),
        Kind::Uint64 | Kind::Fixed64 => (
            as_integer(json).and_then(|n| n.try_into().ok()).map(Value::U64),
            "a positive whole number of 64 bits",
        ),
        Kind::Float => (double(json).map(|value| Value::F32(value as f32)), "a number"),
        Kind::Double => (double(json).map(Value::F64), "a number"),
        Kind::String => (as_text(json).map(Value::String), "text"),
        Kind::Bytes => {
            let bytes = json.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
            (bytes.map(|bytes| Value::Bytes(bytes.into())), "text in base64")
        }
        Kind::Enum(known) => {
            let by_name = json.as_str().and_then(|name| known.get_value_by_name(name));
            let number = by_name.map(|value| value.number());
            let number = number.or_else(|| as_integer(json)?.try_into().ok());
            (
                number.map(Value::EnumNumber),
                "a name or number of its enumeration",
            )
        }
        Kind::Message(descriptor) => {
            let Json::Object(members) = json else {
                return Err(type_mismatch(field, "an object"));
            };
            (
                Some(Value::Message(message(descriptor.clone(), members)?)),
                "an object",
            )
        }
    };
    value.ok_or_else(|| type_mismatch(field, expected))
}

fn type_mismatch(field: &FieldDescriptor, expected: &'static str) -> MessageError {
    MessageError::Misfit {
        field: field.name().to_owned(),
        expected,
    }
}

fn boolean(json: &Json) -> Option<bool> {
    match json {
        Json::Bool(value) => Some(*value),
        Json::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Converts a whole number, also from text or with zero decimals.
fn as_integer(json: &Json) -> Option<i128> {
    let exact = |value: f64| (value.fract() == 0.0 && value.abs() < 1e19).then_some(value as i128);
    match json {
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Some(value.into()),
            (None, Some(value)) => Some(value.into()),
            (None, None) => exact(number.as_f64()?),
        },
        Json::String(text) => text.parse().ok().or_else(|| exact(text.parse().ok()?)),
        _ => None,
    }
}

fn double(json: &Json) -> Option<f64> {
    match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            other => other.parse().ok(),
        },
        _ => None,
    }
}

fn as_text(json: &Json) -> Option<String> {
    match json {
        Json::String(text) => Some(text.clone()),
        Json::Number(_) | Json::Bool(_) => Some(json.to_string()),
        _ => None,
    }
}
