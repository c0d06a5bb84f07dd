//! The engine's tables: `meta`, `states`, `latest`, `attributes`, `chunks`, and `blocks` with the epochs of recent rows.
//!
//! Epochs share a table, one after the other by their keys, so that a packed one goes with the files that hold nothing
//! else. A table for each would cost memory and files for ever: the engine keeps the past of its list of tables.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use parking_lot::RwLock;

use super::keys::{self, EPOCH_BYTES};
use super::options::Options;
use super::{compaction, error, format};

/// The engine's journal is at most this large; it refuses less than 64 MiB.
const MAX_JOURNAL_BYTES: u64 = 128 << 20;
/// From this many memtables on their way to disk on, writers wait here: from four on the engine itself would make them
/// wait, and it would not notice that its flushing threads have given up.
const MAX_SEALED_MEMTABLES: usize = 3;
const MAX_TABLES_OF_ROWS: usize = 24;
/// Blocks that are looked at to tell how much a table holds.
const SAMPLED_BLOCKS: usize = 256;

/// The number of the rows that cannot be packed.
pub(super) const QUARANTINE_EPOCH: u64 = 0;
/// The oldest epoch that is not packed yet; rows of older ones are only not gone yet.
pub(super) const FIRST_EPOCH_KEY: &[u8] = b"e";

/// A set of recent rows.
pub(super) struct RowEpoch {
    /// What the keys of its rows begin with.
    pub(super) number: u64,
    /// The table it is in.
    pub(super) rows: Keyspace,
    /// Bytes of rows in it, estimated after a restart.
    pub(super) bytes: AtomicU64,
    /// When its first row was written; `i64::MAX` while it is empty.
    pub(super) born_ms: AtomicI64,
}

impl RowEpoch {
    fn new(number: u64, rows: Keyspace) -> Self {
        Self {
            number,
            rows,
            bytes: AtomicU64::new(0),
            born_ms: AtomicI64::new(i64::MAX),
        }
    }

    pub(super) fn count(&self, bytes: u64, now_ms: i64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.born_ms.fetch_min(now_ms, Ordering::Relaxed);
    }

    /// Forgets what was counted, where no rows are left. Nobody may be writing rows.
    pub(super) fn begin_anew(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.born_ms.store(i64::MAX, Ordering::Relaxed);
    }

    /// What is greater than all keys in it, and not than those of the next one.
    pub(super) fn end(&self) -> [u8; EPOCH_BYTES] {
        keys::epoch_key(self.number + 1)
    }

    /// Whether it has no rows.
    pub(super) fn is_empty(&self) -> StoreResult<bool> {
        let begin = keys::epoch_key(self.number);
        let rows = (Bound::Excluded(&begin[..]), Bound::Excluded(&self.end()[..]));
        let first = self.rows.range::<&[u8], _>(rows).next();
        first.map_or(Ok(true), |entry| {
            entry.key().map(|_| false).map_err(error::engine)
        })
    }
}

pub(super) struct SeriesEngine {
    pub(super) db: Database,
    pub(super) meta: Keyspace,
    pub(super) states: Keyspace,
    pub(super) latest: Keyspace,
    pub(super) attributes: Keyspace,
    pub(super) chunks: Keyspace,
    /// Rows that cannot be packed because the chunk they belong to is corrupt.
    pub(super) quarantine: Arc<RowEpoch>,
    pub(super) blocks: Keyspace,
    /// Oldest first; the last one takes new rows.
    epochs: RwLock<Vec<Arc<RowEpoch>>>,
    /// Commits fail, as the test wants it.
    #[cfg(test)]
    pub(super) fails: std::sync::atomic::AtomicBool,
}

impl SeriesEngine {
    pub(super) fn open(dir: &Path, options: &Options, now_ms: i64) -> StoreResult<Self> {
        // The engine asserts some of what it reads from its journal.
        std::panic::catch_unwind(|| Self::open_tables(dir, options, now_ms)).unwrap_or_else(|_| {
            Err(StoreError::new(
                StoreErrorKind::Corrupt,
                format!(
                    "the time-series store in {} is corrupt: it cannot be recovered",
                    dir.display()
                ),
            ))
        })
    }

