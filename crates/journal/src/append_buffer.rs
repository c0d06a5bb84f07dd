//! Appends that wait for the disk, gathered by partition.

use std::sync::Arc;
use std::time::Instant;

use fieldline_core::ports::{AppendError, AppendOrigin, CommitGroup, Partition, QueueId};
use fieldline_model::record::RecordBatch;

use crate::backpressure::{BackpressureCause, BackpressureTime};
use crate::options::Options;
use crate::reserve::InternalReserve;

/// A section of the log is ended at this size, so that a reader never has to read much more than it wants.
const SECTION_BYTES: usize = 256 << 10;
/// Memory that a partition's buffer keeps although it has not needed it lately.
const KEEP_BYTES: usize = 64 << 10;

/// What the journal does with appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalState {
    Open,
    Full,
    Failed(Arc<str>),
}

/// The part of a partition's buffer that becomes one section.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Section {
    pub(crate) bytes: usize,
    pub(crate) records: u32,
}

/// What one partition appends.
#[derive(Debug, Default)]
pub(crate) struct PartitionBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sections: Vec<Section>,
}

impl PartitionBuffer {
    fn add(&mut self, records: &RecordBatch) {
        let bytes = records.as_bytes();
        self.bytes.extend_from_slice(bytes);
        match self.sections.last_mut() {
            Some(cut) if cut.bytes < SECTION_BYTES && cut.records.checked_add(records.count()).is_some() => {
                cut.bytes += bytes.len();
                cut.records += records.count();
            }
            _ => self.sections.push(Section {
                bytes: bytes.len(),
                records: records.count(),
            }),
        }
    }

    fn clear(&mut self) {
        // A burst must not hold its memory for ever.
        let wanted = (self.bytes.len() * 2).max(KEEP_BYTES);
        self.bytes.clear();
        if self.bytes.capacity() > 4 * wanted {
            self.bytes.shrink_to(wanted);
        }
        self.sections.clear();
    }
}

/// The appends of one commit.
#[derive(Debug)]
pub(crate) struct WriteBatch {
    pub(crate) buffers: Vec<PartitionBuffer>,
    pub(crate) used: Vec<u32>,
    pub(crate) bytes: usize,
    pub(crate) appends: u64,
    /// Some of it is of devices, which may not use the last of the disk.
    pub(crate) has_devices: bool,
    pub(crate) group: Arc<CommitGroup>,
}

impl Default for WriteBatch {
    fn default() -> Self {
        Self {
            buffers: Vec::new(),
            used: Vec::new(),
            bytes: 0,
            appends: 0,
            has_devices: false,
            group: CommitGroup::new(),
        }
    }
}

impl Drop for WriteBatch {
    /// Nobody waits for ever, even if the committer fails in a way that nobody thought of.
    fn drop(&mut self) {
        if self.appends > 0 {
            let why = "the journal stopped before the records were written";
            self.group.complete(Err(AppendError::Failed(why.into())));
        }
    }
}

impl WriteBatch {
    /// Makes it ready for other appends.
    pub(crate) fn clear(&mut self) {
        for slot in self.used.drain(..) {
            if let Some(buffer) = self.buffers.get_mut(slot as usize) {
                buffer.clear();
            }
        }
        self.bytes = 0;
        self.appends = 0;
        self.has_devices = false;
        self.group = CommitGroup::new();
    }

    /// Gives all memory back.
    pub(crate) fn free_memory(&mut self) {
        if self.used.is_empty() {
            self.buffers.clear();
            self.buffers.shrink_to_fit();
        }
    }
}

/// Where the buffers of each queue's partitions are.
#[derive(Debug, Default)]
pub(crate) struct BufferIndex {
    queues: Vec<(u32, u16)>,
    partitions: Vec<Partition>,
}

impl BufferIndex {
    pub(crate) fn add_queue(&mut self, partitions: u16) {
        let queue = QueueId(self.queues.len() as u16);
        self.queues.push((self.partitions.len() as u32, partitions));
        self.partitions
            .extend((0..partitions).map(|index| Partition { queue, index }));
    }

    pub(crate) fn queues(&self) -> usize {
        self.queues.len()
    }

    pub(crate) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    fn slot(&self, partition: Partition) -> Option<u32> {
        let (base, partitions) = self.queues.get(usize::from(partition.queue.0))?;
        (partition.index < *partitions).then(|| base + u32::from(partition.index))
    }
}

