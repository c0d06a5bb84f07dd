//! The broker: sessions, subscriptions and retained messages, and the way of a message to its subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fieldline_codec::{PacketId, QoS, SubscriptionOptions};
use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{
    AppendError, AppendFuture, AppendOrigin, BrokerClientType, BrokerListenerPorts, BrokerStore, Journal,
    Offset, Partition,
};
use fieldline_model::TenantId;
use fieldline_model::record::RecordBatch;
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::Notify;

use crate::limits::{MessageLimits, has_room};
use crate::log::{BrokerRecord, PublishedRecord, push};
use crate::message::BrokerMessage;
use crate::options::Options;
use crate::queue::DeliveryOptions;
use crate::retained::RetainedMessages;
use crate::session::{BrokerSession, SessionInner, SessionMember};
use crate::stats::BrokerStats;
use crate::subscriptions::{Subscriber, SubscriptionTrie, TopicMatches};

/// What a queue entry of QoS 0 takes beside its message.
const DIRECT_OVERHEAD: usize = 64;
/// Bytes of messages that wait for the next checkpoint from which on it does not wait for its time.
const EARLY_CHECKPOINT_BYTES: usize = 64 << 20;

/// What a turn has published and waits for its records: messages in the queues of sessions, and those of QoS 2 that
/// their publisher has yet to release. Dropping it lets the messages go: nobody was told that they are taken, and a queue
/// must not wait for ever.
pub(crate) struct PendingPublications {
    broker: Arc<Broker>,
    deliveries: Vec<(Arc<BrokerSession>, u64)>,
    unreleased: Vec<(Arc<BrokerSession>, PacketId)>,
    /// Its place among what checkpoints wait for.
    ticket: Option<u64>,
}

impl PendingPublications {
    pub(crate) const fn new(broker: Arc<Broker>) -> Self {
        Self {
            broker,
            deliveries: Vec::new(),
            unreleased: Vec::new(),
            ticket: None,
        }
    }

    pub(crate) fn push(&mut self, session: &Arc<BrokerSession>, number: u64) {
        self.deliveries.push((session.clone(), number));
    }

    pub(crate) fn push_unreleased(&mut self, session: &Arc<BrokerSession>, id: PacketId) {
        self.unreleased.push((session.clone(), id));
    }

    /// Whether a message of QoS 2 is among them.
    pub(crate) fn has_unreleased(&self, id: PacketId) -> bool {
        self.unreleased.iter().any(|(_, one)| *one == id)
    }

    /// To be called before the records are appended: until they have an outcome, no checkpoint may take the journal up to
    /// them for stored.
    pub(crate) fn begin_append(&mut self) {
        if self.ticket.is_none() && !(self.deliveries.is_empty() && self.unreleased.is_empty()) {
            self.ticket = Some(self.broker.appends.lock().begin(self.broker.tail()));
        }
    }

    /// Lets messages go to their clients whose records are durable, or takes those back that were not taken.
    pub(crate) fn settle(&mut self, is_durable: bool) {
        for (session, number) in self.deliveries.drain(..) {
            let mut inner = session.lock();
            if is_durable {
                inner.queue.mark_durable(number);
                self.broker.note(&session, &mut inner);
                inner.signal();
            } else {
                inner.queue.withdraw(number);
                self.broker.relieve(&session, &mut inner);
            }
        }
        for (session, id) in self.unreleased.drain(..) {
            let mut inner = session.lock();
            if is_durable {
                inner.mark_unreleased_durable(id);
                self.broker.note(&session, &mut inner);
            } else {
                inner.remove_unreleased(id);
            }
        }
        if let Some(ticket) = self.ticket.take() {
            self.broker.appends.lock().end(ticket);
        }
    }
}

impl Drop for PendingPublications {
    fn drop(&mut self) {
        self.settle(true);
    }
}

/// Appends whose effects are not marked as durable yet, with positions at or before their records.
#[derive(Default)]
pub(crate) struct UnsettledAppends {
    next: u64,
    open: BTreeMap<u64, Offset>,
}

impl UnsettledAppends {
    fn begin(&mut self, tail: Offset) -> u64 {
        self.next += 1;
        self.open.insert(self.next, tail);
        self.next
    }

