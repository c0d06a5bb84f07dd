//! The path of a device message from its transport to the stores.
//!
//! ```text
//! transport ── QueueProducer::append ──► journal ──► worker ── StoreEffects ──► IngestStore
//!                       ▲                               │ activity
//!                    durable                            ▼
//! ```
//!
//! Transports append records and acknowledge them once the journal reports them durable. Workers, one thread each, read
//! batches from their partitions, turn the records into effects and store them. A position is committed to the journal
//! after the store has made the effects and the position durable together. A crash therefore replays only the records
//! that were not stored, and the store makes replays harmless.
//!
//! # When something fails
//! - The store is unavailable: the worker retries the batch until it succeeds; the journal buffers new records
//!   meanwhile.
//! - The store refuses a record permanently: the record is given up, logged and counted; the others are stored.
//! - A partition cannot be read, or it holds a record of another program version that this one does not understand: the
//!   partition stops and is retried at growing intervals; the others continue.
//! - The journal has lost records that are already stored: the store is rewound before the journal reuses the
//!   positions.
//! - A record crashes the process: after the next start, the records that were in flight are processed one by one, and
//!   a record that has crashed the process twice is set aside (`crate::in_flight`).

mod batch;
mod crash_recovery;
mod lag;
mod large_records;
mod metrics;
mod processor;
mod producer;
mod senders;
mod service;
mod worker;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::large_records::{AppendSize, LargeRecordPermit, TenantBacklog};
pub use self::metrics::describe as describe_metrics;
pub use self::processor::{
    DeliveredBatch, DirectProcessor, EffectSink, EffectWriter, ProcessorFactory, RecordProcessor,
};
pub use self::producer::{MAIN_QUEUE, PUSH_TIMEOUT, QueueProducer, partition_index};
pub use self::senders::WaitingTenants;
pub use self::service::{
    ActivityListener, CrashHandling, GROUP, IngestService, IngestShutdown, IngestStartError, IngestStores,
};
use crate::options::{ByteSize, HumanDuration};

/// Settings of the path from the journal to the stores.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Partitions of the `Main` queue. Fixed when the data directory is created.
    pub partitions: u16,
    /// Threads that move records from the journal to the stores. The partitions are divided among them.
    pub workers: u16,
    /// Bytes read from the journal, and stored, at a time.
    pub batch: ByteSize,
    /// How often stored data is made durable, including latest values, attributes and the journal position, so that the
    /// journal can delete the records. A crash replays about this much.
    pub checkpoint_interval: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            partitions: 4,
            workers: 2,
            batch: ByteSize::mib(1),
            checkpoint_interval: HumanDuration::secs(1),
        }
    }
}

#[cfg(test)]
mod tests;
mod waiting_lines;
