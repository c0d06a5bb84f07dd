//! "Save attributes".

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::AttributeSaveStrategy;
use fieldline_model::kv::{pack, unpack};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::timeseries::{Attribute, AttributeScope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::processing::{self, ActionSelector, AttributeStrategies, ProcessingSettings};
use super::super::{body, derived};
use crate::config_schema;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{
    AttributeValues, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult,
};
use crate::node_types::NodeType;
use crate::value_update::{UpdatedValues, ValueUpdate};

pub(super) const NODE: NodeType = NodeType {
    class: "telemetry.TbMsgAttributesNode",
    name: "save attributes",
    description: "Saves attribute data with a configurable scope and according to configured processing strategies.",
    version: 3,
    default_configuration: || {
        json!({
            "processingSettings": processing::on_every_message(), "scope": "SERVER_SCOPE", "notifyDevice": false,
            "sendAttributesUpdatedNotification": false, "updateAttributesOnlyOnValueChange": true,
        })
    },
    schema: config_schema::of::<Config>,
    upgrade,
    make,
    ..NodeType::ACTION
};

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    processing_settings: Option<ProcessingSettings<AttributeStrategies>>,
    #[schemars(schema_with = "config_schema::attribute_scope")]
    scope: Option<String>,
    #[schemars(title = "Notify the device")]
    notify_device: bool,
    send_attributes_updated_notification: bool,
    #[schemars(title = "Save changed values only")]
    update_attributes_only_on_value_change: bool,
}

struct MsgAttributesNode {
    scope: AttributeScope,
    notifies: bool,
    tells_device: bool,
    only_changes: bool,
    processing: ActionSelector<3>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(MsgAttributesNode {
        scope: configured_scope(config.scope.as_deref())?,
        notifies: config.send_attributes_updated_notification,
        tells_device: config.notify_device,
        only_changes: config.update_attributes_only_on_value_change,
        processing: ActionSelector::new(config.processing_settings)?,
    }))
}

/// The scope set on a node: that of the server where there is none.
pub(in crate::nodes::action) fn configured_scope(
    name: Option<&str>,
) -> Result<AttributeScope, NodeConfigError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(AttributeScope::Server);
    };
    AttributeScope::from_name(name)
        .ok_or_else(|| NodeConfigError::new("scope", format!("there is no attribute scope `{name}`")))
}

/// The scope that a message names, else that of the node.
pub(super) fn scope_of(msg: &RuleMessage, configured: AttributeScope) -> Result<AttributeScope, NodeError> {
    match msg.meta.get("scope") {
        Some(name) if !name.is_empty() => AttributeScope::from_name(&name)
            .ok_or_else(|| NodeError::new(format!("Invalid attribute scope: {name}"))),
        _ => Ok(configured),
    }
}

/// Whether the message leaves it to the node to tell the device, or asks for it; messages of the device itself do not.
fn requests_notification(msg: &RuleMessage) -> bool {
    let flag = msg.meta.get("notifyDevice");
    flag.is_none_or(|flag| flag.is_empty() || flag.eq_ignore_ascii_case("true"))
}

fn upgrade(from: i32, mut configuration: Value) -> Value {
    const ONLY_CHANGES: &str = "updateAttributesOnlyOnValueChange";
    let Some(fields) = configuration.as_object_mut() else {
        return configuration;
    };
    if from < 1 && !fields.contains_key(ONLY_CHANGES) {
        fields.insert(ONLY_CHANGES.to_owned(), false.into());
    }
    if from < 2 {
        fix_flag(fields, "notifyDevice", true);
        fix_flag(fields, "sendAttributesUpdatedNotification", false);
        fix_flag(fields, ONLY_CHANGES, true);
    }
    if from < 3 {
        fields.insert("processingSettings".to_owned(), processing::on_every_message());
    }
    configuration
}

/// Flags were once stored as texts, or not at all.
fn fix_flag(fields: &mut Map<String, Value>, name: &str, otherwise: bool) {
    let flag = match fields.get(name) {
        None | Some(Value::Null) => otherwise,
        Some(Value::String(text)) => match text.trim() {
            "true" => true,
            "false" => false,
            _ => otherwise,
        },
        Some(_) => return,
    };
    fields.insert(name.to_owned(), flag.into());
}

