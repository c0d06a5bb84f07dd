//! Filters that look at the type of a message, of its originator, or at its originator's profile.

use std::borrow::Cow;
use std::sync::Arc;

use fieldline_model::EntityType;
use fieldline_model::message::MsgType;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use crate::config_schema::{self, NoConfiguration};
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::entities::{is_type, type_names};

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "filter.TbMsgTypeFilterNode",
        name: "message type filter",
        description: "Lets messages of some types through.",
        default_configuration: || json!({"messageTypes": ["POST_ATTRIBUTES_REQUEST", "POST_TELEMETRY_REQUEST", "TO_SERVER_RPC_REQUEST"]}),
        schema: config_schema::of::<TypeFilterConfig>,
        make: make_type_filter,
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbMsgTypeSwitchNode",
        name: "message type switch",
        description: "Sends a message through the connection of its type.",
        relations: MSG_LABELS,
        schema: config_schema::of::<NoConfiguration>,
        make: |_| Ok(Arc::new(MsgTypeSwitchNode)),
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbOriginatorTypeFilterNode",
        name: "entity type filter",
        description: "Lets messages of originators of some types through.",
        default_configuration: || json!({"originatorTypes": ["DEVICE"]}),
        schema: config_schema::of::<OriginatorFilterConfig>,
        make: make_originator_filter,
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbOriginatorTypeSwitchNode",
        name: "entity type switch",
        description: "Sends a message through the connection of its originator's type.",
        relations: ENTITY_LABELS,
        schema: config_schema::of::<NoConfiguration>,
        make: |_| Ok(Arc::new(OriginatorTypeSwitchNode)),
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbDeviceTypeSwitchNode",
        name: "device profile switch",
        description: "Sends a message of a device through the connection that has the name of its profile.",
        relations: &["default", "Failure"],
        custom_relations: true,
        schema: config_schema::of::<NoConfiguration>,
        make: |_| Ok(Arc::new(ProfileSwitchNode(EntityType::Device))),
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbAssetTypeSwitchNode",
        name: "asset profile switch",
        description: "Sends a message of an asset through the connection that has the name of its profile.",
        relations: &["default", "Failure"],
        custom_relations: true,
        schema: config_schema::of::<NoConfiguration>,
        make: |_| Ok(Arc::new(ProfileSwitchNode(EntityType::Asset))),
        ..NodeType::FILTER
    },
];

/// Connections of the switch by types of messages.
pub(crate) const MSG_LABELS: &[&str] = &[
    "Post attributes",
    "Post telemetry",
    "RPC Request from Device",
    "Activity Event",
    "Inactivity Event",
    "Connect Event",
    "Disconnect Event",
    "Entity Created",
    "Entity Updated",
    "Entity Deleted",
    "Entity Assigned",
    "Entity Unassigned",
    "Attributes Updated",
    "Attributes Deleted",
    "Alarm",
    "Alarm Created",
    "Alarm Updated",
    "Alarm Severity Updated",
    "Alarm Acknowledged",
    "Alarm Cleared",
    "Alarm Assigned",
    "Alarm Unassigned",
    "Comment Created",
    "Comment Updated",
    "Entity Assigned From Tenant",
    "Entity Assigned To Tenant",
    "RPC Request to Device",
    "RPC Queued",
    "RPC Sent",
    "RPC Delivered",
    "RPC Successful",
    "RPC Timeout",
    "RPC Expired",
    "RPC Failed",
    "RPC Deleted",
    "Timeseries Updated",
    "Timeseries Deleted",
    "Relation Added or Updated",
    "Relation Deleted",
    "All Relations Deleted",
    "REST API request",
    "Other",
    "Failure",
];

/// Connections of the switch by types of originators. Those of types that exist elsewhere only are there for imported
/// chains.
pub(crate) const ENTITY_LABELS: &[&str] = &[
    "Tenant",
    "Customer",
    "User",
    "Dashboard",
    "Asset",
    "Device",
    "Alarm",
    "Rule chain",
    "Rule node",
    "Entity View",
    "Widgets bundle",
    "Widget type",
    "Tenant profile",
    "Device profile",
    "Asset profile",
    "Api usage state",
    "Resource",
    "Ota package",
    "Edge",
    "Rpc",
    "Queue",
    "Notification target",
    "Notification template",
    "Notification request",
    "Notification",
    "Notification rule",
    "Queue stats",
    "Oauth2 client",
    "Domain",
    "Mobile app",
    "Mobile app bundle",
    "Calculated field",
    "Job",
    "Admin settings",
    "AI model",
    "Api key",
    "Failure",
];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TypeFilterConfig {
    #[schemars(extend("x-editor" = "messageType"))]
    message_types: Vec<String>,
}

fn make_type_filter(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: TypeFilterConfig = config.parse()?;
    let types = config
        .message_types
        .iter()
        .map(|name| MsgType::from(name.as_str()));
    Ok(Arc::new(MsgTypeFilterNode(types.collect())))
}

struct MsgTypeFilterNode(Vec<MsgType>);

impl Node for MsgTypeFilterNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let holds = self.0.contains(&msg.kind);
        NodeResult::Next(msg, ConnectionLabel::of(holds))
    }
}

struct MsgTypeSwitchNode;

impl Node for MsgTypeSwitchNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let label = msg.kind.label();
        NodeResult::Next(msg, label.into())
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OriginatorFilterConfig {
    #[schemars(schema_with = "originator_types")]
    originator_types: Vec<String>,
}

fn originator_types(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = type_names().collect();
    json_schema!({ "type": "array", "items": { "type": "string", "enum": names }, "x-editor": "entityType" })
}

