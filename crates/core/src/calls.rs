//! Calls to devices and by devices.
//!
//! A call to a device gets a number, is handed to the sessions of the device that take calls, and waits in a book until the
//! device has answered, or has acknowledged one that needs no answer, or until it expires. What comes while the device has
//! no session waits there as well, and is sent when it comes. A persistent call is a row of the store besides: those of
//! devices that are away are in the store alone.
//!
//! A call by a device goes through the rule engine; whoever answers it names the session and the number, see [`client`].

mod book;
pub mod client;
mod keep;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use fieldline_model::entity::{Rpc, RpcBody, RpcRequest, RpcStatus};
use fieldline_model::{RpcId, Subject, TenantId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use self::book::{Book, Outcome, Unacknowledged};
use self::client::ClientCalls;
use self::keep::Change;
use crate::clock::SharedClock;
use crate::downlink::{DeviceCall, DeviceLink as _, Downlink, Wants};
use crate::ports::{
    DeviceRpc, DeviceRpcError, DeviceRpcRequest, PersistentCallStore, RuleEngine, StoreResult,
};
use crate::queue_stats::SERVICE_ID;
use crate::sessions::{SessionControl, Sessions};

/// Stored calls of one device that are brought into memory together.
const LOADED: u32 = 100;
/// How often somebody looks for what is over.
const TICK: Duration = Duration::from_millis(250);
/// Clients of the REST API that wait for devices.
const MAX_REST: usize = 50_000;
/// Seconds of 2020-01-01: numbers of calls begin with the seconds since, so that a late answer to a call of an earlier run
/// meets none of this one.
const NUMBERS_SINCE_S: i64 = 1_577_836_800;

/// See the module. One for each node.
pub struct Calls {
    sessions: Arc<Sessions>,
    store: Arc<dyn PersistentCallStore>,
    clock: SharedClock,
    engine: OnceLock<Arc<dyn RuleEngine>>,
    book: Mutex<Book>,
    rest: Mutex<FxHashMap<(TenantId, Uuid), oneshot::Sender<Outcome>>>,
    changes: mpsc::UnboundedSender<Change>,
    kept: Mutex<Option<mpsc::UnboundedReceiver<Change>>>,
    /// Calls by devices.
    pub client: ClientCalls,
}

impl Calls {
    /// Calls over the sessions of this node.
    pub fn new(
        sessions: Arc<Sessions>,
        store: Arc<dyn PersistentCallStore>,
        clock: SharedClock,
    ) -> Arc<Self> {
        let since = clock.now_ms() / 1_000 - NUMBERS_SINCE_S;
        let (changes, kept) = mpsc::unbounded_channel();
        Arc::new(Self {
            client: ClientCalls::new(sessions.clone()),
            sessions,
            store,
            engine: OnceLock::new(),
            book: Mutex::new(Book::starting_at(i32::try_from(since).unwrap_or(0))),
            rest: Mutex::default(),
            changes,
            kept: Mutex::new(Some(kept)),
            clock,
        })
    }

    /// Who is told how it stands with persistent calls; until then nobody is.
    pub fn report_to(&self, engine: Arc<dyn RuleEngine>) {
        let _ = self.engine.set(engine);
    }

    /// Watches over time, and keeps what changes with persistent calls, until told to stop. To be run once.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let Some(kept) = self.kept.lock().take() else {
            return;
        };
        let keeping = tokio::spawn(keep::run(self.clone(), kept));
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
        let _ = self.changes.send(Change::Stop);
        let _ = keeping.await;
    }

    /// Takes a place for a client of the REST API that waits for the answer to a call which goes through the rule chains.
    /// `None` where too many wait, or one waits for this call already.
    pub fn await_answer(&self, tenant: TenantId, id: Uuid) -> Option<oneshot::Receiver<Outcome>> {
        let mut rest = self.rest.lock();
        if rest.len() >= MAX_REST || rest.contains_key(&(tenant, id)) {
            return None;
        }
        let (caller, answer) = oneshot::channel();
        rest.insert((tenant, id), caller);
        Some(answer)
    }

    /// Gives the place back, where nobody has answered.
    pub fn await_no_longer(&self, tenant: TenantId, id: Uuid) {
        self.rest.lock().remove(&(tenant, id));
    }

    /// Makes a session want these and nothing else. One that wants calls from now on is sent those that wait.
    pub fn follow(self: &Arc<Self>, subject: Subject, session: &SessionControl, wants: Wants) {
        let mut book = self.book.lock();
        let is_new = wants.has(Wants::CALLS) && !session.wants(Wants::CALLS);
        session.want_no_more(Wants::ATTRIBUTES.and(Wants::CALLS));
        session.want(wants);
        if !is_new {
            return;
        }
        let mut done = Vec::new();
        for pending in book.of(fieldline_model::DeviceId(subject.entity.id)) {
            // A device that asks for one call at a time is not sent again what it has taken.
            let is_next = !session.is_one_shot() || !pending.delivered;
            if pending.call.tenant != subject.tenant || !is_next {
                continue;
            }
            if !self
                .sessions
                .send_to(session, &Downlink::Call(pending.call.clone()))
            {
                break;
            }
            pending.sent = true;
            if pending.call.oneway && !pending.call.persistent {
                pending.resolve(Ok(None));
                done.push((pending.call.device, pending.call.number));
            }
        }
        for (device, number) in done {
            book.remove(device, number);
        }
        if book.take_stored(subject) {
            drop(book);
            self.load_stored(subject);
        }
    }

    /// A call was written to the connection of the device, which acknowledges it or not.
    pub fn sent(&self, call: &DeviceCall, acknowledges: bool) {
        if !acknowledges {
            return self.delivered(call);
        }
        self.book.lock().await_acknowledgement(call, self.clock.now_ms());
        self.keep(call, RpcStatus::Sent, None);
    }

    /// The device has acknowledged a call.
    pub fn delivered(&self, call: &DeviceCall) {
        let mut book = self.book.lock();
        if call.oneway {
            if let Some(mut pending) = book.remove(call.device, call.number) {
                pending.resolve(Ok(None));
            }
        } else if let Some(pending) = book.get(call.device, call.number) {
            pending.acknowledged();
        }
        drop(book);
        self.keep(call, RpcStatus::Delivered, None);
    }

    /// A call cannot be sent to the device as it is connected now, and never will be.
    pub fn failed(&self, call: &DeviceCall, why: &str) {
        if let Some(mut pending) = self.book.lock().remove(call.device, call.number) {
            pending.resolve(Ok(Some(json!({ "error": why }).to_string())));
        }
        self.keep(call, RpcStatus::Failed, Some(json!({ "error": why })));
    }

    /// A device has answered a call. An answer that nobody waits for any more is dropped.
    pub fn answered(self: &Arc<Self>, subject: Subject, number: i32, body: String) {
        let device = fieldline_model::DeviceId(subject.entity.id);
        let mut book = self.book.lock();
        let is_its_own = book
            .get(device, number)
            .is_some_and(|pending| pending.call.tenant == subject.tenant);
        let Some(mut pending) = is_its_own.then(|| book.remove(device, number)).flatten() else {
            return;
        };
        let goes_on = book.is_idle(device) && book.take_stored(subject);
        drop(book);
        if pending.call.persistent {
            let answer = serde_json::from_str(&body).unwrap_or_else(|_| json!({ "error": body }));
            self.keep(&pending.call, RpcStatus::Successful, Some(answer));
        }
        pending.resolve(Ok(Some(body)));
        if goes_on {
            self.load_stored(subject);
        }
    }

    /// Deletes a persistent call; returns it as it was, if the tenant had it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(&self, tenant: TenantId, id: RpcId) -> StoreResult<Option<Rpc>> {
        let Some(mut call) = self.store.get(tenant, id).await? else {
            return Ok(None);
        };
        self.store.delete(tenant, id).await?;
        self.book.lock().remove_id(call.device_id, id.0);
        call.status = RpcStatus::Deleted;
        self.tell(&call).await;
        Ok(Some(call))
    }

    fn keep(&self, call: &DeviceCall, status: RpcStatus, response: Option<Value>) {
        if call.persistent {
            // Nothing is kept any more once the program stops.
            let _ = self.changes.send(Change::Status {
                tenant: call.tenant,
                id: RpcId(call.id),
                status,
                response,
            });
        }
    }

    /// Ends what is over.
    fn tick(&self) {
        let now = self.clock.now_ms();
        let (expired, late) = {
            let mut book = self.book.lock();
            if book.is_empty() {
                (Vec::new(), Vec::new())
            } else {
                (book.take_expired(now), book.take_unacknowledged(now))
            }
        };
        for mut pending in expired {
            let why = pending.late();
            pending.resolve(Err(why));
        }
        for late in late {
            match late {
                Unacknowledged::Again(call) => self.keep(&call, RpcStatus::Timeout, None),
                Unacknowledged::GivenUp(call, tried) => {
                    let why = format!(
                        "The device did not acknowledge it, not even when it was sent again {tried} times"
                    );
                    self.keep(&call, RpcStatus::Failed, Some(json!({ "error": why })));
                }
            }
        }
        self.client.expire(now);
    }

    async fn call(self: &Arc<Self>, request: &DeviceRpcRequest) -> Outcome {
        let is_over = request.expires_ms <= self.clock.now_ms();
        if request.persistent {
            let status = if is_over {
                RpcStatus::Expired
            } else {
                RpcStatus::Queued
            };
            return self.call_persistently(request, status).await;
        }
        if is_over {
            return Err(DeviceRpcError::Timeout);
        }
        let answer = {
            let mut book = self.book.lock();
            if !book.has_room(request.device) {
                return Err(DeviceRpcError::Internal);
            }
            let (caller, answer) = oneshot::channel();
            let call = Arc::new(device_call(request, book.number()));
            book.add(call.clone(), Some(caller), None);
            self.dispatch(&mut book, &call);
            answer
        };
        // Without an answer the program stops.
        answer.await.unwrap_or(Err(DeviceRpcError::Internal))
    }

    /// Hands a call in the book to the sessions of its device.
    fn dispatch(&self, book: &mut Book, call: &Arc<DeviceCall>) {
        let subject = Subject::device(call.tenant, call.device);
        if self.sessions.send(subject, &Downlink::Call(call.clone())) == 0 {
            return;
        }
        if call.oneway && !call.persistent {
            if let Some(mut pending) = book.remove(call.device, call.number) {
                pending.resolve(Ok(None));
            }
        } else if let Some(pending) = book.get(call.device, call.number) {
            pending.sent = true;
        }
    }

    async fn call_persistently(self: &Arc<Self>, request: &DeviceRpcRequest, status: RpcStatus) -> Outcome {
        let number = self.book.lock().number();
        let call = persistent_call(request, number, status, self.clock.now_ms());
        if let Err(error) = self.store.insert(&call).await {
            tracing::warn!(device = %request.device, %error, "cannot store a call to a device");
            let is_gone = error.kind() == crate::ports::StoreErrorKind::Invalid;
            return Err(if is_gone {
                DeviceRpcError::NotFound
            } else {
                DeviceRpcError::Internal
            });
        }
        self.tell(&call).await;
        if status == RpcStatus::Expired {
            return Err(DeviceRpcError::Timeout);
        }
        let subject = Subject::device(request.tenant, request.device);
        let mut book = self.book.lock();
        // Calls of a device that is away stay in the store.
        if self.sessions.wants(request.device, Wants::CALLS) && book.has_room(request.device) {
            let sent = Arc::new(device_call(request, number));
            if book.add(sent.clone(), None, request.retries) {
                self.dispatch(&mut book, &sent);
            }
        } else {
            book.remember_stored(subject);
        }
        drop(book);
        Ok(Some(json!({ "rpcId": request.id }).to_string()))
    }
}

fn device_call(request: &DeviceRpcRequest, number: i32) -> DeviceCall {
    DeviceCall {
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

fn persistent_call(request: &DeviceRpcRequest, number: i32, status: RpcStatus, now_ms: i64) -> Rpc {
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
pub struct CallPort(pub Arc<Calls>);

#[async_trait]
impl DeviceRpc for CallPort {
    async fn send(&self, request: DeviceRpcRequest) -> Result<Option<String>, DeviceRpcError> {
        let outcome = self.0.call(&request).await;
        if request.rest_origin.as_deref() == Some(SERVICE_ID) {
            let caller = self.0.rest.lock().remove(&(request.tenant, request.id));
            if let Some(caller) = caller {
                // The client has gone.
                let _ = caller.send(outcome.clone());
            }
        }
        outcome
    }

    fn answer(&self, service: &str, session: Uuid, request: i32, body: String) {
        if service == SERVICE_ID {
            self.0.client.answer(session, request, &body);
        }
    }
}
