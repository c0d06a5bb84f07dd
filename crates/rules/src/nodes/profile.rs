//! The device-profile node: alarm rules inside device profiles.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::StateKey;
use fieldline_model::EntityType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{ChainCommand, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "profile.TbDeviceProfileNode",
    name: "device profile (deprecated)",
    description: "Raises, updates and clears alarms by the alarm rules of the device's profile",
    version: 1,
    relations: &[
        "Alarm Created",
        "Alarm Updated",
        "Alarm Severity Updated",
        "Alarm Cleared",
        "Success",
        "Failure",
    ],
    custom_relations: true,
    default_configuration: || json!({"persistAlarmRulesState": false, "fetchAlarmRulesStateOnStart": false}),
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ACTION
}];

/// What is kept of alarm rules is always durable here, so neither setting changes anything.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Config {
    #[serde(rename = "persistAlarmRulesState")]
    _persist: bool,
    #[serde(rename = "fetchAlarmRulesStateOnStart")]
    _fetch: bool,
}

struct DeviceProfileNode;

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    config.parse::<Config>()?;
    Ok(Arc::new(DeviceProfileNode))
}

impl Node for DeviceProfileNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        if msg.originator.entity_type == EntityType::Device {
            NodeResult::Control(ChainCommand::EvaluateAlarmRules(msg))
        } else {
            NodeResult::success(msg)
        }
    }

    fn handle_due(&self, _: &mut NodeContext<'_>, key: StateKey, value: Bytes) -> NodeResult {
        NodeResult::Control(ChainCommand::FireAlarmRuleTimer(key, value))
    }
}
