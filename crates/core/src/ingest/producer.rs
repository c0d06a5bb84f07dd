//! The producing side: from a transport into the journal.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_model::record::RecordBatch;
use fieldline_model::{EntityKey, TenantId};
use parking_lot::RwLock;
use tokio::time::Instant;
use tracing::warn;
use uuid::Uuid;

use super::large_records::{AppendSize, LargeRecordLimiter, LargeRecordPermit, TenantBacklog};
use super::metrics;
use super::senders::{PartitionSenders, QueueSenders};
use crate::logging::LogGate;
use crate::ports::{
    AppendError, AppendFuture, AppendOrigin, Journal, JournalError, Partition, QueueId, RecordQueue,
    StoreError, StoreErrorKind, StoreResult,
};

/// Name of the queue for device messages unless their profile names another one.
pub const MAIN_QUEUE: &str = "Main";

/// How long messages of the platform wait for room in the journal. A few checkpoints in this time free some room; the
/// wait must end, because the waiting caller may be the one that consumes the log.
pub const PUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before a retry on a full disk.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
static PUSH_GATE: LogGate = LogGate::new(1);

/// Further queues, by tenant and name.
type OtherQueues = HashMap<(TenantId, Box<str>), QueueProducer>;

/// Appends device records to a queue of the journal; all records of one originator go to the same partition.
#[derive(Clone)]
pub struct QueueProducer {
    journal: Arc<dyn Journal>,
    queue: QueueId,
    /// The name in the journal.
    name: Arc<str>,
    partitions: u16,
    others: Arc<RwLock<OtherQueues>>,
    pub(super) large: Arc<LargeRecordLimiter>,
    senders: Arc<PartitionSenders>,
    pub(super) queue_senders: QueueSenders,
}

impl QueueProducer {
    /// Opens the main queue, with `partitions` partitions if it does not exist yet.
    pub fn open(journal: Arc<dyn Journal>, partitions: u16) -> Result<Self, JournalError> {
        let queue = journal.open_queue(MAIN_QUEUE, partitions.max(1))?;
        let partitions = journal.partitions(queue).max(1);
        let queue_senders = QueueSenders::default();
        Ok(Self {
            journal,
            queue,
            name: MAIN_QUEUE.into(),
            partitions,
            others: Arc::default(),
            large: LargeRecordLimiter::new(),
            senders: queue_senders.of(queue, partitions),
            queue_senders,
        })
    }

    /// Opens another queue, of a tenant or (with the null tenant) shared by all tenants without a queue of that name,
    /// with `partitions` partitions if it does not exist yet.
    pub fn open_other(&self, tenant: TenantId, name: &str, partitions: u16) -> Result<Self, JournalError> {
        let key = (tenant, Box::from(name));
        if let Some(open) = self.others.read().get(&key) {
            return Ok(open.clone());
        }
        let other = self.open_unrouted(tenant, name, partitions)?;
        self.others.write().insert(key, other.clone());
        Ok(other)
    }

    /// Like [`Self::open_other`] without routing records to the queue: for the remaining records of a deleted queue.
    pub fn open_unrouted(&self, tenant: TenantId, name: &str, partitions: u16) -> Result<Self, JournalError> {
        let stored = if tenant.is_null() {
            name.to_owned()
        } else {
            format!("{tenant}/{name}")
        };
        let queue = self.journal.open_queue(&stored, partitions.max(1))?;
        let partitions = self.journal.partitions(queue).max(1);
        Ok(Self {
            queue,
            partitions,
            senders: self.queue_senders.of(queue, partitions),
            name: stored.into(),
            ..self.clone()
        })
    }

    /// Lists all queues except the main one that were ever opened, in the form that [`open_other`](Self::open_other)
    /// takes.
    pub fn stored(&self) -> Vec<(TenantId, String)> {
        let names = self.journal.queues().into_iter();
        let others = names.filter(|name| name != MAIN_QUEUE);
        others
            .map(|stored| {
                let (tenant, name) = of_stored(&stored);
                (tenant, name.to_owned())
            })
            .collect()
    }

    /// The name of the queue in the journal.
    pub fn stored_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns this queue and all queues with routing.
    pub(super) fn all(&self) -> Vec<Self> {
        let others = self.others.read();
        std::iter::once(self).chain(others.values()).cloned().collect()
    }

    /// Stops routing records to a queue.
    pub fn close_other(&self, tenant: TenantId, name: &str) {
        self.others.write().remove(&(tenant, Box::from(name)));
    }