    fn end(&mut self, ticket: u64) {
        self.open.remove(&ticket);
    }

    /// The lowest of the positions.
    fn first(&self) -> Option<Offset> {
        self.open.values().min().copied()
    }
}

/// Sessions by the time at which something is due, in milliseconds since 1970, and their number.
pub(crate) type DueSessions = BTreeSet<(i64, u64)>;

/// Sessions by client identifier, in an order in which a list can go on after a pause.
pub(crate) type SessionMap = BTreeMap<Arc<str>, Arc<BrokerSession>>;

/// What needs to be written at the next checkpoint.
#[derive(Default)]
pub(crate) struct UnstoredChanges {
    pub(crate) sessions: Vec<Arc<BrokerSession>>,
    /// Sessions that have ended, and the numbers of messages that they may have rows of.
    pub(crate) removed: Vec<(u64, Range<u64>)>,
    /// Topics whose retained message is another one.
    pub(crate) topics: FxHashSet<Box<str>>,
}

/// The broker.
pub(crate) struct Broker {
    pub(crate) options: Options,
    pub(crate) clock: SharedClock,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) partition: Partition,
    pub(crate) store: Arc<dyn BrokerStore>,
    pub(crate) stats: BrokerStats,
    pub(crate) limits: MessageLimits,
    pub(crate) sessions: RwLock<SessionMap>,
    pub(crate) subscriptions: RwLock<SubscriptionTrie<SessionMember>>,
    pub(crate) retained: RwLock<RetainedMessages>,
    pub(crate) unstored: Mutex<UnstoredChanges>,
    pub(crate) next_session: AtomicU64,
    /// Sessions that end, or whose will is published, by time.
    pub(crate) due: Mutex<DueSessions>,
    pub(crate) appends: Mutex<UnsettledAppends>,
    /// Retained messages that wait for clients with new subscriptions.
    pub(crate) backlog: AtomicUsize,
    /// Bytes of messages since the last checkpoint has begun, and who is to hear that they are many.
    pub(crate) unstored_bytes: AtomicUsize,
    pub(crate) has_much_unstored: Notify,
    /// Sessions that are away, by number, so that what is due finds them.
    pub(crate) away: Mutex<FxHashMap<u64, Arc<BrokerSession>>>,
    /// Clients whose queues are crowded.
    pub(crate) congested: Arc<AtomicUsize>,
    pub(crate) ports: Mutex<BrokerListenerPorts>,
}

impl Broker {
    pub(crate) fn new(
        options: Options,
        clock: SharedClock,
        journal: Arc<dyn Journal>,
        partition: Partition,
        store: Arc<dyn BrokerStore>,
    ) -> Self {
        Self {
            limits: MessageLimits::new(&options, &clock),
            options,
            clock,
            journal,
            partition,
            store,
            stats: BrokerStats::default(),
            sessions: RwLock::default(),
            subscriptions: RwLock::default(),
            retained: RwLock::default(),
            unstored: Mutex::default(),
            next_session: AtomicU64::new(1),
            due: Mutex::default(),
            appends: Mutex::default(),
            backlog: AtomicUsize::new(0),
            unstored_bytes: AtomicUsize::new(0),
            has_much_unstored: Notify::new(),
            away: Mutex::default(),
            congested: Arc::default(),
            ports: Mutex::default(),
        }
    }

    /// Appends records to the journal.
    pub(crate) fn append(&self, records: &RecordBatch) -> Result<AppendFuture, AppendError> {
        self.journal.append(self.partition, records, origin())
    }

    /// A position at or before that of the next record.
    pub(crate) fn tail(&self) -> Offset {
        self.journal.tail(self.partition)
    }

    /// The position up to which everything is marked in the sessions that has happened.
    pub(crate) fn settled_position(&self) -> Offset {
        // In this order: what begins after the first look lies behind it.
        let tail = self.tail();
        self.appends.lock().first().map_or(tail, |first| first.min(tail))
    }

    /// Waits until it is worth repeating an append that was refused as busy.
    pub(crate) async fn ready(&self) {
        self.journal.ready(origin()).await;
    }

