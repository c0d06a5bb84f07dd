//! "Delete attributes".

use std::sync::Arc;

use fieldline_core::downlink::AttributeUpdate;
use fieldline_core::ports::StoreResult;
use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;
use serde::Deserialize;
use serde_json::json;

use super::attributes::{announce, configured_scope, scope_of};
use crate::feed::{Update, What};
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};

pub(super) const NODE: NodeType = NodeType {
    description: "Deletes attributes of the message originator.",
    default_configuration: || {
        json!({
            "scope": "SERVER_SCOPE", "keys": [], "sendAttributesDeletedNotification": false, "notifyDevice": false,
        })
    },
    ..NodeType::new(
        "telemetry.TbMsgDeleteAttributesNode",
        "delete attributes",
        ComponentType::Action,
        make,
    )
};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    scope: Option<String>,
    keys: Option<Vec<Pattern>>,
    send_attributes_deleted_notification: bool,
    notify_device: bool,
}

struct DeleteAttributes {
    scope: AttributeScope,
    keys: Vec<Pattern>,
    notifies: bool,
    tells_device: bool,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(DeleteAttributes {
        scope: configured_scope(config.scope.as_deref())?,
        keys: config.keys.unwrap_or_default(),
        notifies: config.send_attributes_deleted_notification,
        tells_device: config.notify_device,
    }))
}

impl DeleteAttributes {
    fn keys(&self, msg: &mut Msg) -> Result<Vec<String>, NodeError> {
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

impl Node for DeleteAttributes {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let keys = match self.keys(&mut msg) {
            Ok(keys) if keys.is_empty() => return Step::success(msg),
            Ok(keys) => keys,
            Err(error) => return Step::Fail(msg, error),
        };
        let scope = match scope_of(&msg, self.scope) {
            Ok(scope) => scope,
            Err(error) => return Step::Fail(msg, error),
        };
        let (services, notifies) = (Arc::clone(ctx.services), self.notifies);
        let asks_to_tell = msg.meta.get("notifyDevice");
        let asks_to_tell = asks_to_tell.is_some_and(|flag| flag.eq_ignore_ascii_case("true"));
        let tells_device = self.tells_device || asks_to_tell;
        Step::wait(async move {
            let deleted: StoreResult<Vec<String>> =
                services.attributes.delete(msg.subject(), scope, &keys).await;
            match deleted {
                Ok(deleted) => {
                    if tells_device {
                        let update = AttributeUpdate::Deleted(deleted);
                        services.devices.attributes_changed(msg.subject(), scope, update);
                    }
                    Step::then(move |ctx| tell(ctx, msg, scope, &keys, notifies))
                }
                Err(error) => Step::Fail(msg, error.into()),
            }
        })
    }
}

fn tell(ctx: &mut Ctx<'_>, msg: Msg, scope: AttributeScope, keys: &[String], notifies: bool) -> Step {
    let what = What::AttributesDeleted { scope, keys };
    ctx.feed(Update {
        subject: msg.subject(),
        what,
        msg: &msg,
    });
    if !notifies {
        return Step::success(msg);
    }
    let body = json!({ "attributes": keys }).to_string();
    announce(ctx, msg, MsgType::AttributesDeleted, scope, body)
}
