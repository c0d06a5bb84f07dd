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
use fieldline_rules::worker::log_binding::is_bound_to_log;
use fieldline_storage::series::SeriesCopy;

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
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
    #[error(
        "the source's log is not the one that was stored up to a position of {0}: check `journal` of `--from`"
    )]
    ForeignLog(Partition),
    #[error(
        "the target's log has queues already: name an empty directory, or another `journal.kafka.prefix`"
    )]
    TargetInUse,
    #[error(
        "records were copied in part, and come in other portions now: begin again with empty databases and an empty log"
    )]
    OtherPortions,
}

/// All partitions of a log with their ends.
fn all_partitions(log: &dyn Journal) -> Result<BTreeMap<Partition, Offset>, JournalError> {
    let mut all = BTreeMap::new();
    for name in log.queues() {
        let queue = log.open_queue(&name, 1)?;
        for index in 0..log.partitions(queue) {
            let partition = Partition { queue, index };
            all.insert(partition, log.end(partition));
        }
    }
    Ok(all)
}

/// Refuses a log that somebody has used.
pub(super) fn refuse_used(log: &dyn Journal) -> Result<(), LogCopyError> {
    match log.queues().is_empty() {
        true => Ok(()),
        false => Err(LogCopyError::TargetInUse),
    }
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
        let known: BTreeMap<Partition, Offset> = all_partitions(source.as_ref())?;
        for (partition, position) in &stored {
            if known.get(partition).is_none_or(|end| end < position) {
                return Err(LogCopyError::ForeignLog(*partition));
            }
        }
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
    pub(super) fn route(&self, partition: Partition, key: &StateKey) -> Result<Partition, String> {
        let found = self.queues.iter().find(|pair| pair.source == partition.queue);
        let pair = found.ok_or_else(|| {
            format!("the source keeps states of a queue that its log does not have: {partition}")
        })?;
        if is_bound_to_log(key.owner) {
            return Err(
                "messages are handled in part, or wait in slow lanes: start the source with `fieldline serve`, wait until \
                 they are done, stop it, and migrate then"
                    .to_owned(),
            );
        }
        Ok(Partition {
            queue: pair.target,
            index: partition_index(key.subject.entity.id, pair.partitions),
        })
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
                    records += self.append(pair, &delivered, series).await?;
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

    /// Appends what was delivered; returns when it is durable. What is about to be appended is noted first: whoever is cut
    /// off finds by the ends of the partitions which of them have it.
    async fn append(
        &self,
        pair: &QueuePair,
        delivered: &ConsumerRecords,
        series: &SeriesCopy,
    ) -> Result<u64, LogCopyError> {
        let damaged = |cause| LogCopyError::Record(delivered.partition, cause);
        let mut batches: BTreeMap<Partition, (TenantId, RecordBatch)> = BTreeMap::new();
        let mut records = 0;
        for bytes in split(&delivered.bytes) {
            let bytes = bytes.map_err(damaged)?;
            let record = JournalRecord::decode(bytes).map_err(damaged)?;
            let batch = batches.entry(pair.partition_of(&record));
            let (_, batch) = batch.or_insert_with(|| (record.subject.tenant, RecordBatch::new()));
            batch.push(bytes);
            records += 1;
        }
        let begun = series.records_begun(delivered.partition)?;
        let ends = match begun {
            Some((next, ends)) if next == delivered.next => ends,
            Some(_) => return Err(LogCopyError::OtherPortions),
            None => {
                let ends = batches
                    .keys()
                    .map(|partition| (*partition, self.target.end(*partition)));
                let ends = ends.collect();
                series.note_records_begun(delivered.partition, delivered.next, &ends)?;
                ends
            }
        };
        for (partition, (tenant, batch)) in batches {
            if ends
                .get(&partition)
                .is_none_or(|end| self.target.end(partition) > *end)
            {
                continue;
            }
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
