//! What alarm rules say is done: alarms are raised, changed and cleared, and messages tell about it.

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::{AlarmDraft, AlarmEndUpdate, AlarmPropagation, AlarmUpdate, StateKey};
use fieldline_entities::services::{ServiceErrorKind, ServiceResult};
use fieldline_model::entity::Alarm;
use fieldline_model::message::{MetadataMap, MsgType};
use fieldline_model::{AlarmId, RuleNodeId};
use tracing::warn;
use uuid::Uuid;

use super::AlarmDestination;
use crate::alarm_rules::{ActiveAlarm, AlarmAction, AlarmActionKind, AlarmRuleSet, AlarmRuleState};
use crate::message::{MessageBody, RuleMessage, derive_id};
use crate::node::{ConnectionLabel, NodeResult};
use crate::worker::RuleWorker;
use crate::worker::walk::{MessageHandle, WalkTask};

/// Alarms whose end has moved and is not stored yet; more are stored at once.
const MAX_PENDING_ALARM_ENDS: usize = 10_000;

/// What an evaluation is about, and because of what.
pub(super) struct AlarmActionContext<'a> {
    pub(super) handle: MessageHandle,
    pub(super) key: &'a StateKey,
    pub(super) rules: &'a AlarmRuleSet,
    pub(super) msg: &'a RuleMessage,
    pub(super) out: &'a AlarmDestination,
}

/// What has become of an alarm, as a message tells it.
pub(super) struct AlarmNotice {
    kind: MsgType,
    label: &'static str,
    alarm: Alarm,
    /// Names in the metadata that are `true`.
    flags: &'static [&'static str],
}

impl RuleWorker {
    /// Does what an action says, the `number`th of its evaluation. Returns what is to be told of it.
    pub(super) async fn act(
        &mut self,
        case: &AlarmActionContext<'_>,
        (number, action): (u64, &AlarmAction),
        state: &mut AlarmRuleState,
        store: &EffectWriter,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        match action.kind {
            AlarmActionKind::Raise => self.raise(case, (number, action), state, store).await,
            AlarmActionKind::Update {
                severity_changed: false,
            } => self.extend_alarm(case, action, store).await,
            AlarmActionKind::Update {
                severity_changed: true,
            } => self.change_severity(case, action, store).await,
            AlarmActionKind::Clear => self.clear(case, action, store).await,
        }
    }

