//! Debug, lifecycle and error events, written in batches by a task of their own. They never delay a message: events
//! that come faster than they can be written, or exceed a tenant's limit, are left out and counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::clock::SharedClock;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::EventStore;
use fieldline_model::entity::{EntityEvent, EventBody, RuleNodeDebug};
use fieldline_model::{EntityId, TenantId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tracing::warn;

use crate::message::RuleMessage;
use fieldline_model::message::DataType;

/// Longest text of an event, characters.
pub const MAX_TEXT: usize = 4096;
/// Events that may wait to be written.
const QUEUE_CAPACITY: usize = 10_000;
const BATCH: usize = 500;
const WRITE_INTERVAL: Duration = Duration::from_millis(200);
static WRITE_GATE: LogGate = LogGate::new(1);

/// Most debug events that a tenant may store per window.
#[derive(Debug, Clone, Copy)]
pub struct DebugLimit {
    /// Events a window.
    pub events: u32,
    /// Its length, milliseconds.
    pub window_ms: i64,
}

impl Default for DebugLimit {
    fn default() -> Self {
        Self {
            events: 50_000,
            window_ms: 3_600_000,
        }
    }
}

/// A change in the life of a chain or node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleChange {
    /// It came into force.
    Started,
    /// It replaced an earlier version.
    Updated,
}

/// Records events.
pub struct EventRecorder {
    sender: mpsc::Sender<EntityEvent>,
    clock: SharedClock,
    server: String,
    limit: DebugLimit,
    windows: Mutex<HashMap<TenantId, (i64, u32)>>,
}

impl EventRecorder {
    /// Starts the task that writes the events.
    pub fn start(
        store: Arc<dyn EventStore>,
        clock: SharedClock,
        server: &str,
        limit: DebugLimit,
        runtime: &tokio::runtime::Handle,
    ) -> Arc<Self> {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        runtime.spawn(write(store, receiver));
        Arc::new(Self {
            sender,
            clock,
            server: server.to_owned(),
            limit,
            windows: Mutex::default(),
        })
    }

    /// Records that a message entered or left a node.
    pub fn node(
        &self,
        direction: &str,
        chain: EntityId,
        node: EntityId,
        msg: &RuleMessage,
        label: Option<&str>,
        error: Option<&str>,
    ) {
        if !self.try_acquire_debug(msg.tenant, chain) {
            return;
        }
        let metadata: serde_json::Map<_, _> = msg
            .meta
            .to_metadata()
            .iter()
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        let body = RuleNodeDebug {
            direction: direction.to_owned(),
            originator: Some(msg.originator),
            msg_id: Some(msg.id),
            msg_type: Some(msg.kind.name().to_owned()),
            data_type: Some(
                match msg.data_type {
                    DataType::Json => "JSON",
                    DataType::Text => "TEXT",
                    DataType::Binary => "BINARY",
                }
                .to_owned(),
            ),
            relation_type: label.map(str::to_owned),
            data: Some(cut(msg.data.to_text().into_owned())),
            metadata: Some(cut(serde_json::Value::Object(metadata).to_string())),
            error: error.map(|error| cut(error.to_owned())),
        };
        self.record(msg.tenant, node, EventBody::RuleNode(body));
    }

    /// Records that a chain or node came into force, or why it could not.
    pub fn lifecycle(&self, tenant: TenantId, entity: EntityId, life: LifecycleChange, error: Option<&str>) {
        let event = match life {
            LifecycleChange::Started => "STARTED",
            LifecycleChange::Updated => "UPDATED",
        };
        let body = EventBody::Lifecycle {
            event: event.to_owned(),
            success: error.is_none(),
            error: error.map(|error| cut(error.to_owned())),
        };
        self.record(tenant, entity, body);
    }

    /// Records a failure that is not a message's ordinary one: a panic, a script that was switched off.
    pub fn error(&self, tenant: TenantId, entity: EntityId, method: &str, error: &str) {
        let body = EventBody::Error {
            method: method.to_owned(),
            error: Some(cut(error.to_owned())),
        };
        self.record(tenant, entity, body);
    }

    /// Records that a script is switched off for a while.
    pub fn switched_off(&self, tenant: TenantId, entity: EntityId, time: Duration) {
        let seconds = time.as_secs();
        let error = format!(
            "The script is switched off for {seconds} s: it has broken the limits of time, memory or size repeatedly"
        );
        warn!(%tenant, %entity, seconds, "a script is switched off for a while");
        self.error(tenant, entity, "script", &error);
    }

    /// Records an event; it is left out and counted if the buffer is full.
    pub fn record(&self, tenant: TenantId, entity: EntityId, body: EventBody) {
        let event = EntityEvent::new(tenant, entity, self.server.clone(), self.clock.now_ms(), body);
        if self.sender.try_send(event).is_err() {
            metrics::counter!("fieldline_rules_events_left_out_total").increment(1);
        }
    }

    /// Whether a tenant may store another debug event; at the first refusal of a window its chain gets an error event.
    pub fn try_acquire_debug(&self, tenant: TenantId, chain: EntityId) -> bool {
        let now = self.clock.now_ms();
        let mut windows = self.windows.lock();
        let (since, count) = windows.entry(tenant).or_insert((now, 0));
        if now - *since >= self.limit.window_ms {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        let over = *count;
        drop(windows);
        if over == self.limit.events + 1 {
            let body = EventBody::RuleChain {
                message: Some("Reached debug mode rate limit!".to_owned()),
                error: None,
            };
            self.record(tenant, chain, body);
        }
        over <= self.limit.events
    }
}

/// Cuts a text to the length that is stored.
pub fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(end);
        text.push_str("...[truncated]");
    }
    text
}

async fn write(store: Arc<dyn EventStore>, mut receiver: mpsc::Receiver<EntityEvent>) {
    let mut batch = Vec::new();
    while receiver.recv_many(&mut batch, BATCH).await > 0 {
        if let Err(error) = store.append(&batch).await
            && let Some(suppressed) = WRITE_GATE.open()
        {
            warn!(%error, suppressed, "cannot store events of the rule engine");
        }
        batch.clear();
        // Events that arrive during the pause are written together.
        tokio::time::sleep(WRITE_INTERVAL).await;
    }
}
