//! Calls to devices and by devices.
//!
//! A call to a device gets a number, is handed to the sessions of the device that take calls, and waits among the
//! pending until the device has answered, or has acknowledged one that needs no answer, or until it expires. What comes
//! while the device has no session waits there as well, and is sent when it comes. A persistent call is a row of the
//! store besides: those of devices that are away are in the store alone.
//!
//! A call by a device goes through the rule engine; whoever answers it names the session and the number, see [`client`].

pub mod client;
mod options;
mod pending;
mod rest_waiters;
mod store_queue;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{
    DeviceRpc, DeviceRpcError, DeviceRpcRequest, NoRuleEngine, RpcStore, RuleEngine, StoreErrorKind,
};
use fieldline_core::queue_stats::SERVICE_ID;
use fieldline_model::entity::{Rpc, RpcBody, RpcRequest, RpcStatus};
use fieldline_model::{DeviceId, EntityKey, RpcId, TenantId, new_uuid};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use self::client::ClientRpc;
use self::pending::{OverdueRpcs, PendingRpc, PendingRpcs, RpcResult};
use self::rest_waiters::RestRpcWaiters;
use self::store_queue::{RpcResponse, RpcStoreQueue};
use crate::downlink::{DeviceLink as _, Downlink, Subscriptions, ToDeviceRpc};
use crate::sessions::{CloseReason, SessionControl, SessionRegistry};

pub use self::options::{Options, RpcSubmitStrategy};
pub use self::rest_waiters::RestRpcWaiter;

/// Stored calls of one device that are brought into memory together.
const LOADED: u32 = 100;
/// How often somebody looks for what is over.
const TICK: Duration = Duration::from_millis(250);
/// Seconds of 2020-01-01: numbers of calls begin with the seconds since, so that a late answer to a call of an earlier run
/// meets none of this one.
const NUMBERS_SINCE_S: i64 = 1_577_836_800;

/// See the module. One for each node.
pub struct DeviceRpcService {
    sessions: Arc<SessionRegistry>,
    store: Arc<dyn RpcStore>,
    clock: SharedClock,
    options: Options,
    rule_engine: Arc<dyn RuleEngine>,
    pending: Mutex<PendingRpcs>,
    run_id: Uuid,
    rest_waiters: Arc<RestRpcWaiters>,
    store_queue: RpcStoreQueue,
    /// Calls by devices.
    pub client: ClientRpc,
}

impl DeviceRpcService {
    /// Calls over the sessions of this node, with the usual settings, of which no rule engine hears.
    pub fn new(sessions: Arc<SessionRegistry>, store: Arc<dyn RpcStore>, clock: SharedClock) -> Arc<Self> {
        Self::with_options(sessions, store, Arc::new(NoRuleEngine), clock, Options::default())
    }

    /// The same with other settings. The rule engine is told how it stands with persistent calls.
    pub fn with_options(
        sessions: Arc<SessionRegistry>,
        store: Arc<dyn RpcStore>,
        rule_engine: Arc<dyn RuleEngine>,
        clock: SharedClock,
        options: Options,
    ) -> Arc<Self> {
        let since = i32::try_from(clock.now_ms() / 1_000 - NUMBERS_SINCE_S).unwrap_or(0);
        Arc::new(Self {
            client: ClientRpc::new(sessions.clone(), options.client_timeout),
            sessions,
            store,
            rule_engine,
            pending: Mutex::new(PendingRpcs::starting_at(since, &options)),
            run_id: new_uuid(),
            rest_waiters: Arc::default(),
            store_queue: RpcStoreQueue::default(),
            options,
            clock,
        })
    }

    /// Tells calls that this run of the program has taken from those of others.
    pub const fn run_id(&self) -> Uuid {
        self.run_id
    }

    /// The settings.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The sessions that calls go to.
    pub const fn sessions(&self) -> &Arc<SessionRegistry> {
        &self.sessions
    }

    /// Watches over time, and keeps what changes with persistent calls, until told to stop. To be run once.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let keeping = tokio::spawn(store_queue::run(self.clone()));
        let watching = async {
            self.remember_stored().await;
            let mut ticks = 0_u32;
            loop {
                tokio::time::sleep(TICK).await;
                self.tick();
                ticks = ticks.wrapping_add(1);
                if ticks.is_multiple_of(4) {
                    self.expire_stored().await;
                }
            }
        };
        tokio::select! {
            () = watching => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        self.store_queue.stop();
        let _ = keeping.await;
    }

    /// Takes a place for a client of the REST API that waits for the answer to a call which goes through the rule chains.
    /// `None` where too many wait, or one waits for this call already.
    pub fn await_answer(&self, tenant: TenantId, id: Uuid) -> Option<RestRpcWaiter> {
        self.rest_waiters.register(tenant, id)
    }

