//! Where the values come from.

use std::slice::Iter;
use std::sync::Arc;

use fieldline_model::Subject;
use fieldline_model::kv;
use fieldline_model::timeseries::AttributeScope;
use serde::Deserialize;
use serde_json::Value;

use crate::message::Msg;
use crate::node::{ConfigError, NodeError};
use crate::nodes::pattern::Pattern;
use crate::services::Services;

/// Where a value comes from, or a result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Kind {
    Attribute,
    TimeSeries,
    MessageBody,
    MessageMetadata,
    Constant,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArgumentConfig {
    #[serde(default)]
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    attribute_scope: Option<String>,
    #[serde(default)]
    default_value: Option<f64>,
}

/// An argument.
pub(super) struct Argument {
    name: String,
    source: Source,
    key: Pattern,
    otherwise: Option<f64>,
}

enum Source {
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
) -> Result<AttributeScope, ConfigError> {
    match name.filter(|name| !name.is_empty()) {
        None => Ok(AttributeScope::Server),
        Some(name) => AttributeScope::from_name(name)
            .ok_or_else(|| ConfigError::new(field(), format!("there is no attribute scope `{name}`"))),
    }
}

/// Something that is stored of the originator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stored {
    Attribute(AttributeScope, String),
    TimeSeries(String),
}

impl Argument {
    pub(super) fn new(index: usize, config: ArgumentConfig) -> Result<Self, ConfigError> {
        let field = |name: &str| format!("arguments[{index}].{name}");
        let key = config.key.unwrap_or_default();
        let source = match config.kind {
            Kind::Constant => {
                let problem =
                    |_| ConfigError::new(field("key"), format!("Can't convert value '{key}' to double!"));
                Source::Constant(key.trim().parse().map_err(problem)?)
            }
            Kind::MessageBody => Source::Body,
            Kind::MessageMetadata => Source::Metadata,
            Kind::Attribute => Source::Attribute(scope(config.attribute_scope.as_deref(), || {
                field("attributeScope")
            })?),
            Kind::TimeSeries => Source::TimeSeries,
        };
        Ok(Self {
            name: config.name.unwrap_or_else(|| key.clone()),
            source,
            key: Pattern::new(&key),
            otherwise: config.default_value,
        })
    }

    /// Its name in expressions.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What has to be read of the originator for it.
    pub(super) fn stored(&self, msg: &mut Msg) -> Result<Option<Stored>, NodeError> {
        Ok(match self.source {
            Source::Attribute(scope) => Some(Stored::Attribute(scope, self.key.resolve(msg)?.into_owned())),
            Source::TimeSeries => Some(Stored::TimeSeries(self.key.resolve(msg)?.into_owned())),
            _ => None,
        })
    }

    /// Its value; `read` gives what was read, in the order of the arguments.
    pub(super) fn value(
        &self,
        msg: &mut Msg,
        read: &mut Iter<'_, Option<kv::Value>>,
    ) -> Result<f64, NodeError> {
        match self.source {
            Source::Constant(value) => Ok(value),
            Source::Body => self.in_body(msg),
            Source::Metadata => {
                let key = self.key.resolve(msg)?.into_owned();
                match msg.meta.get(&key).filter(|text| !text.is_empty()) {
                    Some(text) => parse(&text),
                    None => self.or_else(|| format!("Message metadata has no '{key}'!")),
                }
            }
            Source::Attribute(_) | Source::TimeSeries => match read.next() {
                Some(Some(value)) => match value.as_number() {
                    Some(number) => Ok(number),
                    None => parse(&value.to_text()),
                },
                _ => {
                    let key = self.key.resolve(msg)?.into_owned();
                    let what = match self.source {
                        Source::Attribute(scope) => format!("Attribute: {key} with scope: {}", scope.name()),
                        _ => format!("Time-series: {key}"),
                    };
                    self.or_else(|| format!("{what} not found for entity: {}", msg.originator.id))
                }
            },
        }
    }

    fn in_body(&self, msg: &mut Msg) -> Result<f64, NodeError> {
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
    services: &Arc<Services>,
    subject: Subject,
    stored: Vec<Stored>,
) -> Result<Vec<Option<kv::Value>>, NodeError> {
    let mut values = Vec::with_capacity(stored.len());
    for stored in stored {
        values.push(match stored {
            Stored::Attribute(scope, key) => {
                let found = services.attributes.get(subject, scope, Some(&[key])).await?;
                found.into_iter().next().map(|attribute| attribute.value)
            }
            Stored::TimeSeries(key) => {
                let found = services.series.latest(subject, Some(&[key])).await?;
                found.into_iter().next().map(|latest| latest.point.value)
            }
        });
    }
    Ok(values)
}
