//! One message for each element of an array.

use std::sync::Arc;

use serde_json::Value;

use crate::config_schema::{self, NoConfiguration};
use crate::message::{MessageBody, RuleMessage};
use crate::node::{ConnectionLabel, Node, NodeContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::derived::branch;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "transform.TbSplitArrayMsgNode",
    name: "split array msg",
    description: "Makes a message of each element of the array in the body.",
    schema: config_schema::of::<NoConfiguration>,
    make: |_| Ok(Arc::new(SplitArrayMsgNode)),
    ..NodeType::TRANSFORMATION
}];

struct SplitArrayMsgNode;

impl Node for SplitArrayMsgNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let body = match msg.data.to_json() {
            Ok(body) => body,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        match &*body {
            Value::Array(items) => match items.as_slice() {
                [] => NodeResult::Done,
                [only] => {
                    msg.data = MessageBody::json(only.clone());
                    NodeResult::success(msg)
                }
                items => {
                    if let Err(overrun) = msg.budget.branch(items.len()) {
                        return NodeResult::Fail(msg, overrun.into());
                    }
                    let branches = items.iter().enumerate().map(|(at, item)| {
                        let mut next = branch(ctx.node, &msg, at);
                        next.data = MessageBody::json(item.clone());
                        (next, ConnectionLabel::SUCCESS)
                    });
                    NodeResult::Many(branches.collect())
                }
            },
            _ => NodeResult::fail(msg, "the body is no JSON array"),
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;
    use serde_json::json;

    use super::*;
    use crate::nodes::tests::{World, nobody};

    #[tokio::test(flavor = "multi_thread")]
    async fn each_element_becomes_a_message() {
        let mut world = World::new().await;
        let node = world.node("transform.TbSplitArrayMsgNode", json!({}));
        for body in [json!([]), json!([{"a": 1}]), json!([{"a": 1}, 5, "x", null])] {
            let msg = world.msg(MsgType::PostTelemetry, nobody(), &body);
            let outs = world.send(&node, msg).await;
            assert!(
                outs.iter()
                    .all(|out| out.label == "Success" && out.meta("deviceName").is_some())
            );
            let ids: std::collections::HashSet<_> = outs.iter().map(|out| out.msg.id).collect();
            assert_eq!(ids.len(), outs.len());
            assert_eq!(
                Value::Array(outs.iter().map(crate::nodes::tests::Out::body).collect()),
                body
            );
        }
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        assert_eq!(world.one(&node, msg).await.label, "Failure");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_array_becomes_so_many_messages_and_no_more() {
        let mut world = World::new().await;
        let node = world.node("transform.TbSplitArrayMsgNode", json!({}));
        let mut split = async |count: usize| {
            let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!(vec![0; count]));
            world.send(&node, msg).await
        };
        assert_eq!(split(10_000).await.len(), 10_000);
        let refused = split(10_001).await;
        assert_eq!((refused.len(), refused[0].label.as_str()), (1, "Failure"));
        assert_eq!(
            refused[0].error.as_deref(),
            Some("beyond the limit of messages that a node makes of one: 10001, allowed are 10000")
        );
    }
}
