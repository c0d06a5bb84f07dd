//! Persistent calls between memory and the store.
//!
//! What changes is kept in the order in which it comes, and calls are brought into memory by the same task: one that has
//! just ended here is not taken for open because the store does not know yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreResult;
use fieldline_model::entity::{Rpc, RpcStatus};
use fieldline_model::message::{MetadataMap, QueueMessage};
use fieldline_model::{DeviceId, EntityKey, RpcId, TenantId};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use tokio::sync::Notify;
use uuid::Uuid;

use super::{DeviceRpcService, LOADED};
use crate::downlink::{Subscriptions, ToDeviceRpc};

static STORE_GATE: LogGate = LogGate::new(2);
static FULL_GATE: LogGate = LogGate::new(2);
/// Calls that are brought to their end together.
const EXPIRED: u32 = 500;
/// Devices that are read together at the start.
const DEVICES: u32 = 10_000;
/// Changes that may wait for the store; of those beyond it only the ones that end a call are kept.
const MAX_WAITING: usize = 100_000;
/// What the answers among them may take, bytes; beyond it devices have to keep theirs.
const MAX_BYTES: usize = 64 << 20;
/// How long a store that failed is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// What is kept besides the status.
pub(super) enum RpcResponse {
    Nothing,
    /// What a device has answered: JSON, or any other text.
    Answer(String),
    Error(String),
}

impl RpcResponse {
    fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Answer(text) | Self::Error(text) => text.len(),
        }
    }

    fn value(self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Answer(text) => {
                Some(serde_json::from_str(&text).unwrap_or_else(|_| json!({ "error": text })))
            }
            Self::Error(why) => Some(json!({ "error": why })),
        }
    }
}

enum RpcStoreTask {
    Status {
        tenant: TenantId,
        id: Uuid,
        status: RpcStatus,
        response: RpcResponse,
        /// Nothing follows for this call.
        ends: bool,
    },
    /// Calls of a device are to be brought into memory.
    Load(EntityKey),
    /// A call was deleted.
    Deleted(Uuid),
    /// Nothing follows.
    Stop,
}

/// What waits for the store.
#[derive(Default)]
pub(super) struct RpcStoreQueue {
    queue: Mutex<RpcStoreBacklog>,
    news: Notify,
}

#[derive(Default)]
struct RpcStoreBacklog {
    waiting: VecDeque<RpcStoreTask>,
    bytes: usize,
    /// Calls that have ended, which the store may not know yet.
    ended: FxHashSet<Uuid>,
    /// Devices that wait in the queue.
    loading: FxHashSet<EntityKey>,
}

impl RpcStoreQueue {
    /// Whether an answer can be kept.
    pub(super) fn has_room(&self, answer: &str) -> bool {
        let queue = self.queue.lock();
        queue.waiting.len() < 2 * MAX_WAITING && queue.bytes + answer.len() <= MAX_BYTES
    }

    /// How it stands with a call. To be said while the pending calls are locked.
    pub(super) fn push_status(&self, call: &ToDeviceRpc, status: RpcStatus, response: RpcResponse) {
        if !call.persistent {
            return;
        }
        let ends = !RpcStatus::OPEN.contains(&status) || (call.oneway && status == RpcStatus::Delivered);
        let mut queue = self.queue.lock();
        if ends {
            queue.ended.insert(call.id);
        } else if queue.waiting.len() >= MAX_WAITING {
            if let Some(suppressed) = FULL_GATE.open() {
                tracing::warn!(call = %call.id, ?status, suppressed, "the store is too slow to keep how it stands with calls");
            }
            return;
        }
        queue.bytes += response.bytes();
        queue.waiting.push_back(RpcStoreTask::Status {
            tenant: call.tenant,
            id: call.id,
            status,
            response,
            ends,
        });
        drop(queue);
        self.news.notify_one();
    }

    /// Calls of a device that takes calls are to be brought into memory.
    pub(super) fn load(&self, subject: EntityKey) {
        let mut queue = self.queue.lock();
        if queue.loading.insert(subject) {
            queue.waiting.push_back(RpcStoreTask::Load(subject));
            drop(queue);
            self.news.notify_one();
        }
    }

    /// A call is about to be deleted: it is not brought into memory any more.
    fn begin_delete(&self, id: Uuid) {
        self.queue.lock().ended.insert(id);
    }

