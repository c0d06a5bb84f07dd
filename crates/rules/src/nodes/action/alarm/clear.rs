//! "Clear alarm".

use std::sync::Arc;

use fieldline_model::entity::Alarm;
use fieldline_model::{AlarmId, EntityType};
use fieldline_script::Script;
use serde::Deserialize;
use serde_json::json;

use super::{Change, DETAILS_JS, DETAILS_TBEL, tell, with_details};
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Label, Node, NodeConfig, Step};
use crate::nodes::pattern::Pattern;
use crate::nodes::script;
use crate::registry::{ComponentType, NodeType};

pub(super) const NODE: NodeType = NodeType {
    description: "Clears an alarm.",
    relations: &["Cleared", "False", "Failure"],
    default_configuration: || {
        json!({
            "scriptLang": "TBEL", "alarmDetailsBuildJs": DETAILS_JS, "alarmDetailsBuildTbel": DETAILS_TBEL,
            "alarmType": "General Alarm",
        })
    },
    ..NodeType::new(
        "action.TbClearAlarmNode",
        "clear alarm",
        ComponentType::Action,
        make,
    )
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default = "any")]
    alarm_type: Pattern,
}

fn any() -> Pattern {
    Pattern::new("")
}

struct ClearAlarm {
    alarm_type: Pattern,
    details: Script,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let details = script::compile(
        config,
        "alarmDetailsBuildJs",
        "alarmDetailsBuildTbel",
        script::PARAMS,
    )?;
    let Config { alarm_type } = config.parse()?;
    Ok(Arc::new(ClearAlarm { alarm_type, details }))
}

impl Node for ClearAlarm {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let alarm_type = match self.alarm_type.resolve(&mut msg) {
            Ok(alarm_type) => alarm_type.into_owned(),
            Err(error) => return Step::Fail(msg, error),
        };
        let (services, script) = (Arc::clone(ctx.services), self.details.clone());
        Step::wait(async move {
            let alarms = &services.stores.alarms;
            let found = if msg.originator.entity_type == EntityType::Alarm {
                alarms.get(msg.tenant, AlarmId(msg.originator.id)).await
            } else {
                alarms
                    .latest_active(msg.tenant, msg.originator, &alarm_type)
                    .await
            };
            match found {
                Ok(Some(alarm)) if !alarm.cleared => Step::then(move |ctx| clear(ctx, msg, &script, &alarm)),
                Ok(_) => Step::Next(msg, Label::FALSE),
                Err(error) => Step::Fail(msg, error.into()),
            }
        })
    }
}

fn clear(ctx: &mut Ctx<'_>, msg: Msg, script: &Script, alarm: &Alarm) -> Step {
    let (services, node, id) = (Arc::clone(ctx.services), ctx.node, alarm.id.unwrap_or_default());
    with_details(ctx, script, msg, alarm.details.as_ref(), move |msg, made| {
        Step::wait(async move {
            let now = services.now_ms();
            match services
                .rules
                .alarms
                .clear(msg.tenant, id, now, made.as_ref())
                .await
            {
                Ok(Some(result)) if result.cleared => {
                    tell(&services, node, msg, &result.alarm, Change::Cleared).await
                }
                Ok(_) => Step::success(msg),
                Err(error) => Step::Fail(msg, error.into()),
            }
        })
    })
}
