//! Calls that devices make.
//!
//! A call is a message to the rule engine that names this server, the session and the number which the device gave it; a node
//! of a rule chain answers with these three. Nothing is kept of a session but while one of its calls waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldline_core::options::HumanDuration;
use fieldline_core::queue_stats::SERVICE_ID;
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::{EntityKey, json, new_uuid};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::downlink::Downlink;
use crate::sessions::{SessionControl, SessionRegistry};

/// Calls that wait, of all devices together.
const MAX_CALLS: usize = 100_000;
/// Calls that wait, of one session.
const MAX_OF_SESSION: u32 = 1_000;
/// What a device is told that was not answered.
const TIMEOUT: &str = r#"{"error":"timeout"}"#;

/// Who waits for an answer.
enum RpcReplyTarget {
    Session(Arc<SessionControl>),
    Request(oneshot::Sender<Arc<str>>),
}

/// A session with calls that wait.
struct SessionRpcs {
    id: Uuid,
    count: u32,
}

#[derive(Default)]
struct PendingClientRpcs {
    /// With the time at which they end.
    rpcs: FxHashMap<(Uuid, i32), (i64, RpcReplyTarget)>,
    /// By the address of what they share with the platform, which they keep while they wait.
    sessions: FxHashMap<usize, SessionRpcs>,
    deadlines: BTreeSet<(i64, Uuid, i32)>,
}

/// See the module.
pub struct ClientRpc {
    sessions: Arc<SessionRegistry>,
    /// How long a device waits for an answer, milliseconds.
    timeout_ms: i64,
    waiting: Mutex<PendingClientRpcs>,
}

impl ClientRpc {
    pub(super) fn new(sessions: Arc<SessionRegistry>, patience: HumanDuration) -> Self {
        Self {
            sessions,
            timeout_ms: i64::try_from(patience.0.as_millis()).unwrap_or(i64::MAX),
            waiting: Mutex::default(),
        }
    }

    /// Takes note of a call of a session. Returns the message that tells the rule engine; `None` where too many wait.
    pub fn begin(
        &self,
        subject: EntityKey,
        session: &Arc<SessionControl>,
        number: i32,
        call: &json::ClientRpcRequest,
        now_ms: i64,
    ) -> Option<QueueMessage> {
        let mut waiting = self.waiting.lock();
        let open = waiting.open(session)?;
        waiting.add(
            (open, number),
            RpcReplyTarget::Session(session.clone()),
            self.end(now_ms),
        )?;
        Some(message(subject, open, number, call, now_ms))
    }

    /// The same of a request that waits itself.
    pub fn begin_request(
        &self,
        subject: EntityKey,
        call: &json::ClientRpcRequest,
        now_ms: i64,
    ) -> Option<(QueueMessage, oneshot::Receiver<Arc<str>>)> {
        let (caller, answer) = oneshot::channel();
        let (id, number) = (new_uuid(), 0);
        self.waiting
            .lock()
            .add((id, number), RpcReplyTarget::Request(caller), self.end(now_ms))?;
        Some((message(subject, id, number, call, now_ms), answer))
    }

    fn end(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(self.timeout_ms)
    }

    pub(super) fn answer(&self, session: Uuid, number: i32, body: &str) {
        let Some(caller) = self.waiting.lock().take((session, number)) else {
            return;
        };
        let body = Arc::from(body);
        match caller {
            RpcReplyTarget::Session(control) => {
                self.sessions.send_to(&control, &Downlink::Answer(number, body));
            }
            // The device has gone.
            RpcReplyTarget::Request(caller) => drop(caller.send(body)),
        }
    }

    /// Tells devices that nobody has answered in time.
    pub(super) fn expire(&self, now_ms: i64) {
        loop {
            let first = self.waiting.lock().deadlines.first().copied();
            match first {
                Some((end, session, number)) if end <= now_ms => self.answer(session, number, TIMEOUT),
                _ => return,
            }
        }
    }
}

impl PendingClientRpcs {
    /// The id of a session, unless too many of its calls wait.
    fn open(&mut self, session: &Arc<SessionControl>) -> Option<Uuid> {
        let address = Arc::as_ptr(session).addr();
        let open = self.sessions.get(&address);
        match open {
            Some(open) if open.count >= MAX_OF_SESSION => None,
            Some(open) => Some(open.id),
            None => Some(new_uuid()),
        }
    }

    fn add(&mut self, key: (Uuid, i32), caller: RpcReplyTarget, end: i64) -> Option<()> {
        // A device that uses a number again has given up on the call before.
        self.take(key);
        if self.rpcs.len() >= MAX_CALLS {
            return None;
        }
        let address = match &caller {
            RpcReplyTarget::Session(session) => Some(Arc::as_ptr(session).addr()),
            RpcReplyTarget::Request(_) => None,
        };
        self.rpcs.insert(key, (end, caller));
        self.deadlines.insert((end, key.0, key.1));
        if let Some(address) = address {
            let open = self
                .sessions
                .entry(address)
                .or_insert(SessionRpcs { id: key.0, count: 0 });
            open.count += 1;
        }
        Some(())
    }

    fn take(&mut self, key: (Uuid, i32)) -> Option<RpcReplyTarget> {
        let (end, caller) = self.rpcs.remove(&key)?;
        self.deadlines.remove(&(end, key.0, key.1));
        if let RpcReplyTarget::Session(session) = &caller {
            let address = Arc::as_ptr(session).addr();
            if let Some(open) = self.sessions.get_mut(&address) {
                open.count -= 1;
                if open.count == 0 {
                    self.sessions.remove(&address);
                }
            }
        }
        Some(caller)
    }
}

fn message(
    subject: EntityKey,
    session: Uuid,
    number: i32,
    call: &json::ClientRpcRequest,
    now_ms: i64,
) -> QueueMessage {
    let metadata = MetadataMap::from_iter([
        ("requestId", number.to_string()),
        ("serviceId", SERVICE_ID.to_owned()),
        ("sessionId", session.to_string()),
    ]);
    let mut body = String::from("{\"method\":");
    json::write_string(&call.method, &mut body);
    body.push_str(",\"params\":");
    body.push_str(&call.params);
    body.push('}');
    QueueMessage::new(MsgType::ToServerRpc, subject.entity, now_ms, metadata, body)
}
