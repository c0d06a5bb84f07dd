//! The format of the stored tables: it is noted in them, checked at the start, and brought up from the one before.

use std::path::Path;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fjall::{Keyspace, KeyspaceCreateOptions};

use super::checkpoint::CHECKPOINT_KEY;
use super::engine::{FIRST_EPOCH_KEY, QUARANTINE_EPOCH, SeriesEngine};
use super::{error, keys};

const FORMAT_KEY: &[u8] = b"f";
/// Goes up when what is stored changes its shape.
const FORMAT: u64 = 3;
/// The format in which each epoch had a table of its own, and keys did not name it.
const TABLE_AN_EPOCH: u64 = 2;
const EPOCH_TABLE_PREFIX: &str = "blocks-";
/// Blocks that are copied at a time.
const COPIED_BLOCKS: usize = 256;

/// Refuses a store of an unknown format, brings up one of the format before, and marks a new one. The mark is durable with
/// the next checkpoint.
pub(super) fn check(dir: &Path, engine: &SeriesEngine) -> StoreResult<()> {
    let found = match engine.meta_number(FORMAT_KEY)? {
        Some(found) => found,
        // The first format carried no number.
        None if engine.meta_number(CHECKPOINT_KEY)?.is_some() => 1,
        None => return mark(engine),
    };
    match found {
        FORMAT => {}
        TABLE_AN_EPOCH => {
            tracing::info!(dir = %dir.display(), "bringing the time-series store to its new format");
            gather_epochs(engine)?;
        }
        _ => {
            let message = format!(
                "the time-series store in {} has format {found}, and this program reads format {FORMAT} only: use the \
                 program that wrote it, or start with an empty directory",
                dir.display()
            );
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
    }
    // Also those that a crash has left after the change.
    for (_, table) in epoch_tables(engine)? {
        engine.db.delete_keyspace(table).map_err(error::engine)?;
    }
    Ok(())
}

fn mark(engine: &SeriesEngine) -> StoreResult<()> {
    let number = FORMAT.to_be_bytes();
    engine.meta.insert(FORMAT_KEY, number).map_err(error::engine)
}

/// The tables of epochs, oldest first.
fn epoch_tables(engine: &SeriesEngine) -> StoreResult<Vec<(u64, Keyspace)>> {
    let mut tables = Vec::new();
    for name in engine.db.list_keyspace_names() {
        if let Some(number) = name
            .strip_prefix(EPOCH_TABLE_PREFIX)
            .and_then(|it| it.parse().ok())
        {
            let table = engine.db.keyspace(&name, KeyspaceCreateOptions::default);
            tables.push((number, table.map_err(error::engine)?));
        }
    }
    tables.sort_unstable_by_key(|(number, _)| *number);
    Ok(tables)
}

/// Copies all epochs into the table that they share. Whatever a crash leaves of it is done again.
fn gather_epochs(engine: &SeriesEngine) -> StoreResult<()> {
    let tables = epoch_tables(engine)?;
    for (number, table) in &tables {
        copy(engine, *number, table, &engine.blocks)?;
    }
    copy(
        engine,
        QUARANTINE_EPOCH,
        &engine.quarantine.rows,
        &engine.quarantine.rows,
    )?;
    if let Some((first, _)) = tables.first() {
        let first = first.to_be_bytes();
        engine
            .meta
            .insert(FIRST_EPOCH_KEY, first)
            .map_err(error::engine)?;
    }
    mark(engine)?;
    engine.sync()
}

/// Copies the blocks of an epoch, and removes the old ones where they were in the same table.
fn copy(engine: &SeriesEngine, epoch: u64, from: &Keyspace, to: &Keyspace) -> StoreResult<()> {
    let mut next = Vec::new();
    loop {
        let mut batch = engine.batch(2 * COPIED_BLOCKS);
        let mut last = None;
        for entry in from.range(next.as_slice()..).take(COPIED_BLOCKS) {
            let (key, value) = entry.into_inner().map_err(error::engine)?;
            if key.len() + keys::EPOCH_BYTES == keys::ROW_BYTES {
                batch.insert(to, [&keys::epoch_key(epoch), &*key].concat(), value);
                if from.id() == to.id() {
                    batch.remove(from, key.clone());
                }
            }
            last = Some(key);
        }
        engine.commit(batch, &[to])?;
        match last {
            Some(key) => next = [&*key, &[0]].concat(),
            None => return Ok(()),
        }
    }
}
