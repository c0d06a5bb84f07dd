//! What alarm rules say is done: alarms are raised, changed and cleared, and messages tell about it.

use fieldline_alarm_rules::{ActiveAlarm, AlarmAction, AlarmActionKind, AlarmRuleSet, AlarmRuleState};
use fieldline_core::ingest::IngestShutdown;
use fieldline_core::ports::{AlarmDraft, AlarmEndUpdate, AlarmPropagation, AlarmUpdate};
use fieldline_entities::services::ServiceResult;
use fieldline_model::AlarmId;
use fieldline_model::entity::Alarm;
use fieldline_model::message::{MetadataMap, MsgType};
use uuid::Uuid;

use super::{AlarmDestination, ApplyAlarmOutcome};
use crate::message::{MessageBody, derive_id};
use crate::node::{ConnectionLabel, NodeResult};
use crate::worker::retry::{AttemptTexts, spawn_attempt, with_retry};
use crate::worker::walk::{WalkContext, WalkTask};

/// What has become of an alarm, as a message tells it.
pub(super) struct AlarmNotice {
    kind: MsgType,
    label: &'static str,
    alarm: Alarm,
    /// Names in the metadata that are `true`.
    flags: &'static [&'static str],
}

impl ApplyAlarmOutcome<'_> {
    /// Does what an action says, the `number`th of its evaluation. Returns what is to be told of it.
    pub(super) async fn act(
        &self,
        number: u64,
        action: &AlarmAction,
        state: &mut AlarmRuleState,
        cx: &mut WalkContext<'_>,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        match action.kind {
            AlarmActionKind::Raise => self.raise(number, action, state, cx).await,
            AlarmActionKind::Update {
                severity_changed: false,
            } => self.extend_alarm(action, cx).await,
            AlarmActionKind::Update {
                severity_changed: true,
            } => self.change_severity(action, cx).await,
            AlarmActionKind::Clear => self.clear(action, cx).await,
        }
    }

    async fn raise(
        &self,
        number: u64,
        action: &AlarmAction,
        state: &mut AlarmRuleState,
        cx: &mut WalkContext<'_>,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        let Self { key, rules, msg, .. } = *self;
        let service = cx.worker.shared.services.rules.alarms.clone();
        let draft = AlarmDraft {
            id: Some(AlarmId(derive_id(msg.id, hash(key.owner, action.alarm, number)))),
            tenant: key.subject.tenant,
            customer: None,
            originator: key.subject.entity,
            alarm_type: rules.alarm_type(action.alarm).unwrap_or_default().to_owned(),
            severity: action.severity,
            start_ts: action.start_ts,
            end_ts: action.end_ts,
            details: action.details_json(),
            propagation: propagation(rules, action),
            created_time: 0,
            may_create: true,
        };
        let raised = cx
            .change_alarm(move || {
                let (service, draft) = (service.clone(), draft.clone());
                async move { service.create_or_update(draft, None).await.map(Some) }
            })
            .await?;
        let Some(result) = raised else {
            state.set_alarm(rules, action.alarm, None);
            return Ok(None);
        };
        let (created, severity_changed) = (result.created || result.replayed, result.severity_changed());
        let alarm = result.alarm;
        if let Some(severity) = alarm.severity {
            let active = ActiveAlarm {
                id: alarm.id.0,
                severity,
                start_ts: alarm.start_ts,
            };
            state.set_alarm(rules, action.alarm, Some(active));
        }
        Ok(Some(match (created, severity_changed) {
            (true, _) => AlarmNotice {
                kind: MsgType::AlarmCreated,
                label: "Alarm Created",
                alarm,
                flags: &["isNewAlarm"],
            },
            (false, true) => AlarmNotice::severity_changed(alarm),
            (false, false) => AlarmNotice::updated(alarm),
        }))
    }

    /// The alarm goes on: that is stored from time to time only.
    async fn extend_alarm(
        &self,
        action: &AlarmAction,
        cx: &mut WalkContext<'_>,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        let (tenant, id) = (self.key.subject.tenant, AlarmId(action.id));
        let touch = AlarmEndUpdate {
            tenant,
            alarm: id,
            end_ts: action.end_ts,
            details: action.details_json(),
        };
        let worker = &mut *cx.worker;
        worker.alarm_ends.move_end(touch, &worker.shared.services).await;
        if !cx.worker.chains.has_receiver(self.key, "Alarm Updated") {
            return Ok(None);
        }
        let alarms = cx.worker.shared.services.stores.alarms.clone();
        let found = cx
            .change_alarm(move || {
                let alarms = alarms.clone();
                async move { Ok(alarms.get(tenant, id).await?) }
            })
            .await?;
        Ok(found.map(|mut alarm: Alarm| {
            alarm.end_ts = alarm.end_ts.max(action.end_ts);
            AlarmNotice::updated(alarm)
        }))
    }

    async fn change_severity(
        &self,
        action: &AlarmAction,
        cx: &mut WalkContext<'_>,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        let service = cx.worker.shared.services.rules.alarms.clone();
        let update = AlarmUpdate {
            tenant: self.key.subject.tenant,
            id: AlarmId(action.id),
            severity: action.severity,
            start_ts: action.start_ts,
            end_ts: action.end_ts,
            details: action.details_json(),
            propagation: propagation(self.rules, action),
        };
        let updated = cx
            .change_alarm(move || {
                let (service, update) = (service.clone(), update.clone());
                async move { service.update(update, None).await }
            })
            .await?;
        Ok(updated.map(|result| AlarmNotice::severity_changed(result.alarm)))
    }

    async fn clear(
        &self,
        action: &AlarmAction,
        cx: &mut WalkContext<'_>,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        cx.worker.alarm_ends.forget(action.id);
        let service = cx.worker.shared.services.rules.alarms.clone();
        let (tenant, id, ts) = (self.key.subject.tenant, AlarmId(action.id), action.end_ts);
        let details = action.details_json();
        let cleared = cx
            .change_alarm(move || {
                let (service, details) = (service.clone(), details.clone());
                async move { service.clear(tenant, id, ts, details.as_ref()).await }
            })
            .await?;
        Ok(cleared.map(|result| AlarmNotice {
            kind: MsgType::AlarmClear,
            label: "Alarm Cleared",
            alarm: result.alarm,
            flags: &["isClearedAlarm"],
        }))
    }

    /// Sends a message about an alarm where the rules say.
    pub(super) fn send_notice(&self, action: &AlarmAction, notice: AlarmNotice, cx: &mut WalkContext<'_>) {
        let Ok(body) = serde_json::to_value(&notice.alarm) else {
            return;
        };
        let id = notice.alarm.id.0;
        let mut msg = self.msg.derive(hash(id, 0, notice.kind.name().len() as u64));
        msg.data = MessageBody::json(body);
        msg.callers.clone_from(&self.msg.callers);
        msg.meta
            .make_mut()
            .extend(notice.metadata(action).entries().to_vec());
        cx.begin();
        match self.destination {
            AlarmDestination::Node(place) => {
                msg.kind = MsgType::Alarm;
                cx.push(WalkTask::Leave(
                    msg,
                    place.clone(),
                    ConnectionLabel::from(notice.label),
                ));
            }
            AlarmDestination::Chain(_) => {
                msg.kind = notice.kind;
                let tenant = msg.tenant;
                cx.push(WalkTask::Result(
                    NodeResult::enter_default_chain(msg),
                    None,
                    tenant,
                ));
            }
        }
    }
}

