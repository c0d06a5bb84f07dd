//! What a field does in the partition of its entity: messages bring it events, and what it keeps comes due.

use std::sync::Arc;

use fieldline_alarm_rules::AlarmRuleSet;
use fieldline_calculated_fields::CompiledField;
use fieldline_core::ingest::IngestShutdown;
use fieldline_core::ports::StateKey;
use fieldline_model::entity::{CalculatedFieldDebug, EventBody};
use fieldline_model::kv::KvValue;
use fieldline_model::message::{MsgType, QueueMessage};
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, TenantId};
use tracing::warn;
use uuid::Uuid;

use super::{DeliverFieldEvents, fan_out};
use crate::events::cut;
use crate::fields::{
    self, DependencySource, FieldEvent, FieldEventKind, FieldLogic, FieldTask, RegisteredField,
};
use crate::message::{RuleMessage, derive_id};
use crate::originators::Originator;
use crate::worker::alarms::{AlarmDestination, AlarmTrigger, EvaluateAlarmRules};
use crate::worker::batch::DueTimer;
use crate::worker::field_values::EvaluateValueField;
use crate::worker::walk::WalkContext;

/// A message brings to fields in this partition what it says.
pub(in crate::worker) struct DeliverFieldMessage(pub(in crate::worker) RuleMessage);

impl DeliverFieldMessage {
    pub(in crate::worker) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let msg = self.0;
        let Some(task) = FieldTask::of_message(msg.tenant, &msg.data) else {
            warn!(tenant = %msg.tenant, "skipped news for calculated fields that cannot be read");
            return Ok(());
        };
        if cx.worker.local.field_events.of(msg.tenant).is_none() {
            return Ok(());
        }
        if let Some(page) = task.page {
            let (services, now) = (cx.worker.shared.services.clone(), cx.worker.now_ms());
            let work = fan_out::notify_page(services, task, page, msg.originator, now);
            cx.run_beside(msg.tenant, work);
            return Ok(());
        }
        let command = DeliverFieldTask {
            subject: msg.subject(),
            task: &task,
        };
        command.run(cx).await
    }
}

/// The fields of an entity in this partition are told what has happened, and of what comes of it.
pub(in crate::worker) struct DeliverFieldTask<'a> {
    pub(in crate::worker) subject: EntityKey,
    pub(in crate::worker) task: &'a FieldTask,
}

impl DeliverFieldTask<'_> {
    pub(in crate::worker) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let Self { subject, task } = self;
        let Some(fields) = cx.worker.local.field_events.of(subject.tenant).cloned() else {
            return Ok(());
        };
        let Some(originator) = cx.find(subject).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        let concerned: Vec<Arc<RegisteredField>> = match task.field {
            Some(field) => {
                let entry = fields
                    .get(field)
                    .filter(|entry| entry.entity == subject.entity || Some(entry.entity) == profile);
                entry.into_iter().cloned().collect()
            }
            None => fields
                .of_entity(subject.entity, profile)
                .filter(|entry| entry.concerns_own(&task.event))
                .cloned()
                .collect(),
        };
        for entry in &concerned {
            if !task.event.comes_from(entry.id) {
                let command = EvaluateField {
                    entry,
                    subject,
                    originator: &originator,
                    event: &task.event,
                };
                command.run(cx).await?;
            }
        }
        DeliverFieldEvents(Vec::new()).run(cx).await
    }
}

/// Something that a field keeps has come due.
pub(in crate::worker) struct FireFieldTimer(pub(in crate::worker) DueTimer);

impl FireFieldTimer {
    pub(in crate::worker) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let event = timer(&self.0);
        let DueTimer { key, value, .. } = self.0;
        let (subject, partition) = (key.subject, cx.handle.partition);
        if cx.worker.field_calls.is_running(&key) {
            // When its scripts have come back it gets a time again; until then it is kept without.
            cx.worker.local.keyed_states.put(partition, key, None, &value);
            return Ok(());
        }
        let fields = cx.worker.local.field_events.of(subject.tenant);
        let entry = fields.and_then(|fields| fields.get(CalculatedFieldId(key.owner)));
        let Some(entry) = entry.cloned() else {
            return Ok(());
        };
        let Some(originator) = cx.find(subject).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        if entry.entity != subject.entity && Some(entry.entity) != profile {
            // The entity has got another profile.
            return Ok(());
        }
        cx.worker.local.keyed_states.put(partition, key, None, &value);
        let command = EvaluateField {
            entry: &entry,
            subject,
            originator: &originator,
            event: &event,
        };
        match &entry.kind {
            FieldLogic::Values(field) => command.values(field).fire_timer(cx).await?,
            FieldLogic::Alarm(rules, _) => command.evaluate_alarms(rules, AlarmTrigger::Timer, cx).await?,
            FieldLogic::Broken(_) => {}
        }
        DeliverFieldEvents(Vec::new()).run(cx).await
    }
}