impl Node for MsgAttributesNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        if msg.kind != MsgType::PostAttributes {
            let problem = format!("Unsupported msg type: {}", msg.kind);
            return NodeResult::fail(msg, problem);
        }
        let values = match body::attributes(&msg.data) {
            Ok(values) if values.is_empty() => return NodeResult::success(msg),
            Ok(values) => values,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let actions = self
            .processing
            .decide(msg.values_ts(), msg.originator.id, ctx.now_ms);
        if actions == [false; 3] {
            return NodeResult::success(msg);
        }
        let scope = match scope_of(&msg, self.scope) {
            Ok(scope) => scope,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let [stored, shown, fields] = actions;
        let save = AttributeSave {
            scope,
            strategy: AttributeSaveStrategy {
                stored,
                published: shown,
            },
            fields,
            notifies: self.notifies && scope != AttributeScope::Client,
            tells_device: self.tells_device || requests_notification(&msg),
        };
        if !self.only_changes {
            return save.carry_out(ctx, msg, values);
        }
        let services = Arc::clone(ctx.services);
        // Of two messages the later one has to win.
        NodeResult::in_order(async move {
            let keys: Vec<String> = unpack(&values)
                .filter_map(Result::ok)
                .map(|(key, _)| key.to_owned())
                .collect();
            match services.attributes.get(msg.subject(), scope, Some(&keys)).await {
                Ok(stored) => match changed_values(&values, &stored) {
                    Some(values) => NodeResult::then(move |ctx| save.carry_out(ctx, msg, values)),
                    None => NodeResult::success(msg),
                },
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    }
}

/// Those of the values that are not stored yet; `None` where all are.
fn changed_values(values: &Bytes, stored: &[Attribute]) -> Option<Bytes> {
    let is_new = |key: &str, value| {
        let old = stored.iter().find(|old| old.key == key);
        old.is_none_or(|old| old.value.as_ref() != value)
    };
    let (mut new, mut known) = (Vec::new(), false);
    for (key, value) in unpack(values).filter_map(Result::ok) {
        if is_new(key, value) {
            pack(key, value, &mut new);
        } else {
            known = true;
        }
    }
    match (new.is_empty(), known) {
        (true, _) => None,
        // The bytes as they came are shared with whatever else holds them.
        (false, false) => Some(values.clone()),
        (false, true) => Some(new.into()),
    }
}

/// What is to be done with attributes.
#[derive(Clone, Copy)]
struct AttributeSave {
    scope: AttributeScope,
    strategy: AttributeSaveStrategy,
    fields: bool,
    notifies: bool,
    tells_device: bool,
}

impl AttributeSave {
    fn carry_out(self, ctx: &mut NodeContext<'_>, msg: RuleMessage, values: Bytes) -> NodeResult {
        let (subject, scope) = (msg.subject(), self.scope);
        if self.strategy.stored || self.strategy.published {
            let saved = AttributeValues {
                subject,
                scope,
                ts: ctx.now_ms,
                strategy: self.strategy,
                values: values.clone(),
            };
            ctx.save_attributes(&msg, saved);
        }
        if self.strategy.stored && self.tells_device {
            ctx.notify_device(subject, scope, values.clone());
        }
        if self.fields {
            let what = UpdatedValues::Attributes {
                scope,
                values: &values,
            };
            ctx.notify_fields(ValueUpdate {
                subject,
                values: what,
                msg: &msg,
            });
        }
        if !self.notifies {
            return NodeResult::success(msg);
        }
        let body = MessageBody::Packed(values).to_text().into_owned();
        push_notification(ctx, msg, MsgType::AttributesUpdated, scope, body)
    }
}

/// Queues a message that tells about changed attributes, and goes on when it is there.
pub(super) fn push_notification(
    ctx: &NodeContext<'_>,
    msg: RuleMessage,
    kind: MsgType,
    scope: AttributeScope,
    body: String,
) -> NodeResult {
    let metadata = MetadataMap::from_iter([
        ("ruleNodeId", ctx.node.0.to_string()),
        ("scope", scope.name().to_owned()),
    ]);
    let mut message = QueueMessage::new(kind, msg.originator, ctx.now_ms, metadata, body);
    message.id = derived::id(msg.id, ctx.node, 0);
    let (services, tenant) = (Arc::clone(ctx.services), ctx.tenant);
    NodeResult::wait(async move {
        let done = services.engine.push(tenant, message).await;
        NodeResult::after(msg, done)
    })
}
