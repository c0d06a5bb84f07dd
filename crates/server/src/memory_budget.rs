//! The memory that the settings allow the server to use.

use fieldline_broker::BrokerAccess;
use fieldline_core::options::ByteSize;
use fieldline_entities::broker_access;
use fieldline_journal::JournalKind;
use metrics::{Unit, describe_gauge, gauge};
use tracing::info;

use crate::config::Config;

/// Name of the metric with the sum.
const BUDGET: &str = "fieldline_memory_budget_bytes";
/// Keyspaces of the time-series store, and the most memtables of each at a time.
const MEMTABLES: u64 = 5 * 3;
/// The connection that writes entities, besides the readers.
const WRITERS: u64 = 1;
/// Bytes of a response that each HTTP connection may hold uncounted, as it is short.
const CONNECTION_ANSWER_BYTES: u64 = 64 << 10;

/// Queues that every installation has on Kafka, with its lanes.
const QUEUES: u64 = 4;

/// A part of the memory: the setting that sizes it, and bytes.
type BudgetPart = (&'static str, u64);

/// Returns the parts that the settings size.
fn parts(config: &Config) -> Vec<BudgetPart> {
    let api = &config.api;
    let series = &config.series;
    let connections = u64::from(config.sql.readers + config.sql.list_readers) + WRITERS;
    let mut parts = vec![
        ("api.answer-memory", api.answer_memory.0),
        ("public images", fieldline_api::PUBLIC_MEMORY.0),
        ("api.request-memory", api.request_memory.0),
        ("api.socket-memory", api.socket_memory.0),
        ("api.query-memory", api.query_memory.0),
        // Once for bodies, once for their records.
        ("http.device-body-memory", 2 * config.http.device_body_memory.0),
        (
            "http.max-connections",
            config.http.max_connections as u64 * CONNECTION_ANSWER_BYTES,
        ),
        ("mqtt.partial-memory", config.mqtt.partial_memory.0),
        ("mqtt.chunk-memory", config.mqtt.chunk_memory.0),
        ("coap.block-memory", config.coap.block_memory.0),
        // One block is written while the next one fills, and the platform's own appends may take a quarter more.
        ("journal.max-pending", 2 * config.journal.max_pending.0 * 5 / 4),
        ("journal.kafka.fetch-memory", fetch_memory(config)),
        ("rules.script-memory", config.rules.script_bytes()),
        (
            "rules.script-waiting-total-bytes",
            config.rules.script_waiting_total_bytes.0,
        ),
        ("rules.lanes.backlog", config.rules.lanes.total_backlog()),
        ("series.block-cache", series.block_cache.0),
        ("series.memtable", MEMTABLES * series.memtable.0),
        ("series.cells-cache", 2 * series.cells_cache.0),
        ("sql.page-cache", connections * config.sql.page_cache.0),
        ("ota.cache", config.ota.cache.0),
        ("previews of images", fieldline_entities::services::PREVIEW_MEMORY),
        ("credentials of broker clients", client_credentials(config)),
    ];
    if config.broker.is_enabled() {
        parts.push(("broker.partial-memory", config.broker.partial_memory.0));
    }
    parts
}

/// What log-ins of clients of the broker take that have credentials of their own.
fn client_credentials(config: &Config) -> u64 {
    let broker = &config.broker;
    if broker.is_enabled() && broker.access == BrokerAccess::Credentials {
        broker_access::MEMORY
    } else {
        0
    }
}

/// Bytes that were fetched from Kafka: each partition may exceed its part by the last half of it that is fetched.
fn fetch_memory(config: &Config) -> u64 {
    let kafka = &config.journal.kafka;
    match config.journal.kind {
        JournalKind::Embedded => 0,
        JournalKind::Kafka => QUEUES * u64::from(kafka.partitions) * kafka.fetch_memory.0 * 3 / 2,
    }
}

/// Returns the sum of all parts.
pub(crate) fn total(config: &Config) -> ByteSize {
    let sum = parts(config)
        .iter()
        .fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    ByteSize(sum)
}

/// Logs how much memory the settings allow, setting by setting.
pub(crate) fn announce(config: &Config) {
    let of = parts(config)
        .into_iter()
        .map(|(name, bytes)| format!("{name} {}", ByteSize(bytes)));
    describe_gauge!(
        BUDGET,
        Unit::Bytes,
        "Sum of all that the settings let the server hold in memory"
    );
    gauge!(BUDGET).set(total(config).0 as f64);
    info!(
        total = %total(config),
        bytes = total(config).0,
        of = of.collect::<Vec<_>>().join(", "),
        "memory budget"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_follows_the_settings_and_fits_a_small_server() {
        let mut config = Config::default();
        let before = total(&config).0;
        assert!(before < ByteSize::gib(4).0, "{before}");
        config.api.answer_memory = ByteSize(config.api.answer_memory.0 + 1_000);
        config.http.device_body_memory = ByteSize(config.http.device_body_memory.0 + 1_000);
        assert_eq!(total(&config).0, before + 3_000);
        let before = total(&config).0;
        config.broker.listen = Some(([127, 0, 0, 1], 0).into());
        assert!(total(&config).0 >= before + config.broker.partial_memory.0);
    }
}
