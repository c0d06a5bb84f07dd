mod due;
mod handing_over;
mod order;

use fieldline_core::ports::StoreResult;
use fieldline_model::DeviceId;
use fieldline_model::message::QueueMessage;
use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::fake_stores::{FakeCalls, FakeStores};

use super::*;
use crate::directory::{self, DeviceDirectory, DeviceHandle};
use crate::sessions::{OutboundPayload, SessionGuard};

const NOW: i64 = 1_760_000_000_000;

/// Keeps what the rule engine is told.
#[derive(Default)]
struct Told(Mutex<Vec<QueueMessage>>);

#[async_trait]
impl RuleEngine for Told {
    async fn push(&self, _: TenantId, message: QueueMessage) -> StoreResult<()> {
        self.0.lock().push(message);
        Ok(())
    }
}

struct World {
    calls: Arc<DeviceRpcService>,
    sessions: Arc<SessionRegistry>,
    store: Arc<FakeCalls>,
    clock: Arc<ManualClock>,
    device: Arc<DeviceHandle>,
    told: Arc<Told>,
    stop: watch::Sender<bool>,
    running: tokio::task::JoinHandle<()>,
}

impl World {
    async fn new() -> Self {
        Self::with(Arc::default()).await
    }

    async fn with(store: Arc<FakeCalls>) -> Self {
        Self::with_options(store, Options::default()).await
    }

    async fn in_order(submit_strategy: RpcSubmitStrategy) -> Self {
        let options = Options {
            submit_strategy,
            max_retries: 1,
            ..Options::default()
        };
        Self::with_options(Arc::default(), options).await
    }

    async fn with_options(store: Arc<FakeCalls>, call_options: Options) -> Self {
        let stores = FakeStores::new();
        stores.add_device("token");
        let clock = ManualClock::at(NOW);
        let options = directory::Options { cached_devices: 16 };
        let directory =
            DeviceDirectory::new(stores.entities(), stores.clone(), None, clock.clone(), &options);
        let device = directory.by_token("token").await.unwrap().unwrap();
        let sessions = SessionRegistry::new(1);
        let told = Arc::new(Told::default());
        let (engine, time) = (told.clone(), clock.clone());
        let calls =
            DeviceRpcService::with_options(sessions.clone(), store.clone(), engine, time, call_options);
        let stop = watch::Sender::new(false);
        let running = tokio::spawn(calls.clone().run(stop.subscribe()));
        Self {
            calls,
            sessions,
            store,
            clock,
            device,
            told,
            stop,
            running,
        }
    }

    fn request(&self) -> DeviceRpcRequest {
        DeviceRpcRequest {
            id: new_uuid(),
            tenant: self.device.subject.tenant,
            device: self.device.id,
            method: "set".to_owned(),
            params: "{\"pin\":1}".to_owned(),
            oneway: false,
            persistent: false,
            retries: None,
            expires_ms: NOW + 30_000,
            additional_info: None,
            rest_origin: None,
            origin_run: None,
        }
    }

    fn begin(&self, request: DeviceRpcRequest) -> tokio::task::JoinHandle<RpcResult> {
        let port = DeviceRpcPort(self.calls.clone());
        tokio::spawn(async move { port.send(request).await })
    }

    fn session(&self) -> SessionGuard {
        self.sessions.open(self.device.clone(), Arc::default())
    }

    fn persistent(&self) -> DeviceRpcRequest {
        DeviceRpcRequest {
            persistent: true,
            ..self.request()
        }
    }

    fn subscribe(&self, session: &SessionGuard) {
        self.calls
            .set_subscriptions(self.device.subject, session.control(), Subscriptions::RPC);
    }

    /// Lets everything that can go on go on.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    fn pass(&self, ms: i64) {
        self.clock.advance(ms);
    }

    /// What the rule engine was told since this was last asked.
    fn told(&self) -> Vec<String> {
        let told = std::mem::take(&mut *self.told.0.lock());
        told.iter().map(|message| message.msg_type.to_string()).collect()
    }

    async fn status(&self, id: Uuid) -> Rpc {
        let found = self.store.get(self.device.subject.tenant, RpcId(id)).await;
        found.unwrap().unwrap()
    }

    async fn end(self) {
        self.stop.send_replace(true);
        self.running.await.unwrap();
    }
}

