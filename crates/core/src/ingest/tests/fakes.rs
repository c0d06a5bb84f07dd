//! A journal and a store in memory that honour the ports' contracts, and fail on demand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::record::{RecordBatch, split};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::ingest::ActivityListener;
use crate::ports::{
    AppendError, AppendFuture, AppendOrigin, ConsumerEvent, ConsumerRecords, HoldBackCause, IngestStore,
    Journal, JournalConsumer, JournalError, Offset, Partition, QueueId, StateRow, StoreEffects, StoreError,
    StoreErrorKind, StoreResult,
};

/// Largest append that the journal takes, bytes.
pub(super) const LARGEST_APPEND: usize = 300;

/// Creates a telemetry record with one row, identified by its time.
pub(super) fn record(ts: i64) -> Vec<u8> {
    let mut batch = RecordBatch::new();
    let subject = EntityKey::device(TenantId::new(), DeviceId::new());
    let mut telemetry = batch.begin_telemetry(subject, ts, 0);
    telemetry.begin_row(ts);
    pack("k", KvValueRef::Long(ts), telemetry.buffer());
    telemetry.count_point();
    telemetry.finish();
    split(batch.as_bytes()).next().unwrap().unwrap().to_vec()
}

#[derive(Default)]
struct Log {
    records: BTreeMap<Partition, Vec<Vec<u8>>>,
    damaged: BTreeSet<Partition>,
    /// Partitions of which a reader is told once that the log holds only positions from the first to the second number.
    moved: BTreeMap<Partition, (u64, u64)>,
    /// First positions of partitions whose older records are deleted.
    firsts: BTreeMap<Partition, u64>,
    /// Where the group of consumers stands, if not at the beginning.
    committed: BTreeMap<Partition, u64>,
    paused: Vec<(Partition, Duration)>,
    closed: bool,
    is_busy: bool,
    /// Positions behind the last record that have none, as at the end of a block in Kafka.
    gap: u64,
    /// Largest append if not [`LARGEST_APPEND`], bytes.
    largest_append: Option<usize>,
}

/// A journal with two partitions; pauses of its consumers never end.
pub(super) struct FakeJournal {
    log: Arc<Mutex<Log>>,
    changed: watch::Sender<()>,
}

impl FakeJournal {
    pub(super) fn holding(records: &[(Partition, Vec<Vec<u8>>)]) -> Arc<Self> {
        let log = Log {
            records: records.iter().cloned().collect(),
            ..Log::default()
        };
        Arc::new(Self {
            log: Arc::new(Mutex::new(log)),
            changed: watch::Sender::new(()),
        })
    }

    pub(super) fn closed_with(records: &[(Partition, Vec<Vec<u8>>)]) -> Arc<Self> {
        let journal = Self::holding(records);
        journal.log.lock().closed = true;
        journal
    }

    pub(super) fn put(&self, partition: Partition, record: Vec<u8>) {
        self.log.lock().records.entry(partition).or_default().push(record);
        self.changed.send_replace(());
    }

    /// Replaces a record, as if it had been there from the start.
    pub(super) fn put_at(&self, partition: Partition, at: usize, record: Vec<u8>) {
        self.log.lock().records.get_mut(&partition).unwrap()[at] = record;
    }

    pub(super) fn damage(&self, partition: Partition) {
        self.log.lock().damaged.insert(partition);
    }

    /// Replaces the records of a partition as if they had been lost, or removed before `first`.
    pub(super) fn lose(&self, partition: Partition, first: u64, records: Vec<Vec<u8>>) {
        let mut log = self.log.lock();
        log.moved.insert(partition, (first, records.len() as u64));
        log.records.insert(partition, records);
        drop(log);
        self.changed.send_replace(());
    }

    /// Has the group of consumers stand at a position, and deletes records before another one.
    pub(super) fn consume(&self, partition: Partition, committed: u64, first: u64) {
        let mut log = self.log.lock();
        log.committed.insert(partition, committed);
        log.firsts.insert(partition, first);
    }

    /// Leaves out so many positions behind the last record.
    pub(super) fn leave_out(&self, positions: u64) {
        self.log.lock().gap = positions;
    }

    /// Makes the journal refuse appends as busy.
    pub(super) fn set_busy(&self, is_busy: bool) {
        self.log.lock().is_busy = is_busy;
    }

    pub(super) fn set_largest_append(&self, bytes: usize) {
        self.log.lock().largest_append = Some(bytes);
    }

    pub(super) fn paused(&self) -> Vec<(Partition, Duration)> {
        self.log.lock().paused.clone()
    }
}

#[async_trait]
impl Journal for FakeJournal {
    fn open_queue(&self, _: &str, _: u16) -> Result<QueueId, JournalError> {
        Ok(QueueId(0))
    }

