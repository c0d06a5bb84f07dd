//! The calculated fields in force of all tenants, and the entities that an update of a value concerns.
//!
//! A field belongs to an entity, or to a profile and so to all its entities. The state of one entity under a field is
//! kept in the entity's own partition: its events, and those of other entities that the field reads, are sent there as
//! messages of their own ([`FieldTask`]).

pub mod event;
pub mod registered_field;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::in_flight::{InFlightTracker, LoadInHand, LoadNote};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{CalculatedFieldFilter, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::CalculatedField;
use fieldline_model::entity::calculated_field::CalculatedFieldLimits;
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, EntityType, TenantId, new_uuid};
use rustc_hash::{FxHashMap, FxHashSet};
use tracing::warn;

pub use self::event::{FIELD_MESSAGE, FieldEvent, FieldEventKind, FieldTask, ProfilePage};
pub use self::registered_field::{DependencySource, FieldDependency, FieldLogic, RegisteredField};
use crate::deletions::{Deletion, DeletionLog};
use crate::events::{EventRecorder, LifecycleChange};
use crate::services::NodeServices;
use crate::tenant_cache::{StaleParts, TenantCache, TenantEpoch, TenantLoader};

const PAGE: u32 = 1000;
static GATE: LogGate = LogGate::new(1);

/// The fields of one tenant.
#[derive(Debug, Default)]
pub struct TenantFields {
    fields: FxHashMap<CalculatedFieldId, Arc<RegisteredField>>,
    by_entity: FxHashMap<EntityId, Vec<Arc<RegisteredField>>>,
    by_source: FxHashMap<EntityId, Vec<Arc<RegisteredField>>>,
    of_owners: Vec<Arc<RegisteredField>>,
    of_relations: Vec<Arc<RegisteredField>>,
    series: FxHashSet<Box<str>>,
    attributes: FxHashMap<Box<str>, u8>,
    /// Time to live of a field's points if the field sets none, seconds; 0 for ever.
    pub ttl_seconds: u32,
}

impl TenantFields {
    fn of(fields: FxHashMap<CalculatedFieldId, Arc<RegisteredField>>, ttl_seconds: u32) -> Self {
        let mut index = Self {
            ttl_seconds,
            ..Self::default()
        };
        for entry in fields.values() {
            index
                .by_entity
                .entry(entry.entity)
                .or_default()
                .push(entry.clone());
            let (mut owner, mut relations) = (false, false);
            let mut sources = FxHashSet::default();
            for watch in &entry.dependencies {
                match &watch.source {
                    DependencySource::Own => {}
                    DependencySource::Entity(entity) => {
                        sources.insert(*entity);
                    }
                    DependencySource::Owner => owner = true,
                    DependencySource::Path(_) | DependencySource::Related => relations = true,
                }
                match watch.scope {
                    None => {
                        index.series.insert(watch.key.clone());
                    }
                    Some(scope) => {
                        *index.attributes.entry(watch.key.clone()).or_default() |= 1 << scope as u8;
                    }
                }
            }
            for source in sources {
                index.by_source.entry(source).or_default().push(entry.clone());
            }
            if owner {
                index.of_owners.push(entry.clone());
            }
            if relations {
                index.of_relations.push(entry.clone());
            }
        }
        index.fields = fields;
        index
    }

    /// Whether the tenant has no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The field with this id.
    pub fn get(&self, id: CalculatedFieldId) -> Option<&Arc<RegisteredField>> {
        self.fields.get(&id)
    }

    /// All fields.
    pub fn all(&self) -> impl Iterator<Item = &Arc<RegisteredField>> {
        self.fields.values()
    }

    /// Whether any field reads a series, or an attribute of a scope, with that name.
    pub fn watches(&self, scope: Option<AttributeScope>, key: &str) -> bool {
        match scope {
            None => self.series.contains(key),
            Some(scope) => self
                .attributes
                .get(key)
                .is_some_and(|scopes| scopes & (1 << scope as u8) != 0),
        }
    }

    /// The fields of an entity and of its profile.
    pub fn of_entity(
        &self,
        entity: EntityId,
        profile: Option<EntityId>,
    ) -> impl Iterator<Item = &Arc<RegisteredField>> {
        let of_profile = profile.and_then(|profile| self.by_entity.get(&profile));
        self.by_entity
            .get(&entity)
            .into_iter()
            .chain(of_profile)
            .flatten()
    }

