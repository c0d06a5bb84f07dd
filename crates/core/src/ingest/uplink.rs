//! The producing end: from a transport into the journal.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use fieldline_model::record::RecordBatch;
use fieldline_model::{Subject, TenantId};
use parking_lot::RwLock;
use uuid::Uuid;

use crate::ports::{Append, AppendError, Journal, JournalError, Partition, QueueId};

/// Name of the queue that device messages go to unless their profile says otherwise.
pub const MAIN_QUEUE: &str = "Main";

/// Further queues, by the tenant they belong to and their names.
type Others = HashMap<(TenantId, Box<str>), Uplink>;

/// Appends device records to a queue of the journal, all of one originator to the same partition.
#[derive(Clone)]
pub struct Uplink {
    journal: Arc<dyn Journal>,
    queue: QueueId,
    partitions: u16,
    others: Arc<RwLock<Others>>,
}

impl Uplink {
    /// Opens the main queue, with `partitions` partitions if it does not exist yet.
    pub fn open(journal: Arc<dyn Journal>, partitions: u16) -> Result<Self, JournalError> {
        let queue = journal.open_queue(MAIN_QUEUE, partitions.max(1))?;
        let partitions = journal.partitions(queue).max(1);
        Ok(Self {
            journal,
            queue,
            partitions,
            others: Arc::default(),
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
        Ok(Self {
            queue,
            partitions: self.journal.partitions(queue).max(1),
            ..self.clone()
        })
    }

    /// All queues but the main one that were ever opened, as [`open_other`](Self::open_other) takes them.
    pub fn stored(&self) -> Vec<(TenantId, String)> {
        let of_name = |stored: String| {
            let of_tenant = stored
                .split_once('/')
                .and_then(|(tenant, name)| Some((TenantId(tenant.parse().ok()?), name.to_owned())));
            of_tenant.unwrap_or((TenantId::NULL, stored))
        };
        let names = self.journal.queues().into_iter();
        names.filter(|name| name != MAIN_QUEUE).map(of_name).collect()
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
    pub fn to(&self, tenant: TenantId, name: Option<&str>) -> Cow<'_, Self> {
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
    pub async fn append(&self, subject: Subject, records: &RecordBatch) -> Result<Append, AppendError> {
        let partition = self.partition_of(subject);
        let limit = match self.append_whole(partition, records).await {
            Err(AppendError::TooLarge { limit }) => limit,
            other => return other,
        };
        // Nothing is taken if a part of it cannot be.
        if records.cut(limit).any(|part| part.is_err()) {
            return Err(AppendError::TooLarge { limit });
        }
        let mut last = Append::durable();
        for part in records.cut(limit).flatten() {
            last.await?;
            last = self.append_whole(partition, &part).await?;
        }
        Ok(last)
    }

    async fn append_whole(&self, partition: Partition, records: &RecordBatch) -> Result<Append, AppendError> {
        loop {
            match self.journal.append(partition, records) {
                Err(AppendError::Busy) => self.journal.ready().await,
                other => return other,
            }
        }
    }

    /// Like [`append`](Self::append), but refuses instead of waiting, and what is too large for one append as well.
    pub fn try_append(&self, subject: Subject, records: &RecordBatch) -> Result<Append, AppendError> {
        self.journal.append(self.partition_of(subject), records)
    }

    fn partition_of(&self, subject: Subject) -> Partition {
        Partition {
            queue: self.queue,
            index: partition_index(subject.entity.id, self.partitions),
        }
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