    /// Takes away what a creation that was cut off has left: the engine would try to create the same file again. It writes its
    /// marker before there is any table.
    fn clear_cut_off(dir: &Path) -> std::io::Result<()> {
        let tables = dir.join("keyspaces");
        let is_marked = dir.join("version").try_exists()?;
        if is_marked || !tables.try_exists()? || std::fs::read_dir(tables)?.next().is_some() {
            return Ok(());
        }
        match std::fs::remove_file(dir.join("0.jnl")) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }

    fn open_tables(dir: &Path, options: &Options, now_ms: i64) -> StoreResult<Self> {
        Self::clear_cut_off(dir).map_err(error::io)?;
        let threads = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 4));
        let db = Database::builder(dir)
            .cache_size(options.block_cache.0)
            .max_cached_files(Some(options.open_files as usize))
            .max_journaling_size(MAX_JOURNAL_BYTES)
            .worker_threads(threads)
            .open()
            .map_err(error::engine)?;
        let memtable = options.memtable.0;
        let table = |name: &str, memtable: u64| {
            db.keyspace(name, || {
                KeyspaceCreateOptions::default().max_memtable_size(memtable)
            })
            .map_err(error::engine)
        };
        let meta = table("meta", 1 << 20)?;
        let states = table("states", memtable)?;
        let latest = table("latest", memtable)?;
        let attributes = table("attributes", memtable)?;
        let chunks = db
            .keyspace("chunks", || chunk_table_options(memtable))
            .map_err(error::engine)?;
        let stuck = db
            .keyspace("stuck", || row_table_options(1 << 20))
            .map_err(error::engine)?;
        let blocks = db
            .keyspace("blocks", || row_table_options(memtable))
            .map_err(error::engine)?;
        let engine = Self {
            db,
            meta,
            states,
            latest,
            attributes,
            chunks,
            quarantine: Arc::new(RowEpoch::new(QUARANTINE_EPOCH, stuck)),
            blocks,
            epochs: RwLock::default(),
            #[cfg(test)]
            fails: std::sync::atomic::AtomicBool::default(),
        };
        format::check(dir, &engine)?;
        engine.open_epochs(now_ms)?;
        Ok(engine)
    }

    fn open_epochs(&self, now_ms: i64) -> StoreResult<()> {
        let mut next = self.meta_number(FIRST_EPOCH_KEY)?.unwrap_or(QUARANTINE_EPOCH + 1);
        let mut epochs = Vec::new();
        loop {
            let mut rest = self.blocks.range(keys::epoch_key(next)..);
            let Some(entry) = rest.next() else { break };
            let key = entry.key().map_err(error::engine)?;
            let number = keys::read_epoch(&key).ok_or_else(|| table_corrupt("blocks"))?;
            epochs.push(Arc::new(RowEpoch::new(number, self.blocks.clone())));
            next = number + 1;
        }
        // What is packed in part takes no more rows: they would come before the place where compaction goes on.
        let packing = self.meta.get(compaction::CURSOR_KEY).map_err(error::engine)?;
        let packing = packing.and_then(|cursor| keys::read_epoch(&cursor));
        match epochs.last() {
            Some(last) if packing != Some(last.number) => {
                // The figure only decides when to pack.
                last.count(estimated_bytes(&self.blocks), now_ms);
            }
            _ => epochs.push(Arc::new(RowEpoch::new(next, self.blocks.clone()))),
        }
        *self.epochs.write() = epochs;
        Ok(())
    }

    /// All rows there are, oldest first.
    pub(super) fn epochs(&self) -> Vec<Arc<RowEpoch>> {
        let epochs = self.epochs.read();
        std::iter::once(&self.quarantine)
            .chain(epochs.iter())
            .map(Arc::clone)
            .collect()
    }

    /// The epoch that takes new rows.
    pub(super) fn active(&self) -> StoreResult<Arc<RowEpoch>> {
        // There is always one from `open` on.
        self.epochs.read().last().cloned().ok_or_else(error::closed)
    }

    /// The oldest epoch that takes no more rows.
    pub(super) fn oldest_sealed(&self) -> Option<Arc<RowEpoch>> {
        match self.epochs.read().as_slice() {
            [oldest, .., _active] => Some(Arc::clone(oldest)),
            _ => None,
        }
    }

    pub(super) fn sealed_count(&self) -> usize {
        self.epochs.read().len().saturating_sub(1)
    }

    /// Seals the active epoch. Nobody may be writing rows.
    pub(super) fn seal(&self) -> StoreResult<()> {
        let next = self.active()?.number + 1;
        let epoch = RowEpoch::new(next, self.blocks.clone());
        self.epochs.write().push(Arc::new(epoch));
        Ok(())
    }

    /// Notes in the batch with the last of its chunks that an epoch is packed.
    pub(super) fn mark_compacted(&self, epoch: &RowEpoch, batch: &mut OwnedWriteBatch) {
        batch.insert(&self.meta, FIRST_EPOCH_KEY, epoch.end());
    }

    /// Drops a packed epoch. Files that hold rows of the next one as well go with that one.
    pub(super) fn drop_epoch(&self, epoch: &RowEpoch) -> StoreResult<()> {
        self.epochs.write().retain(|other| other.number != epoch.number);
        let dropped = self.blocks.tree.drop_range(..epoch.end());
        dropped.map_err(|error| error::engine(error.into()))?;
        // The engine's journal is kept until each table that it has rows of has written something as new: one without any
        // file would hold it up.
        let mark = keys::epoch_key(self.active()?.number);
        self.blocks.insert(mark, []).map_err(error::engine)
    }

    pub(super) fn batch(&self, capacity: usize) -> OwnedWriteBatch {
        OwnedWriteBatch::with_capacity(self.db.clone(), capacity).durability(Some(PersistMode::Buffer))
    }

    /// Commits a batch that writes much to some tables, waiting while one of them falls behind.
    pub(super) fn commit(&self, batch: OwnedWriteBatch, grows: &[&Keyspace]) -> StoreResult<()> {
        let is_behind = |table: &&Keyspace| {
            table.sealed_memtable_count() >= MAX_SEALED_MEMTABLES
                || table.l0_table_count() >= MAX_TABLES_OF_ROWS
        };
        while grows.iter().any(is_behind) {
            // Fails when the engine has given up, and with it the flushing that is waited for.
            self.db.persist(PersistMode::Buffer).map_err(error::engine)?;
            std::thread::sleep(Duration::from_millis(2));
        }
        #[cfg(test)]
        if self.fails.load(Ordering::Relaxed) {
            return Err(error::io(std::io::Error::other("as the test wants it")));
        }
        batch.commit().map_err(error::engine)
    }

    /// Makes all committed batches durable.
    pub(super) fn sync(&self) -> StoreResult<()> {
        self.db.persist(PersistMode::SyncData).map_err(error::engine)
    }

    pub(super) fn meta_number(&self, key: &[u8]) -> StoreResult<Option<u64>> {
        let Some(value) = self.meta.get(key).map_err(error::engine)? else {
            return Ok(None);
        };
        match <[u8; 8]>::try_from(&*value) {
            Ok(bytes) => Ok(Some(u64::from_be_bytes(bytes))),
            Err(_) => Err(table_corrupt("meta")),
        }
    }
}

