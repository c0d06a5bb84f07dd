//! Appends that wait for Kafka, gathered into blocks by partition, and who may add to them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use fieldline_core::ports::{AppendError, AppendOrigin, CommitGroup, HoldBackCause};
use fieldline_model::TenantId;
use fieldline_model::record::RecordBatch;
use parking_lot::Mutex;
use uuid::Uuid;

use super::block::{BlockOrigin, MAX_RECORDS, position};
use crate::backpressure::BackpressureTime;
use crate::options::Options;
use crate::reserve::InternalReserve;

/// Bytes at which a block is full.
const BLOCK_BYTES: usize = 256 << 10;
/// Full blocks of a partition that may be under way; one that is not full waits until none is.
const MAX_IN_FLIGHT: usize = 4;

/// An append whose records are in several blocks.
#[derive(Debug)]
struct SplitAppend {
    group: Arc<CommitGroup>,
    left: AtomicUsize,
    error: Mutex<Option<AppendError>>,
}

/// Records that become a block.
#[derive(Debug)]
pub(crate) struct PendingBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u32,
    pub(crate) appends: u64,
    group: Arc<CommitGroup>,
    parts: Vec<Arc<SplitAppend>>,
    /// Bytes of devices by their tenants.
    charges: Vec<(TenantId, usize)>,
}

impl PendingBlock {
    fn new() -> Self {
        Self {
            bytes: Vec::new(),
            records: 0,
            appends: 0,
            group: CommitGroup::new(),
            parts: Vec::new(),
            charges: Vec::new(),
        }
    }

    fn has_room(&self, bytes: usize, records: u32) -> bool {
        self.records == 0
            || (self.bytes.len() + bytes <= BLOCK_BYTES && self.records + records <= MAX_RECORDS)
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES || self.records >= MAX_RECORDS
    }

    /// Resolves the appends whose records are in the block.
    pub(crate) fn complete(&self, outcome: &Result<(), AppendError>) {
        self.group.complete(outcome.clone());
        for part in &self.parts {
            if let Err(error) = outcome {
                part.error.lock().get_or_insert_with(|| error.clone());
            }
            if part.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                let error = part.error.lock().take();
                part.group.complete(error.map_or(Ok(()), Err));
            }
        }
    }
}

/// The blocks of a partition.
#[derive(Debug)]
struct PartitionOutbox {
    /// Blocks that are not sent yet; the last one takes records.
    waiting: VecDeque<PendingBlock>,
    /// When those under way were sent.
    sent: VecDeque<Instant>,
    /// Whether the sender is told of it.
    is_queued: bool,
    origin: BlockOrigin,
}

impl PartitionOutbox {
    fn is_due(&self) -> bool {
        match self.waiting.front() {
            None => false,
            Some(_) if self.sent.is_empty() => true,
            Some(block) => self.sent.len() < MAX_IN_FLIGHT && (self.waiting.len() > 1 || block.is_full()),
        }
    }
}

/// Who was refused and waits.
#[derive(Debug, Default)]
struct Refused {
    devices: bool,
    tenants: HashSet<TenantId>,
    for_memory: bool,
    for_reserve: bool,
}

/// Whom to wake.
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "nobody tries again without being woken"]
pub(crate) struct Woken {
    pub(crate) devices: bool,
    pub(crate) internal: bool,
}

/// What waits for Kafka.
#[derive(Debug)]
pub(crate) struct Outbox {
    partitions: Vec<PartitionOutbox>,
    due: VecDeque<usize>,
    /// No more appends are accepted; those that wait are still sent.
    pub(crate) closing: bool,
    /// From when on the sender may leave what waits.
    pub(crate) give_up_at: Option<Instant>,
    /// The producer has failed for good and has to be replaced.
    pub(crate) rebuild: bool,
    pub(crate) pending_bytes: usize,
    /// Pending bytes of devices by their tenants.
    tenants: HashMap<TenantId, usize>,
    refused: Refused,
    pub(crate) backpressure: BackpressureTime,
    capped: bool,
    pub(crate) reserve: InternalReserve,
    limit: usize,
    largest: usize,
    max_bytes: u64,
}

