//! "Math function": calculates something of values of the message and of its originator, and saves it or puts it into the
//! message.

mod arguments;
mod operation;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;

use fieldline_core::ports::{AttributeParts, RowParts};
use fieldline_model::kv::{self, ValueRef, pack};
use fieldline_model::timeseries::AttributeScope;
use serde::Deserialize;
use serde_json::{Value, json};

use self::arguments::{Argument, ArgumentConfig, Kind, Stored, scope};
use self::operation::Operation;
use self::turns::Turn;
use crate::feed::{Update, What};
use crate::message::Msg;
use crate::node::{AttributeValues, ConfigError, Ctx, Node, NodeConfig, NodeError, Step, TelemetryValues};
use crate::nodes::pattern::Pattern;
use crate::nodes::text::round_half_up;
use crate::registry::{ComponentType, NodeType};
use crate::services::Services;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Applies a math function to values of the message and of its originator.",
    default_configuration: || {
        json!({
            "operation": "CUSTOM",
            "arguments": [{
                "name": "x", "type": "MESSAGE_BODY", "key": "temperature", "attributeScope": null, "defaultValue": null,
            }],
            "customFunction": "(x - 32) / 1.8",
            "result": {
                "type": "MESSAGE_BODY", "key": "temperatureCelsius", "resultValuePrecision": 2, "addToBody": false,
                "addToMetadata": false, "attributeScope": null,
            },
        })
    },
    ..NodeType::new("math.TbMathNode", "math function", ComponentType::Action, make)
}];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    operation: String,
    #[serde(default)]
    arguments: Option<Vec<ArgumentConfig>>,
    #[serde(default)]
    custom_function: Option<String>,
    result: ResultConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultConfig {
    #[serde(rename = "type")]
    kind: Kind,
    key: Pattern,
    #[serde(default)]
    result_value_precision: i32,
    #[serde(default)]
    add_to_body: bool,
    #[serde(default)]
    add_to_metadata: bool,
    #[serde(default)]
    attribute_scope: Option<String>,
}

struct Math(Arc<Calculation>);

struct Calculation {
    operation: Operation,
    arguments: Vec<Argument>,
    target: Target,
    key: Pattern,
    /// Digits behind the point; `None` for a whole number.
    digits: Option<i32>,
    to_body: bool,
    to_metadata: bool,
}

enum Target {
    Message,
    Attribute(AttributeScope),
    TimeSeries,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: Config = config.parse()?;
    let arguments = config
        .arguments
        .unwrap_or_default()
        .into_iter()
        .enumerate()
        .map(|(index, argument)| Argument::new(index, argument))
        .collect::<Result<Vec<_>, _>>()?;
    let operation = Operation::new(&config.operation, config.custom_function.as_deref(), &arguments)?;
    let result = config.result;
    if !(0..=1000).contains(&result.result_value_precision) {
        return Err(ConfigError::new(
            "result.resultValuePrecision",
            "must be between 0 and 1000",
        ));
    }
    let is_whole = operation.is_whole() || result.result_value_precision == 0;
    let (target, to_body, to_metadata) = match result.kind {
        Kind::MessageBody => (Target::Message, true, false),
        Kind::MessageMetadata => (Target::Message, false, true),
        Kind::Attribute => {
            let scope = scope(result.attribute_scope.as_deref(), || {
                "result.attributeScope".to_owned()
            })?;
            (
                Target::Attribute(scope),
                result.add_to_body,
                result.add_to_metadata,
            )
        }
        Kind::TimeSeries => (Target::TimeSeries, result.add_to_body, result.add_to_metadata),
        Kind::Constant => return Err(ConfigError::new("result.type", "a result cannot be a CONSTANT")),
    };
    Ok(Arc::new(Math(Arc::new(Calculation {
        operation,
        arguments,
        target,
        key: result.key,
        digits: (!is_whole).then_some(result.result_value_precision),
        to_body,
        to_metadata,
    }))))
}

impl Node for Math {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let calculation = Arc::clone(&self.0);
        let stored = match calculation.stored(&mut msg) {
            Ok(stored) => stored,
            Err(error) => return Step::Fail(msg, error),
        };
        if stored.is_empty() && matches!(calculation.target, Target::Message) {
            return calculation.finish(ctx, msg, &[]);
        }
        // What one message saves the next one of the originator shall read, even if reading takes a while.
        match Turn::try_take(msg.subject()) {
            Ok(turn) => calculation.read(ctx.services, msg, stored, turn),
            Err(next) => Step::wait(async move {
                let turn = next.turn().await;
                Step::then(move |ctx| calculation.read(ctx.services, msg, stored, turn))
            }),
        }
    }
}