/// A field of an entity is evaluated, if what has happened is a reason to.
#[derive(Clone, Copy)]
pub(in crate::worker) struct EvaluateField<'a> {
    pub(in crate::worker) entry: &'a Arc<RegisteredField>,
    /// The entity.
    pub(in crate::worker) subject: EntityKey,
    pub(in crate::worker) originator: &'a Arc<Originator>,
    pub(in crate::worker) event: &'a FieldEvent,
}

impl<'a> EvaluateField<'a> {
    pub(in crate::worker) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let key = key_of(self.entry, self.subject);
        if cx.worker.field_calls.is_running(&key) {
            cx.defer_field_event(&key, self);
            return Ok(());
        }
        if self.event.change == FieldEventKind::Moved && cx.worker.local.keyed_states.peek(&key).is_some() {
            return Ok(());
        }
        match &self.entry.kind {
            FieldLogic::Values(field) => self.values(field).run(cx).await,
            FieldLogic::Alarm(rules, _) => {
                let Some(trigger) = alarm_trigger_for_field(self.entry, self.originator, self.event) else {
                    return Ok(());
                };
                self.evaluate_alarms(rules, trigger, cx).await
            }
            FieldLogic::Broken(_) => Ok(()),
        }
    }

    fn values(self, field: &'a Arc<CompiledField>) -> EvaluateValueField<'a> {
        EvaluateValueField { about: self, field }
    }

    async fn evaluate_alarms(
        self,
        rules: &Arc<AlarmRuleSet>,
        trigger: AlarmTrigger,
        cx: &mut WalkContext<'_>,
    ) -> Result<(), IngestShutdown> {
        let command = EvaluateAlarmRules {
            key: key_of(self.entry, self.subject),
            rules,
            originator: self.originator,
            trigger,
            msg: &self.message(cx.worker.now_ms()),
            destination: &AlarmDestination::Chain(self.entry.clone()),
        };
        command.run(cx).await
    }

    /// What messages about results of the field for the entity are made from.
    pub(in crate::worker) fn message(&self, now: i64) -> RuleMessage {
        let Self {
            entry,
            originator,
            event,
            ..
        } = self;
        let (high, low) = entry.id.0.as_u64_pair();
        let (own, other) = originator.id.id.as_u64_pair();
        let message = QueueMessage {
            id: derive_id(event.msg, high ^ low.rotate_left(9) ^ own.rotate_left(31) ^ other),
            customer: originator.customer,
            ..QueueMessage::new(
                MsgType::from(&*event.kind),
                originator.id,
                now,
                Default::default(),
                "{}".to_owned(),
            )
        };
        RuleMessage {
            previous_fields: (!event.previous.is_empty()).then(|| event.previous.clone()),
            ..RuleMessage::of(event.subject.tenant, message)
        }
    }
}

impl WalkContext<'_> {
    /// Shows people who look for mistakes what has become of an evaluation.
    pub(in crate::worker) fn show_field(
        &self,
        entry: &RegisteredField,
        entity: EntityId,
        event: &FieldEvent,
        shown: FieldDebugEvent,
    ) {
        if let (Some(watch), Some(problem)) = (&self.worker.node_activity, &shown.error) {
            watch.lock().field_had_no_result(problem);
        }
        let now = self.worker.now_ms();
        let is_on = if shown.error.is_some() {
            entry.debug.stores_failures(now)
        } else {
            entry.debug.stores_all(now)
        };
        let tenant = event.subject.tenant;
        if !is_on
            || !self
                .worker
                .shared
                .events
                .try_acquire_debug(tenant, entry.id.into())
        {
            return;
        }
        let body = CalculatedFieldDebug {
            calculated_field: entry.id,
            subject: Some(entity),
            msg_id: Some(event.msg),
            msg_type: Some(event.kind.to_string()),
            arguments: shown.arguments.map(cut),
            result: shown.result.map(cut),
            error: shown.error.map(cut),
        };
        self.worker
            .shared
            .events
            .record(tenant, entry.id.into(), EventBody::CalculatedField(body));
    }
}

/// What a debug event of a field shows.
#[derive(Default)]
pub(in crate::worker) struct FieldDebugEvent {
    pub(in crate::worker) arguments: Option<String>,
    pub(in crate::worker) result: Option<String>,
    pub(in crate::worker) error: Option<String>,
}

