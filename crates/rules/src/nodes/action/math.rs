//! "Math function": calculates something of values of the message and of its originator, and saves it or puts it into the
//! message.

mod arguments;
mod operation;
mod originator_lock;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fieldline_core::ports::{AttributeSaveStrategy, TelemetrySaveStrategy};
use fieldline_model::kv::{self, KvValueRef, pack};
use fieldline_model::timeseries::AttributeScope;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::arguments::{MathArgument, MathArgumentConfig, MathArgumentType, StoredArgument, scope};
use self::operation::MathOperation;
use self::originator_lock::OriginatorLockGuard;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{
    AttributeValues, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult,
    TelemetryValues,
};
use crate::node_types::NodeType;
use crate::nodes::text::round_half_up;
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;
use crate::value_update::{UpdatedValues, ValueUpdate};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "math.TbMathNode",
    name: "math function",
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
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ACTION
}];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(schema_with = "operation::names")]
    operation: String,
    #[serde(default)]
    arguments: Option<Vec<MathArgumentConfig>>,
    #[serde(default)]
    #[schemars(title = "Expression", length(max = operation::MAX_EXPRESSION))]
    custom_function: Option<String>,
    result: MathResultConfig,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MathResultConfig {
    #[serde(rename = "type")]
    #[schemars(schema_with = "arguments::result_types")]
    kind: MathArgumentType,
    key: TextTemplate,
    #[serde(default)]
    #[schemars(title = "Digits behind the point", range(min = 0, max = 1000))]
    result_value_precision: i32,
    #[serde(default)]
    add_to_body: bool,
    #[serde(default)]
    add_to_metadata: bool,
    #[serde(default)]
    #[schemars(schema_with = "config_schema::attribute_scope")]
    attribute_scope: Option<String>,
}

struct MathNode(Arc<MathCalculation>);

struct MathCalculation {
    operation: MathOperation,
    arguments: Vec<MathArgument>,
    target: MathResultTarget,
    key: TextTemplate,
    /// Digits behind the point; `None` for a whole number.
    digits: Option<i32>,
    to_body: bool,
    to_metadata: bool,
}

enum MathResultTarget {
    Message,
    Attribute(AttributeScope),
    TimeSeries,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let arguments = config
        .arguments
        .unwrap_or_default()
        .into_iter()
        .enumerate()
        .map(|(index, argument)| MathArgument::new(index, argument))
        .collect::<Result<Vec<_>, _>>()?;
    let operation = MathOperation::new(&config.operation, config.custom_function.as_deref(), &arguments)?;
    let result = config.result;
    if !(0..=1000).contains(&result.result_value_precision) {
        return Err(NodeConfigError::new(
            "result.resultValuePrecision",
            "must be between 0 and 1000",
        ));
    }
    let is_whole = operation.is_whole() || result.result_value_precision == 0;
    let (target, to_body, to_metadata) = match result.kind {
        MathArgumentType::MessageBody => (MathResultTarget::Message, true, false),
        MathArgumentType::MessageMetadata => (MathResultTarget::Message, false, true),
        MathArgumentType::Attribute => {
            let scope = scope(result.attribute_scope.as_deref(), || {
                "result.attributeScope".to_owned()
            })?;
            (
                MathResultTarget::Attribute(scope),
                result.add_to_body,
                result.add_to_metadata,
            )
        }
        MathArgumentType::TimeSeries => (
            MathResultTarget::TimeSeries,
            result.add_to_body,
            result.add_to_metadata,
        ),
        MathArgumentType::Constant => {
            return Err(NodeConfigError::new(
                "result.type",
                "a result cannot be a CONSTANT",
            ));
        }
    };
    Ok(Arc::new(MathNode(Arc::new(MathCalculation {
        operation,
        arguments,
        target,
        key: result.key,
        digits: (!is_whole).then_some(result.result_value_precision),
        to_body,
        to_metadata,
    }))))
}

impl Node for MathNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let calculation = Arc::clone(&self.0);
        let stored = match calculation.stored(&mut msg) {
            Ok(stored) => stored,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        if stored.is_empty() && matches!(calculation.target, MathResultTarget::Message) {
            return calculation.finish(ctx, msg, &[]);
        }
        // What one message saves the next one of the originator shall read, even if reading takes a while.
        match OriginatorLockGuard::try_acquire(msg.subject()) {
            Ok(turn) => calculation.read(ctx.services, msg, stored, turn),
            Err(next) => NodeResult::wait(async move {
                let turn = next.acquire().await;
                NodeResult::then(move |ctx| calculation.read(ctx.services, msg, stored, turn))
            }),
        }
    }
}