    async fn raise(
        &mut self,
        case: &AlarmActionContext<'_>,
        (number, action): (u64, &AlarmAction),
        state: &mut AlarmRuleState,
        store: &EffectWriter,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        let AlarmActionContext { key, rules, msg, .. } = *case;
        let service = self.shared.services.rules.alarms.clone();
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
        let raised = self
            .with_store(store, move || {
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
        &mut self,
        case: &AlarmActionContext<'_>,
        action: &AlarmAction,
        store: &EffectWriter,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        let (tenant, id) = (case.key.subject.tenant, AlarmId(action.id));
        let touch = AlarmEndUpdate {
            tenant,
            alarm: id,
            end_ts: action.end_ts,
            details: action.details_json(),
        };
        self.alarm_ends.insert(action.id, touch);
        if self.alarm_ends.len() >= MAX_PENDING_ALARM_ENDS {
            self.store_alarm_ends().await;
        }
        if !self.has_notice_receiver(case.key, "Alarm Updated") {
            return Ok(None);
        }
        let alarms = self.shared.services.stores.alarms.clone();
        let found = self
            .with_store(store, move || {
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
        &mut self,
        case: &AlarmActionContext<'_>,
        action: &AlarmAction,
        store: &EffectWriter,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        let service = self.shared.services.rules.alarms.clone();
        let update = AlarmUpdate {
            tenant: case.key.subject.tenant,
            id: AlarmId(action.id),
            severity: action.severity,
            start_ts: action.start_ts,
            end_ts: action.end_ts,
            details: action.details_json(),
            propagation: propagation(case.rules, action),
        };
        let updated = self
            .with_store(store, move || {
                let (service, update) = (service.clone(), update.clone());
                async move { service.update(update, None).await }
            })
            .await?;
        Ok(updated.map(|result| AlarmNotice::severity_changed(result.alarm)))
    }

    async fn clear(
        &mut self,
        case: &AlarmActionContext<'_>,
        action: &AlarmAction,
        store: &EffectWriter,
    ) -> Result<Option<AlarmNotice>, IngestShutdown> {
        self.alarm_ends.remove(&action.id);
        let service = self.shared.services.rules.alarms.clone();
        let (tenant, id, ts) = (case.key.subject.tenant, AlarmId(action.id), action.end_ts);
        let details = action.details_json();
        let cleared = self
            .with_store(store, move || {
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

    /// Calls a service until its store can serve. `None` where it refuses.
    async fn with_store<T: Send + 'static, F>(
        &mut self,
        store: &EffectWriter,
        call: impl Fn() -> F,
    ) -> Result<Option<T>, IngestShutdown>
    where
        F: Future<Output = ServiceResult<Option<T>>> + Send + 'static,
    {
        loop {
            match self.shared.services.runtime.spawn(call()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) if error.kind() != ServiceErrorKind::Unavailable => {
                    warn!(%error, "an alarm rule's alarm was refused");
                    return Ok(None);
                }
                Ok(Err(error)) => warn!(%error, "cannot store an alarm, trying again"),
                Err(error) => {
                    warn!(%error, "storing an alarm has failed");
                    return Ok(None);
                }
            }
            store.pause().await?;
        }
    }

    fn has_notice_receiver(&self, key: &StateKey, label: &'static str) -> bool {
        let Some((_, chains)) = self.tenants.get(&key.subject.tenant) else {
            return true;
        };
        let Some((chain, at)) = chains.node(RuleNodeId(key.owner)) else {
            return true;
        };
        let label = ConnectionLabel::from(label);
        chain
            .nodes
            .get(at)
            .is_some_and(|node| node.targets(&label).next().is_some() || node.debug.is_on())
    }

    /// Sends a message about an alarm where the rules say.
    pub(super) fn send_alarm_message(
        &mut self,
        case: &AlarmActionContext<'_>,
        action: &AlarmAction,
        done: AlarmNotice,
        moves: &mut Vec<WalkTask>,
    ) {
        let Ok(body) = serde_json::to_value(&done.alarm) else {
            return;
        };
        let id = done.alarm.id.0;
        let mut told = case.msg.derive(hash(id, 0, done.kind.name().len() as u64));
        told.data = MessageBody::json(body);
        told.callers.clone_from(&case.msg.callers);
        told.meta
            .make_mut()
            .extend(done.metadata(action).entries().to_vec());
        self.begin(case.handle);
        match case.out {
            AlarmDestination::Node(place) => {
                told.kind = MsgType::Alarm;
                moves.push(WalkTask::Leave(
                    told,
                    place.clone(),
                    ConnectionLabel::from(done.label),
                ));
            }
            AlarmDestination::Chain(_) => {
                told.kind = done.kind;
                let tenant = told.tenant;
                moves.push(WalkTask::Answer(NodeResult::EnterDefault(told), None, tenant));
            }
        }
    }

    /// Stores how far the ends of alarms have moved.
    pub(in crate::worker) async fn store_alarm_ends(&mut self) {
        if self.alarm_ends.is_empty() {
            return;
        }
        let touches: Vec<AlarmEndUpdate> = self.alarm_ends.drain().map(|(_, touch)| touch).collect();
        let alarms = self.shared.services.stores.alarms.clone();
        let stored = self
            .shared
            .services
            .runtime
            .spawn(async move { alarms.extend(&touches).await })
            .await;
        if let Ok(Err(error)) = stored {
            // They move again with the next message.
            warn!(%error, "cannot move the ends of alarms");
        }
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