    /// The fields with an argument that names the entity.
    pub fn naming(&self, entity: EntityId) -> &[Arc<RegisteredField>] {
        self.by_source.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// The fields that read values of owners.
    pub fn of_owners(&self) -> &[Arc<RegisteredField>] {
        &self.of_owners
    }

    /// The fields that read values of related entities.
    pub fn of_relations(&self) -> &[Arc<RegisteredField>] {
        &self.of_relations
    }
}

/// The fields of all tenants. They are compiled when first needed and whenever they are saved.
pub struct FieldRegistry {
    services: Arc<NodeServices>,
    events: Arc<EventRecorder>,
    tenants: TenantCache<TenantFields, CalculatedFieldId>,
    deletions: Arc<DeletionLog>,
    in_flight: OnceLock<Arc<InFlightTracker>>,
}

impl FieldRegistry {
    /// An empty registry, which records deleted fields in `gone`.
    pub fn new(services: Arc<NodeServices>, events: Arc<EventRecorder>, gone: Arc<DeletionLog>) -> Arc<Self> {
        Arc::new(Self {
            services,
            events,
            tenants: TenantCache::default(),
            deletions: gone,
            in_flight: OnceLock::new(),
        })
    }

    /// Makes the registry note each compilation, and leave out fields that the process has died of.
    pub(crate) fn note_loads(&self, in_hand: &Arc<InFlightTracker>) {
        // A second call has no effect.
        let _ = self.in_flight.set(in_hand.clone());
    }

    /// The current epoch of a tenant's fields; a caller that caches them reads them again when the epoch is over.
    pub fn epoch(&self, tenant: TenantId) -> TenantEpoch {
        self.tenants.epoch(tenant)
    }

    /// The tenant's current fields.
    ///
    /// # Errors
    /// The store failed.
    pub async fn tenant(&self, tenant: TenantId) -> StoreResult<Arc<TenantFields>> {
        self.tenants.get(tenant, self).await
    }

    /// Records deleted fields, so that workers drop their states.
    fn record_deletions(&self, before: Option<&TenantFields>, now: &TenantFields) {
        for entry in before.into_iter().flat_map(TenantFields::all) {
            if now.get(entry.id).is_none() {
                self.deletions.note(Deletion::Keeper(entry.id.0));
            }
        }
    }

    async fn add(
        &self,
        tenant: TenantId,
        field: &CalculatedField,
        limits: &CalculatedFieldLimits,
        is_new: bool,
        fields: &mut FxHashMap<CalculatedFieldId, Arc<RegisteredField>>,
    ) {
        let entry = match self.begin_load(tenant, field).await {
            Ok(note) => {
                let entry = RegisteredField::new(field, limits);
                if let Some(note) = note {
                    note.finish();
                }
                entry
            }
            Err(why) => return self.leave_out(tenant, field, &why),
        };
        let Some(entry) = entry else {
            return;
        };
        if let Some(problem) = entry.problem() {
            warn!(%tenant, field = %entry.id, name = %entry.name, problem, "calculated field cannot be used");
            let life = if is_new {
                LifecycleChange::Started
            } else {
                LifecycleChange::Updated
            };
            self.events
                .lifecycle(tenant, entry.id.into(), life, Some(problem));
        }
        fields.insert(entry.id, Arc::new(entry));
    }

    /// Notes that a field is being compiled; an error says why it must not be.
    async fn begin_load(
        &self,
        tenant: TenantId,
        field: &CalculatedField,
    ) -> Result<Option<LoadNote>, Box<str>> {
        let Some(in_hand) = self.in_flight.get() else {
            return Ok(None);
        };
        let load = LoadInHand {
            tenant,
            id: field.id.0,
            version: field.version.unwrap_or_default(),
        };
        in_hand.begin_load(load).await.map(Some)
    }

    fn leave_out(&self, tenant: TenantId, field: &CalculatedField, why: &str) {
        warn!(%tenant, field = %field.id, name = %field.name, why, "calculated field is left out");
        self.events
            .lifecycle(tenant, field.id.into(), LifecycleChange::Started, Some(why));
    }

    async fn limits(&self, tenant: TenantId) -> StoreResult<(CalculatedFieldLimits, u32)> {
        let stores = &self.services.stores;
        let profile = match stores
            .tenants
            .get(tenant)
            .await?
            .and_then(|tenant| tenant.tenant_profile_id)
        {
            Some(id) => stores.tenant_profiles.get(id).await?,
            None => None,
        };
        let Some(profile) = profile else {
            return Ok((CalculatedFieldLimits::default(), 0));
        };
        Ok((CalculatedFieldLimits::of(&profile), profile.storage_ttl_seconds()))
    }

