//! By how much a counter has grown since the message before.

use std::sync::Arc;

use fieldline_model::message::MsgType;
use fieldline_model::{EntityKey, kv};
use quick_cache::sync::Cache;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{
    ConnectionLabel, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult,
};
use crate::node_types::NodeType;
use crate::nodes::text::{as_double, round_half_up};
use crate::services::NodeServices;

/// Originators whose last value is remembered; of others it is read from their latest values.
const MAX_CACHED_ORIGINATORS: usize = 16_384;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "metadata.CalculateDeltaNode",
    name: "calculate delta",
    description: "Adds by how much a value has changed since the originator's message before, and after what time.",
    version: 1,
    relations: &["Success", "Failure", "Other"],
    upgrade: |from_version, mut configuration| {
        if from_version == 0
            && let Some(fields) = configuration.as_object_mut()
        {
            fields.entry("excludeZeroDeltas").or_insert(json!(false));
        }
        configuration
    },
    default_configuration: || {
        json!({
            "inputValueKey": "pulseCounter",
            "outputValueKey": "delta",
            "useCache": true,
            "addPeriodBetweenMsgs": false,
            "periodValueKey": "periodInMs",
            "round": null,
            "tellFailureIfDeltaIsNegative": true,
            "excludeZeroDeltas": false,
        })
    },
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ENRICHMENT
}];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(extend("x-editor" = "key"))]
    input_value_key: Option<String>,
    #[schemars(extend("x-editor" = "key"))]
    output_value_key: Option<String>,
    #[serde(default)]
    use_cache: bool,
    #[serde(default)]
    #[schemars(title = "Add the time between messages")]
    add_period_between_msgs: bool,
    #[schemars(extend("x-editor" = "key"))]
    period_value_key: Option<String>,
    #[schemars(title = "Digits behind the point", range(min = -300, max = 300))]
    round: Option<i32>,
    #[serde(default)]
    #[schemars(title = "Fail if the delta is negative")]
    tell_failure_if_delta_is_negative: bool,
    #[serde(default)]
    exclude_zero_deltas: bool,
}

struct CalculateDeltaNode(Arc<DeltaCalculator>);

struct DeltaCalculator {
    input: String,
    output: String,
    /// Name of the time that has passed, where it is wanted.
    period: Option<String>,
    use_cache: bool,
    round: Option<i32>,
    fail_if_negative: bool,
    exclude_zero: bool,
    /// A lock an originator, so that its messages are compared in their order, with time and value of the last one.
    last: Cache<EntityKey, Arc<tokio::sync::Mutex<Option<CounterReading>>>>,
}

/// Time and value of a message.
type CounterReading = (i64, f64);

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let given = |name: Option<String>, field: &str| {
        let name = name.filter(|name| !name.trim().is_empty());
        name.ok_or_else(|| NodeConfigError::new(field, "must be given"))
    };
    let period = match config.add_period_between_msgs {
        true => Some(given(config.period_value_key, "periodValueKey")?),
        false => None,
    };
    if config.round.is_some_and(|places| places.abs() > 300) {
        return Err(NodeConfigError::new("round", "must be from -300 to 300"));
    }
    Ok(Arc::new(CalculateDeltaNode(Arc::new(DeltaCalculator {
        input: given(config.input_value_key, "inputValueKey")?,
        output: given(config.output_value_key, "outputValueKey")?,
        period,
        use_cache: config.use_cache,
        round: config.round,
        fail_if_negative: config.tell_failure_if_delta_is_negative,
        exclude_zero: config.exclude_zero_deltas,
        last: Cache::new(MAX_CACHED_ORIGINATORS),
    }))))
}

impl Node for CalculateDeltaNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        if msg.kind != MsgType::PostTelemetry {
            return NodeResult::Next(msg, ConnectionLabel::OTHER);
        }
        let current = match self.0.current(&mut msg) {
            Ok(Some(current)) => current,
            Ok(None) => return NodeResult::Next(msg, ConnectionLabel::OTHER),
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let subject = msg.subject();
        let fresh = || Ok::<_, NodeError>(Arc::default());
        let last = match self.0.last.get_or_insert_with(&subject, fresh) {
            Ok(last) => last,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let (inner, services) = (Arc::clone(&self.0), Arc::clone(ctx.services));
        NodeResult::wait(async move {
            let mut last = last.lock().await;
            let previous = match *last {
                Some(known) if inner.use_cache => Ok(Some(known)),
                _ => inner.stored(&services, subject).await,
            };
            let previous = match previous {
                Ok(previous) => previous,
                Err(error) => return NodeResult::Fail(msg, error),
            };
            if inner.use_cache {
                *last = Some((msg.values_ts(), current));
            }
            drop(last);
            let done = inner.put(&mut msg, previous, current);
            NodeResult::after(msg, done)
        })
    }
}

impl DeltaCalculator {
    fn current(&self, msg: &mut RuleMessage) -> Result<Option<f64>, NodeError> {
        if !matches!(msg.data, crate::message::MessageBody::Packed(_)) {
            msg.data.to_json()?;
        }
        Ok(msg.data.value(&self.input).map(|value| as_double(&value)))
    }