fn make_originator_filter(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: OriginatorFilterConfig = config.parse()?;
    if let Some(name) = config.originator_types.iter().find(|name| !is_type(name)) {
        return Err(NodeConfigError::new(
            "originatorTypes",
            format!("unknown entity type `{name}`"),
        ));
    }
    // A type that exists elsewhere only is no type of an originator here.
    let types = config
        .originator_types
        .iter()
        .filter_map(|name| name.parse().ok());
    Ok(Arc::new(OriginatorTypeFilterNode(types.collect())))
}

struct OriginatorTypeFilterNode(Vec<EntityType>);

impl Node for OriginatorTypeFilterNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let holds = self.0.contains(&msg.originator.entity_type);
        NodeResult::Next(msg, ConnectionLabel::of(holds))
    }
}

struct OriginatorTypeSwitchNode;

impl Node for OriginatorTypeSwitchNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let label = msg.originator.entity_type.label();
        NodeResult::Next(msg, label.into())
    }
}

/// For originators of one type that have profiles.
struct ProfileSwitchNode(EntityType);

impl Node for ProfileSwitchNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let subject = msg.subject();
        if subject.entity.entity_type != self.0 {
            let text = format!(
                "unsupported originator type: {}; only {} is allowed",
                subject.entity.entity_type.label(),
                self.0.label()
            );
            return NodeResult::fail(msg, text);
        }
        if let Some(known) = ctx.services.originators.peek(subject) {
            return switch(msg, &known.profile_name);
        }
        let services = Arc::clone(ctx.services);
        NodeResult::wait(async move {
            match services.originators.get(subject).await {
                Ok(Some(known)) => switch(msg, &known.profile_name),
                Ok(None) => switch(msg, ""),
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    }
}

fn switch(msg: RuleMessage, profile: &str) -> NodeResult {
    if profile.is_empty() {
        let text = format!("the profile of {} was not found", msg.originator);
        return NodeResult::fail(msg, text);
    }
    let label = if profile == "default" {
        Cow::Borrowed("default")
    } else {
        Cow::Owned(profile.to_owned())
    };
    NodeResult::Next(msg, ConnectionLabel(label))
}

#[cfg(test)]
mod tests {
    use fieldline_model::{AlarmId, CustomerId, EntityViewId, RuleChainId, TenantId};

    use super::*;
    use crate::nodes::tests::{World, nobody};

    #[tokio::test(flavor = "multi_thread")]
    async fn message_types_decide() {
        let mut world = World::new().await;
        let filter = world.node(
            "filter.TbMsgTypeFilterNode",
            json!({"messageTypes": ["ALARM", "my type"]}),
        );
        let switch = world.node("filter.TbMsgTypeSwitchNode", json!({}));
        for (kind, passes, label) in [
            (MsgType::Alarm, "True", "Alarm"),
            (MsgType::from("my type"), "True", "Other"),
            (MsgType::PostTelemetry, "False", "Post telemetry"),
            (MsgType::AlarmDelete, "False", "Other"),
        ] {
            let msg = world.msg(kind, nobody(), &json!({}));
            assert_eq!(world.one(&filter, msg.clone()).await.label, passes);
            assert_eq!(world.one(&switch, msg).await.label, label);
        }
        assert_eq!(
            world.wrong("filter.TbMsgTypeFilterNode", json!({"messageTypes": 1})),
            "messageTypes"
        );
        for kind in MsgType::ALL {
            assert!(MSG_LABELS.contains(&kind.label()), "{kind}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn originator_types_decide() {
        let mut world = World::new().await;
        let types = json!({"originatorTypes": ["DEVICE", "ENTITY_VIEW", "AI_MODEL"]});
        let filter = world.node("filter.TbOriginatorTypeFilterNode", types);
        let switch = world.node("filter.TbOriginatorTypeSwitchNode", json!({}));
        for (originator, passes, label) in [
            (nobody(), "True", "Device"),
            (EntityViewId::new().into(), "True", "Entity View"),
            (AlarmId::new().into(), "False", "Alarm"),
            (RuleChainId::new().into(), "False", "Rule chain"),
            (TenantId::new().into(), "False", "Tenant"),
            (CustomerId::new().into(), "False", "Customer"),
        ] {
            let msg = world.msg(MsgType::EntityUpdated, originator, &json!({}));
            assert_eq!(world.one(&filter, msg.clone()).await.label, passes);
            assert_eq!(world.one(&switch, msg).await.label, label);
        }
        let wrong = json!({"originatorTypes": ["DEVISE"]});
        assert_eq!(
            world.wrong("filter.TbOriginatorTypeFilterNode", wrong),
            "originatorTypes"
        );
        for entity_type in EntityType::ALL {
            assert!(ENTITY_LABELS.contains(&entity_type.label()), "{entity_type}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn profiles_decide() {
        let mut world = World::new().await;
        let profile = world.device_profile("Pump", json!(null)).await;
        let pump = world
            .device("p", json!({"deviceProfileId": profile, "type": "Pump"}))
            .await;
        let plain = world.device("d", json!(null)).await;
        let asset = world.asset("a", "Building", json!(null)).await;
        let devices = world.node("filter.TbDeviceTypeSwitchNode", json!({}));
        let assets = world.node("filter.TbAssetTypeSwitchNode", json!({}));
        for (node, originator, label) in [
            (&devices, pump, "Pump"),
            (&devices, pump, "Pump"),
            (&devices, plain, "default"),
            (&devices, nobody(), "Failure"),
            (&devices, asset, "Failure"),
            (&assets, asset, "Building"),
            (&assets, plain, "Failure"),
        ] {
            let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
            assert_eq!(world.one(node, msg).await.label, label);
        }
    }
}