    /// Notes a session for the next checkpoint; the caller holds its lock.
    pub(crate) fn note(&self, session: &Arc<BrokerSession>, inner: &mut SessionInner) {
        if session.is_persistent() && !std::mem::replace(&mut inner.is_noted, true) {
            self.unstored.lock().sessions.push(session.clone());
        }
    }

    /// Makes a message the retained one of its topic. Returns whether there was room.
    pub(crate) fn retain(&self, message: &Arc<BrokerMessage>) -> bool {
        let mut retained = self.retained.write();
        if retained.client_count() >= self.options.max_retained
            && !message.payload.is_empty()
            && !retained.contains(&message.topic)
        {
            return false;
        }
        retained.put(message);
        drop(retained);
        // What the broker says of itself is said again after a restart.
        if !message.topic.starts_with('$') {
            self.unstored.lock().topics.insert(message.topic.clone());
        }
        true
    }

    /// Finds the subscribers of a topic.
    pub(crate) fn find_subscribers(&self, topic: &str, found: &mut TopicMatches<SessionMember>) {
        found.clear();
        self.subscriptions.read().collect(topic, found);
    }

    /// Puts a message into the queues of its subscribers, which were found by its topic. Returns what has to be durable before it is acknowledged;
    /// `pending` gets the messages that wait for that.
    pub(crate) fn route(
        &self,
        publisher: &BrokerSession,
        unreleased: Option<PacketId>,
        message: &Arc<BrokerMessage>,
        found: &mut TopicMatches<SessionMember>,
        pending: &mut PendingPublications,
    ) -> PublishedRecord {
        let mut record = PublishedRecord {
            unreleased: unreleased.map(|id| (publisher.number, id)),
            is_retained: message.retain,
            deliveries: Vec::new(),
            message: message.clone(),
        };
        let TopicMatches { own, shared, .. } = found;
        own.retain(|one| !one.options.no_local || one.member.0.number != publisher.number);
        // What the broker says of itself is for nobody in particular.
        if own.is_empty() && shared.is_empty() && !message.topic.starts_with('$') {
            self.stats.unsubscribed.fetch_add(1, Ordering::Relaxed);
        }
        if own.len() > 1 {
            own.sort_by_key(|one| one.member.0.number);
        }
        // Who has several filters that match gets it once, with the highest QoS and all identifiers.
        for same in own.chunk_by(|one, other| one.member.0.number == other.member.0.number) {
            self.deliver(same, message, &mut record, pending);
        }
        for one in shared.iter() {
            self.deliver(std::slice::from_ref(one), message, &mut record, pending);
        }
        found.clear();
        if !record.deliveries.is_empty() {
            self.note_unstored(message.memory());
        }
        record
    }

    fn deliver(
        &self,
        subscriptions: &[Subscriber<SessionMember>],
        message: &Arc<BrokerMessage>,
        record: &mut PublishedRecord,
        pending: &mut PendingPublications,
    ) {
        let Some(first) = subscriptions.first() else {
            return;
        };
        let session = &first.member.0;
        let highest = subscriptions.iter().map(|one| one.options.qos).max();
        let keeps_retain = |options: &SubscriptionOptions| options.retain_as_published;
        let options = DeliveryOptions {
            qos: message.qos.min(highest.unwrap_or_default()),
            retain: message.retain && subscriptions.iter().any(|one| keeps_retain(&one.options)),
            subscription_ids: subscriptions
                .iter()
                .map(|one| one.id)
                .filter(|id| *id != 0)
                .collect(),
        };
        if let Some((number, options)) = self.enqueue(session, message, options) {
            record.deliveries.push((session.number, number, options));
            pending.push(session, number);
        }
    }

    /// Adds a message to the queue of a session. Returns its number and options if it has to be durable first.
    pub(crate) fn enqueue(
        &self,
        session: &Arc<BrokerSession>,
        message: &Arc<BrokerMessage>,
        options: DeliveryOptions,
    ) -> Option<(u64, DeliveryOptions)> {
        let mut inner = session.lock();
        if inner.is_removed {
            return None;
        }
        if options.qos == QoS::AtMostOnce {
            self.send_direct(session, &mut inner, message, options);
            return None;
        }
        let is_kept = session.is_persistent();
        if inner.link.is_none() && !is_kept {
            return None;
        }
        if is_kept && inner.client_type == BrokerClientType::Device && !self.limits.may_keep() {
            self.count_dropped(session);
            return None;
        }
        while self.is_full(session, &inner) && inner.queue.drop_oldest() {
            self.count_dropped(session);
        }
        let number = inner.queue.push(message.clone(), options.clone(), !is_kept);
        self.note_growth(session, &mut inner);
        if is_kept {
            self.note(session, &mut inner);
            return Some((number, options));
        }
        inner.signal();
        None
    }

