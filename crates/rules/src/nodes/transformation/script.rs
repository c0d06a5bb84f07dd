//! Whatever a script makes of a message.

use std::sync::Arc;

use fieldline_script::Script;
use serde_json::json;

use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Label, Node, NodeConfig, Step};
use crate::nodes::derived::branch;
use crate::nodes::script::{self, PARAMS};
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Changes body, metadata and type of a message by a script, which may make several messages of it.",
    default_configuration: || {
        json!({
            "scriptLang": "TBEL",
            "jsScript": "return {msg: msg, metadata: metadata, msgType: msgType};",
            "tbelScript": "return {msg: msg, metadata: metadata, msgType: msgType};",
        })
    },
    ..NodeType::new(
        "transform.TbTransformMsgNode",
        "script",
        ComponentType::Transformation,
        make,
    )
}];

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    Ok(Arc::new(Transform(script::compile(
        config,
        "jsScript",
        "tbelScript",
        PARAMS,
    )?)))
}

struct Transform(Script);

impl Node for Transform {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let mut made = match script::transform(ctx, &self.0, &msg) {
            Ok(made) => made,
            Err(error) => return Step::Fail(msg, error),
        };
        if made.len() > 1 {
            let node = ctx.node;
            let branches = made.into_iter().enumerate().map(|(at, parts)| {
                let mut next = branch(node, &msg, at);
                script::put(parts, &mut next);
                (next, Label::SUCCESS)
            });
            return Step::Many(branches.collect());
        }
        match made.pop() {
            Some(parts) => {
                script::put(parts, &mut msg);
                Step::success(msg)
            }
            None => Step::fail(msg, "the script returned no message"),
        }
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
