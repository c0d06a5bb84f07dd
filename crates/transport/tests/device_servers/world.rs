//! A node for tests of the device servers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use fieldline_core::address_guard::{self, AddressGuard};
use fieldline_core::clock::SystemClock;
use fieldline_core::events::EntityEvents;
use fieldline_core::ingest::{self, IngestService, IngestStores, QueueProducer};
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{
    AppendError, ConsumerEvent, Journal as _, JournalConsumer, TimeSeriesStore as _,
};
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::{self, ActivityTracker};
use fieldline_devices::directory::{self, DeviceDirectory};
use fieldline_devices::rpc::DeviceRpcService;
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::services::{self, NameConflict, NewCredentials, seed};
use fieldline_journal::EmbeddedJournal;
use fieldline_model::EntityKey;
use fieldline_model::entity::{Device, Tenant};
use fieldline_model::json::JsonRules;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, rows, split};
use fieldline_model::timeseries::{AttributeScope, PointOrder, RangeQuery};
use fieldline_storage::series::SeriesStore;
use fieldline_storage::{series, sql};
use fieldline_testkit::clock::ManualClock;
use fieldline_transport::TransportServices;
use fieldline_transport::http::{DeviceHttpLimits, router};
use futures::stream;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tower::ServiceExt as _;

use super::TELEMETRY;

pub(super) const LIMITS: DeviceHttpLimits = DeviceHttpLimits {
    max_body: 1 << 20,
    body_memory: 16 << 20,
    max_append: 64 << 10,
    body_deadline: Duration::from_secs(120),
};

/// A node with two devices, whose access tokens are `first` and `second`.
pub(super) struct World {
    router: Router,
    pub(super) services: Arc<TransportServices>,
    /// The clock of the address guard, which blocks an address after three wrong credentials.
    pub(super) guard_clock: Arc<ManualClock>,
    pub(super) context: services::ServiceContext,
    pub(super) usage: Arc<UsageStore>,
    pub(super) devices: services::DeviceService,
    /// The first device.
    pub(super) subject: EntityKey,
    uplink: QueueProducer,
    journal: Arc<EmbeddedJournal>,
    pub(super) store: Arc<SeriesStore>,
    /// Receives all records of the journal.
    consumer: Box<dyn JournalConsumer>,
    ingest: Option<IngestService>,
    _dir: TempDir,
}

fn journal_options() -> fieldline_journal::Options {
    fieldline_journal::Options {
        max_append: ByteSize(LIMITS.max_append as u64),
        max_pending: ByteSize::kib(256),
        min_free_disk: ByteSize(0),
        ..fieldline_journal::Options::default()
    }
}

impl World {
    pub(super) async fn new(limits: DeviceHttpLimits) -> Self {
        Self::with(limits, journal_options()).await
    }

