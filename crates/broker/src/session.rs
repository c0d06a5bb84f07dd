//! The session of a client: what outlives its connection, and what is on its way to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use fieldline_codec::{PacketId, ReasonCode, SubscriptionOptions};
use fieldline_core::ports::BrokerClientType;
use fieldline_core::rate_limits::RateLimiter;
use parking_lot::{Mutex, MutexGuard};

use crate::client::{ClientCounters, ConnectionInfo};
use crate::congestion::QueueCongestion;
use crate::login::BRIDGE_PREFIX;
use crate::message::BrokerMessage;
use crate::queue::{DeliveryOptions, MessageQueue};
use crate::subscriptions::{MemberState, TrieMember};

/// Session expiry interval that means for ever (MQTT 5 §3.1.2.11.2).
pub(crate) const NEVER_EXPIRES: u32 = u32::MAX;

/// A will, which is published unless the client disconnects in good order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredWill {
    /// The message, whose time has not begun.
    pub(crate) message: Arc<BrokerMessage>,
    /// Seconds from its publication until it expires.
    pub(crate) expiry_s: Option<u32>,
    /// Seconds between the end of the connection and the will.
    pub(crate) delay_s: u32,
}

impl StoredWill {
    /// The message as it is published at `now_ms`.
    pub(crate) fn published_at(&self, now_ms: i64) -> Arc<BrokerMessage> {
        let expiry_ms = self.expiry_s.map(|expiry_s| i64::from(expiry_s) * 1_000);
        Arc::new(BrokerMessage {
            created_ms: now_ms,
            expires_ms: expiry_ms.map(|expiry_ms| now_ms.saturating_add(expiry_ms)),
            ..BrokerMessage::clone(&self.message)
        })
    }
}

/// A subscription of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredSubscription {
    pub(crate) options: SubscriptionOptions,
    /// The subscription identifier; 0 if there is none.
    pub(crate) id: u32,
}

/// The connection of a session.
#[derive(Debug)]
pub(crate) struct ClientLink {
    /// Tells it from earlier connections of the session.
    pub(crate) epoch: u64,
    /// Wakes the connection, once an event loop has it.
    pub(crate) waker: Option<Waker>,
    /// Whether it was woken and has not looked yet.
    pub(crate) is_signalled: bool,
    /// Why it has to end.
    pub(crate) close: Option<ReasonCode>,
    /// How many messages of QoS 0 the client gets; `None` for any number.
    pub(crate) outgoing: Option<Box<RateLimiter>>,
}

/// What a session keeps under its lock.
#[derive(Debug)]
pub(crate) struct SessionInner {
    pub(crate) client_type: BrokerClientType,
    /// Seconds for which it outlives its connection.
    pub(crate) expiry_s: u32,
    pub(crate) link: Option<ClientLink>,
    /// That connection, or the last one; `None` if it is not known.
    pub(crate) connection: Option<Box<ConnectionInfo>>,
    /// Counts connections.
    pub(crate) epoch: u64,
    /// When the last connection ended; milliseconds since 1970.
    pub(crate) disconnected_ms: i64,
    pub(crate) subscriptions: BTreeMap<Box<str>, StoredSubscription>,
    pub(crate) queue: MessageQueue,
    /// Messages of QoS 0.
    pub(crate) direct: VecDeque<(Arc<BrokerMessage>, DeliveryOptions)>,
    pub(crate) direct_bytes: usize,
    /// Who waits until there is room in the queue; `None` while it is not crowded.
    pub(crate) congestion: Option<Box<QueueCongestion>>,
    /// Messages of QoS 2 that the client has yet to release.
    pub(crate) unreleased: Vec<UnreleasedMessage>,
    pub(crate) will: Option<StoredWill>,
    /// A will on its way: it is stored until it is published.
    pub(crate) leaving_will: Option<StoredWill>,
    /// When the will is due; milliseconds since 1970.
    pub(crate) will_due_ms: Option<i64>,
    /// Whether its row has to be written again.
    pub(crate) is_changed: bool,
    /// Whether it is noted for the next checkpoint.
    pub(crate) is_noted: bool,
    /// Whether the client was connected when the program ended.
    pub(crate) was_connected: bool,
    pub(crate) is_removed: bool,
}

/// A message of QoS 2 that its publisher has yet to release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnreleasedMessage {
    pub(crate) id: PacketId,
    /// Whether its record is durable; it is not stored before.
    pub(crate) is_durable: bool,
}

impl SessionInner {
    /// Whether a connection still has the session.
    pub(crate) fn belongs_to(&self, epoch: u64) -> bool {
        self.link.as_ref().is_some_and(|link| link.epoch == epoch)
    }

    /// Notes that a will begins to be published; returns the message. Until it is durable, the will is stored as one that is due.
    pub(crate) fn begin_will(&mut self, will: StoredWill, now_ms: i64) -> Arc<BrokerMessage> {
        let message = will.published_at(now_ms);
        self.leaving_will = Some(StoredWill {
            message: message.clone(),
            ..will
        });
        message
    }

    /// Notes that a message is durable; returns whether it was the will that left last.
    pub(crate) fn end_will(&mut self, message: &Arc<BrokerMessage>) -> bool {
        self.leaving_will
            .take_if(|will| Arc::ptr_eq(&will.message, message))
            .is_some()
    }

    /// Notes a message of QoS 2, unless it is known.
    pub(crate) fn add_unreleased(&mut self, id: PacketId, is_durable: bool) {
        if let Err(place) = self.place_unreleased(id) {
            self.unreleased
                .insert(place, UnreleasedMessage { id, is_durable });
        }
    }

