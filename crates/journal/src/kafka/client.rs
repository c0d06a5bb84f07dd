//! Clients of Kafka: their settings, and what they tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::JournalError;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::TopicPartitionList;

use super::options::{KafkaOptions, SaslMechanism};
use crate::error::failed;
use crate::options::Options;

/// How long an answer of Kafka is waited for.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Room in a message beside the records of a block.
const MESSAGE_SLACK: usize = 64 << 10;
static LOG_GATE: LogGate = LogGate::new(1);

/// The largest message that the journal sends.
pub(crate) fn largest_message(options: &Options) -> usize {
    // A block is larger than the largest append only where that is smaller than a block.
    options.max_append.as_usize().max(512 << 10) + MESSAGE_SLACK
}

/// What a client tells, for whoever owns it.
#[derive(Debug, Default)]
pub(crate) struct ClientState {
    /// A fatal error: the client does no more.
    pub(crate) is_dead: AtomicBool,
    /// No server can be reached.
    pub(crate) is_cut_off: AtomicBool,
    /// Commits of positions that Kafka has answered.
    pub(crate) commits: AtomicUsize,
    /// A commit of positions was refused.
    pub(crate) commit_failed: AtomicBool,
}

/// Receives what the library tells.
#[derive(Debug, Clone, Default)]
pub(crate) struct JournalContext(pub(crate) Arc<ClientState>);

impl ClientContext for JournalContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // The library repeats for each server and attempt what the keeper tells once.
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                if let Some(suppressed) = LOG_GATE.open() {
                    tracing::warn!(facility, suppressed, "Kafka: {message}");
                }
            }
            _ => tracing::debug!(facility, "Kafka: {message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::Fatal) => self.0.is_dead.store(true, Ordering::Release),
            Some(RDKafkaErrorCode::AllBrokersDown) => self.0.is_cut_off.store(true, Ordering::Release),
            _ => {}
        }
        tracing::debug!(%error, "Kafka: {reason}");
    }
}

impl ConsumerContext for JournalContext {
    fn commit_callback(&self, outcome: rdkafka::error::KafkaResult<()>, _: &TopicPartitionList) {
        if let Err(error) = outcome {
            tracing::debug!(%error, "Kafka did not take positions");
            self.0.commit_failed.store(true, Ordering::Release);
        }
        self.0.commits.fetch_add(1, Ordering::AcqRel);
    }
}

/// Settings of all clients.
pub(crate) fn config(options: &KafkaOptions) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set(
            "bootstrap.servers",
            options.servers.as_deref().unwrap_or_default(),
        )
        .set("client.id", "fieldline")
        .set("allow.auto.create.topics", "false")
        .set("socket.timeout.ms", "10000")
        .set("socket.keepalive.enable", "true")
        .set("socket.nagle.disable", "true")
        .set("reconnect.backoff.ms", "100")
        .set("reconnect.backoff.max.ms", "1000")
        .set("topic.metadata.refresh.interval.ms", "30000")
        .set("log.connection.close", "false")
        .set_log_level(RDKafkaLogLevel::Warning);
    let protocol = match (options.tls, options.username.is_some()) {
        (false, false) => "plaintext",
        (false, true) => "sasl_plaintext",
        (true, false) => "ssl",
        (true, true) => "sasl_ssl",
    };
    config.set("security.protocol", protocol);
    let files = [
        ("ssl.ca.location", &options.ca),
        ("ssl.certificate.location", &options.certificate),
        ("ssl.key.location", &options.private_key),
    ];
    for (key, file) in files {
        if let Some(file) = file {
            config.set(key, file.to_string_lossy());
        }
    }
    if let (Some(username), Some(password)) = (&options.username, &options.password) {
        let mechanism = match options.sasl_mechanism {
            SaslMechanism::Plain => "PLAIN",
            SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
            SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
        };
        config
            .set("sasl.mechanism", mechanism)
            .set("sasl.username", username)
            .set("sasl.password", password);
    }
    config
}

/// Settings of producers. Messages wait as long as it takes: their senders do, too.
pub(crate) fn producer_config(options: &Options) -> ClientConfig {
    let mut config = config(&options.kafka);
    // What is pending, and the headers of its blocks; the outbox is what bounds it.
    let queue_kib = ((2 * options.max_pending.0) >> 10).clamp(1 << 10, 2_097_151);
    config
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "0")
        .set("message.timeout.ms", "0")
        .set("retry.backoff.ms", "100")
        .set("topic.metadata.propagation.max.ms", "5000")
        .set("compression.type", "none")
        .set("message.max.bytes", largest_message(options).to_string())
        .set("queue.buffering.max.messages", "1000000")
        .set("queue.buffering.max.kbytes", queue_kib.to_string());
    config
}

/// Settings of the client of a group.
pub(crate) fn consumer_config(options: &Options, group: &str) -> ClientConfig {
    let mut config = config(&options.kafka);
    let fetch = options.kafka.fetch_memory;
    let message = largest_message(options);
    config
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "error")
        .set("isolation.level", "read_uncommitted")
        .set("check.crcs", "true")
        .set("fetch.min.bytes", "16384")
        .set("fetch.wait.max.ms", "20")
        .set("fetch.error.backoff.ms", "200")
        .set("fetch.queue.backoff.ms", "10")
        .set("queued.min.messages", "1000")
        .set("queued.max.messages.kbytes", (fetch.0 >> 10).max(1).to_string())
        .set("fetch.message.max.bytes", (fetch.0 / 2).to_string())
        .set("fetch.max.bytes", (message.max(16 << 20)).to_string())
        .set(
            "receive.message.max.bytes",
            (message.max(16 << 20) + (1 << 20)).to_string(),
        );
    config
}

/// Converts an error of the library to the port's.
pub(crate) fn refused(context: impl Into<String>) -> impl FnOnce(KafkaError) -> JournalError {
    let context = context.into();
    move |error| failed(context)(std::io::Error::other(error))
}
