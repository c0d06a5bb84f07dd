//! The slow lanes, for messages of tenants that would hold up others in a shared queue.
//!
//! A worker of a shared queue *diverts* a message: it appends the message to another queue of the journal, always to
//! the same partition for the same tenant, and is done with it once that is durable. While a tenant counts as slow, its
//! messages are diverted without being tried, which keeps their order. A tenant is slow for a while after one of its
//! messages was late or failed, and as long as its lane holds messages.

use std::collections::hash_map;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use fieldline_core::ingest::QueueProducer;
use fieldline_core::options::{ByteSize, HumanDuration};
use fieldline_core::ports::{AppendError, AppendFuture, Offset, Partition};
use fieldline_model::message::QueueMessage;
use fieldline_model::record::diverted::DivertedRecord;
use fieldline_model::record::{JournalRecord, RecordBatch, split};
use fieldline_model::{EntityKey, TenantId};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::QueueHandle;

mod overload;

/// Name of the lanes' queue. A user's queue cannot have this name.
pub const LANE_QUEUE: &str = "~slow";
/// Duration of a tenant's first slowness; each one that follows soon lasts twice as long as the one before.
const FIRST_SLOWNESS: Duration = Duration::from_secs(10);
const LONGEST_SLOWNESS: Duration = Duration::from_secs(600);
/// Least time between two notices to a tenant about messages that were given up.
const NOTIFY_INTERVAL: Duration = Duration::from_secs(10);
/// Memory of a message beyond its bytes.
pub(crate) const MESSAGE_BYTES: u64 = 256;
/// All lanes together hold this many times the limit of one tenant; beyond that a tenant may have this fraction of its
/// limit.
const ALL_TENANTS: u64 = 8;

/// Pause before a message is put back again after the disk was full.
const PUT_BACK_PAUSE: Duration = Duration::from_millis(200);

/// Settings of the lanes, part of the rule engine's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LaneOptions {
    /// Number of lanes, each with a thread; 0 for none, so that a slow tenant holds up the queues it shares. Lanes that
    /// a journal already has stay, whatever is set.
    pub count: u16,
    /// Longest time that a message may wait in a shared queue before it is diverted, if other tenants' messages are
    /// there.
    pub patience: HumanDuration,
    /// Bytes of one tenant's messages that its lane holds, counting 256 more for each message; all lanes together hold
    /// 8 times as many. Beyond that the tenant's messages are given up.
    pub backlog: ByteSize,
    /// Longest time that a message may take in a lane before it counts as late.
    pub timeout: HumanDuration,
    /// Time for which a message is retried in a lane if its queue retries for ever.
    pub retry_time: HumanDuration,
}

impl LaneOptions {
    /// Most bytes that all lanes together hold for tenants with large backlogs.
    pub const fn total_backlog(&self) -> u64 {
        self.backlog.0.saturating_mul(ALL_TENANTS)
    }
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self {
            count: 8,
            patience: HumanDuration::millis(250),
            backlog: ByteSize::mib(32),
            timeout: HumanDuration::secs(60),
            retry_time: HumanDuration::secs(3600),
        }
    }
}

/// Counts of a tenant's messages in the lanes since the program started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Messages that were diverted to its lane.
    pub diverted: u64,
    /// Messages that were given up: too many waited, or they were retried for too long.
    pub given_up: u64,
    /// Time that its messages took on threads of shared queues, as far as it was measured.
    pub inline: Duration,
}

/// The state of a tenant.
#[derive(Debug, Default)]
struct TenantLane {
    messages: u64,
    bytes: u64,
    slow_until: Option<Instant>,
    /// Number of slow periods in close succession.
    times: u32,
    /// Time at which it was last found slow.
    marked: Option<Instant>,
    counts: LaneCounts,
    /// Time of its last notice about messages that were given up.
    notified_at: Option<Instant>,
}

impl TenantLane {
    fn is_slow(&self, now: Instant) -> bool {
        self.messages > 0 || self.slow_until.is_some_and(|until| now < until)
    }
}

