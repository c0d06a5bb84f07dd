//! Into another chain, and back.

use std::sync::Arc;

use fieldline_model::{EntityType, RuleChainId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema::{self, NoConfiguration};
use crate::message::RuleMessage;
use crate::node::{ChainCommand, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::originators::Originator;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "flow.TbRuleChainInputNode",
        name: "rule chain",
        description: "Sends a message into another chain; it comes back through the connections that chain's outputs name.",
        relations: &["Failure"],
        custom_relations: true,
        enters_chain: true,
        version: 1,
        upgrade: upgrade_input,
        default_configuration: || json!({"ruleChainId": null, "forwardMsgToDefaultRuleChain": false}),
        schema: config_schema::of::<Config>,
        make: make_input,
        ..NodeType::FLOW
    },
    NodeType {
        class: "flow.TbRuleChainOutputNode",
        name: "output",
        description: "Sends a message back to the chain that it came from, through the connection of this node's name.",
        has_output: false,
        schema: config_schema::of::<NoConfiguration>,
        make: |config| Ok(Arc::new(RuleChainOutputNode(config.name.to_owned()))),
        ..NodeType::FLOW
    },
];

fn upgrade_input(from_version: i32, mut configuration: Value) -> Value {
    if from_version == 0
        && let Some(fields) = configuration.as_object_mut()
    {
        fields
            .entry("forwardMsgToDefaultRuleChain")
            .or_insert(json!(false));
    }
    configuration
}

struct RuleChainInputNode {
    chain: RuleChainId,
    by_originator: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(title = "Rule chain", extend("x-editor" = "ruleChainId"))]
    rule_chain_id: Option<String>,
    #[serde(default)]
    #[schemars(title = "To the chain of the originator")]
    forward_msg_to_default_rule_chain: bool,
}

fn make_input(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let id = config
        .rule_chain_id
        .ok_or_else(|| NodeConfigError::new("ruleChainId", "a rule chain must be set"))?;
    Ok(Arc::new(RuleChainInputNode {
        chain: id
            .parse()
            .map_err(|_| NodeConfigError::new("ruleChainId", "is no UUID"))?,
        by_originator: config.forward_msg_to_default_rule_chain,
    }))
}

impl Node for RuleChainInputNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let (own, node, fallback) = (ctx.chain, ctx.node, self.chain);
        if has_caller(&msg, own, node) {
            return NodeResult::fail(
                msg,
                "the message has come to this node from this node: the chains lead in a circle",
            );
        }
        let has_profile = matches!(msg.originator.entity_type, EntityType::Device | EntityType::Asset);
        if !self.by_originator || !has_profile {
            return enter(msg, own, fallback);
        }
        let subject = msg.subject();
        if let Some(known) = ctx.services.originators.peek(subject) {
            return enter(msg, own, chain_of(&known).unwrap_or(fallback));
        }
        let services = Arc::clone(ctx.services);
        NodeResult::wait(async move {
            match services.originators.get(subject).await {
                Ok(known) => enter(
                    msg,
                    own,
                    known.and_then(|known| chain_of(&known)).unwrap_or(fallback),
                ),
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    }
}

fn chain_of(originator: &Originator) -> Option<RuleChainId> {
    originator.profile.as_ref()?.rule_chain
}

/// Whether the message was sent into other chains by this node, and has not come back.
fn has_caller(msg: &RuleMessage, chain: RuleChainId, node: fieldline_model::RuleNodeId) -> bool {
    let mut caller = msg.callers.as_deref();
    while let Some(at) = caller {
        if at.chain == chain && at.node == node {
            return true;
        }
        caller = at.callers.as_deref();
    }
    false
}

fn enter(msg: RuleMessage, own: RuleChainId, target: RuleChainId) -> NodeResult {
    if own == target {
        let text =
            format!("the node would send the message to the start of its own chain {own}, in a circle");
        return NodeResult::fail(msg, text);
    }
    NodeResult::enter_chain(msg, target)
}

struct RuleChainOutputNode(String);

impl Node for RuleChainOutputNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        NodeResult::Control(ChainCommand::Return(msg, self.0.clone().into()))
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;
    use fieldline_model::{CustomerId, RuleNodeId};

    use super::*;
    use crate::message::ChainCaller;
    use crate::nodes::tests::{World, upgraded};

    const CLASS: &str = "flow.TbRuleChainInputNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn messages_enter_the_configured_chain_or_that_of_the_profile() {
        let mut world = World::new().await;
        let (fixed, of_profile) = (RuleChainId::new(), RuleChainId::new());
        let chain = fieldline_model::entity::RuleChain {
            id: of_profile,
            tenant_id: world.tenant,
            name: "of the profile".to_owned(),
            ..Default::default()
        };
        world.services.stores.rule_chains.insert(chain).await.unwrap();
        let with_chain = world
            .device_profile("chained", json!({ "defaultRuleChainId": of_profile }))
            .await;
        let chained = world
            .device("c", json!({"deviceProfileId": with_chain, "type": "chained"}))
            .await;
        let plain = world.device("p", json!(null)).await;
        for (forward, originator, expected) in [
            (false, chained, fixed),
            (true, chained, of_profile),
            (true, plain, fixed),
            (true, CustomerId::new().into(), fixed),
        ] {
            let configuration = json!({"ruleChainId": fixed.0, "forwardMsgToDefaultRuleChain": forward});
            let node = world.node(CLASS, configuration);
            let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
            match world.step(&node, msg).await {
                NodeResult::Control(ChainCommand::EnterChain(_, chain)) => assert_eq!(chain, expected),
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn circles_fail() {
        let mut world = World::new().await;
        let originator = world.device("d", json!(null)).await;
        let node = world.node(CLASS, json!({"ruleChainId": world.chain.0}));
        let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
        assert!(world.one(&node, msg).await.error.unwrap().contains("own chain"));
        let node = world.node(CLASS, json!({"ruleChainId": RuleChainId::new().0}));
        let mut msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
        let first = ChainCaller {
            chain: world.chain,
            node: world.node,
            callers: None,
        };
        let second = ChainCaller {
            chain: world.chain,
            node: RuleNodeId::new(),
            callers: Some(Arc::new(first)),
        };
        msg.callers = Some(Arc::new(second));
        assert!(world.one(&node, msg).await.error.unwrap().contains("circle"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn outputs_return_by_their_name() {
        let mut world = World::new().await;
        let node = world
            .make_named("flow.TbRuleChainOutputNode", "Too hot", None, &json!({}))
            .unwrap();
        let originator = world.device("d", json!(null)).await;
        let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
        match world.step(&node, msg).await {
            NodeResult::Control(ChainCommand::Return(_, label)) => assert_eq!(label.0, "Too hot"),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_chain_must_be_given() {
        let world = World::new().await;
        assert_eq!(world.wrong(CLASS, json!({})), "ruleChainId");
        assert_eq!(world.wrong(CLASS, json!({"ruleChainId": "x"})), "ruleChainId");
        let new = json!({"ruleChainId": "x", "forwardMsgToDefaultRuleChain": false});
        assert_eq!(upgraded(CLASS, 0, json!({"ruleChainId": "x"})), new);
    }
}
