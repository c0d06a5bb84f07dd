//! What a field does in the partition of its entity: messages bring it news, and what it keeps comes due.

use std::sync::Arc;

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::StateKey;
use fieldline_model::entity::{CalculatedFieldDebug, EventBody};
use fieldline_model::kv::KvValue;
use fieldline_model::message::{MsgType, QueueMessage};
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, TenantId};
use tracing::warn;
use uuid::Uuid;

use super::fan_out;
use crate::events::cut;
use crate::fields::{
    self, DependencySource, FieldEvent, FieldEventKind, FieldLogic, FieldTask, RegisteredField,
};
use crate::message::{RuleMessage, derive_id};
use crate::originators::Originator;
use crate::worker::RuleWorker;
use crate::worker::alarms::{AlarmDestination, AlarmTrigger};
use crate::worker::batch::DueTimer;
use crate::worker::walk::{MessageHandle, WalkTask};

impl RuleWorker {
    /// Does what a message brings to fields in this partition.
    pub(in crate::worker) async fn field_message(
        &mut self,
        ticket: MessageHandle,
        msg: &RuleMessage,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let Some(task) = FieldTask::of_message(msg.tenant, &msg.data) else {
            warn!(tenant = %msg.tenant, "skipped news for calculated fields that cannot be read");
            return Ok(());
        };
        if self.state.field_events.of(msg.tenant).is_none() {
            return Ok(());
        }
        if let Some(page) = task.page {
            let (services, profile, now) = (self.shared.services.clone(), msg.originator, self.now_ms());
            let work = fan_out::notify_page(services, task, page, profile, now);
            self.beside(ticket, msg.tenant, work, moves);
            return Ok(());
        }
        self.do_task(ticket, msg.subject(), &task, store, moves).await
    }

