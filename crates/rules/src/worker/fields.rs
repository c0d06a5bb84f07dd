//! Calculated fields on a worker: who is told what, and in which partition.

pub mod fan_out;
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

pub use self::tasks::owner_of;
pub(super) use self::tasks::{
    DeliverFieldMessage, DeliverFieldTask, EvaluateField, FieldDebugEvent, FireFieldTimer, key_of, salt,
    takers,
};
use super::tenant_chains::load_of_tenant;
use super::walk::{WalkContext, WalkTask};
use crate::chain_registry::ChainRegistry;
use crate::engine::EngineShared;
use crate::fields::{
    self, DependencySource, FIELD_MESSAGE, FieldEvent, FieldEventKind, FieldLogic, FieldTask, ProfilePage,
    RegisteredField, TenantFields,
};
use crate::message::RuleMessage;
use crate::node::{NodeError, NodeResult};
use crate::originators::Originator;
use crate::tenant_cache::TenantEpoch;

/// Events that one message may lead to in one partition. Fields that feed each other end long before: none takes part twice.
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

    /// Brings the fields of a tenant up to date, which costs a look where they are.
    pub(super) async fn refresh(
        &mut self,
        shared: &EngineShared,
        tenant: TenantId,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let known = self.tenants.get(&tenant);
        if known.is_some_and(|(epoch, _)| epoch.is_current()) {
            return Ok(());
        }
        let epoch = shared.chains.fields().epoch(tenant);
        let load = |registry: Arc<ChainRegistry>| async move { registry.fields().tenant(tenant).await };
        let loaded = load_of_tenant(shared, tenant, "calculated fields", load, writer).await?;
        let fields = loaded.filter(|fields| !fields.is_empty());
        self.tenants.insert(tenant, (epoch, fields));
        Ok(())
    }

    /// What a message from inside the platform says to fields, to be handled before its chain sees it.
    pub(super) fn event_of(&self, msg: &mut RuleMessage) -> Option<FieldEvent> {
        FieldEvent::of_message(self.of(msg.tenant)?, msg)
    }
}

/// Calculated fields are told what has changed, and of what comes of it.
pub(super) struct DeliverFieldEvents(pub(super) Vec<FieldEvent>);

impl DeliverFieldEvents {
    pub(super) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let mut waiting = VecDeque::from(self.0);
        let mut count = 0;
        loop {
            waiting.extend(cx.worker.local.field_events.pending.drain(..));
            let Some(event) = waiting.pop_front() else {
                return Ok(());
            };
            count += 1;
            if count > MAX_FIELD_EVENTS {
                warn!(tenant = %event.subject.tenant, "a message leads to too many values of calculated fields");
                return Ok(());
            }
            cx.distribute_event(&event).await?;
        }
    }
}

impl WalkContext<'_> {
    /// Tells all fields that an event concerns: those of the entity here, others in the partitions of their entities.
    async fn distribute_event(&mut self, event: &FieldEvent) -> Result<(), IngestShutdown> {
        let subject = event.subject;
        let Some(fields) = self.worker.local.field_events.of(subject.tenant).cloned() else {
            return Ok(());
        };
        if event.change == FieldEventKind::Gone {
            for entry in fields.all() {
                self.worker.local.clear_state(&key_of(entry, subject));
            }
            return Ok(());
        }
        self.spread_elsewhere(&fields, event);
        let Some(originator) = self.find(subject).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        let own: Vec<Arc<RegisteredField>> = fields
            .of_entity(subject.entity, profile)
            .filter(|entry| !event.comes_from(entry.id) && entry.concerns_own(event))
            .cloned()
            .collect();
        if own.is_empty() {
            return Ok(());
        }
        if !self.owns_fields(subject, &originator) {
            let task = FieldTask {
                field: None,
                event: event.clone(),
                page: None,
            };
            let message = task.message(subject.entity, self.worker.now_ms());
            self.send(subject.tenant, vec![message]);
            return Ok(());
        }
        for entry in &own {
            let command = EvaluateField {
                entry,
                subject,
                originator: &originator,
                event,
            };
            command.run(self).await?;
        }
        Ok(())
    }

    /// Whether what fields keep for an entity is kept in the partition of the message: that of its profile's queue, where the
    /// messages from inside the platform arrive as well.
    fn owns_fields(&self, subject: EntityKey, originator: &Originator) -> bool {
        let queue = originator
            .profile
            .as_ref()
            .and_then(|profile| profile.queue.as_deref());
        let home = queue.unwrap_or(fieldline_core::ingest::MAIN_QUEUE);
        let index = fieldline_core::ingest::partition_index(subject.entity.id, self.worker.local.partitions);
        *self.worker.queue.name == *home && index == self.handle.partition.index
    }

    /// Queues messages beside what is going on; it is done with when they are there.
    pub(super) fn send(&mut self, tenant: TenantId, messages: Vec<QueueMessage>) {
        let services = self.worker.shared.services.clone();
        let work = async move { fields::push(&services, tenant, messages).await };
        self.run_beside(tenant, work);
    }

    /// Does work beside what is going on; the message is done with when that is done, too.
    pub(super) fn run_beside(
        &mut self,
        tenant: TenantId,
        work: impl Future<Output = StoreResult<()>> + Send + 'static,
    ) {
        self.begin();
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
        self.push(WalkTask::Result(waiting, None, tenant));
    }

    /// Tells the fields of other entities that look at values of this one.
    fn spread_elsewhere(&mut self, fields: &Arc<TenantFields>, event: &FieldEvent) {
        let (subject, now) = (event.subject, self.worker.now_ms());
        let mut messages = Vec::new();
        let mut tell = |entry: &Arc<RegisteredField>, owner: Option<EntityId>| {
            let page = fields::is_profile(entry.entity).then_some(ProfilePage { number: 0, owner });
            let task = FieldTask {
                field: Some(entry.id),
                event: event.clone(),
                page,
            };
            messages.push(task.message(entry.entity, now));
        };
        for entry in fields.naming(subject.entity) {
            let is_named = |of: &DependencySource| *of == DependencySource::Entity(subject.entity);
            if !event.comes_from(entry.id)
                && entry
                    .affected_arguments(event)
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
                if !event.comes_from(entry.id)
                    && entry
                        .affected_arguments(event)
                        .any(|watch| watch.source == DependencySource::Owner)
                {
                    tell(entry, Some(subject.entity));
                }
            }
        }
        if !messages.is_empty() {
            self.send(subject.tenant, messages);
        }
        for entry in fields.of_relations() {
            if event.comes_from(entry.id) {
                continue;
            }
            let mut paths: Vec<Arc<[RelationLevel]>> = Vec::new();
            for watch in entry.affected_arguments(event) {
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
                    self.worker.shared.services.clone(),
                    entry.clone(),
                    paths,
                    event.clone(),
                    now,
                );
                self.run_beside(subject.tenant, work);
            }
        }
    }
}
