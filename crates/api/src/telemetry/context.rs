//! Context for saving points: the default time-to-live, and server-assigned timestamps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::clock::MonotonicTimes;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::ports::{EntityStores, StoreResult};
use fieldline_model::{DeviceProfileId, EntityId, EntityType, TenantId};
use quick_cache::sync::Cache;

/// Most tenants, and most device profiles, whose time-to-live is cached.
const CACHED_LIFETIMES: usize = 10_000;

/// Most entities whose last server-assigned timestamp is remembered.
const CACHED_TIMES: usize = 100_000;

/// Caches what saves need; drops entries that may have changed.
pub(crate) struct SaveContext {
    stores: EntityStores,
    tenants: Cache<TenantId, u32>,
    /// `None` if the profile leaves it to the tenant.
    profiles: Cache<DeviceProfileId, Option<u32>>,
    /// Counts the changes, so that a value read before a change is not cached after it.
    changes: AtomicU64,
    times: Cache<EntityId, Arc<MonotonicTimes>>,
}

impl SaveContext {
    /// Creates a context with empty caches.
    pub(crate) fn new(stores: EntityStores) -> Self {
        Self {
            stores,
            tenants: Cache::new(CACHED_LIFETIMES),
            profiles: Cache::new(CACHED_LIFETIMES),
            changes: AtomicU64::new(0),
            times: Cache::new(CACHED_TIMES),
        }
    }

    /// Returns the server-assigned timestamp of a new point: no two saves of an entity get the same one, so that
    /// neither overwrites the other's points.
    pub(super) fn next_time(&self, entity: EntityId, now_ms: i64) -> i64 {
        let times = self
            .times
            .get_or_insert_with(&entity, || Ok::<_, std::convert::Infallible>(Arc::default()));
        match times {
            Ok(times) => times.next(now_ms),
        }
    }

    /// Returns the default time-to-live of an entity's points in seconds: that of its device profile, otherwise that of
    /// the tenant profile; 0 for no expiry.
    pub(super) async fn default_ttl(&self, entity: &AnyEntity) -> StoreResult<u32> {
        let tenant = entity.resource().tenant;
        if tenant.is_null() {
            return Ok(0);
        }
        if let AnyEntity::Device(device) = entity
            && let Some(profile) = device.device_profile_id
            && let Some(seconds) = self.of_profile(tenant, profile).await?
        {
            return Ok(seconds);
        }
        self.of_tenant(tenant).await
    }

    async fn of_profile(&self, tenant: TenantId, id: DeviceProfileId) -> StoreResult<Option<u32>> {
        if let Some(known) = self.profiles.get(&id) {
            return Ok(known);
        }
        let before = self.changes.load(Ordering::Acquire);
        let profile = self.stores.device_profiles.get(tenant, id).await?;
        let seconds = profile.and_then(|profile| profile.storage_ttl_seconds());
        self.profiles.insert(id, seconds);
        if self.changes.load(Ordering::Acquire) != before {
            self.profiles.remove(&id);
        }
        Ok(seconds)
    }

    async fn of_tenant(&self, id: TenantId) -> StoreResult<u32> {
        if let Some(known) = self.tenants.get(&id) {
            return Ok(known);
        }
        let before = self.changes.load(Ordering::Acquire);
        let profile = self.stores.profile_of(id).await?;
        let seconds = profile.map_or(0, |profile| profile.storage_ttl_seconds());
        self.tenants.insert(id, seconds);
        if self.changes.load(Ordering::Acquire) != before {
            self.tenants.remove(&id);
        }
        Ok(seconds)
    }
}

impl EntityListener for SaveContext {
    fn on_change(&self, change: EntityChange) {
        if !matches!(change.what, ChangeKind::Saved | ChangeKind::Deleted) {
            return;
        }
        match change.entity_type() {
            EntityType::DeviceProfile => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.profiles.remove(&DeviceProfileId(change.subject.entity.id));
            }
            EntityType::Tenant => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.tenants.remove(&change.subject.tenant);
            }
            EntityType::TenantProfile => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.tenants.clear();
            }
            _ => {}
        }
    }
}
