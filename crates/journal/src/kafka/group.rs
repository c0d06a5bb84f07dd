//! The client of a group of consumers, and the group's positions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fieldline_core::ports::{JournalError, Partition};
use parking_lot::Mutex;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::block::{place, position};
use super::client::{ANSWER_TIMEOUT, ClientState, JournalContext, consumer_config, refused};
use super::partition::LogPartition;
use crate::options::Options;

/// A position of the group.
#[derive(Debug, Clone)]
struct GroupPosition {
    log: Arc<LogPartition>,
    position: u64,
    is_stored: bool,
}

/// A group: one client for all of its members.
pub(crate) struct ConsumerGroup {
    pub(crate) consumer: Arc<BaseConsumer<JournalContext>>,
    state: Arc<ClientState>,
    positions: Mutex<BTreeMap<Partition, GroupPosition>>,
    /// Commits of positions sent to Kafka.
    sent: AtomicUsize,
}

impl ConsumerGroup {
    pub(crate) fn new(options: &Options, name: &str) -> Result<Self, JournalError> {
        let context = JournalContext::default();
        let state = Arc::clone(&context.0);
        let config = consumer_config(options, &format!("{}.{name}", options.kafka.prefix));
        let consumer = BaseConsumer::from_config_and_context(&config, context)
            .map_err(refused("make a client of Kafka"))?;
        Ok(Self {
            consumer: Arc::new(consumer),
            state,
            positions: Mutex::default(),
            sent: AtomicUsize::new(0),
        })
    }

    /// Where the group stands in partitions, at least at their first block; waits for Kafka.
    pub(crate) fn start_positions(&self, logs: &[Arc<LogPartition>]) -> Result<Vec<u64>, JournalError> {
        let failed = || refused("ask Kafka for the positions of a group");
        let mut asked = TopicPartitionList::new();
        for log in logs {
            asked.add_partition(&log.topic, log.index());
        }
        let told = self
            .consumer
            .committed_offsets(asked, ANSWER_TIMEOUT)
            .map_err(failed())?;
        let mut positions = Vec::with_capacity(logs.len());
        for log in logs {
            let entry = told.find_partition(&log.topic, log.index());
            let stored = match &entry {
                Some(entry) => {
                    entry.error().map_err(failed())?;
                    match entry.offset() {
                        Offset::Offset(block) => {
                            let number = entry.metadata().parse().unwrap_or(0);
                            Some(position(log.block_at(block), number))
                        }
                        _ => None,
                    }
                }
                None => None,
            };
            let known = self
                .positions
                .lock()
                .get(&log.partition)
                .map(|known| known.position);
            let (first, end) = (position(log.first(), 0), position(log.end(), 0));
            let found = known.max(stored).unwrap_or(first);
            if found > end {
                tracing::warn!(topic = %log.topic, partition = log.index(), position = found, end, "Kafka has lost what was consumed already");
            }
            let at = found.clamp(first, end.max(first));
            let entry = GroupPosition {
                log: Arc::clone(log),
                position: at,
                is_stored: true,
            };
            self.positions.lock().entry(log.partition).or_insert(entry);
            positions.push(at);
        }
        Ok(positions)
    }

    /// Moves the position forward; the keeper stores it.
    pub(crate) fn commit(&self, log: &Arc<LogPartition>, to: u64) {
        let mut positions = self.positions.lock();
        // Somebody may commit without having read anything.
        let known = positions.entry(log.partition).or_insert_with(|| GroupPosition {
            log: Arc::clone(log),
            position: 0,
            is_stored: true,
        });
        if known.position < to {
            known.position = to;
            known.is_stored = false;
            log.note_consumed(place(to).0, Instant::now());
        }
    }

    /// Moves the positions of a log that was set back.
    pub(crate) fn clamp(&self, log: &LogPartition) {
        let end = position(log.end(), 0);
        if let Some(known) = self.positions.lock().get_mut(&log.partition)
            && known.position > end
        {
            known.position = end;
            known.is_stored = false;
        }
    }

    /// The block before which the group has consumed everything; `None` if it does not consume the partition.
    pub(crate) fn consumed(&self, partition: Partition) -> Option<u64> {
        self.positions
            .lock()
            .get(&partition)
            .map(|known| place(known.position).0)
    }

    /// Sends positions to Kafka that it does not have, without waiting.
    pub(crate) fn store(&self) -> Result<(), KafkaError> {
        while self.consumer.poll(Duration::ZERO).is_some() {}
        let mut positions = self.positions.lock();
        if self.state.commit_failed.swap(false, Ordering::AcqRel) {
            for known in positions.values_mut() {
                known.is_stored = false;
            }
        }
        let mut list = TopicPartitionList::new();
        for known in positions.values_mut().filter(|known| !known.is_stored) {
            known.is_stored = true;
            let (block, number) = place(known.position);
            let mut entry = list.add_partition(&known.log.topic, known.log.index());
            entry.set_offset(Offset::Offset(known.log.offset_of(block)))?;
            if number > 0 {
                entry.set_metadata(number.to_string());
            }
        }
        drop(positions);
        if list.count() > 0 {
            self.sent.fetch_add(1, Ordering::AcqRel);
            self.consumer.commit(&list, CommitMode::Async)?;
        }
        Ok(())
    }

    /// Sends positions to Kafka, and waits a limited time for its answer.
    pub(crate) fn flush(&self, within: Duration) {
        let deadline = Instant::now() + within;
        if let Err(error) = self.store() {
            tracing::warn!(%error, "cannot send positions to Kafka");
        }
        while self.state.commits.load(Ordering::Acquire) < self.sent.load(Ordering::Acquire)
            && Instant::now() < deadline
        {
            self.consumer.poll(Duration::from_millis(20));
        }
    }
}
