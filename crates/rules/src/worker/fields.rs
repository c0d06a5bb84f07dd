//! Calculated fields on a worker: who is told what, and in which partition.

pub(crate) mod reach;
mod tasks;

use std::collections::VecDeque;
use std::sync::Arc;

use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::StoreResult;
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::message::{Message, MsgType};
use fieldline_model::{EntityId, EntityType, Subject, TenantId};
use rustc_hash::FxHashMap;
use tracing::warn;

pub(crate) use self::tasks::owner_of;
pub(super) use self::tasks::{Shown, key_of, salt, takers};
use super::Worker;
use super::walk::{Move, Ticket};
use crate::book::Book;
use crate::fields::{self, Change, Entry, FIELD_MESSAGE, Kind, News, Of, Page, Task, TenantFields};
use crate::message::Msg;
use crate::node::{NodeError, Step};
use crate::originators::Originator;
use crate::tenants::Epoch;

/// News that one message may lead to in one partition. Fields that feed each other end long before: none takes part twice.
const MAX_NEWS: usize = 10_000;

/// The fields of the tenants that a worker has seen, and what waits to be told to them.
#[derive(Default)]
pub struct Feeding {
    /// `None` for a tenant without fields.
    pub(super) tenants: FxHashMap<TenantId, (Epoch, Option<Arc<TenantFields>>)>,
    /// What has been told by nodes and results, and not been handled yet.
    pub(super) fed: Vec<News>,
}

impl Feeding {
    /// The fields of a tenant that has any.
    pub(super) fn of(&self, tenant: TenantId) -> Option<&Arc<TenantFields>> {
        self.tenants.get(&tenant)?.1.as_ref()
    }
}

impl Worker {
    /// Brings the fields of a tenant up to date, which costs a look where they are.
    pub(super) async fn know_fields(&mut self, tenant: TenantId, store: &Applier) -> Result<(), Stopping> {
        let known = self.parts.feeding.tenants.get(&tenant);
        if known.is_some_and(|(epoch, _)| epoch.is_current()) {
            return Ok(());
        }
        let epoch = self.common.book.fields().epoch(tenant);
        let load = |book: Arc<Book>| async move { book.fields().tenant(tenant).await };
        let loaded = self.load(tenant, "calculated fields", load, store).await?;
        let fields = loaded.filter(|fields| !fields.is_empty());
        self.parts.feeding.tenants.insert(tenant, (epoch, fields));
        Ok(())
    }

    /// What a message from inside the platform says to fields, to be handled before its chain sees it.
    pub(super) fn news_of(&self, msg: &mut Msg) -> Option<News> {
        News::of_message(self.parts.feeding.of(msg.tenant)?, msg)
    }

    /// Handles news, and what comes of it.
    pub(super) async fn feed_fields(
        &mut self,
        ticket: Ticket,
        fed: Vec<News>,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let mut waiting = VecDeque::from(fed);
        let mut count = 0;
        loop {
            waiting.extend(self.parts.feeding.fed.drain(..));
            let Some(news) = waiting.pop_front() else {
                return Ok(());
            };
            count += 1;
            if count > MAX_NEWS {
                warn!(tenant = %news.subject.tenant, "a message leads to too many values of calculated fields");
                return Ok(());
            }
            self.spread(ticket, &news, store, moves).await?;
        }
    }

    /// Tells all fields that news concerns: those of the entity here, others in the partitions of their entities.
    async fn spread(
        &mut self,
        ticket: Ticket,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let subject = news.subject;
        let Some(fields) = self.parts.feeding.of(subject.tenant).cloned() else {
            return Ok(());
        };
        if news.change == Change::Gone {
            for entry in fields.all() {
                self.parts.forget(&key_of(entry, subject));
            }
            return Ok(());
        }
        self.spread_elsewhere(ticket, &fields, news, moves);
        let Some(originator) = self.find(subject, store).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        let own: Vec<Arc<Entry>> = fields
            .of_entity(subject.entity, profile)
            .filter(|entry| !news.comes_from(entry.id) && entry.concerns_own(news))
            .cloned()
            .collect();
        if own.is_empty() {
            return Ok(());
        }
        if !self.is_fields_home(ticket, subject, &originator) {
            let task = Task {
                field: None,
                news: news.clone(),
                page: None,
            };
            let message = task.message(subject.entity, self.now_ms());
            self.send(ticket, subject.tenant, vec![message], moves);
            return Ok(());
        }
        for entry in own {
            self.tell_field(ticket, &entry, subject, &originator, news, store, moves)
                .await?;
        }
        Ok(())
    }

