//! Working on a slow lane.
//!
//! What comes from the lane's queue is kept first, as states that are stored with the position: the queue is read however
//! long its messages take. Then they begin, tenants in turn, each message by itself: none holds up another one. What is kept
//! of a message goes with what it does:
//!
//! ```text
//! value := retries u32 · first try i64 · received i64 · body of the diverted record
//! ```

use std::time::{Duration, Instant};

use bytes::Bytes;
use fieldline_core::in_flight::KeptTurn;
use fieldline_core::ingest::{DeliveredBatch, EffectWriter, IngestShutdown};
use fieldline_core::ports::{Partition, StateKey};
use fieldline_model::EntityKey;
use fieldline_model::record::RecordBody;
use fieldline_model::record::diverted::{self, DivertedRecord};
use rustc_hash::FxHashSet;
use tracing::error;
use uuid::Uuid;

use super::RuleWorker;
use super::batch::MessageOrigin;
use super::in_flight;
use super::keyed_states::KeyedStates;
use super::lane_scheduler::{LaneItem, LaneRun, LaneScheduler};
use super::rounds::SHORTEST_PAUSE;
use super::submit::MessageSource;
use super::worker_state::WorkerState;
use crate::lanes::SlowLanes;
use crate::stats::LastFailure;
use crate::strategy::{MessageOutcome, QueueStrategy};

/// Who keeps what waits in a lane.
pub(super) const LANE_STATE_OWNER: Uuid = Uuid::from_u128(0x1a9e_0000_0000_4000_8000_0000_0000_0001);
const HEADER_BYTES: usize = 4 + 8 + 8;
/// For how long messages begin before others that have waited go on.
const SLICE: Duration = Duration::from_millis(20);
/// After what time a message that is suspected tries again whether it is its turn.
const SUSPECT_PAUSE: Duration = Duration::from_millis(50);

/// What is kept beside the record.
#[derive(Clone, Copy)]
struct LaneRecordHeader {
    retries: u32,
    first_ms: i64,
    received_ms: i64,
}

impl LaneRecordHeader {
    fn encode(self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(&self.retries.to_le_bytes());
        bytes.extend_from_slice(&self.first_ms.to_le_bytes());
        bytes.extend_from_slice(&self.received_ms.to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (retries, bytes) = bytes.split_first_chunk()?;
        let (first, bytes) = bytes.split_first_chunk()?;
        let (received, body) = bytes.split_first_chunk()?;
        let header = Self {
            retries: u32::from_le_bytes(*retries),
            first_ms: i64::from_le_bytes(*first),
            received_ms: i64::from_le_bytes(*received),
        };
        Some((header, body))
    }
}

/// What is kept of a message.
fn read(subject: EntityKey, value: &[u8]) -> Option<(LaneRecordHeader, DivertedRecord<'_>)> {
    let (header, body) = LaneRecordHeader::decode(value)?;
    let diverted = diverted::decode(subject, header.received_ms, body).ok()?;
    Some((header, diverted))
}

/// Lets messages of a lane begin and end.
pub(super) struct LanePass<'a> {
    pub(super) worker: &'a mut RuleWorker,
    pub(super) lanes: &'a SlowLanes,
    /// Where effects are stored.
    pub(super) writer: &'a EffectWriter,
}

