//! What a field does in the partition of its entity: messages bring it news, and what it keeps comes due.

use std::sync::Arc;

use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::StateKey;
use fieldline_model::entity::{CalculatedFieldDebug, EventBody};
use fieldline_model::kv::Value;
use fieldline_model::message::{Message, MsgType};
use fieldline_model::{CalculatedFieldId, EntityId, Subject, TenantId};
use tracing::warn;
use uuid::Uuid;

use super::reach;
use crate::events::cut;
use crate::fields::{self, Change, Entry, Kind, News, Of, Task};
use crate::message::{Msg, derive_id};
use crate::originators::Originator;
use crate::worker::Worker;
use crate::worker::alarms::{Out, Told};
use crate::worker::pack::Due;
use crate::worker::walk::{Move, Ticket};

impl Worker {
    /// Does what a message brings to fields in this partition.
    pub(in crate::worker) async fn field_message(
        &mut self,
        ticket: Ticket,
        msg: &Msg,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let Some(task) = Task::of_message(msg.tenant, &msg.data) else {
            warn!(tenant = %msg.tenant, "skipped news for calculated fields that cannot be read");
            return Ok(());
        };
        if self.parts.feeding.of(msg.tenant).is_none() {
            return Ok(());
        }
        if let Some(page) = task.page {
            let (services, profile, now) = (self.common.services.clone(), msg.originator, self.now_ms());
            let work = reach::tell_page(services, task, page, profile, now);
            self.beside(ticket, msg.tenant, work, moves);
            return Ok(());
        }
        self.do_task(ticket, msg.subject(), &task, store, moves).await
    }

    /// Tells the fields of an entity in this partition what has happened, and does what comes of it.
    pub(in crate::worker) async fn do_task(
        &mut self,
        ticket: Ticket,
        subject: Subject,
        task: &Task,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let Some(fields) = self.parts.feeding.of(subject.tenant).cloned() else {
            return Ok(());
        };
        let Some(originator) = self.find(subject, store).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        let concerned: Vec<Arc<Entry>> = match task.field {
            Some(field) => {
                let entry = fields
                    .get(field)
                    .filter(|entry| entry.entity == subject.entity || Some(entry.entity) == profile);
                entry.into_iter().cloned().collect()
            }
            None => fields
                .of_entity(subject.entity, profile)
                .filter(|entry| entry.concerns_own(&task.news))
                .cloned()
                .collect(),
        };
        for entry in concerned {
            if !task.news.comes_from(entry.id) {
                self.tell_field(ticket, &entry, subject, &originator, &task.news, store, moves)
                    .await?;
            }
        }
        self.feed_fields(ticket, Vec::new(), store, moves).await
    }