    /// Resolves a queue name for a tenant: the tenant's own queue, else the shared one, else this one.
    pub fn queue_for(&self, tenant: TenantId, name: Option<&str>) -> Cow<'_, Self> {
        let others = self.others.read();
        let name = name.unwrap_or(MAIN_QUEUE);
        if others.is_empty() {
            return Cow::Borrowed(self);
        }
        let found = others
            .get(&(tenant, Box::from(name)))
            .or_else(|| others.get(&(TenantId::NULL, Box::from(name))));
        found.map_or(Cow::Borrowed(self), |found| Cow::Owned(found.clone()))
    }

    /// The number of partitions of the queue.
    pub fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The queue it appends to.
    pub fn queue(&self) -> QueueId {
        self.queue
    }

    /// Lets devices with large records wait while this holds back their tenant. Only the first call counts.
    pub fn set_backlog(&self, backlog: Arc<dyn TenantBacklog>) {
        self.large.set_backlog(backlog);
    }

    /// The journal it appends to.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Appends the records of one originator, waiting while the journal is busy; the returned future resolves when they
    /// are durable. A batch too large for one append is split, and each part waits until the previous one is durable.
    pub async fn append(
        &self,
        subject: EntityKey,
        records: &RecordBatch,
    ) -> Result<AppendFuture, AppendError> {
        let limit = match self.append_whole(subject, records).await {
            Err(AppendError::TooLarge { limit }) => limit,
            other => return other,
        };
        // If any part is too large, nothing is appended.
        if records.split_batches(limit).any(|part| part.is_err()) {
            return Err(AppendError::TooLarge { limit });
        }
        let mut last = AppendFuture::durable();
        for part in records.split_batches(limit).flatten() {
            last.await?;
            last = self.append_whole(subject, &part).await?;
        }
        Ok(last)
    }

    async fn append_whole(
        &self,
        subject: EntityKey,
        records: &RecordBatch,
    ) -> Result<AppendFuture, AppendError> {
        let mut place = self.acquire_large(subject.tenant, records.into()).await;
        let append = self.append_while(subject, records, &mut place, || true).await?;
        append.ok_or(AppendError::Busy)
    }

    /// Waits a limited time for a permit for records of a size, if they are large.
    pub async fn acquire_large(&self, tenant: TenantId, size: AppendSize) -> LargeRecordPermit {
        self.large.acquire(tenant, size).await
    }

    /// Like [`append`](Self::append), for callers that hold a permit of [`acquire_large`](Self::acquire_large). A batch
    /// too large for one append is refused. Before each attempt, `is_wanted` decides whether to go on; if not, nothing
    /// is appended (`None`).
    ///
    /// # Errors
    /// Those of the journal.
    pub async fn append_while(
        &self,
        subject: EntityKey,
        records: &RecordBatch,
        place: &mut LargeRecordPermit,
        is_wanted: impl Fn() -> bool + Send,
    ) -> Result<Option<AppendFuture>, AppendError> {
        while is_wanted() {
            match self.append_device(subject, records, place) {
                Err(AppendError::Busy) => {
                    self.journal.ready(AppendOrigin::Device(subject.tenant)).await;
                }
                appended => return appended.map(Some),
            }
        }
        Ok(None)
    }

    fn append_device(
        &self,
        subject: EntityKey,
        records: &RecordBatch,
        place: &mut LargeRecordPermit,
    ) -> Result<AppendFuture, AppendError> {
        let partition = self.partition_of(subject);
        // Taken before the append, whose records lie at or after it.
        let tail = place.is_some().then(|| self.journal.tail(partition));
        let origin = AppendOrigin::Device(subject.tenant);
        let append = self.journal.append(partition, records, origin)?;
        self.senders.note(partition.index, subject.tenant);
        if let Some(tail) = tail {
            self.large.track_append(partition, tail, place);
        }
        Ok(append)
    }

    /// Appends a record of the platform itself, for the tenant of its originator. There is room for it even if there is
    /// none for devices; if the journal's reserve is also exhausted, the call waits until `deadline`. The returned
    /// future resolves when the record is durable.
    ///
    /// # Errors
    /// There was no room until the deadline, which is counted and logged, or the journal accepts no appends.
    pub async fn push(
        &self,
        deadline: Instant,
        subject: EntityKey,
        record: &RecordBatch,
    ) -> Result<AppendFuture, AppendError> {
        self.push_as(AppendOrigin::Internal(subject.tenant), deadline, subject, record)
            .await
    }

    /// Like [`push`](Self::push), but without charging a tenant's share of the reserve: records that make way for
    /// others must get through, no matter how much their tenant has used.
    ///
    /// # Errors
    /// Those of [`push`](Self::push).
    pub async fn divert(
        &self,
        deadline: Instant,
        subject: EntityKey,
        records: &RecordBatch,
    ) -> Result<AppendFuture, AppendError> {
        self.push_as(AppendOrigin::Internal(TenantId::NULL), deadline, subject, records)
            .await
    }

    async fn push_as(
        &self,
        origin: AppendOrigin,
        deadline: Instant,
        subject: EntityKey,
        record: &RecordBatch,
    ) -> Result<AppendFuture, AppendError> {
        let partition = self.partition_of(subject);
        loop {
            let refused = match self.journal.append(partition, record, origin) {
                Err(refused @ (AppendError::Busy | AppendError::DiskFull)) => refused,
                other => {
                    if other.is_ok() {
                        self.senders.note(partition.index, subject.tenant);
                    }
                    return other;
                }
            };
            let room = async {
                match refused {
                    AppendError::Busy => self.journal.ready(origin).await,
                    _ => tokio::time::sleep(RETRY_PAUSE).await,
                }
            };
            if tokio::time::timeout_at(deadline, room).await.is_err() {
                ::metrics::counter!(metrics::REFUSED_PUSHES).increment(1);
                if let Some(suppressed) = PUSH_GATE.open() {
                    let tenant = subject.tenant;
                    warn!(%tenant, error = %refused, suppressed, "the journal had no room for a message of the platform, its reserve is used up");
                }
                return Err(refused);
            }
        }
    }

    /// Like [`push`](Self::push), but waits until the record is durable, and retries if the disk turns out to be full
    /// at that point.
    ///
    /// # Errors
    /// Those of [`push`](Self::push), and a failed write.
    pub async fn push_durably(
        &self,
        deadline: Instant,
        subject: EntityKey,
        record: &RecordBatch,
    ) -> Result<(), AppendError> {
        loop {
            match self.push(deadline, subject, record).await?.await {
                Err(AppendError::DiskFull) if Instant::now() < deadline => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                other => return other,
            }
        }
    }

    /// Like [`append`](Self::append), but refuses instead of waiting, and also refuses a batch too large for one
    /// append.
    ///
    /// # Errors
    /// Besides those of the journal, [`AppendError::Busy`] if the tenant has too much in flight.
    pub fn try_append(&self, subject: EntityKey, records: &RecordBatch) -> Result<AppendFuture, AppendError> {
        let mut place = self.large.try_acquire(subject.tenant, records.into())?;
        self.append_device(subject, records, &mut place)
    }

    fn partition_of(&self, subject: EntityKey) -> Partition {
        Partition {
            queue: self.queue,
            index: partition_index(subject.entity.id, self.partitions),
        }
    }
}