    /// Most messages that wait for a session.
    pub(crate) const fn queue_limit(&self, inner: &SessionInner) -> u64 {
        match inner.client_type {
            BrokerClientType::Device => self.options.queue_messages,
            BrokerClientType::Application => self.options.application_queue_messages,
        }
    }

    /// Notes bytes of messages for the next checkpoint, which begins early for many.
    fn note_unstored(&self, bytes: usize) {
        let before = self.unstored_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before < EARLY_CHECKPOINT_BYTES && before + bytes >= EARLY_CHECKPOINT_BYTES {
            self.has_much_unstored.notify_one();
        }
    }

    fn send_direct(
        &self,
        session: &BrokerSession,
        inner: &mut SessionInner,
        message: &Arc<BrokerMessage>,
        options: DeliveryOptions,
    ) {
        let Some(link) = &inner.link else { return };
        if !has_room(link.outgoing.as_deref()) {
            self.count_dropped(session);
            return;
        }
        let bytes = DIRECT_OVERHEAD + message.memory();
        if inner.direct.len() >= self.options.direct_messages
            || (inner.direct_bytes + bytes > self.options.direct_memory.as_usize()
                && !inner.direct.is_empty())
        {
            self.count_dropped(session);
            return;
        }
        inner.direct_bytes += bytes;
        inner.direct.push_back((message.clone(), options));
        inner.signal();
    }

    /// Counts a message that a client does not get.
    pub(crate) fn count_dropped(&self, session: &BrokerSession) {
        self.stats.dropped.fetch_add(1, Ordering::Relaxed);
        session.counters().count_dropped();
    }

    /// Takes the next message of QoS 0 for a client.
    pub(crate) fn take_direct(inner: &mut SessionInner) -> Option<(Arc<BrokerMessage>, DeliveryOptions)> {
        let (message, options) = inner.direct.pop_front()?;
        inner.direct_bytes = inner
            .direct_bytes
            .saturating_sub(DIRECT_OVERHEAD + message.memory());
        if inner.direct.is_empty() && inner.direct.capacity() > 16 {
            inner.direct = std::collections::VecDeque::new();
        }
        Some((message, options))
    }

    /// Publishes messages that no connection waits for, such as wills. Returns whether they are durable for all who keep
    /// them.
    pub(crate) async fn publish_own(
        self: &Arc<Self>,
        messages: &[(Arc<BrokerSession>, Arc<BrokerMessage>)],
    ) -> bool {
        let (mut found, mut scratch, mut batch) = (TopicMatches::default(), Vec::new(), RecordBatch::new());
        let mut pending = PendingPublications::new(self.clone());
        for (publisher, message) in messages {
            if message.retain {
                self.retain(message);
            }
            self.find_subscribers(&message.topic, &mut found);
            let mut record = self.route(publisher, None, message, &mut found, &mut pending);
            record.is_retained &= !message.topic.starts_with('$');
            if !record.is_empty() {
                push(&BrokerRecord::Published(record), &mut scratch, &mut batch);
            }
        }
        let mut is_durable = true;
        if !batch.is_empty() {
            pending.begin_append();
            is_durable = self.append_durably(&batch).await.is_ok();
        }
        pending.settle(is_durable);
        is_durable
    }

    /// Appends records, and waits until they are durable.
    pub(crate) async fn append_durably(&self, batch: &RecordBatch) -> Result<(), AppendError> {
        loop {
            match self.append(batch) {
                Ok(append) => return append.await,
                Err(AppendError::Busy) => self.ready().await,
                Err(error) => return Err(error),
            }
        }
    }
}

/// All appends are of clients; the broker has no tenants.
const fn origin() -> AppendOrigin {
    AppendOrigin::Device(TenantId::NULL)
}
