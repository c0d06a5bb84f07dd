//! Reading configuration JSON with errors that name the field.

use std::fmt;

use fieldline_model::configuration_size::OversizedConfiguration;
use fieldline_model::kv::KvValue;
use serde_json::Value as Json;
use uuid::Uuid;

/// Longest text in a configuration, bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A configuration that cannot be used: where, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct AlarmConfigError {
    /// The field, such as `alarms[0].createRules.CRITICAL.condition.spec.unit`.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

impl From<OversizedConfiguration> for AlarmConfigError {
    fn from(oversized: OversizedConfiguration) -> Self {
        Self {
            path: oversized.field,
            reason: oversized.problem,
        }
    }
}

pub(super) type ConfigResult<T> = Result<T, AlarmConfigError>;

static NULL: Json = Json::Null;

/// A place in a configuration.
#[derive(Clone)]
pub(super) struct ConfigCursor<'a> {
    pub value: &'a Json,
    path: String,
}

impl<'a> ConfigCursor<'a> {
    pub(super) fn root(value: &'a Json, name: &str) -> Self {
        Self {
            value,
            path: name.to_owned(),
        }
    }

    pub(super) fn error<T>(&self, reason: impl fmt::Display) -> ConfigResult<T> {
        Err(AlarmConfigError {
            path: self.path.clone(),
            reason: reason.to_string(),
        })
    }

    /// The field of that name; null where it is absent.
    pub(super) fn field(&self, name: &str) -> ConfigCursor<'a> {
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        ConfigCursor {
            value: self.value.get(name).unwrap_or(&NULL),
            path,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// The place itself, `None` where it is null.
    pub(super) fn present(self) -> Option<Self> {
        (!self.is_null()).then_some(self)
    }

    pub(super) fn required(self) -> ConfigResult<Self> {
        if self.is_null() {
            self.error("is required")
        } else {
            Ok(self)
        }
    }

    /// Elements of an array of at most `max`; none where it is null.
    pub(super) fn list(&self, max: usize) -> ConfigResult<Vec<ConfigCursor<'a>>> {
        match self.value {
            Json::Null => Ok(Vec::new()),
            Json::Array(items) if items.len() > max => {
                self.error(format_args!("has more than {max} elements"))
            }
            Json::Array(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(index, value)| ConfigCursor {
                    value,
                    path: format!("{}[{index}]", self.path),
                })
                .collect()),
            _ => self.error("must be an array"),
        }
    }

    /// Fields of an object of at most `max`; none where it is null.
    pub(super) fn entries(&self, max: usize) -> ConfigResult<Vec<(&'a str, ConfigCursor<'a>)>> {
        match self.value {
            Json::Null => Ok(Vec::new()),
            Json::Object(map) if map.len() > max => self.error(format_args!("has more than {max} fields")),
            Json::Object(map) => Ok(map.keys().map(|name| (name.as_str(), self.field(name))).collect()),
            _ => self.error("must be an object"),
        }
    }

    /// Text; numbers and booleans are taken as what they look like, as ThingsBoard does.
    pub(super) fn text(&self) -> ConfigResult<String> {
        let text = match self.value {
            Json::String(text) => text.clone(),
            Json::Number(_) | Json::Bool(_) => self.value.to_string(),
            Json::Null => return self.error("is required"),
            _ => return self.error("must be a string"),
        };
        if text.len() > MAX_TEXT_BYTES {
            return self.error(format_args!("is longer than {MAX_TEXT_BYTES} bytes"));
        }
        Ok(text)
    }

    /// Text that is not empty.
    pub(super) fn name(&self) -> ConfigResult<String> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.error("must not be empty")
        } else {
            Ok(text)
        }
    }

    /// Text, `None` where it is null or empty.
    pub(super) fn optional_text(&self) -> ConfigResult<Option<String>> {
        if self.is_null() {
            return Ok(None);
        }
        Ok(Some(self.text()?).filter(|text| !text.is_empty()))
    }

    pub(super) fn number(&self) -> ConfigResult<f64> {
        let number = match self.value {
            Json::Number(number) => number.as_f64(),
            Json::String(text) => super::convert::parse_double(text),
            Json::Null => return self.error("is required"),
            _ => None,
        };
        number.map_or_else(|| self.error("must be a number"), Ok)
    }

    pub(super) fn integer(&self) -> ConfigResult<i64> {
        let number = match self.value {
            Json::Number(number) => number
                .as_i64()
                .or_else(|| number.as_f64().map(|value| value as i64)),
            Json::String(text) => text.trim().parse().ok(),
            Json::Null => return self.error("is required"),
            _ => None,
        };
        number.map_or_else(|| self.error("must be a whole number"), Ok)
    }

    pub(super) fn boolean(&self) -> ConfigResult<bool> {
        match self.value {
            Json::Bool(value) => Ok(*value),
            Json::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Json::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Json::Null => self.error("is required"),
            _ => self.error("must be true or false"),
        }
    }

    /// A flag, false where it is null.
    pub(super) fn flag(&self) -> ConfigResult<bool> {
        if self.is_null() { Ok(false) } else { self.boolean() }
    }

    /// One of a set of names.
    pub(super) fn one_of<T: Copy>(&self, names: &[(&str, T)]) -> ConfigResult<T> {
        let text = self.text()?;
        match names.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                self.error(format_args!(
                    "`{}` is none of {}",
                    shortened(&text),
                    known.join(", ")
                ))
            }
        }
    }

    /// The id of an entity reference `{"entityType":…,"id":…}` or of a bare UUID.
    pub(super) fn optional_uuid(&self) -> ConfigResult<Option<Uuid>> {
        let id = if self.value.is_object() {
            self.field("id")
        } else {
            self.clone()
        };
        match id.optional_text()? {
            None => Ok(None),
            Some(text) => match Uuid::parse_str(&text) {
                Ok(id) => Ok(Some(id)),
                Err(_) => id.error("must be a UUID"),
            },
        }
    }

    /// Milliseconds in a unit of time.
    pub(super) fn unit(&self) -> ConfigResult<DurationUnit> {
        self.one_of(&[
            (
                "NANOSECONDS",
                DurationUnit {
                    times: 1,
                    per: 1_000_000,
                },
            ),
            ("MICROSECONDS", DurationUnit { times: 1, per: 1_000 }),
            ("MILLISECONDS", DurationUnit { times: 1, per: 1 }),
            ("SECONDS", DurationUnit { times: 1_000, per: 1 }),
            (
                "MINUTES",
                DurationUnit {
                    times: 60_000,
                    per: 1,
                },
            ),
            (
                "HOURS",
                DurationUnit {
                    times: 3_600_000,
                    per: 1,
                },
            ),
            (
                "DAYS",
                DurationUnit {
                    times: 86_400_000,
                    per: 1,
                },
            ),
        ])
    }
}

