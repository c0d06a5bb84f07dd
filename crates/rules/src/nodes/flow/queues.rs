//! Acknowledging early, and moving to another queue.

use std::sync::Arc;

use serde_json::Value;

use crate::config_schema::{self, NoConfiguration};
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::derived::{push, salt};

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "flow.TbAckNode",
        name: "acknowledge",
        description: "Acknowledges a message, which goes on: what becomes of it no longer matters to its queue.",
        schema: config_schema::of::<NoConfiguration>,
        make: |_| Ok(Arc::new(AckNode)),
        ..NodeType::FLOW
    },
    NodeType {
        class: "flow.TbCheckpointNode",
        name: "checkpoint",
        description: "Puts a message into another queue, from which it goes on.",
        version: 1,
        has_queue: true,
        upgrade: drop_queue_name,
        schema: config_schema::of::<NoConfiguration>,
        make: |config| Ok(Arc::new(CheckpointNode(config.queue.map(str::to_owned)))),
        ..NodeType::FLOW
    },
    NodeType {
        class: "transaction.TbSynchronizationBeginNode",
        name: "synchronization start",
        description: "Does nothing any more: use a checkpoint with a queue that is sequential by originator.",
        schema: config_schema::of::<NoConfiguration>,
        make: |_| Ok(Arc::new(SynchronizationNode)),
        ..NodeType::ACTION
    },
    NodeType {
        class: "transaction.TbSynchronizationEndNode",
        name: "synchronization end",
        description: "Does nothing any more: use a checkpoint with a queue that is sequential by originator.",
        schema: config_schema::of::<NoConfiguration>,
        make: |_| Ok(Arc::new(SynchronizationNode)),
        ..NodeType::ACTION
    },
];

/// The queue of version 0 stood in the configuration; now it is a field of the node.
pub(crate) fn drop_queue_name(from_version: i32, mut configuration: Value) -> Value {
    if from_version == 0
        && let Some(fields) = configuration.as_object_mut()
    {
        fields.remove("queueName");
    }
    configuration
}

struct AckNode;

impl Node for AckNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        NodeResult::Acknowledge(msg)
    }
}

struct CheckpointNode(Option<String>);

impl Node for CheckpointNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let next = msg.derive(salt(ctx.node, 0));
        let pushed = push(ctx, &next, self.0.as_deref(), &ConnectionLabel::SUCCESS);
        NodeResult::wait(async move {
            match pushed.await {
                Ok(()) => NodeResult::Done,
                Err(error) => NodeResult::Fail(msg, error),
            }
        })
    }
}

struct SynchronizationNode;

impl Node for SynchronizationNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        NodeResult::success(msg)
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;
    use serde_json::json;

    use crate::nodes::tests::{World, nobody, upgraded};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_checkpoint_moves_a_message_to_its_queue() {
        let mut world = World::new().await;
        let class = "flow.TbCheckpointNode";
        let node = world
            .make_named(class, "c", Some("HighPriority"), &json!({}))
            .unwrap();
        let originator = nobody();
        let msg = world.msg(MsgType::PostTelemetry, originator, &json!({"a": 1}));
        let again = msg.clone();
        assert!(world.send(&node, msg).await.is_empty());
        let pushed = world.queue.take();
        assert_eq!(pushed.len(), 1);
        assert_eq!(pushed[0].queue.as_deref(), Some("HighPriority"));
        assert_eq!(pushed[0].rule_chain, Some(world.chain));
        assert_eq!(pushed[0].from, Some((world.node, "Success".to_owned())));
        assert_eq!(
            (pushed[0].originator, pushed[0].data.as_str()),
            (originator, r#"{"a":1}"#)
        );
        world.send(&node, again.clone()).await;
        assert_eq!(world.queue.take(), pushed, "a replay makes the same message");
        world.queue.set_full(true);
        assert_eq!(world.one(&node, again).await.label, "Failure");
        assert_eq!(upgraded(class, 0, json!({"queueName": "Main"})), json!({}));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn others_pass_messages_on() {
        let mut world = World::new().await;
        for class in [
            "transaction.TbSynchronizationBeginNode",
            "transaction.TbSynchronizationEndNode",
        ] {
            let node = world.node(class, json!({}));
            let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
            assert_eq!(world.one(&node, msg).await.label, "Success");
        }
    }
}