pub(in crate::worker) fn key_of(entry: &RegisteredField, subject: EntityKey) -> StateKey {
    StateKey {
        subject,
        owner: entry.id.0,
        number: 0,
    }
}

/// The event that time has passed. Its id follows from what was kept and until when, so that what it leads to is the same when it
/// comes once more after a crash.
fn timer(due: &DueTimer) -> FieldEvent {
    FieldEvent {
        subject: due.key.subject,
        change: FieldEventKind::Moved,
        msg: derive_id(due.key.subject.entity.id, due.hash()),
        kind: "REEVALUATION_MSG".into(),
        previous: Arc::default(),
    }
}

/// The numbers of the arguments that take a value of an entity.
pub(in crate::worker) fn takers<'a>(
    entry: &'a RegisteredField,
    evaluated: &Originator,
    source: EntityKey,
) -> impl Iterator<Item = (usize, &'a fields::FieldDependency)> {
    let (own, owner) = (evaluated.id, owner_of(evaluated, source.tenant));
    let source = source.entity;
    entry
        .dependencies
        .iter()
        .enumerate()
        .filter(move |(_, watch)| match &watch.source {
            DependencySource::Own => source == own,
            DependencySource::Entity(entity) => *entity == source,
            DependencySource::Owner => source == owner,
            DependencySource::Path(_) | DependencySource::Related => source != own,
        })
}

/// The customer or tenant that has an entity.
pub fn owner_of(originator: &Originator, tenant: TenantId) -> EntityId {
    match originator.customer {
        Some(customer) if originator.id != EntityId::from(customer) => customer.into(),
        _ => tenant.into(),
    }
}

/// What an event says to alarm rules.
fn alarm_trigger_for_field(
    entry: &RegisteredField,
    evaluated: &Originator,
    event: &FieldEvent,
) -> Option<AlarmTrigger> {
    let takers = || takers(entry, evaluated, event.subject);
    Some(match &event.change {
        FieldEventKind::Values { scope, values } => {
            let mut found: Vec<(u16, i64, KvValue)> = Vec::new();
            for (ts, key, value) in values {
                let needs = takers().filter(|(_, watch)| watch.takes(*scope, key));
                found.extend(needs.map(|(need, _)| (need as u16, *ts, value.clone())));
            }
            AlarmTrigger::Needs(found)
        }
        FieldEventKind::Removed { scope, keys } => {
            let is_removed =
                |watch: &fields::FieldDependency| keys.iter().any(|key| watch.takes(*scope, key));
            AlarmTrigger::RemovedNeeds(
                takers()
                    .filter(|(_, watch)| is_removed(watch))
                    .map(|(need, _)| need)
                    .collect(),
            )
        }
        FieldEventKind::Started | FieldEventKind::Moved | FieldEventKind::Owner => AlarmTrigger::Started,
        FieldEventKind::Acknowledged(id) => AlarmTrigger::Acknowledged(*id),
        FieldEventKind::Cleared(id) => AlarmTrigger::Cleared(*id),
        FieldEventKind::Deleted(id) => AlarmTrigger::Deleted(*id),
        FieldEventKind::Relations | FieldEventKind::Gone => return None,
    })
}

/// A number that tells results apart.
pub(in crate::worker) fn salt(field: Uuid, target: EntityId, number: u64) -> u64 {
    let (high, low) = field.as_u64_pair();
    let (a, b) = target.id.as_u64_pair();
    (high ^ low.rotate_left(13) ^ a.rotate_left(27) ^ b).wrapping_add(number)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use fieldline_model::DeviceId;

    use super::*;

    #[test]
    fn the_same_timer_has_the_same_id_whenever_it_is_handled_and_another_one_has_another() {
        let subject = EntityKey::device(TenantId::new(), DeviceId::new());
        let due = |keeper, at, value: &'static [u8]| DueTimer {
            key: StateKey {
                subject,
                owner: keeper,
                number: 0,
            },
            value: Bytes::from_static(value),
            at,
        };
        let (field, other) = (Uuid::new_v4(), Uuid::new_v4());
        let id = timer(&due(field, 1000, b"kept")).msg;
        assert_eq!(timer(&due(field, 1000, b"kept")).msg, id);
        for another in [
            due(field, 2000, b"kept"),
            due(field, 1000, b"keep"),
            due(other, 1000, b"kept"),
        ] {
            assert_ne!(timer(&another).msg, id);
        }
    }
}