/// What an operand can be.
pub(super) trait FromConfig: Sized {
    fn from_config(at: &ConfigCursor<'_>) -> ConfigResult<Self>;
}

impl FromConfig for f64 {
    fn from_config(at: &ConfigCursor<'_>) -> ConfigResult<Self> {
        at.number()
    }
}

impl FromConfig for i64 {
    fn from_config(at: &ConfigCursor<'_>) -> ConfigResult<Self> {
        at.integer()
    }
}

impl FromConfig for bool {
    fn from_config(at: &ConfigCursor<'_>) -> ConfigResult<Self> {
        at.boolean()
    }
}

impl FromConfig for String {
    fn from_config(at: &ConfigCursor<'_>) -> ConfigResult<Self> {
        at.text()
    }
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DurationUnit {
    times: i64,
    per: i64,
}

impl DurationUnit {
    /// Milliseconds of `count` units; very many are as many as fit.
    pub(super) const fn millis(self, count: i64) -> i64 {
        count.saturating_mul(self.times) / self.per
    }
}

/// A default value as the platform types it: number, boolean, else text; none where it is blank.
pub(super) fn typed_default(text: &str) -> Option<KvValue> {
    if text.trim().is_empty() {
        return None;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().filter(|byte| *byte == b'.').count() <= 1
        && !digits.ends_with('.');
    Some(match text.parse::<f64>() {
        Ok(number) if is_number => KvValue::Double(number),
        _ if text.eq_ignore_ascii_case("true") => KvValue::Bool(true),
        _ if text.eq_ignore_ascii_case("false") => KvValue::Bool(false),
        _ => KvValue::Text(text.into()),
    })
}

/// A text short enough for a message.
pub(super) fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(64).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}