    /// Tells the fields of an entity in this partition what has happened, and does what comes of it.
    pub(in crate::worker) async fn do_task(
        &mut self,
        ticket: MessageHandle,
        subject: EntityKey,
        task: &FieldTask,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let Some(fields) = self.state.field_events.of(subject.tenant).cloned() else {
            return Ok(());
        };
        let Some(originator) = self.find(subject, store).await? else {
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
        for entry in concerned {
            if !task.event.comes_from(entry.id) {
                self.notify_field(ticket, &entry, subject, &originator, &task.event, store, moves)
                    .await?;
            }
        }
        self.notify_fields(ticket, Vec::new(), store, moves).await
    }

    /// Something that a field keeps has come due.
    pub(in crate::worker) async fn field_due(
        &mut self,
        ticket: MessageHandle,
        due: DueTimer,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let news = timer(&due);
        let DueTimer { key, value, .. } = due;
        let subject = key.subject;
        if self.field_calls.is_running(&key) {
            // When its scripts have come back it gets a time again; until then it is kept without.
            self.state.states.put(ticket.partition, key, None, &value);
            return Ok(());
        }
        let fields = self.state.field_events.of(subject.tenant).cloned();
        let entry = fields
            .as_ref()
            .and_then(|fields| fields.get(CalculatedFieldId(key.owner)));
        let Some(entry) = entry.cloned() else {
            return Ok(());
        };
        let Some(originator) = self.find(subject, store).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        if entry.entity != subject.entity && Some(entry.entity) != profile {
            // The entity has got another profile.
            return Ok(());
        }
        self.state.states.put(ticket.partition, key.clone(), None, &value);
        match &entry.kind {
            FieldLogic::Values(field) => {
                let field = field.clone();
                self.values_due(ticket, &entry, &field, &originator, &news, store, moves)
                    .await?;
            }
            FieldLogic::Alarm(rules, _) => {
                let (rules, msg) = (rules.clone(), self.field_msg(&entry, &originator, &news));
                let out = AlarmDestination::Chain(entry.clone());
                self.evaluate_alarms(
                    ticket,
                    key,
                    &rules,
                    &originator,
                    (AlarmTrigger::Timer, &msg),
                    &out,
                    store,
                    moves,
                )
                .await?;
            }
            FieldLogic::Broken(_) => {}
        }
        self.notify_fields(ticket, Vec::new(), store, moves).await
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(in crate::worker) async fn notify_field(
        &mut self,
        ticket: MessageHandle,
        entry: &Arc<RegisteredField>,
        subject: EntityKey,
        originator: &Arc<Originator>,
        news: &FieldEvent,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let key = key_of(entry, subject);
        if self.field_calls.is_running(&key) {
            self.defer_field_event(ticket, &key, entry, originator, news);
            return Ok(());
        }
        if news.change == FieldEventKind::Moved && self.state.states.peek(&key).is_some() {
            return Ok(());
        }
        match &entry.kind {
            FieldLogic::Values(field) => {
                let field = field.clone();
                self.notify_value_field(ticket, entry, &field, key, originator, news, store, moves)
                    .await
            }
            FieldLogic::Alarm(rules, _) => {
                let Some(told) = alarm_trigger_for_field(entry, originator, news) else {
                    return Ok(());
                };
                let (rules, msg) = (rules.clone(), self.field_msg(entry, originator, news));
                let out = AlarmDestination::Chain(entry.clone());
                self.evaluate_alarms(ticket, key, &rules, originator, (told, &msg), &out, store, moves)
                    .await
            }
            FieldLogic::Broken(_) => Ok(()),
        }
    }

    /// What messages about results of a field for an entity are made from.
    pub(in crate::worker) fn field_msg(
        &self,
        entry: &RegisteredField,
        originator: &Originator,
        news: &FieldEvent,
    ) -> RuleMessage {
        let (high, low) = entry.id.0.as_u64_pair();
        let (own, other) = originator.id.id.as_u64_pair();
        let now = self.now_ms();
        let message = QueueMessage {
            id: derive_id(news.msg, high ^ low.rotate_left(9) ^ own.rotate_left(31) ^ other),
            customer: originator.customer,
            ..QueueMessage::new(
                MsgType::from(&*news.kind),
                originator.id,
                now,
                Default::default(),
                "{}".to_owned(),
            )
        };
        RuleMessage {
            previous_fields: (!news.previous.is_empty()).then(|| news.previous.clone()),
            ..RuleMessage::of(news.subject.tenant, message)
        }
    }

    /// Shows people who look for mistakes what has become of an evaluation.
    pub(in crate::worker) fn show_field(
        &self,
        entry: &RegisteredField,
        entity: EntityId,
        news: &FieldEvent,
        shown: FieldDebugEvent,
    ) {
        if let (Some(watch), Some(problem)) = (&self.node_activity, &shown.error) {
            watch.lock().field_had_no_result(problem);
        }
        let now = self.now_ms();
        let is_on = if shown.error.is_some() {
            entry.debug.stores_failures(now)
        } else {
            entry.debug.stores_all(now)
        };
        let tenant = news.subject.tenant;
        if !is_on || !self.shared.events.try_acquire_debug(tenant, entry.id.into()) {
            return;
        }
        let body = CalculatedFieldDebug {
            calculated_field: entry.id,
            subject: Some(entity),
            msg_id: Some(news.msg),
            msg_type: Some(news.kind.to_string()),
            arguments: shown.arguments.map(cut),
            result: shown.result.map(cut),
            error: shown.error.map(cut),
        };
        self.shared
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

/// News of time alone. Their id follows from what was kept and until when, so that what they lead to is the same when they
/// come once more after a crash.
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
pub(crate) fn owner_of(originator: &Originator, tenant: TenantId) -> EntityId {
    match originator.customer {
        Some(customer) if originator.id != EntityId::from(customer) => customer.into(),
        _ => tenant.into(),
    }
}

/// What news says to alarm rules.
fn alarm_trigger_for_field(
    entry: &RegisteredField,
    evaluated: &Originator,
    news: &FieldEvent,
) -> Option<AlarmTrigger> {
    let takers = || takers(entry, evaluated, news.subject);
    Some(match &news.change {
        FieldEventKind::Values { scope, values } => {
            let mut taken: Vec<(u16, i64, KvValue)> = Vec::new();
            for (ts, key, value) in values {
                let needs = takers().filter(|(_, watch)| watch.takes(*scope, key));
                taken.extend(needs.map(|(need, _)| (need as u16, *ts, value.clone())));
            }
            AlarmTrigger::Needs(taken)
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