    async fn stored(
        &self,
        services: &NodeServices,
        subject: EntityKey,
    ) -> Result<Option<CounterReading>, NodeError> {
        let key = [self.input.clone()];
        let Some(latest) = services
            .series
            .latest(subject, Some(&key))
            .await?
            .into_iter()
            .next()
        else {
            return Ok(None);
        };
        let unusable = |what: String| NodeError::new(format!("the latest value of {} {what}", self.input));
        let value = match latest.point.value {
            kv::KvValue::Long(value) => value as f64,
            kv::KvValue::Double(value) => value,
            kv::KvValue::Text(text) => text
                .trim()
                .parse()
                .map_err(|_| unusable(format!("is no number but `{text}`")))?,
            kv::KvValue::Bool(_) => return Err(unusable("is a boolean".to_owned())),
            kv::KvValue::Json(_) => return Err(unusable("is JSON".to_owned())),
        };
        Ok(Some((latest.point.ts, value)))
    }

    fn put(
        &self,
        msg: &mut RuleMessage,
        previous: Option<CounterReading>,
        current: f64,
    ) -> Result<(), NodeError> {
        let mut delta = previous.map_or(0.0, |(_, value)| current - value);
        if self.fail_if_negative && delta < 0.0 {
            return Err(NodeError::new("delta value is negative"));
        }
        if self.exclude_zero && delta == 0.0 {
            return Ok(());
        }
        if let Some(places) = self.round {
            delta = round_half_up(delta, places);
        }
        let number = if delta.fract() != 0.0 {
            Value::from(delta)
        } else if delta.abs() < 9_223_372_036_854_775_808.0 {
            Value::from(delta as i64)
        } else {
            return Err(NodeError::new(format!("delta value {delta} is too large")));
        };
        let period = previous.map_or(0, |(ts, _)| msg.values_ts().saturating_sub(ts));
        let body = msg.data.object_mut()?;
        body.insert(self.output.clone(), number);
        if let Some(name) = &self.period {
            body.insert(name.clone(), period.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::tests::{NOW, World, upgraded};

    const CLASS: &str = "metadata.CalculateDeltaNode";

    async fn body(
        world: &mut World,
        node: &Arc<dyn Node>,
        device: fieldline_model::EntityId,
        value: Value,
    ) -> Value {
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({ "pulseCounter": value }));
        let out = world.one(node, msg).await;
        if out.label == "Success" {
            out.body()["delta"].clone()
        } else {
            json!(out.label)
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_difference_to_the_message_before_is_added() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        let node = world.node(CLASS, json!({}));
        for (value, delta) in [
            (json!(10), json!(0)),
            (json!(12.5), json!(2.5)),
            (json!("15"), json!(2.5)),
            (json!(14), json!("Failure")),
        ] {
            assert_eq!(body(&mut world, &node, device, value).await, delta);
        }
        assert_eq!(
            body(&mut world, &node, device, json!(20)).await,
            json!(6),
            "what has failed counts as well"
        );
        let other = world.msg(MsgType::PostTelemetry, device, &json!({"x": 1}));
        assert_eq!(world.one(&node, other).await.label, "Other");
        let other = world.msg(MsgType::PostAttributes, device, &json!({"pulseCounter": 1}));
        assert_eq!(world.one(&node, other).await.label, "Other");
        let packed = world.packed(device, &json!({"pulseCounter": 21}));
        assert_eq!(
            world.one(&node, packed).await.body(),
            json!({"pulseCounter": 21, "delta": 1})
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_first_message_is_compared_with_the_stored_value() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        world
            .telemetry(device, NOW - 1000, json!({"pulseCounter": 7, "flag": true}))
            .await;
        let patch =
            json!({"useCache": false, "addPeriodBetweenMsgs": true, "tellFailureIfDeltaIsNegative": false});
        let node = world.node(CLASS, patch);
        for value in [5, 6] {
            let msg = world.msg(MsgType::PostTelemetry, device, &json!({ "pulseCounter": value }));
            let expected = json!({"pulseCounter": value, "delta": value - 7, "periodInMs": 1000});
            assert_eq!(world.one(&node, msg).await.body(), expected);
        }
        let node = world.node(CLASS, json!({"inputValueKey": "flag"}));
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({"flag": 1}));
        assert!(world.one(&node, msg).await.error.unwrap().contains("boolean"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn deltas_are_rounded_and_zero_may_be_left_out() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        let node = world.node(CLASS, json!({"round": 1, "excludeZeroDeltas": true}));
        for (value, delta) in [
            (json!(1.0), json!(null)),
            (json!(1.0), json!(null)),
            (json!(1.25), json!(0.3)),
            (json!(2.25), json!(1)),
        ] {
            assert_eq!(body(&mut world, &node, device, value).await, delta);
        }
        assert_eq!(world.wrong(CLASS, json!({"inputValueKey": " "})), "inputValueKey");
        assert_eq!(
            world.wrong(CLASS, json!({"addPeriodBetweenMsgs": true, "periodValueKey": ""})),
            "periodValueKey"
        );
        assert_eq!(
            upgraded(CLASS, 0, json!({"round": 1})),
            json!({"round": 1, "excludeZeroDeltas": false})
        );
    }
}