impl LanePass<'_> {
    /// Goes on for a while.
    pub(super) async fn run(&mut self) -> Result<(), IngestShutdown> {
        let lanes = self.lanes;
        self.worker.messages.batch.notes_ends = true;
        self.worker.shared.check_open()?;
        self.finish_ended();
        for slot in self.worker.lane.late(lanes.options.timeout.0, Instant::now()) {
            self.end(slot, MessageOutcome::Open);
        }
        let began = Instant::now();
        while began.elapsed() < SLICE
            && let Some(slot) = self.worker.lane.begin(Instant::now())
        {
            self.begin(slot).await?;
            self.worker.shared.check_open()?;
            self.finish_ended();
        }
        self.worker.shares.rest();
        for (tenant, time) in self.worker.shares.take_measured() {
            self.worker.lane.charge(tenant, time);
        }
        Ok(())
    }

    /// Counts what has come to its end, and tells of what did not come to a good one although its queue never gives up.
    fn report_end(
        &self,
        item: &LaneItem,
        outcome: MessageOutcome,
        strategy: &QueueStrategy,
        failure: Option<LastFailure>,
    ) {
        metrics::counter!("fieldline_rules_messages_total").increment(1);
        match outcome {
            MessageOutcome::Done => {}
            MessageOutcome::Failed => {
                metrics::counter!("fieldline_rules_failed_total").increment(1);
                if strategy.retries_of(outcome) {
                    let error = failure.map(|failure| failure.error).unwrap_or_default();
                    self.worker.queue.give_up(
                        item.key.subject,
                        &format!("it has failed again and again: {error}"),
                        &self.worker.shared.events,
                    );
                }
            }
            MessageOutcome::Open => {
                metrics::counter!("fieldline_rules_timed_out_total").increment(1);
                self.worker.queue.give_up(
                    item.key.subject,
                    "it takes longer than a message may take in a slow lane",
                    &self.worker.shared.events,
                );
            }
        }
    }

    async fn begin(&mut self, slot: u32) -> Result<(), IngestShutdown> {
        let Some(item) = self.worker.lane.running(slot).map(|run| run.item.clone()) else {
            return Ok(());
        };
        self.worker
            .messages
            .batch
            .begin_one(slot, MessageOrigin::default());
        let Some(value) = self.worker.local.keyed_states.get(&item.key) else {
            // Its originator or tenant is no more.
            self.worker.lane.end(slot);
            self.lanes.release(item.key.subject.tenant, item.bytes);
            return Ok(());
        };
        self.worker.shares.resume_tenant(item.key.subject.tenant);
        self.worker.local.partition = item.partition;
        self.submit(slot, &item, &value).await
    }

    async fn submit(&mut self, slot: u32, item: &LaneItem, value: &Bytes) -> Result<(), IngestShutdown> {
        let Some((_, diverted)) = read(item.key.subject, value) else {
            self.worker.messages.batch.begin_of(slot);
            let handle = self.worker.handle(slot);
            self.worker
                .walk_context(handle, self.writer)
                .fail(None, "the message cannot be read");
            return Ok(());
        };
        match self.writer.take_kept(item.in_hand()) {
            KeptTurn::Now(note) => self.worker.lane.note(slot, note),
            KeptTurn::Later => {
                self.worker.messages.batch.end_one(slot);
                if let Some(mut run) = self.worker.lane.end(slot) {
                    run.item.at = Instant::now() + SUSPECT_PAUSE;
                    self.worker.lane.push(run.item);
                }
                return Ok(());
            }
            KeptTurn::Never(proof) => {
                if in_flight::set_aside(item, &diverted, proof.deaths, self.writer).await? {
                    self.worker.messages.batch.end_one(slot);
                    if let Some(run) = self.worker.lane.end(slot) {
                        self.forget(run);
                    }
                    proof.finish();
                    return Ok(());
                }
                error!(partition = %item.partition, tenant = %item.key.subject.tenant, "the process died of this message of a lane and there is nowhere to keep it, trying it again");
            }
        }
        let source = MessageSource {
            id: diverted.id,
            row: 0,
            bytes: value,
        };
        let handle = self.worker.handle(slot);
        let mut cx = self.worker.walk_context(handle, self.writer);
        cx.start_record(&diverted.record, source, None).await
    }

    /// Lets go of the messages that have ended.
    fn finish_ended(&mut self) {
        for slot in std::mem::take(&mut self.worker.messages.batch.ended) {
            if self.worker.lane.running(slot).is_some() {
                let outcome = self.worker.messages.batch.outcome(slot);
                self.end(slot, outcome);
            }
        }
    }

    /// A message of the lane has ended, or its time is up.
    fn end(&mut self, slot: u32, outcome: MessageOutcome) {
        let generation = self.worker.messages.batch.generation_of(slot);
        self.worker.messages.suspended.cancel_message(generation, slot);
        let failure = self.worker.messages.batch.failures.remove(&slot);
        self.worker.messages.batch.end_one(slot);
        let Some(run) = self.worker.lane.end(slot) else {
            return;
        };
        let item = &run.item;
        let name = self.worker.lane.name(item.home).cloned();
        let queue = name.and_then(|name| self.lanes.queue(&name));
        let strategy = queue
            .as_ref()
            .map_or_else(QueueStrategy::default, |queue| queue.strategy.read().clone());
        let tenant = item.key.subject.tenant;
        let again = self.is_tried_again(item, outcome, &strategy);
        if let Some(queue) = queue {
            queue
                .counts
                .lock()
                .count_one(tenant, outcome, again, failure.as_ref());
        }
        if again {
            self.try_again(run.item, &strategy);
            return;
        }
        self.report_end(item, outcome, &strategy, failure);
        self.forget(run);
    }

    /// Keeps nothing of a message any longer.
    fn forget(&mut self, run: LaneRun) {
        let LaneRun { item, note, .. } = run;
        self.worker.local.keyed_states.remove(&item.key);
        self.worker.local.end_record(item.partition, item.key.number);
        self.worker.lane.ended_notes.extend(note);
        self.lanes.release(item.key.subject.tenant, item.bytes);
    }

    fn is_tried_again(&self, item: &LaneItem, outcome: MessageOutcome, strategy: &QueueStrategy) -> bool {
        if !strategy.retries_of(outcome) || self.worker.local.keyed_states.peek(&item.key).is_none() {
            return false;
        }
        if strategy.retries > 0 {
            return item.retries < strategy.retries;
        }
        let tried = match item.first_ms {
            0 => 0,
            first => self.worker.now_ms().saturating_sub(first),
        };
        u128::from(tried.max(0).unsigned_abs()) < self.lanes.options.retry_time.0.as_millis()
    }

    fn try_again(&mut self, mut item: LaneItem, strategy: &QueueStrategy) {
        let pause = strategy.pause_after(item.retries).max(SHORTEST_PAUSE);
        item.retries = item.retries.saturating_add(1);
        if item.first_ms == 0 {
            item.first_ms = self.worker.now_ms().max(1);
        }
        item.at = Instant::now() + pause;
        let value = self.worker.local.keyed_states.get(&item.key);
        if let Some((header, body)) = value.as_deref().and_then(LaneRecordHeader::decode) {
            let header = LaneRecordHeader {
                retries: item.retries,
                first_ms: item.first_ms,
                ..header
            };
            let value = header.encode(body);
            self.worker
                .local
                .keyed_states
                .put(item.partition, item.key.clone(), None, &value);
        }
        metrics::counter!("fieldline_rules_retries_total").increment(1);
        self.worker.lane.push(item);
    }
}

