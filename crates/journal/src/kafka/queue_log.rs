//! The numbers of queues, and their groups, as lines of a topic.
//!
//! | line | says |
//! |---|---|
//! | `queue 24 7340032 Main` | there is a queue with so many partitions, and a base |
//! | `again 9437184 Main` | the topic of the queue was gone, and begins anew with another base |
//! | `group 0 ingest` | a group consumes queue 0 |
//!
//! The number of a queue is the number of `queue` lines with other names before its first one, which counts. Whoever reads
//! the topic finds the same numbers, whoever else writes to it. Lines are never deleted.
//!
//! Blocks are numbered from the *base* of their queue, which grows with the time at which the topic was created. So a
//! position is never used again: not by a topic that begins anew, and not for what a log of another kind has had, of which
//! stored positions and the ids of messages tell.

use std::collections::BTreeSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fieldline_core::ports::{JournalError, QueueId};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client::{ANSWER_TIMEOUT, JournalContext, consumer_config, producer_config, refused};
use super::topics::{TopicKind, Topics};
use crate::error::invalid;
use crate::options::Options;

const QUEUE: &str = "queue ";
const AGAIN: &str = "again ";
const GROUP: &str = "group ";
/// Blocks that a partition may get in a second without meeting a later base: 2^20.
const BASE_BITS: u32 = 20;
/// How much a base grows at least, where the clock does not say more.
const LEAST_STEP: u64 = 1 << 32;
/// 2020-01-01, seconds.
const EPOCH: u64 = 1_577_836_800;

/// What is known of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueLine {
    pub(crate) queue: QueueId,
    pub(crate) partitions: u16,
    /// The number of the block at offset 0.
    pub(crate) base: u64,
}

/// A base that was never used.
fn new_base() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs().saturating_sub(EPOCH) << BASE_BITS
}

/// What the topic says.
#[derive(Debug, Default)]
pub(crate) struct QueueLog {
    /// Names of queues, their partitions and bases, by their numbers.
    queues: Vec<(String, u16, u64)>,
    /// Groups that have ever consumed a queue.
    pub(crate) groups: BTreeSet<(QueueId, String)>,
    /// The next message to read.
    next: i64,
}

impl QueueLog {
    /// Reads the topic, which is created for the first program.
    pub(crate) fn open(options: &Options, topics: &Topics) -> Result<Self, JournalError> {
        let topic = topics.queue_log();
        if topics.partitions(&topic)?.is_none()
            && let Some(queue) = topics.has_queues()?
        {
            return Err(JournalError::Corrupt(format!(
                "Kafka has topics of queues such as {queue}, but no topic {topic}, which numbers them; restore it, or \
                 delete the topics of queues with all that is in them"
            )));
        }
        topics.ensure(&topic, TopicKind::QueueLog)?;
        let mut log = Self::default();
        log.read(options, &topic)?;
        Ok(log)
    }

    /// Names of all queues.
    pub(crate) fn names(&self) -> Vec<String> {
        self.queues.iter().map(|(name, ..)| name.clone()).collect()
    }

    /// What is known of a queue.
    pub(crate) fn find(&self, name: &str) -> Option<QueueLine> {
        let at = self.queues.iter().position(|(queue, ..)| queue == name)?;
        let (_, partitions, base) = *self.queues.get(at)?;
        u16::try_from(at).ok().map(|at| QueueLine {
            queue: QueueId(at),
            partitions,
            base,
        })
    }

    /// Gives a queue a number, if it has none, and a new base, if its topic begins anew.
    pub(crate) fn add_queue(
        &mut self,
        options: &Options,
        topic: &str,
        (name, partitions): (&str, u16),
        is_again: bool,
    ) -> Result<QueueLine, JournalError> {
        let line = match self.find(name) {
            Some(known) if !is_again => return Ok(known),
            Some(known) => format!("{AGAIN}{} {name}", new_base().max(known.base + LEAST_STEP)),
            None => format!("{QUEUE}{partitions} {} {name}", new_base()),
        };
        if self.queues.len() > usize::from(u16::MAX) {
            return Err(invalid("too many queues".to_owned()));
        }
        write(options, topic, &line)?;
        self.read(options, topic)?;
        self.find(name).ok_or_else(|| {
            invalid(format!(
                "Kafka has lost the line of queue `{name}` in topic {topic}"
            ))
        })
    }

    /// Notes for good that a group consumes a queue.
    pub(crate) fn add_group(
        &mut self,
        options: &Options,
        topic: &str,
        queue: QueueId,
        group: &str,
    ) -> Result<(), JournalError> {
        let key = (queue, group.to_owned());
        if !self.groups.contains(&key) {
            write(options, topic, &format!("{GROUP}{} {group}", queue.0))?;
            self.groups.insert(key);
        }
        Ok(())
    }

