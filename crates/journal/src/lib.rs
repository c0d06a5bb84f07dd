//! The journal: a durable, partitioned log in the files of one node, or on Kafka ([`kafka`]).
//!
//! ```text
//! appends ──► pending, by partition ──► committer: one block, one write, one fdatasync ──► acknowledgements
//!                                           │
//!                                           ▼
//!             consumers ◄── segments  00000000000000000001.log  00000000000000004711.log  …
//! ```
//!
//! All partitions of all queues share one physical log, so that a single write and fdatasync serves all pending appends
//! ([`format`] describes the bytes). Consumers follow their partitions through the blocks with positioned reads and
//! skip the sections of others.
//!
//! Guarantees:
//! - An append is acknowledged when its block is durable as the [`Durability`] setting says. A failed write or
//!   fdatasync stops the journal until the program is restarted; it is never repeated. A full disk refuses appends and
//!   keeps the acknowledged ones; the journal recovers from it without a restart.
//! - A start truncates an unfinished write at the end. It reports damage before that and refuses to go on; see
//!   [`Options::discard_damaged`] for the way out.
//! - Segments are deleted when every group that ever consumed has committed past them.
//! - Memory is bounded by [`Options::max_pending`], disk space by [`Options::max_bytes`]; at either limit appends are
//!   refused as busy until there is room. Appends of the platform itself may exceed the limit by
//!   [`Options::internal_reserve`], because the log often shrinks only after them.

mod append_buffer;
mod backpressure;
mod committer;
mod consumer;
mod disk;
mod embedded;
mod error;
pub mod format;
mod in_flight_file;
pub mod kafka;
mod log;
pub mod metrics;
mod options;
mod recovery;
mod registry;
mod reserve;
mod segment_reader;
mod shared;
mod textfile;

#[cfg(test)]
mod tests;

pub use embedded::EmbeddedJournal;
pub use in_flight_file::InFlightFile;
#[cfg(feature = "kafka")]
pub use kafka::KafkaJournal;
pub use options::{Durability, JournalKind, Options};
