//! Measures updates over WebSockets: many sockets subscribed to one busy device, and one socket with many devices on
//! its page. Server and clients share the process, so the figures are for both sides together.
//!
//! ```text
//! cargo run --release -p fieldline-api --example live [sockets] [points a second] [devices]
//! ```

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on is over")]

mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_api::{ApiDependencies, Options, TokenKey};
use fieldline_core::clock::Clock as _;
use fieldline_core::ports::{NoMails, NoScriptTester};
use fieldline_core::usage::UsageStore;
use fieldline_devices::downlink::NoDeviceLink;
use fieldline_devices::rpc::DeviceRpcService;
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::ports::{NoFieldReprocess, NoRuleReplay};
use fieldline_entities::rest_api_requests::{RestApiRequests, RestRequestLimits};
use fieldline_entities::services::{DeviceOnboarding, Services, TenantTransfer};
use fieldline_model::EntityKey;
use fieldline_model::kv::{KvValueRef, pack};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use self::world::ExampleFixture;

/// How long points are sent, seconds.
const SECONDS: u64 = 10;

struct ExampleServer {
    address: SocketAddr,
    token: String,
    world: ExampleFixture,
}

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse::<usize>().unwrap());
    let sockets = numbers.next().unwrap_or(1_000);
    let rate = numbers.next().unwrap_or(50);
    let platform = ExampleServer::start(numbers.next().unwrap_or(10_000)).await;
    one_busy_device(&platform, sockets, rate).await;
    one_large_page(&platform).await;
}

async fn one_busy_device(platform: &ExampleServer, sockets: usize, rate: usize) {
    let subject = platform.world.subjects[0];
    let mut readers = Vec::with_capacity(sockets);
    for _ in 0..sockets {
        let command = json!({
            "type": "TIMESERIES", "cmdId": 1, "entityType": "DEVICE", "entityId": subject.entity.id, "keys": "t",
        });
        let mut socket = platform.connect(&command).await;
        socket.next().await.unwrap().unwrap();
        let clock = platform.world.clock.clone();
        readers.push(tokio::spawn(async move {
            let mut late = Vec::new();
            let mut messages = 0u64;
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else { continue };
                messages += 1;
                let update: Value = serde_json::from_str(&text).unwrap();
                let points = update["data"]["t"].as_array().cloned().unwrap_or_default();
                late.extend(
                    points
                        .iter()
                        .filter_map(|point| Some(clock.now_ms() - point[0].as_i64()?)),
                );
                if points.iter().any(|point| point[1] == "-1") {
                    break;
                }
            }
            (messages, late)
        }));
    }
    let begun = Instant::now();
    let mut pace = tokio::time::interval(Duration::from_secs(1) / rate.max(1) as u32);
    let points = rate as u64 * SECONDS;
    for number in 0..points {
        pace.tick().await;
        platform.store(&[subject], number as i64).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    platform.store(&[subject], -1).await;
    let (mut messages, mut late) = (0, Vec::new());
    for reader in readers {
        let (count, times) = reader.await.unwrap();
        messages += count;
        late.extend(times);
    }
    late.sort_unstable();
    let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default();
    println!(
        "{sockets} sockets, {points} points: {} values in {messages} messages, {:.0} values/s, late p50 {} ms, p99 {} ms",
        late.len(),
        late.len() as f64 / begun.elapsed().as_secs_f64(),
        at(50),
        at(99)
    );
}

