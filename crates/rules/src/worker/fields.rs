//! Calculated fields on a worker: who is told what, and in which partition.

pub(crate) mod fan_out;
mod tasks;

use std::collections::VecDeque;
use std::sync::Arc;

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::StoreResult;
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::message::{MsgType, QueueMessage};
use fieldline_model::{EntityId, EntityKey, EntityType, TenantId};
use rustc_hash::FxHashMap;
use tracing::warn;

pub(crate) use self::tasks::owner_of;
pub(super) use self::tasks::{FieldDebugEvent, key_of, salt, takers};
use super::RuleWorker;
use super::walk::{MessageHandle, WalkTask};
use crate::chain_registry::ChainRegistry;
use crate::fields::{
    self, DependencySource, FIELD_MESSAGE, FieldEvent, FieldEventKind, FieldLogic, FieldTask, ProfilePage,
    RegisteredField, TenantFields,
};
use crate::message::RuleMessage;
use crate::node::{NodeError, NodeResult};
use crate::originators::Originator;
use crate::tenant_cache::TenantEpoch;

/// News that one message may lead to in one partition. Fields that feed each other end long before: none takes part twice.
const MAX_FIELD_EVENTS: usize = 10_000;

/// The fields of the tenants that a worker has seen, and what waits to be told to them.
#[derive(Default)]
pub struct FieldEventQueue {
    /// `None` for a tenant without fields.
    pub(super) tenants: FxHashMap<TenantId, (TenantEpoch, Option<Arc<TenantFields>>)>,
    /// What has been told by nodes and results, and not been handled yet.
    pub(super) pending: Vec<FieldEvent>,
}

impl FieldEventQueue {
    /// The fields of a tenant that has any.
    pub(super) fn of(&self, tenant: TenantId) -> Option<&Arc<TenantFields>> {
        self.tenants.get(&tenant)?.1.as_ref()
    }
}

impl RuleWorker {
    /// Brings the fields of a tenant up to date, which costs a look where they are.
    pub(super) async fn refresh_fields(
        &mut self,
        tenant: TenantId,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let known = self.state.field_events.tenants.get(&tenant);
        if known.is_some_and(|(epoch, _)| epoch.is_current()) {
            return Ok(());
        }
        let epoch = self.shared.chains.fields().epoch(tenant);
        let load = |book: Arc<ChainRegistry>| async move { book.fields().tenant(tenant).await };
        let loaded = self.load(tenant, "calculated fields", load, store).await?;
        let fields = loaded.filter(|fields| !fields.is_empty());
        self.state.field_events.tenants.insert(tenant, (epoch, fields));
        Ok(())
    }

    /// What a message from inside the platform says to fields, to be handled before its chain sees it.
    pub(super) fn news_of(&self, msg: &mut RuleMessage) -> Option<FieldEvent> {
        FieldEvent::of_message(self.state.field_events.of(msg.tenant)?, msg)
    }

    /// Handles news, and what comes of it.
    pub(super) async fn notify_fields(
        &mut self,
        ticket: MessageHandle,
        fed: Vec<FieldEvent>,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let mut waiting = VecDeque::from(fed);
        let mut count = 0;
        loop {
            waiting.extend(self.state.field_events.pending.drain(..));
            let Some(news) = waiting.pop_front() else {
                return Ok(());
            };
            count += 1;
            if count > MAX_FIELD_EVENTS {
                warn!(tenant = %news.subject.tenant, "a message leads to too many values of calculated fields");
                return Ok(());
            }
            self.distribute_event(ticket, &news, store, moves).await?;
        }
    }

    /// Tells all fields that news concerns: those of the entity here, others in the partitions of their entities.
    async fn distribute_event(
        &mut self,
        ticket: MessageHandle,
        news: &FieldEvent,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let subject = news.subject;
        let Some(fields) = self.state.field_events.of(subject.tenant).cloned() else {
            return Ok(());
        };
        if news.change == FieldEventKind::Gone {
            for entry in fields.all() {
                self.state.clear_state(&key_of(entry, subject));
            }
            return Ok(());
        }
        self.spread_elsewhere(ticket, &fields, news, moves);
        let Some(originator) = self.find(subject, store).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        let own: Vec<Arc<RegisteredField>> = fields
            .of_entity(subject.entity, profile)
            .filter(|entry| !news.comes_from(entry.id) && entry.concerns_own(news))
            .cloned()
            .collect();
        if own.is_empty() {
            return Ok(());
        }
        if !self.owns_fields(ticket, subject, &originator) {
            let task = FieldTask {
                field: None,
                event: news.clone(),
                page: None,
            };
            let message = task.message(subject.entity, self.now_ms());
            self.send(ticket, subject.tenant, vec![message], moves);
            return Ok(());
        }
        for entry in own {
            self.notify_field(ticket, &entry, subject, &originator, news, store, moves)
                .await?;
        }
        Ok(())
    }