    fn partitions(&self, _: QueueId) -> u16 {
        2
    }

    fn queues(&self) -> Vec<String> {
        vec![super::super::MAIN_QUEUE.to_owned()]
    }

    fn append(
        &self,
        partition: Partition,
        records: &RecordBatch,
        _: AppendOrigin,
    ) -> Result<AppendFuture, AppendError> {
        let (limit, is_busy) = {
            let log = self.log.lock();
            (log.largest_append.unwrap_or(LARGEST_APPEND), log.is_busy)
        };
        if records.as_bytes().len() > limit {
            return Err(AppendError::TooLarge { limit });
        }
        if is_busy {
            return Err(AppendError::Busy);
        }
        for record in split(records.as_bytes()) {
            self.put(partition, record.unwrap().to_vec());
        }
        Ok(AppendFuture::durable())
    }

    async fn ready(&self, _: AppendOrigin) {
        while self.log.lock().is_busy {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn subscribe(
        &self,
        queue: QueueId,
        _: &str,
        members: u16,
    ) -> Result<Vec<Box<dyn JournalConsumer>>, JournalError> {
        let members = members.max(1);
        let committed = self.log.lock().committed.clone();
        let consumer = |member| -> Box<dyn JournalConsumer> {
            let mine = (member..2).step_by(usize::from(members));
            Box::new(FakeConsumer {
                log: self.log.clone(),
                changed: self.changed.subscribe(),
                positions: mine
                    .map(|index| Partition { queue, index })
                    .map(|partition| (partition, committed.get(&partition).copied().unwrap_or(0)))
                    .collect(),
                paused: BTreeSet::new(),
                is_assigned: false,
            })
        };
        Ok((0..members).map(consumer).collect())
    }

    fn end(&self, partition: Partition) -> Offset {
        let log = self.log.lock();
        Offset(log.records.get(&partition).map_or(0, Vec::len) as u64)
    }

    fn refusal(&self) -> Option<AppendError> {
        None
    }

    fn held_back(&self) -> Vec<(HoldBackCause, Duration)> {
        Vec::new()
    }

    async fn close(&self) {
        self.log.lock().closed = true;
        self.changed.send_replace(());
    }
}

struct FakeConsumer {
    log: Arc<Mutex<Log>>,
    changed: watch::Receiver<()>,
    positions: BTreeMap<Partition, u64>,
    paused: BTreeSet<Partition>,
    is_assigned: bool,
}

impl FakeConsumer {
    /// Returns all remaining records of the first partition that has any.
    fn poll(&mut self) -> Option<ConsumerEvent> {
        let mut log = self.log.lock();
        for (partition, position) in &mut self.positions {
            let first = *position;
            if let Some((first, next)) = log.moved.remove(partition) {
                let (partition, asked) = (*partition, *position);
                let error = JournalError::OutOfRange {
                    partition,
                    asked,
                    first,
                    next,
                };
                return Some(ConsumerEvent::Unreadable(partition, error));
            }
            let records = log.records.get(partition).map_or(&[][..], Vec::as_slice);
            let records = records.get(first as usize..).unwrap_or_default();
            if records.is_empty() || self.paused.contains(partition) {
                continue;
            }
            if log.damaged.contains(partition) {
                let error = JournalError::Corrupt("damaged by the test".to_owned());
                return Some(ConsumerEvent::Unreadable(*partition, error));
            }
            let mut batch = RecordBatch::new();
            for record in records {
                batch.push(record);
            }
            *position += records.len() as u64 + log.gap;
            return Some(ConsumerEvent::Records(ConsumerRecords {
                partition: *partition,
                first: Offset(first),
                next: Offset(*position),
                bytes: batch.as_bytes().to_vec().into(),
            }));
        }
        None
    }
}

#[async_trait]
impl JournalConsumer for FakeConsumer {
    async fn next(&mut self, _: usize) -> Result<ConsumerEvent, JournalError> {
        if !self.is_assigned {
            self.is_assigned = true;
            let positions = self.positions.iter();
            let positions = positions.map(|(partition, at)| (*partition, Offset(*at)));
            return Ok(ConsumerEvent::Assigned(positions.collect()));
        }
        loop {
            self.changed.borrow_and_update();
            let closed = self.log.lock().closed;
            if let Some(delivery) = self.poll() {
                return Ok(delivery);
            }
            if closed || self.changed.changed().await.is_err() {
                return Ok(ConsumerEvent::Closed);
            }
        }
    }

    fn pause(&mut self, partition: Partition, time: Duration) {
        self.paused.insert(partition);
        self.log.lock().paused.push((partition, time));
    }

    fn seek(&mut self, partition: Partition, offset: Offset) -> Result<(), JournalError> {
        let log = self.log.lock();
        let first = log.firsts.get(&partition).copied().unwrap_or(0);
        let next = log.records.get(&partition).map_or(0, Vec::len) as u64 + log.gap;
        if !(first..=next).contains(&offset.0) {
            return Err(JournalError::OutOfRange {
                partition,
                asked: offset.0,
                first,
                next,
            });
        }
        self.positions.insert(partition, offset.0);
        Ok(())
    }

    async fn commit(&mut self, _: Partition, _: Offset) -> Result<(), JournalError> {
        Ok(())
    }
}

#[derive(Default)]
struct Stored {
    positions: BTreeMap<Partition, Offset>,
    rows: BTreeMap<Partition, Vec<i64>>,
    rewinds: Vec<(Partition, Offset)>,
    attempts: usize,
}

/// Keeps the times of the stored rows.
#[derive(Default)]
pub(super) struct FakeStore {
    stored: Mutex<Stored>,
    /// Errors of the next calls to `apply`.
    failures: Mutex<VecDeque<StoreErrorKind>>,
    /// A row that the store always refuses, and the error.
    refused: Option<(i64, StoreErrorKind)>,
}

impl FakeStore {
    pub(super) fn default_shared() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn standing_at(positions: &[(Partition, u64)]) -> Arc<Self> {
        let store = Self::default();
        store.stored.lock().positions = positions.iter().map(|(at, next)| (*at, Offset(*next))).collect();
        Arc::new(store)
    }

    pub(super) fn refusing(ts: i64, kind: StoreErrorKind) -> Arc<Self> {
        Arc::new(Self {
            refused: Some((ts, kind)),
            ..Self::default()
        })
    }

    pub(super) fn failing(kinds: &[StoreErrorKind]) -> Arc<Self> {
        Arc::new(Self {
            failures: Mutex::new(kinds.iter().copied().collect()),
            ..Self::default()
        })
    }

    pub(super) fn rows(&self, partition: Partition) -> Vec<i64> {
        self.stored
            .lock()
            .rows
            .get(&partition)
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn position(&self, partition: Partition) -> Option<Offset> {
        self.stored.lock().positions.get(&partition).copied()
    }

    pub(super) fn rewinds(&self) -> Vec<(Partition, Offset)> {
        self.stored.lock().rewinds.clone()
    }

    fn store(
        &self,
        partition: Partition,
        next: Option<Offset>,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()> {
        let mut stored = self.stored.lock();
        stored.attempts += 1;
        if let Some(kind) = self.failures.lock().pop_front() {
            return failed(kind);
        }
        let times = || effects.telemetry.iter().map(|row| row.ts);
        if let Some((_, kind)) = self
            .refused
            .filter(|(refused, _)| times().any(|ts| ts == *refused))
        {
            return failed(kind);
        }
        if next.is_some() && next <= stored.positions.get(&partition).copied() {
            return Ok(());
        }
        stored.rows.entry(partition).or_default().extend(times());
        if let Some(next) = next {
            stored.positions.insert(partition, next);
        }
        Ok(())
    }

    pub(super) fn attempts(&self) -> usize {
        self.stored.lock().attempts
    }
}

fn failed<T>(kind: StoreErrorKind) -> StoreResult<T> {
    Err(StoreError::new(kind, "as the test wants it"))
}

#[async_trait]
impl IngestStore for FakeStore {
    async fn apply(&self, partition: Partition, next: Offset, effects: &StoreEffects<'_>) -> StoreResult<()> {
        self.store(partition, Some(next), effects)
    }

    async fn apply_between_records(
        &self,
        partition: Partition,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()> {
        self.store(partition, None, effects)
    }

    async fn resume_position(&self, partition: Partition) -> StoreResult<Option<Offset>> {
        Ok(self.position(partition))
    }

    async fn rewind(&self, partition: Partition, to: Offset) -> StoreResult<()> {
        let mut stored = self.stored.lock();
        stored.positions.insert(partition, to);
        stored.rewinds.push((partition, to));
        Ok(())
    }

    async fn states(&self, _: Partition) -> StoreResult<Vec<StateRow>> {
        Ok(Vec::new())
    }

    async fn checkpoint(&self) -> StoreResult<Vec<(Partition, Offset)>> {
        let stored = self.stored.lock();
        Ok(stored.positions.iter().map(|(at, next)| (*at, *next)).collect())
    }
}

/// Ignores all activity.
pub(super) struct DeafListener;

impl ActivityListener for DeafListener {
    fn record_activities(&self, _: &[(EntityKey, i64)]) {}
    fn set_lag(&self, _: Duration) {}
}
