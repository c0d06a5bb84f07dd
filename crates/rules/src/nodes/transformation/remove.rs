//! Deleting keys.

use std::sync::Arc;

use fieldline_model::budget::{BudgetOverrun, EvaluationBudget};
use fieldline_model::kv::{pack, unpack};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::keys::{self, KeyPatterns, KeysConfig};
use crate::config_schema;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::message_part::{MessagePart, required};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "transform.TbDeleteKeysNode",
    name: "delete key-value pairs",
    description: "Deletes values whose keys match regular expressions from the body or the metadata.",
    version: 2,
    upgrade: |from_version, configuration| {
        keys::upgrade(from_version, configuration, "dataToFetch", "deleteFrom")
    },
    default_configuration: || json!({"deleteFrom": "DATA", "keys": []}),
    schema: config_schema::of_both::<DeleteConfig, KeysConfig>,
    make,
    ..NodeType::TRANSFORMATION
}];

struct DeleteKeysNode {
    from: MessagePart,
    keys: KeyPatterns,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeleteConfig {
    #[serde(default, deserialize_with = "keys::part")]
    delete_from: Option<MessagePart>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let from = required(config.parse::<DeleteConfig>()?.delete_from, "deleteFrom")?;
    let keys = keys::configured(config)?;
    Ok(Arc::new(DeleteKeysNode { from, keys }))
}

impl Node for DeleteKeysNode {
    fn handle(&self, _: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let done = match self.from {
            MessagePart::Data => self.strip_body(&mut msg),
            MessagePart::Metadata => self.strip_metadata(&mut msg),
        };
        NodeResult::after(msg, done)
    }
}

impl DeleteKeysNode {
    fn strip_metadata(&self, msg: &mut RuleMessage) -> Result<(), NodeError> {
        let mut overrun = None;
        let budget = &mut msg.budget;
        msg.meta
            .make_mut()
            .retain(|key| !matches_so_far(&self.keys, key, budget, &mut overrun));
        overrun.map_or(Ok(()), |overrun| Err(overrun.into()))
    }

    fn strip_body(&self, msg: &mut RuleMessage) -> Result<(), NodeError> {
        if let MessageBody::Packed(bytes) = &msg.data {
            let mut left = Vec::with_capacity(bytes.len());
            for (key, value) in unpack(bytes).filter_map(Result::ok) {
                if !self.keys.matches(key, &mut msg.budget)? {
                    pack(key, value, &mut left);
                }
            }
            if left.len() < bytes.len() {
                msg.data = MessageBody::Packed(left.into());
            }
            return Ok(());
        }
        if msg.data.to_json()?.is_object() {
            let mut overrun = None;
            let budget = &mut msg.budget;
            msg.data
                .object_mut()?
                .retain(|key, _| !matches_so_far(&self.keys, key, budget, &mut overrun));
            return overrun.map_or(Ok(()), |overrun| Err(overrun.into()));
        }
        Ok(())
    }
}

/// Whether a key matches; once the evaluation has taken too much, nothing does.
fn matches_so_far(
    keys: &KeyPatterns,
    key: &str,
    budget: &mut EvaluationBudget,
    overrun: &mut Option<BudgetOverrun>,
) -> bool {
    if overrun.is_some() {
        return false;
    }
    keys.matches(key, budget).unwrap_or_else(|error| {
        *overrun = Some(error);
        false
    })
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{World, nobody, upgraded};

    const CLASS: &str = "transform.TbDeleteKeysNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn matching_keys_are_deleted() {
        let mut world = World::new().await;
        let body = json!({"a": 1, "ab": "x", "b": {"a": [1]}});
        let node = world.node(CLASS, json!({"keys": ["a.*", "deviceName"]}));
        for msg in [
            world.msg(MsgType::PostTelemetry, nobody(), &body),
            world.packed(nobody(), &body),
        ] {
            let out = world.one(&node, msg).await;
            assert_eq!(
                (out.body(), out.meta("deviceName").is_some()),
                (json!({"b": {"a": [1]}}), true)
            );
        }
        let node = world.node(
            CLASS,
            json!({"deleteFrom": "METADATA", "keys": ["a.*", "deviceName"]}),
        );
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &body);
        let out = world.one(&node, msg).await;
        assert_eq!((out.body(), out.meta("deviceName")), (body, None));
        assert_eq!(world.wrong(CLASS, json!({"deleteFrom": "ALL"})), "deleteFrom");
        assert_eq!(
            upgraded(CLASS, 0, json!({"fromMetadata": false})),
            json!({"deleteFrom": "DATA"})
        );
        assert_eq!(
            upgraded(CLASS, 1, json!({"dataToFetch": "METADATA"})),
            json!({"deleteFrom": "METADATA"})
        );
    }
}