    /// Notes that the record of a message of QoS 2 is durable.
    pub(crate) fn mark_unreleased_durable(&mut self, id: PacketId) {
        if let Ok(place) = self.place_unreleased(id)
            && let Some(message) = self.unreleased.get_mut(place)
        {
            message.is_durable = true;
        }
    }

    /// Forgets a message of QoS 2.
    pub(crate) fn remove_unreleased(&mut self, id: PacketId) {
        if let Ok(place) = self.place_unreleased(id) {
            self.unreleased.remove(place);
        }
    }

    /// Returns a message of QoS 2 that its publisher has yet to release.
    pub(crate) fn unreleased(&self, id: PacketId) -> Option<&UnreleasedMessage> {
        self.unreleased.get(self.place_unreleased(id).ok()?)
    }

    fn place_unreleased(&self, id: PacketId) -> Result<usize, usize> {
        self.unreleased.binary_search_by_key(&id, |one| one.id)
    }

    /// Wakes the connection, unless it was woken already.
    pub(crate) fn signal(&mut self) {
        if let Some(link) = &mut self.link
            && !std::mem::replace(&mut link.is_signalled, true)
            && let Some(waker) = &link.waker
        {
            waker.wake_by_ref();
        }
    }

    /// Tells the connection to end.
    pub(crate) fn close_link(&mut self, reason: ReasonCode) {
        if let Some(link) = &mut self.link {
            link.close.get_or_insert(reason);
            link.is_signalled = false;
            self.signal();
        }
    }
}

const PERSISTENT: u8 = 1;
const CONNECTED: u8 = 2;
/// It was persistent once, so that there may be something stored of it.
const STORED: u8 = 4;
/// Its client is a bridge of this program.
const BRIDGE: u8 = 8;
/// Its queue is crowded.
const CROWDED: u8 = 16;

/// A session.
#[derive(Debug)]
pub(crate) struct BrokerSession {
    pub(crate) number: u64,
    pub(crate) client_id: Arc<str>,
    /// What may be read without the lock.
    flags: AtomicU8,
    inner: Mutex<SessionInner>,
    /// There once the client has sent or received something: many never do.
    counters: OnceLock<Box<ClientCounters>>,
}

impl BrokerSession {
    /// Makes a session without a connection.
    pub(crate) fn new(number: u64, client_id: Arc<str>, expiry_s: u32, queue: MessageQueue) -> Arc<Self> {
        let session = Self {
            number,
            flags: AtomicU8::new(if client_id.starts_with(BRIDGE_PREFIX) {
                BRIDGE
            } else {
                0
            }),
            client_id,
            inner: Mutex::new(SessionInner {
                client_type: BrokerClientType::Device,
                expiry_s,
                link: None,
                connection: None,
                epoch: 0,
                disconnected_ms: 0,
                subscriptions: BTreeMap::new(),
                queue,
                direct: VecDeque::new(),
                direct_bytes: 0,
                congestion: None,
                unreleased: Vec::new(),
                will: None,
                leaving_will: None,
                will_due_ms: None,
                is_changed: false,
                is_noted: false,
                was_connected: false,
                is_removed: false,
            }),
            counters: OnceLock::new(),
        };
        session.set_expiry(expiry_s);
        Arc::new(session)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionInner> {
        self.inner.lock()
    }

    /// Whether its client is a bridge of this program.
    pub(crate) fn is_bridge(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & BRIDGE != 0
    }

    /// Whether it outlives its connection.
    pub(crate) fn is_persistent(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & PERSISTENT != 0
    }

    /// Whether journal or store may have something of it.
    pub(crate) fn may_be_stored(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & STORED != 0
    }

    /// Whether a client is connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & CONNECTED != 0
    }

    /// Counts its messages.
    pub(crate) fn counters(&self) -> &ClientCounters {
        self.counters.get_or_init(Box::default)
    }

    /// The counters, if anything has been counted.
    pub(crate) fn counted(&self) -> Option<&ClientCounters> {
        self.counters.get().map(|counters| &**counters)
    }

    fn set(&self, flag: u8, is_set: bool) {
        if is_set {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    /// Notes whether it outlives its connection; the caller sets the interval under the lock.
    pub(crate) fn set_expiry(&self, expiry_s: u32) {
        self.set(PERSISTENT, expiry_s > 0);
        if expiry_s > 0 {
            self.set(STORED, true);
        }
    }

    /// Notes whether a client is connected; the caller sets the link under the lock.
    pub(crate) fn set_connected(&self, is_connected: bool) {
        self.set(CONNECTED, is_connected);
    }

    /// Whether its queue is crowded.
    pub(crate) fn is_crowded(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & CROWDED != 0
    }

    /// Notes whether its queue is crowded; the caller holds the lock.
    pub(crate) fn set_crowded(&self, is_crowded: bool) {
        self.set(CROWDED, is_crowded);
    }
}

/// A session as a subscriber.
#[derive(Debug, Clone)]
pub(crate) struct SessionMember(pub(crate) Arc<BrokerSession>);

impl TrieMember for SessionMember {
    fn number(&self) -> u64 {
        self.0.number
    }

    fn state(&self) -> MemberState {
        if self.0.is_connected() && self.0.is_crowded() {
            MemberState::Crowded
        } else if self.0.is_connected() {
            MemberState::Connected
        } else if self.0.is_persistent() {
            MemberState::Away
        } else {
            MemberState::Gone
        }
    }
}