/// Splits a stored queue name into tenant and name, as [`QueueProducer::open_other`] takes them.
pub(super) fn of_stored(stored: &str) -> (TenantId, &str) {
    let of_tenant = stored
        .split_once('/')
        .and_then(|(tenant, name)| Some((TenantId(tenant.parse().ok()?), name)));
    of_tenant.unwrap_or((TenantId::NULL, stored))
}

#[async_trait]
impl RecordQueue for QueueProducer {
    async fn put_back(&self, queue: &str, subject: EntityKey, record: &[u8]) -> StoreResult<()> {
        let refused = |error: AppendError| {
            StoreError::new(StoreErrorKind::Unavailable, "The queue takes nothing").caused_by(error)
        };
        let (tenant, name) = of_stored(queue);
        let mut batch = RecordBatch::new();
        batch.push(record);
        self.queue_for(tenant, Some(name))
            .push_durably(Instant::now() + PUSH_TIMEOUT, subject, &batch)
            .await
            .map_err(refused)
    }
}

/// Maps an originator to its partition. Stored data depends on this function: a change would break the order of records
/// around an upgrade, and orphan the state kept for an originator.
pub fn partition_index(originator: Uuid, partitions: u16) -> u16 {
    let bits = originator.as_u128();
    let folded = (bits as u64) ^ ((bits >> 64) as u64);
    let mixed = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (mixed % u64::from(partitions.max(1))) as u16
}
