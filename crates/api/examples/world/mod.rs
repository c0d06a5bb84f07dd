//! Setup of the examples: stores in a directory of their own, with the demo tenant and devices.

#![allow(dead_code, reason = "no example needs all of it")]

#[path = "../../tests/support/stores.rs"]
mod stores;

use std::sync::Arc;

use fieldline_core::clock::{Clock as _, SystemClock};
use fieldline_core::observed_store::ObservedStore;
use fieldline_core::ports::{
    EntityStores, NoRuleNodes, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore,
};
use fieldline_entities::access::Principal;
use fieldline_entities::entity_query::EntityQueryService;
use fieldline_entities::services::ServiceContext;
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, EntityKey};

use self::stores::FixtureStores;

/// The stores of an example; see the module.
pub(crate) struct ExampleFixture {
    pub(crate) clock: Arc<SystemClock>,
    pub(crate) stores: EntityStores,
    pub(crate) live: Arc<ObservedStore>,
    pub(crate) queries: Arc<EntityQueryService>,
    pub(crate) context: ServiceContext,
    /// The administrator of the demo tenant.
    pub(crate) who: Principal,
    pub(crate) subjects: Vec<EntityKey>,
    _dir: tempfile::TempDir,
}

impl ExampleFixture {
    /// Creates that many devices, `Device 000000` and so on.
    pub(crate) async fn with(devices: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock);
        let FixtureStores {
            live,
            queries,
            context,
            ..
        } = FixtureStores::open(dir.path(), clock.clone(), Arc::new(NoRuleNodes), 256 << 20).await;
        let stores = context.stores.clone();
        let user = stores.users.by_email("tenant@thingsboard.org").await;
        let who = Principal::of(&user.unwrap().unwrap());
        let profile = stores.device_profiles.default_profile(who.tenant).await;
        let profile = profile.unwrap().unwrap();
        let mut subjects = Vec::with_capacity(devices);
        for number in 0..devices {
            let id = DeviceId::new();
            let device = Device {
                id,
                created_time: clock.now_ms(),
                tenant_id: who.tenant,
                name: format!("Device {number:06}"),
                device_profile_id: Some(profile.id),
                ..Device::default()
            };
            stores.devices.insert(device).await.unwrap();
            subjects.push(EntityKey::device(who.tenant, id));
        }
        Self {
            clock,
            stores,
            live,
            queries,
            context,
            who,
            subjects,
            _dir: dir,
        }
    }

    /// Stores the same packed values for some devices.
    pub(crate) async fn store(&self, subjects: &[EntityKey], ts: i64, values: &[u8]) {
        let row = |subject: &EntityKey| TelemetryRow {
            subject: *subject,
            ts,
            ttl_seconds: 0,
            strategy: TelemetrySaveStrategy::LATEST,
            values,
        };
        let rows: Vec<TelemetryRow<'_>> = subjects.iter().map(row).collect();
        if !rows.is_empty() {
            TimeSeriesStore::save(self.live.as_ref(), &rows).await.unwrap();
        }
    }
}
