//! Persistent calls between memory and the store.

use std::sync::Arc;

use fieldline_model::entity::{Rpc, RpcStatus};
use fieldline_model::message::{Message, Metadata};
use fieldline_model::{DeviceId, RpcId, Subject, TenantId};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Calls, LOADED};
use crate::downlink::DeviceCall;
use crate::logging::LogGate;

static STORE_GATE: LogGate = LogGate::new(2);
/// Calls that are brought to their end together.
const EXPIRED: u32 = 500;
/// Devices that are read together at the start.
const DEVICES: u32 = 10_000;

/// What is to be kept.
pub(super) enum Change {
    Status {
        tenant: TenantId,
        id: RpcId,
        status: RpcStatus,
        response: Option<Value>,
    },
    /// Nothing follows.
    Stop,
}

/// Keeps changes in the order in which they come.
pub(super) async fn run(calls: Arc<Calls>, mut changes: mpsc::UnboundedReceiver<Change>) {
    while let Some(Change::Status {
        tenant,
        id,
        status,
        response,
    }) = changes.recv().await
    {
        calls.set_status(tenant, id, status, response.as_ref()).await;
    }
}

impl Calls {
    async fn set_status(&self, tenant: TenantId, id: RpcId, status: RpcStatus, response: Option<&Value>) {
        match self.store.set_status(tenant, id, status, response).await {
            Ok(Some(call)) => self.tell(&call).await,
            // It was deleted, or has ended otherwise.
            Ok(None) => {}
            Err(error) => {
                if let Some(suppressed) = STORE_GATE.open() {
                    tracing::warn!(call = %id, %error, suppressed, "cannot store how it stands with a call to a device");
                }
            }
        }
    }

    /// Tells the rule engine how it stands with a call.
    pub(super) async fn tell(&self, call: &Rpc) {
        let (Some(engine), Ok(body)) = (self.engine.get(), serde_json::to_string(call)) else {
            return;
        };
        let message = Message::new(
            call.status.message(),
            call.device_id.into(),
            self.clock.now_ms(),
            Metadata::new(),
            body,
        );
        if let Err(error) = engine.push(call.tenant_id, message).await
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
                    let mut book = self.book.lock();
                    devices
                        .into_iter()
                        .for_each(|subject| book.remember_stored(subject));
                }
                Err(error) => {
                    if let Some(suppressed) = STORE_GATE.open() {
                        tracing::warn!(%error, suppressed, "cannot read which devices have calls waiting");
                    }
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Brings stored calls of a device that takes calls into memory, and sends them.
    pub(super) fn load_stored(self: &Arc<Self>, subject: Subject) {
        let calls = self.clone();
        tokio::spawn(async move {
            let device = DeviceId(subject.entity.id);
            match calls.store.open_of(subject.tenant, device, LOADED).await {
                Ok(found) => calls.take_up(subject, &found),
                Err(error) => {
                    calls.book.lock().remember_stored(subject);
                    if let Some(suppressed) = STORE_GATE.open() {
                        tracing::warn!(%device, %error, suppressed, "cannot read the calls of a device");
                    }
                }
            }
        });
    }

    fn take_up(&self, subject: Subject, found: &[Rpc]) {
        let mut book = self.book.lock();
        if found.len() >= LOADED as usize {
            book.remember_stored(subject);
        }
        for call in found {
            let request = &call.request;
            if !book.has_room(call.device_id) {
                book.remember_stored(subject);
                return;
            }
            let taken = Arc::new(DeviceCall {
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
            if book.add(taken.clone(), None, request.retries) {
                self.dispatch(&mut book, &taken);
            }
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
                self.set_status(call.tenant_id, call.id, RpcStatus::Expired, None)
                    .await;
            }
            if due.len() < EXPIRED as usize {
                return;
            }
        }
    }
}
