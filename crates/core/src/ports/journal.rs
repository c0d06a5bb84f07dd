//! The journal: a durable, partitioned log. The embedded one is a set of files on the node; at scale it is Kafka.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::TenantId;
use fieldline_model::record::RecordBatch;
use parking_lot::Mutex;

/// A queue of the journal, such as `Main`; numbered in the order in which queues were first opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub u16);

/// One partition of a queue. All records of one originator go to the same partition and keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition {
    /// The queue.
    pub queue: QueueId,
    /// Index of the partition in the queue, from 0.
    pub index: u16,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue.0, self.index)
    }
}

/// Position of a record in its partition. It grows by at least one per record; gaps are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Offset(pub u64);

/// The origin of an append, which decides how much room there is for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOrigin {
    /// A device of a tenant, or a client on its behalf. It is refused once the log has reached its largest size.
    Device(TenantId),
    /// The platform itself, on behalf of a tenant: messages that rule chains, alarms and calculated fields put into
    /// queues. Records of the log often cannot be consumed without such appends, so there is a reserve that devices
    /// cannot use, and of which no tenant gets all.
    Internal(TenantId),
}

/// The reason why an append was refused or lost its acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// There is no room for an append of this origin: the log has reached its largest size, the reserve is used up, or
    /// too much data waits for the disk. Wait for [`Journal::ready`] and try again.
    #[error("the journal is catching up")]
    Busy,
    /// The disk is full. Nothing was appended; appends are accepted again once there is room.
    #[error("the journal's disk is full")]
    DiskFull,
    /// The journal's servers do not answer. Only [`Journal::refusal`] says so: appends are taken as long as there is
    /// room, and become durable once the servers answer again.
    #[error("the journal's servers do not answer")]
    Unreachable,
    /// The records exceed the journal's limit for one append.
    #[error("the append is larger than the journal's limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// A write or fsync failed. Nothing is accepted until the process has restarted and recovered.
    #[error("the journal has failed: {0}")]
    Failed(Arc<str>),
    /// The journal is shutting down.
    #[error("the journal is closed")]
    Closed,
}

/// The reason why senders have to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldBackCause {
    /// The data that waits for the disk has reached its limit.
    Disk,
    /// The log has reached its largest size, because consumers lag behind.
    Consumers,
    /// The data that waits for Kafka has reached its limit.
    Kafka,
}

impl HoldBackCause {
    /// All causes.
    pub const ALL: [Self; 3] = [Self::Disk, Self::Consumers, Self::Kafka];

    /// The setting whose limit was reached, as named in metrics and log.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Disk | Self::Kafka => "journal.max-pending",
            Self::Consumers => "journal.max-bytes",
        }
    }
}

/// The reason why the journal could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Stored bytes in the middle of the log fail their checks; the message names them and the remedy.
    #[error("{0}")]
    Corrupt(String),
    /// The requested position is no longer, or not yet, in the log.
    #[error("position {asked} of partition {partition} is outside of the log, which holds {first} to {next}")]
    OutOfRange {
        /// The partition.
        partition: Partition,
        /// The requested position.
        asked: u64,
        /// First position in the log.
        first: u64,
        /// Position after the last one in the log.
        next: u64,
    },
    /// An operating system or network call failed.
    #[error("{context}: {source}")]
    Io {
        /// The operation that failed.
        context: String,
        /// The failure.
        source: std::io::Error,
    },
}

/// The durable log.
///
/// # Promises
/// - When an [`AppendFuture`] resolves to `Ok`, its records survive any crash of the process, and, with the durability
///   setting `fsync`, any crash of the machine. They appear once, in the order in which they were appended to the
///   partition.
/// - When an `AppendFuture` resolves to an error, its records may or may not be in the log.
/// - Consumers see only durable records.
/// - Records are kept at least until every group that ever consumed the queue has committed a position after them.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Opens a queue with a number of partitions, creating it if it does not exist. A queue keeps the number of
    /// partitions it was created with; a journal on servers may give all queues the same number. It may ask the servers
    /// and wait for them.
    fn open_queue(&self, name: &str, partitions: u16) -> Result<QueueId, JournalError>;

    /// The number of partitions of a queue.
    fn partitions(&self, queue: QueueId) -> u16;

    /// Tells a log from others whose queues and offsets have the same numbers; 0 where no other log has them.
    fn log_number(&self) -> u64 {
        0
    }

    /// Names of all queues that were ever opened.
    fn queues(&self) -> Vec<String>;

    /// Takes the records for writing, all or none, and returns at once; the future resolves when they are durable.
    /// An empty batch is durable at once.
    fn append(
        &self,
        partition: Partition,
        records: &RecordBatch,
        origin: AppendOrigin,
    ) -> Result<AppendFuture, AppendError>;

    /// Waits until it is worth repeating an append of this origin that was refused as [`AppendError::Busy`]. A consumer
    /// of the log must limit this wait: the room may have to come from its own progress.
    async fn ready(&self, origin: AppendOrigin);

    /// Joins a consumer group with a number of members, among which the queue's partitions are divided. The first event
    /// of a member is its assignment; positions start at the group's last commit, else at the beginning.
    fn subscribe(
        &self,
        queue: QueueId,
        group: &str,
        members: u16,
    ) -> Result<Vec<Box<dyn JournalConsumer>>, JournalError>;

    /// Position after the last durable record of a partition.
    fn end(&self, partition: Partition) -> Offset;

    /// A position at or before that of the next record that is appended to a partition. Unlike [`end`](Self::end), it
    /// may count what is not durable yet.
    fn tail(&self, partition: Partition) -> Offset {
        self.end(partition)
    }

    /// The number of records between two positions of a partition, as far as the journal knows where there are gaps.
    fn records_between(&self, partition: Partition, from: Offset, to: Offset) -> u64 {
        let _ = partition;
        to.0.saturating_sub(from.0)
    }

    /// Bytes of the log's files; `None` if they are on other machines.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    /// The reason why devices cannot append now; `None` if their appends are accepted.
    fn refusal(&self) -> Option<AppendError>;

    /// How long senders were held back since the journal was opened, by the cause.
    fn held_back(&self) -> Vec<(HoldBackCause, Duration)>;

    /// Writes the buffered records, makes them durable, and accepts no more.
    async fn close(&self);
}

