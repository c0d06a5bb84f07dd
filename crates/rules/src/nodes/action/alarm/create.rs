//! "Create alarm".

use std::sync::Arc;

use fieldline_core::ports::{AlarmDraft, AlarmPropagation, AlarmUpdate};
use fieldline_model::entity::{Alarm, AlarmSeverity};
use fieldline_model::{AlarmId, RuleNodeId};
use fieldline_script::Script;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AlarmNodeOutcome, DETAILS_JS, DETAILS_TBEL, notify_alarm, with_details};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::action::derived;
use crate::nodes::script::{self, DetailsScriptConfig};
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

pub(super) const NODE: NodeType = NodeType {
    class: "action.TbCreateAlarmNode",
    name: "create alarm",
    description: "Creates or updates an alarm.",
    relations: &["Created", "Updated", "False", "Failure"],
    default_configuration: || {
        json!({
            "scriptLang": "TBEL", "alarmDetailsBuildJs": DETAILS_JS, "alarmDetailsBuildTbel": DETAILS_TBEL,
            "alarmType": "General Alarm", "severity": "CRITICAL", "propagate": false, "propagateToOwner": false,
            "propagateToTenant": false, "useMessageAlarmData": false, "overwriteAlarmDetails": false,
            "relationTypes": [], "dynamicSeverity": false,
        })
    },
    schema: config_schema::of_both::<DetailsScriptConfig, Config>,
    make,
    ..NodeType::ACTION
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    alarm_type: TextTemplate,
    #[schemars(schema_with = "severity")]
    severity: Option<String>,
    #[schemars(title = "Propagate to related entities")]
    propagate: bool,
    propagate_to_owner: bool,
    propagate_to_tenant: bool,
    #[schemars(title = "Take the alarm of the message")]
    use_message_alarm_data: bool,
    overwrite_alarm_details: bool,
    #[schemars(title = "Severity is a pattern")]
    dynamic_severity: bool,
    #[schemars(extend("x-editor" = "relationType"))]
    relation_types: Option<Vec<String>>,
}

/// A severity, or a pattern of one.
fn severity(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<_> = AlarmSeverity::ALL.iter().map(|known| known.name()).collect();
    json_schema!({ "type": ["string", "null"], "examples": names, "x-editor": "severity" })
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alarm_type: TextTemplate::new(""),
            severity: None,
            propagate: false,
            propagate_to_owner: false,
            propagate_to_tenant: false,
            use_message_alarm_data: false,
            overwrite_alarm_details: true,
            dynamic_severity: false,
            relation_types: None,
        }
    }
}

struct CreateAlarmNode(Arc<CreateAlarmSettings>);

struct CreateAlarmSettings {
    alarm_type: TextTemplate,
    severity: SeveritySource,
    propagation: AlarmPropagation,
    from_message: bool,
    /// Makes the details; without it they are those of the alarm in the message.
    details: Option<Script>,
}

enum SeveritySource {
    Fixed(AlarmSeverity),
    Pattern(TextTemplate),
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let script = script::compile::<DetailsScriptConfig>(config, script::PARAMS)?;
    let config: Config = config.parse()?;
    let severity = config.severity.unwrap_or_default();
    let severity = if config.dynamic_severity {
        SeveritySource::Pattern(TextTemplate::new(&severity))
    } else {
        let known = AlarmSeverity::from_name(&severity);
        let problem =
            || NodeConfigError::new("severity", format!("Incorrect Alarm Severity value: {severity}"));
        SeveritySource::Fixed(known.ok_or_else(problem)?)
    };
    Ok(Arc::new(CreateAlarmNode(Arc::new(CreateAlarmSettings {
        alarm_type: config.alarm_type,
        severity,
        propagation: AlarmPropagation {
            related: config.propagate,
            owner: config.propagate_to_owner,
            tenant: config.propagate_to_tenant,
            relation_types: config.relation_types.unwrap_or_default(),
        },
        from_message: config.use_message_alarm_data,
        details: (!config.use_message_alarm_data || config.overwrite_alarm_details).then_some(script),
    }))))
}

