//! Copying keys between body and metadata.

use std::sync::Arc;

use fieldline_model::kv::{KvValueRef, pack, unpack};
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::keys::{self, KeyPatterns, KeysConfig};
use crate::config_schema;
use crate::message::{MessageBody, MessageMetadata, RuleMessage};
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::message_part::{MessagePart, required};
use crate::nodes::text::plain;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "transform.TbCopyKeysNode",
    name: "copy key-value pairs",
    description: "Copies values whose keys match regular expressions from the body to the metadata, or the other way.",
    version: 2,
    upgrade: |from_version, configuration| {
        keys::upgrade(from_version, configuration, "fromMetadata", "copyFrom")
    },
    default_configuration: || json!({"copyFrom": "DATA", "keys": []}),
    schema: config_schema::of_both::<CopyConfig, KeysConfig>,
    make,
    ..NodeType::TRANSFORMATION
}];

struct CopyKeysNode {
    from: MessagePart,
    keys: KeyPatterns,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CopyConfig {
    #[serde(default, deserialize_with = "keys::part")]
    copy_from: Option<MessagePart>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let from = required(config.parse::<CopyConfig>()?.copy_from, "copyFrom")?;
    let keys = keys::configured(config)?;
    Ok(Arc::new(CopyKeysNode { from, keys }))
}

impl Node for CopyKeysNode {
    fn handle(&self, _: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let done = match self.from {
            MessagePart::Data => self.to_meta(&mut msg),
            MessagePart::Metadata => self.to_body(&mut msg),
        };
        NodeResult::after(msg, done)
    }
}

impl CopyKeysNode {
    fn to_meta(&self, msg: &mut RuleMessage) -> Result<(), NodeError> {
        let mut copied = Vec::new();
        if let MessageBody::Packed(bytes) = &msg.data {
            for (key, value) in unpack(bytes).filter_map(Result::ok) {
                if self.keys.matches(key, &mut msg.budget)? {
                    copied.push((key.to_owned(), value.to_value().to_text()));
                }
            }
        } else {
            let body = msg.data.to_json()?;
            for (key, value) in body.as_object().into_iter().flatten() {
                if self.keys.matches(key, &mut msg.budget)? {
                    copied.push((key.clone(), plain(value)));
                }
            }
        }
        if !copied.is_empty() {
            msg.meta.make_mut().extend(copied);
        }
        Ok(())
    }

    fn to_body(&self, msg: &mut RuleMessage) -> Result<(), NodeError> {
        let metadata = match &msg.meta {
            MessageMetadata::Own(own) => Arc::clone(own),
            MessageMetadata::Device { .. } => Arc::new(msg.meta.to_metadata()),
        };
        let mut copied = Vec::new();
        for (key, value) in metadata.iter() {
            if self.keys.matches(key, &mut msg.budget)? {
                copied.push((key, value));
            }
        }
        if let MessageBody::Packed(bytes) = &msg.data {
            let names: FxHashSet<&str> = unpack(bytes)
                .filter_map(Result::ok)
                .map(|(name, _)| name)
                .collect();
            if !copied.iter().any(|(key, _)| names.contains(key)) {
                let mut packed = bytes.to_vec();
                for (key, value) in &copied {
                    pack(key, KvValueRef::Text(value), &mut packed);
                }
                msg.data = MessageBody::Packed(packed.into());
                return Ok(());
            }
        } else if copied.is_empty() || !msg.data.to_json()?.is_object() {
            return msg.data.to_json().map(drop);
        }
        let copied = copied.into_iter();
        let body = msg.data.object_mut()?;
        body.extend(copied.map(|(key, value)| (key.to_owned(), Value::from(value))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{World, nobody, upgraded};

    const CLASS: &str = "transform.TbCopyKeysNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn values_are_copied_to_the_other_part() {
        let mut world = World::new().await;
        let body = json!({"a": 1, "ab": "x", "b": {"c": [1]}, "d": 2.0});
        let node = world.node(CLASS, json!({"keys": ["a.*", "b", "d"]}));
        for msg in [
            world.msg(MsgType::PostTelemetry, nobody(), &body),
            world.packed(nobody(), &body),
        ] {
            let out = world.one(&node, msg).await;
            let metadata = ["a", "ab", "b", "d", "deviceName"].map(|key| out.meta(key).unwrap());
            assert_eq!(metadata, ["1", "x", r#"{"c":[1]}"#, "2.0", "thing"]);
            assert_eq!(out.body(), body);
        }
        let node = world.node(CLASS, json!({"copyFrom": "METADATA", "keys": ["device.*"]}));
        for (body, expected) in [
            (json!({"a": 1}), json!({"a": 1, "deviceName": "thing"})),
            (
                json!({"deviceName": 1, "a": 2}),
                json!({"deviceName": "thing", "a": 2}),
            ),
        ] {
            for msg in [
                world.msg(MsgType::PostTelemetry, nobody(), &body),
                world.packed(nobody(), &body),
            ] {
                assert_eq!(world.one(&node, msg).await.body(), expected);
            }
        }
        let array = world.msg(MsgType::PostTelemetry, nobody(), &json!([1]));
        assert_eq!(world.one(&node, array).await.body(), json!([1]));
        let mut text = world.msg(MsgType::PostTelemetry, nobody(), &json!([1]));
        text.data = MessageBody::text("no json");
        assert_eq!(world.one(&node, text).await.label, "Failure");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wrong_and_older_configurations() {
        let world = World::new().await;
        assert_eq!(world.wrong(CLASS, json!({"copyFrom": null})), "copyFrom");
        assert_eq!(world.wrong(CLASS, json!({"keys": ["["]})), "keys");
        for (version, old, new) in [
            (0, json!({"fromMetadata": true}), json!({"copyFrom": "METADATA"})),
            (0, json!({"fromMetadata": "false"}), json!({"copyFrom": "DATA"})),
            (
                1,
                json!({"fromMetadata": "METADATA"}),
                json!({"copyFrom": "METADATA"}),
            ),
            (1, json!({"copyFrom": "DATA"}), json!({"copyFrom": "DATA"})),
        ] {
            assert_eq!(upgraded(CLASS, version, old), new);
        }
    }
}
