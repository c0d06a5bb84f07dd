//! Stores in memory for unit tests: as much of them as devices need, failing where a test says so.

mod calculated_fields;
mod ota;
mod rpc;
pub use self::ota::FakePackages;
pub use self::rpc::FakeCalls;

mod absent;
mod absent_mqtt_clients;
mod absent_people;
mod absent_resources;
mod absent_rules;
mod absent_widgets;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::any_entity::EntityKind;
use fieldline_core::ports::{
    AssignableStore, AttributeRow, AttributeStore, DeviceCredentialsStore, DeviceFilter, DeviceProfileStore,
    DeviceStore, EntityStore, EntityStores, ImportRow, ImportValueStore, PointsPage, ProfileStore,
    SeriesDeletion, StoreError, StoreErrorKind, StoreResult, TelemetryRow, TenantEntityStore,
    TenantProfileStore, TenantStore, TimeSeriesStore,
};
use fieldline_model::entity::{
    CredentialsType, Device, DeviceCredentials, DeviceInfo, DeviceProfile, Tenant, TenantProfile,
};
use fieldline_model::kv::{KvValue, unpack};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::timeseries::{
    Aggregation, AggregationBucket, Attribute, AttributeScope, DataPoint, LatestValue, RangeQuery,
};
use fieldline_model::{DeviceId, DeviceProfileId, EntityKey, TenantId, TenantProfileId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::json;

/// A call that a test may watch, or have fail. Reads are shown after, writes before they are done.
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum Call<'a> {
    ListTenants,
    ListActive,
    FindCredentials,
    ReadDevices,
    GetProfile,
    GetAttributes(EntityKey),
    SaveAttributes(&'a [EntityKey]),
    SetActive(&'a [(DeviceId, bool)]),
}

type Watcher = Arc<dyn Fn(Call<'_>) -> StoreResult<()> + Send + Sync>;

/// One tenant with one device profile and its devices.
pub struct FakeStores {
    /// The tenant.
    pub tenant: TenantId,
    /// The profile of all devices.
    pub profile: DeviceProfileId,
    tenant_profile: TenantProfileId,
    watcher: Mutex<Option<Watcher>>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    devices: BTreeMap<DeviceId, Stored>,
    attributes: FxHashMap<EntityKey, BTreeMap<String, KvValue>>,
    latest: FxHashMap<EntityKey, i64>,
    ttl_days: u32,
}

struct Stored {
    token: String,
    listed: bool,
}

impl FakeStores {
    /// A tenant without devices.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            tenant: TenantId::new(),
            profile: DeviceProfileId::new(),
            tenant_profile: TenantProfileId::new(),
            watcher: Mutex::default(),
            held: Mutex::default(),
        })
    }

    /// These stores as those of the platform.
    pub fn entities(self: &Arc<Self>) -> EntityStores {
        EntityStores {
            tenants: self.clone(),
            tenant_profiles: self.clone(),
            customers: Arc::new(absent::Absent),
            calculated_fields: Arc::new(calculated_fields::NoFields),
            users: Arc::new(absent::Absent),
            devices: self.clone(),
            device_transfers: Arc::new(absent::Absent),
            device_profiles: self.clone(),
            device_credentials: self.clone(),
            assets: Arc::new(absent::Absent),
            asset_profiles: Arc::new(absent::Absent),
            entity_views: Arc::new(absent::Absent),
            relations: Arc::new(absent::Absent),
            alarms: Arc::new(absent::Absent),
            rpcs: Arc::new(FakeCalls::default()),
            dashboards: Arc::new(absent::Absent),
            versions: Arc::new(absent::Absent),
            set_aside: Arc::new(absent::Absent),
            settings: Arc::new(absent::Absent),
            audit: Arc::new(absent::Absent),
            api_keys: Arc::new(absent::Absent),
            sign_ins: Arc::new(absent::Absent),
            mqtt_clients: Arc::new(absent::Absent),
            shared_subscriptions: Arc::new(absent::Absent),
            ota_packages: FakePackages::new(self.tenant),
            ota_updates: Arc::new(absent::Absent),
            resources: Arc::new(absent::Absent),
            widget_types: Arc::new(absent::Absent),
            widgets_bundles: Arc::new(absent::Absent),
            rule_chains: Arc::new(absent::Absent),
            queues: Arc::new(absent::Absent),
            events: Arc::new(absent::Absent),
            housekeeper: Arc::new(absent::Absent),
        }
    }

    /// Has all further calls shown to a test.
    pub fn watch(&self, watcher: impl Fn(Call<'_>) -> StoreResult<()> + Send + Sync + 'static) {
        *self.watcher.lock() = Some(Arc::new(watcher));
    }

    /// Ends it.
    pub fn unwatch(&self) {
        *self.watcher.lock() = None;
    }

    /// Adds a device with an access token.
    pub fn add_device(&self, token: &str) -> EntityKey {
        let id = DeviceId::new();
        let stored = Stored {
            token: token.to_owned(),
            listed: false,
        };
        self.held.lock().devices.insert(id, stored);
        EntityKey::device(self.tenant, id)
    }

    /// Replaces the access token of a device.
    pub fn set_token(&self, device: DeviceId, token: &str) {
        if let Some(stored) = self.held.lock().devices.get_mut(&device) {
            token.clone_into(&mut stored.token);
        }
    }

    /// Lists a device as active, or as inactive.
    pub fn set_listed(&self, device: EntityKey, listed: bool) {
        if let Some(stored) = self.held.lock().devices.get_mut(&DeviceId(device.entity.id)) {
            stored.listed = listed;
        }
    }

    /// Whether a device is listed as active.
    pub fn is_listed(&self, device: EntityKey) -> bool {
        let held = self.held.lock();
        let stored = held.devices.get(&DeviceId(device.entity.id));
        stored.is_some_and(|stored| stored.listed)
    }

    /// Sets an attribute of a device.
    pub fn set_attribute(&self, device: EntityKey, key: &str, value: KvValue) {
        let mut held = self.held.lock();
        let attributes = held.attributes.entry(device).or_default();
        attributes.insert(key.to_owned(), value);
    }

    /// An attribute of a device.
    pub fn attribute(&self, device: EntityKey, key: &str) -> Option<KvValue> {
        self.held.lock().attributes.get(&device)?.get(key).cloned()
    }

    /// Sets the time of the newest value of a device.
    pub fn set_latest(&self, device: EntityKey, ts: i64) {
        self.held.lock().latest.insert(device, ts);
    }

    /// Sets how long the profile of the devices keeps values.
    pub fn set_ttl_days(&self, days: u32) {
        self.held.lock().ttl_days = days;
    }

    fn show(&self, call: Call<'_>) -> StoreResult<()> {
        let watcher = self.watcher.lock().clone();
        watcher.map_or(Ok(()), |watcher| watcher(call))
    }

    fn device(&self, id: DeviceId) -> Device {
        Device {
            id,
            tenant_id: self.tenant,
            device_profile_id: Some(self.profile),
            ..Device::default()
        }
    }

    fn shown(&self, id: DeviceId, stored: &Stored) -> DeviceInfo {
        DeviceInfo {
            device: self.device(id),
            customer_title: None,
            customer_is_public: false,
            device_profile_name: "default".to_owned(),
            active: stored.listed,
        }
    }
}

/// An error of a kind.
pub fn failure(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "told to fail")
}