    pub(super) async fn with(limits: DeviceHttpLimits, journal: fieldline_journal::Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock);
        let journal = Arc::new(EmbeddedJournal::open(&dir.path().join("journal"), &journal).unwrap());
        let entities = sql::open_sqlite(&dir.path().join("entities.db"), &sql::Options::default())
            .await
            .unwrap();
        let options = series::Options::default();
        let store = SeriesStore::open(&dir.path().join("series"), &options, clock.clone()).unwrap();
        let events = Arc::new(EntityEvents::default());
        let usage = UsageStore::new(entities.clone(), store.clone(), clock.clone());
        let directory = DeviceDirectory::new(
            entities.clone(),
            store.clone(),
            Some(usage.clone()),
            clock.clone(),
            &directory::Options::default(),
        );
        events.listen(directory.clone());
        events.listen(usage.clone());
        let context = services::ServiceContext {
            stores: entities.clone(),
            series: store.clone(),
            attributes: store.clone(),
            events,
            clock: clock.clone(),
            passwords: PasswordHashPool::new(1),
            rule_engine: Arc::new(fieldline_core::ports::NoRuleEngine),
            rule_nodes: Arc::new(fieldline_core::ports::NoRuleNodes),
            rest_endpoints: Arc::new(fieldline_core::ports::NoRestEndpoints),
        };
        seed::ensure_system(&context, Some("sysadmin")).await.unwrap();
        let (devices, subject) = two_devices(context.clone()).await;
        usage.restore().await.unwrap();
        let activity = ActivityTracker::new(
            entities,
            store.clone(),
            context.rule_engine.clone(),
            clock.clone(),
            &activity::Options::default(),
        );
        let uplink = QueueProducer::open(journal.clone(), 1).unwrap();
        let mut consumers = journal.subscribe(uplink.queue(), "everything", 1).unwrap();
        let ingest_stores = IngestStores {
            store: store.clone(),
            activity: activity.clone(),
            processors: ingest::DirectProcessor::processors(),
        };
        let ingest = IngestService::start(&uplink, ingest_stores, &ingest::Options::default())
            .await
            .unwrap();
        let sessions = SessionRegistry::new(1);
        let guard_clock = ManualClock::at(1_000_000);
        let guard_options = address_guard::Options {
            enabled: true,
            max_wrong_credentials: 3,
            ..address_guard::Options::default()
        };
        let services = Arc::new(TransportServices {
            directory,
            guard: Arc::new(AddressGuard::new(guard_options, guard_clock.clone())),
            rpc: DeviceRpcService::new(sessions.clone(), context.stores.rpcs.clone(), clock.clone()),
            sessions,
            onboarding: services::DeviceOnboarding::new(context.clone()),
            downloads: fieldline_devices::ota::OtaDownloads::new(
                context.stores.ota_packages.clone(),
                context.stores.ota_updates.clone(),
                &fieldline_devices::ota::Options::default(),
            ),
            overload: fieldline_core::overload::OverloadMonitor::new(clock.clone()),
            producer: uplink.clone(),
            attributes: store.clone(),
            activity,
            clock,
            json: JsonRules::default(),
        });
        Self {
            router: router(services.clone(), limits),
            services,
            guard_clock,
            context,
            usage,
            devices,
            subject,
            uplink,
            journal,
            store,
            consumer: consumers.remove(0),
            ingest: Some(ingest),
            _dir: dir,
        }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> (u16, String) {
        answer(self.router.clone(), request).await
    }

    pub(super) async fn post(&self, path: &str, body: impl Into<Body>) -> (u16, String) {
        self.send(Request::post(path).body(body.into()).unwrap()).await
    }

    /// Begins a post whose body is sent piece by piece.
    pub(super) fn begin(&self, path: &str) -> Slow {
        let (sender, receiver) = mpsc::channel::<Vec<u8>>(1);
        let body = Body::from_stream(stream::unfold(receiver, |mut receiver| async move {
            let chunk = receiver.recv().await?;
            Some((Ok::<_, Infallible>(chunk), receiver))
        }));
        let request = Request::post(path).body(body).unwrap();
        let answer = tokio::spawn(answer(self.router.clone(), request));
        Slow { sender, answer }
    }

    /// Closes the journal and waits until all of its records are stored.
    pub(super) async fn store_all(&mut self) {
        self.journal.close().await;
        let ingest = self.ingest.take().unwrap();
        tokio::task::spawn_blocking(move || ingest.stop(Duration::from_secs(60)))
            .await
            .unwrap();
    }

    /// The records of the closed journal, each as its size and number of points.
    pub(super) async fn journaled(&mut self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        loop {
            match self.consumer.next(1 << 20).await.unwrap() {
                ConsumerEvent::Closed => return found,
                ConsumerEvent::Records(records) => {
                    found.extend(split(&records.bytes).map(|record| size_and_points(record.unwrap())));
                }
                _ => {}
            }
        }
    }

    /// The timestamps of the points of a series.
    pub(super) async fn stored(&self, key: &str) -> Vec<i64> {
        let query = RangeQuery {
            start: 0,
            end: i64::MAX,
            limit: 1 << 20,
            order: PointOrder::Ascending,
        };
        let points = self.store.range(self.subject, key, query).await.unwrap();
        points.into_iter().map(|point| point.ts).collect()
    }
}