fn call(session: &SessionControl) -> Option<Arc<ToDeviceRpc>> {
    match session.take_outbound()?.payload {
        OutboundPayload::Downlink(Downlink::Call(call)) => Some(call),
        other => panic!("a call was expected, not {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_two_way_call_is_answered_by_its_device_alone_and_once() {
    let world = World::new().await;
    let session = world.session();
    world.subscribe(&session);
    let caller = world.begin(world.request());
    world.settle().await;
    let sent = call(session.control()).expect("the call was sent");
    assert_eq!(sent.to_json(), r#"{"method":"set","params":{"pin":1}}"#);
    world.calls.handle_sent(&sent, true);
    world.calls.handle_delivery(&sent);
    let stranger = EntityKey::device(TenantId::new(), world.device.id);
    world.calls.handle_answer(stranger, sent.number, "1".to_owned());
    let other = EntityKey::device(world.device.subject.tenant, DeviceId::new());
    world.calls.handle_answer(other, sent.number, "2".to_owned());
    world
        .calls
        .handle_answer(world.device.subject, sent.number, "3".to_owned());
    world
        .calls
        .handle_answer(world.device.subject, sent.number, "4".to_owned());
    assert_eq!(caller.await.unwrap(), Ok(Some("3".to_owned())));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_device_until_it_expires() {
    let world = World::new().await;
    let oneway = DeviceRpcRequest {
        oneway: true,
        ..world.request()
    };
    let (first, second) = (world.begin(oneway.clone()), world.begin(world.request()));
    world.settle().await;
    let session = world.session();
    world.subscribe(&session);
    assert_eq!(first.await.unwrap(), Ok(None));
    assert!(call(session.control()).is_some() && call(session.control()).is_some());

    let third = world.begin(DeviceRpcRequest {
        tenant: TenantId::new(),
        ..oneway
    });
    world.settle().await;
    assert!(
        call(session.control()).is_none(),
        "the device is of another tenant"
    );
    world.pass(30_000);
    assert_eq!(second.await.unwrap(), Err(DeviceRpcError::Timeout));
    assert_eq!(third.await.unwrap(), Err(DeviceRpcError::NoActiveConnection));
    let late = world.begin(world.request());
    assert_eq!(late.await.unwrap(), Err(DeviceRpcError::Timeout));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_another_run_has_taken_is_not_sent_again_unless_it_is_kept() {
    let world = World::new().await;
    let session = world.session();
    world.subscribe(&session);
    let of_run = |run, persistent| DeviceRpcRequest {
        origin_run: Some(run),
        persistent,
        ..world.request()
    };
    let taken = world.begin(of_run(new_uuid(), false)).await.unwrap();
    assert_eq!(taken, Err(DeviceRpcError::Timeout));
    assert!(call(session.control()).is_none());
    world.begin(of_run(new_uuid(), true));
    world.begin(of_run(world.calls.run_id(), false));
    world.settle().await;
    assert!(call(session.control()).is_some() && call(session.control()).is_some());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_persistent_call_is_delivered_when_the_device_comes_back_and_its_states_are_told() {
    let world = World::new().await;
    let request = DeviceRpcRequest {
        persistent: true,
        retries: Some(1),
        ..world.request()
    };
    let id = request.id;
    let accepted = world.begin(request).await.unwrap().unwrap().unwrap();
    assert_eq!(accepted, format!("{{\"rpcId\":\"{id}\"}}"));
    let session = world.session();
    world.subscribe(&session);
    world.settle().await;
    let sent = call(session.control()).expect("the call was sent");
    world.calls.handle_sent(&sent, true);
    world.settle().await;
    assert_eq!(world.told(), ["RPC_QUEUED", "RPC_SENT"]);
    // It is not acknowledged, so that it is sent again on the next connection.
    world.pass(10_000);
    world.settle().await;
    assert_eq!(world.told(), ["RPC_TIMEOUT"]);
    drop(session);
    let session = world.session();
    world.subscribe(&session);
    let again = call(session.control()).expect("the call was sent again");
    assert_eq!(again.number, sent.number);
    world.calls.handle_sent(&again, true);
    world.calls.handle_delivery(&again);
    world
        .calls
        .handle_answer(world.device.subject, again.number, "{\"ok\":true}".to_owned());
    world.settle().await;
    assert_eq!(world.told(), ["RPC_SENT", "RPC_DELIVERED", "RPC_SUCCESSFUL"]);
    let kept = world.status(id).await;
    assert_eq!(
        (kept.status, kept.response),
        (RpcStatus::Successful, Some(json!({"ok": true})))
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_persistent_call_survives_a_restart_and_expires_in_its_time() {
    let store = Arc::new(FakeCalls::default());
    let world = World::with(store.clone()).await;
    let request = DeviceRpcRequest {
        persistent: true,
        ..world.request()
    };
    let (id, subject) = (request.id, world.device.subject);
    world.begin(request.clone()).await.unwrap().unwrap();
    world.end().await;

    // The same device of the same tenant, in another run.
    let world = World::with(store).await;
    let expires = DeviceRpcRequest {
        id: new_uuid(),
        expires_ms: NOW + 5_000,
        ..request.clone()
    };
    world.begin(expires).await.unwrap().unwrap();
    world.settle().await;
    world.told();
    world.pass(5_000);
    world.settle().await;
    assert_eq!(world.told(), ["RPC_EXPIRED"]);
    let open = world
        .store
        .open_of(subject.tenant, request.device, 10)
        .await
        .unwrap();
    assert_eq!(open.iter().map(|call| call.id.0).collect::<Vec<_>>(), [id]);
    let deleted = world.calls.delete(subject.tenant, RpcId(id)).await.unwrap();
    assert_eq!(deleted.map(|call| call.status), Some(RpcStatus::Deleted));
    assert_eq!(world.told(), ["RPC_DELETED"]);
    world.pass(1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_device_that_never_acknowledges_fails_a_persistent_call() {
    let world = World::new().await;
    let session = world.session();
    world.subscribe(&session);
    let request = DeviceRpcRequest {
        persistent: true,
        retries: Some(0),
        ..world.request()
    };
    let id = request.id;
    world.begin(request).await.unwrap().unwrap();
    let sent = call(session.control()).expect("the call was sent");
    world.calls.handle_sent(&sent, true);
    world.pass(10_000);
    world.settle().await;
    let kept = world.status(id).await;
    assert_eq!(kept.status, RpcStatus::Failed);
    assert!(kept.response.unwrap()["error"].is_string());
    // What comes too late changes nothing.
    world.calls.handle_delivery(&sent);
    world.settle().await;
    assert_eq!(world.status(id).await.status, RpcStatus::Failed);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_device_is_answered_once_or_times_out() {
    let world = World::new().await;
    let session = world.session();
    let port = DeviceRpcPort(world.calls.clone());
    let call = fieldline_model::json::client_rpc(b"{method: getTime, params: {}}").unwrap();
    let begin = |number| {
        world
            .calls
            .client
            .begin(world.device.subject, session.control(), number, &call, NOW)
            .unwrap()
    };
    let message = begin(7);
    assert_eq!(message.msg_type.name(), "TO_SERVER_RPC_REQUEST");
    assert_eq!(message.data, r#"{"method":"getTime","params":{}}"#);
    let of = |name: &str| message.metadata.get(name).unwrap();
    let at: Uuid = of("sessionId").parse().unwrap();
    assert_eq!((of("serviceId"), of("requestId")), (SERVICE_ID, "7"));
    port.answer("elsewhere", at, 7, "0".to_owned());
    port.answer(SERVICE_ID, at, 7, "1".to_owned());
    port.answer(SERVICE_ID, at, 7, "2".to_owned());
    begin(8);
    world.pass(60_000);
    world.settle().await;
    let mut answers = Vec::new();
    while let Some(letter) = session.control().take_outbound() {
        if let OutboundPayload::Downlink(Downlink::Answer(number, body)) = letter.payload {
            answers.push((number, body.to_string()));
        }
    }
    let timeout = r#"{"error":"timeout"}"#.to_owned();
    assert_eq!(answers, [(7, "1".to_owned()), (8, timeout)]);

    let (message, answer) = world
        .calls
        .client
        .begin_request(world.device.subject, &call, NOW)
        .unwrap();
    let at: Uuid = message.metadata.get("sessionId").unwrap().parse().unwrap();
    port.answer(SERVICE_ID, at, 0, "3".to_owned());
    assert_eq!(&*answer.await.unwrap(), "3");
    world.end().await;
}

const NONE: [i32; 0] = [];

/// The numbers of all calls that wait for a session.
fn waiting(session: &SessionGuard) -> Vec<i32> {
    std::iter::from_fn(|| call(session.control()))
        .map(|call| call.number)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn calls_in_the_store_follow_those_in_memory_each_of_them_once() {
    for oneway in [false, true] {
        let world = World::new().await;
        for _ in 0..LOADED + 20 {
            let request = DeviceRpcRequest {
                oneway,
                ..world.persistent()
            };
            world.begin(request).await.unwrap().unwrap();
        }
        let session = world.session();
        world.subscribe(&session);
        let mut seen = Vec::new();
        for _ in 0..10 {
            world.settle().await;
            // All are ended before the store hears of the first.
            while let Some(sent) = call(session.control()) {
                seen.push(sent.number);
                world.calls.handle_sent(&sent, true);
                world.calls.handle_delivery(&sent);
                let answered = world
                    .calls
                    .handle_answer(world.device.subject, sent.number, "1".to_owned());
                assert!(answered);
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((count, seen.len()), (120, 120), "one way: {oneway}");
        // What was delivered, or answered, is not sent to the next connection.
        drop(session);
        let session = world.session();
        world.subscribe(&session);
        world.settle().await;
        assert_eq!(waiting(&session), NONE);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_that_subscribes_again_and_again_fills_no_memory() {
    let world = World::new().await;
    let session = world.session();
    world.subscribe(&session);
    world.begin(world.persistent()).await.unwrap().unwrap();
    world.settle().await;
    world.told();
    for _ in 0..10 {
        while let Some(sent) = call(session.control()) {
            world.calls.handle_sent(&sent, true);
            world.calls.handle_delivery(&sent);
        }
        world
            .calls
            .set_subscriptions(world.device.subject, session.control(), Subscriptions::NOTHING);
        world.subscribe(&session);
    }
    world.settle().await;
    assert_eq!(world.told(), ["RPC_SENT", "RPC_DELIVERED"], "each state once");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_takes_a_part_of_the_memory_for_calls_alone() {
    let world = World::new().await;
    let mut refused = 0;
    let mut callers = Vec::new();
    for device in 0..50 {
        let device = match device {
            0 => world.device.id,
            _ => DeviceId::new(),
        };
        let request = DeviceRpcRequest {
            device,
            params: "x".repeat(1 << 20),
            ..world.request()
        };
        callers.push(world.begin(request));
    }
    world.settle().await;
    for caller in callers {
        if caller.is_finished() {
            assert_eq!(caller.await.unwrap(), Err(DeviceRpcError::Internal));
            refused += 1;
        }
    }
    assert!((18..=20).contains(&refused), "{refused} of 50, 32 MiB fit");
    let other = world.begin(DeviceRpcRequest {
        tenant: TenantId::new(),
        params: "x".repeat(1 << 20),
        ..world.request()
    });
    world.settle().await;
    assert!(!other.is_finished(), "another tenant is not refused");
    world.end().await;
}

#[tokio::test]
async fn a_client_that_goes_gives_its_place_back() {
    let callers = Arc::new(RestRpcWaiters::default());
    let (tenant, id) = (TenantId::new(), Uuid::from_u128(1));
    let place = callers.register(tenant, id).unwrap();
    assert!(callers.register(tenant, id).is_none());
    drop(place);
    let mut place = callers.register(tenant, id).expect("the place is free again");
    callers.resolve(tenant, id, &Ok(None));
    let next = callers.register(tenant, id).unwrap();
    assert_eq!(place.answer().await, Some(Ok(None)));
    drop(place);
    assert_eq!(callers.count(), 1, "the place is somebody else's");
    drop(next);
    assert_eq!(callers.count(), 0);
}
