//! The producing end: from a transport into the journal.

use std::sync::Arc;

use fieldline_model::Subject;
use fieldline_model::record::RecordBatch;

use crate::ports::{Append, AppendError, Journal, JournalError, Partition, QueueId};

/// Name of the queue that device messages go to unless their profile says otherwise.
pub const MAIN_QUEUE: &str = "Main";

/// Appends device records to the journal, all of one originator to the same partition.
#[derive(Clone)]
pub struct Uplink {
    journal: Arc<dyn Journal>,
    queue: QueueId,
    partitions: u16,
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
        })
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

    // Stored data depends on this: a change would break the order of records around an upgrade.
    fn partition_of(&self, subject: Subject) -> Partition {
        let bits = subject.entity.id.as_u128();
        let folded = (bits as u64) ^ ((bits >> 64) as u64);
        let mixed = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        Partition {
            queue: self.queue,
            index: (mixed % u64::from(self.partitions)) as u16,
        }
    }
}