    /// Makes a session want these and nothing else. One that wants calls from now on is sent those that wait.
    pub fn set_subscriptions(&self, subject: EntityKey, session: &SessionControl, wants: Subscriptions) {
        let mut book = self.pending.lock();
        let is_new = wants.has(Subscriptions::RPC) && !session.is_subscribed(Subscriptions::RPC);
        session.set_subscriptions(wants);
        if !is_new {
            return;
        }
        let is_burst = book.is_burst();
        let mut sent = Vec::new();
        for pending in book.sendable(DeviceId(subject.entity.id)) {
            // A device that asks for one call at a time is not sent again what it has taken.
            let is_next = !session.is_one_shot() || !pending.delivered;
            if pending.rpc.tenant != subject.tenant || !is_next {
                continue;
            }
            if !self
                .sessions
                .send_to(session, &Downlink::Call(pending.rpc.clone()))
            {
                break;
            }
            if mark_sent(pending, is_burst) {
                sent.push((pending.rpc.device, pending.rpc.number));
            }
        }
        for (device, number) in sent {
            book.remove(device, number);
        }
        if book.take_stored(subject) {
            self.store_queue.load(subject);
        }
    }

    /// A call was written to the connection of the device, which acknowledges it or not.
    pub fn handle_sent(&self, call: &ToDeviceRpc, acknowledges: bool) {
        if !acknowledges {
            return self.handle_delivery(call);
        }
        self.await_acknowledgement(call, Some(self.clock.now_ms()));
    }

    /// A call was handed to a connection that sends it again by itself until the device acknowledges it, and that says when it
    /// gives that up: see [`Self::handle_ack_timeout`]. Until then it is not handed to this connection again.
    pub fn handle_handover(&self, call: &ToDeviceRpc) {
        self.await_acknowledgement(call, None);
    }

    fn await_acknowledgement(&self, call: &ToDeviceRpc, since_ms: Option<i64>) {
        let mut book = self.pending.lock();
        if book.await_acknowledgement(call, since_ms) {
            self.store_queue
                .push_status(call, RpcStatus::Sent, RpcResponse::Nothing);
        }
    }

    /// The device has not acknowledged a call, however often the connection has sent it: as if the time for that were over.
    pub fn handle_ack_timeout(&self, call: &ToDeviceRpc) {
        self.pending.lock().give_up(call, self.clock.now_ms());
    }

    /// A connection that was handed a call ends before the device has acknowledged it, or cannot send it any more: another one
    /// may have it.
    pub fn handle_return(&self, call: &ToDeviceRpc) {
        let mut book = self.pending.lock();
        if book.take_back(call) {
            self.send_next_or_load(&mut book, EntityKey::device(call.tenant, call.device));
        }
    }

    /// The device has acknowledged a call.
    pub fn handle_delivery(&self, call: &ToDeviceRpc) {
        let mut book = self.pending.lock();
        if call.oneway {
            let Some(mut pending) = book.remove(call.device, call.number) else {
                return;
            };
            self.store_queue
                .push_status(call, RpcStatus::Delivered, RpcResponse::Nothing);
            pending.resolve(Ok(None));
        } else if book.mark_acknowledged(call, self.clock.now_ms()) {
            self.store_queue
                .push_status(call, RpcStatus::Delivered, RpcResponse::Nothing);
        }
        self.send_next_or_load(&mut book, EntityKey::device(call.tenant, call.device));
    }

    /// A call cannot be sent to the device as it is connected now, and never will be.
    pub fn handle_failure(&self, call: &ToDeviceRpc, why: &str) {
        let mut book = self.pending.lock();
        let Some(mut pending) = book.remove(call.device, call.number) else {
            return;
        };
        pending.resolve(Ok(Some(json!({ "error": why }).to_string())));
        let error = RpcResponse::Error(why.to_owned());
        self.store_queue.push_status(call, RpcStatus::Failed, error);
        self.send_next_or_load(&mut book, EntityKey::device(call.tenant, call.device));
    }

    /// A device has answered a call. An answer that nobody waits for any more is dropped. Returns false where the answer
    /// cannot be kept now: the device has to answer again later.
    pub fn handle_answer(&self, subject: EntityKey, number: i32, body: String) -> bool {
        let device = DeviceId(subject.entity.id);
        let mut book = self.pending.lock();
        let pending = book.get(device, number);
        let Some(pending) = pending.filter(|pending| pending.rpc.tenant == subject.tenant) else {
            return true;
        };
        let is_persistent = pending.rpc.persistent;
        if is_persistent && !self.store_queue.has_room(&body) {
            return false;
        }
        let Some(mut pending) = book.remove(device, number) else {
            return true;
        };
        if is_persistent {
            let answer = RpcResponse::Answer(body.clone());
            self.store_queue
                .push_status(&pending.rpc, RpcStatus::Successful, answer);
        }
        self.send_next_or_load(&mut book, subject);
        drop(book);
        pending.resolve(Ok(Some(body)));
        true
    }

