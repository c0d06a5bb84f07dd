//! The two parts of a message that nodes read and write: its body and its metadata.

use std::sync::Arc;

use fieldline_model::kv;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::text::plain;
use super::text_template::TextTemplate;
use crate::message::RuleMessage;
use crate::node::{NodeConfigError, NodeError};

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum MessagePart {
    /// The body, which must be a JSON object.
    Data,
    /// The metadata.
    Metadata,
}

impl MessagePart {
    /// Whether something can be put there.
    ///
    /// # Errors
    /// It is the body, which is no JSON object.
    pub(crate) fn check(self, msg: &mut RuleMessage) -> Result<(), NodeError> {
        match self {
            Self::Data => msg.data.object_mut().map(drop),
            Self::Metadata => Ok(()),
        }
    }

    /// Puts a value there, in the metadata as text.
    ///
    /// # Errors
    /// See [`MessagePart::check`]; or what the node has put there becomes too much.
    pub(crate) fn put(self, msg: &mut RuleMessage, key: &str, value: &kv::KvValue) -> Result<(), NodeError> {
        msg.budget.step(1 + msg.meta.len() / 8)?;
        msg.budget.make(key.len() + bytes_of(value))?;
        match self {
            Self::Data => {
                msg.data.object_mut()?.insert(key.to_owned(), value.to_json());
            }
            Self::Metadata => msg.meta.set(key, value.to_text()),
        }
        Ok(())
    }

    /// Puts a JSON value there, in the metadata as text; null is not put there.
    ///
    /// # Errors
    /// See [`MessagePart::check`].
    pub(crate) fn put_json(self, msg: &mut RuleMessage, key: &str, value: Value) -> Result<(), NodeError> {
        match self {
            Self::Data => {
                msg.data.object_mut()?.insert(key.to_owned(), value);
            }
            Self::Metadata if value.is_null() => {}
            Self::Metadata => msg.meta.set(key, plain(&value)),
        }
        Ok(())
    }
}

/// Bytes of a value.
pub(crate) const fn bytes_of(value: &kv::KvValue) -> usize {
    match value {
        kv::KvValue::Text(text) | kv::KvValue::Json(text) => text.len(),
        _ => size_of::<kv::KvValue>(),
    }
}

/// The part that a field of the configuration names.
///
/// # Errors
/// There is no such field.
pub(crate) fn required(part: Option<MessagePart>, field: &str) -> Result<MessagePart, NodeConfigError> {
    part.ok_or_else(|| NodeConfigError::new(field, "must be DATA or METADATA"))
}

/// Replaces a yes-or-no field of an old configuration by one that names a part. What is neither yes nor no stays.
pub(crate) fn upgrade_flag(configuration: &mut Value, old: &str, new: &str, yes: MessagePart) {
    let Some(fields) = configuration.as_object_mut() else {
        return;
    };
    let (yes, no) = match yes {
        MessagePart::Data => ("DATA", "METADATA"),
        MessagePart::Metadata => ("METADATA", "DATA"),
    };
    let name = match fields.get(old).map(plain).as_deref() {
        Some("true") => yes,
        Some("false") => no,
        _ => return,
    };
    fields.shift_remove(old);
    fields.insert(new.to_owned(), json!(name));
}

/// Names of keys, which may be patterns.
#[derive(Debug)]
pub(crate) enum KeyNames {
    /// The same for all messages.
    Fixed(Arc<[String]>),
    /// Some depend on the message.
    Patterns(Vec<TextTemplate>),
}

impl KeyNames {
    /// Names as they are configured.
    pub(crate) fn new(names: &[String]) -> Self {
        let patterns: Vec<_> = names.iter().map(|name| TextTemplate::new(name)).collect();
        if patterns.iter().all(TextTemplate::is_plain) {
            Self::Fixed(names.into())
        } else {
            Self::Patterns(patterns)
        }
    }

    /// The names for a message.
    ///
    /// # Errors
    /// They need the body, which is no JSON.
    pub(crate) fn of(&self, msg: &mut RuleMessage) -> Result<Arc<[String]>, NodeError> {
        match self {
            Self::Fixed(names) => Ok(Arc::clone(names)),
            Self::Patterns(patterns) => patterns
                .iter()
                .map(|pattern| Ok(pattern.resolve(msg)?.into_owned()))
                .collect(),
        }
    }
}