/// Who is to try again.
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "nobody tries again without being woken"]
pub(crate) struct WakeTargets {
    pub(crate) devices: bool,
    pub(crate) internal: bool,
}

/// The gate and the buffer of appends.
#[derive(Debug)]
pub(crate) struct AppendBuffer {
    pub(crate) state: JournalState,
    /// No further appends are taken, those taken are still written.
    pub(crate) closing: bool,
    pub(crate) slots: BufferIndex,
    pub(crate) batch: WriteBatch,
    /// Bytes that wait: those in `batch` and those being written.
    pub(crate) pending_bytes: usize,
    /// The log has reached its largest size.
    pub(crate) capped: bool,
    /// Size of the log when the disk was found full.
    pub(crate) full_from: u64,
    /// What the platform itself may append beyond what devices may.
    pub(crate) reserve: InternalReserve,
    /// Some device was told to come back later.
    refused: bool,
    /// For how long that is so.
    pub(crate) backpressure: BackpressureTime,
    /// Some append of the platform was told so, because too much waits for the disk.
    refused_for_memory: bool,
    /// The same, because the reserve has no room for it.
    refused_for_reserve: bool,
    /// Since when the block that is being written keeps its appends waiting.
    pub(crate) committing_since: Option<Instant>,
    /// The committer wants to be woken.
    pub(crate) sleeping: bool,
    limit: usize,
    largest: usize,
    max_bytes: u64,
}

