//! The part of the log that is not stored yet: its records go to the other log, in their order for each entity.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ingest::{GROUP, partition_index};
use fieldline_core::ports::{
    AppendError, AppendOrigin, ConsumerEvent, ConsumerRecords, Journal, JournalConsumer, JournalError,
    Offset, Partition, QueueId, StateKey, StoreError,
};
use fieldline_model::TenantId;
use fieldline_model::kv::CorruptData;
use fieldline_model::record::{JournalRecord, RecordBatch, split};
use fieldline_rules::worker::log_binding::{LogBinding, log_binding};
use fieldline_storage::series::SeriesCopy;

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// How long a read or an append may take until the log counts as gone.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Why the log is not copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogCopyError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a record of {0} cannot be read: {1}")]
    Record(Partition, CorruptData),
    #[error("no answer within a minute")]
    TimedOut,
}

/// A queue of the source, and the one that its records go to.
struct QueuePair {
    source: QueueId,
    target: QueueId,
    /// Partitions of the target's.
    partitions: u16,
    /// Where the records begin and end that are not stored; where nothing is, they begin with the log.
    unstored: BTreeMap<Partition, (Option<Offset>, Offset)>,
}

impl QueuePair {
    fn partition_of(&self, record: &JournalRecord<'_>) -> Partition {
        Partition {
            queue: self.target,
            index: partition_index(record.subject.entity.id, self.partitions),
        }
    }
}

/// Both logs, and what is to be copied.
pub(super) struct LogBacklog {
    source: Arc<dyn Journal>,
    target: Arc<dyn Journal>,
    queues: Vec<QueuePair>,
}

impl LogBacklog {
    /// Finds what is not stored, and opens the same queues in the target.
    pub(super) fn open(
        source: &Arc<dyn Journal>,
        target: &Arc<dyn Journal>,
        series: &SeriesCopy,
    ) -> Result<Self, LogCopyError> {
        let stored = series.source_positions()?;
        let mut queues = Vec::new();
        for name in source.queues() {
            let queue = source.open_queue(&name, 1)?;
            let other = target.open_queue(&name, source.partitions(queue))?;
            let mut unstored = BTreeMap::new();
            for index in 0..source.partitions(queue) {
                let partition = Partition { queue, index };
                let copied = series.records_copied(partition)?;
                let from = copied.or_else(|| stored.get(&partition).copied());
                let end = source.end(partition);
                if source.records_between(partition, from.unwrap_or(Offset(0)), end) > 0 {
                    unstored.insert(partition, (from, end));
                }
            }
            queues.push(QueuePair {
                source: queue,
                target: other,
                partitions: target.partitions(other),
                unstored,
            });
        }
        Ok(Self {
            source: source.clone(),
            target: target.clone(),
            queues,
        })
    }

    /// Returns the partition of the target that a state belongs to; see [`fieldline_storage::series::StateRoute`].
    pub(super) fn route(&self, partition: Partition, key: &StateKey) -> Result<Option<Partition>, String> {
        let found = self.queues.iter().find(|pair| pair.source == partition.queue);
        let pair = found.ok_or_else(|| {
            format!("the source keeps states of a queue that its log does not have: {partition}")
        })?;
        let once_more = match log_binding(key.owner) {
            LogBinding::None => {
                return Ok(Some(Partition {
                    queue: pair.target,
                    index: partition_index(key.subject.entity.id, pair.partitions),
                }));
            }
            LogBinding::Records if pair.unstored.is_empty() => return Ok(None),
            LogBinding::Records => "records of the source's log are stored in part",
            LogBinding::Waiting => "messages of slow lanes wait in the source",
        };
        Err(format!(
            "{once_more}: start it with `fieldline serve`, wait until they are done, stop it, and migrate then"
        ))
    }

    /// Copies the records, and notes in the series how far that is. Returns how many they were.
    pub(super) async fn copy(&self, series: &SeriesCopy) -> Result<u64, LogCopyError> {
        let mut records = 0;
        for pair in self.queues.iter().filter(|pair| !pair.unstored.is_empty()) {
            for consumer in self.source.subscribe(pair.source, GROUP, 1)? {
                records += self.copy_queue(pair, consumer, series).await?;
            }
        }
        Ok(records)
    }

    async fn copy_queue(
        &self,
        pair: &QueuePair,
        mut consumer: Box<dyn JournalConsumer>,
        series: &SeriesCopy,
    ) -> Result<u64, LogCopyError> {
        let mut left = pair.unstored.clone();
        let mut records = 0;
        while !left.is_empty() {
            let event = tokio::time::timeout(TIMEOUT, consumer.next(READ_BYTES)).await;
            match event.map_err(|_| LogCopyError::TimedOut)?? {
                ConsumerEvent::Assigned(partitions) => {
                    for (partition, _) in partitions {
                        match left.get(&partition) {
                            Some((Some(from), _)) => consumer.seek(partition, *from)?,
                            Some((None, _)) => {}
                            // What the log still keeps of it is stored.
                            None => consumer.seek(partition, self.source.end(partition))?,
                        }
                    }
                }
                ConsumerEvent::Records(delivered) => {
                    let Some((_, end)) = left.get(&delivered.partition).copied() else {
                        continue;
                    };
                    records += self.append(pair, &delivered).await?;
                    series.note_records_copied(delivered.partition, delivered.next)?;
                    if delivered.next >= end {
                        left.remove(&delivered.partition);
                    }
                }
                ConsumerEvent::Unreadable(_, error) => return Err(error.into()),
                ConsumerEvent::Revoked(_) => {}
                ConsumerEvent::Closed => return Err(LogCopyError::TimedOut),
            }
        }
        Ok(records)
    }

    /// Appends what was delivered; returns when it is durable.
    async fn append(&self, pair: &QueuePair, delivered: &ConsumerRecords) -> Result<u64, LogCopyError> {
        let damaged = |cause| LogCopyError::Record(delivered.partition, cause);
        let mut batches: BTreeMap<(Partition, TenantId), RecordBatch> = BTreeMap::new();
        let mut records = 0;
        for bytes in split(&delivered.bytes) {
            let bytes = bytes.map_err(damaged)?;
            let record = JournalRecord::decode(bytes).map_err(damaged)?;
            let place = (pair.partition_of(&record), record.subject.tenant);
            batches.entry(place).or_default().push(bytes);
            records += 1;
        }
        for ((partition, tenant), batch) in batches {
            let origin = AppendOrigin::Internal(tenant);
            loop {
                match self.target.append(partition, &batch, origin) {
                    Err(AppendError::Busy) => {
                        let room = tokio::time::timeout(TIMEOUT, self.target.ready(origin)).await;
                        room.map_err(|_| LogCopyError::TimedOut)?;
                    }
                    appended => break appended?.await?,
                }
            }
        }
        Ok(records)
    }
}