    /// Whether what fields keep for an entity is kept in the partition of a ticket: that of its profile's queue, where the
    /// messages from inside the platform arrive as well.
    fn owns_fields(&self, ticket: MessageHandle, subject: EntityKey, originator: &Originator) -> bool {
        let queue = originator
            .profile
            .as_ref()
            .and_then(|profile| profile.queue.as_deref());
        let home = queue.unwrap_or(fieldline_core::ingest::MAIN_QUEUE);
        let index = fieldline_core::ingest::partition_index(subject.entity.id, self.state.partitions);
        *self.queue.name == *home && index == ticket.partition.index
    }

    /// Queues messages beside what is going on; it is done with when they are there.
    pub(super) fn send(
        &mut self,
        ticket: MessageHandle,
        tenant: TenantId,
        messages: Vec<QueueMessage>,
        moves: &mut Vec<WalkTask>,
    ) {
        let services = self.shared.services.clone();
        let work = async move { fields::push(&services, tenant, messages).await };
        self.beside(ticket, tenant, work, moves);
    }

    fn beside(
        &mut self,
        ticket: MessageHandle,
        tenant: TenantId,
        work: impl Future<Output = StoreResult<()>> + Send + 'static,
        moves: &mut Vec<WalkTask>,
    ) {
        self.begin(ticket);
        let waiting = NodeResult::wait(async move {
            match work.await {
                Ok(()) => NodeResult::Done,
                Err(error) => {
                    let kind = MsgType::Custom(FIELD_MESSAGE.into());
                    let message =
                        QueueMessage::new(kind, tenant.into(), 0, Default::default(), String::new());
                    NodeResult::Fail(RuleMessage::of(tenant, message), NodeError::from(error))
                }
            }
        });
        moves.push(WalkTask::Answer(waiting, None, tenant));
    }

    /// Tells the fields of other entities that look at values of this one.
    fn spread_elsewhere(
        &mut self,
        ticket: MessageHandle,
        fields: &Arc<TenantFields>,
        news: &FieldEvent,
        moves: &mut Vec<WalkTask>,
    ) {
        let (subject, now) = (news.subject, self.now_ms());
        let mut messages = Vec::new();
        let mut tell = |entry: &Arc<RegisteredField>, owner: Option<EntityId>| {
            let page = fields::is_profile(entry.entity).then_some(ProfilePage { number: 0, owner });
            let task = FieldTask {
                field: Some(entry.id),
                event: news.clone(),
                page,
            };
            messages.push(task.message(entry.entity, now));
        };
        for entry in fields.naming(subject.entity) {
            let is_named = |of: &DependencySource| *of == DependencySource::Entity(subject.entity);
            if !news.comes_from(entry.id)
                && entry
                    .affected_arguments(news)
                    .any(|watch| is_named(&watch.source))
            {
                tell(entry, None);
            }
        }
        if matches!(
            subject.entity.entity_type,
            EntityType::Customer | EntityType::Tenant
        ) {
            for entry in fields.of_owners() {
                if !news.comes_from(entry.id)
                    && entry
                        .affected_arguments(news)
                        .any(|watch| watch.source == DependencySource::Owner)
                {
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
            for watch in entry.affected_arguments(news) {
                match (&watch.source, &entry.kind) {
                    (DependencySource::Path(path), _) if !paths.contains(path) => paths.push(path.clone()),
                    (DependencySource::Related, FieldLogic::Values(field)) => {
                        paths.extend(field.relation().map(|level| [level.clone()].into()));
                    }
                    _ => {}
                }
            }
            paths.dedup();
            if !paths.is_empty() {
                let work = fan_out::notify_related(
                    self.shared.services.clone(),
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