/// A result as it is saved and shown.
#[derive(Debug, Clone, Copy)]
enum MathResult {
    Whole(i64),
    Fraction(f64),
}

impl MathCalculation {
    /// What has to be read of the originator, one entry an argument.
    fn stored(&self, msg: &mut RuleMessage) -> Result<Vec<StoredArgument>, NodeError> {
        let all = self.arguments.iter().map(|argument| argument.stored(msg));
        Ok(all
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    fn read(
        self: Arc<Self>,
        services: &Arc<NodeServices>,
        msg: RuleMessage,
        stored: Vec<StoredArgument>,
        turn: OriginatorLockGuard,
    ) -> NodeResult {
        let services = Arc::clone(services);
        NodeResult::wait(async move {
            match arguments::read(&services, msg.subject(), stored).await {
                Ok(read) => NodeResult::then(move |ctx| {
                    let step = self.finish(ctx, msg, &read);
                    drop(turn);
                    step
                }),
                Err(error) => NodeResult::Fail(msg, error),
            }
        })
    }

    fn finish(
        &self,
        ctx: &mut NodeContext<'_>,
        mut msg: RuleMessage,
        read: &[Option<kv::KvValue>],
    ) -> NodeResult {
        let done = self.calculate(ctx, &mut msg, read);
        NodeResult::after(msg, done)
    }

    fn calculate(
        &self,
        ctx: &mut NodeContext<'_>,
        msg: &mut RuleMessage,
        read: &[Option<kv::KvValue>],
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
                MathResult::Whole(number) => Value::from(number),
                MathResult::Fraction(number) => Value::from(number),
            };
            msg.data.object_mut()?.insert(key.clone(), number);
        }
        if self.to_metadata {
            let text = match self.rounded(result)? {
                MathResult::Whole(number) => number.to_string(),
                MathResult::Fraction(number) => kv::KvValue::Double(number).to_text(),
            };
            msg.meta.set(key.as_str(), text);
        }
        self.save(ctx, msg, &key, result)
    }

    fn rounded(&self, result: f64) -> Result<MathResult, NodeError> {
        match self.digits {
            None => Ok(MathResult::Whole(result as i64)),
            Some(_) if !result.is_finite() => Err(NodeError::new(format!(
                "the result is no finite number: {result}"
            ))),
            Some(digits) => Ok(MathResult::Fraction(round_half_up(result, digits))),
        }
    }

    fn save(
        &self,
        ctx: &mut NodeContext<'_>,
        msg: &RuleMessage,
        key: &str,
        result: f64,
    ) -> Result<(), NodeError> {
        let (subject, ts) = (msg.subject(), ctx.now_ms);
        let mut packed = Vec::with_capacity(key.len() + 12);
        match self.target {
            MathResultTarget::Message => {}
            MathResultTarget::Attribute(scope) => {
                let value = match self.rounded(result)? {
                    MathResult::Whole(number) => KvValueRef::Long(number),
                    MathResult::Fraction(number) => KvValueRef::Double(number),
                };
                pack(key, value, &mut packed);
                let what = UpdatedValues::Attributes {
                    scope,
                    values: &packed,
                };
                ctx.notify_fields(ValueUpdate {
                    subject,
                    values: what,
                    msg,
                });
                let saved = AttributeValues {
                    subject,
                    scope,
                    ts,
                    strategy: AttributeSaveStrategy::ALL,
                    values: packed.into(),
                };
                ctx.save_attributes(msg, saved);
            }
            MathResultTarget::TimeSeries => {
                if !result.is_finite() {
                    return Err(NodeError::new(format!(
                        "the result is no finite number: {result}"
                    )));
                }
                pack(key, KvValueRef::Double(result), &mut packed);
                let what = UpdatedValues::Telemetry { ts, values: &packed };
                ctx.notify_fields(ValueUpdate {
                    subject,
                    values: what,
                    msg,
                });
                let row = TelemetryValues {
                    subject,
                    ts,
                    ttl_seconds: 0,
                    strategy: TelemetrySaveStrategy::ALL,
                    values: packed.into(),
                };
                ctx.save_telemetry(msg, row);
            }
        }
        Ok(())
    }
}
