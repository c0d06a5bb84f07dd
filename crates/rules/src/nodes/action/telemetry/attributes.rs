//! "Save attributes".

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::AttributeParts;
use fieldline_model::kv::{pack, unpack};
use fieldline_model::message::{Message, Metadata, MsgType};
use fieldline_model::timeseries::{Attribute, AttributeScope};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::processing::{self, ATTRIBUTES, Processing, Settings};
use super::super::{body, derived};
use crate::feed::{Update, What};
use crate::message::{Data, Msg};
use crate::node::{AttributeValues, ConfigError, Ctx, Node, NodeConfig, NodeError, Step};
use crate::registry::{ComponentType, NodeType};

pub(super) const NODE: NodeType = NodeType {
    description: "Saves attribute data with a configurable scope and according to configured processing strategies.",
    version: 3,
    default_configuration: || {
        json!({
            "processingSettings": processing::on_every_message(), "scope": "SERVER_SCOPE", "notifyDevice": false,
            "sendAttributesUpdatedNotification": false, "updateAttributesOnlyOnValueChange": true,
        })
    },
    upgrade,
    ..NodeType::new(
        "telemetry.TbMsgAttributesNode",
        "save attributes",
        ComponentType::Action,
        make,
    )
};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    processing_settings: Option<Settings>,
    scope: Option<String>,
    notify_device: bool,
    send_attributes_updated_notification: bool,
    update_attributes_only_on_value_change: bool,
}

struct SaveAttributes {
    scope: AttributeScope,
    notifies: bool,
    tells_device: bool,
    only_changes: bool,
    processing: Processing<3>,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(SaveAttributes {
        scope: configured_scope(config.scope.as_deref())?,
        notifies: config.send_attributes_updated_notification,
        tells_device: config.notify_device,
        only_changes: config.update_attributes_only_on_value_change,
        processing: Processing::new(config.processing_settings, ATTRIBUTES)?,
    }))
}

/// The scope set on a node: that of the server where there is none.
pub(in crate::nodes::action) fn configured_scope(name: Option<&str>) -> Result<AttributeScope, ConfigError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(AttributeScope::Server);
    };
    AttributeScope::from_name(name)
        .ok_or_else(|| ConfigError::new("scope", format!("there is no attribute scope `{name}`")))
}

/// The scope that a message names, else that of the node.
pub(super) fn scope_of(msg: &Msg, configured: AttributeScope) -> Result<AttributeScope, NodeError> {
    match msg.meta.get("scope") {
        Some(name) if !name.is_empty() => AttributeScope::from_name(&name)
            .ok_or_else(|| NodeError::new(format!("Invalid attribute scope: {name}"))),
        _ => Ok(configured),
    }
}

/// Whether the message leaves it to the node to tell the device, or asks for it; messages of the device itself do not.
fn asks_to_tell(msg: &Msg) -> bool {
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

impl Node for SaveAttributes {
    fn handle(&self, ctx: &mut Ctx<'_>, msg: Msg) -> Step {
        if msg.kind != MsgType::PostAttributes {
            let problem = format!("Unsupported msg type: {}", msg.kind);
            return Step::fail(msg, problem);
        }
        let values = match body::attributes(&msg.data) {
            Ok(values) if values.is_empty() => return Step::success(msg),
            Ok(values) => values,
            Err(error) => return Step::Fail(msg, error),
        };
        let actions = self
            .processing
            .decide(msg.values_ts(), msg.originator.id, ctx.now_ms);
        if actions == [false; 3] {
            return Step::success(msg);
        }
        let scope = match scope_of(&msg, self.scope) {
            Ok(scope) => scope,
            Err(error) => return Step::Fail(msg, error),
        };
        let [stored, shown, fields] = actions;
        let save = Save {
            scope,
            parts: AttributeParts { stored, shown },
            fields,
            notifies: self.notifies && scope != AttributeScope::Client,
            tells_device: self.tells_device || asks_to_tell(&msg),
        };
        if !self.only_changes {
            return save.carry_out(ctx, msg, values);
        }
        let services = Arc::clone(ctx.services);
        // Of two messages the later one has to win.
        Step::in_order(async move {
            let keys: Vec<String> = unpack(&values)
                .filter_map(Result::ok)
                .map(|(key, _)| key.to_owned())
                .collect();
            match services.attributes.get(msg.subject(), scope, Some(&keys)).await {
                Ok(stored) => match changed(&values, &stored) {
                    Some(values) => Step::then(move |ctx| save.carry_out(ctx, msg, values)),
                    None => Step::success(msg),
                },
                Err(error) => Step::Fail(msg, error.into()),
            }
        })
    }
}

/// Those of the values that are not stored yet; `None` where all are.
fn changed(values: &Bytes, stored: &[Attribute]) -> Option<Bytes> {
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
struct Save {
    scope: AttributeScope,
    parts: AttributeParts,
    fields: bool,
    notifies: bool,
    tells_device: bool,
}

impl Save {
    fn carry_out(self, ctx: &mut Ctx<'_>, msg: Msg, values: Bytes) -> Step {
        let (subject, scope) = (msg.subject(), self.scope);
        if self.parts.stored || self.parts.shown {
            let saved = AttributeValues {
                subject,
                scope,
                ts: ctx.now_ms,
                parts: self.parts,
                values: values.clone(),
            };
            ctx.save_attributes(&msg, saved);
        }
        if self.parts.stored && self.tells_device {
            ctx.tell_device(subject, scope, values.clone());
        }
        if self.fields {
            let what = What::Attributes {
                scope,
                values: &values,
            };
            ctx.feed(Update {
                subject,
                what,
                msg: &msg,
            });
        }
        if !self.notifies {
            return Step::success(msg);
        }
        let body = Data::Packed(values).to_text().into_owned();
        announce(ctx, msg, MsgType::AttributesUpdated, scope, body)
    }
}

/// Queues a message that tells about changed attributes, and goes on when it is there.
pub(super) fn announce(ctx: &Ctx<'_>, msg: Msg, kind: MsgType, scope: AttributeScope, body: String) -> Step {
    let metadata = Metadata::from_iter([
        ("ruleNodeId", ctx.node.0.to_string()),
        ("scope", scope.name().to_owned()),
    ]);
    let mut message = Message::new(kind, msg.originator, ctx.now_ms, metadata, body);
    message.id = derived::id(msg.id, ctx.node, 0);
    let (services, tenant) = (Arc::clone(ctx.services), ctx.tenant);
    Step::wait(async move {
        match services.engine.push(tenant, message).await {
            Ok(()) => Step::success(msg),
            Err(error) => Step::Fail(msg, error.into()),
        }
    })
}
