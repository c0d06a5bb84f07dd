//! Whatever a script makes of a message.

use std::sync::Arc;

use fieldline_model::RuleNodeId;
use fieldline_script::{Script, ScriptHost, TransformedMessage};
use serde_json::json;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::derived::branch;
use crate::nodes::script::ScriptConfig;
use crate::nodes::script::{self, PARAMS};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "transform.TbTransformMsgNode",
    name: "script",
    description: "Changes body, metadata and type of a message by a script, which may make several messages of it.",
    default_configuration: || {
        json!({
            "scriptLang": "TBEL",
            "jsScript": "return {msg: msg, metadata: metadata, msgType: msgType};",
            "tbelScript": "return {msg: msg, metadata: metadata, msgType: msgType};",
        })
    },
    schema: config_schema::of::<ScriptConfig>,
    make,
    ..NodeType::TRANSFORMATION
}];

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(TransformMsgNode(script::compile::<ScriptConfig>(
        config, PARAMS,
    )?)))
}

struct TransformMsgNode(Script);

impl Node for TransformMsgNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let node = ctx.node;
        script::run(ctx, &self.0, msg, ScriptHost::transform, move |msg, made| {
            replace_message(node, msg, made)
        })
    }
}

/// The messages that a script has made of one.
fn replace_message(node: RuleNodeId, mut msg: RuleMessage, mut made: Vec<TransformedMessage>) -> NodeResult {
    if made.len() > 1 {
        let bytes = made
            .iter()
            .filter_map(|parts| parts.msg.as_ref())
            .map(String::len)
            .sum();
        let counted = msg
            .budget
            .branch(made.len())
            .and_then(|()| msg.budget.make(bytes));
        if let Err(overrun) = counted {
            return NodeResult::Fail(msg, overrun.into());
        }
        let branches = made.into_iter().enumerate().map(|(at, parts)| {
            let mut next = branch(node, &msg, at);
            script::put(parts, &mut next);
            (next, ConnectionLabel::SUCCESS)
        });
        return NodeResult::Many(branches.collect());
    }
    match made.pop() {
        Some(parts) => {
            script::put(parts, &mut msg);
            NodeResult::success(msg)
        }
        None => NodeResult::fail(msg, "the script returned no message"),
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;
    use serde_json::Value;

    use super::*;
    use crate::nodes::tests::{World, nobody};

    fn js(script: &str) -> Value {
        json!({"scriptLang": "JS", "jsScript": script})
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_script_replaces_the_parts_that_it_returns() {
        let mut world = World::new().await;
        let class = "transform.TbTransformMsgNode";
        for (script, body, name, kind) in [
            (
                "return {msg: {t: msg.t * 2}};",
                json!({"t": 4}),
                Some("thing"),
                "POST_TELEMETRY_REQUEST",
            ),
            (
                "metadata.x = 'y'; return {metadata: {deviceName: 'b', n: null}};",
                json!({"t": 2}),
                Some("b"),
                "POST_TELEMETRY_REQUEST",
            ),
            (
                "return {msgType: 'ALARM', metadata: {}};",
                json!({"t": 2}),
                None,
                "ALARM",
            ),
            (
                "return {};",
                json!({"t": 2}),
                Some("thing"),
                "POST_TELEMETRY_REQUEST",
            ),
        ] {
            let node = world.node(class, js(script));
            for msg in [
                world.msg(MsgType::PostTelemetry, nobody(), &json!({"t": 2})),
                world.packed(nobody(), &json!({"t": 2})),
            ] {
                let out = world.one(&node, msg).await;
                assert_eq!(
                    (out.body(), out.meta("deviceName").as_deref(), out.msg.kind.name()),
                    (body.clone(), name, kind)
                );
            }
        }
        let node = world.node(class, json!({}));
        let msg = world.packed(nobody(), &json!({"t": 2}));
        let out = world.one(&node, msg).await;
        assert_eq!(
            (out.label.as_str(), out.body()),
            ("Success", json!({"t": 2})),
            "the default is TBEL"
        );
        for script in ["return 5;", "return [];", "throw 'no';"] {
            let node = world.node(class, js(script));
            let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
            assert_eq!(world.one(&node, msg).await.label, "Failure", "{script}");
        }
        assert_eq!(world.wrong(class, js("return {")), "jsScript");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_script_may_make_several_messages() {
        let mut world = World::new().await;
        let node = world.node(
            "transform.TbTransformMsgNode",
            js("return [{msg: {a: 1}}, {msg: {a: 2}}];"),
        );
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        let outs = world.send(&node, msg.clone()).await;
        assert_eq!(
            outs.iter().map(|out| out.body()["a"].clone()).collect::<Vec<_>>(),
            [json!(1), json!(2)]
        );
        let ids = |outs: &[crate::nodes::tests::Out]| outs.iter().map(|out| out.msg.id).collect::<Vec<_>>();
        let again = world.send(&node, msg.clone()).await;
        assert_eq!(ids(&again), ids(&outs), "a replay makes the same messages");
        assert_ne!(outs[0].msg.id, outs[1].msg.id);
    }
}