/// What no test asks for.
fn absent<T>() -> StoreResult<T> {
    Err(StoreError::new(StoreErrorKind::Invalid, "not in this store"))
}

#[async_trait]
impl TenantStore for FakeStores {
    async fn get(&self, id: TenantId) -> StoreResult<Option<Tenant>> {
        Ok((id == self.tenant).then(|| Tenant {
            id,
            tenant_profile_id: Some(self.tenant_profile),
            ..Tenant::default()
        }))
    }
    async fn list(&self, page: &PageLink) -> StoreResult<PageData<Tenant>> {
        self.show(Call::ListTenants)?;
        let tenant = TenantStore::get(self, self.tenant).await?;
        Ok(PageData::new(tenant.into_iter().collect(), 1, page))
    }
    async fn by_ids(&self, _: &[TenantId]) -> StoreResult<Vec<Tenant>> {
        absent()
    }
    async fn delete(&self, _: TenantId) -> StoreResult<bool> {
        absent()
    }
}

#[async_trait]
impl TenantProfileStore for FakeStores {
    async fn get(&self, id: TenantProfileId) -> StoreResult<Option<TenantProfile>> {
        Ok((id == self.tenant_profile).then(TenantProfile::default))
    }
    async fn default_profile(&self) -> StoreResult<Option<TenantProfile>> {
        absent()
    }
    async fn set_default(&self, _: TenantProfileId) -> StoreResult<bool> {
        absent()
    }
    async fn list(&self, _: &PageLink) -> StoreResult<PageData<TenantProfile>> {
        absent()
    }
    async fn delete(&self, _: TenantProfileId) -> StoreResult<bool> {
        absent()
    }
}

