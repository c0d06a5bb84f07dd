//! The topics of queues: their names, their creation, and what is asked of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::ports::JournalError;
use futures::executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client::{ANSWER_TIMEOUT, ClientState, JournalContext, config, largest_message, refused};
use super::partition::LogPartition;
use crate::error::invalid;
use crate::options::Options;

/// Longest name of a topic.
const MAX_NAME: usize = 249;
/// Copies of a topic where there are servers enough.
const REPLICATION: usize = 3;
/// How long the servers may take to agree on a new topic.
const CREATION_TIMEOUT: Duration = Duration::from_secs(20);
/// Kafka's own clock says when a block came.
const LOG_APPEND_TIME: &str = "LogAppendTime";
/// No clock is as far ahead as that: a year.
const LONG_MS: i64 = 365 * 86_400_000;
/// How long to wait before they are asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// What a topic is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicKind {
    /// The records of a queue with so many partitions.
    Queue(u16),
    /// The numbers of queues.
    QueueLog,
}

/// Whether servers that agree would answer otherwise.
fn is_passing(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::UnknownPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::NotLeaderForPartition
        )
    )
}

/// The topics, and the client that asks about them.
pub(crate) struct Topics {
    admin: AdminClient<JournalContext>,
    state: Arc<ClientState>,
    options: Options,
}

impl Topics {
    pub(crate) fn new(options: &Options) -> Result<Self, JournalError> {
        let context = JournalContext::default();
        let state = Arc::clone(&context.0);
        let admin = AdminClient::from_config_and_context(&config(&options.kafka), context)
            .map_err(refused("make a client of Kafka"))?;
        Ok(Self {
            admin,
            state,
            options: options.clone(),
        })
    }

    /// The name of the topic with the numbers of queues.
    pub(crate) fn queue_log(&self) -> String {
        format!("{}.queues", self.options.kafka.prefix)
    }

    /// The begin of the names of topics of queues.
    fn queue_prefix(&self) -> String {
        format!("{}.q.", self.options.kafka.prefix)
    }

