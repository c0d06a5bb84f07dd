//! Clients of the REST API that wait for the answers of devices.

use std::sync::Arc;

use fieldline_model::TenantId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::pending::RpcResult;

/// Clients that wait at a time.
const MAX_REST: usize = 50_000;

/// See the module.
#[derive(Default)]
pub(super) struct RestRpcWaiters(Mutex<FxHashMap<(TenantId, Uuid), oneshot::Sender<RpcResult>>>);

/// The place of a client that waits; given back when dropped, as with a client that has gone.
pub struct RestRpcWaiter {
    waiters: Arc<RestRpcWaiters>,
    key: (TenantId, Uuid),
    answer: oneshot::Receiver<RpcResult>,
}

impl RestRpcWaiters {
    /// Takes a place. `None` where too many wait, or one waits for this call already.
    pub(super) fn register(self: &Arc<Self>, tenant: TenantId, id: Uuid) -> Option<RestRpcWaiter> {
        let key = (tenant, id);
        let mut callers = self.0.lock();
        if callers.len() >= MAX_REST || callers.contains_key(&key) {
            return None;
        }
        let (caller, answer) = oneshot::channel();
        callers.insert(key, caller);
        Some(RestRpcWaiter {
            waiters: self.clone(),
            key,
            answer,
        })
    }

    /// Tells a client, if it still waits.
    pub(super) fn resolve(&self, tenant: TenantId, id: Uuid, outcome: &RpcResult) {
        let caller = self.0.lock().remove(&(tenant, id));
        if let Some(caller) = caller {
            // The client has gone.
            let _ = caller.send(outcome.clone());
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

impl RestRpcWaiter {
    /// The answer; `None` where nobody will give one any more.
    pub async fn answer(&mut self) -> Option<RpcResult> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for RestRpcWaiter {
    fn drop(&mut self) {
        self.answer.close();
        let mut callers = self.waiters.0.lock();
        // Another client may wait for a call of the same id by now.
        if callers.get(&self.key).is_some_and(oneshot::Sender::is_closed) {
            callers.remove(&self.key);
        }
    }
}