    /// Something that a field keeps has come due.
    pub(in crate::worker) async fn field_due(
        &mut self,
        ticket: Ticket,
        due: Due,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let news = timer(&due);
        let Due { key, value, .. } = due;
        let subject = key.subject;
        if self.field_calls.is_running(&key) {
            // When its scripts have come back it gets a time again; until then it is kept without.
            self.parts.states.put(ticket.partition, key, None, &value);
            return Ok(());
        }
        let fields = self.parts.feeding.of(subject.tenant).cloned();
        let entry = fields
            .as_ref()
            .and_then(|fields| fields.get(CalculatedFieldId(key.keeper)));
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
        self.parts.states.put(ticket.partition, key.clone(), None, &value);
        match &entry.kind {
            Kind::Values(field) => {
                let field = field.clone();
                self.values_due(ticket, &entry, &field, &originator, &news, store, moves)
                    .await?;
            }
            Kind::Alarm(rules, _) => {
                let (rules, msg) = (rules.clone(), self.field_msg(&entry, &originator, &news));
                let out = Out::Chain(entry.clone());
                self.evaluate_alarms(
                    ticket,
                    key,
                    &rules,
                    &originator,
                    (Told::Timer, &msg),
                    &out,
                    store,
                    moves,
                )
                .await?;
            }
            Kind::Broken(_) => {}
        }
        self.feed_fields(ticket, Vec::new(), store, moves).await
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(in crate::worker) async fn tell_field(
        &mut self,
        ticket: Ticket,
        entry: &Arc<Entry>,
        subject: Subject,
        originator: &Arc<Originator>,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let key = key_of(entry, subject);
        if self.field_calls.is_running(&key) {
            self.tell_later(ticket, &key, entry, originator, news);
            return Ok(());
        }
        if news.change == Change::Moved && self.parts.states.peek(&key).is_some() {
            return Ok(());
        }
        match &entry.kind {
            Kind::Values(field) => {
                let field = field.clone();
                self.tell_values(ticket, entry, &field, key, originator, news, store, moves)
                    .await
            }
            Kind::Alarm(rules, _) => {
                let Some(told) = told(entry, originator, news) else {
                    return Ok(());
                };
                let (rules, msg) = (rules.clone(), self.field_msg(entry, originator, news));
                let out = Out::Chain(entry.clone());
                self.evaluate_alarms(ticket, key, &rules, originator, (told, &msg), &out, store, moves)
                    .await
            }
            Kind::Broken(_) => Ok(()),
        }
    }

    /// What messages about results of a field for an entity are made from.
    pub(in crate::worker) fn field_msg(&self, entry: &Entry, originator: &Originator, news: &News) -> Msg {
        let (high, low) = entry.id.0.as_u64_pair();
        let (own, other) = originator.id.id.as_u64_pair();
        let now = self.now_ms();
        let message = Message {
            id: derive_id(news.msg, high ^ low.rotate_left(9) ^ own.rotate_left(31) ^ other),
            customer: originator.customer,
            ..Message::new(
                MsgType::from(&*news.kind),
                originator.id,
                now,
                Default::default(),
                "{}".to_owned(),
            )
        };
        Msg {
            fields: (!news.previous.is_empty()).then(|| news.previous.clone()),
            ..Msg::of(news.subject.tenant, message)
        }
    }

    /// Shows people who look for mistakes what has become of an evaluation.
    pub(in crate::worker) fn show_field(&self, entry: &Entry, entity: EntityId, news: &News, shown: Shown) {
        if let (Some(watch), Some(problem)) = (&self.watch, &shown.error) {
            watch.lock().field_had_no_result(problem);
        }
        let now = self.now_ms();
        let is_on = if shown.error.is_some() {
            entry.debug.stores_failures(now)
        } else {
            entry.debug.stores_all(now)
        };
        let tenant = news.subject.tenant;
        if !is_on || !self.common.events.may_debug(tenant, entry.id.into()) {
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
        self.common
            .events
            .record(tenant, entry.id.into(), EventBody::CalculatedField(body));
    }
}

/// What a debug event of a field shows.
#[derive(Default)]
pub(in crate::worker) struct Shown {
    pub(in crate::worker) arguments: Option<String>,
    pub(in crate::worker) result: Option<String>,
    pub(in crate::worker) error: Option<String>,
}

pub(in crate::worker) fn key_of(entry: &Entry, subject: Subject) -> StateKey {
    StateKey {
        subject,
        keeper: entry.id.0,
        number: 0,
    }
}

/// News of time alone. Their id follows from what was kept and until when, so that what they lead to is the same when they
/// come once more after a crash.
fn timer(due: &Due) -> News {
    News {
        subject: due.key.subject,
        change: Change::Moved,
        msg: derive_id(due.key.subject.entity.id, due.hash()),
        kind: "REEVALUATION_MSG".into(),
        previous: Arc::default(),
    }
}

/// The numbers of the arguments that take a value of an entity.
pub(in crate::worker) fn takers<'a>(
    entry: &'a Entry,
    evaluated: &Originator,
    source: Subject,
) -> impl Iterator<Item = (usize, &'a fields::Watch)> {
    let (own, owner) = (evaluated.id, owner_of(evaluated, source.tenant));
    let source = source.entity;
    entry
        .watches
        .iter()
        .enumerate()
        .filter(move |(_, watch)| match &watch.of {
            Of::Own => source == own,
            Of::Entity(entity) => *entity == source,
            Of::Owner => source == owner,
            Of::Path(_) | Of::Related => source != own,
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
fn told(entry: &Entry, evaluated: &Originator, news: &News) -> Option<Told> {
    let takers = || takers(entry, evaluated, news.subject);
    Some(match &news.change {
        Change::Values { scope, values } => {
            let mut taken: Vec<(u16, i64, Value)> = Vec::new();
            for (ts, key, value) in values {
                let needs = takers().filter(|(_, watch)| watch.takes(*scope, key));
                taken.extend(needs.map(|(need, _)| (need as u16, *ts, value.clone())));
            }
            Told::Needs(taken)
        }
        Change::Removed { scope, keys } => {
            let is_removed = |watch: &fields::Watch| keys.iter().any(|key| watch.takes(*scope, key));
            Told::RemovedNeeds(
                takers()
                    .filter(|(_, watch)| is_removed(watch))
                    .map(|(need, _)| need)
                    .collect(),
            )
        }
        Change::Started | Change::Moved | Change::Owner => Told::Started,
        Change::Acknowledged(id) => Told::Acknowledged(*id),
        Change::Cleared(id) => Told::Cleared(*id),
        Change::Deleted(id) => Told::Deleted(*id),
        Change::Relations | Change::Gone => return None,
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
        let subject = Subject::device(TenantId::new(), DeviceId::new());
        let due = |keeper, at, value: &'static [u8]| Due {
            key: StateKey {
                subject,
                keeper,
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