    /// The name of the topic of a queue: letters, digits and dashes stand for themselves, and what separates a tenant
    /// from its queue is a dot.
    pub(crate) fn of_queue(&self, name: &str) -> Result<String, JournalError> {
        let mut topic = self.queue_prefix();
        for byte in name.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => topic.push(char::from(byte)),
                b'/' => topic.push('.'),
                _ => topic.push_str(&format!("_{byte:02X}")),
            }
        }
        if name.is_empty() || topic.len() > MAX_NAME {
            return Err(invalid(format!(
                "queue `{}` has no name that Kafka takes: at most {MAX_NAME} bytes are allowed, {} were needed",
                name.escape_debug(),
                topic.len()
            )));
        }
        Ok(topic)
    }

    /// Whether Kafka answers within a time.
    pub(crate) fn answers(&self, within: Duration) -> Result<(), KafkaError> {
        self.state
            .is_cut_off
            .store(false, std::sync::atomic::Ordering::Release);
        self.admin
            .inner()
            .fetch_metadata(Some(&self.queue_log()), within)
            .map(drop)
    }

    /// The number of partitions of a topic; `None` if there is no such topic.
    pub(crate) fn partitions(&self, topic: &str) -> Result<Option<u16>, JournalError> {
        let failed = || refused(format!("ask Kafka about topic {topic}"));
        let metadata = self
            .admin
            .inner()
            .fetch_metadata(Some(topic), ANSWER_TIMEOUT)
            .map_err(failed())?;
        let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
            return Ok(None);
        };
        match found.error().map(RDKafkaErrorCode::from) {
            None => {}
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                return Ok(None);
            }
            // A new topic has no leaders for a moment.
            Some(RDKafkaErrorCode::LeaderNotAvailable) => return Ok(Some(0)),
            Some(code) => return Err(failed()(KafkaError::MetadataFetch(code))),
        }
        let has_leaders = found.partitions().iter().all(|partition| partition.leader() >= 0);
        let count = u16::try_from(found.partitions().len())
            .map_err(|_| invalid(format!("topic {topic} has too many partitions")))?;
        Ok(Some(if has_leaders { count } else { 0 }))
    }

    /// Whether there are topics of queues.
    pub(crate) fn has_queues(&self) -> Result<Option<String>, JournalError> {
        let prefix = self.queue_prefix();
        let metadata = self
            .admin
            .inner()
            .fetch_metadata(None, ANSWER_TIMEOUT)
            .map_err(refused("ask Kafka about its topics"))?;
        let mut names = metadata.topics().iter().map(|topic| topic.name().to_owned());
        Ok(names.find(|name| name.starts_with(&prefix)))
    }

    /// Creates a topic if it does not exist; returns its number of partitions, and whether it is new.
    pub(crate) fn ensure(&self, topic: &str, kind: TopicKind) -> Result<(u16, bool), JournalError> {
        let mut is_new = false;
        if self.partitions(topic)?.is_none() {
            is_new = self.create(topic, kind)?;
        }
        let deadline = Instant::now() + CREATION_TIMEOUT;
        loop {
            match self.partitions(topic)? {
                Some(count) if count > 0 => {
                    self.check(topic, kind)?;
                    return Ok((count, is_new));
                }
                _ if Instant::now() < deadline => std::thread::sleep(RETRY_PAUSE),
                _ => {
                    return Err(invalid(format!(
                        "topic {topic} has partitions without a leader in Kafka"
                    )));
                }
            }
        }
    }

    /// Creates a topic; false if somebody else has done so meanwhile.
    fn create(&self, topic: &str, kind: TopicKind) -> Result<bool, JournalError> {
        let kafka = &self.options.kafka;
        let metadata = self
            .admin
            .inner()
            .fetch_metadata(Some(&self.queue_log()), ANSWER_TIMEOUT)
            .map_err(refused("ask Kafka about its servers"))?;
        let copies = match kafka.replication {
            Some(copies) => usize::from(copies),
            None => metadata.brokers().len().clamp(1, REPLICATION),
        };
        let needed = match kafka.min_in_sync {
            Some(needed) => usize::from(needed),
            None => 1 + usize::from(copies >= REPLICATION),
        };
        let partitions = match kind {
            TopicKind::Queue(partitions) => i32::from(partitions),
            TopicKind::QueueLog => 1,
        };
        let (needed, largest) = (needed.to_string(), largest_message(&self.options).to_string());
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(copies as i32))
            .set("min.insync.replicas", &needed)
            .set("cleanup.policy", "delete")
            .set("retention.ms", "-1")
            .set("retention.bytes", "-1")
            .set("compression.type", "producer")
            // By the times of senders, blocks of a machine whose clock is ahead would be refused.
            .set("message.timestamp.type", LOG_APPEND_TIME)
            .set("segment.bytes", "134217728")
            .set("max.message.bytes", &largest);
        let context = format!("create topic {topic} in Kafka");
        let created =
            block_on(self.admin.create_topics([&new], &self.timeouts())).map_err(refused(context.clone()))?;
        match created.into_iter().next() {
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(false),
            Some(Err((_, code))) => Err(refused(context)(KafkaError::AdminOp(code))),
            Some(Ok(_)) | None => {
                tracing::info!(topic, partitions, copies, needed, "created a topic in Kafka");
                Ok(true)
            }
        }
    }

    /// Warns of settings of a topic that keep less than the journal promises, and refuses those that cannot work.
    fn check(&self, topic: &str, kind: TopicKind) -> Result<(), JournalError> {
        let asked = [ResourceSpecifier::Topic(topic)];
        let described = match block_on(self.admin.describe_configs(&asked, &self.timeouts())) {
            Ok(mut resources) => resources.pop(),
            Err(error) => {
                tracing::warn!(topic, %error, "cannot read the settings of a topic, they are not checked");
                return Ok(());
            }
        };
        let settings = match described {
            Some(Ok(settings)) => settings,
            other => {
                let error = other.and_then(Result::err);
                tracing::warn!(
                    topic,
                    ?error,
                    "cannot read the settings of a topic, they are not checked"
                );
                return Ok(());
            }
        };
        let text = |key: &str| settings.get(key).and_then(|entry| entry.value.clone());
        let number = |key: &str| text(key).and_then(|text| text.parse::<i64>().ok());
        let largest = largest_message(&self.options) as i64;
        if let Some(limit) = number("max.message.bytes").filter(|limit| *limit < largest) {
            return Err(invalid(format!(
                "topic {topic} takes messages of at most {limit} bytes, `journal.max-append` needs {largest}: raise the \
                 topic's max.message.bytes"
            )));
        }
        if text("cleanup.policy").is_some_and(|policy| policy != "delete") {
            return Err(invalid(format!(
                "topic {topic} must have cleanup.policy=delete, Kafka would drop records that are not consumed"
            )));
        }
        for key in ["retention.ms", "retention.bytes"] {
            if let Some(limit) = number(key).filter(|limit| *limit >= 0) {
                tracing::warn!(
                    topic,
                    limit,
                    "{key} of a topic is set: Kafka deletes records that are not stored yet once storing is that far behind"
                );
            }
        }
        let is_stamped = text("message.timestamp.type").is_none_or(|kind| kind == LOG_APPEND_TIME);
        // Unlimited before version 4 of Kafka.
        let allowed = number("message.timestamp.after.max.ms").filter(|allowed| *allowed < LONG_MS);
        if let Some(ahead_ms) = allowed.filter(|_| !is_stamped) {
            tracing::warn!(
                topic,
                ahead_ms,
                "Kafka refuses all records of a topic while this machine's clock is that far ahead of its own: set the topic's \
                 message.timestamp.type to LogAppendTime"
            );
        }
        let copies = self.copies(topic);
        let needed = number("min.insync.replicas").unwrap_or(1);
        if kind != TopicKind::QueueLog && copies.is_some_and(|copies| copies > 1 && needed < 2) {
            tracing::warn!(
                topic,
                ?copies,
                needed,
                "min.insync.replicas of a topic is 1: what one server alone has taken is acknowledged, and is lost with it"
            );
        }
        Ok(())
    }

    /// The number of copies of a topic's first partition.
    fn copies(&self, topic: &str) -> Option<usize> {
        let metadata = self
            .admin
            .inner()
            .fetch_metadata(Some(topic), ANSWER_TIMEOUT)
            .ok()?;
        let topic = metadata.topics().first()?;
        Some(topic.partitions().first()?.replicas().len())
    }

    /// The offset of the first block of a partition, and that after the last one.
    pub(crate) fn bounds(&self, topic: &str, partition: i32) -> Result<(u64, u64), JournalError> {
        let deadline = Instant::now() + CREATION_TIMEOUT;
        let (first, end) = loop {
            let told = self
                .admin
                .inner()
                .fetch_watermarks(topic, partition, ANSWER_TIMEOUT);
            match told {
                Ok(ends) => break ends,
                // Not all servers know of a new topic, or of a new leader, at the same time.
                Err(error) if is_passing(&error) && Instant::now() < deadline => {
                    std::thread::sleep(RETRY_PAUSE);
                }
                Err(error) => {
                    return Err(refused(format!("ask Kafka for the ends of topic {topic}"))(error));
                }
            }
        };
        let number = |offset: i64| u64::try_from(offset).unwrap_or(0);
        Ok((number(first), number(end)))
    }

    /// Deletes blocks before others; returns the partitions where this failed.
    pub(crate) fn trim(
        &self,
        blocks: &[(Arc<LogPartition>, u64)],
    ) -> Result<Vec<(Arc<LogPartition>, KafkaError)>, KafkaError> {
        let mut list = TopicPartitionList::new();
        for (log, block) in blocks {
            list.add_partition_offset(&log.topic, log.index(), Offset::Offset(log.offset_of(*block)))?;
        }
        let done = block_on(self.admin.delete_records(&list, &self.timeouts()))?;
        let mut failed = Vec::new();
        for (log, _) in blocks {
            let Some(entry) = done.find_partition(&log.topic, log.index()) else {
                continue;
            };
            match (entry.error(), entry.offset()) {
                (Err(error), _) => failed.push((Arc::clone(log), error)),
                (Ok(()), Offset::Offset(first)) => log.trimmed_to(log.block_at(first)),
                (Ok(()), _) => {}
            }
        }
        Ok(failed)
    }

    fn timeouts(&self) -> AdminOptions {
        AdminOptions::new()
            .request_timeout(Some(ANSWER_TIMEOUT))
            .operation_timeout(Some(ANSWER_TIMEOUT))
    }
}
