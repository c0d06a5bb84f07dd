//! The device servers over real stores: the HTTP device API, and what MQTT does while the journal takes nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "device_servers/mqtt.rs"]
mod mqtt;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use fieldline_core::activity::{self, ActivityTracker};
use fieldline_core::calls::Calls;
use fieldline_core::clock::SystemClock;
use fieldline_core::devices::{self, DeviceDirectory};
use fieldline_core::events::EntityEvents;
use fieldline_core::ingest::{self, IngestService, IngestStores, Uplink};
use fieldline_core::options::ByteSize;
use fieldline_core::password::Passwords;
use fieldline_core::ports::{AppendError, Consumer, Delivery, Journal as _, TimeSeriesStore as _};
use fieldline_core::services::{self, NameConflict, NewCredentials, seed};
use fieldline_core::sessions::Sessions;
use fieldline_core::usage::{ApiUsage, UsageKey};
use fieldline_journal::EmbeddedJournal;
use fieldline_model::entity::{Device, Tenant};
use fieldline_model::json::JsonRules;
use fieldline_model::kv::{ValueRef, pack};
use fieldline_model::record::{Record, RecordBatch, RecordBody, rows, split};
use fieldline_model::timeseries::{AttributeScope, Order, RangeQuery};
use fieldline_model::{DeviceId, Subject};
use fieldline_storage::series::SeriesStore;
use fieldline_storage::{series, sql};
use fieldline_transport::Services;
use fieldline_transport::http::{Limits, router};
use futures::stream;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tower::ServiceExt as _;

const TELEMETRY: &str = "/api/v1/first/telemetry";
const ATTRIBUTES: &str = "/api/v1/first/attributes";
const OF_SECOND: &str = "/api/v1/second/telemetry";

const LIMITS: Limits = Limits {
    max_body: 1 << 20,
    body_memory: 16 << 20,
    max_append: 64 << 10,
    body_deadline: Duration::from_secs(120),
};

/// A node with two devices, whose access tokens are `first` and `second`.
struct World {
    router: Router,
    services: Arc<Services>,
    context: services::Context,
    usage: Arc<ApiUsage>,
    devices: services::Devices,
    /// The first device.
    subject: Subject,
    uplink: Uplink,
    journal: Arc<EmbeddedJournal>,
    store: Arc<SeriesStore>,
    /// Receives all that is ever in the journal.
    consumer: Box<dyn Consumer>,
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
    async fn new(limits: Limits) -> Self {
        Self::with(limits, journal_options()).await
    }

