//! The store's tables: `meta`, `states`, `latest`, `attributes`, `chunks`, and `blocks` with the epochs of recent rows.
//!
//! Epochs share a table, one after the other by their keys, so that a packed one goes with the files that hold nothing
//! else. A table for each would cost memory and files for ever: the embedded engine keeps the past of its list of tables.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use parking_lot::RwLock;

#[cfg(feature = "cassandra")]
use super::backing::cql;
#[cfg(feature = "sql")]
use super::backing::sql;
use super::backing::{SeriesBatch, SeriesDatabase, SeriesTable, TableSnapshot, embedded};
use super::keys::{self, EPOCH_BYTES};
#[cfg(feature = "cassandra")]
use super::options::CassandraOptions;
use super::options::Options;
#[cfg(feature = "sql")]
use super::options::SqlSeriesOptions;
use super::value_table::ValueTable;
use super::{compaction, error, format};

/// The number of the rows that cannot be packed.
pub(super) const QUARANTINE_EPOCH: u64 = 0;
/// The oldest epoch that is not packed yet; rows of older ones are only not gone yet.
pub(super) const FIRST_EPOCH_KEY: &[u8] = b"e";

/// A set of recent rows.
pub(super) struct RowEpoch {
    /// What the keys of its rows begin with.
    pub(super) number: u64,
    /// The table it is in.
    pub(super) rows: SeriesTable,
    /// Bytes of rows in it, estimated after a restart.
    pub(super) bytes: AtomicU64,
    /// When its first row was written; `i64::MAX` while it is empty.
    pub(super) born_ms: AtomicI64,
}

impl RowEpoch {
    fn new(number: u64, rows: SeriesTable) -> Self {
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
        let first = self.rows.range(rows).next();
        first.map_or(Ok(true), |entry| entry.map(|_| false))
    }
}

/// The tables of a store, as a backing opens them.
pub(super) struct SeriesTables {
    pub(super) db: SeriesDatabase,
    pub(super) meta: SeriesTable,
    pub(super) states: SeriesTable,
    pub(super) latest: SeriesTable,
    pub(super) attributes: SeriesTable,
    pub(super) chunks: SeriesTable,
    pub(super) quarantine: SeriesTable,
    pub(super) blocks: SeriesTable,
}

pub(super) struct SeriesEngine {
    pub(super) db: SeriesDatabase,
    pub(super) meta: SeriesTable,
    pub(super) states: SeriesTable,
    pub(super) latest: ValueTable,
    pub(super) attributes: ValueTable,
    pub(super) chunks: SeriesTable,
    /// Rows that cannot be packed because the chunk they belong to is corrupt.
    pub(super) quarantine: Arc<RowEpoch>,
    pub(super) blocks: SeriesTable,
    /// Oldest first; the last one takes new rows.
    epochs: RwLock<Vec<Arc<RowEpoch>>>,
    /// Commits fail, as the test wants it.
    #[cfg(test)]
    pub(super) fails: std::sync::atomic::AtomicBool,
}

impl SeriesEngine {
    /// Opens the embedded engine in a directory.
    pub(super) fn open(dir: &Path, options: &Options, now_ms: i64) -> StoreResult<Self> {
        let tables = embedded::open(dir, options)?;
        format::check(&dir.display().to_string(), &tables)?;
        Self::with_tables(tables, now_ms)
    }

    /// Opens the tables in PostgreSQL.
    #[cfg(feature = "sql")]
    pub(super) fn open_sql(options: &SqlSeriesOptions, now_ms: i64) -> StoreResult<Self> {
        let tables = sql::open(options)?;
        format::check_place(&tables, None)?;
        format::check("the database", &tables)?;
        Self::with_tables(tables, now_ms)
    }

    /// Opens the tables in Cassandra, of which a PostgreSQL database says who owns them.
    #[cfg(feature = "cassandra")]
    pub(super) fn open_cassandra(
        owner: &SqlSeriesOptions,
        options: &CassandraOptions,
        now_ms: i64,
    ) -> StoreResult<Self> {
        let tables = cql::open(owner, options)?;
        format::check_place(&tables, Some(&options.keyspace))?;
        format::check("Cassandra", &tables)?;
        Self::with_tables(tables, now_ms)
    }

