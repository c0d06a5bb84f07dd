//! Filters that a person has written a script for.

use std::sync::Arc;

use fieldline_model::RuleNodeId;
use fieldline_script::{Script, ScriptHost};
use serde_json::json;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::derived::branch;
use crate::nodes::script::ScriptConfig;
use crate::nodes::script::{self, PARAMS};

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "filter.TbJsFilterNode",
        name: "script",
        description: "Lets messages through that a script returns true for.",
        default_configuration: || {
            json!({
                "scriptLang": "TBEL",
                "jsScript": "return msg.temperature > 20;",
                "tbelScript": "return msg.temperature > 20;",
            })
        },
        schema: config_schema::of::<ScriptConfig>,
        make: make_filter,
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbJsSwitchNode",
        name: "switch",
        description: "Sends a message through the connections whose names a script returns.",
        relations: &["Failure"],
        custom_relations: true,
        default_configuration: || {
            json!({
                "scriptLang": "TBEL",
                "jsScript": "return msgType === 'POST_TELEMETRY_REQUEST' ? ['telemetry'] : ['other'];",
                "tbelScript": "return msgType == 'POST_TELEMETRY_REQUEST' ? ['telemetry'] : ['other'];",
            })
        },
        schema: config_schema::of::<ScriptConfig>,
        make: make_switch,
        ..NodeType::FILTER
    },
];

fn make_filter(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(JsFilterNode(script::compile::<ScriptConfig>(
        config, PARAMS,
    )?)))
}

fn make_switch(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(JsSwitchNode(script::compile::<ScriptConfig>(
        config, PARAMS,
    )?)))
}

struct JsFilterNode(Script);

impl Node for JsFilterNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        script::run(ctx, &self.0, msg, ScriptHost::filter, |msg, holds| {
            NodeResult::Next(msg, ConnectionLabel::of(holds))
        })
    }
}

struct JsSwitchNode(Script);

impl Node for JsSwitchNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let node = ctx.node;
        script::run(ctx, &self.0, msg, ScriptHost::labels, move |msg, labels| {
            route_labels(node, msg, labels)
        })
    }
}

/// A message on its way through the connections that a script has named.
fn route_labels(node: RuleNodeId, mut msg: RuleMessage, mut labels: Vec<String>) -> NodeResult {
    let mut seen = rustc_hash::FxHashSet::default();
    labels.retain(|label| seen.insert(label.clone()));
    match labels.len() {
        0 => NodeResult::Done,
        1 => NodeResult::Next(msg, labels.swap_remove(0).into()),
        count => {
            if let Err(overrun) = msg.budget.branch(count) {
                return NodeResult::Fail(msg, overrun.into());
            }
            let branches = labels.into_iter().enumerate();
            NodeResult::Many(
                branches
                    .map(|(at, label)| (branch(node, &msg, at), label.into()))
                    .collect(),
            )
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
    async fn a_script_decides_which_way_a_message_goes() {
        let mut world = World::new().await;
        let node = world.node(
            "filter.TbJsFilterNode",
            js("return msg.t > 20 && metadata.deviceName == 'thing';"),
        );
        for (body, label) in [
            (json!({"t": 21}), "True"),
            (json!({"t": 20}), "False"),
            (json!({"t": 20.5}), "True"),
        ] {
            let text = world.msg(MsgType::PostTelemetry, nobody(), &body);
            assert_eq!(world.one(&node, text).await.label, label);
            let packed = world.packed(nobody(), &body);
            assert_eq!(world.one(&node, packed).await.label, label);
        }
        let node = world.node("filter.TbJsFilterNode", json!({}));
        let msg = world.packed(nobody(), &json!({"temperature": 20.5}));
        assert_eq!(world.one(&node, msg).await.label, "True", "the default is TBEL");
        let node = world.node("filter.TbJsFilterNode", js("return 'yes';"));
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        let out = world.one(&node, msg).await;
        assert!(out.error.unwrap().contains("boolean"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_switch_sends_a_message_through_each_name_once() {
        let mut world = World::new().await;
        let node = world.node("filter.TbJsSwitchNode", json!({}));
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        assert_eq!(
            world.one(&node, msg).await.label,
            "telemetry",
            "the default is TBEL"
        );
        let node = world.node("filter.TbJsSwitchNode", js("return msg.to;"));
        let labels =
            |outs: &[crate::nodes::tests::Out]| outs.iter().map(|out| out.label.clone()).collect::<Vec<_>>();
        for (to, expected) in [
            (json!("one"), vec!["one"]),
            (json!(["a", "b", "a"]), vec!["a", "b"]),
            (json!([]), vec![]),
            (json!(7), vec!["Failure"]),
        ] {
            let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({ "to": to }));
            let again = msg.clone();
            let outs = world.send(&node, msg).await;
            assert_eq!(labels(&outs), expected);
            let ids: Vec<_> = outs.iter().map(|out| out.msg.id).collect();
            let outs = world.send(&node, again).await;
            assert_eq!(
                outs.iter().map(|out| out.msg.id).collect::<Vec<_>>(),
                ids,
                "a replay makes the same ids"
            );
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn scripts_that_do_not_compile_are_refused() {
        let world = World::new().await;
        assert_eq!(world.wrong("filter.TbJsFilterNode", js("return (;")), "jsScript");
        assert_eq!(world.wrong("filter.TbJsFilterNode", js(" ")), "jsScript");
        assert_eq!(
            world.wrong("filter.TbJsFilterNode", json!({"tbelScript": ""})),
            "tbelScript"
        );
        assert_eq!(
            world.wrong("filter.TbJsSwitchNode", json!({"scriptLang": "LUA"})),
            "scriptLang"
        );
    }
}
