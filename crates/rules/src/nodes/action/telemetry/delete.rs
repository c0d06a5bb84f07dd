//! "Delete attributes".

use std::sync::Arc;

use fieldline_core::ports::StoreResult;
use fieldline_devices::downlink::AttributeUpdate;
use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::attributes::{configured_scope, push_notification, scope_of};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;
use crate::value_update::{UpdatedValues, ValueUpdate};

pub(super) const NODE: NodeType = NodeType {
    class: "telemetry.TbMsgDeleteAttributesNode",
    name: "delete attributes",
    description: "Deletes attributes of the message originator.",
    default_configuration: || {
        json!({
            "scope": "SERVER_SCOPE", "keys": [], "sendAttributesDeletedNotification": false, "notifyDevice": false,
        })
    },
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ACTION
};

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[schemars(schema_with = "config_schema::attribute_scope")]
    scope: Option<String>,
    #[schemars(extend("x-editor" = "key"))]
    keys: Option<Vec<TextTemplate>>,
    send_attributes_deleted_notification: bool,
    #[schemars(title = "Notify the device")]
    notify_device: bool,
}

struct MsgDeleteAttributesNode {
    scope: AttributeScope,
    keys: Vec<TextTemplate>,
    notifies: bool,
    tells_device: bool,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(MsgDeleteAttributesNode {
        scope: configured_scope(config.scope.as_deref())?,
        keys: config.keys.unwrap_or_default(),
        notifies: config.send_attributes_deleted_notification,
        tells_device: config.notify_device,
    }))
}

impl MsgDeleteAttributesNode {
    fn keys(&self, msg: &mut RuleMessage) -> Result<Vec<String>, NodeError> {
        let mut keys: Vec<String> = Vec::with_capacity(self.keys.len());
        for pattern in &self.keys {
            let key = pattern.resolve(msg)?;
            msg.budget.step(1 + keys.len() / 8)?;
            if !key.trim().is_empty() && !keys.iter().any(|known| *known == key) {
                keys.push(key.into_owned());
            }
        }
        Ok(keys)
    }
}

impl Node for MsgDeleteAttributesNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let keys = match self.keys(&mut msg) {
            Ok(keys) if keys.is_empty() => return NodeResult::success(msg),
            Ok(keys) => keys,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let scope = match scope_of(&msg, self.scope) {
            Ok(scope) => scope,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let (services, notifies) = (Arc::clone(ctx.services), self.notifies);
        let asks_to_tell = msg.meta.get("notifyDevice");
        let asks_to_tell = asks_to_tell.is_some_and(|flag| flag.eq_ignore_ascii_case("true"));
        let tells_device = self.tells_device || asks_to_tell;
        NodeResult::wait(async move {
            let deleted: StoreResult<Vec<String>> =
                services.attributes.delete(msg.subject(), scope, &keys).await;
            match deleted {
                Ok(deleted) => {
                    if tells_device {
                        let update = AttributeUpdate::Deleted(deleted);
                        services.devices.attributes_changed(msg.subject(), scope, update);
                    }
                    NodeResult::then(move |ctx| notify_deletion(ctx, msg, scope, &keys, notifies))
                }
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    }
}

fn notify_deletion(
    ctx: &mut NodeContext<'_>,
    msg: RuleMessage,
    scope: AttributeScope,
    keys: &[String],
    notifies: bool,
) -> NodeResult {
    let what = UpdatedValues::AttributesDeleted { scope, keys };
    ctx.notify_fields(ValueUpdate {
        subject: msg.subject(),
        values: what,
        msg: &msg,
    });
    if !notifies {
        return NodeResult::success(msg);
    }
    let body = json!({ "attributes": keys }).to_string();
    push_notification(ctx, msg, MsgType::AttributesDeleted, scope, body)
}
