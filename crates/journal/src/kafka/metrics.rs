//! Metrics that only the journal on Kafka has.

use metrics::{Counter, Gauge};

/// Whether the servers answer.
const REACHABLE: &str = "fieldline_journal_kafka_reachable";
/// Blocks that were not written.
const FAILED_BLOCKS: &str = "fieldline_journal_kafka_failed_blocks_total";
/// Producers that had to be replaced.
const REBUILDS: &str = "fieldline_journal_kafka_producer_rebuilds_total";
/// Blocks that are missing between two others.
const LOST_BLOCKS: &str = "fieldline_journal_kafka_lost_blocks_total";
/// Blocks that were written twice.
const DOUBLE_BLOCKS: &str = "fieldline_journal_kafka_double_blocks_total";
/// Partitions that began anew.
const SET_BACK: &str = "fieldline_journal_kafka_set_back_total";
/// Messages of topics that are no blocks.
const DISCARDED: &str = "fieldline_journal_kafka_discarded_messages_total";

#[derive(Debug)]
pub(crate) struct KafkaMetrics {
    pub(crate) reachable: Gauge,
    pub(crate) failed_blocks: Counter,
    pub(crate) rebuilds: Counter,
    pub(crate) lost_blocks: Counter,
    pub(crate) double_blocks: Counter,
    pub(crate) set_back: Counter,
    pub(crate) discarded: Counter,
}

impl KafkaMetrics {
    pub(crate) fn describe() -> Self {
        metrics::describe_gauge!(REACHABLE, "1 while Kafka answers");
        metrics::describe_counter!(
            FAILED_BLOCKS,
            "Blocks that Kafka refused; their senders were not acknowledged"
        );
        metrics::describe_counter!(
            REBUILDS,
            "How often the producer had to be replaced after a fatal error"
        );
        metrics::describe_counter!(
            LOST_BLOCKS,
            "Acknowledged blocks that are missing in Kafka between two others"
        );
        metrics::describe_counter!(DOUBLE_BLOCKS, "Blocks that Kafka holds twice; they are read once");
        metrics::describe_counter!(
            SET_BACK,
            "Partitions that Kafka numbers anew, because their topic was created again or has lost its end"
        );
        metrics::describe_counter!(
            DISCARDED,
            "Messages in topics of the journal that are no blocks of it and were left out"
        );
        Self {
            reachable: metrics::gauge!(REACHABLE),
            failed_blocks: metrics::counter!(FAILED_BLOCKS),
            rebuilds: metrics::counter!(REBUILDS),
            lost_blocks: metrics::counter!(LOST_BLOCKS),
            double_blocks: metrics::counter!(DOUBLE_BLOCKS),
            set_back: metrics::counter!(SET_BACK),
            discarded: metrics::counter!(DISCARDED),
        }
    }
}
