//! "Clear alarm".

use std::sync::Arc;

use fieldline_model::entity::Alarm;
use fieldline_model::{AlarmId, EntityType};
use fieldline_script::Script;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{AlarmNodeOutcome, DETAILS_JS, DETAILS_TBEL, notify_alarm, with_details};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::script::{self, DetailsScriptConfig};
use crate::nodes::text_template::TextTemplate;

pub(super) const NODE: NodeType = NodeType {
    class: "action.TbClearAlarmNode",
    name: "clear alarm",
    description: "Clears an alarm.",
    relations: &["Cleared", "False", "Failure"],
    default_configuration: || {
        json!({
            "scriptLang": "TBEL", "alarmDetailsBuildJs": DETAILS_JS, "alarmDetailsBuildTbel": DETAILS_TBEL,
            "alarmType": "General Alarm",
        })
    },
    schema: config_schema::of_both::<DetailsScriptConfig, Config>,
    make,
    ..NodeType::ACTION
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default = "any")]
    alarm_type: TextTemplate,
}

fn any() -> TextTemplate {
    TextTemplate::new("")
}

struct ClearAlarmNode {
    alarm_type: TextTemplate,
    details: Script,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let details = script::compile::<DetailsScriptConfig>(config, script::PARAMS)?;
    let Config { alarm_type } = config.parse()?;
    Ok(Arc::new(ClearAlarmNode { alarm_type, details }))
}

impl Node for ClearAlarmNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let alarm_type = match self.alarm_type.resolve(&mut msg) {
            Ok(alarm_type) => alarm_type.into_owned(),
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let (services, script) = (Arc::clone(ctx.services), self.details.clone());
        NodeResult::wait(async move {
            let alarms = &services.stores.alarms;
            let found = if msg.originator.entity_type == EntityType::Alarm {
                alarms.get(msg.tenant, AlarmId(msg.originator.id)).await
            } else {
                alarms
                    .latest_active(msg.tenant, msg.originator, &alarm_type)
                    .await
            };
            match found {
                Ok(Some(alarm)) if !alarm.cleared => {
                    NodeResult::then(move |ctx| clear(ctx, msg, &script, &alarm))
                }
                Ok(_) => NodeResult::Next(msg, ConnectionLabel::FALSE),
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    }
}

fn clear(ctx: &mut NodeContext<'_>, msg: RuleMessage, script: &Script, alarm: &Alarm) -> NodeResult {
    let (services, node, id) = (Arc::clone(ctx.services), ctx.node, alarm.id);
    with_details(ctx, script, msg, alarm.details.as_ref(), move |msg, made| {
        NodeResult::wait(async move {
            let now = services.now_ms();
            match services
                .rules
                .alarms
                .clear(msg.tenant, id, now, made.as_ref())
                .await
            {
                Ok(Some(result)) if result.cleared => {
                    notify_alarm(&services, node, msg, &result.alarm, AlarmNodeOutcome::Cleared).await
                }
                Ok(_) => NodeResult::success(msg),
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    })
}
