//! Both stores together: what is left of deleted entities goes.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::events::EntityEvents;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, CleanupPass, EventFilter, NoRuleEngine, NoRuleNodes, StoreError,
    StoreErrorKind, StoreResult, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore, ValueRemoval,
    ValueRemovalScope,
};
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::services::{
    HousekeeperService, NameConflict, ServiceContext, Services, TenantTransfer,
};
use fieldline_model::entity::{Customer, Device, EntityEvent, EventBody, EventKind, Tenant};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CustomerId, DeviceId, EntityKey, TenantId};
use fieldline_testkit::clock::ManualClock;
use parking_lot::Mutex;

use crate::series::{self, SeriesStore};
use crate::sql;

const NOW: i64 = 1_700_000_000_000;
const HOUR: i64 = 3_600_000;

struct World {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    series: Arc<SeriesStore>,
    database: sql::EntityDatabase,
    services: Services,
    context: ServiceContext,
    leftovers: Arc<HousekeeperService>,
}

impl World {
    async fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), ManualClock::at(NOW)).await
    }

    async fn open(dir: tempfile::TempDir, clock: Arc<ManualClock>) -> Self {
        let path = dir.path().join("entities.db");
        let database = sql::EntityDatabase::sqlite(&path, &sql::Options::default())
            .await
            .unwrap();
        let options = series::Options::default();
        let series = SeriesStore::open(&dir.path().join("series"), &options, clock.clone()).unwrap();
        let context = ServiceContext {
            stores: database.entity_stores(),
            series: series.clone(),
            attributes: series.clone(),
            events: Arc::new(EntityEvents::default()),
            clock: clock.clone(),
            passwords: PasswordHashPool::new(1),
            rule_engine: Arc::new(NoRuleEngine),
            rule_nodes: Arc::new(NoRuleNodes),
            rest_endpoints: Arc::new(fieldline_core::ports::NoRestEndpoints),
        };
        Self {
            services: Services::new(context.clone()),
            leftovers: HousekeeperService::new(context.clone(), series.clone()),
            dir,
            clock,
            series,
            database,
            context,
        }
    }

    /// Ends everything and opens it again.
    async fn again(self) -> Self {
        self.series.close().unwrap();
        self.database.close().await;
        Self::open(self.dir, self.clock).await
    }

    async fn tenant(&self, title: &str) -> TenantId {
        let tenant = Tenant {
            title: title.into(),
            ..Tenant::default()
        };
        self.services.tenants.save(tenant.into()).await.unwrap().id
    }

    async fn device(&self, tenant: TenantId, name: &str, customer: CustomerId) -> EntityKey {
        let device = Device {
            tenant_id: tenant,
            customer_id: customer,
            name: name.into(),
            device_type: "default".into(),
            ..Device::default()
        };
        let saved = self
            .services
            .devices
            .save(tenant, device.into(), &NameConflict::Fail);
        let saved = saved.await.unwrap();
        EntityKey::device(tenant, saved.id)
    }

    async fn send(&self, whose: EntityKey) {
        let mut values = Vec::new();
        pack("k", KvValue::Long(1).as_ref(), &mut values);
        let row = TelemetryRow {
            subject: whose,
            ts: NOW,
            ttl_seconds: 0,
            strategy: TelemetrySaveStrategy::ALL,
            values: &values,
        };
        TimeSeriesStore::save(&*self.series, &[row]).await.unwrap();
        let row = AttributeRow {
            subject: whose,
            scope: AttributeScope::Client,
            ts: NOW,
            values: &values,
        };
        AttributeStore::save(&*self.series, &[row]).await.unwrap();
        let body = EventBody::Lifecycle {
            event: "STARTED".into(),
            success: true,
            error: None,
        };
        let event = EntityEvent::new(whose.tenant, whose.entity, "test".into(), NOW, body);
        self.context.stores.events.append(&[event]).await.unwrap();
    }

    /// What there is of latest values, attributes and events.
    async fn left(&self, whose: EntityKey) -> (usize, usize, usize) {
        let latest = self.series.latest(whose, None).await.unwrap().len();
        let attributes = AttributeStore::get(&*self.series, whose, AttributeScope::Client, None).await;
        let (filter, page) = (EventFilter::of(EventKind::LcEvent), PageLink::first(9));
        let events = &self.context.stores.events;
        let events = events.list(whose.tenant, whose.entity, &filter, &page).await;
        (latest, attributes.unwrap().len(), events.unwrap().data.len())
    }

    async fn close(self) {
        self.series.close().unwrap();
        self.database.close().await;
    }
}

const ALL: (usize, usize, usize) = (1, 1, 1);
const NOTHING: (usize, usize, usize) = (0, 0, 0);