/// Why a message could not be put into its tenant's lane.
#[derive(Debug, thiserror::Error)]
pub enum DivertError {
    /// The tenant's limit is reached.
    #[error("too many messages of the tenant wait in its slow lane")]
    Full,
    /// It exceeds the size of a record.
    #[error("the message cannot be written")]
    Unwritable,
    /// The journal refused it.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Room in the lanes, reserved for a message that is not there yet.
struct LaneReservation<'a> {
    lanes: &'a SlowLanes,
    tenant: TenantId,
    bytes: u64,
    is_used: bool,
}

impl LaneReservation<'_> {
    /// Hands the room over to the lane's accounting even if the caller stops waiting for the append; takes it back if
    /// the append fails.
    async fn commit(&mut self, appending: AppendFuture) -> Result<(), AppendError> {
        self.is_used = true;
        let appended = appending.await;
        self.is_used = appended.is_ok();
        appended
    }
}

impl Drop for LaneReservation<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            self.lanes.release(self.tenant, self.bytes);
        }
    }
}

/// All messages of a tenant go to the same lane.
fn lane_subject(tenant: TenantId) -> EntityKey {
    EntityKey {
        tenant,
        entity: tenant.into(),
    }
}

#[derive(Default)]
struct LaneAccounting {
    tenants: FxHashMap<TenantId, TenantLane>,
    bytes: u64,
}

/// State shared by the workers of shared queues and of lanes.
pub struct SlowLanes {
    /// The settings.
    pub options: LaneOptions,
    /// Appends to the lanes, with the end offset of each lane when it was opened.
    producer: OnceLock<(QueueProducer, Vec<Offset>)>,
    accounting: Mutex<LaneAccounting>,
    /// Number of tenants that are slow, or were at the last check.
    slow: AtomicUsize,
    queues: RwLock<FxHashMap<Arc<str>, Weak<QueueHandle>>>,
}

impl SlowLanes {
    /// Lanes that are not open yet.
    pub fn new(options: &LaneOptions) -> Arc<Self> {
        Arc::new(Self {
            options: options.clone(),
            producer: OnceLock::new(),
            accounting: Mutex::default(),
            slow: AtomicUsize::new(0),
            queues: RwLock::default(),
        })
    }

    /// Opens the lanes: messages can be diverted from here on.
    pub fn open(&self, uplink: QueueProducer, ends: Vec<Offset>) {
        // A second call opens the same queue.
        let _ = self.producer.set((uplink, ends));
    }

    /// Whether a record was in its lane before the lanes were opened, so that it is not counted yet.
    pub fn is_from_before(&self, partition: Partition, offset: Offset) -> bool {
        match self.producer.get() {
            Some((_, ends)) => ends
                .get(usize::from(partition.index))
                .is_some_and(|end| offset < *end),
            None => true,
        }
    }

    /// Whether messages can be diverted.
    pub fn are_open(&self) -> bool {
        self.producer.get().is_some()
    }

    /// Registers a shared queue: messages from it are retried by its strategies.
    pub fn register_queue(&self, queue: &Arc<QueueHandle>) {
        self.queues
            .write()
            .insert(queue.name.clone(), Arc::downgrade(queue));
    }

    /// A shared queue, if it is still there.
    pub fn queue(&self, name: &str) -> Option<Arc<QueueHandle>> {
        self.queues.read().get(name)?.upgrade()
    }