    /// Ends what is over.
    fn tick(&self) {
        let now = self.clock.now_ms();
        self.client.expire(now);
        let mut book = self.pending.lock();
        if book.is_empty() {
            return;
        }
        let OverdueRpcs {
            expired,
            again,
            given_up,
            unanswered,
        } = book.take_late(now);
        let subject = |call: &ToDeviceRpc| EntityKey::device(call.tenant, call.device);
        let mut to_close = Vec::new();
        for mut pending in expired {
            let why = pending.timeout_error();
            pending.resolve(Err(why));
            self.send_next_or_load(&mut book, subject(&pending.rpc));
        }
        for mut pending in unanswered {
            pending.resolve(Err(DeviceRpcError::Timeout));
            let error = RpcResponse::Error("The device did not answer it in time".to_owned());
            self.store_queue
                .push_status(&pending.rpc, RpcStatus::Failed, error);
            self.send_next_or_load(&mut book, subject(&pending.rpc));
        }
        for call in again {
            if let Some(pending) = book.get(call.device, call.number)
                && pending.update_status(RpcStatus::Timeout)
            {
                self.store_queue
                    .push_status(&call, RpcStatus::Timeout, RpcResponse::Nothing);
            }
            self.send_next_or_load(&mut book, subject(&call));
        }
        for (mut pending, tried) in given_up {
            let call = pending.rpc.clone();
            if book.keeps_unacknowledged() {
                self.store_queue
                    .push_status(&call, RpcStatus::Queued, RpcResponse::Nothing);
                book.put_back(pending);
                to_close.push(call.device);
                continue;
            }
            pending.resolve(Err(DeviceRpcError::Timeout));
            let error = RpcResponse::Error(format!(
                "The device did not acknowledge it, not even when it was sent again {tried} times"
            ));
            self.store_queue.push_status(&call, RpcStatus::Failed, error);
            self.send_next_or_load(&mut book, subject(&call));
        }
        drop(book);
        for device in to_close {
            self.sessions.close_device(device, CloseReason::CallTimeout);
        }
    }

    async fn send_and_wait(&self, request: &DeviceRpcRequest) -> RpcResult {
        let is_over = request.expires_ms <= self.clock.now_ms();
        if request.persistent {
            let status = if is_over {
                RpcStatus::Expired
            } else {
                RpcStatus::Queued
            };
            return self.send_persistent(request, status).await;
        }
        // A message that is processed again after a crash: the run that took the call may have sent it, and its client has
        // gone with that run. Nobody was told that it was sent who was not told by then.
        let is_of_another_run = request.origin_run.is_some_and(|run| run != self.run_id);
        if is_over || is_of_another_run {
            return Err(DeviceRpcError::Timeout);
        }
        let answer = {
            let mut book = self.pending.lock();
            let call = Arc::new(to_device_rpc(request, book.next_number()));
            if !book.has_room(&call) {
                return Err(DeviceRpcError::Internal);
            }
            let (caller, answer) = oneshot::channel();
            book.add(call.clone(), Some(caller), request.retries, true);
            self.dispatch(&mut book, &call);
            answer
        };
        // Without an answer the program stops.
        answer.await.unwrap_or(Err(DeviceRpcError::Internal))
    }

    /// Hands a call that is new among the pending to the sessions of its device, if it may go now.
    fn dispatch(&self, book: &mut PendingRpcs, call: &Arc<ToDeviceRpc>) {
        let subject = EntityKey::device(call.tenant, call.device);
        if !book.is_burst() {
            return self.advance(book, subject);
        }
        if self.sessions.send(subject, &Downlink::Call(call.clone())) == 0 {
            return;
        }
        let pending = book.get(call.device, call.number);
        if pending.is_some_and(|pending| mark_sent(pending, true)) {
            book.remove(call.device, call.number);
        }
    }

    /// Hands a device what it may have next, unless a session has it.
    fn advance(&self, book: &mut PendingRpcs, subject: EntityKey) {
        for pending in book.sendable(DeviceId(subject.entity.id)) {
            let call = pending.rpc.clone();
            if pending.is_in_flight
                || call.tenant != subject.tenant
                || self.sessions.send(subject, &Downlink::Call(call)) == 0
            {
                return;
            }
            mark_sent(pending, false);
        }
    }