    async fn with(limits: Limits, journal: fieldline_journal::Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock);
        let journal = Arc::new(EmbeddedJournal::open(&dir.path().join("journal"), &journal).unwrap());
        let entities = sql::open_sqlite(&dir.path().join("entities.db"), &sql::Options::default())
            .await
            .unwrap();
        let options = series::Options::default();
        let store = SeriesStore::open(&dir.path().join("series"), &options, clock.clone()).unwrap();
        let events = Arc::new(EntityEvents::default());
        let directory = DeviceDirectory::new(
            entities.clone(),
            store.clone(),
            clock.clone(),
            &devices::Options::default(),
        );
        events.listen(directory.clone());
        let usage = ApiUsage::new(entities.clone(), store.clone(), clock.clone());
        events.listen(usage.clone());
        directory.count_in(usage.clone());
        let context = services::Context {
            stores: entities.clone(),
            series: store.clone(),
            attributes: store.clone(),
            events,
            clock: clock.clone(),
            passwords: Passwords::new(1),
            rule_engine: Arc::new(fieldline_core::ports::NoRuleEngine),
            rule_nodes: Arc::new(fieldline_core::ports::NoRuleNodes),
        };
        seed::ensure_system(&context, Some("sysadmin")).await.unwrap();
        let (devices, subject) = two_devices(context.clone()).await;
        usage.restore().await.unwrap();
        let activity = ActivityTracker::new(
            entities,
            store.clone(),
            clock.clone(),
            &activity::Options::default(),
        );
        let uplink = Uplink::open(journal.clone(), 1).unwrap();
        let mut consumers = journal.subscribe(uplink.queue(), "everything", 1).unwrap();
        let ingest_stores = IngestStores {
            store: store.clone(),
            activity: activity.clone(),
            processors: ingest::Direct::processors(),
        };
        let ingest = IngestService::start(&uplink, ingest_stores, &ingest::Options::default())
            .await
            .unwrap();
        let sessions = Sessions::new(1);
        let services = Arc::new(Services {
            directory,
            calls: Calls::new(sessions.clone(), context.stores.calls.clone(), clock.clone()),
            sessions,
            onboarding: services::Onboarding::new(context.clone()),
            uplink: uplink.clone(),
            attributes: store.clone(),
            activity,
            clock,
            json: JsonRules::default(),
        });
        Self {
            router: router(services.clone(), limits),
            services,
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

    async fn send(&self, request: Request<Body>) -> (u16, String) {
        answer(self.router.clone(), request).await
    }

    async fn post(&self, path: &str, body: impl Into<Body>) -> (u16, String) {
        self.send(Request::post(path).body(body.into()).unwrap()).await
    }

    /// Begins a post whose body arrives as it is sent.
    fn begin(&self, path: &str) -> Slow {
        let (sender, receiver) = mpsc::channel::<Vec<u8>>(1);
        let body = Body::from_stream(stream::unfold(receiver, |mut receiver| async move {
            let chunk = receiver.recv().await?;
            Some((Ok::<_, Infallible>(chunk), receiver))
        }));
        let request = Request::post(path).body(body).unwrap();
        let answer = tokio::spawn(answer(self.router.clone(), request));
        Slow { sender, answer }
    }

    /// Closes the journal and waits until all that it holds is stored.
    async fn store_all(&mut self) {
        self.journal.close().await;
        let ingest = self.ingest.take().unwrap();
        tokio::task::spawn_blocking(move || ingest.stop(Duration::from_secs(60)))
            .await
            .unwrap();
    }

    /// The records of the closed journal: the size and the points of each.
    async fn journaled(&mut self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        loop {
            match self.consumer.next(1 << 20).await.unwrap() {
                Delivery::Closed => return found,
                Delivery::Records(records) => {
                    found.extend(split(&records.bytes).map(|record| size_and_points(record.unwrap())));
                }
                _ => {}
            }
        }
    }

    /// Times of the points of a series.
    async fn stored(&self, key: &str) -> Vec<i64> {
        let query = RangeQuery {
            start: 0,
            end: i64::MAX,
            limit: 1 << 20,
            order: Order::Ascending,
        };
        let points = self.store.range(self.subject, key, query).await.unwrap();
        points.into_iter().map(|point| point.ts).collect()
    }
}

async fn two_devices(context: services::Context) -> (services::Devices, Subject) {
    let services = services::Services::new(context);
    let tenant = Tenant {
        title: "Tenant".to_owned(),
        ..Tenant::default()
    };
    let tenant = services.tenants.save(tenant).await.unwrap().id.unwrap();
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
            .save(tenant, device, credentials, &NameConflict::Fail)
            .await;
        ids.push(saved.unwrap().id.unwrap());
    }
    (services.devices, Subject::device(tenant, ids.remove(0)))
}

