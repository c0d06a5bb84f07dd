//! Reading the configuration of a node.

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// A field of a configuration is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct ConnectorConfigError {
    field: String,
    problem: String,
}

impl ConnectorConfigError {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// Returns the path of the field, as `credentials.password`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns what is wrong with it.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

/// The configuration of a node, as ThingsBoard stores it.
///
/// `Default` is the configuration of a new node. Missing fields and `null` take their value from it, unknown fields
/// are ignored, and what older versions of a node stored is understood.
pub trait ConnectorConfig: DeserializeOwned {
    /// Checks what the types do not say; the error names the field.
    fn validate(&self) -> Result<(), ConnectorConfigError>;

    /// Reads and checks a configuration; the error names the field.
    fn from_json(configuration: &Value) -> Result<Self, ConnectorConfigError> {
        let config: Self = read(configuration)?;
        config.validate()?;
        Ok(config)
    }
}

/// Reads a configuration without checking it.
pub(crate) fn read<T: DeserializeOwned>(configuration: &Value) -> Result<T, ConnectorConfigError> {
    if !configuration.is_object() {
        return Err(ConnectorConfigError::new("configuration", "must be an object"));
    }
    serde_path_to_error::deserialize(without_nulls(configuration)).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." {
            "configuration".to_owned()
        } else {
            path
        };
        ConnectorConfigError::new(field, error.into_inner().to_string())
    })
}

/// Leaves out what is `null`, so that it reads as missing. JSON schemas are kept as they are.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| {
                    let kept = if key == "schema" {
                        value.clone()
                    } else {
                        without_nulls(value)
                    };
                    (key.clone(), kept)
                })
                .collect(),
        ),
        Value::Array(values) => Value::Array(values.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// Fails if a text is empty or only space.
pub(crate) fn require(field: &str, value: &str) -> Result<(), ConnectorConfigError> {
    if value.trim().is_empty() {
        Err(ConnectorConfigError::new(field, "must not be empty"))
    } else {
        Ok(())
    }
}

/// Fails if there is no such port to connect to.
pub(crate) fn require_port(field: &str, port: u16) -> Result<(), ConnectorConfigError> {
    if port == 0 {
        Err(ConnectorConfigError::new(field, "must be between 1 and 65535"))
    } else {
        Ok(())
    }
}