    /// Handles a change of an entity.
    pub fn on_change(self: &Arc<Self>, change: EntityChange) {
        let EntityKey { tenant, entity } = change.subject;
        match (entity.entity_type, change.what) {
            (_, ChangeKind::CalculatedField(field)) => {
                self.tenants.mark_stale(tenant, Some(field));
                let book = Arc::clone(self);
                self.services.runtime.spawn(async move {
                    if let Err(error) = book.start(tenant, entity, field).await {
                        warn!(%tenant, %field, %error, "a calculated field begins with the next value only");
                    }
                });
            }
            (EntityType::Tenant, ChangeKind::Saved) => self.tenants.mark_stale(tenant, None),
            (EntityType::TenantProfile, ChangeKind::Saved | ChangeKind::Deleted) => {
                for tenant in self.tenants.all() {
                    self.tenants.mark_stale(tenant, None);
                }
            }
            (EntityType::Tenant, ChangeKind::Deleted) => {
                self.tenants.forget(tenant);
            }
            _ => {}
        }
    }

    /// Triggers the evaluation of a saved field with the values that are stored already.
    async fn start(&self, tenant: TenantId, entity: EntityId, field: CalculatedFieldId) -> StoreResult<()> {
        let fields = self.tenant(tenant).await?;
        if fields.get(field).is_none_or(|entry| entry.problem().is_some()) {
            return Ok(());
        }
        let task = FieldTask {
            field: Some(field),
            event: FieldEvent {
                subject: EntityKey { tenant, entity },
                change: FieldEventKind::Started,
                msg: new_uuid(),
                kind: "CALCULATED_FIELD".into(),
                previous: Arc::default(),
            },
            page: is_profile(entity).then_some(ProfilePage {
                number: 0,
                owner: None,
            }),
        };
        let message = task.message(entity, self.services.now_ms());
        push(&self.services, tenant, vec![message]).await
    }
}

#[async_trait]
impl TenantLoader<TenantFields, CalculatedFieldId> for FieldRegistry {
    async fn load(
        &self,
        tenant: TenantId,
        before: Option<&TenantFields>,
        stale: Option<&StaleParts<CalculatedFieldId>>,
    ) -> StoreResult<TenantFields> {
        let (limits, ttl_seconds) = self.limits(tenant).await?;
        let stores = &self.services.stores;
        let current = before.zip(stale).filter(|(_, stale)| !stale.everything);
        let Some((before, stale)) = current else {
            let mut fields = FxHashMap::default();
            for page in 0.. {
                let link = PageLink {
                    page,
                    page_size: PAGE,
                    ..PageLink::default()
                };
                let filter = CalculatedFieldFilter::default();
                let found = stores.calculated_fields.list(tenant, &filter, &link).await?;
                for info in found.data {
                    let is_new = before.is_none_or(|before| before.get(info.field.id).is_none());
                    self.add(tenant, &info.field, &limits, is_new, &mut fields).await;
                }
                if !found.has_next {
                    break;
                }
            }
            return Ok(TenantFields::of(fields, ttl_seconds));
        };
        let mut fields = before.fields.clone();
        for id in &stale.parts {
            let is_new = fields.remove(id).is_none();
            if let Some(field) = stores.calculated_fields.get(tenant, *id).await? {
                self.add(tenant, &field, &limits, is_new, &mut fields).await;
            }
        }
        Ok(TenantFields::of(fields, ttl_seconds))
    }

    fn activate(&self, tenant: TenantId, before: Option<&TenantFields>, now: &Arc<TenantFields>) {
        self.record_deletions(before, now);
        for entry in before.into_iter().flat_map(TenantFields::all) {
            if now.get(entry.id).is_none_or(|other| !Arc::ptr_eq(entry, other)) {
                self.services.scripts.cancel_owner(tenant, entry.id.into());
            }
        }
    }
}

/// Whether the entity is a profile, whose fields belong to its entities.
pub fn is_profile(entity: EntityId) -> bool {
    matches!(
        entity.entity_type,
        EntityType::DeviceProfile | EntityType::AssetProfile
    )
}

/// Appends messages to the queues, several at once, until all are there. Messages that a queue refuses as invalid are
/// left out.
///
/// # Errors
/// The queues have accepted nothing for too long.
pub async fn push(
    services: &Arc<NodeServices>,
    tenant: TenantId,
    messages: Vec<fieldline_model::message::QueueMessage>,
) -> StoreResult<()> {
    use futures::{StreamExt as _, TryStreamExt as _};
    const AT_ONCE: usize = 64;
    const PUSH_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);
    let deadline = tokio::time::Instant::now() + PUSH_TIMEOUT;
    let one = |message: fieldline_model::message::QueueMessage| async move {
        loop {
            match services.engine.push(tenant, message.clone()).await {
                Ok(()) => return Ok::<(), StoreError>(()),
                Err(error) if error.kind() == StoreErrorKind::Invalid => {
                    if let Some(suppressed) = GATE.open() {
                        warn!(%tenant, %error, suppressed, "news for a calculated field is too large");
                    }
                    return Ok(());
                }
                Err(error) if tokio::time::Instant::now() >= deadline => return Err(error),
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    futures::stream::iter(messages.into_iter().map(one))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await
}