async fn answer(router: Router, request: Request<Body>) -> (u16, String) {
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn size_and_points(bytes: &[u8]) -> (usize, usize) {
    let RecordBody::Telemetry { rows: packed, .. } = Record::decode(bytes).unwrap().body else {
        return (bytes.len(), 0);
    };
    let points = rows(packed).map(|row| row.unwrap().count as usize).sum();
    (bytes.len(), points)
}

/// A post that is being sent.
struct Slow {
    sender: mpsc::Sender<Vec<u8>>,
    answer: tokio::task::JoinHandle<(u16, String)>,
}

impl Slow {
    /// Sends a part of the body, and returns when the server has it (or has answered without it).
    async fn send(&self, part: impl Into<Vec<u8>>) {
        let _ = self.sender.send(part.into()).await;
        while self.sender.capacity() == 0 && !self.sender.is_closed() {
            tokio::task::yield_now().await;
        }
    }

    /// Ends the body.
    async fn end(self) -> (u16, String) {
        drop(self.sender);
        self.answer.await.unwrap()
    }

    /// What is answered although the body has not ended.
    async fn early_answer(self) -> (u16, String) {
        let Self { sender, answer } = self;
        let answer = answer.await.unwrap();
        drop(sender);
        answer
    }
}

fn ok() -> (u16, String) {
    (200, String::new())
}

fn empty(status: StatusCode) -> (u16, String) {
    (status.as_u16(), String::new())
}

#[tokio::test]
async fn posts_are_answered_with_the_statuses_that_devices_know() {
    let mut world = World::new(LIMITS).await;
    assert_eq!(
        world.post(TELEMETRY, r#"{"ts":1000,"values":{"a":1}}"#).await,
        ok()
    );
    assert_eq!(world.post(ATTRIBUTES, r#"{"version":"v1.2"}"#).await, ok());
    let unknown = world.post("/api/v1/nobody/telemetry", "{}").await;
    assert_eq!(unknown, empty(StatusCode::UNAUTHORIZED));
    for path in [TELEMETRY, ATTRIBUTES] {
        let (status, message) = world.post(path, r#"{"a":"#).await;
        assert_eq!(status, 500);
        assert!(!message.is_empty(), "the parser says what is wrong");
    }

    world.store_all().await;
    assert_eq!(world.stored("a").await, [1000]);
    let asked = Request::get("/api/v1/first/attributes?clientKeys=version,none")
        .body(Body::empty())
        .unwrap();
    let attributes = r#"{"client":{"version":"v1.2"}}"#.to_owned();
    assert_eq!(world.send(asked).await, (200, attributes));
    let late = world.post(TELEMETRY, r#"{"a":2}"#).await;
    assert_eq!(late, empty(StatusCode::INTERNAL_SERVER_ERROR));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_by_its_announced_length_before_it_arrives() {
    let world = World::new(LIMITS).await;
    let never = Body::from_stream(stream::pending::<Result<Vec<u8>, Infallible>>());
    let request = Request::post(TELEMETRY)
        .header(header::CONTENT_LENGTH, LIMITS.max_body + 1)
        .body(never)
        .unwrap();
    assert_eq!(world.send(request).await, empty(StatusCode::PAYLOAD_TOO_LARGE));
}

#[tokio::test]
async fn a_body_without_a_length_is_cut_off_at_the_limit() {
    let world = World::new(LIMITS).await;
    let slow = world.begin(TELEMETRY);
    slow.send(vec![b' '; LIMITS.max_body]).await;
    slow.send("{").await;
    assert_eq!(slow.early_answer().await, empty(StatusCode::PAYLOAD_TOO_LARGE));

    let slow = world.begin(TELEMETRY);
    slow.send(vec![b' '; LIMITS.max_body - 7]).await;
    slow.send(r#"{"a":1}"#).await;
    assert_eq!(slow.end().await, ok());
}

#[tokio::test]
async fn a_post_is_refused_while_there_is_no_memory_for_its_body() {
    let limits = Limits {
        max_body: 96 << 10,
        body_memory: 128 << 10,
        ..LIMITS
    };
    let world = World::new(limits).await;
    let slow = world.begin(TELEMETRY);
    slow.send(vec![b' '; 80 << 10]).await;
    let large = vec![b' '; 64 << 10];
    let refused = world.post(OF_SECOND, large.clone()).await;
    assert_eq!(refused, empty(StatusCode::SERVICE_UNAVAILABLE));
    let small = world.post(OF_SECOND, r#"{"a":1}"#).await;
    assert_eq!(small, ok(), "there is room for a small one");

    slow.send(r#"{"a":1}"#).await;
    assert_eq!(slow.end().await, ok());
    let (status, message) = world.post(OF_SECOND, large).await;
    assert_eq!(
        (status, message.is_empty()),
        (500, false),
        "it is read now, and holds no JSON"
    );
}

#[tokio::test]
async fn a_device_that_fills_its_share_of_the_memory_does_not_keep_others_from_posting() {
    let limits = Limits {
        max_body: 64 << 10,
        body_memory: 512 << 10,
        ..LIMITS
    };
    let world = World::new(limits).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let slow = world.begin(TELEMETRY);
        slow.send(vec![b' '; 60 << 10]).await;
        open.push(slow);
    }
    let refused = world.post(TELEMETRY, r#"{"a":1}"#).await;
    assert_eq!(refused, empty(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(world.post(OF_SECOND, r#"{"a":1}"#).await, ok());

    let hung_up = open.pop().unwrap();
    hung_up.answer.abort();
    assert!(hung_up.answer.await.unwrap_err().is_cancelled());
    let again = world.post(TELEMETRY, r#"{"a":1}"#).await;
    assert_eq!(again, ok(), "its memory was given back");
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_cut_off_even_if_it_keeps_coming() {
    let world = World::new(LIMITS).await;
    // From here on the device is known: nothing but the body is waited for.
    assert_eq!(world.post(TELEMETRY, r#"{"a":1}"#).await, ok());
    tokio::time::pause();
    let drops = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        Some((Ok::<_, Infallible>(" "), ()))
    });
    let started = tokio::time::Instant::now();
    let answer = world.post(TELEMETRY, Body::from_stream(drops)).await;
    assert_eq!(answer, empty(StatusCode::REQUEST_TIMEOUT));
    assert_eq!(started.elapsed().as_secs(), 120);
}

#[tokio::test]
async fn a_large_post_is_divided_into_appends_and_each_of_its_points_is_stored_once() {
    const POINTS: i64 = 20_000;
    let mut world = World::new(LIMITS).await;
    let rows: Vec<_> = (1..=POINTS)
        .map(|ts| format!(r#"{{"ts":{ts},"values":{{"a":{ts}.5}}}}"#))
        .collect();
    let body = format!("[{}]", rows.join(","));
    assert!(body.len() > 8 * LIMITS.max_append && body.len() < LIMITS.max_body);
    assert_eq!(world.post(TELEMETRY, body).await, ok());

    world.store_all().await;
    let records = world.journaled().await;
    assert!(records.len() > 4, "{} records", records.len());
    assert!(records.iter().all(|(bytes, _)| *bytes <= LIMITS.max_append));
    let points: usize = records.iter().map(|(_, points)| points).sum();
    assert_eq!(points, POINTS as usize, "no point is journaled twice");
    assert!(world.stored("a").await.into_iter().eq(1..=POINTS));
}

#[tokio::test]
async fn one_row_and_the_attributes_of_one_post_may_be_larger_than_an_append() {
    let mut world = World::new(LIMITS).await;
    let members: Vec<_> = (0..2_000)
        .map(|index| format!(r#""key{index:04}":"value {index:0>100}""#))
        .collect();
    let body = format!("{{{}}}", members.join(","));
    assert!(body.len() > 3 * LIMITS.max_append);
    assert_eq!(world.post(TELEMETRY, body.clone()).await, ok());
    assert_eq!(world.post(ATTRIBUTES, body.clone()).await, ok());

    world.store_all().await;
    let all = Request::get(ATTRIBUTES).body(Body::empty()).unwrap();
    let (status, attributes) = world.send(all).await;
    assert_eq!(status, 200);
    assert_eq!(attributes, format!(r#"{{"client":{body}}}"#));
    let latest = world.store.latest(world.subject, None).await.unwrap();
    assert_eq!(latest.len(), 2_000);
    for key in ["key0000", "key1999"] {
        assert_eq!(
            world.stored(key).await,
            [latest[0].point.ts],
            "one row has one time"
        );
    }
}

#[tokio::test]
async fn nothing_of_a_post_is_stored_if_one_of_its_values_is_too_large() {
    let mut world = World::new(LIMITS).await;
    let value = "x".repeat(LIMITS.max_append);
    let body = format!(r#"[{{"ts":1,"values":{{"a":1}}}},{{"ts":2,"values":{{"a":"{value}"}}}}]"#);
    let refused = world.post(TELEMETRY, body).await;
    assert_eq!(refused, empty(StatusCode::PAYLOAD_TOO_LARGE));
    world.store_all().await;
    assert!(world.journaled().await.is_empty());
}

#[tokio::test]
async fn a_device_that_is_deleted_while_its_body_arrives_is_refused() {
    let mut world = World::new(LIMITS).await;
    let slow = world.begin(TELEMETRY);
    slow.send(r#"{"a":"#).await;
    let device = DeviceId(world.subject.entity.id);
    world.devices.delete(world.subject.tenant, device).await.unwrap();
    slow.send("1}").await;
    assert_eq!(slow.end().await, empty(StatusCode::UNAUTHORIZED));
    world.store_all().await;
    assert!(world.journaled().await.is_empty());
}

/// A node whose journal is full and stays so, because nobody reads it for the group `everything`.
async fn busy_world() -> World {
    let options = fieldline_journal::Options {
        segment_bytes: ByteSize::kib(4),
        max_pending: ByteSize::kib(4),
        max_append: ByteSize::kib(2),
        max_bytes: ByteSize::kib(12),
        ..journal_options()
    };
    let limits = Limits {
        max_append: 2 << 10,
        ..LIMITS
    };
    let world = World::with(limits, options).await;
    assert_eq!(world.post(TELEMETRY, r#"{"a":1}"#).await, ok());
    let mut batch = RecordBatch::new();
    let mut record = batch.attributes(world.subject, 0, AttributeScope::Client);
    pack("a", ValueRef::Text(&"x".repeat(1_000)), record.buffer());
    record.finish();
    while world.journal.refusal() != Some(AppendError::Busy) {
        match world.uplink.try_append(world.subject, &batch) {
            Ok(append) => append.await.unwrap(),
            Err(error) => assert_eq!(error, AppendError::Busy),
        }
    }
    world
}

#[tokio::test]
async fn a_post_waits_for_a_busy_journal_for_a_minute_and_no_longer() {
    let world = busy_world().await;
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    let answer = world.post(TELEMETRY, r#"{"a":2}"#).await;
    assert_eq!(answer, empty(StatusCode::INTERNAL_SERVER_ERROR));
    assert_eq!(started.elapsed().as_secs(), 60);
}

/// Gives the tenant another limit of messages a month.
async fn limit_messages(world: &World, limit: u64) {
    set_limit(world, "maxTransportMessages", limit.into()).await;
}

async fn set_limit(world: &World, name: &str, limit: serde_json::Value) {
    let stores = &world.context.stores;
    let profile = stores.tenant_profiles.default_profile().await.unwrap();
    let mut profile = profile.unwrap();
    profile.profile_data["configuration"][name] = limit;
    let services = services::Services::new(world.context.clone());
    services.tenant_profiles.save(profile).await.unwrap();
    world.usage.refresh().await.unwrap();
}

#[tokio::test]
async fn a_tenant_that_has_used_up_its_messages_is_told_so() {
    let world = World::new(LIMITS).await;
    limit_messages(&world, 2).await;
    for _ in 0..2 {
        assert_eq!(world.post(TELEMETRY, r#"{"a":1,"b":2,"c":3}"#).await, ok());
    }
    world.usage.report(false).await;
    let tenant = world.usage.of(world.subject.tenant);
    assert_eq!(tenant.used(UsageKey::TransportMessages), 2);
    assert_eq!(tenant.used(UsageKey::TransportDataPoints), 6);
    for request in [
        Request::post(TELEMETRY).body(Body::from(r#"{"a":2}"#)).unwrap(),
        Request::get(ATTRIBUTES).body(Body::empty()).unwrap(),
    ] {
        let (status, text) = world.send(request).await;
        assert_eq!((status, text.is_empty()), (429, false));
    }

    limit_messages(&world, 0).await;
    assert_eq!(world.post(ATTRIBUTES, r#"{"a":1,"b":2}"#).await, ok());
    world.usage.report(false).await;
    assert_eq!(tenant.used(UsageKey::TransportDataPoints), 8);
}

#[tokio::test]
async fn messages_beyond_the_rate_limits_of_device_and_tenant_are_refused() {
    let mut world = World::new(LIMITS).await;
    set_limit(&world, "transportDeviceTelemetryMsgRateLimit", "2:3600".into()).await;
    set_limit(
        &world,
        "transportTenantTelemetryDataPointsRateLimit",
        "6:3600".into(),
    )
    .await;
    assert_eq!(world.post(TELEMETRY, r#"{"ts":1,"values":{"a":1}}"#).await, ok());
    assert_eq!(world.post(TELEMETRY, r#"{"ts":2,"values":{"a":1}}"#).await, ok());
    let (status, text) = world.post(TELEMETRY, r#"{"ts":3,"values":{"a":1}}"#).await;
    assert_eq!((status, text.is_empty()), (429, false), "the device");
    // The refused one has taken of what the tenant has.
    let three = r#"{"ts":4,"values":{"a":1,"b":2,"c":3}}"#;
    assert_eq!(world.post(OF_SECOND, three).await, ok());
    assert_eq!(world.post(OF_SECOND, r#"{"d":1}"#).await.0, 429, "the tenant");
    let asked = Request::get(ATTRIBUTES).body(Body::empty()).unwrap();
    assert_eq!(
        world.send(asked).await.0,
        200,
        "no limit is set for what has no values"
    );
    world.store_all().await;
    assert_eq!(world.stored("a").await, [1, 2]);
}