#[async_trait]
impl<E: EntityKind> EntityStore<E> for FakeStores {
    async fn insert(&self, _: E) -> StoreResult<E> {
        absent()
    }
    async fn update(&self, _: E) -> StoreResult<E> {
        absent()
    }
}

#[async_trait]
impl TenantEntityStore<Device> for FakeStores {
    async fn get(&self, tenant: TenantId, id: DeviceId) -> StoreResult<Option<Device>> {
        self.show(Call::ReadDevices)?;
        let known = tenant == self.tenant && self.held.lock().devices.contains_key(&id);
        Ok(known.then(|| self.device(id)))
    }
    async fn by_ids(&self, tenant: TenantId, ids: &[DeviceId]) -> StoreResult<Vec<Device>> {
        self.show(Call::ReadDevices)?;
        let known = |id: &&DeviceId| tenant == self.tenant && self.held.lock().devices.contains_key(*id);
        Ok(ids.iter().filter(known).map(|id| self.device(*id)).collect())
    }
    async fn delete(&self, _: TenantId, _: DeviceId) -> StoreResult<bool> {
        absent()
    }
    async fn count(&self, _: TenantId) -> StoreResult<u64> {
        absent()
    }
}

#[async_trait]
impl TenantEntityStore<DeviceProfile> for FakeStores {
    async fn get(&self, tenant: TenantId, id: DeviceProfileId) -> StoreResult<Option<DeviceProfile>> {
        let ttl_days = self.held.lock().ttl_days;
        self.show(Call::GetProfile)?;
        Ok(
            (tenant == self.tenant && id == self.profile).then(|| DeviceProfile {
                id,
                tenant_id: tenant,
                profile_data: json!({"configuration": {"defaultStorageTtlDays": ttl_days}}),
                ..DeviceProfile::default()
            }),
        )
    }
    async fn by_ids(&self, _: TenantId, _: &[DeviceProfileId]) -> StoreResult<Vec<DeviceProfile>> {
        absent()
    }
    async fn delete(&self, _: TenantId, _: DeviceProfileId) -> StoreResult<bool> {
        absent()
    }
    async fn count(&self, _: TenantId) -> StoreResult<u64> {
        absent()
    }
}

