//! "Create alarm" and "clear alarm".

mod clear;
mod create;

use std::sync::Arc;

use fieldline_core::ports::AlarmApiResult;
use fieldline_model::RuleNodeId;
use fieldline_model::entity::Alarm;
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_script::{Script, ScriptHost, ScriptOutput};
use serde_json::Value;

use super::derived;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{ConnectionLabel, NodeContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::script;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[create::NODE, clear::NODE];

const DETAILS_JS: &str = "var details = {};\n\
    if (metadata.prevAlarmDetails) {\n    \
        details = JSON.parse(metadata.prevAlarmDetails);\n    \
        //remove prevAlarmDetails from metadata\n    \
        delete metadata.prevAlarmDetails;\n    \
        //now metadata is the same as it comes IN this rule node\n\
    }\n\n\nreturn details;";

const DETAILS_TBEL: &str = "var details = {};\n\
    if (metadata.prevAlarmDetails != null) {\n    \
        details = JSON.parse(metadata.prevAlarmDetails);\n    \
        //remove prevAlarmDetails from metadata\n    \
        metadata.remove('prevAlarmDetails');\n    \
        //now metadata is the same as it comes IN this rule node\n\
    }\n\n\nreturn details;";

/// Has the script called that makes the details of an alarm; `then` goes on with them. It finds those that the alarm has so
/// far in the metadata.
fn with_details(
    ctx: &mut NodeContext<'_>,
    details: &Script,
    msg: RuleMessage,
    before: Option<&Value>,
    then: impl FnOnce(RuleMessage, Option<Value>) -> NodeResult + Send + 'static,
) -> NodeResult {
    let before = before.map(|before| ("prevAlarmDetails", before.to_string()));
    script::run_with(ctx, details, msg, before, ScriptHost::call, |msg, made| {
        then(msg, (made != ScriptOutput::Null).then(|| made.to_value()))
    })
}

/// What became of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlarmNodeOutcome {
    Created,
    Updated,
    Cleared,
    None,
}

impl AlarmNodeOutcome {
    fn of(result: &AlarmApiResult) -> Self {
        if result.created || result.replayed {
            Self::Created
        } else if result.modified && !result.cleared {
            Self::Updated
        } else if result.cleared {
            Self::Cleared
        } else {
            Self::None
        }
    }
}

/// Tells the rule engine what became of an alarm, and sends the alarm on.
async fn notify_alarm(
    services: &Arc<NodeServices>,
    node: RuleNodeId,
    mut msg: RuleMessage,
    alarm: &Alarm,
    change: AlarmNodeOutcome,
) -> NodeResult {
    let (label, kind, flag) = match change {
        AlarmNodeOutcome::Created => ("Created", MsgType::EntityCreated, "isNewAlarm"),
        AlarmNodeOutcome::Updated => ("Updated", MsgType::EntityUpdated, "isExistingAlarm"),
        AlarmNodeOutcome::Cleared => ("Cleared", MsgType::AlarmClear, "isClearedAlarm"),
        AlarmNodeOutcome::None => return NodeResult::success(msg),
    };
    let body = match serde_json::to_value(alarm) {
        Ok(body) => body,
        Err(error) => return NodeResult::fail(msg, error.to_string()),
    };
    let metadata = MetadataMap::from_iter([("ruleNodeId", node.0.to_string())]);
    let originator = alarm.originator.unwrap_or(msg.originator);
    let mut told = QueueMessage::new(kind, originator, services.now_ms(), metadata, body.to_string());
    told.id = derived::id(msg.id, node, 1);
    let pushed = services.engine.push(msg.tenant, told).await;
    msg.kind = MsgType::Alarm;
    msg.data = MessageBody::json(body);
    msg.meta.set(flag, "true");
    match pushed {
        Ok(()) => NodeResult::Next(msg, ConnectionLabel::from(label)),
        Err(error) => NodeResult::Fail(msg, error.into()),
    }
}