#[tokio::test(flavor = "multi_thread")]
async fn what_deleted_entities_leave_goes_and_so_does_what_comes_late() {
    let world = World::new().await;
    let (doomed, spared) = (world.tenant("doomed").await, world.tenant("spared").await);
    let customer = Customer {
        tenant_id: spared,
        title: "customer".into(),
        ..Customer::default()
    };
    let customer = world
        .services
        .customers
        .save(spared, customer.into(), &NameConflict::Fail);
    let customer = customer.await.unwrap().id;
    let gone = world.device(doomed, "gone", CustomerId::NULL).await;
    let moved = world.device(doomed, "moved", CustomerId::NULL).await;
    let [deleted, kept] = [
        world.device(spared, "deleted", CustomerId::NULL).await,
        world.device(spared, "kept", customer).await,
    ];
    let whole = EntityKey {
        tenant: doomed,
        entity: doomed.into(),
    };
    let of_customer = EntityKey {
        tenant: spared,
        entity: customer.into(),
    };
    for whose in [gone, deleted, kept, whole, of_customer] {
        world.send(whose).await;
    }
    // What a device has that went to another tenant follows it, however late.
    let moves = TenantTransfer::new(world.context.clone(), world.series.clone());
    let to = world.context.stores.tenants.get(spared).await.unwrap().unwrap();
    let EntityKey { entity, .. } = moved;
    moves.transfer(doomed, DeviceId(entity.id), &to).await.unwrap();
    let late = TelemetryLate(&world, moved);
    late.send().await;

    world.services.tenants.delete(doomed).await.unwrap();
    let id = DeviceId(deleted.entity.id);
    world.services.devices.delete(spared, id).await.unwrap();
    world.services.customers.delete(spared, customer).await.unwrap();
    // Killed before anything was taken away.
    let world = world.again().await;
    world.leftovers.catch_up().await;
    for whose in [gone, whole, deleted, of_customer] {
        assert_eq!(world.left(whose).await, NOTHING, "{whose:?}");
    }
    assert_eq!(world.left(kept).await, ALL);
    let (latest, ..) = world.left(moved).await;
    assert_eq!(latest, 1, "it follows its device");
    assert_eq!(world.context.stores.housekeeper.waiting().await.unwrap(), 0);

    // What the journal still held.
    for whose in [gone, deleted] {
        TelemetryLate(&world, whose).send().await;
    }
    world.leftovers.catch_up().await;
    assert_eq!(world.left(gone).await.0, 1);
    let moves = TenantTransfer::new(world.context.clone(), world.series.clone());
    moves.catch_up().await;
    world.clock.advance(HOUR);
    moves.catch_up().await;
    world.leftovers.catch_up().await;
    for whose in [gone, deleted, moved] {
        assert_eq!(world.left(whose).await, NOTHING, "{whose:?}");
    }
    assert_eq!(
        world
            .left(EntityKey {
                tenant: spared,
                ..moved
            })
            .await
            .0,
        1
    );
    assert_eq!(world.left(kept).await, ALL);
    let due = world
        .context
        .stores
        .housekeeper
        .due(CleanupPass::Last, i64::MAX, 9)
        .await;
    assert_eq!(due.unwrap(), []);
    world.close().await;
}

/// A value that comes for somebody who is gone, or elsewhere.
struct TelemetryLate<'a>(&'a World, EntityKey);

impl TelemetryLate<'_> {
    async fn send(&self) {
        let mut values = Vec::new();
        pack("late", KvValue::Long(1).as_ref(), &mut values);
        let row = TelemetryRow {
            subject: self.1,
            ts: NOW,
            ttl_seconds: 0,
            strategy: TelemetrySaveStrategy::ALL,
            values: &values,
        };
        TimeSeriesStore::save(&*self.0.series, &[row]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_deletion_was_cut_off_goes_all_the_same() {
    let world = World::new().await;
    let doomed = world.tenant("doomed").await;
    let device = world.device(doomed, "device", CustomerId::NULL).await;
    world.send(device).await;
    let whole = EntityKey {
        tenant: doomed,
        entity: doomed.into(),
    };
    world.context.stores.housekeeper.note(&[whole]).await.unwrap();
    let world = world.again().await;
    world.leftovers.catch_up().await;
    assert_eq!(world.left(device).await, NOTHING);
    assert_eq!(world.context.stores.tenants.get(doomed).await.unwrap(), None);
    world.close().await;
}

/// Takes nothing away for one subject.
struct Stubborn {
    real: Arc<SeriesStore>,
    subject: Mutex<Option<EntityKey>>,
}

#[async_trait]
impl ValueRemoval for Stubborn {
    async fn remove(&self, gone: &[ValueRemovalScope], spared: &[EntityKey]) -> StoreResult<()> {
        let refused = self.subject.lock().map(ValueRemovalScope::Subject);
        if refused.is_some_and(|refused| gone.contains(&refused)) {
            return Err(StoreError::new(StoreErrorKind::Corrupt, "as the test wants it"));
        }
        self.real.remove(gone, spared).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_taken_away_is_tried_again_and_keeps_nothing_else() {
    let world = World::new().await;
    let tenant = world.tenant("tenant").await;
    let mut gone = Vec::new();
    for name in ["a", "b", "c"] {
        let device = world.device(tenant, name, CustomerId::NULL).await;
        world.send(device).await;
        let id = DeviceId(device.entity.id);
        world.services.devices.delete(tenant, id).await.unwrap();
        gone.push(device);
    }
    let stubborn = Arc::new(Stubborn {
        real: world.series.clone(),
        subject: Mutex::new(Some(gone[1])),
    });
    let leftovers = HousekeeperService::new(world.context.clone(), stubborn.clone());
    leftovers.catch_up().await;
    for (whose, left) in gone.iter().zip([NOTHING, ALL, NOTHING]) {
        assert_eq!(world.left(*whose).await, left);
    }
    assert_eq!(world.context.stores.housekeeper.waiting().await.unwrap(), 1);
    *stubborn.subject.lock() = None;
    leftovers.catch_up().await;
    assert_eq!(world.left(gone[1]).await, ALL, "not at once");
    world.clock.advance(30_000);
    leftovers.catch_up().await;
    assert_eq!(world.left(gone[1]).await, NOTHING);
    world.close().await;
}