    /// Deleting is over, successful or not.
    fn end_delete(&self, id: Uuid) {
        self.queue.lock().waiting.push_back(RpcStoreTask::Deleted(id));
        self.news.notify_one();
    }

    pub(super) fn stop(&self) {
        self.queue.lock().waiting.push_back(RpcStoreTask::Stop);
        self.news.notify_one();
    }

    fn is_stopping(&self) -> bool {
        matches!(self.queue.lock().waiting.back(), Some(RpcStoreTask::Stop))
    }

    fn has_ended(&self, id: Uuid) -> bool {
        self.queue.lock().ended.contains(&id)
    }

    fn forget_ended(&self, id: Uuid) {
        self.queue.lock().ended.remove(&id);
    }

    async fn next(&self) -> RpcStoreTask {
        loop {
            let next = {
                let mut queue = self.queue.lock();
                let next = queue.waiting.pop_front();
                match &next {
                    Some(RpcStoreTask::Status { response, .. }) => queue.bytes -= response.bytes(),
                    Some(RpcStoreTask::Load(subject)) => {
                        queue.loading.remove(subject);
                    }
                    _ => {}
                }
                if queue.waiting.is_empty() {
                    queue.waiting.shrink_to(1_024);
                }
                next
            };
            match next {
                Some(change) => return change,
                None => self.news.notified().await,
            }
        }
    }
}

/// Keeps changes until told to stop.
pub(super) async fn run(calls: Arc<DeviceRpcService>) {
    loop {
        match calls.store_queue.next().await {
            RpcStoreTask::Status {
                tenant,
                id,
                status,
                response,
                ends,
            } => {
                calls
                    .keep_status(tenant, RpcId(id), status, response.value())
                    .await;
                if ends {
                    calls.store_queue.forget_ended(id);
                }
            }
            RpcStoreTask::Load(subject) => calls.load_stored(subject).await,
            RpcStoreTask::Deleted(id) => calls.store_queue.forget_ended(id),
            RpcStoreTask::Stop => return,
        }
    }
}

fn cannot_store(call: RpcId, error: &fieldline_core::ports::StoreError) {
    if let Some(suppressed) = STORE_GATE.open() {
        tracing::warn!(%call, %error, suppressed, "cannot store how it stands with a call to a device");
    }
}

