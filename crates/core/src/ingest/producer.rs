//! The producing end: from a transport into the journal.

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

use super::large_records::{AppendSize, LargeRecordLimiter, LargeRecordPermit};
use super::metrics;
use super::senders::{PartitionSenders, QueueSenders};
use crate::logging::LogGate;
use crate::ports::{
    AppendError, AppendFuture, AppendOrigin, Journal, JournalError, Partition, QueueId, RecordQueue,
    StoreError, StoreErrorKind, StoreResult,
};

/// Name of the queue that device messages go to unless their profile says otherwise.
pub const MAIN_QUEUE: &str = "Main";

/// How long messages of the platform wait for room in the journal. Long enough for a few checkpoints to give some back; not
/// without an end, because who works on the log may be the one who waits.
pub const PUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// Before another try on a full disk.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
static PUSH_GATE: LogGate = LogGate::new(1);

/// Further queues, by the tenant they belong to and their names.
type OtherQueues = HashMap<(TenantId, Box<str>), QueueProducer>;

/// Appends device records to a queue of the journal, all of one originator to the same partition.
#[derive(Clone)]
pub struct QueueProducer {
    journal: Arc<dyn Journal>,
    queue: QueueId,
    /// As the journal knows it.
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

    /// Opens another queue, of a tenant or (with the null tenant) of all that have none of that name, with `partitions`
    /// partitions if it does not exist yet.
    pub fn open_other(&self, tenant: TenantId, name: &str, partitions: u16) -> Result<Self, JournalError> {
        let key = (tenant, Box::from(name));
        if let Some(open) = self.others.read().get(&key) {
            return Ok(open.clone());
        }
        let other = self.open_unrouted(tenant, name, partitions)?;
        self.others.write().insert(key, other.clone());
        Ok(other)
    }

    /// The same without routing anything to it: for what is left in a queue that is no more.
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

    /// All queues but the main one that were ever opened, as [`open_other`](Self::open_other) takes them.
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

    /// The name under which the journal has the queue.
    pub fn stored_name(&self) -> &Arc<str> {
        &self.name
    }

    /// This queue, and all that something is routed to.
    pub(super) fn all(&self) -> Vec<Self> {
        let others = self.others.read();
        std::iter::once(self).chain(others.values()).cloned().collect()
    }

    /// Routes nothing to a queue any more.
    pub fn close_other(&self, tenant: TenantId, name: &str) {
        self.others.write().remove(&(tenant, Box::from(name)));
    }

    /// The queue of that name, as a tenant sees it: its own one, else the shared one, else this one.
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

    /// How many partitions the queue has.
    pub fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The queue it appends to.
    pub fn queue(&self) -> QueueId {
        self.queue
    }

    /// The journal it appends to.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Takes the records of one originator, waiting while the journal catches up; the result resolves when they are
    /// durable. More than the journal takes in one append is divided, and each part waits until the one before is durable.
    pub async fn append(
        &self,
        subject: EntityKey,
        records: &RecordBatch,
    ) -> Result<AppendFuture, AppendError> {
        let limit = match self.append_whole(subject, records).await {
            Err(AppendError::TooLarge { limit }) => limit,
            other => return other,
        };
        // Nothing is taken if a part of it cannot be.
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

    /// Waits for a place for records of a size, if those are large, but not for ever.
    pub async fn acquire_large(&self, tenant: TenantId, size: AppendSize) -> LargeRecordPermit {
        self.large.acquire(tenant, size).await
    }

    /// Like [`append`](Self::append) by who has [entered](Self::enter), but what is too large for one append is refused, and
    /// nothing is appended (`None`) once it is not wanted any more: that is looked at after each wait.
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
                Err(AppendError::Busy) => self.journal.ready(AppendOrigin::Device).await,
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
        // As it is before: what is appended is not before that.
        let end = place.is_some().then(|| self.journal.end(partition));
        let append = self.journal.append(partition, records, AppendOrigin::Device)?;
        self.senders.note(partition.index, subject.tenant);
        if let Some(end) = end {
            self.large.track_append(partition, end, place);
        }
        Ok(append)
    }

    /// Takes a record that the platform itself has made, for the tenant of its originator. There is room for it also where
    /// there is none for devices; where the journal's reserve is used up as well, it waits, until `deadline` at most. The
    /// result resolves when it is durable.
    ///
    /// # Errors
    /// There was no room until then, which is counted and told in the log; or the journal takes nothing.
    pub async fn push(
        &self,
        deadline: Instant,
        subject: EntityKey,
        record: &RecordBatch,
    ) -> Result<AppendFuture, AppendError> {
        self.push_as(AppendOrigin::Internal(subject.tenant), deadline, subject, record)
            .await
    }

    /// Like [`push`](Self::push), but no tenant's share of the reserve is charged: what makes way for others must get out
    /// whatever its tenant has used.
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

    /// Like [`push`](Self::push), waiting until it is durable: it is tried again when the disk turns out to be full only then.
    ///
    /// # Errors
    /// Those of [`push`](Self::push), and that the write has failed.
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

    /// Like [`append`](Self::append), but refuses instead of waiting, and what is too large for one append as well.
    ///
    /// # Errors
    /// Besides those of the journal, [`AppendError::Busy`] where the tenant has too much under way.
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

/// The tenant and the name of a queue, as [`QueueProducer::open_other`] takes them.
fn of_stored(stored: &str) -> (TenantId, &str) {
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

/// The partition of an originator. Stored data depends on this: a change would break the order of records around an upgrade,
/// and leave what is kept for an originator behind.
pub fn partition_index(originator: Uuid, partitions: u16) -> u16 {
    let bits = originator.as_u128();
    let folded = (bits as u64) ^ ((bits >> 64) as u64);
    let mixed = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (mixed % u64::from(partitions.max(1))) as u16
}
