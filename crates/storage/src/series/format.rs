//! The format of the stored tables: it is noted in them, checked at the start, and brought up from the one before.

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fjall::KeyspaceCreateOptions;

use super::backing::{SeriesDatabase, SeriesTable};
use super::checkpoint::CHECKPOINT_KEY;
use super::engine::{FIRST_EPOCH_KEY, QUARANTINE_EPOCH, SeriesTables, meta_number};
use super::{error, keys};

const FORMAT_KEY: &[u8] = b"f";
/// The keyspace of Cassandra that has the values.
#[cfg(feature = "sql")]
const KEYSPACE_KEY: &[u8] = b"k";
/// Goes up when what is stored changes its shape.
const FORMAT: u64 = 3;
/// The format in which each epoch had a table of its own, and keys did not name it.
const TABLE_AN_EPOCH: u64 = 2;
const EPOCH_TABLE_PREFIX: &str = "blocks-";
/// Blocks that are copied at a time.
const COPIED_BLOCKS: usize = 256;

/// Refuses a store of an unknown format, brings up one of the format before, and marks a new one. The mark is durable with
/// the next checkpoint.
pub(super) fn check(place: &str, tables: &SeriesTables) -> StoreResult<()> {
    let found = match meta_number(&tables.meta, FORMAT_KEY)? {
        Some(found) => found,
        // The first format carried no number.
        None if meta_number(&tables.meta, CHECKPOINT_KEY)?.is_some() => 1,
        None => return mark(tables),
    };
    match found {
        FORMAT => {}
        TABLE_AN_EPOCH => {
            tracing::info!(place, "bringing the time-series store to its new format");
            gather_epochs(tables)?;
        }
        _ => {
            let message = format!(
                "the time-series store in {place} has format {found}, and this program reads format {FORMAT} only: use the \
                 program that wrote it, or start with an empty one"
            );
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
    }
    // Also those that a crash has left after the change.
    for (_, table) in epoch_tables(tables)? {
        #[cfg_attr(not(feature = "sql"), expect(irrefutable_let_patterns))]
        if let (SeriesDatabase::Embedded(db), SeriesTable::Embedded(table)) = (&tables.db, table) {
            db.delete_keyspace(table).map_err(error::engine)?;
        }
    }
    Ok(())
}

/// Refuses tables whose values are elsewhere: in a keyspace of Cassandra, or, without one, beside the positions. A new store
/// notes where they are.
#[cfg(feature = "sql")]
pub(super) fn check_place(tables: &SeriesTables, keyspace: Option<&str>) -> StoreResult<()> {
    let found = tables.meta.get(KEYSPACE_KEY)?;
    let found = found.as_deref().map(String::from_utf8_lossy);
    let is_new = meta_number(&tables.meta, CHECKPOINT_KEY)?.is_none();
    match (found.as_deref(), keyspace) {
        (found, wanted) if found == wanted => Ok(()),
        (None, Some(keyspace)) if is_new => tables.meta.insert(KEYSPACE_KEY, keyspace.as_bytes()),
        (found, _) => {
            let place = found.map_or_else(
                || "in its own tables (`series.kind` = \"sql\")".to_owned(),
                |keyspace| format!("in the keyspace {keyspace} of Cassandra"),
            );
            let message = format!(
                "the PostgreSQL database of `sql.url` has its time series {place}, and starting moves nothing: put the \
                 settings back, or name a database that has none and let `fieldline migrate` copy them"
            );
            Err(StoreError::new(StoreErrorKind::Invalid, message))
        }
    }
}

fn mark(tables: &SeriesTables) -> StoreResult<()> {
    tables.meta.insert(FORMAT_KEY, FORMAT.to_be_bytes())
}

/// The tables of epochs, oldest first.
fn epoch_tables(tables: &SeriesTables) -> StoreResult<Vec<(u64, SeriesTable)>> {
    let mut found = Vec::new();
    // No other backing ever had them.
    #[cfg_attr(not(feature = "sql"), expect(irrefutable_let_patterns))]
    let SeriesDatabase::Embedded(db) = &tables.db else {
        return Ok(found);
    };
    for name in db.list_keyspace_names() {
        if let Some(number) = name
            .strip_prefix(EPOCH_TABLE_PREFIX)
            .and_then(|it| it.parse().ok())
        {
            let table = db.keyspace(&name, KeyspaceCreateOptions::default);
            found.push((number, SeriesTable::Embedded(table.map_err(error::engine)?)));
        }
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(found)
}

/// Copies all epochs into the table that they share. Whatever a crash leaves of it is done again.
fn gather_epochs(tables: &SeriesTables) -> StoreResult<()> {
    let epochs = epoch_tables(tables)?;
    for (number, table) in &epochs {
        copy(tables, *number, table, &tables.blocks, false)?;
    }
    copy(
        tables,
        QUARANTINE_EPOCH,
        &tables.quarantine,
        &tables.quarantine,
        true,
    )?;
    if let Some((first, _)) = epochs.first() {
        tables.meta.insert(FIRST_EPOCH_KEY, first.to_be_bytes())?;
    }
    mark(tables)?;
    tables.db.sync()
}

/// Copies the blocks of an epoch, and removes the old ones where they are in the same table.
fn copy(
    tables: &SeriesTables,
    epoch: u64,
    from: &SeriesTable,
    to: &SeriesTable,
    is_same: bool,
) -> StoreResult<()> {
    let mut next = Vec::new();
    loop {
        let mut batch = tables.db.batch(2 * COPIED_BLOCKS);
        let mut last = None;
        for entry in from.from(&next).take(COPIED_BLOCKS) {
            let (key, value) = entry?;
            if key.len() + keys::EPOCH_BYTES == keys::ROW_BYTES {
                batch.insert(to, [&keys::epoch_key(epoch), &*key].concat(), value);
                if is_same {
                    batch.remove(from, key.clone());
                }
            }
            last = Some(key);
        }
        tables.db.commit(batch, &[to])?;
        match last {
            Some(key) => next = [&*key, &[0]].concat(),
            None => return Ok(()),
        }
    }
}