/// A result as it is saved and shown.
#[derive(Debug, Clone, Copy)]
enum Number {
    Whole(i64),
    Fraction(f64),
}

impl Calculation {
    /// What has to be read of the originator, one entry an argument.
    fn stored(&self, msg: &mut Msg) -> Result<Vec<Stored>, NodeError> {
        let all = self.arguments.iter().map(|argument| argument.stored(msg));
        Ok(all
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    fn read(self: Arc<Self>, services: &Arc<Services>, msg: Msg, stored: Vec<Stored>, turn: Turn) -> Step {
        let services = Arc::clone(services);
        Step::wait(async move {
            match arguments::read(&services, msg.subject(), stored).await {
                Ok(read) => Step::then(move |ctx| {
                    let step = self.finish(ctx, msg, &read);
                    drop(turn);
                    step
                }),
                Err(error) => Step::Fail(msg, error),
            }
        })
    }

    fn finish(&self, ctx: &mut Ctx<'_>, mut msg: Msg, read: &[Option<kv::Value>]) -> Step {
        match self.calculate(ctx, &mut msg, read) {
            Ok(()) => Step::success(msg),
            Err(error) => Step::Fail(msg, error),
        }
    }

    fn calculate(
        &self,
        ctx: &mut Ctx<'_>,
        msg: &mut Msg,
        read: &[Option<kv::Value>],
    ) -> Result<(), NodeError> {
        let mut read = read.iter();
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            values.push(argument.value(msg, &mut read)?);
        }
        let result = self.operation.apply(&values)?;
        let key = self.key.resolve(msg)?.into_owned();
        let number = self.rounded(result);
        if self.to_body {
            let number = match number? {
                Number::Whole(number) => Value::from(number),
                Number::Fraction(number) => Value::from(number),
            };
            msg.data.object_mut()?.insert(key.clone(), number);
        }
        if self.to_metadata {
            let text = match self.rounded(result)? {
                Number::Whole(number) => number.to_string(),
                Number::Fraction(number) => kv::Value::Double(number).to_text(),
            };
            msg.meta.set(key.as_str(), text);
        }
        self.save(ctx, msg, &key, result)
    }

    fn rounded(&self, result: f64) -> Result<Number, NodeError> {
        match self.digits {
            None => Ok(Number::Whole(result as i64)),
            Some(_) if !result.is_finite() => Err(NodeError::new(format!(
                "the result is no finite number: {result}"
            ))),
            Some(digits) => Ok(Number::Fraction(round_half_up(result, digits))),
        }
    }

    fn save(&self, ctx: &mut Ctx<'_>, msg: &Msg, key: &str, result: f64) -> Result<(), NodeError> {
        let (subject, ts) = (msg.subject(), ctx.now_ms);
        let mut packed = Vec::with_capacity(key.len() + 12);
        match self.target {
            Target::Message => {}
            Target::Attribute(scope) => {
                let value = match self.rounded(result)? {
                    Number::Whole(number) => ValueRef::Long(number),
                    Number::Fraction(number) => ValueRef::Double(number),
                };
                pack(key, value, &mut packed);
                let what = What::Attributes {
                    scope,
                    values: &packed,
                };
                ctx.feed(Update { subject, what, msg });
                let saved = AttributeValues {
                    subject,
                    scope,
                    ts,
                    parts: AttributeParts::ALL,
                    values: packed.into(),
                };
                ctx.save_attributes(msg, saved);
            }
            Target::TimeSeries => {
                if !result.is_finite() {
                    return Err(NodeError::new(format!(
                        "the result is no finite number: {result}"
                    )));
                }
                pack(key, ValueRef::Double(result), &mut packed);
                let what = What::Telemetry { ts, values: &packed };
                ctx.feed(Update { subject, what, msg });
                let row = TelemetryValues {
                    subject,
                    ts,
                    ttl_seconds: 0,
                    parts: RowParts::ALL,
                    values: packed.into(),
                };
                ctx.save_telemetry(msg, row);
            }
        }
        Ok(())
    }
}