    /// Whether what fields keep for an entity is kept in the partition of a ticket: that of its profile's queue, where the
    /// messages from inside the platform arrive as well.
    fn is_fields_home(&self, ticket: Ticket, subject: Subject, originator: &Originator) -> bool {
        let queue = originator
            .profile
            .as_ref()
            .and_then(|profile| profile.queue.as_deref());
        let home = queue.unwrap_or(fieldline_core::ingest::MAIN_QUEUE);
        let index = fieldline_core::ingest::partition_index(subject.entity.id, self.parts.partitions);
        *self.queue.name == *home && index == ticket.partition.index
    }

    /// Queues messages beside what is going on; it is done with when they are there.
    pub(super) fn send(
        &mut self,
        ticket: Ticket,
        tenant: TenantId,
        messages: Vec<Message>,
        moves: &mut Vec<Move>,
    ) {
        let services = self.common.services.clone();
        let work = async move { fields::push(&services, tenant, messages).await };
        self.beside(ticket, tenant, work, moves);
    }

    fn beside(
        &mut self,
        ticket: Ticket,
        tenant: TenantId,
        work: impl Future<Output = StoreResult<()>> + Send + 'static,
        moves: &mut Vec<Move>,
    ) {
        self.begin(ticket);
        let waiting = Step::wait(async move {
            match work.await {
                Ok(()) => Step::Done,
                Err(error) => {
                    let kind = MsgType::Custom(FIELD_MESSAGE.into());
                    let message = Message::new(kind, tenant.into(), 0, Default::default(), String::new());
                    Step::Fail(Msg::of(tenant, message), NodeError::from(error))
                }
            }
        });
        moves.push(Move::Answer(waiting, None, tenant));
    }

    /// Tells the fields of other entities that look at values of this one.
    fn spread_elsewhere(
        &mut self,
        ticket: Ticket,
        fields: &Arc<TenantFields>,
        news: &News,
        moves: &mut Vec<Move>,
    ) {
        let (subject, now) = (news.subject, self.now_ms());
        let mut messages = Vec::new();
        let mut tell = |entry: &Arc<Entry>, owner: Option<EntityId>| {
            let page = fields::is_profile(entry.entity).then_some(Page { number: 0, owner });
            let task = Task {
                field: Some(entry.id),
                news: news.clone(),
                page,
            };
            messages.push(task.message(entry.entity, now));
        };
        for entry in fields.naming(subject.entity) {
            let is_named = |of: &Of| *of == Of::Entity(subject.entity);
            if !news.comes_from(entry.id) && entry.taken_from(news).any(|watch| is_named(&watch.of)) {
                tell(entry, None);
            }
        }
        if matches!(
            subject.entity.entity_type,
            EntityType::Customer | EntityType::Tenant
        ) {
            for entry in fields.of_owners() {
                if !news.comes_from(entry.id) && entry.taken_from(news).any(|watch| watch.of == Of::Owner) {
                    tell(entry, Some(subject.entity));
                }
            }
        }
        if !messages.is_empty() {
            self.send(ticket, subject.tenant, messages, moves);
        }
        for entry in fields.of_relations() {
            if news.comes_from(entry.id) {
                continue;
            }
            let mut paths: Vec<Arc<[RelationLevel]>> = Vec::new();
            for watch in entry.taken_from(news) {
                match (&watch.of, &entry.kind) {
                    (Of::Path(path), _) if !paths.contains(path) => paths.push(path.clone()),
                    (Of::Related, Kind::Values(field)) => {
                        paths.extend(field.relation().map(|level| [level.clone()].into()));
                    }
                    _ => {}
                }
            }
            paths.dedup();
            if !paths.is_empty() {
                let work = reach::tell_related(
                    self.common.services.clone(),
                    entry.clone(),
                    paths,
                    news.clone(),
                    now,
                );
                self.beside(ticket, subject.tenant, work, moves);
            }
        }
    }
}
