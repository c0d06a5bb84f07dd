//! The path of a device message between its transport and the stores.
//!
//! ```text
//! transport ── QueueProducer::append ──► journal ──► worker ── StoreEffects ──► IngestStore
//!                       ▲                               │ activity
//!                    durable                            ▼
//! ```
//!
//! Transports append records and acknowledge when the journal says they are durable. Workers, one thread each, read the
//! partitions they are assigned in batches, turn the records into effects and store them. Positions are committed to the
//! journal after the store has made effects and position durable together, so a crash replays what was not, and the
//! store makes replaying harmless.
//!
//! # When something fails
//! - The store cannot serve: the batch is tried again until it can; the journal holds what comes meanwhile.
//! - The store refuses a record for good: it is given up, logged and counted, and the others are stored.
//! - A partition cannot be read, or another version of the program wrote a record that this one does not understand: the
//!   partition stands still and is tried again, ever more seldom; the others go on.
//! - The journal has lost what is stored already: the store is set back before the journal gives the positions out again.
//! - The process dies of a record: what was in hand then is taken record by record after the next start, and what the
//!   process has died of twice is set aside (`crate::in_flight`).

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

pub use self::large_records::{AppendSize, LargeRecordPermit};
pub use self::metrics::describe as describe_metrics;
pub use self::processor::{
    DeliveredBatch, DirectProcessor, EffectSink, EffectWriter, ProcessorFactory, RecordProcessor,
};
pub use self::producer::{MAIN_QUEUE, PUSH_TIMEOUT, QueueProducer, partition_index};
pub use self::senders::WaitingTenants;
pub use self::service::{
    ActivityListener, CrashHandling, IngestService, IngestShutdown, IngestStartError, IngestStores,
};
use crate::options::{ByteSize, HumanDuration};

/// Settings of the way from the journal to the stores.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Partitions of the `Main` queue. Fixed when the data directory is created.
    pub partitions: u16,
    /// Threads that move records from the journal to the stores. They divide the partitions among them.
    pub workers: u16,
    /// How much is read from the journal, and stored, at a time.
    pub batch: ByteSize,
    /// How often what was stored is made durable, latest values, attributes and the position in the journal included, and
    /// forgotten in the journal. After a crash about this much is replayed.
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
