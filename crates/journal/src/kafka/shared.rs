//! What the handle, the sender, the keeper and the consumers share.
//!
//! Locks are taken in the order queue log, groups, table, outbox, and those of a partition.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fieldline_core::ports::{JournalError, Partition, QueueId};
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{Notify, watch};

use super::group::ConsumerGroup;
use super::metrics::KafkaMetrics;
use super::outbox::{Outbox, Woken};
use super::partition::LogPartition;
use super::queue_log::QueueLog;
use super::topics::Topics;
use crate::backpressure::{Pressure, WatchedJournal};
use crate::metrics::JournalMetrics;
use crate::options::Options;

/// The open queues.
#[derive(Debug, Default)]
pub(crate) struct QueueTable {
    partitions: Vec<Arc<LogPartition>>,
    /// The first of the queue's partitions, and their number.
    queues: HashMap<QueueId, (usize, u16)>,
}

impl QueueTable {
    /// The partitions of a queue; none if it is not open.
    pub(crate) fn queue(&self, queue: QueueId) -> &[Arc<LogPartition>] {
        let range = self.queues.get(&queue);
        range
            .and_then(|(base, count)| self.partitions.get(*base..*base + usize::from(*count)))
            .unwrap_or_default()
    }

    /// A partition of an open queue.
    pub(crate) fn get(&self, partition: Partition) -> Option<&Arc<LogPartition>> {
        self.queue(partition.queue).get(usize::from(partition.index))
    }

    pub(crate) fn all(&self) -> &[Arc<LogPartition>] {
        &self.partitions
    }

    /// Adds the partitions of a queue, which stand behind those that are there.
    pub(crate) fn add(&mut self, queue: QueueId, partitions: Vec<Arc<LogPartition>>) {
        let entry = (self.partitions.len(), partitions.len() as u16);
        self.queues.insert(queue, entry);
        self.partitions.extend(partitions);
    }
}

pub(crate) struct KafkaShared {
    pub(crate) options: Options,
    pub(crate) topics: Topics,
    pub(crate) queue_log: Mutex<QueueLog>,
    pub(crate) table: RwLock<QueueTable>,
    pub(crate) outbox: Mutex<Outbox>,
    /// Wakes the sender.
    pub(crate) work: Condvar,
    /// Wakes devices whose appends were refused as busy.
    pub(crate) room: Notify,
    /// Wakes other senders whose appends were refused as busy.
    pub(crate) internal_room: Notify,
    pub(crate) waiting_senders: AtomicUsize,
    /// True once nothing is taken and everything taken is written or given up.
    pub(crate) ended: watch::Sender<bool>,
    /// Whether Kafka does not answer.
    pub(crate) is_down: AtomicBool,
    pub(crate) groups: Mutex<HashMap<String, Arc<ConsumerGroup>>>,
    pub(crate) metrics: JournalMetrics,
    pub(crate) kafka_metrics: KafkaMetrics,
}

impl KafkaShared {
    /// A partition of an open queue.
    pub(crate) fn partition(&self, partition: Partition) -> Option<Arc<LogPartition>> {
        self.table.read().get(partition).cloned()
    }

    /// Wakes senders whose appends were refused as busy.
    pub(crate) fn wake(&self, woken: Woken) {
        if woken.devices {
            self.room.notify_waiters();
        }
        if woken.internal {
            self.internal_room.notify_waiters();
        }
    }

    /// Counts what waits for consumers, and refuses appends of devices while it is too much.
    pub(crate) fn update_log_size(&self) {
        let bytes = self
            .table
            .read()
            .all()
            .iter()
            .map(|log| log.waiting_bytes())
            .sum();
        let mut outbox = self.outbox.lock();
        let woken = outbox.set_log_size(bytes);
        self.metrics.reserve_bytes.set(outbox.reserve.used() as f64);
        self.metrics.pending_bytes.set(outbox.pending_bytes as f64);
        drop(outbox);
        self.metrics.log_bytes.set(bytes as f64);
        self.wake(woken);
    }

    /// Asks Kafka for the ends of a partition.
    pub(crate) fn refresh(&self, log: &LogPartition) -> Result<(), JournalError> {
        let written = log.written();
        let (first, end) = self.topics.bounds(&log.topic, log.index())?;
        let [first, end] = [first, end].map(|offset| log.block_at(i64::try_from(offset).unwrap_or(0)));
        if end < written {
            self.set_back(log, end);
        }
        log.take_ends((first, end));
        log.is_doubtful.store(false, Ordering::Release);
        Ok(())
    }

    /// Notes that Kafka gives numbers of blocks anew.
    pub(crate) fn set_back(&self, log: &LogPartition, end: u64) {
        self.kafka_metrics.set_back.increment(1);
        tracing::error!(
            topic = %log.topic,
            partition = log.index(),
            before = log.end(),
            end,
            "Kafka has lost the end of a partition, or its topic was created again"
        );
        log.set_back_to(end);
    }
}

impl WatchedJournal for KafkaShared {
    fn metrics(&self) -> &JournalMetrics {
        &self.metrics
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn pressure(&self) -> Pressure {
        let outbox = self.outbox.lock();
        (outbox.backpressure.totals(), outbox.oldest())
    }

    fn waiting_senders(&self) -> usize {
        self.waiting_senders.load(Ordering::Relaxed)
    }

    fn pending_bytes(&self) -> usize {
        self.outbox.lock().pending_bytes
    }

    fn medium(&self) -> &'static str {
        "Kafka"
    }
}
