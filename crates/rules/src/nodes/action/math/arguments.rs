//! Where the values come from.

use std::slice::Iter;
use std::sync::Arc;

use fieldline_model::EntityKey;
use fieldline_model::kv;
use fieldline_model::timeseries::AttributeScope;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{NodeConfigError, NodeError};
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

/// Where a value comes from, or a result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum MathArgumentType {
    Attribute,
    TimeSeries,
    MessageBody,
    MessageMetadata,
    Constant,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MathArgumentConfig {
    #[serde(default)]
    name: Option<String>,
    #[serde(rename = "type")]
    kind: MathArgumentType,
    #[serde(default)]
    #[schemars(extend("x-editor" = "template"))]
    key: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "config_schema::attribute_scope")]
    attribute_scope: Option<String>,
    #[serde(default)]
    default_value: Option<f64>,
}

/// Where a result can go.
pub(super) fn result_types(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = MathArgumentType::json_schema(generator);
    if let Some(Value::Array(types)) = schema.get_mut("enum") {
        types.retain(|name| name != "CONSTANT");
    }
    schema
}

/// An argument.
pub(super) struct MathArgument {
    name: String,
    source: MathArgumentSource,
    key: TextTemplate,
    otherwise: Option<f64>,
}

enum MathArgumentSource {
    Constant(f64),
    Body,
    Metadata,
    Attribute(AttributeScope),
    TimeSeries,
}

/// The scope of that name: that of the server where there is none.
pub(super) fn scope(
    name: Option<&str>,
    field: impl FnOnce() -> String,
) -> Result<AttributeScope, NodeConfigError> {
    match name.filter(|name| !name.is_empty()) {
        None => Ok(AttributeScope::Server),
        Some(name) => AttributeScope::from_name(name)
            .ok_or_else(|| NodeConfigError::new(field(), format!("there is no attribute scope `{name}`"))),
    }
}

/// Something that is stored of the originator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredArgument {
    Attribute(AttributeScope, String),
    TimeSeries(String),
}

impl MathArgument {
    pub(super) fn new(index: usize, config: MathArgumentConfig) -> Result<Self, NodeConfigError> {
        let field = |name: &str| format!("arguments[{index}].{name}");
        let key = config.key.unwrap_or_default();
        let source = match config.kind {
            MathArgumentType::Constant => {
                let problem =
                    |_| NodeConfigError::new(field("key"), format!("Can't convert value '{key}' to double!"));
                MathArgumentSource::Constant(key.trim().parse().map_err(problem)?)
            }
            MathArgumentType::MessageBody => MathArgumentSource::Body,
            MathArgumentType::MessageMetadata => MathArgumentSource::Metadata,
            MathArgumentType::Attribute => {
                MathArgumentSource::Attribute(scope(config.attribute_scope.as_deref(), || {
                    field("attributeScope")
                })?)
            }
            MathArgumentType::TimeSeries => MathArgumentSource::TimeSeries,
        };
        Ok(Self {
            name: config.name.unwrap_or_else(|| key.clone()),
            source,
            key: TextTemplate::new(&key),
            otherwise: config.default_value,
        })
    }

    /// Its name in expressions.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What has to be read of the originator for it.
    pub(super) fn stored(&self, msg: &mut RuleMessage) -> Result<Option<StoredArgument>, NodeError> {
        Ok(match self.source {
            MathArgumentSource::Attribute(scope) => Some(StoredArgument::Attribute(
                scope,
                self.key.resolve(msg)?.into_owned(),
            )),
            MathArgumentSource::TimeSeries => {
                Some(StoredArgument::TimeSeries(self.key.resolve(msg)?.into_owned()))
            }
            _ => None,
        })
    }

    /// Its value; `read` gives what was read, in the order of the arguments.
    pub(super) fn value(
        &self,
        msg: &mut RuleMessage,
        read: &mut Iter<'_, Option<kv::KvValue>>,
    ) -> Result<f64, NodeError> {
        match self.source {
            MathArgumentSource::Constant(value) => Ok(value),
            MathArgumentSource::Body => self.in_body(msg),
            MathArgumentSource::Metadata => {
                let key = self.key.resolve(msg)?.into_owned();
                match msg.meta.get(&key).filter(|text| !text.is_empty()) {
                    Some(text) => parse(&text),
                    None => self.or_else(|| format!("Message metadata has no '{key}'!")),
                }
            }
            MathArgumentSource::Attribute(_) | MathArgumentSource::TimeSeries => match read.next() {
                Some(Some(value)) => match value.as_number() {
                    Some(number) => Ok(number),
                    None => parse(&value.to_text()),
                },
                _ => {
                    let key = self.key.resolve(msg)?.into_owned();
                    let what = match self.source {
                        MathArgumentSource::Attribute(scope) => {
                            format!("Attribute: {key} with scope: {}", scope.name())
                        }
                        _ => format!("Time-series: {key}"),
                    };
                    self.or_else(|| format!("{what} not found for entity: {}", msg.originator.id))
                }
            },
        }
    }

    fn in_body(&self, msg: &mut RuleMessage) -> Result<f64, NodeError> {
        let key = self.key.resolve(msg)?.into_owned();
        let body = msg.data.to_json()?;
        let body = body
            .as_object()
            .ok_or_else(|| NodeError::new("Message body is not a JSON object!"))?;
        match body.get(&key) {
            None => self.or_else(|| format!("Message body has no '{key}'!")),
            Some(Value::Null) => self.or_else(|| format!("Message body has null '{key}'!")),
            Some(Value::Number(number)) => number.as_f64().ok_or_else(|| unreadable(&number.to_string())),
            Some(Value::String(text)) if text.trim().is_empty() => {
                self.or_else(|| format!("Message value is empty for '{key}'!"))
            }
            Some(Value::String(text)) => parse(text),
            Some(other) => Err(unreadable(&other.to_string())),
        }
    }

    fn or_else(&self, problem: impl FnOnce() -> String) -> Result<f64, NodeError> {
        self.otherwise.ok_or_else(|| NodeError::new(problem()))
    }
}

fn unreadable(text: &str) -> NodeError {
    NodeError::new(format!("Can't convert value '{text}' to double!"))
}

fn parse(text: &str) -> Result<f64, NodeError> {
    text.trim().parse().map_err(|_| unreadable(text))
}

/// Reads what is stored, in the same order.
pub(super) async fn read(
    services: &Arc<NodeServices>,
    subject: EntityKey,
    stored: Vec<StoredArgument>,
) -> Result<Vec<Option<kv::KvValue>>, NodeError> {
    let mut values = Vec::with_capacity(stored.len());
    for stored in stored {
        values.push(match stored {
            StoredArgument::Attribute(scope, key) => {
                let found = services.attributes.get(subject, scope, Some(&[key])).await?;
                found.into_iter().next().map(|attribute| attribute.value)
            }
            StoredArgument::TimeSeries(key) => {
                let found = services.series.latest(subject, Some(&[key])).await?;
                found.into_iter().next().map(|latest| latest.point.value)
            }
        });
    }
    Ok(values)
}