    /// Whether any tenant may be slow: one atomic load, cheap enough for every message.
    pub fn has_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed) > 0
    }

    /// Whether a tenant's messages are diverted to its lane.
    pub fn is_slow(&self, tenant: TenantId) -> bool {
        if !self.has_slow() {
            return false;
        }
        let mut book = self.accounting.lock();
        let Some(lane) = book.tenants.get_mut(&tenant) else {
            return false;
        };
        let is_slow = lane.is_slow(Instant::now());
        if !is_slow && lane.slow_until.is_some() {
            lane.slow_until = None;
            self.slow.fetch_sub(1, Ordering::Relaxed);
        }
        is_slow
    }

    /// Marks a tenant as slow for a while.
    pub fn mark_slow(&self, tenant: TenantId) {
        let now = Instant::now();
        let mut book = self.accounting.lock();
        let lane = book.tenants.entry(tenant).or_default();
        match lane.slow_until {
            Some(until) if now < until => return,
            Some(_) => {}
            None => {
                self.slow.fetch_add(1, Ordering::Relaxed);
                metrics::counter!("fieldline_rules_slow_tenants_total").increment(1);
            }
        }
        if lane
            .marked
            .is_none_or(|at| now.duration_since(at) > 2 * LONGEST_SLOWNESS)
        {
            lane.times = 0;
        }
        lane.marked = Some(now);
        let time = FIRST_SLOWNESS.saturating_mul(1 << lane.times.min(16));
        lane.times += 1;
        lane.slow_until = Some(now + time.min(LONGEST_SLOWNESS));
    }

    /// Reserves room for a message of so many bytes; returns whether there was room.
    #[must_use]
    pub fn try_reserve(&self, tenant: TenantId, bytes: u64) -> bool {
        let bytes = bytes + MESSAGE_BYTES;
        let mut book = self.accounting.lock();
        let has_room = self.has_room(&mut book, tenant, bytes);
        if has_room {
            self.add(&mut book, tenant, bytes);
        }
        has_room
    }

    fn has_room(&self, book: &mut LaneAccounting, tenant: TenantId, bytes: u64) -> bool {
        let most = self.options.backlog.0;
        let is_full = book.bytes + bytes > self.options.total_backlog();
        let limit = if is_full { most / ALL_TENANTS } else { most };
        book.tenants.entry(tenant).or_default().bytes + bytes <= limit
    }

    /// Reserves room for the note of a message that goes on in the background of its queue; returns whether there was
    /// room. It counts against the same limit as messages in the lane, but does not make the tenant slow.
    #[must_use]
    pub fn try_reserve_note(&self, tenant: TenantId, bytes: u64) -> bool {
        let bytes = bytes + MESSAGE_BYTES;
        let mut book = self.accounting.lock();
        let has_room = self.has_room(&mut book, tenant, bytes);
        if has_room {
            book.bytes += bytes;
            book.tenants.entry(tenant).or_default().bytes += bytes;
        }
        has_room
    }

    /// Releases the room of a message that went on in the background and has ended.
    pub fn release_note(&self, tenant: TenantId, bytes: u64) {
        let bytes = bytes + MESSAGE_BYTES;
        let mut book = self.accounting.lock();
        book.bytes = book.bytes.saturating_sub(bytes);
        if let Some(lane) = book.tenants.get_mut(&tenant) {
            lane.bytes = lane.bytes.saturating_sub(bytes);
        }
    }

    fn add(&self, book: &mut LaneAccounting, tenant: TenantId, bytes: u64) {
        book.bytes += bytes;
        let lane = book.tenants.entry(tenant).or_default();
        lane.messages += 1;
        lane.bytes += bytes;
        if lane.slow_until.is_none() {
            // The tenant counts as slow until a check finds that it is not.
            lane.slow_until = Some(Instant::now());
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
        metrics::gauge!("fieldline_rules_lane_messages").increment(1.0);
    }

    /// Counts a message that a lane held when the program started.
    pub fn count_existing(&self, tenant: TenantId, bytes: u64) {
        self.add(&mut self.accounting.lock(), tenant, bytes + MESSAGE_BYTES);
    }

    /// Releases the room of a message that has left its lane, or never got there.
    pub fn release(&self, tenant: TenantId, bytes: u64) {
        let bytes = bytes + MESSAGE_BYTES;
        let mut book = self.accounting.lock();
        book.bytes = book.bytes.saturating_sub(bytes);
        if let Some(lane) = book.tenants.get_mut(&tenant) {
            lane.messages = lane.messages.saturating_sub(1);
            lane.bytes = lane.bytes.saturating_sub(bytes);
            metrics::gauge!("fieldline_rules_lane_messages").decrement(1.0);
        }
    }

    /// Number of a tenant's messages that its lane holds, or has room reserved for.
    pub fn messages(&self, tenant: TenantId) -> u64 {
        let book = self.accounting.lock();
        book.tenants.get(&tenant).map_or(0, |lane| lane.messages)
    }

    /// Appends messages of a tenant to its lane and waits up to `patience` while the journal catches up; the result
    /// resolves when they are durable.
    ///
    /// # Errors
    /// The journal refuses them.
    pub async fn append(
        &self,
        tenant: TenantId,
        records: &RecordBatch,
        patience: Duration,
    ) -> Result<AppendFuture, AppendError> {
        let Some((uplink, _)) = self.producer.get() else {
            return Err(AppendError::Closed);
        };
        let deadline = tokio::time::Instant::now() + patience;
        uplink.divert(deadline, lane_subject(tenant), records).await
    }

    /// Appends a message to its tenant's lane instead of a shared queue, and waits until it is durable.
    ///
    /// # Errors
    /// The tenant's limit is reached, or the journal refuses the message.
    pub async fn divert(
        &self,
        tenant: TenantId,
        message: &QueueMessage,
        queue: &str,
        patience: Duration,
    ) -> Result<(), DivertError> {
        let mut inner = RecordBatch::new();
        inner.push_message(tenant, message);
        let record = split(inner.as_bytes()).next().and_then(Result::ok);
        let Some(Ok(record)) = record.map(JournalRecord::decode) else {
            return Err(DivertError::Unwritable);
        };
        let subject = EntityKey {
            tenant,
            entity: message.originator,
        };
        let diverted = DivertedRecord {
            id: message.id,
            queue,
            record: JournalRecord { subject, ..record },
        };
        let bytes = diverted.body_len() as u64;
        let mut records = RecordBatch::new();
        if !records.push_diverted(&diverted) {
            return Err(DivertError::Unwritable);
        }
        let mut room = self.room(tenant, bytes)?;
        let appending = self.append(tenant, &records, patience).await?;
        room.commit(appending).await?;
        self.note(tenant, |counts| counts.diverted += 1);
        metrics::counter!("fieldline_rules_diverted_total").increment(1);
        Ok(())
    }

    /// Appends a message that was taken out of its tenant's lane to the end of that lane again, and waits until it is
    /// durable. It is charged to the tenant's share of the journal's reserve.
    ///
    /// # Errors
    /// Those of [`divert`](Self::divert).
    pub async fn put_back(
        &self,
        diverted: &DivertedRecord<'_>,
        patience: Duration,
    ) -> Result<(), DivertError> {
        let Some((uplink, _)) = self.producer.get() else {
            return Err(AppendError::Closed.into());
        };
        let mut records = RecordBatch::new();
        if !records.push_diverted(diverted) {
            return Err(DivertError::Unwritable);
        }
        let (tenant, bytes) = (diverted.record.subject.tenant, diverted.body_len() as u64);
        let mut room = self.room(tenant, bytes)?;
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let appending = uplink.push(deadline, lane_subject(tenant), &records).await?;
            match room.commit(appending).await {
                Err(AppendError::DiskFull) if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(PUT_BACK_PAUSE).await;
                }
                done => return Ok(done?),
            }
        }
    }

    /// Reserves room for a message that is about to be appended.
    fn room(&self, tenant: TenantId, bytes: u64) -> Result<LaneReservation<'_>, DivertError> {
        if !self.try_reserve(tenant, bytes) {
            return Err(DivertError::Full);
        }
        Ok(LaneReservation {
            lanes: self,
            tenant,
            bytes,
            is_used: false,
        })
    }

    /// Updates the counts of a tenant.
    pub fn note(&self, tenant: TenantId, change: impl FnOnce(&mut LaneCounts)) {
        let mut book = self.accounting.lock();
        change(&mut book.tenants.entry(tenant).or_default().counts);
    }

    /// Counts a message that was given up. Returns their number if a notice to the tenant is due, at most one per
    /// interval.
    pub fn note_given_up(&self, tenant: TenantId) -> Option<u64> {
        let now = Instant::now();
        let mut book = self.accounting.lock();
        let lane = book.tenants.entry(tenant).or_default();
        lane.counts.given_up += 1;
        let is_due = lane.notified_at.is_none_or(|told| now - told >= NOTIFY_INTERVAL);
        if is_due {
            lane.notified_at = Some(now);
        }
        is_due.then_some(lane.counts.given_up)
    }

    /// The counts of all tenants since the program started.
    pub fn counts(&self) -> Vec<(TenantId, LaneCounts)> {
        let book = self.accounting.lock();
        let counts = book.tenants.iter().map(|(tenant, lane)| (*tenant, lane.counts));
        counts.collect()
    }

    /// Forgets a deleted tenant, unless its lane holds messages.
    pub fn forget(&self, tenant: TenantId) {
        if let hash_map::Entry::Occupied(lane) = self.accounting.lock().tenants.entry(tenant)
            && lane.get().messages == 0
            && lane.remove().slow_until.is_some()
        {
            self.slow.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::ports::CommitGroup;

    use super::*;

    #[test]
    fn a_tenant_is_slow_while_its_lane_holds_something_and_no_longer() {
        let lanes = SlowLanes::new(&LaneOptions::default());
        let [tenant, other] = [TenantId::new(), TenantId::new()];
        assert!(!lanes.has_slow());
        assert!(lanes.try_reserve(tenant, 10));
        assert!(lanes.is_slow(tenant) && !lanes.is_slow(other));
        lanes.release(tenant, 10);
        assert!(!lanes.is_slow(tenant) && !lanes.has_slow());
        lanes.mark_slow(tenant);
        lanes.mark_slow(tenant);
        assert!(lanes.is_slow(tenant) && !lanes.is_slow(other));
        lanes.forget(tenant);
        assert!(!lanes.has_slow());
    }

    #[test]
    fn a_lane_takes_as_much_of_a_tenant_as_it_may_and_leaves_room_for_others() {
        let options = LaneOptions {
            backlog: ByteSize(8 * (MESSAGE_BYTES + 44)),
            ..LaneOptions::default()
        };
        let lanes = SlowLanes::new(&options);
        let greedy = TenantId::new();
        let takes = |tenant| (0..20).take_while(|_| lanes.try_reserve(tenant, 44)).count();
        assert_eq!(takes(greedy), 8);
        lanes.release(greedy, 44);
        assert!(lanes.try_reserve(greedy, 44));
        assert!(!lanes.try_reserve(greedy, 44));
        for _ in 1..ALL_TENANTS {
            assert_eq!(takes(TenantId::new()), 8);
        }
        // All lanes are full, but a tenant with no messages there still gets a little room.
        assert_eq!(takes(TenantId::new()), 1);
        assert!(!lanes.try_reserve(greedy, 44));
    }
    #[tokio::test]
    async fn a_message_under_way_keeps_its_room_although_nobody_waits_for_it() {
        let lanes = SlowLanes::new(&LaneOptions::default());
        let tenant = TenantId::new();
        let group = CommitGroup::new();
        let mut room = lanes.room(tenant, 44).unwrap();
        let committing = tokio::time::timeout(Duration::ZERO, room.commit(AppendFuture::of(group)));
        assert!(committing.await.is_err(), "it is not durable yet");
        drop(room);
        assert!(lanes.is_slow(tenant));
        lanes.release(tenant, 44);
        assert!(!lanes.is_slow(tenant));
    }

    #[tokio::test]
    async fn a_message_that_could_not_be_appended_gives_its_room_back() {
        let lanes = SlowLanes::new(&LaneOptions::default());
        let tenant = TenantId::new();
        let group = CommitGroup::new();
        group.complete(Err(AppendError::DiskFull));
        let mut room = lanes.room(tenant, 44).unwrap();
        assert!(room.commit(AppendFuture::of(group)).await.is_err());
        assert!(lanes.is_slow(tenant), "it may be tried again with the same room");
        drop(room);
        assert!(!lanes.is_slow(tenant));
    }
}