async fn one_large_page(platform: &ExampleServer) {
    let command = json!({
        "type": "ENTITY_DATA", "cmdId": 1,
        "query": {
            "entityFilter": { "type": "entityType", "entityType": "DEVICE" },
            "entityFields": [{ "type": "ENTITY_FIELD", "key": "name" }],
            "pageLink": { "pageSize": 10_000, "page": 0 },
        },
        "latestCmd": { "keys": [{ "type": "TIME_SERIES", "key": "t" }] },
    });
    let begun = Instant::now();
    let mut socket = platform.connect(&command).await;
    let page: Value = serde_json::from_str(socket.next().await.unwrap().unwrap().to_text().unwrap()).unwrap();
    let shown = page["data"]["data"].as_array().unwrap().len();
    println!("a page of {shown} devices in {:.1?}", begun.elapsed());
    for round in 0..3 {
        let begun = Instant::now();
        for group in platform.world.subjects.chunks(1_000) {
            platform.store(group, 1_000 + round).await;
        }
        let (mut updated, mut messages) = (0, 0);
        while updated < platform.world.subjects.len().min(shown) {
            let Message::Text(text) = socket.next().await.unwrap().unwrap() else {
                continue;
            };
            let update: Value = serde_json::from_str(&text).unwrap();
            updated += update["update"].as_array().unwrap().len();
            messages += 1;
        }
        println!(
            "{updated} devices updated in {messages} messages, {:.1?}",
            begun.elapsed()
        );
    }
}

impl ExampleServer {
    async fn start(devices: usize) -> Self {
        let world = ExampleFixture::with(devices).await;
        let (entities, live, clock) = (&world.stores, &world.live, &world.clock);
        let calls = DeviceRpcService::new(SessionRegistry::new(1), entities.rpcs.clone(), clock.clone());
        let deps = ApiDependencies {
            usage: UsageStore::new(entities.clone(), live.clone(), clock.clone()),
            services: Services::new(world.context.clone()),
            token_key: TokenKey::random(),
            token_settings: None,
            mailer: Arc::new(NoMails),
            overload: fieldline_core::overload::OverloadMonitor::new(clock.clone()),
            sms: Arc::new(fieldline_core::ports::NoSms),
            system_info: Arc::new(fieldline_core::ports::NoSystemInfo),
            rest_requests: RestApiRequests::new("live", RestRequestLimits::default()),
            device_link: Arc::new(NoDeviceLink),
            rpc: calls,
            onboarding: DeviceOnboarding::new(world.context.clone()),
            set_aside: fieldline_core::set_aside::SetAsideService::new(
                entities.set_aside.clone(),
                Arc::new(fieldline_core::ports::NoRecordQueue),
                clock.clone(),
                &Default::default(),
            ),
            tenant_transfer: TenantTransfer::new(world.context.clone(), live.clone()),
            scripts: Arc::new(NoScriptTester),
            rule_usage: Arc::new(fieldline_core::ports::NoRuleUsage),
            rule_counters: Arc::new(fieldline_core::ports::NoRuleCounters),
            replays: Arc::new(NoRuleReplay),
            reprocess: Arc::new(NoFieldReprocess),
            certificates: fieldline_api::CertificateFiles::default(),
            map_file: None,
            device_ports: Arc::default(),
            broker_admin: Arc::default(),
            observed_store: live.clone(),
            queries: world.queries.clone(),
        };
        let router = fieldline_api::router(deps, Options::default());
        let token = log_in(&router).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            token,
            world,
        }
    }

    /// Opens a socket and sends its first command.
    async fn connect(&self, command: &Value) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let address = format!("ws://{}/api/ws?token={}", self.address, self.token);
        let (mut socket, _) = client_async(address, stream).await.unwrap();
        let message = json!({ "cmds": [command] }).to_string();
        socket.send(Message::text(message)).await.unwrap();
        socket
    }

    async fn store(&self, subjects: &[EntityKey], value: i64) {
        let mut values = Vec::new();
        pack("t", KvValueRef::Long(value), &mut values);
        self.world
            .store(subjects, self.world.clock.now_ms(), &values)
            .await;
    }
}

async fn log_in(router: &axum::Router) -> String {
    use axum::body::{Body, to_bytes};
    use tower::ServiceExt as _;

    let body = json!({ "username": "tenant@thingsboard.org", "password": "tenant" }).to_string();
    let request = axum::http::Request::post("/api/auth/login")
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let pair: Value = serde_json::from_slice(&bytes).unwrap();
    pair["token"].as_str().unwrap().to_owned()
}