impl AppendBuffer {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            state: JournalState::Open,
            closing: false,
            slots: BufferIndex::default(),
            batch: WriteBatch::default(),
            pending_bytes: 0,
            capped: false,
            full_from: 0,
            reserve: InternalReserve::new(options),
            refused: false,
            backpressure: BackpressureTime::default(),
            refused_for_memory: false,
            refused_for_reserve: false,
            committing_since: None,
            sleeping: false,
            limit: options.max_pending.as_usize(),
            largest: options.max_append.as_usize(),
            max_bytes: options.max_bytes.0,
        }
    }

    /// Why no append of a device is taken now.
    pub(crate) fn refusal(&self) -> Option<AppendError> {
        self.closed().or(match self.state {
            JournalState::Full => Some(AppendError::DiskFull),
            _ if self.capped => Some(AppendError::Busy),
            _ => None,
        })
    }

    /// Why nobody's append is taken any more.
    fn closed(&self) -> Option<AppendError> {
        match &self.state {
            _ if self.closing => Some(AppendError::Closed),
            JournalState::Failed(why) => Some(AppendError::Failed(Arc::clone(why))),
            JournalState::Open | JournalState::Full => None,
        }
    }

    /// Why no append of this origin and size is taken now.
    fn refusal_of(&self, origin: AppendOrigin, bytes: usize) -> Option<AppendError> {
        let (tenant, limit) = match origin {
            AppendOrigin::Device => {
                let refusal = self.refusal();
                return refusal.or((self.pending_bytes + bytes > self.limit).then_some(AppendError::Busy));
            }
            AppendOrigin::Internal(tenant) => (tenant, self.limit + self.limit / 4),
        };
        let refusal = self.closed();
        refusal.or_else(|| match self.state {
            _ if !self.is_tight() || self.reserve.has_room(tenant, bytes as u64, self.is_full()) => {
                (self.pending_bytes + bytes > limit).then_some(AppendError::Busy)
            }
            JournalState::Full => Some(AppendError::DiskFull),
            _ => Some(AppendError::Busy),
        })
    }

    fn is_full(&self) -> bool {
        self.state == JournalState::Full
    }

    /// Whether devices are refused, so that what comes is taken out of the reserve.
    pub(crate) fn is_tight(&self) -> bool {
        self.capped || self.is_full()
    }

    /// Whether an append of this origin that was refused as busy is worth another try.
    pub(crate) fn is_ready(&self, origin: AppendOrigin) -> bool {
        let is_over = self.closed().is_some() || self.is_full();
        let has_memory = self.pending_bytes <= self.limit / 2;
        match origin {
            AppendOrigin::Device => is_over || (!self.capped && has_memory),
            // For the largest one: who has been told to try again is not to find that it was too early for him.
            AppendOrigin::Internal(tenant) => {
                let largest = self.largest as u64;
                self.closed().is_some()
                    || (has_memory
                        && (is_over || !self.capped || self.reserve.has_room(tenant, largest, false)))
            }
        }
    }

    /// Takes the records into the buffer of their partition.
    pub(crate) fn add(
        &mut self,
        partition: Partition,
        records: &RecordBatch,
        origin: AppendOrigin,
    ) -> Result<Arc<CommitGroup>, AppendError> {
        let bytes = records.as_bytes().len();
        if let Some(refusal) = self.refusal_of(origin, bytes) {
            if refusal == AppendError::Busy {
                self.apply_backpressure(origin);
            }
            return Err(refusal);
        }
        let Some(slot) = self.slots.slot(partition) else {
            return Err(AppendError::Failed(
                format!("there is no partition {partition}").into(),
            ));
        };
        let is_tight = self.is_tight();
        let fill = &mut self.batch;
        if fill.buffers.len() <= slot as usize {
            fill.buffers
                .resize_with(self.slots.partitions.len(), PartitionBuffer::default);
        }
        if let Some(buffer) = fill.buffers.get_mut(slot as usize) {
            if buffer.sections.is_empty() {
                fill.used.push(slot);
            }
            buffer.add(records);
        }
        fill.bytes += bytes;
        fill.appends += 1;
        self.pending_bytes += bytes;
        match origin {
            AppendOrigin::Device => fill.has_devices = true,
            AppendOrigin::Internal(tenant) if is_tight => self.reserve.charge(tenant, bytes as u64),
            AppendOrigin::Internal(_) => {}
        }
        Ok(Arc::clone(&fill.group))
    }

    /// Notes that somebody has to wait, who is woken once that is over.
    pub(crate) fn apply_backpressure(&mut self, origin: AppendOrigin) {
        match origin {
            AppendOrigin::Device => {
                self.refused = true;
                self.backpressure.begin(if self.capped {
                    BackpressureCause::Consumers
                } else {
                    BackpressureCause::Disk
                });
            }
            AppendOrigin::Internal(_) => {
                self.refused_for_memory |= self.pending_bytes > self.limit / 2;
                self.refused_for_reserve |= self.is_tight();
            }
        }
    }

    /// Nobody waits from here on: all are told why not.
    pub(crate) fn reject_appends(&mut self, state: JournalState) {
        self.state = state;
        self.refused = false;
        self.backpressure.end();
    }

    /// Takes out everything that waits, leaving an empty buffer in its place. The bytes count as waiting until they are
    /// [settled](Self::free_memory).
    pub(crate) fn take(&mut self, empty: WriteBatch) -> WriteBatch {
        let taken = std::mem::replace(&mut self.batch, empty);
        if taken.appends > 0 {
            self.committing_since = Some(Instant::now());
        }
        taken
    }

    /// Says that so many bytes wait no longer; returns who should be woken.
    pub(crate) fn release(&mut self, bytes: usize) -> WakeTargets {
        self.pending_bytes -= bytes;
        self.committing_since = None;
        self.take_wake_targets()
    }

    /// Says how large the log is; returns who should be woken.
    pub(crate) fn update_log_size(&mut self, bytes: u64) -> WakeTargets {
        self.capped = bytes >= self.max_bytes;
        let from = if self.is_full() {
            self.full_from.min(self.max_bytes)
        } else {
            self.max_bytes
        };
        let is_tight = self.is_tight();
        let beyond = if is_tight {
            bytes.saturating_sub(from) + self.pending_bytes as u64
        } else {
            0
        };
        // Who was refused for want of room is woken when some was given back, not at each write: many may wait.
        let has_more = self.reserve.shrink_to(beyond) || !is_tight;
        let woken = self.take_wake_targets();
        WakeTargets {
            internal: woken.internal || (has_more && std::mem::take(&mut self.refused_for_reserve)),
            ..woken
        }
    }

    /// Who of those that were refused should be woken.
    pub(crate) fn take_wake_targets(&mut self) -> WakeTargets {
        let is_over = self.is_ready(AppendOrigin::Device);
        if is_over {
            self.backpressure.end();
        }
        WakeTargets {
            devices: is_over && std::mem::take(&mut self.refused),
            internal: self.pending_bytes <= self.limit / 2 && std::mem::take(&mut self.refused_for_memory),
        }
    }
}