impl LaneScheduler {
    /// Finds what the lane held when the program started.
    pub(super) fn load_partition(
        &mut self,
        partition: Partition,
        lanes: &SlowLanes,
        local: &mut WorkerState,
    ) {
        let mut keys = local.keyed_states.keys_of(LANE_STATE_OWNER, partition);
        keys.sort_unstable_by_key(|key| key.number);
        let held: FxHashSet<u64> = keys.iter().map(|key| key.number).collect();
        let states = &mut local.keyed_states;
        let is_done = |record| !held.contains(&record);
        local.marks.forget(partition, states, is_done);
        for key in keys {
            let tenant = key.subject.tenant;
            match self.item(key.clone(), partition, lanes, &local.keyed_states) {
                Some(item) => {
                    lanes.count_existing(tenant, item.bytes);
                    self.push(item);
                }
                None => {
                    error!(entity = %key.subject.entity, "what a lane has kept cannot be read");
                    local.keyed_states.remove(&key);
                }
            }
        }
    }

    /// Another worker goes on with a partition.
    pub(super) fn release_partition(&mut self, partition: Partition, lanes: &SlowLanes) {
        for item in self.drop_partition(partition) {
            lanes.release(item.key.subject.tenant, item.bytes);
        }
    }

    fn item(
        &mut self,
        key: StateKey,
        partition: Partition,
        lanes: &SlowLanes,
        states: &KeyedStates,
    ) -> Option<LaneItem> {
        let (header, diverted) = read(key.subject, states.peek(&key)?)?;
        let is_one_by_one = lanes
            .queue(diverted.queue)
            .is_some_and(|queue| queue.strategy.read().is_one_by_one());
        Some(LaneItem {
            partition,
            kind: if is_one_by_one {
                key.subject.tenant.into()
            } else {
                key.subject.entity
            },
            bytes: diverted.body_len() as u64,
            home: self.number_of(diverted.queue),
            id: diverted.id,
            retries: header.retries,
            first_ms: header.first_ms,
            at: Instant::now(),
            key,
        })
    }

    /// Keeps what has come.
    pub(super) fn fill(
        &mut self,
        delivered: &DeliveredBatch<'_>,
        lanes: &SlowLanes,
        states: &mut KeyedStates,
    ) {
        let partition = delivered.records.partition;
        for (offset, record) in delivered.readable {
            let RecordBody::Diverted(body) = record.body else {
                error!(%partition, position = offset.0, "a lane holds something that was not diverted");
                continue;
            };
            let key = StateKey {
                subject: record.subject,
                owner: LANE_STATE_OWNER,
                number: offset.0,
            };
            let header = LaneRecordHeader {
                retries: 0,
                first_ms: 0,
                received_ms: record.received_ms,
            };
            let value = header.encode(body);
            states.put(partition, key.clone(), None, &value);
            if let Some(item) = self.item(key, partition, lanes, states) {
                if lanes.is_from_before(partition, *offset) {
                    lanes.count_existing(record.subject.tenant, item.bytes);
                }
                self.push(item);
            }
        }
    }
}
