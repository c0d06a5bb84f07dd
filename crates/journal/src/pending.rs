//! Appends that wait for the disk, gathered by partition.

use std::sync::Arc;
use std::time::Instant;

use fieldline_core::ports::{AppendError, CommitGroup, Partition, QueueId};
use fieldline_model::record::RecordBatch;

use crate::pressure::{Cause, Held};

/// A section of the log is ended at this size, so that a reader never has to read much more than it wants.
const SECTION_BYTES: usize = 256 << 10;
/// Memory that a partition's buffer keeps although it has not needed it lately.
const KEEP_BYTES: usize = 64 << 10;

/// What the journal does with appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Full,
    Failed(Arc<str>),
}

/// The part of a partition's buffer that becomes one section.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cut {
    pub(crate) bytes: usize,
    pub(crate) records: u32,
}

/// What one partition appends.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cuts: Vec<Cut>,
}

impl Buffer {
    fn add(&mut self, records: &RecordBatch) {
        let bytes = records.as_bytes();
        self.bytes.extend_from_slice(bytes);
        match self.cuts.last_mut() {
            Some(cut) if cut.bytes < SECTION_BYTES && cut.records.checked_add(records.count()).is_some() => {
                cut.bytes += bytes.len();
                cut.records += records.count();
            }
            _ => self.cuts.push(Cut {
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
        self.cuts.clear();
    }
}

/// The appends of one commit.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) used: Vec<u32>,
    pub(crate) bytes: usize,
    pub(crate) appends: u64,
    pub(crate) group: Arc<CommitGroup>,
}

impl Default for Fill {
    fn default() -> Self {
        Self {
            buffers: Vec::new(),
            used: Vec::new(),
            bytes: 0,
            appends: 0,
            group: CommitGroup::new(),
        }
    }
}

impl Drop for Fill {
    /// Nobody waits for ever, even if the committer fails in a way that nobody thought of.
    fn drop(&mut self) {
        if self.appends > 0 {
            let why = "the journal stopped before the records were written";
            self.group.complete(Err(AppendError::Failed(why.into())));
        }
    }
}

impl Fill {
    /// Makes it ready for other appends.
    pub(crate) fn clear(&mut self) {
        for slot in self.used.drain(..) {
            if let Some(buffer) = self.buffers.get_mut(slot as usize) {
                buffer.clear();
            }
        }
        self.bytes = 0;
        self.appends = 0;
        self.group = CommitGroup::new();
    }

    /// Gives all memory back.
    pub(crate) fn release(&mut self) {
        if self.used.is_empty() {
            self.buffers.clear();
            self.buffers.shrink_to_fit();
        }
    }
}

/// Where the buffers of each queue's partitions are.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    queues: Vec<(u32, u16)>,
    partitions: Vec<Partition>,
}

impl Slots {
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

/// The gate and the buffer of appends.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) state: State,
    /// No further appends are taken, those taken are still written.
    pub(crate) closing: bool,
    pub(crate) slots: Slots,
    pub(crate) fill: Fill,
    /// Bytes that wait: those in `fill` and those being written.
    pub(crate) waiting: usize,
    /// The log has reached its largest size.
    pub(crate) capped: bool,
    /// Somebody was told to come back later.
    refused: bool,
    /// For how long that is so.
    pub(crate) held: Held,
    /// Since when the block that is being written keeps its appends waiting.
    pub(crate) committing_since: Option<Instant>,
    /// The committer wants to be woken.
    pub(crate) sleeping: bool,
    limit: usize,
}

impl Pending {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            state: State::Open,
            closing: false,
            slots: Slots::default(),
            fill: Fill::default(),
            waiting: 0,
            capped: false,
            refused: false,
            held: Held::default(),
            committing_since: None,
            sleeping: false,
            limit,
        }
    }

    /// Why no append is taken now.
    pub(crate) fn refusal(&self) -> Option<AppendError> {
        match &self.state {
            _ if self.closing => Some(AppendError::Closed),
            State::Open if self.capped => Some(AppendError::Busy),
            State::Open => None,
            State::Full => Some(AppendError::DiskFull),
            State::Failed(why) => Some(AppendError::Failed(Arc::clone(why))),
        }
    }

    /// Whether an append that was refused as busy is worth another try.
    pub(crate) fn is_ready(&self) -> bool {
        self.closing || self.state != State::Open || (!self.capped && self.waiting <= self.limit / 2)
    }

    /// Takes the records into the buffer of their partition.
    pub(crate) fn add(
        &mut self,
        partition: Partition,
        records: &RecordBatch,
    ) -> Result<Arc<CommitGroup>, AppendError> {
        let bytes = records.as_bytes().len();
        if let Some(refusal) = self.refusal() {
            if refusal == AppendError::Busy {
                self.hold_back();
            }
            return Err(refusal);
        }
        if self.waiting + bytes > self.limit {
            self.hold_back();
            return Err(AppendError::Busy);
        }
        let Some(slot) = self.slots.slot(partition) else {
            return Err(AppendError::Failed(
                format!("there is no partition {partition}").into(),
            ));
        };
        let fill = &mut self.fill;
        if fill.buffers.len() <= slot as usize {
            fill.buffers
                .resize_with(self.slots.partitions.len(), Buffer::default);
        }
        if let Some(buffer) = fill.buffers.get_mut(slot as usize) {
            if buffer.cuts.is_empty() {
                fill.used.push(slot);
            }
            buffer.add(records);
        }
        fill.bytes += bytes;
        fill.appends += 1;
        self.waiting += bytes;
        Ok(Arc::clone(&fill.group))
    }

    /// Notes that somebody has to wait, who is woken once that is over.
    pub(crate) fn hold_back(&mut self) {
        self.refused = true;
        self.held.begin(if self.capped {
            Cause::Consumers
        } else {
            Cause::Disk
        });
    }

    /// Nobody waits from here on: all are told why not.
    pub(crate) fn turn_away(&mut self, state: State) {
        self.state = state;
        self.refused = false;
        self.held.end();
    }

    /// Takes out everything that waits, leaving an empty buffer in its place. The bytes count as waiting until they are
    /// [settled](Self::settle).
    pub(crate) fn take(&mut self, empty: Fill) -> Fill {
        let taken = std::mem::replace(&mut self.fill, empty);
        if taken.appends > 0 {
            self.committing_since = Some(Instant::now());
        }
        taken
    }

    /// Says that so many bytes wait no longer; returns whether those who were refused should be woken.
    pub(crate) fn settle(&mut self, bytes: usize) -> bool {
        self.waiting -= bytes;
        self.committing_since = None;
        self.wake()
    }

    /// Whether those who were refused should be woken.
    pub(crate) fn wake(&mut self) -> bool {
        let is_over = self.is_ready();
        if is_over {
            self.held.end();
        }
        is_over && std::mem::take(&mut self.refused)
    }
}