/// One member of a consumer group.
#[async_trait]
pub trait JournalConsumer: Send {
    /// Waits for the next event. `max_bytes` bounds one delivery, but a single larger record is delivered alone.
    /// Dropping the future loses nothing. An error concerns all partitions; if only one cannot be read, the event is
    /// [`ConsumerEvent::Unreadable`].
    async fn next(&mut self, max_bytes: usize) -> Result<ConsumerEvent, JournalError>;

    /// Pauses deliveries of an assigned partition; the others continue. A closed journal does not wait for the pause to
    /// end.
    fn pause(&mut self, partition: Partition, time: Duration);

    /// Moves the position of an assigned partition: the next delivery starts there.
    fn seek(&mut self, partition: Partition, offset: Offset) -> Result<(), JournalError>;

    /// Commits that everything before the offset is consumed for good. Records consumed by all groups may be deleted.
    async fn commit(&mut self, partition: Partition, offset: Offset) -> Result<(), JournalError>;
}

/// An event of a consumer.
#[derive(Debug)]
pub enum ConsumerEvent {
    /// These partitions now belong to this member, each with its start position.
    Assigned(Vec<(Partition, Offset)>),
    /// These partitions now belong to another member: stop working on them.
    Revoked(Vec<Partition>),
    /// Records of one partition.
    Records(ConsumerRecords),
    /// A partition cannot be read at its position. The position does not move: the read is repeated in the partition's
    /// next turn, unless it is paused.
    Unreadable(Partition, JournalError),
    /// The journal was closed; nothing follows.
    Closed,
}

/// Consecutive records of one partition.
#[derive(Debug, Clone)]
pub struct ConsumerRecords {
    /// Their partition.
    pub partition: Partition,
    /// Position of the first one.
    pub first: Offset,
    /// Position to continue from.
    pub next: Offset,
    /// The records, each preceded by its `u32` length: see [`fieldline_model::record::split`].
    pub bytes: Bytes,
}

/// A group of appends that become durable together. A journal creates one for each of its writes and completes it once.
#[derive(Debug, Default)]
pub struct CommitGroup {
    state: Mutex<GroupState>,
}

#[derive(Debug, Default)]
struct GroupState {
    outcome: Option<Result<(), AppendError>>,
    waiting: Vec<Waker>,
}

impl CommitGroup {
    /// Creates a group without an outcome.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Resolves all appends of the group.
    pub fn complete(&self, outcome: Result<(), AppendError>) {
        let waiting = {
            let mut state = self.state.lock();
            state.outcome = Some(outcome);
            std::mem::take(&mut state.waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }
}

/// A pending append; resolves when it is durable. Dropping it does not withdraw the records.
#[derive(Debug)]
#[must_use = "an append is acknowledged only when it has resolved"]
pub struct AppendFuture {
    group: Option<Arc<CommitGroup>>,
    slot: Option<usize>,
}

impl AppendFuture {
    /// Creates an append that shares the outcome of a group.
    pub const fn of(group: Arc<CommitGroup>) -> Self {
        Self {
            group: Some(group),
            slot: None,
        }
    }

    /// Creates an append that is already durable.
    pub const fn durable() -> Self {
        Self {
            group: None,
            slot: None,
        }
    }
}

impl AppendFuture {
    /// Whether both become durable, or fail, together.
    pub fn shares_group(&self, other: &Self) -> bool {
        match (&self.group, &other.group) {
            (Some(group), Some(others)) => Arc::ptr_eq(group, others),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Future for AppendFuture {
    type Output = Result<(), AppendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(group) = &this.group else {
            return Poll::Ready(Ok(()));
        };
        let mut state = group.state.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        match this.slot.and_then(|slot| state.waiting.get_mut(slot)) {
            Some(waker) => waker.clone_from(context.waker()),
            None => {
                this.slot = Some(state.waiting.len());
                state.waiting.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}
