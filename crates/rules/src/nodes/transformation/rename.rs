//! Renaming keys.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::keys;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::message_part::{MessagePart, required};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "transform.TbRenameKeysNode",
    name: "rename keys",
    description: "Renames keys of the body or the metadata.",
    version: 2,
    upgrade: |from_version, configuration| {
        keys::upgrade(from_version, configuration, "fromMetadata", "renameIn")
    },
    default_configuration: || json!({"renameIn": "DATA", "renameKeysMapping": {"temperatureCelsius": "temperature"}}),
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::TRANSFORMATION
}];

struct RenameKeysNode {
    part: MessagePart,
    names: Vec<(String, String)>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    rename_in: Option<MessagePart>,
    #[schemars(title = "Old and new keys", schema_with = "config_schema::text_pairs")]
    rename_keys_mapping: Option<Map<String, Value>>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let mapping = config.rename_keys_mapping.unwrap_or_default();
    if mapping.is_empty() {
        return Err(NodeConfigError::new(
            "renameKeysMapping",
            "at least one entry is needed",
        ));
    }
    let names = mapping.into_iter().map(|(from, to)| match to {
        Value::String(to) => Ok((from, to)),
        _ => Err(NodeConfigError::new(
            format!("renameKeysMapping.{from}"),
            "must be a text",
        )),
    });
    Ok(Arc::new(RenameKeysNode {
        part: required(config.rename_in, "renameIn")?,
        names: names.collect::<Result<_, _>>()?,
    }))
}

impl Node for RenameKeysNode {
    fn handle(&self, _: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let done = self.rename(&mut msg);
        NodeResult::after(msg, done)
    }
}

impl RenameKeysNode {
    fn rename(&self, msg: &mut RuleMessage) -> Result<(), NodeError> {
        match self.part {
            MessagePart::Metadata => {
                for (from, to) in &self.names {
                    // Looking for a name goes through all of them, as putting one at its end does.
                    msg.budget.step(1 + msg.meta.len() / 8)?;
                    if msg.meta.get(from).is_none() {
                        continue;
                    }
                    let metadata = msg.meta.make_mut();
                    if let Some(value) = metadata.remove(from) {
                        metadata.set(to.as_str(), value);
                    }
                }
            }
            MessagePart::Data => {
                if !msg.data.to_json()?.is_object() {
                    return Ok(());
                }
                let budget = &mut msg.budget;
                let body = msg.data.object_mut()?;
                for (from, to) in &self.names {
                    budget.step(1 + body.len() / 8)?;
                    if let Some(value) = body.shift_remove(from) {
                        body.insert(to.clone(), value);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{World, nobody, upgraded};

    const CLASS: &str = "transform.TbRenameKeysNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn keys_get_other_names_one_after_another() {
        let mut world = World::new().await;
        let mapping = json!({"a": "b", "none": "x", "c": "d", "deviceName": "name"});
        let node = world.node(CLASS, json!({ "renameKeysMapping": mapping }));
        let body = json!({"a": 1, "b": 2, "c": {}});
        for msg in [
            world.msg(MsgType::PostTelemetry, nobody(), &body),
            world.packed(nobody(), &body),
        ] {
            let out = world.one(&node, msg).await;
            assert_eq!((out.body(), out.meta("name")), (json!({"b": 1, "d": {}}), None));
        }
        let node = world.node(
            CLASS,
            json!({"renameKeysMapping": mapping, "renameIn": "METADATA"}),
        );
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &body);
        let out = world.one(&node, msg).await;
        assert_eq!(
            (out.body(), out.meta("name").as_deref(), out.meta("deviceName")),
            (body, Some("thing"), None)
        );
        assert_eq!(
            world.wrong(CLASS, json!({"renameKeysMapping": {}})),
            "renameKeysMapping"
        );
        assert_eq!(
            world.wrong(CLASS, json!({"renameKeysMapping": {"a": 1}})),
            "renameKeysMapping.a"
        );
        assert_eq!(
            upgraded(CLASS, 0, json!({"fromMetadata": true})),
            json!({"renameIn": "METADATA"})
        );
        assert_eq!(
            upgraded(CLASS, 1, json!({"fromMetadata": "DATA"})),
            json!({"renameIn": "DATA"})
        );
    }
}
