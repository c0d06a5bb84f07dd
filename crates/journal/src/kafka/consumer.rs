//! A member of a group: it follows its partitions from block to block.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ports::{
    ConsumerEvent, ConsumerRecords, JournalConsumer, JournalError, Offset, Partition, QueueId,
};
use rdkafka::consumer::Consumer;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset as KafkaOffset, TopicPartitionList};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::block::{self, BlockOrigin, place, position};
use super::client::{JournalContext, refused};
use super::group::ConsumerGroup;
use super::partition::LogPartition;
use super::shared::KafkaShared;
use crate::consumer::{drop_records, fitting};
use crate::error::invalid;

/// How often a member of a closed journal looks whether it has read everything.
const CLOSED_TICK: Duration = Duration::from_millis(20);
/// Largest block that is read, whatever the settings say now: they may have been others when it was written.
const LARGEST_BLOCK: usize = 64 << 20;

/// One member of a group.
pub(crate) struct KafkaMember {
    shared: Arc<KafkaShared>,
    queue: QueueId,
    group_name: String,
    group: Arc<ConsumerGroup>,
    cursors: Vec<Cursor>,
    /// Told by the library's threads when a partition has got something.
    arrivals: Arc<Notify>,
    turn: usize,
    is_assigned: bool,
    /// A question to Kafka under way; a wait that is given up does not repeat it.
    starting: Option<JoinHandle<Result<Vec<u64>, JournalError>>>,
    asking: Option<EndsQuestion>,
}

/// A question to Kafka for the ends of a partition, which did not hold a position.
struct EndsQuestion {
    partition: Partition,
    asked: u64,
    answer: JoinHandle<Result<(), JournalError>>,
}

/// Position in one partition.
struct Cursor {
    log: Arc<LogPartition>,
    next: u64,
    /// What the library has fetched; `None` until it is asked to.
    blocks: Option<PartitionQueue<JournalContext>>,
    is_fetched: bool,
    /// Records already read that were not delivered yet, with the position after them.
    rest: Option<(Bytes, u64)>,
    /// Origin of the last block read.
    last: Option<BlockOrigin>,
    paused: Option<Instant>,
}

/// Why a partition cannot be read.
enum ReadFailure {
    /// The log does not hold the position.
    OutOfRange,
    Other(JournalError),
}

impl KafkaMember {
    pub(crate) fn new(
        shared: Arc<KafkaShared>,
        queue: QueueId,
        (group_name, group): (&str, Arc<ConsumerGroup>),
        logs: impl Iterator<Item = Arc<LogPartition>>,
    ) -> Self {
        Self {
            shared,
            queue,
            group_name: group_name.to_owned(),
            group,
            cursors: logs.map(Cursor::new).collect(),
            arrivals: Arc::default(),
            turn: 0,
            is_assigned: false,
            starting: None,
            asking: None,
        }
    }

    /// Asks Kafka where the group stands.
    async fn assign(&mut self) -> Result<ConsumerEvent, JournalError> {
        let start = self.starting.get_or_insert_with(|| {
            let (shared, group) = (Arc::clone(&self.shared), Arc::clone(&self.group));
            let (queue, name) = (self.queue, self.group_name.clone());
            let logs: Vec<_> = self
                .cursors
                .iter()
                .map(|cursor| Arc::clone(&cursor.log))
                .collect();
            spawn_blocking(move || {
                shared.note_group(queue, &name)?;
                group.start_positions(&logs)
            })
        });
        let positions = start.await;
        self.starting = None;
        let positions = positions.map_err(|error| invalid(format!("ask Kafka: {error}")))??;
        for (cursor, at) in self.cursors.iter_mut().zip(positions) {
            cursor.next = at;
            cursor.log.note_backlog(place(at).0);
        }
        self.is_assigned = true;
        let assigned = self.cursors.iter();
        let assigned = assigned.map(|cursor| (cursor.log.partition, Offset(cursor.next)));
        Ok(ConsumerEvent::Assigned(assigned.collect()))
    }