fn table_corrupt(table: &str) -> StoreError {
    let message = format!("the table `{table}` of the time-series store is corrupt");
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// Bytes of a table, by its length and its first entries.
fn estimated_bytes(table: &Keyspace) -> u64 {
    let sample = table
        .iter()
        .take(SAMPLED_BLOCKS)
        .map_while(|entry| entry.into_inner().ok());
    let (count, bytes) = sample.fold((0, 0), |(count, bytes), (key, value)| {
        (count + 1, bytes + (key.len() + value.len()) as u64)
    });
    // Where nothing can be read, a reader says so.
    (table.approximate_len() as u64)
        .saturating_mul(bytes)
        .checked_div(count)
        .unwrap_or_default()
}

/// Rows live shortly and are read in short ranges: no filters, and no compaction before many tables have piled up.
fn row_table_options(memtable: u64) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable)
        .filter_policy(FilterPolicy::disabled())
        .data_block_compression_policy(CompressionPolicy::all(fjall::CompressionType::Lz4))
        .compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(12)))
}

/// Chunks are compressed already and are read in ranges only: no filters, large blocks.
fn chunk_table_options(memtable: u64) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable)
        .filter_policy(FilterPolicy::disabled())
        .data_block_compression_policy(CompressionPolicy::disabled())
        .data_block_size_policy(BlockSizePolicy::all(16 * 1024))
}
