//! Appends waiting for the disk, gathered by partition.

use std::sync::Arc;
use std::time::Instant;

use fieldline_core::ports::{AppendError, AppendOrigin, CommitGroup, HoldBackCause, Partition, QueueId};
use fieldline_model::TenantId;
use fieldline_model::record::RecordBatch;

use crate::backpressure::BackpressureTime;
use crate::options::Options;
use crate::reserve::InternalReserve;

/// Size at which a section of the log ends, so that a reader never has to read much more than it wants.
const SECTION_BYTES: usize = 256 << 10;
/// Capacity that a partition's buffer always keeps, even if it has not needed it lately.
const KEEP_BYTES: usize = 64 << 10;

/// The state of the journal, which decides how appends are handled.
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

/// The pending appends of one partition.
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
        // A burst must not keep its memory for ever.
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
    /// Whether it contains appends of devices, which may not use the last of the disk.
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
    /// Fails the appends if the committer drops them, so that no caller waits for ever.
    fn drop(&mut self) {
        if self.appends > 0 {
            let why = "the journal stopped before the records were written";
            self.group.complete(Err(AppendError::Failed(why.into())));
        }
    }
}

impl WriteBatch {
    /// Resets the batch for new appends.
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

    /// Frees all memory, if no buffer is in use.
    pub(crate) fn free_memory(&mut self) {
        if self.used.is_empty() {
            self.buffers.clear();
            self.buffers.shrink_to_fit();
        }
    }
}

/// Maps the partitions of each queue to their buffers.
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

/// The refused senders that should try again.
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "nobody tries again without being woken"]
pub(crate) struct WakeTargets {
    pub(crate) devices: bool,
    pub(crate) internal: bool,
}

/// Admission control and the buffer of appends.
#[derive(Debug)]
pub(crate) struct AppendBuffer {
    pub(crate) state: JournalState,
    /// No more appends are accepted; pending ones are still written.
    pub(crate) closing: bool,
    pub(crate) slots: BufferIndex,
    pub(crate) batch: WriteBatch,
    /// Pending bytes: those in `batch` and those being written.
    pub(crate) pending_bytes: usize,
    /// Whether the log has reached its largest size.
    pub(crate) capped: bool,
    /// Size of the log when the disk became full.
    pub(crate) full_from: u64,
    /// The reserve for appends of the platform beyond the limit for devices.
    pub(crate) reserve: InternalReserve,
    /// Whether a device was told to try again later.
    refused: bool,
    /// How long devices have been held back.
    pub(crate) backpressure: BackpressureTime,
    /// Whether an append of the platform was refused because too much data waits for the disk.
    refused_for_memory: bool,
    /// Whether an append of the platform was refused because the reserve had no room for it.
    refused_for_reserve: bool,
    /// When the write of the present block began; its appends have waited since then.
    pub(crate) committing_since: Option<Instant>,
    /// Whether the committer sleeps and needs a wake-up.
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

    /// The reason why appends of devices are refused now.
    pub(crate) fn refusal(&self) -> Option<AppendError> {
        self.closed().or(match self.state {
            JournalState::Full => Some(AppendError::DiskFull),
            _ if self.capped => Some(AppendError::Busy),
            _ => None,
        })
    }

    /// The reason why all appends are refused.
    fn closed(&self) -> Option<AppendError> {
        match &self.state {
            _ if self.closing => Some(AppendError::Closed),
            JournalState::Failed(why) => Some(AppendError::Failed(Arc::clone(why))),
            JournalState::Open | JournalState::Full => None,
        }
    }

    /// The reason why an append of this origin and size is refused now.
    fn refusal_of(&self, origin: AppendOrigin, bytes: usize) -> Option<AppendError> {
        let (tenant, limit) = match origin {
            AppendOrigin::Device(_) => {
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

    /// Returns whether devices are refused, so that appends of the platform are charged to the reserve.
    pub(crate) fn is_tight(&self) -> bool {
        self.capped || self.is_full()
    }

    /// Returns whether it is worth repeating an append of this origin that was refused as busy.
    pub(crate) fn is_ready(&self, origin: AppendOrigin) -> bool {
        let is_over = self.closed().is_some() || self.is_full();
        let has_memory = self.pending_bytes <= self.limit / 2;
        match origin {
            AppendOrigin::Device(_) => is_over || (!self.capped && has_memory),
            // Checks the room for the largest append: a sender that is woken must not find that it was too early.
            AppendOrigin::Internal(tenant) => {
                let largest = self.largest as u64;
                self.closed().is_some()
                    || (has_memory
                        && (is_over || !self.capped || self.reserve.has_room(tenant, largest, false)))
            }
        }
    }

    /// Adds the records to the buffer of their partition.
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
            AppendOrigin::Device(_) => fill.has_devices = true,
            AppendOrigin::Internal(tenant) if is_tight => self.reserve.charge(tenant, bytes as u64),
            AppendOrigin::Internal(_) => {}
        }
        Ok(Arc::clone(&fill.group))
    }

    /// Notes that a sender must wait, so that it is woken later.
    pub(crate) fn apply_backpressure(&mut self, origin: AppendOrigin) {
        match origin {
            AppendOrigin::Device(_) => {
                self.refused = true;
                self.backpressure.begin(if self.capped {
                    HoldBackCause::Consumers
                } else {
                    HoldBackCause::Disk
                });
            }
            AppendOrigin::Internal(_) => {
                self.refused_for_memory |= self.pending_bytes > self.limit / 2;
                self.refused_for_reserve |= self.is_tight();
            }
        }
    }

    /// Ends all waiting: the waiting senders get the reason from the new state.
    pub(crate) fn reject_appends(&mut self, state: JournalState) {
        self.state = state;
        self.refused = false;
        self.backpressure.end();
    }

    /// Takes the whole batch, leaving an empty one in its place. Its bytes count as pending until [`Self::release`].
    pub(crate) fn take(&mut self, empty: WriteBatch) -> WriteBatch {
        let taken = std::mem::replace(&mut self.batch, empty);
        if taken.appends > 0 {
            self.committing_since = Some(Instant::now());
        }
        taken
    }

    /// Records that this many bytes are no longer pending; returns the senders to wake.
    pub(crate) fn release(&mut self, bytes: usize) -> WakeTargets {
        self.pending_bytes -= bytes;
        self.committing_since = None;
        self.take_wake_targets()
    }

    /// Records the size of the log; returns the senders to wake.
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
        // Senders refused for lack of room in the reserve are woken when room was freed, not at each write: there may
        // be many.
        let has_more = self.reserve.shrink_to(beyond) || !is_tight;
        let woken = self.take_wake_targets();
        WakeTargets {
            internal: woken.internal || (has_more && std::mem::take(&mut self.refused_for_reserve)),
            ..woken
        }
    }

    /// Returns the refused senders to wake, and marks them as woken.
    pub(crate) fn take_wake_targets(&mut self) -> WakeTargets {
        let is_over = self.is_ready(AppendOrigin::Device(TenantId::NULL));
        if is_over {
            self.backpressure.end();
        }
        WakeTargets {
            devices: is_over && std::mem::take(&mut self.refused),
            internal: self.pending_bytes <= self.limit / 2 && std::mem::take(&mut self.refused_for_memory),
        }
    }
}
