//! What a script returned, as the host can use it.

use rquickjs::{Array, Ctx, Object, Type, Value};

use crate::engine::{CallFailure, RealmFunctions};
use crate::error::ScriptError;
use crate::json;

/// What a script returned.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptOutput {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A text.
    Text(String),
    /// A number, an object or an array, as JSON text.
    Json(String),
}

impl ScriptOutput {
    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As JSON text.
    pub fn into_json(self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Text(text) => serde_json::Value::String(text).to_string(),
            Self::Json(text) => text,
        }
    }

    /// As a JSON value.
    pub fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => serde_json::Value::Bool(*value),
            Self::Text(text) => serde_json::Value::String(text.clone()),
            Self::Json(text) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

/// One message that a transformation returned; `None` is what it left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransformedMessage {
    /// The body, as JSON text.
    pub msg: Option<String>,
    /// Names and texts; null values are left out.
    pub metadata: Option<Vec<(String, String)>>,
    /// The type; an empty one counts as left out.
    pub msg_type: Option<String>,
}

/// The error of a result that has another type than the caller needs.
pub(crate) fn wrong_type_error(expected: &str, value: &Value<'_>) -> ScriptError {
    let got = match value.type_of() {
        Type::Uninitialized | Type::Undefined | Type::Null => "nothing",
        Type::Bool => "a boolean",
        Type::Int | Type::Float | Type::BigInt => "a number",
        Type::String => "a text",
        Type::Array => "an array",
        Type::Function | Type::Constructor => "a function",
        _ => "an object",
    };
    ScriptError::runtime(format!(
        "wrong result: expected {expected}, the script returned {got}"
    ))
}

/// Room that is left for a result.
struct ResultBudget {
    left: usize,
    limit: usize,
}

impl ResultBudget {
    fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    fn take(&mut self, text: &str) -> Result<(), CallFailure> {
        // Bytes are never fewer than characters; only long results are counted twice.
        let length = if text.len() <= self.left {
            text.len()
        } else {
            text.chars().count()
        };
        self.left = self
            .left
            .checked_sub(length)
            .ok_or(ScriptError::ResultTooLarge { limit: self.limit })?;
        Ok(())
    }
}

pub(crate) fn output<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    value: &Value<'js>,
    max: usize,
) -> Result<ScriptOutput, CallFailure> {
    let mut room = ResultBudget::new(max);
    Ok(match value.type_of() {
        Type::Uninitialized | Type::Undefined | Type::Null => ScriptOutput::Null,
        Type::Bool => ScriptOutput::Bool(value.as_bool().unwrap_or_default()),
        Type::String => {
            let text = json::text(ctx, hooks, value)?;
            room.take(&text)?;
            ScriptOutput::Text(text)
        }
        _ => {
            let text = json::stringify(ctx, hooks, value, max)?;
            room.take(&text)?;
            if text == "null" {
                ScriptOutput::Null
            } else {
                ScriptOutput::Json(text)
            }
        }
    })
}

pub(crate) fn labels<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    value: &Value<'js>,
    max: usize,
) -> Result<Vec<String>, CallFailure> {
    const EXPECTED: &str = "a text or an array of texts";
    let mut room = ResultBudget::new(max);
    let items: Vec<Value<'js>> = match list(value) {
        Some(array) => {
            if array.len() > max {
                return Err(ScriptError::ResultTooLarge { limit: max }.into());
            }
            array.iter().collect::<rquickjs::Result<_>>()?
        }
        None => vec![value.clone()],
    };
    let mut labels: Vec<String> = Vec::with_capacity(items.len());
    for item in &items {
        if !item.is_string() {
            return Err(wrong_type_error(EXPECTED, item).into());
        }
        let label = json::text(ctx, hooks, item)?;
        room.take(&label)?;
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    Ok(labels)
}

pub(crate) fn messages<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    value: &Value<'js>,
    max: usize,
) -> Result<Vec<TransformedMessage>, CallFailure> {
    const EXPECTED: &str = "an object or an array of objects";
    let mut room = ResultBudget::new(max);
    let one = |value: &Value<'js>, room: &mut ResultBudget| match value.as_object() {
        Some(object) if !value.is_array() && !value.is_function() => parts(ctx, hooks, object, room, max),
        _ => Err(wrong_type_error(EXPECTED, value).into()),
    };
    match list(value) {
        Some(array) => {
            if array.len() > max {
                return Err(ScriptError::ResultTooLarge { limit: max }.into());
            }
            array
                .iter::<Value<'js>>()
                .map(|item| one(&item?, &mut room))
                .collect()
        }
        None => Ok(vec![one(value, &mut room)?]),
    }
}

fn list<'js>(value: &Value<'js>) -> Option<Array<'js>> {
    value.clone().into_array()
}

fn parts<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    object: &Object<'js>,
    room: &mut ResultBudget,
    max: usize,
) -> Result<TransformedMessage, CallFailure> {
    let mut parts = TransformedMessage::default();
    let msg: Value<'js> = object.get("msg")?;
    if !msg.is_undefined() {
        let text = json::stringify(ctx, hooks, &msg, max)?;
        room.take(&text)?;
        parts.msg = Some(text);
    }
    let metadata: Value<'js> = object.get("metadata")?;
    if !metadata.is_undefined() && !metadata.is_null() {
        let all = entries(ctx, hooks, &metadata)?;
        for (key, value) in &all {
            room.take(key)?;
            room.take(value)?;
        }
        parts.metadata = Some(all);
    }
    let msg_type: Value<'js> = object.get("msgType")?;
    if !msg_type.is_undefined() && !msg_type.is_null() {
        let text = json::display(ctx, hooks, &msg_type, max)?;
        room.take(&text)?;
        parts.msg_type = Some(text).filter(|text| !text.is_empty());
    }
    Ok(parts)
}

fn entries<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    value: &Value<'js>,
) -> Result<Vec<(String, String)>, CallFailure> {
    let Some(object) = value
        .as_object()
        .filter(|_| !value.is_array() && !value.is_function())
    else {
        return Err(wrong_type_error("metadata to be an object of texts", value).into());
    };
    let mut all = Vec::new();
    for entry in object.props::<rquickjs::Atom<'js>, Value<'js>>() {
        let (key, value) = entry?;
        if value.is_undefined() || value.is_null() {
            continue;
        }
        all.push((
            json::key(ctx, hooks, &key)?,
            json::display(ctx, hooks, &value, usize::MAX)?,
        ));
    }
    Ok(all)
}