    /// Returns the next records of any partition, taking turns.
    fn poll_records(&mut self, max_bytes: usize) -> Option<ConsumerEvent> {
        for _ in 0..self.cursors.len() {
            self.turn = (self.turn + 1) % self.cursors.len();
            let Some(cursor) = self.cursors.get_mut(self.turn) else {
                break;
            };
            if cursor.update_pause() {
                continue;
            }
            let partition = cursor.log.partition;
            match cursor.read(&self.shared, &self.group, &self.arrivals, max_bytes) {
                Ok(Some(records)) => {
                    let bytes = records.bytes.len() as u64;
                    self.shared.metrics.delivered_bytes.increment(bytes);
                    return Some(ConsumerEvent::Records(records));
                }
                Ok(None) => {}
                Err(ReadFailure::Other(error)) => return Some(ConsumerEvent::Unreadable(partition, error)),
                Err(ReadFailure::OutOfRange) => {
                    let (shared, log) = (Arc::clone(&self.shared), Arc::clone(&cursor.log));
                    let asked = cursor.next;
                    self.asking = Some(EndsQuestion {
                        partition,
                        asked,
                        answer: spawn_blocking(move || shared.refresh(&log)),
                    });
                    return None;
                }
            }
        }
        None
    }

    /// Reports a position outside of the log with the ends that Kafka has told.
    async fn ends_told(&mut self) -> Option<ConsumerEvent> {
        let question = self.asking.as_mut()?;
        let (partition, asked) = (question.partition, question.asked);
        let told = (&mut question.answer).await;
        self.asking = None;
        let log = &self
            .cursors
            .iter()
            .find(|cursor| cursor.log.partition == partition)?
            .log;
        let error = match told {
            Ok(Ok(())) => {
                self.group.clamp(log);
                log.out_of_range(asked)
            }
            Ok(Err(error)) => error,
            Err(error) => invalid(format!("ask Kafka: {error}")),
        };
        Some(ConsumerEvent::Unreadable(partition, error))
    }

    fn has_read_everything(&self) -> bool {
        self.cursors.iter().all(|cursor| {
            let is_at_end = cursor.rest.is_none() && cursor.next >= position(cursor.log.end(), 0);
            is_at_end || cursor.paused.is_some()
        })
    }

    fn cursor(&mut self, partition: Partition) -> Result<&mut Cursor, JournalError> {
        self.cursors
            .iter_mut()
            .find(|cursor| cursor.log.partition == partition)
            .ok_or_else(|| invalid(format!("partition {partition} belongs to another member")))
    }
}

#[async_trait]
impl JournalConsumer for KafkaMember {
    async fn next(&mut self, max_bytes: usize) -> Result<ConsumerEvent, JournalError> {
        if !self.is_assigned {
            return self.assign().await;
        }
        loop {
            if let Some(failure) = self.ends_told().await {
                return Ok(failure);
            }
            let is_closed = *self.shared.ended.borrow();
            if let Some(delivery) = self.poll_records(max_bytes) {
                return Ok(delivery);
            }
            if self.asking.is_some() {
                continue;
            }
            if is_closed && self.has_read_everything() {
                return Ok(ConsumerEvent::Closed);
            }
            let mut ended = self.shared.ended.subscribe();
            let tick = is_closed.then(|| Instant::now() + CLOSED_TICK);
            let pauses = self.cursors.iter().filter_map(|cursor| cursor.paused);
            let wake = pauses.chain(tick).min();
            tokio::select! {
                () = self.arrivals.notified() => {}
                () = sleep_if(wake) => {}
                _ = ended.wait_for(|ended| *ended), if !is_closed => {}
            }
        }
    }

    fn pause(&mut self, partition: Partition, time: Duration) {
        if let Ok(cursor) = self.cursor(partition) {
            cursor.paused = Some(Instant::now() + time);
        }
    }

    fn seek(&mut self, partition: Partition, offset: Offset) -> Result<(), JournalError> {
        let group = Arc::clone(&self.group);
        let cursor = self.cursor(partition)?;
        cursor.log.check(offset.0)?;
        cursor.seek(&group, offset.0);
        Ok(())
    }