impl Outbox {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            partitions: Vec::new(),
            due: VecDeque::new(),
            closing: false,
            give_up_at: None,
            rebuild: false,
            pending_bytes: 0,
            tenants: HashMap::new(),
            refused: Refused::default(),
            backpressure: BackpressureTime::default(),
            capped: false,
            reserve: InternalReserve::new(options),
            limit: options.max_pending.as_usize(),
            largest: options.max_append.as_usize(),
            max_bytes: options.max_bytes.0,
        }
    }

    /// Adds partitions; returns the index of the first.
    pub(crate) fn add_partitions(&mut self, count: u16) -> usize {
        let base = self.partitions.len();
        self.partitions.extend((0..count).map(|_| PartitionOutbox {
            waiting: VecDeque::new(),
            sent: VecDeque::new(),
            is_queued: false,
            origin: new_run(),
        }));
        base
    }

    /// Why appends of devices are refused now.
    pub(crate) fn refusal(&self) -> Option<AppendError> {
        match self.closing {
            true => Some(AppendError::Closed),
            false => self.capped.then_some(AppendError::Busy),
        }
    }

    /// What devices of a tenant may have pending: half of what others leave, so that there is always some for others.
    fn share(&self, tenant: TenantId) -> usize {
        let mine = self.tenants.get(&tenant).copied().unwrap_or(0);
        (self.limit.saturating_sub(self.pending_bytes - mine)) / 2
    }

    fn refusal_of(&self, origin: AppendOrigin, bytes: usize) -> Option<AppendError> {
        let (tenant, limit) = match origin {
            AppendOrigin::Device(tenant) => {
                let mine = self.tenants.get(&tenant).copied().unwrap_or(0);
                // A tenant that has nothing pending gets its largest append through.
                let is_over = mine > 0 && mine + bytes > self.share(tenant);
                let is_busy = is_over || self.pending_bytes + bytes > self.limit;
                return self.refusal().or(is_busy.then_some(AppendError::Busy));
            }
            AppendOrigin::Internal(tenant) => (tenant, self.limit + self.limit / 4),
        };
        if self.closing {
            return Some(AppendError::Closed);
        }
        let has_room = !self.capped || self.reserve.has_room(tenant, bytes as u64, false);
        (!has_room || self.pending_bytes + bytes > limit).then_some(AppendError::Busy)
    }

    /// Whether it is worth repeating an append that was refused.
    pub(crate) fn is_ready(&self, origin: AppendOrigin) -> bool {
        let has_memory = self.pending_bytes <= self.limit / 2;
        self.closing
            || match origin {
                AppendOrigin::Device(tenant) => {
                    let mine = self.tenants.get(&tenant).copied().unwrap_or(0);
                    !self.capped && has_memory && mine <= self.share(tenant) / 2
                }
                AppendOrigin::Internal(tenant) => {
                    let has_reserve = self.reserve.has_room(tenant, self.largest as u64, false);
                    has_memory && (!self.capped || has_reserve)
                }
            }
    }

    /// Notes that a sender has to wait.
    pub(crate) fn hold_back(&mut self, origin: AppendOrigin) {
        match origin {
            AppendOrigin::Device(tenant) => {
                self.refused.devices = true;
                self.refused.tenants.insert(tenant);
                self.backpressure.begin(match self.capped {
                    true => HoldBackCause::Consumers,
                    false => HoldBackCause::Kafka,
                });
            }
            AppendOrigin::Internal(_) => {
                self.refused.for_memory = true;
                self.refused.for_reserve |= self.capped;
            }
        }
    }

    /// Adds records to a partition. Returns what resolves with them, and whether the sender has work.
    pub(crate) fn add(
        &mut self,
        slot: usize,
        records: &RecordBatch,
        origin: AppendOrigin,
    ) -> Result<(Arc<CommitGroup>, bool), AppendError> {
        let bytes = records.as_bytes();
        if let Some(refusal) = self.refusal_of(origin, bytes.len()) {
            if refusal == AppendError::Busy {
                self.hold_back(origin);
            }
            return Err(refusal);
        }
        let Some(partition) = self.partitions.get_mut(slot) else {
            return Err(AppendError::Failed("there is no such partition".into()));
        };
        let charge = match origin {
            AppendOrigin::Device(tenant) => Some(tenant),
            AppendOrigin::Internal(_) => None,
        };
        let group = if records.count() <= MAX_RECORDS {
            let block = open_block(&mut partition.waiting, bytes.len(), records.count());
            block.add(bytes, records.count(), charge);
            block.appends += 1;
            Arc::clone(&block.group)
        } else {
            add_split(&mut partition.waiting, bytes, charge)
        };
        self.pending_bytes += bytes.len();
        match origin {
            AppendOrigin::Device(tenant) => *self.tenants.entry(tenant).or_default() += bytes.len(),
            AppendOrigin::Internal(tenant) if self.capped => self.reserve.charge(tenant, bytes.len() as u64),
            AppendOrigin::Internal(_) => {}
        }
        Ok((group, self.queue_if_due(slot)))
    }

    fn queue_if_due(&mut self, slot: usize) -> bool {
        let Some(partition) = self.partitions.get_mut(slot) else {
            return false;
        };
        let is_new = partition.is_due() && !partition.is_queued;
        if is_new {
            partition.is_queued = true;
            self.due.push_back(slot);
        }
        is_new
    }

    /// Takes the next block to send.
    pub(crate) fn take(&mut self) -> Option<(usize, BlockOrigin, PendingBlock)> {
        while let Some(slot) = self.due.pop_front() {
            let Some(partition) = self.partitions.get_mut(slot) else {
                continue;
            };
            partition.is_queued = false;
            if !partition.is_due() {
                continue;
            }
            let Some(block) = partition.waiting.pop_front() else {
                continue;
            };
            let origin = partition.origin;
            partition.origin.sequence += 1;
            partition.sent.push_back(Instant::now());
            self.queue_if_due(slot);
            return Some((slot, origin, block));
        }
        None
    }

    /// Takes the fate of a block that was sent; returns whom to wake.
    pub(crate) fn settle(&mut self, slot: usize, block: &PendingBlock, was_written: bool) -> Woken {
        if let Some(partition) = self.partitions.get_mut(slot) {
            partition.sent.pop_front();
            if !was_written {
                // Numbers without a block would look like a loss.
                partition.origin = new_run();
            }
        }
        self.queue_if_due(slot);
        self.release(block)
    }

    fn release(&mut self, block: &PendingBlock) -> Woken {
        self.pending_bytes -= block.bytes.len();
        for (tenant, bytes) in &block.charges {
            if let Some(pending) = self.tenants.get_mut(tenant) {
                *pending -= bytes;
                if *pending == 0 {
                    self.tenants.remove(tenant);
                }
            }
        }
        self.woken()
    }

    fn woken(&mut self) -> Woken {
        let has_memory = self.closing || self.pending_bytes <= self.limit / 2;
        let mut refused = std::mem::take(&mut self.refused.tenants);
        let before = refused.len();
        refused.retain(|tenant| !self.is_ready(AppendOrigin::Device(*tenant)));
        let some_may = refused.len() < before;
        if refused.is_empty() {
            self.backpressure.end();
            self.refused.devices = false;
        }
        self.refused.tenants = refused;
        Woken {
            devices: some_may,
            internal: has_memory && std::mem::take(&mut self.refused.for_memory),
        }
    }

    /// Takes the bytes that wait for consumers; returns whom to wake.
    pub(crate) fn set_log_size(&mut self, bytes: u64) -> Woken {
        self.capped = bytes >= self.max_bytes;
        let beyond = match self.capped {
            true => bytes - self.max_bytes + self.pending_bytes as u64,
            false => 0,
        };
        let has_more = self.reserve.shrink_to(beyond) || !self.capped;
        let woken = self.woken();
        Woken {
            internal: woken.internal || (has_more && std::mem::take(&mut self.refused.for_reserve)),
            ..woken
        }
    }

    /// Takes all blocks that were not sent.
    pub(crate) fn take_rest(&mut self) -> Vec<PendingBlock> {
        let mut rest = Vec::new();
        for partition in &mut self.partitions {
            rest.extend(partition.waiting.drain(..));
        }
        for block in &rest {
            let _ = self.release(block);
        }
        rest
    }

    /// A position at or before that of the next record of a partition, whose durable blocks end at `end`.
    pub(crate) fn tail(&self, slot: usize, end: u64) -> u64 {
        let Some(partition) = self.partitions.get(slot) else {
            return position(end, 0);
        };
        let ahead = (partition.sent.len() + partition.waiting.len().saturating_sub(1)) as u64;
        let last = partition
            .waiting
            .back()
            .map_or(0, |block| u64::from(block.records));
        position(end + ahead, last)
    }

    /// When the oldest block under way was sent.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let sent = self
            .partitions
            .iter()
            .filter_map(|partition| partition.sent.front());
        sent.min().copied()
    }
}