impl WalkContext<'_> {
    /// Changes an alarm as soon as the store can serve. `None` where the service refuses.
    async fn change_alarm<T: Send + 'static, F>(
        &mut self,
        call: impl Fn() -> F,
    ) -> Result<Option<T>, IngestShutdown>
    where
        F: Future<Output = ServiceResult<Option<T>>> + Send + 'static,
    {
        const TEXTS: AttemptTexts = AttemptTexts {
            unavailable: "cannot store an alarm, trying again",
            refused: "an alarm rule's alarm was refused",
            panicked: "storing an alarm has failed",
        };
        let worker = &*self.worker;
        let changed = with_retry(
            self.writer,
            async || spawn_attempt(&worker.shared.services, call()).await,
            |error| TEXTS.log(error),
        );
        Ok(Box::pin(changed).await?.flatten())
    }
}

impl AlarmNotice {
    fn updated(alarm: Alarm) -> Self {
        Self {
            kind: MsgType::AlarmUpdated,
            label: "Alarm Updated",
            alarm,
            flags: &["isExistingAlarm"],
        }
    }

    fn severity_changed(alarm: Alarm) -> Self {
        Self {
            kind: MsgType::AlarmSeverityUpdated,
            label: "Alarm Severity Updated",
            alarm,
            flags: &["isExistingAlarm", "isSeverityUpdated"],
        }
    }

    fn metadata(&self, action: &AlarmAction) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        if let Some(repeats) = action.condition_repeats {
            metadata.set("alarmConditionRepeats", repeats.to_string());
        }
        if let Some(duration) = action.condition_duration {
            metadata.set("alarmConditionDuration", duration.to_string());
        }
        for flag in self.flags {
            metadata.set(*flag, "true");
        }
        metadata
    }
}

fn propagation(rules: &AlarmRuleSet, action: &AlarmAction) -> AlarmPropagation {
    let (related, owner, tenant) = rules.propagation(action.alarm);
    let relation_types = rules.propagation_relation_types(action.alarm);
    AlarmPropagation {
        related,
        owner,
        tenant,
        relation_types: relation_types.map(str::to_owned).collect(),
    }
}

/// Tells apart what follows from the same message.
fn hash(id: Uuid, alarm: usize, number: u64) -> u64 {
    let (high, low) = id.as_u64_pair();
    (high ^ low.rotate_left(17))
        .wrapping_add((alarm as u64) << 32)
        .wrapping_add(number)
}