    async fn commit(&mut self, partition: Partition, offset: Offset) -> Result<(), JournalError> {
        let group = Arc::clone(&self.group);
        let log = &self.cursor(partition)?.log;
        if offset.0 > position(log.end(), 0) {
            return Err(log.out_of_range(offset.0));
        }
        group.commit(log, offset.0);
        Ok(())
    }
}

impl Drop for KafkaMember {
    /// Lets the library fetch no more for the member.
    fn drop(&mut self) {
        for cursor in &mut self.cursors {
            cursor.stop(&self.group);
        }
    }
}

impl Cursor {
    fn new(log: Arc<LogPartition>) -> Self {
        Self {
            log,
            next: 0,
            blocks: None,
            is_fetched: false,
            rest: None,
            last: None,
            paused: None,
        }
    }

    fn update_pause(&mut self) -> bool {
        self.paused = self.paused.filter(|end| *end > Instant::now());
        self.paused.is_some()
    }

    fn assignment(&self) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        let block = KafkaOffset::Offset(self.log.offset_of(place(self.next).0));
        list.add_partition_offset(&self.log.topic, self.log.index(), block)?;
        Ok(list)
    }

    /// Asks the library to fetch from the position on.
    fn start(&mut self, group: &ConsumerGroup, arrivals: &Arc<Notify>) -> Result<(), JournalError> {
        let failed = || refused(format!("read topic {}", self.log.topic));
        if self.blocks.is_none() {
            let blocks = group
                .consumer
                .split_partition_queue(&self.log.topic, self.log.index());
            let mut blocks =
                blocks.ok_or_else(|| invalid(format!("there is no topic {}", self.log.topic)))?;
            let arrivals = Arc::clone(arrivals);
            blocks.set_nonempty_callback(move || arrivals.notify_one());
            self.blocks = Some(blocks);
        }
        let list = self.assignment().map_err(failed())?;
        group.consumer.incremental_assign(&list).map_err(failed())?;
        self.is_fetched = true;
        Ok(())
    }

    fn stop(&mut self, group: &ConsumerGroup) {
        if std::mem::take(&mut self.is_fetched)
            && let Ok(list) = self.assignment()
            && let Err(error) = group.consumer.incremental_unassign(&list)
        {
            tracing::debug!(topic = %self.log.topic, %error, "cannot stop reading a partition");
        }
    }

    fn seek(&mut self, group: &ConsumerGroup, to: u64) {
        if self.next == to {
            return;
        }
        self.next = to;
        self.rest = None;
        self.last = None;
        // Else the first read begins there.
        if self.is_fetched {
            let block = KafkaOffset::Offset(self.log.offset_of(place(to).0));
            let moved = group
                .consumer
                .seek(&self.log.topic, self.log.index(), block, Duration::ZERO);
            if moved.is_err() {
                self.stop(group);
            }
        }
    }

    /// Delivers up to `max_bytes` of a block; a single larger record is delivered alone.
    fn read(
        &mut self,
        shared: &KafkaShared,
        group: &ConsumerGroup,
        arrivals: &Arc<Notify>,
        max_bytes: usize,
    ) -> Result<Option<ConsumerRecords>, ReadFailure> {
        if self.rest.is_none() {
            if !self.is_fetched {
                self.start(group, arrivals).map_err(ReadFailure::Other)?;
            }
            while self.rest.is_none() {
                if !self.take_block(shared, group)? {
                    return Ok(None);
                }
            }
        }
        let Some((mut bytes, end)) = self.rest.take() else {
            return Ok(None);
        };
        let first = self.next;
        let (length, records) = if bytes.len() <= max_bytes {
            (bytes.len(), 0)
        } else {
            fitting(&bytes, max_bytes)
        };
        let delivered = bytes.split_to(length);
        if bytes.is_empty() {
            self.next = end;
        } else {
            self.next += records;
            self.rest = Some((bytes, end));
        }
        Ok(Some(ConsumerRecords {
            partition: self.log.partition,
            first: Offset(first),
            next: Offset(self.next),
            bytes: delivered,
        }))
    }

    /// Takes the next message, which may hold nothing of interest; false if there is none.
    fn take_block(&mut self, shared: &KafkaShared, group: &ConsumerGroup) -> Result<bool, ReadFailure> {
        let Some(blocks) = &self.blocks else {
            return Ok(false);
        };
        let message = match blocks.poll(Duration::ZERO) {
            None => return Ok(false),
            Some(Ok(message)) => message,
            Some(Err(error)) => {
                self.stop(group);
                return Err(self.failure(error));
            }
        };
        let (from, skipped) = place(self.next);
        let number = self.log.block_at(message.offset());
        if number < from {
            return Ok(true);
        }
        self.log.extend_to(number + 1);
        let limit = LARGEST_BLOCK.max(shared.options.max_append.as_usize());
        let block = match block::decode(message.payload().unwrap_or_default(), limit) {
            Ok(block) => block,
            Err(bad) => {
                drop(message);
                return self.discard(shared, group, number, bad);
            }
        };
        drop(message);
        self.log.note_block(block.records);
        let end = position(number + 1, 0);
        if !self.is_next(shared, block.origin) {
            self.next = end;
            return Ok(true);
        }
        let mut bytes = block.bytes;
        if number > from {
            self.next = position(number, 0);
        } else if skipped > 0 {
            let mut rest = Vec::from(bytes);
            drop_records(&mut rest, 0, skipped);
            bytes = Bytes::from(rest);
        }
        if bytes.is_empty() {
            self.next = end;
        } else {
            self.rest = Some((bytes, end));
        }
        Ok(true)
    }

    /// Notes the origin of a block; false if the block was read before.
    fn is_next(&mut self, shared: &KafkaShared, origin: BlockOrigin) -> bool {
        let last = self.last.filter(|last| last.run == origin.run);
        let expected = last.map(|last| last.sequence + 1);
        let topic = &self.log.topic;
        match expected {
            Some(expected) if origin.sequence < expected => {
                shared.kafka_metrics.double_blocks.increment(1);
                tracing::warn!(%topic, partition = self.log.index(), position = self.next, "Kafka holds a block twice, it is read once");
                return false;
            }
            Some(expected) if origin.sequence > expected => {
                let missing = origin.sequence - expected;
                shared.kafka_metrics.lost_blocks.increment(missing);
                tracing::error!(%topic, partition = self.log.index(), position = self.next, missing, "acknowledged blocks are missing in Kafka");
            }
            _ => {}
        }
        self.last = Some(origin);
        true
    }

    /// Leaves out a message that is no block, if that is what the operator wants.
    fn discard(
        &mut self,
        shared: &KafkaShared,
        group: &ConsumerGroup,
        number: u64,
        bad: block::BadBlock,
    ) -> Result<bool, ReadFailure> {
        let topic = &self.log.topic;
        if shared.options.discard_damaged && !matches!(bad, block::BadBlock::Version(_)) {
            shared.kafka_metrics.discarded.increment(1);
            tracing::error!(%topic, partition = self.log.index(), message = self.log.offset_of(number), %bad, "left out a message that is no block of the journal");
            self.next = position(number + 1, 0);
            return Ok(true);
        }
        let advice = if matches!(bad, block::BadBlock::Version(_)) {
            "start the newer program that wrote it"
        } else {
            "find out who else writes to this topic, and set `journal.discard-damaged` for one start, which leaves such \
             messages out"
        };
        let (index, number) = (self.log.index(), self.log.offset_of(number));
        let report =
            format!("message {number} of partition {index} of topic {topic}: {bad}. What to do: {advice}");
        // Read again at the next attempt.
        self.stop(group);
        Err(ReadFailure::Other(JournalError::Corrupt(report)))
    }

    fn failure(&self, error: KafkaError) -> ReadFailure {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                ReadFailure::OutOfRange
            }
            code => {
                if code == Some(RDKafkaErrorCode::UnknownTopicOrPartition)
                    || code == Some(RDKafkaErrorCode::UnknownTopic)
                {
                    self.log
                        .is_doubtful
                        .store(true, std::sync::atomic::Ordering::Release);
                }
                ReadFailure::Other(refused(format!("read topic {}", self.log.topic))(error))
            }
        }
    }
}

/// Sleeps until `end`, or for ever if there is none.
async fn sleep_if(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}