    async fn send_persistent(&self, request: &DeviceRpcRequest, status: RpcStatus) -> RpcResult {
        let subject = EntityKey::device(request.tenant, request.device);
        // It has its place before it is stored, so that nobody else brings it into memory meanwhile.
        let (call, has_place) = {
            let mut book = self.pending.lock();
            let call = Arc::new(to_device_rpc(request, book.next_number()));
            // Calls of a device that is away stay in the store, and those that follow them.
            let has_place = status == RpcStatus::Queued
                && self.sessions.has_subscriber(request.device, Subscriptions::RPC)
                && !book.has_stored(subject)
                && book.has_room(&call)
                && book.add(call.clone(), None, request.retries, false);
            (call, has_place)
        };
        let stored = persistent_rpc(request, call.number, status, self.clock.now_ms());
        if let Err(error) = self.store.insert(&stored).await {
            if has_place {
                let mut book = self.pending.lock();
                book.remove(call.device, call.number);
                self.send_next_or_load(&mut book, subject);
            }
            if error.kind() == StoreErrorKind::Conflict && self.is_kept(request).await {
                return Ok(Some(accepted(request)));
            }
            tracing::warn!(device = %request.device, %error, "cannot store a call to a device");
            return Err(match error.kind() {
                StoreErrorKind::Invalid => DeviceRpcError::NotFound,
                _ => DeviceRpcError::Internal,
            });
        }
        self.notify_rule_engine(&stored).await;
        if status == RpcStatus::Expired {
            return Err(DeviceRpcError::Timeout);
        }
        let mut book = self.pending.lock();
        if !has_place {
            book.remember_stored(subject);
            self.send_next_or_load(&mut book, subject);
        } else if let Some(pending) = book.get(call.device, call.number) {
            pending.is_ready = true;
            self.dispatch(&mut book, &call);
        }
        drop(book);
        Ok(Some(accepted(request)))
    }

    /// Whether a call was stored by an earlier run, which had its message before: its processing is repeated.
    async fn is_kept(&self, request: &DeviceRpcRequest) -> bool {
        let is_repeated = request.origin_run.is_none_or(|run| run != self.run_id);
        let kept = self.store.get(request.tenant, RpcId(request.id)).await;
        is_repeated && matches!(kept, Ok(Some(kept)) if kept.device_id == request.device)
    }
}

/// What the caller of a persistent call is told.
fn accepted(request: &DeviceRpcRequest) -> String {
    json!({ "rpcId": request.id }).to_string()
}

/// A session has taken a call. Returns whether that is all there is to do: one that needs no answer, and after which no
/// other waits, is not followed any further.
fn mark_sent(pending: &mut PendingRpc, is_burst: bool) -> bool {
    pending.mark_taken();
    let is_done = pending.rpc.oneway && !pending.rpc.persistent;
    if is_done {
        pending.resolve(Ok(None));
    }
    is_done && is_burst
}

fn to_device_rpc(request: &DeviceRpcRequest, number: i32) -> ToDeviceRpc {
    ToDeviceRpc {
        id: request.id,
        tenant: request.tenant,
        device: request.device,
        number,
        method: request.method.clone(),
        params: request.params.clone(),
        expires_ms: request.expires_ms,
        oneway: request.oneway,
        persistent: request.persistent,
    }
}

fn persistent_rpc(request: &DeviceRpcRequest, number: i32, status: RpcStatus, now_ms: i64) -> Rpc {
    let info = request.additional_info.as_deref();
    Rpc {
        id: RpcId(request.id),
        created_time: now_ms,
        tenant_id: request.tenant,
        device_id: request.device,
        expiration_time: request.expires_ms,
        request: RpcRequest {
            id: request.id,
            tenant_id: request.tenant,
            device_id: request.device,
            oneway: request.oneway,
            expiration_time: request.expires_ms,
            body: RpcBody {
                method: request.method.clone(),
                params: request.params.clone(),
            },
            persisted: true,
            retries: request.retries,
            additional_info: request.additional_info.clone(),
        },
        response: None,
        status,
        // Text that is no JSON is a text.
        additional_info: info
            .map(|info| serde_json::from_str(info).unwrap_or_else(|_| Value::from(info)))
            .filter(|info| !info.is_null()),
        number,
    }
}

/// The port, shared with those who call.
pub struct DeviceRpcPort(pub Arc<DeviceRpcService>);

#[async_trait]
impl DeviceRpc for DeviceRpcPort {
    async fn send(&self, request: DeviceRpcRequest) -> Result<Option<String>, DeviceRpcError> {
        let outcome = self.0.send_and_wait(&request).await;
        if request.rest_origin.as_deref() == Some(SERVICE_ID) {
            self.0.rest_waiters.resolve(request.tenant, request.id, &outcome);
        }
        outcome
    }

    fn answer(&self, service: &str, session: Uuid, request: i32, body: String) {
        if service == SERVICE_ID {
            self.0.client.answer(session, request, &body);
        }
    }
}
