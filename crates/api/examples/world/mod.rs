//! What the examples measure: stores in a directory of their own, with the demo tenant and devices.

#![allow(dead_code, reason = "no example needs all of it")]

use std::sync::Arc;

use fieldline_core::access::Principal;
use fieldline_core::clock::{Clock as _, SystemClock};
use fieldline_core::entity_query::{Deps, EntityQueries};
use fieldline_core::events::EntityEvents;
use fieldline_core::live::LiveStore;
use fieldline_core::password::Passwords;
use fieldline_core::ports::{
    EntityStores, NoRuleEngine, NoRuleNodes, RowParts, TelemetryRow, TimeSeriesStore,
};
use fieldline_core::services::{Context, seed};
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, Subject};
use fieldline_storage::series::{self, SeriesStore};
use fieldline_storage::sql;

/// See the module.
pub(crate) struct World {
    pub(crate) clock: Arc<SystemClock>,
    pub(crate) stores: EntityStores,
    pub(crate) live: Arc<LiveStore>,
    pub(crate) queries: Arc<EntityQueries>,
    pub(crate) context: Context,
    /// The administrator of the demo tenant.
    pub(crate) who: Principal,
    pub(crate) subjects: Vec<Subject>,
    _dir: tempfile::TempDir,
}

impl World {
    /// With so many devices, `Device 000000` and so on.
    pub(crate) async fn with(devices: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock);
        let path = dir.path().join("entities.db");
        let database = sql::Database::sqlite(&path, &sql::Options::default())
            .await
            .unwrap();
        let stores = database.entity_stores();
        let store = SeriesStore::open(
            &dir.path().join("series"),
            &series::Options::default(),
            clock.clone(),
        )
        .unwrap();
        let live = LiveStore::new(store.clone(), store.clone(), store.clone(), store.clone());
        let queries = EntityQueries::new(
            Deps {
                stores: stores.clone(),
                rows: database.entity_rows(),
                values: store.clone(),
                attributes: store,
                clock: clock.clone(),
            },
            256 << 20,
        );
        let events = Arc::new(EntityEvents::default());
        events.listen(queries.entity_listener());
        live.listen(queries.value_listener());
        let context = Context {
            stores: stores.clone(),
            series: live.clone(),
            attributes: live.clone(),
            events,
            clock: clock.clone(),
            passwords: Passwords::new(1),
            rule_engine: Arc::new(NoRuleEngine),
            rule_nodes: Arc::new(NoRuleNodes),
        };
        seed::seed_demo(&context).await.unwrap();
        let user = stores.users.by_email("tenant@thingsboard.org").await;
        let who = Principal::of(&user.unwrap().unwrap());
        let profile = stores.device_profiles.default_profile(who.tenant).await;
        let profile = profile.unwrap().unwrap();
        let mut subjects = Vec::with_capacity(devices);
        for number in 0..devices {
            let id = DeviceId::new();
            let device = Device {
                id: Some(id),
                created_time: clock.now_ms(),
                tenant_id: who.tenant,
                name: format!("Device {number:06}"),
                device_profile_id: profile.id,
                ..Device::default()
            };
            stores.devices.save(device, true).await.unwrap();
            subjects.push(Subject::device(who.tenant, id));
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

    /// Stores the same packed values of some devices.
    pub(crate) async fn store(&self, subjects: &[Subject], ts: i64, values: &[u8]) {
        let row = |subject: &Subject| TelemetryRow {
            subject: *subject,
            ts,
            ttl_seconds: 0,
            parts: RowParts::LATEST,
            values,
        };
        let rows: Vec<TelemetryRow<'_>> = subjects.iter().map(row).collect();
        if !rows.is_empty() {
            TimeSeriesStore::save(self.live.as_ref(), &rows).await.unwrap();
        }
    }
}
