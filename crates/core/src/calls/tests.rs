use std::sync::atomic::Ordering;

use fieldline_model::DeviceId;
use fieldline_model::message::Message;

use super::*;
use crate::devices::{DeviceDirectory, DeviceHandle, Options};
use crate::fakes::{FakeCalls, FakeStores, StandingClock};
use crate::sessions::{Content, SessionGuard};

const NOW: i64 = 1_760_000_000_000;

/// Keeps what the rule engine is told.
#[derive(Default)]
struct Told(Mutex<Vec<Message>>);

#[async_trait]
impl RuleEngine for Told {
    async fn push(&self, _: TenantId, message: Message) -> StoreResult<()> {
        self.0.lock().push(message);
        Ok(())
    }
}

struct World {
    calls: Arc<Calls>,
    sessions: Arc<Sessions>,
    store: Arc<FakeCalls>,
    clock: Arc<StandingClock>,
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
        let stores = FakeStores::new();
        stores.add_device("token");
        let clock = Arc::new(StandingClock(NOW.into()));
        let options = Options { cached_devices: 16 };
        let directory = DeviceDirectory::new(stores.entities(), stores.clone(), clock.clone(), &options);
        let device = directory.by_token("token").await.unwrap().unwrap();
        let sessions = Sessions::new(1);
        let calls = Calls::new(sessions.clone(), store.clone(), clock.clone());
        let told = Arc::new(Told::default());
        calls.report_to(told.clone());
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
            id: fieldline_model::new_uuid(),
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
        }
    }

    fn begin(&self, request: DeviceRpcRequest) -> tokio::task::JoinHandle<Outcome> {
        let port = CallPort(self.calls.clone());
        tokio::spawn(async move { port.send(request).await })
    }

    fn session(&self) -> SessionGuard {
        self.sessions.open(self.device.clone(), Arc::default())
    }

    fn subscribe(&self, session: &SessionGuard) {
        self.calls
            .follow(self.device.subject, session.control(), Wants::CALLS);
    }

    /// Lets everything that can go on go on.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    fn pass(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
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

fn call(session: &SessionControl) -> Option<Arc<DeviceCall>> {
    match session.take_letter()?.content {
        Content::Downlink(Downlink::Call(call)) => Some(call),
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
    world.calls.sent(&sent, true);
    world.calls.delivered(&sent);
    let stranger = Subject::device(TenantId::new(), world.device.id);
    world.calls.answered(stranger, sent.number, "1".to_owned());
    let other = Subject::device(world.device.subject.tenant, DeviceId::new());
    world.calls.answered(other, sent.number, "2".to_owned());
    world
        .calls
        .answered(world.device.subject, sent.number, "3".to_owned());
    world
        .calls
        .answered(world.device.subject, sent.number, "4".to_owned());
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
    world.calls.sent(&sent, true);
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
    world.calls.sent(&again, true);
    world.calls.delivered(&again);
    world
        .calls
        .answered(world.device.subject, again.number, "{\"ok\":true}".to_owned());
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
        id: fieldline_model::new_uuid(),
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
    world.calls.sent(&sent, true);
    world.pass(10_000);
    world.settle().await;
    let kept = world.status(id).await;
    assert_eq!(kept.status, RpcStatus::Failed);
    assert!(kept.response.unwrap()["error"].is_string());
    // What comes too late changes nothing.
    world.calls.delivered(&sent);
    world.settle().await;
    assert_eq!(world.status(id).await.status, RpcStatus::Failed);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_device_is_answered_once_or_times_out() {
    let world = World::new().await;
    let session = world.session();
    let port = CallPort(world.calls.clone());
    let call = fieldline_model::json::call(b"{method: getTime, params: {}}").unwrap();
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
    while let Some(letter) = session.control().take_letter() {
        if let Content::Downlink(Downlink::Answer(number, body)) = letter.content {
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
