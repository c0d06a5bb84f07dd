//! The tables of the embedded engine, an LSM tree each.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::super::engine::SeriesTables;
use super::super::error;
use super::super::options::Options;
use super::{SeriesDatabase, SeriesTable};

/// The engine's journal is at most this large; it refuses less than 64 MiB.
const MAX_JOURNAL_BYTES: u64 = 128 << 20;
/// From this many memtables on their way to disk on, writers wait here: from four on the engine itself would make them
/// wait, and it would not notice that its flushing threads have given up.
const MAX_SEALED_MEMTABLES: usize = 3;
const MAX_TABLES_OF_ROWS: usize = 24;
/// Blocks that are looked at to tell how much a table holds.
const SAMPLED_BLOCKS: usize = 256;

/// Opens the tables in a directory.
pub(in super::super) fn open(dir: &Path, options: &Options) -> StoreResult<SeriesTables> {
    // The engine asserts some of what it reads from its journal.
    std::panic::catch_unwind(|| open_tables(dir, options)).unwrap_or_else(|_| {
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

fn open_tables(dir: &Path, options: &Options) -> StoreResult<SeriesTables> {
    clear_cut_off(dir).map_err(error::io)?;
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 4));
    let db = Database::builder(dir)
        .cache_size(options.block_cache.0)
        .max_cached_files(Some(options.open_files as usize))
        .max_journaling_size(MAX_JOURNAL_BYTES)
        .worker_threads(threads)
        .open()
        .map_err(error::engine)?;
    let memtable = options.memtable.0;
    let table = |name: &str, options: KeyspaceCreateOptions| {
        let table = db.keyspace(name, || options).map_err(error::engine);
        table.map(SeriesTable::Embedded)
    };
    let plain = |memtable: u64| KeyspaceCreateOptions::default().max_memtable_size(memtable);
    Ok(SeriesTables {
        meta: table("meta", plain(1 << 20))?,
        states: table("states", plain(memtable))?,
        latest: table("latest", plain(memtable))?,
        attributes: table("attributes", plain(memtable))?,
        chunks: table("chunks", chunk_table_options(memtable))?,
        quarantine: table("stuck", row_table_options(1 << 20))?,
        blocks: table("blocks", row_table_options(memtable))?,
        db: SeriesDatabase::Embedded(db),
    })
}

pub(super) fn batch(db: &Database, capacity: usize) -> OwnedWriteBatch {
    OwnedWriteBatch::with_capacity(db.clone(), capacity).durability(Some(PersistMode::Buffer))
}

pub(super) fn commit(db: &Database, batch: OwnedWriteBatch, grows: &[&SeriesTable]) -> StoreResult<()> {
    let is_behind = |table: &&SeriesTable| match table {
        SeriesTable::Embedded(table) => {
            table.sealed_memtable_count() >= MAX_SEALED_MEMTABLES
                || table.l0_table_count() >= MAX_TABLES_OF_ROWS
        }
        #[cfg(feature = "sql")]
        _ => false,
    };
    while grows.iter().any(is_behind) {
        // Fails when the engine has given up, and with it the flushing that is waited for.
        db.persist(PersistMode::Buffer).map_err(error::engine)?;
        std::thread::sleep(Duration::from_millis(2));
    }
    batch.commit().map_err(error::engine)
}

pub(super) fn sync(db: &Database) -> StoreResult<()> {
    db.persist(PersistMode::SyncData).map_err(error::engine)
}

/// Drops all rows before a key with the files that hold nothing else. Files that hold rows behind it as well go later.
pub(in super::super) fn drop_rows(blocks: &Keyspace, end: &[u8], mark: &[u8]) -> StoreResult<()> {
    let dropped = blocks.tree.drop_range(..end);
    dropped.map_err(|error| error::engine(error.into()))?;
    // The engine's journal is kept until each table that it has rows of has written something as new: one without any
    // file would hold it up.
    blocks.insert(mark, []).map_err(error::engine)
}

/// Bytes of a table, by its length and its first entries.
pub(in super::super) fn estimated_bytes(table: &Keyspace) -> u64 {
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
