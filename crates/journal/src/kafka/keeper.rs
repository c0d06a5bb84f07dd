//! What is done once a second: positions go to Kafka, consumed blocks are deleted, and Kafka is asked whether it is there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fieldline_core::logging::LogGate;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::partition::LogPartition;
use super::shared::KafkaShared;
use super::topics::TopicKind;

const TICK: Duration = Duration::from_secs(1);
/// How often consumed blocks are deleted.
const TRIM_EVERY: Duration = Duration::from_secs(10);
/// How often Kafka is asked whether it is there, while nothing is under way.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// How long it has for an answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the last positions may take at the end.
const LAST_POSITIONS: Duration = Duration::from_secs(2);
static COMMIT_GATE: LogGate = LogGate::new(1);

/// Runs until the sender of `stop` is dropped.
pub(crate) fn run(shared: &Arc<KafkaShared>, stop: &Receiver<()>) {
    let mut keeper = Keeper {
        shared,
        down_since: None,
        probed: Instant::now(),
        trimmed: Instant::now(),
        may_trim: true,
    };
    while stop.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        keeper.look();
    }
    let groups: Vec<_> = shared.groups.lock().values().cloned().collect();
    if keeper.down_since.is_none() {
        for group in groups {
            group.flush(LAST_POSITIONS);
        }
    }
}

struct Keeper<'a> {
    shared: &'a Arc<KafkaShared>,
    down_since: Option<Instant>,
    probed: Instant,
    trimmed: Instant,
    /// False once Kafka has said that this program must not delete records.
    may_trim: bool,
}

impl Keeper<'_> {
    fn look(&mut self) {
        self.store_positions();
        self.probe();
        if self.down_since.is_none() {
            self.refresh_doubtful();
            if self.trimmed.elapsed() >= TRIM_EVERY {
                self.trimmed = Instant::now();
                self.trim();
            }
        }
        self.shared.update_log_size();
    }

    fn store_positions(&self) {
        let groups: Vec<_> = self.shared.groups.lock().values().cloned().collect();
        for group in groups {
            if let Err(error) = group.store()
                && let Some(suppressed) = COMMIT_GATE.open()
            {
                tracing::warn!(%error, suppressed, "cannot send positions to Kafka");
            }
        }
    }

    /// Finds out whether Kafka answers, and tells when that changes.
    fn probe(&mut self) {
        let waits = self
            .shared
            .outbox
            .lock()
            .oldest()
            .is_some_and(|since| since.elapsed() >= TICK);
        if self.down_since.is_none() && !waits && self.probed.elapsed() < PROBE_EVERY {
            return;
        }
        let begun = Instant::now();
        self.probed = begun;
        let answer = self.shared.topics.answers(PROBE_TIMEOUT);
        match (answer, self.down_since) {
            (Ok(()), Some(since)) => {
                self.down_since = None;
                tracing::info!(seconds = since.elapsed().as_secs(), "Kafka answers again");
            }
            (Err(error), None) => {
                self.down_since = Some(begun);
                let servers = self.shared.options.kafka.servers.as_deref().unwrap_or_default();
                tracing::error!(servers, %error, "Kafka does not answer: devices are acknowledged once it does again");
            }
            _ => {}
        }
        let is_up = self.down_since.is_none();
        self.shared.is_down.store(!is_up, Ordering::Release);
        self.shared
            .kafka_metrics
            .reachable
            .set(f64::from(u8::from(is_up)));
    }

    /// Asks Kafka about partitions of which something unexpected was heard, and creates topics that are gone.
    fn refresh_doubtful(&self) {
        let doubtful: Vec<Arc<LogPartition>> = {
            let table = self.shared.table.read();
            let all = table.all().iter();
            all.filter(|log| log.is_doubtful.load(Ordering::Acquire))
                .cloned()
                .collect()
        };
        for log in doubtful {
            if let Ok(None) = self.shared.topics.partitions(&log.topic) {
                tracing::error!(topic = %log.topic, "a topic of the journal is gone from Kafka with all that was in it, creating it again");
                let partitions = self.shared.table.read().queue(log.partition.queue).len() as u16;
                let kind = TopicKind::Queue(partitions);
                if let Err(error) = self.shared.topics.ensure(&log.topic, kind) {
                    tracing::error!(topic = %log.topic, %error, "cannot create the topic");
                    continue;
                }
            }
            match self.shared.refresh(&log) {
                Ok(()) => {
                    for group in self.shared.groups.lock().values() {
                        group.clamp(&log);
                    }
                }
                Err(error) => {
                    tracing::debug!(topic = %log.topic, %error, "cannot read the ends of a partition");
                }
            }
        }
    }

    /// Deletes blocks that all groups have consumed a while ago.
    fn trim(&mut self) {
        let Some(before) = Instant::now().checked_sub(self.shared.options.kafka.trim_after.0) else {
            return;
        };
        if !self.may_trim {
            return;
        }
        let blocks = self.trimmable(before);
        if blocks.is_empty() {
            return;
        }
        match self.shared.topics.trim(&blocks) {
            Ok(failed) => {
                for (log, error) in failed {
                    self.trim_failed(&log, &error);
                }
            }
            Err(error) => tracing::warn!(%error, "cannot delete consumed blocks in Kafka"),
        }
    }

    fn trimmable(&self, before: Instant) -> Vec<(Arc<LogPartition>, u64)> {
        let logs: Vec<_> = self.shared.table.read().all().to_vec();
        let queues = self.shared.queue_log.lock();
        let groups = self.shared.groups.lock();
        let mut blocks = Vec::new();
        for log in logs {
            let Some(block) = log.trimmable(before) else {
                continue;
            };
            // A group that this program does not serve may still need all of it.
            let of_queue = queues
                .groups
                .iter()
                .filter(|(queue, _)| *queue == log.partition.queue);
            let needed = of_queue
                .map(|(_, group)| {
                    groups
                        .get(group)
                        .and_then(|group| group.consumed(log.partition))
                        .unwrap_or(0)
                })
                .min()
                .unwrap_or(0);
            if block.min(needed) > log.first() {
                blocks.push((log, block.min(needed)));
            }
        }
        blocks
    }

    fn trim_failed(&mut self, log: &LogPartition, error: &KafkaError) {
        match error.rdkafka_error_code() {
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::PolicyViolation,
            ) => {
                self.may_trim = false;
                tracing::warn!(topic = %log.topic, %error, "this program must not delete records in Kafka: set retention.ms of the journal's topics, or they grow for ever");
            }
            _ => {
                log.is_doubtful.store(true, Ordering::Release);
                tracing::warn!(topic = %log.topic, partition = log.index(), %error, "cannot delete consumed blocks in Kafka");
            }
        }
    }
}
