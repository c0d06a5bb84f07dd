//! What nodes talk to, kept for the test.

use async_trait::async_trait;
use fieldline_core::ports::{
    DeviceRpc, DeviceRpcError, DeviceRpcRequest, RestApiResponder, RuleEngine, StoreError, StoreErrorKind,
    StoreResult,
};
use fieldline_devices::downlink::{DeviceLink, Downlink};
use fieldline_model::message::QueueMessage;
use fieldline_model::{DeviceId, EntityKey, TenantId};
use parking_lot::Mutex;
use uuid::Uuid;

/// Takes messages for queues, and keeps them for the test.
#[derive(Default)]
pub(crate) struct Queue {
    messages: Mutex<Vec<QueueMessage>>,
    full: Mutex<bool>,
}

impl Queue {
    /// What was pushed since this was last asked.
    pub(crate) fn take(&self) -> Vec<QueueMessage> {
        std::mem::take(&mut self.messages.lock())
    }

    /// From now on everything is refused, or taken.
    pub(crate) fn set_full(&self, full: bool) {
        *self.full.lock() = full;
    }
}

#[async_trait]
impl RuleEngine for Queue {
    async fn push(&self, _: TenantId, message: QueueMessage) -> StoreResult<()> {
        if *self.full.lock() {
            return Err(StoreError::new(StoreErrorKind::Unavailable, "the queue is full"));
        }
        self.messages.lock().push(message);
        Ok(())
    }
}

/// Devices and REST clients: what they are asked and told is kept for the test.
#[derive(Default)]
pub(crate) struct Callers {
    /// What devices were asked.
    pub(crate) requests: Mutex<Vec<DeviceRpcRequest>>,
    /// What devices answer; nothing is that they are not connected.
    pub(crate) answer: Mutex<Option<String>>,
    /// What devices were told of their shared attributes, as JSON.
    pub(crate) updates: Mutex<Vec<(DeviceId, String)>>,
    /// What devices were answered: server, session, request, body.
    pub(crate) answers: Mutex<Vec<(String, Uuid, i32, String)>>,
    /// What clients of the REST API were answered: server, their tenant, request, message.
    pub(crate) rest: Mutex<Vec<(String, TenantId, Uuid, QueueMessage)>>,
}

#[async_trait]
impl DeviceRpc for Callers {
    async fn send(&self, request: DeviceRpcRequest) -> Result<Option<String>, DeviceRpcError> {
        self.requests.lock().push(request);
        match self.answer.lock().clone() {
            Some(answer) => Ok(Some(answer)),
            None => Err(DeviceRpcError::NoActiveConnection),
        }
    }

    fn answer(&self, service: &str, session: Uuid, request: i32, body: String) {
        self.answers
            .lock()
            .push((service.to_owned(), session, request, body));
    }
}

impl DeviceLink for Callers {
    fn send(&self, subject: EntityKey, downlink: &Downlink) -> usize {
        if let Downlink::Attributes(update) = downlink {
            self.updates
                .lock()
                .push((DeviceId(subject.entity.id), update.to_json()));
        }
        1
    }
}

impl RestApiResponder for Callers {
    fn answer(&self, service: &str, tenant: TenantId, request: Uuid, message: QueueMessage) {
        self.rest
            .lock()
            .push((service.to_owned(), tenant, request, message));
    }
}