impl PendingBlock {
    fn add(&mut self, bytes: &[u8], records: u32, charge: Option<TenantId>) {
        self.bytes.extend_from_slice(bytes);
        self.records += records;
        let Some(tenant) = charge else { return };
        match self.charges.last_mut() {
            Some((last, charged)) if *last == tenant => *charged += bytes.len(),
            _ => self.charges.push((tenant, bytes.len())),
        }
    }
}

fn new_run() -> BlockOrigin {
    BlockOrigin {
        run: Uuid::new_v4(),
        sequence: 0,
    }
}

/// The block that takes so many records.
fn open_block(waiting: &mut VecDeque<PendingBlock>, bytes: usize, records: u32) -> &mut PendingBlock {
    if !waiting.back().is_some_and(|block| block.has_room(bytes, records)) {
        waiting.push_back(PendingBlock::new());
    }
    let last = waiting.len() - 1;
    &mut waiting[last]
}

/// Adds more records than a block can hold.
fn add_split(
    waiting: &mut VecDeque<PendingBlock>,
    bytes: &[u8],
    charge: Option<TenantId>,
) -> Arc<CommitGroup> {
    let parts = parts(bytes);
    let append = Arc::new(SplitAppend {
        group: CommitGroup::new(),
        left: AtomicUsize::new(parts.len()),
        error: Mutex::default(),
    });
    for (number, (part, records)) in parts.into_iter().enumerate() {
        let block = open_block(waiting, part.len(), records);
        block.add(part, records, charge);
        block.appends += u64::from(number == 0);
        block.parts.push(Arc::clone(&append));
    }
    Arc::clone(&append.group)
}

/// Parts of records, none with more than a block holds.
fn parts(mut bytes: &[u8]) -> Vec<(&[u8], u32)> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (mut length, mut records) = (0, 0);
        while records < MAX_RECORDS
            && let Some(prefix) = bytes.get(length..).and_then(<[u8]>::first_chunk::<4>)
        {
            length += 4 + u32::from_le_bytes(*prefix) as usize;
            records += 1;
        }
        let (part, rest) = bytes.split_at(length.clamp(1, bytes.len()));
        parts.push((part, records));
        bytes = rest;
    }
    parts
}

#[cfg(test)]
mod tests;