async fn two_devices(context: services::ServiceContext) -> (services::DeviceService, EntityKey) {
    let services = services::Services::new(context);
    let tenant = Tenant {
        title: "Tenant".to_owned(),
        ..Tenant::default()
    };
    let tenant = services.tenants.save(tenant.into()).await.unwrap().id;
    let mut ids = Vec::new();
    for name in ["first", "second"] {
        let device = Device {
            name: name.to_owned(),
            device_type: "default".to_owned(),
            ..Device::default()
        };
        let credentials = NewCredentials::AccessToken(Some(name.to_owned()));
        let saved = services
            .devices
            .save_with_credentials(tenant, device.into(), credentials, &NameConflict::Fail)
            .await;
        ids.push(saved.unwrap().id);
    }
    (services.devices, EntityKey::device(tenant, ids.remove(0)))
}

async fn answer(router: Router, request: Request<Body>) -> (u16, String) {
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn size_and_points(bytes: &[u8]) -> (usize, usize) {
    let RecordBody::Telemetry { rows: packed, .. } = JournalRecord::decode(bytes).unwrap().body else {
        return (bytes.len(), 0);
    };
    let points = rows(packed).map(|row| row.unwrap().count as usize).sum();
    (bytes.len(), points)
}

/// A post whose body is still being sent.
pub(super) struct Slow {
    sender: mpsc::Sender<Vec<u8>>,
    pub(super) answer: tokio::task::JoinHandle<(u16, String)>,
}

impl Slow {
    /// Sends a part of the body, and returns when the server has read it, or has answered without it.
    pub(super) async fn send(&self, part: impl Into<Vec<u8>>) {
        let _ = self.sender.send(part.into()).await;
        while self.sender.capacity() == 0 && !self.sender.is_closed() {
            tokio::task::yield_now().await;
        }
    }

    /// Ends the body.
    pub(super) async fn end(self) -> (u16, String) {
        drop(self.sender);
        self.answer.await.unwrap()
    }

    /// The answer that arrives although the body has not ended.
    pub(super) async fn early_answer(self) -> (u16, String) {
        let Self { sender, answer } = self;
        let answer = answer.await.unwrap();
        drop(sender);
        answer
    }
}

pub(super) fn ok() -> (u16, String) {
    (200, String::new())
}

pub(super) fn empty(status: StatusCode) -> (u16, String) {
    (status.as_u16(), String::new())
}

/// A node whose journal stays full, because nobody reads it for the group `everything`.
pub(super) async fn busy_world() -> World {
    let options = fieldline_journal::Options {
        segment_bytes: ByteSize::kib(4),
        max_pending: ByteSize::kib(4),
        max_append: ByteSize::kib(2),
        max_bytes: ByteSize::kib(12),
        ..journal_options()
    };
    let limits = DeviceHttpLimits {
        max_append: 2 << 10,
        ..LIMITS
    };
    let world = World::with(limits, options).await;
    assert_eq!(world.post(TELEMETRY, r#"{"a":1}"#).await, ok());
    let mut batch = RecordBatch::new();
    let mut record = batch.begin_attributes(world.subject, 0, AttributeScope::Client);
    pack("a", KvValueRef::Text(&"x".repeat(1_000)), record.buffer());
    record.finish();
    while world.journal.refusal() != Some(AppendError::Busy) {
        match world.uplink.try_append(world.subject, &batch) {
            Ok(append) => append.await.unwrap(),
            Err(error) => assert_eq!(error, AppendError::Busy),
        }
    }
    world
}

/// Sets the tenant's monthly message limit.
pub(super) async fn limit_messages(world: &World, limit: u64) {
    set_limit(world, "maxTransportMessages", limit.into()).await;
}

pub(super) async fn set_limit(world: &World, name: &str, limit: serde_json::Value) {
    let stores = &world.context.stores;
    let profile = stores.tenant_profiles.default_profile().await.unwrap();
    let mut profile = profile.unwrap();
    profile.profile_data["configuration"][name] = limit;
    let services = services::Services::new(world.context.clone());
    services.tenant_profiles.save(profile.into()).await.unwrap();
    world.usage.refresh().await.unwrap();
}