#[async_trait]
impl AssignableStore<Device> for FakeStores {
    async fn by_names(&self, _: TenantId, _: &[&str]) -> StoreResult<Vec<Device>> {
        absent()
    }
    async fn import(
        &self,
        _: Vec<ImportRow<Device>>,
        _: &dyn ImportValueStore,
    ) -> StoreResult<Vec<StoreResult<Device>>> {
        absent()
    }
    async fn info(&self, tenant: TenantId, id: DeviceId) -> StoreResult<Option<DeviceInfo>> {
        let held = self.held.lock();
        let stored = held.devices.get(&id).filter(|_| tenant == self.tenant);
        Ok(stored.map(|stored| self.shown(id, stored)))
    }
    async fn by_name(&self, _: TenantId, _: &str) -> StoreResult<Option<Device>> {
        absent()
    }
    async fn list(
        &self,
        tenant: TenantId,
        filter: &DeviceFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<DeviceInfo>> {
        let held = self.held.lock();
        let found: Vec<_> = held
            .devices
            .iter()
            .filter(|(_, stored)| {
                tenant == self.tenant && filter.active.is_none_or(|active| stored.listed == active)
            })
            .map(|(id, stored)| self.shown(*id, stored))
            .collect();
        let total = found.len() as u64;
        let size = page.page_size as usize;
        let part = found.into_iter().skip(page.offset() as usize).take(size);
        Ok(PageData::new(part.collect(), total, page))
    }
}

#[async_trait]
impl DeviceStore for FakeStores {
    async fn create(&self, _: Device, _: DeviceCredentials) -> StoreResult<Device> {
        absent()
    }
    async fn set_active(&self, changes: &[(DeviceId, bool)]) -> StoreResult<()> {
        self.show(Call::SetActive(changes))?;
        let mut held = self.held.lock();
        for (id, active) in changes {
            if let Some(stored) = held.devices.get_mut(id) {
                stored.listed = *active;
            }
        }
        Ok(())
    }
    async fn active_after(
        &self,
        tenant: TenantId,
        after: Option<(i64, DeviceId)>,
        limit: u32,
    ) -> StoreResult<Vec<(i64, DeviceId)>> {
        self.show(Call::ListActive)?;
        let held = self.held.lock();
        let active = held.devices.iter().filter(|(_, stored)| stored.listed);
        let rest = active
            .map(|(id, _)| (0, *id))
            .filter(|device| after.is_none_or(|after| after < *device) && tenant == self.tenant);
        Ok(rest.take(limit as usize).collect())
    }
}

#[async_trait]
impl ProfileStore<DeviceProfile> for FakeStores {
    async fn by_name(&self, _: TenantId, _: &str) -> StoreResult<Option<DeviceProfile>> {
        absent()
    }
    async fn default_profile(&self, _: TenantId) -> StoreResult<Option<DeviceProfile>> {
        absent()
    }
    async fn set_default(&self, _: TenantId, _: DeviceProfileId) -> StoreResult<bool> {
        absent()
    }
    async fn names(&self, _: TenantId, _: bool) -> StoreResult<Vec<(DeviceProfileId, String)>> {
        absent()
    }
    async fn list(&self, _: TenantId, _: &PageLink) -> StoreResult<PageData<DeviceProfile>> {
        absent()
    }
}

#[async_trait]
impl DeviceProfileStore for FakeStores {
    async fn by_provision_key(&self, _: &str) -> StoreResult<Option<DeviceProfile>> {
        absent()
    }
}

#[async_trait]
impl DeviceCredentialsStore for FakeStores {
    async fn save(&self, _: TenantId, _: DeviceCredentials) -> StoreResult<DeviceCredentials> {
        absent()
    }
    async fn get(&self, _: TenantId, _: DeviceId) -> StoreResult<Option<DeviceCredentials>> {
        absent()
    }
    async fn find(
        &self,
        kind: CredentialsType,
        credentials_id: &str,
    ) -> StoreResult<Option<(Device, DeviceCredentials)>> {
        let found = {
            let held = self.held.lock();
            held.devices
                .iter()
                .find(|(_, stored)| kind == CredentialsType::AccessToken && stored.token == credentials_id)
                .map(|(id, stored)| {
                    let credentials = DeviceCredentials::access_token(*id, stored.token.clone(), 0);
                    (self.device(*id), credentials)
                })
        };
        self.show(Call::FindCredentials)?;
        Ok(found)
    }
}

#[async_trait]
impl AttributeStore for FakeStores {
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        self.save_relaxed(rows).await
    }
    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        let subjects: Vec<_> = rows.iter().map(|row| row.subject).collect();
        self.show(Call::SaveAttributes(&subjects))?;
        for row in rows {
            for (key, value) in unpack(row.values).flatten() {
                self.set_attribute(row.subject, key, value.to_value());
            }
        }
        Ok(())
    }
    async fn get(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        let stored = self
            .held
            .lock()
            .attributes
            .get(&subject)
            .cloned()
            .unwrap_or_default();
        self.show(Call::GetAttributes(subject))?;
        Ok(stored
            .into_iter()
            .filter(|(key, _)| scope == AttributeScope::Server && keys.is_none_or(|keys| keys.contains(key)))
            .map(|(key, value)| Attribute {
                key,
                value,
                last_update_ts: 0,
            })
            .collect())
    }
    async fn delete(
        &self,
        subject: EntityKey,
        _: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>> {
        let mut held = self.held.lock();
        let attributes = held.attributes.entry(subject).or_default();
        let gone = keys.iter().filter(|key| attributes.remove(*key).is_some());
        Ok(gone.cloned().collect())
    }
}

#[async_trait]
impl TimeSeriesStore for FakeStores {
    async fn save(&self, _: &[TelemetryRow<'_>]) -> StoreResult<()> {
        Ok(())
    }
    async fn keys(&self, _: EntityKey) -> StoreResult<Vec<String>> {
        absent()
    }
    async fn latest(&self, subject: EntityKey, _: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
        let latest = self.held.lock().latest.get(&subject).copied();
        Ok(latest
            .map(|ts| LatestValue {
                key: "key".to_owned(),
                point: DataPoint {
                    ts,
                    value: KvValue::Bool(true),
                },
            })
            .into_iter()
            .collect())
    }
    async fn page(&self, _: EntityKey, _: &str, _: RangeQuery, _: usize) -> StoreResult<PointsPage> {
        absent()
    }
    async fn aggregate(
        &self,
        _: EntityKey,
        _: &str,
        _: Aggregation,
        _: &[AggregationBucket],
    ) -> StoreResult<Vec<DataPoint>> {
        absent()
    }
    async fn delete(&self, _: EntityKey, _: &[String], _: SeriesDeletion) -> StoreResult<()> {
        absent()
    }
}
