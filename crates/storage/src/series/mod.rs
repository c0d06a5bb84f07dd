//! Time series, latest values, attributes and journal positions, embedded.
//!
//! ```text
//! blocks      epoch · subject · ts · seq → rows                 newest rows, a block a subject and checkpoint
//! stuck       the same, of epoch 0                              rows whose chunk is corrupt
//! chunks      subject · name · first ts → compressed columns    everything older
//! latest      subject · name → ts · ttl · value                 through a write-back cache
//! attributes  subject · scope · name → ts · value               through a write-back cache
//! meta        positions, next seq, progress of compaction
//! states      what the rule engine keeps, as of the positions
//! ```
//!
//! # The way of a row
//! A row is appended to the *memtable*; the journal has it until the next checkpoint. That writes all rows of a subject
//! as one block (`block.rs`) into the *active epoch*, the last part of `blocks`: one write to the engine for many messages of a
//! busy device, and never more than one a message. An epoch that is large or old enough is *sealed*, and
//! the compaction merges its rows into chunks, some entities at a time, each step with its progress in one atomic
//! batch; then the epoch's files are dropped, so that no row ever needs a tombstone.
//!
//! # Invariants
//! 1. **Order.** Every row gets a sequence number from one counter, also after a restart, when the counter jumps over all
//!    numbers that may have been used since it was last stored. Numbers of a subject's rows in an epoch are greater than
//!    those in all epochs before it, and epochs are compacted in order. Of several values at one time the one with the
//!    greatest number counts, and a row beats a chunk.
//! 2. **Checkpoints are lower bounds.** A checkpoint first reads the positions, then collects rows in memory and dirty
//!    values, and writes all in one batch. Every effect before a stored position is in rows or values of the same or an
//!    earlier batch; later effects may be as well, and are then applied again by the replay. That is harmless: the
//!    replay repeats the records in order, and the last of them leaves the same state.
//! 3. **People's writes are barriers.** A direct save or delete excludes `apply`, and writes a checkpoint in its own
//!    batch. So a replay starts after every record that was applied before it, and can neither override nor resurrect.
//! 4. **Deletion excludes compaction**, and looks at all epochs and at the chunks. Removal of what is gone
//!    (`removal.rs`) does not: it lets one step of compaction end between the rows and the chunks.
//! 5. **Nothing durable is forgotten silently.** The number of the last durable checkpoint is noted in a file of its own;
//!    finding an older one in the engine after a restart means that the engine's journal was damaged.
//!
//! # Locks
//! In this order: `compacting` (one that rewrites chunks or old rows at a time) · `checkpointing` (one checkpoint or
//! direct write at a time) · `gate` (shared by `apply`, exclusive for direct writes and sealing) · shards of the caches
//! and of the memtable.
//!
//! # A full disk
//! The engine refuses all writes for good after one has failed. Where the reason was a full disk, the keeper thread tries
//! whether there is room again, and reopens the engine: what it had accepted is read back from its journal, and the dirty
//! values are still in memory. Reads go on meanwhile. After a failed fsync nothing is accepted until a restart.

mod aggregate;
mod backing;
mod block;
mod cache_shard;
mod cached_value;
mod checkpoint;
pub mod chunk;
mod compaction;
mod copy;
mod delete;
mod engine;
mod error;
mod expire;
mod expiry_clock;
mod format;
mod health;
mod keys;
mod latest_cache;
mod memtable;
pub mod metrics;
mod options;
mod ports;
mod read;
mod removal;
mod rows;
mod state_rows;
mod store;
mod transfer;
mod value_table;
mod values;
mod watermark;

pub use copy::{SeriesChecksum, SeriesCopy, SeriesPart, SeriesPlace, StateRoute};
pub(crate) use error::kind as engine_error_kind;
#[cfg(feature = "sql")]
pub use options::SqlSeriesOptions;
pub use options::{CassandraOptions, Options, SeriesKind};
pub use store::SeriesStore;

#[cfg(test)]
mod tests;
