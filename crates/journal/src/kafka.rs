//! The journal on Kafka: the same promises, kept by servers.
//!
//! ```text
//! appends ──► outbox, by partition ──► sender: a block a partition ──► Kafka, acks=all ──► acknowledgements
//!                                                                        │
//!             consumers ◄── one client a group, a queue of blocks a partition
//! ```
//!
//! A message of Kafka is a *block* of many records ([`block`]), as a block of the embedded log is: what arrives while the
//! last one is under way goes with the next. The topic of a queue has the same partitions as the queue; the producer is
//! idempotent and never gives up what waits for it, so that a broker that is away holds acknowledgements back and loses
//! none.
//!
//! - A position is the offset of the block times 4,096, plus the number of the record in it. There are gaps.
//! - Queues are numbered by the order of their lines in a topic of their own ([`queue_log`]), which is the same for all
//!   who read it. Stored positions depend on these numbers.
//! - Positions of groups are Kafka's own, for its tools and as the lower bound of what is kept. Records are deleted
//!   behind them by [`keeper`], not by time.
//! - Memory: what waits is bounded by [`Options::max_pending`](crate::Options::max_pending), of which no tenant's
//!   devices get all, and what was fetched by [`KafkaOptions::fetch_memory`] a partition.

mod options;

#[cfg(feature = "kafka")]
mod block;
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod consumer;
#[cfg(feature = "kafka")]
mod group;
#[cfg(feature = "kafka")]
mod handle;
#[cfg(feature = "kafka")]
mod keeper;
#[cfg(feature = "kafka")]
mod metrics;
#[cfg(feature = "kafka")]
mod outbox;
#[cfg(feature = "kafka")]
mod partition;
#[cfg(feature = "kafka")]
mod queue_log;
#[cfg(feature = "kafka")]
mod sender;
#[cfg(feature = "kafka")]
mod shared;
#[cfg(feature = "kafka")]
mod topics;

#[cfg(feature = "kafka")]
pub use handle::KafkaJournal;
pub use options::{KafkaOptions, SaslMechanism};