    /// Reads from the next line to the end.
    fn read(&mut self, options: &Options, topic: &str) -> Result<(), JournalError> {
        let failed = || refused(format!("read topic {topic}"));
        let mut config = consumer_config(options, &format!("{topic}.reader"));
        config.set("enable.partition.eof", "true");
        let reader: BaseConsumer<JournalContext> =
            BaseConsumer::from_config_and_context(&config, JournalContext::default()).map_err(failed())?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Offset(self.next))
            .map_err(failed())?;
        reader.assign(&list).map_err(failed())?;
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let wait = deadline.saturating_duration_since(Instant::now());
            match reader.poll(wait) {
                Some(Ok(message)) => {
                    self.next = message.offset() + 1;
                    let line = message.payload().map(String::from_utf8_lossy);
                    self.take(line.as_deref().unwrap_or_default());
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                // The library goes on by itself after an error that passes.
                Some(Err(error)) if wait.is_zero() => return Err(failed()(error)),
                Some(Err(_)) => {}
                None if wait.is_zero() => {
                    return Err(invalid(format!(
                        "Kafka did not answer a read of topic {topic} in time"
                    )));
                }
                None => {}
            }
        }
    }

    fn take(&mut self, line: &str) {
        let two = |rest: &str| {
            let (number, rest) = rest.split_once(' ')?;
            Some((number.parse::<u64>().ok()?, rest.to_owned()))
        };
        let queue = line
            .strip_prefix(QUEUE)
            .and_then(two)
            .and_then(|(partitions, rest)| {
                let (base, name) = two(&rest)?;
                Some((name, u16::try_from(partitions).ok()?, base))
            });
        if let Some(queue) = queue {
            if self.find(&queue.0).is_none() {
                self.queues.push(queue);
            }
        } else if let Some((base, name)) = line.strip_prefix(AGAIN).and_then(two) {
            if let Some((.., known)) = self.queues.iter_mut().find(|(queue, ..)| *queue == name) {
                *known = base;
            }
        } else if let Some((queue, group)) = line.strip_prefix(GROUP).and_then(|rest| rest.split_once(' '))
            && let Ok(queue) = queue.parse()
        {
            self.groups.insert((QueueId(queue), group.to_owned()));
        } else {
            tracing::warn!(
                line,
                "a line of the topic of queues means nothing to this program"
            );
        }
    }
}

/// Keeps what became of the one message of a producer.
struct LineContext(JournalContext);

impl rdkafka::client::ClientContext for LineContext {
    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.error(error, reason);
    }
}

impl ProducerContext for LineContext {
    type DeliveryOpaque = Box<std::sync::mpsc::Sender<Option<KafkaError>>>;

    fn delivery(&self, result: &DeliveryResult<'_>, told: Self::DeliveryOpaque) {
        let error = result.as_ref().err().map(|(error, _)| error.clone());
        // Nobody waits any more.
        let _ = told.send(error);
    }
}

/// Writes a line durably.
fn write(options: &Options, topic: &str, line: &str) -> Result<(), JournalError> {
    let failed = || refused(format!("write to topic {topic}"));
    let context = LineContext(JournalContext::default());
    let mut config = producer_config(options);
    // A line that is there twice says the same.
    config.set("enable.idempotence", "false");
    let producer: BaseProducer<LineContext> =
        BaseProducer::from_config_and_context(&config, context).map_err(failed())?;
    let (tell, told) = std::sync::mpsc::channel();
    let record = BaseRecord::<(), str, _>::with_opaque_to(topic, Box::new(tell))
        .partition(0)
        .payload(line);
    producer.send(record).map_err(|(error, _)| failed()(error))?;
    producer.flush(ANSWER_TIMEOUT).map_err(failed())?;
    match told.try_recv() {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(failed()(error)),
        Err(_) => Err(invalid(format!(
            "Kafka did not answer a write to topic {topic} in time"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_name_numbers_it() {
        let mut log = QueueLog::default();
        for line in [
            "queue 4 100 Main",
            "queue 24 200 a/b c",
            "group 1 ingest",
            "queue 5 300 Main",
            "queue many 1 Wrong",
            "queue 1 Wrong",
            "later 5",
            "again 400 a/b c",
            "queue 1 0 Last",
        ] {
            log.take(line);
        }
        let line = |queue, partitions, base| {
            Some(QueueLine {
                queue: QueueId(queue),
                partitions,
                base,
            })
        };
        assert_eq!(log.find("Main"), line(0, 4, 100), "the first line counts");
        assert_eq!(log.find("a/b c"), line(1, 24, 400));
        assert_eq!(log.find("Last"), line(2, 1, 0));
        assert_eq!(log.find("None"), None);
        assert_eq!(
            log.groups.into_iter().collect::<Vec<_>>(),
            [(QueueId(1), "ingest".to_owned())]
        );
    }
}