    /// An engine over tables of a known format.
    pub(super) fn with_tables(tables: SeriesTables, now_ms: i64) -> StoreResult<Self> {
        let is_paged = tables.db.keeps_pages();
        let engine = Self {
            db: tables.db,
            meta: tables.meta,
            states: tables.states,
            latest: ValueTable::new(tables.latest, is_paged),
            attributes: ValueTable::new(tables.attributes, is_paged),
            chunks: tables.chunks,
            quarantine: Arc::new(RowEpoch::new(QUARANTINE_EPOCH, tables.quarantine)),
            blocks: tables.blocks,
            epochs: RwLock::default(),
            #[cfg(test)]
            fails: std::sync::atomic::AtomicBool::default(),
        };
        engine.open_epochs(now_ms)?;
        Ok(engine)
    }

    fn open_epochs(&self, now_ms: i64) -> StoreResult<()> {
        let mut next = meta_number(&self.meta, FIRST_EPOCH_KEY)?.unwrap_or(QUARANTINE_EPOCH + 1);
        let mut epochs = Vec::new();
        loop {
            let mut rest = self.blocks.from(&keys::epoch_key(next));
            let Some(entry) = rest.next() else { break };
            let (key, _) = entry?;
            let number = keys::read_epoch(&key).ok_or_else(|| table_corrupt("blocks"))?;
            epochs.push(Arc::new(RowEpoch::new(number, self.blocks.clone())));
            next = number + 1;
        }
        // What is packed in part takes no more rows: they would come before the place where compaction goes on.
        let packing = self.meta.get(compaction::CURSOR_KEY)?;
        let packing = packing.and_then(|cursor| keys::read_epoch(&cursor));
        match epochs.last() {
            Some(last) if packing != Some(last.number) => {
                // The figure only decides when to pack.
                last.count(self.db.estimated_bytes(&self.blocks)?, now_ms);
            }
            _ => epochs.push(Arc::new(RowEpoch::new(next, self.blocks.clone()))),
        }
        if let Some(active) = epochs.last() {
            self.db.begin_epoch(active.number)?;
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
        self.db.begin_epoch(next)?;
        let epoch = RowEpoch::new(next, self.blocks.clone());
        self.epochs.write().push(Arc::new(epoch));
        Ok(())
    }

    /// Notes in the batch with the last of its chunks that an epoch is packed.
    pub(super) fn mark_compacted(&self, epoch: &RowEpoch, batch: &mut SeriesBatch) {
        batch.insert(&self.meta, FIRST_EPOCH_KEY, epoch.end());
    }

    /// Drops a packed epoch.
    pub(super) fn drop_epoch(&self, epoch: &RowEpoch) -> StoreResult<()> {
        self.epochs.write().retain(|other| other.number != epoch.number);
        self.db
            .drop_rows(&self.blocks, epoch.number, self.active()?.number)
    }

    pub(super) fn batch(&self, capacity: usize) -> SeriesBatch {
        self.db.batch(capacity)
    }

    /// Commits a batch that writes much to some tables, waiting while one of them falls behind.
    pub(super) fn commit(&self, batch: SeriesBatch, grows: &[&SeriesTable]) -> StoreResult<()> {
        #[cfg(test)]
        if self.fails.load(Ordering::Relaxed) {
            return Err(error::io(std::io::Error::other("as the test wants it")));
        }
        self.db.commit(batch, grows)
    }

    /// Makes all committed batches durable.
    pub(super) fn sync(&self) -> StoreResult<()> {
        self.db.sync()
    }

    pub(super) fn snapshot(&self) -> TableSnapshot {
        self.db.snapshot()
    }

    pub(super) fn meta_number(&self, key: &[u8]) -> StoreResult<Option<u64>> {
        meta_number(&self.meta, key)
    }
}

/// A number in the table of facts about the store.
pub(super) fn meta_number(meta: &SeriesTable, key: &[u8]) -> StoreResult<Option<u64>> {
    let Some(value) = meta.get(key)? else {
        return Ok(None);
    };
    match <[u8; 8]>::try_from(&*value) {
        Ok(bytes) => Ok(Some(u64::from_be_bytes(bytes))),
        Err(_) => Err(table_corrupt("meta")),
    }
}

fn table_corrupt(table: &str) -> StoreError {
    let message = format!("the table `{table}` of the time-series store is corrupt");
    StoreError::new(StoreErrorKind::Corrupt, message)
}