impl DeviceRpcService {
    /// Keeps a status, however often it takes: a call that has ended would be sent again.
    async fn keep_status(&self, tenant: TenantId, id: RpcId, status: RpcStatus, response: Option<Value>) {
        while let Err(error) = self.set_status(tenant, id, status, response.as_ref()).await {
            cannot_store(id, &error);
            if !error.kind().is_retryable() || self.store_queue.is_stopping() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn set_status(
        &self,
        tenant: TenantId,
        id: RpcId,
        status: RpcStatus,
        response: Option<&Value>,
    ) -> StoreResult<()> {
        // Nothing is told of a call that was deleted, or has ended otherwise.
        if let Some(call) = self.store.set_status(tenant, id, status, response).await? {
            self.notify_rule_engine(&call).await;
        }
        Ok(())
    }

    /// Deletes a persistent call; returns it as it was, if the tenant had it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(&self, tenant: TenantId, id: RpcId) -> StoreResult<Option<Rpc>> {
        let Some(mut call) = self.store.get(tenant, id).await? else {
            return Ok(None);
        };
        self.store_queue.begin_delete(id.0);
        let deleted = self.store.delete(tenant, id).await;
        if deleted.is_ok() {
            let mut book = self.pending.lock();
            book.remove_id(call.device_id, id.0);
            self.send_next_or_load(&mut book, EntityKey::device(tenant, call.device_id));
        }
        self.store_queue.end_delete(id.0);
        deleted?;
        call.status = RpcStatus::Deleted;
        self.notify_rule_engine(&call).await;
        Ok(Some(call))
    }

    /// Tells the rule engine how it stands with a call.
    pub(super) async fn notify_rule_engine(&self, call: &Rpc) {
        let Ok(body) = serde_json::to_string(call) else {
            return;
        };
        let message = QueueMessage::new(
            call.status.message(),
            call.device_id.into(),
            self.clock.now_ms(),
            MetadataMap::new(),
            body,
        );
        if let Err(error) = self.rule_engine.push(call.tenant_id, message).await
            && let Some(suppressed) = STORE_GATE.open()
        {
            tracing::warn!(call = %call.id, %error, suppressed, "could not tell the rule engine of a call to a device");
        }
    }

    /// Learns which devices have calls in the store.
    pub(super) async fn remember_stored(&self) {
        let mut after = None;
        loop {
            match self.store.waiting_devices(after, DEVICES).await {
                Ok(devices) => {
                    let Some(last) = devices.last() else { return };
                    after = Some(DeviceId(last.entity.id));
                    let mut book = self.pending.lock();
                    for subject in devices {
                        book.remember_stored(subject);
                        // Some have come before this was known.
                        self.send_next_or_load(&mut book, subject);
                    }
                }
                Err(error) => {
                    if let Some(suppressed) = STORE_GATE.open() {
                        tracing::warn!(%error, suppressed, "cannot read which devices have calls waiting");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Brings stored calls of a device that takes calls into memory, and sends them.
    async fn load_stored(&self, subject: EntityKey) {
        let device = DeviceId(subject.entity.id);
        match self.store.open_of(subject.tenant, device, LOADED).await {
            Ok(found) => self.enqueue_stored(subject, &found),
            Err(error) => {
                self.pending.lock().remember_stored(subject);
                if let Some(suppressed) = STORE_GATE.open() {
                    tracing::warn!(%device, %error, suppressed, "cannot read the calls of a device");
                }
                if !self.store_queue.is_stopping() {
                    tokio::time::sleep(PAUSE).await;
                    self.send_next_or_load(&mut self.pending.lock(), subject);
                }
            }
        }
    }

    fn enqueue_stored(&self, subject: EntityKey, found: &[Rpc]) {
        let now = self.clock.now_ms();
        let mut book = self.pending.lock();
        if found.len() >= LOADED as usize {
            book.remember_stored(subject);
        }
        let mut has_ended = false;
        for call in found {
            if self.store_queue.has_ended(call.id.0) {
                has_ended = true;
                continue;
            }
            if call.expiration_time <= now {
                continue;
            }
            let request = &call.request;
            let taken = Arc::new(ToDeviceRpc {
                id: call.id.0,
                tenant: call.tenant_id,
                device: call.device_id,
                number: call.number,
                method: request.body.method.clone(),
                params: request.body.params.clone(),
                expires_ms: call.expiration_time,
                oneway: request.oneway,
                persistent: true,
            });
            if !book.has_room(&taken) {
                book.remember_stored(subject);
                return;
            }
            if book.add(taken.clone(), None, request.retries, true) {
                self.dispatch(&mut book, &taken);
            }
        }
        if has_ended {
            // Others may be behind those that the store does not know yet to have ended.
            self.send_next_or_load(&mut book, subject);
        }
    }

    /// Goes on with the calls of a device of which one has ended: with the next one, and when there is none, with those in
    /// the store.
    pub(super) fn send_next_or_load(&self, book: &mut super::PendingRpcs, subject: EntityKey) {
        let device = DeviceId(subject.entity.id);
        if !book.is_burst() {
            self.advance(book, subject);
        }
        if book.is_idle(device)
            && self.sessions.has_subscriber(device, Subscriptions::RPC)
            && book.take_stored(subject)
        {
            self.store_queue.load(subject);
        }
    }

    /// Ends stored calls whose time is over.
    pub(super) async fn expire_stored(&self) {
        loop {
            let due = match self.store.due(self.clock.now_ms(), EXPIRED).await {
                Ok(due) => due,
                Err(error) => {
                    if let Some(suppressed) = STORE_GATE.open() {
                        tracing::warn!(%error, suppressed, "cannot read which calls are over");
                    }
                    return;
                }
            };
            for call in &due {
                let expired = self
                    .set_status(call.tenant_id, call.id, RpcStatus::Expired, None)
                    .await;
                if let Err(error) = expired {
                    // The same ones would be found again.
                    return cannot_store(call.id, &error);
                }
            }
            {
                let mut book = self.pending.lock();
                for call in &due {
                    self.send_next_or_load(&mut book, EntityKey::device(call.tenant_id, call.device_id));
                }
            }
            if due.len() < EXPIRED as usize {
                return;
            }
        }
    }
}