impl Node for CreateAlarmNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let rule = Arc::clone(&self.0);
        let (alarm_type, given) = match rule.subject(&mut msg) {
            Ok(subject) => subject,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let services = Arc::clone(ctx.services);
        NodeResult::wait(async move {
            let active = services
                .stores
                .alarms
                .latest_active(msg.tenant, msg.originator, &alarm_type)
                .await;
            match active {
                Ok(active) => NodeResult::then(move |ctx| rule.raise(ctx, msg, alarm_type, given, active)),
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    }
}

impl CreateAlarmSettings {
    /// The type of the alarm, and the alarm in the message where that counts.
    fn subject(&self, msg: &mut RuleMessage) -> Result<(String, Option<Alarm>), NodeError> {
        if !self.from_message {
            return Ok((self.alarm_type.resolve(msg)?.into_owned(), None));
        }
        let body = msg.data.to_json()?;
        let alarm = Alarm::deserialize(&*body)
            .map_err(|error| NodeError::new(format!("the message body is no alarm: {error}")))?;
        Ok((alarm.alarm_type.clone(), Some(alarm)))
    }

    fn severity(&self, msg: &mut RuleMessage, given: Option<&Alarm>) -> Result<AlarmSeverity, NodeError> {
        if let Some(given) = given {
            return given
                .severity
                .ok_or_else(|| NodeError::new("the alarm in the message body has no severity"));
        }
        match &self.severity {
            SeveritySource::Fixed(severity) => Ok(*severity),
            SeveritySource::Pattern(pattern) => {
                AlarmSeverity::from_name(&pattern.resolve(msg)?).ok_or_else(|| {
                    NodeError::new("Used incorrect pattern or Alarm Severity not included in message")
                })
            }
        }
    }

    fn raise(
        &self,
        ctx: &mut NodeContext<'_>,
        mut msg: RuleMessage,
        alarm_type: String,
        given: Option<Alarm>,
        active: Option<Alarm>,
    ) -> NodeResult {
        let id = AlarmId(derived::id(msg.id, ctx.node, 0));
        let (services, node) = (Arc::clone(ctx.services), ctx.node);
        if let Some(active) = active.as_ref().filter(|active| active.id == id) {
            // This very message has raised it, before a restart.
            let active = active.clone();
            return NodeResult::wait(async move {
                notify_alarm(&services, node, msg, &active, AlarmNodeOutcome::Created).await
            });
        }
        let severity = match self.severity(&mut msg, given.as_ref()) {
            Ok(severity) => severity,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let propagation = match &given {
            Some(given) => AlarmPropagation::of(given),
            None => self.propagation.clone(),
        };
        let now = ctx.now_ms;
        let before = active.as_ref().and_then(|active| active.details.clone());
        let given_details = given.as_ref().and_then(|given| given.details.clone());
        let save = move |msg: RuleMessage, details| {
            let work = match active {
                None => {
                    AlarmWrite::Create(draft(id, &msg, alarm_type, given, severity, details, propagation))
                }
                Some(active) => AlarmWrite::Update(AlarmUpdate {
                    tenant: msg.tenant,
                    id: active.id,
                    severity,
                    start_ts: active.start_ts,
                    end_ts: now.max(active.start_ts),
                    details,
                    propagation,
                }),
            };
            NodeResult::wait(work.execute(services, node, msg))
        };
        match &self.details {
            Some(script) => with_details(ctx, script, msg, before.as_ref(), save),
            None => save(msg, given_details),
        }
    }
}

enum AlarmWrite {
    Create(AlarmDraft),
    Update(AlarmUpdate),
}

impl AlarmWrite {
    async fn execute(self, services: Arc<NodeServices>, node: RuleNodeId, msg: RuleMessage) -> NodeResult {
        let alarms = &services.rules.alarms;
        let done = match self {
            Self::Create(draft) => alarms.create_or_update(draft, None).await.map(Some),
            Self::Update(update) => alarms.update(update, None).await,
        };
        match done {
            Ok(Some(result)) => {
                notify_alarm(&services, node, msg, &result.alarm, AlarmNodeOutcome::of(&result)).await
            }
            Ok(None) => NodeResult::Next(msg, crate::node::ConnectionLabel::FALSE),
            Err(error) => NodeResult::Fail(msg, error.into()),
        }
    }
}

fn draft(
    id: AlarmId,
    msg: &RuleMessage,
    alarm_type: String,
    given: Option<Alarm>,
    severity: AlarmSeverity,
    details: Option<Value>,
    propagation: AlarmPropagation,
) -> AlarmDraft {
    let ts = msg.values_ts();
    let (originator, customer, start_ts, end_ts) = match given {
        Some(given) => (
            given.originator.unwrap_or(msg.originator),
            given.customer_id,
            given.start_ts,
            given.end_ts,
        ),
        None => (msg.originator, None, ts, ts),
    };
    AlarmDraft {
        id: Some(id),
        tenant: msg.tenant,
        customer,
        originator,
        alarm_type,
        severity,
        start_ts,
        end_ts,
        details,
        propagation,
        created_time: 0,
        may_create: true,
    }
}
