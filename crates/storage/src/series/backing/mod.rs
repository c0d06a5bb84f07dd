//! Where the tables of the store are: in the embedded engine, in PostgreSQL, or in Cassandra and PostgreSQL.
//!
//! A table is a sorted map of bytes. A [`SeriesBatch`] is committed whole or not at all, and a [`TableSnapshot`] reads
//! several tables as they were at one moment. (Cassandra can do neither; `cql` says what takes their place.) Everything above this module is the same on all backings: memtable, caches,
//! checkpoints, compaction, reading.
//!
//! The kind of a table is known from the store it was opened with, so a table never meets a batch of another backing.

#[cfg(feature = "cassandra")]
pub(super) mod cql;
pub(super) mod embedded;
#[cfg(feature = "sql")]
mod runtime;
#[cfg(feature = "sql")]
pub(super) mod sql;

use std::ops::Bound;

use fieldline_core::ports::StoreResult;
use fieldline_model::{EntityKey, TenantId};
use fjall::{Keyspace, OwnedWriteBatch, Readable as _, Slice, Snapshot};
use uuid::Uuid;

use super::{error, keys};

/// A stored key and its value.
pub(super) type TableEntry = (Slice, Slice);

/// A table of the store; clones are the same table.
#[derive(Clone)]
pub(super) enum SeriesTable {
    Embedded(Keyspace),
    #[cfg(feature = "sql")]
    Sql(sql::SqlTable),
    #[cfg(feature = "cassandra")]
    Cql(cql::CqlTable),
}

/// Entries of a table in the order of their keys. On PostgreSQL an iterator goes in one direction only: the first call
/// decides.
pub(super) enum TableEntries {
    Embedded(fjall::Iter),
    #[cfg(feature = "sql")]
    Sql(Box<sql::SqlEntries>),
    #[cfg(feature = "cassandra")]
    Cql(Box<cql::CqlEntries>),
}

impl Iterator for TableEntries {
    type Item = StoreResult<TableEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Embedded(entries) => entries
                .next()
                .map(|entry| entry.into_inner().map_err(error::engine)),
            #[cfg(feature = "sql")]
            Self::Sql(entries) => entries.next(),
            #[cfg(feature = "cassandra")]
            Self::Cql(entries) => entries.next(),
        }
    }
}

impl DoubleEndedIterator for TableEntries {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Self::Embedded(entries) => entries
                .next_back()
                .map(|entry| entry.into_inner().map_err(error::engine)),
            #[cfg(feature = "sql")]
            Self::Sql(entries) => entries.next_back(),
            #[cfg(feature = "cassandra")]
            Self::Cql(entries) => entries.next_back(),
        }
    }
}

/// The bounds of keys that a reader asks for.
pub(super) type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// From a key on, up to another that is left out.
pub(super) const fn half_open<'a>(from: &'a [u8], to: &'a [u8]) -> KeyRange<'a> {
    (Bound::Included(from), Bound::Excluded(to))
}

/// From a key on, up to another that is taken.
pub(super) const fn closed<'a>(from: &'a [u8], to: &'a [u8]) -> KeyRange<'a> {
    (Bound::Included(from), Bound::Included(to))
}

impl SeriesTable {
    pub(super) fn get(&self, key: &[u8]) -> StoreResult<Option<Slice>> {
        match self {
            Self::Embedded(table) => table.get(key).map_err(error::engine),
            #[cfg(feature = "sql")]
            Self::Sql(table) => table.get(key),
            #[cfg(feature = "cassandra")]
            Self::Cql(table) => table.get(key),
        }
    }

    /// Writes one entry at once, outside of any batch. It is durable with the next checkpoint.
    pub(super) fn insert(&self, key: impl Into<Slice>, value: impl Into<Slice>) -> StoreResult<()> {
        match self {
            Self::Embedded(table) => table.insert(key, value).map_err(error::engine),
            #[cfg(feature = "sql")]
            Self::Sql(table) => table.insert(key.into(), value.into()),
            #[cfg(feature = "cassandra")]
            Self::Cql(table) => cql::CqlSeriesDatabase::put(table, key.into(), Some(value.into())),
        }
    }

    #[cfg(test)]
    pub(super) fn remove(&self, key: &[u8]) -> StoreResult<()> {
        match self {
            Self::Embedded(table) => table.remove(key).map_err(error::engine),
            #[cfg(feature = "sql")]
            Self::Sql(table) => table.remove(key),
            #[cfg(feature = "cassandra")]
            Self::Cql(table) => cql::CqlSeriesDatabase::put(table, key.into(), None),
        }
    }

    /// The entries whose keys lie within bounds.
    pub(super) fn range(&self, range: KeyRange<'_>) -> TableEntries {
        match self {
            Self::Embedded(table) => TableEntries::Embedded(table.range::<&[u8], _>(range)),
            #[cfg(feature = "sql")]
            Self::Sql(table) => TableEntries::Sql(Box::new(table.range(range))),
            #[cfg(feature = "cassandra")]
            Self::Cql(table) => TableEntries::Cql(Box::new(table.range(range))),
        }
    }

    /// The entries from a key on.
    pub(super) fn from(&self, key: &[u8]) -> TableEntries {
        self.range((Bound::Included(key), Bound::Unbounded))
    }

    /// The entries whose keys begin like this.
    pub(super) fn prefix(&self, prefix: &[u8]) -> TableEntries {
        match self {
            Self::Embedded(table) => TableEntries::Embedded(table.prefix(prefix)),
            #[cfg(feature = "sql")]
            _ => {
                let end = keys::after_prefix(prefix);
                let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                self.range((Bound::Included(prefix), end))
            }
        }
    }
}

impl SeriesTable {
    /// Hands over the entries whose keys begin with one of some prefixes, which are in order, and none of which begins with
    /// another. They come in no order, page by page.
    pub(super) fn prefixes<K: AsRef<[u8]>>(
        &self,
        prefixes: &[K],
        visit: &mut dyn FnMut(TableEntry) -> StoreResult<()>,
    ) -> StoreResult<()> {
        match self {
            Self::Embedded(_) => prefixes
                .iter()
                .flat_map(|prefix| self.prefix(prefix.as_ref()))
                .try_for_each(|entry| visit(entry?)),
            #[cfg(feature = "sql")]
            Self::Sql(table) => table.prefixes(prefixes, visit),
            #[cfg(feature = "cassandra")]
            Self::Cql(table) => table.prefixes(prefixes, visit),
        }
    }
}

/// Changes that are committed together.
pub(super) enum SeriesBatch {
    Embedded(OwnedWriteBatch),
    #[cfg(feature = "sql")]
    Sql(sql::SqlBatch),
    #[cfg(feature = "cassandra")]
    Cql(cql::CqlBatch),
}

impl SeriesBatch {
    pub(super) fn insert(&mut self, table: &SeriesTable, key: impl Into<Slice>, value: impl Into<Slice>) {
        match (self, table) {
            (Self::Embedded(batch), SeriesTable::Embedded(table)) => batch.insert(table, key, value),
            #[cfg(feature = "sql")]
            (Self::Sql(batch), SeriesTable::Sql(table)) => batch.insert(table, key.into(), value.into()),
            #[cfg(feature = "cassandra")]
            (Self::Cql(batch), SeriesTable::Sql(table)) => batch.sql.insert(table, key.into(), value.into()),
            #[cfg(feature = "cassandra")]
            (Self::Cql(batch), SeriesTable::Cql(table)) => {
                batch.put(table.kind(), key.into(), Some(value.into()));
            }
            #[cfg(feature = "sql")]
            _ => foreign_table(),
        }
    }

    /// Inserts a block of points that are new, and not only in another block than before.
    pub(super) fn insert_new_block(
        &mut self,
        table: &SeriesTable,
        key: impl Into<Slice>,
        value: impl Into<Slice>,
    ) {
        match (self, table) {
            #[cfg(feature = "sql")]
            (Self::Sql(batch), SeriesTable::Sql(table)) => {
                batch.insert_new_block(table, key.into(), value.into());
            }
            (batch, table) => batch.insert(table, key, value),
        }
    }

    pub(super) fn remove(&mut self, table: &SeriesTable, key: impl Into<Slice>) {
        match (self, table) {
            (Self::Embedded(batch), SeriesTable::Embedded(table)) => batch.remove(table, key),
            #[cfg(feature = "sql")]
            (Self::Sql(batch), SeriesTable::Sql(table)) => batch.remove(table, key.into()),
            #[cfg(feature = "cassandra")]
            (Self::Cql(batch), SeriesTable::Sql(table)) => batch.sql.remove(table, key.into()),
            #[cfg(feature = "cassandra")]
            (Self::Cql(batch), SeriesTable::Cql(table)) => batch.put(table.kind(), key.into(), None),
            #[cfg(feature = "sql")]
            _ => foreign_table(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Embedded(batch) => batch.is_empty(),
            #[cfg(feature = "sql")]
            Self::Sql(batch) => batch.is_empty(),
            #[cfg(feature = "cassandra")]
            Self::Cql(batch) => batch.is_empty(),
        }
    }
}

/// A table and a batch of different stores met, which no caller can bring about.
#[cfg(feature = "sql")]
fn foreign_table() {
    debug_assert!(false, "a table of another backing");
}

/// All tables as they were at one moment.
pub(super) enum TableSnapshot {
    Embedded(Snapshot),
    #[cfg(feature = "sql")]
    Sql(sql::SqlSnapshot),
    #[cfg(feature = "cassandra")]
    Cql(cql::CqlSnapshot),
}

impl TableSnapshot {
    pub(super) fn range(&self, table: &SeriesTable, range: KeyRange<'_>) -> TableEntries {
        match (self, table) {
            (Self::Embedded(snapshot), SeriesTable::Embedded(table)) => {
                TableEntries::Embedded(snapshot.range::<&[u8], _>(table, range))
            }
            #[cfg(feature = "sql")]
            (Self::Sql(snapshot), SeriesTable::Sql(table)) => {
                TableEntries::Sql(Box::new(table.range_in(snapshot, range)))
            }
            #[cfg(feature = "cassandra")]
            (Self::Cql(snapshot), SeriesTable::Cql(table)) => {
                TableEntries::Cql(Box::new(table.range_in(snapshot, range)))
            }
            #[cfg(feature = "sql")]
            _ => {
                foreign_table();
                table.range(range)
            }
        }
    }

    pub(super) fn get(&self, table: &SeriesTable, key: &[u8]) -> StoreResult<Option<Slice>> {
        match (self, table) {
            (Self::Embedded(snapshot), SeriesTable::Embedded(table)) => {
                snapshot.get(table, key).map_err(error::engine)
            }
            #[cfg(feature = "sql")]
            (Self::Sql(snapshot), SeriesTable::Sql(table)) => table.get_in(snapshot, key),
            #[cfg(feature = "cassandra")]
            (Self::Cql(snapshot), SeriesTable::Cql(table)) => table.get_in(snapshot, key),
            #[cfg(feature = "sql")]
            _ => {
                foreign_table();
                table.get(key)
            }
        }
    }
}

/// The database that the tables are in.
pub(super) enum SeriesDatabase {
    Embedded(fjall::Database),
    #[cfg(feature = "sql")]
    Sql(sql::SqlSeriesDatabase),
    #[cfg(feature = "cassandra")]
    Cql(cql::CqlSeriesDatabase),
}

impl SeriesDatabase {
    pub(super) fn batch(&self, capacity: usize) -> SeriesBatch {
        match self {
            Self::Embedded(db) => SeriesBatch::Embedded(embedded::batch(db, capacity)),
            #[cfg(feature = "sql")]
            Self::Sql(_) => SeriesBatch::Sql(sql::SqlBatch::default()),
            #[cfg(feature = "cassandra")]
            Self::Cql(_) => SeriesBatch::Cql(cql::CqlBatch::default()),
        }
    }

    /// Commits a batch that writes much to some tables, waiting while one of them falls behind.
    pub(super) fn commit(&self, batch: SeriesBatch, grows: &[&SeriesTable]) -> StoreResult<()> {
        match (self, batch) {
            (Self::Embedded(db), SeriesBatch::Embedded(batch)) => embedded::commit(db, batch, grows),
            #[cfg(feature = "sql")]
            (Self::Sql(db), SeriesBatch::Sql(batch)) => db.commit(batch),
            #[cfg(feature = "cassandra")]
            (Self::Cql(db), SeriesBatch::Cql(batch)) => db.commit(batch),
            #[cfg(feature = "sql")]
            _ => {
                foreign_table();
                Err(error::closed())
            }
        }
    }

    /// Makes all committed batches durable.
    pub(super) fn sync(&self) -> StoreResult<()> {
        match self {
            Self::Embedded(db) => embedded::sync(db),
            // A commit of a database is durable.
            #[cfg(feature = "sql")]
            _ => Ok(()),
        }
    }

    /// Deletes what is past its time-to-live where the points are kept as plain rows as well.
    pub(super) fn keep_up_plain_rows(&self, now_ms: i64) -> StoreResult<()> {
        match self {
            #[cfg(feature = "sql")]
            Self::Sql(db) => db.keep_up_plain_rows(now_ms),
            _ => Ok(()),
        }
    }

    /// Deletes the points of some series of entities of a tenant, or of all of them, where they are kept as plain rows as
    /// well.
    pub(super) fn delete_plain_rows(
        &self,
        tenant: TenantId,
        entities: Vec<Uuid>,
        names: Option<&[String]>,
        range: Option<(i64, i64)>,
    ) {
        #[cfg(feature = "sql")]
        if let Self::Sql(db) = self {
            db.change_plain_rows(sql::PlainChange::Delete {
                tenant,
                entities,
                keys: names.map(<[String]>::to_vec),
                range,
            });
        }
    }

    /// Hands the points of an entity to another tenant, where they are kept as plain rows as well.
    pub(super) fn move_plain_rows(&self, from: EntityKey, to: TenantId) {
        #[cfg(feature = "sql")]
        if let Self::Sql(db) = self {
            db.change_plain_rows(sql::PlainChange::Move { from, to });
        }
    }

    /// Whether somebody else has taken the tables over, so that this process can no longer write.
    pub(super) fn is_taken_over(&self) -> bool {
        match self {
            Self::Embedded(_) => false,
            #[cfg(feature = "sql")]
            Self::Sql(db) => db.is_taken_over(),
            #[cfg(feature = "cassandra")]
            Self::Cql(db) => db.is_taken_over(),
        }
    }

    pub(super) fn snapshot(&self) -> TableSnapshot {
        match self {
            Self::Embedded(db) => TableSnapshot::Embedded(db.snapshot()),
            #[cfg(feature = "sql")]
            Self::Sql(db) => TableSnapshot::Sql(db.snapshot()),
            #[cfg(feature = "cassandra")]
            Self::Cql(db) => TableSnapshot::Cql(db.snapshot()),
        }
    }

    /// Whether a value table keeps pages of values, each a row, instead of a row a value.
    pub(super) const fn keeps_pages(&self) -> bool {
        match self {
            Self::Embedded(_) => false,
            #[cfg(feature = "sql")]
            _ => true,
        }
    }

    /// Prepares the place of an epoch's rows.
    pub(super) fn begin_epoch(
        &self,
        #[cfg_attr(not(feature = "sql"), expect(unused))] number: u64,
    ) -> StoreResult<()> {
        match self {
            Self::Embedded(_) => Ok(()),
            #[cfg(feature = "sql")]
            Self::Sql(db) => db.begin_epoch(number),
            #[cfg(feature = "cassandra")]
            Self::Cql(_) => Ok(()),
        }
    }

    /// Drops the rows of an epoch and of all before it.
    pub(super) fn drop_rows(&self, blocks: &SeriesTable, number: u64, active: u64) -> StoreResult<()> {
        let (end, mark) = (keys::epoch_key(number + 1), keys::epoch_key(active));
        match (self, blocks) {
            (Self::Embedded(_), SeriesTable::Embedded(blocks)) => embedded::drop_rows(blocks, &end, &mark),
            #[cfg(feature = "sql")]
            (Self::Sql(db), _) => db.drop_epochs(number),
            #[cfg(feature = "cassandra")]
            (Self::Cql(db), _) => db.drop_epochs(number),
            #[cfg(feature = "sql")]
            _ => {
                foreign_table();
                Ok(())
            }
        }
    }

    /// Bytes of a table, roughly.
    pub(super) fn estimated_bytes(&self, table: &SeriesTable) -> StoreResult<u64> {
        match table {
            SeriesTable::Embedded(table) => Ok(embedded::estimated_bytes(table)),
            #[cfg(feature = "sql")]
            SeriesTable::Sql(table) => table.bytes(),
            #[cfg(feature = "cassandra")]
            SeriesTable::Cql(table) => table.bytes(),
        }
    }

    /// Writes what tables hold in memory to disk, so that their size can be measured.
    pub(super) fn write_to_disk(&self, tables: &[&SeriesTable]) -> StoreResult<()> {
        for table in tables {
            #[cfg_attr(not(feature = "sql"), expect(irrefutable_let_patterns))]
            if let SeriesTable::Embedded(table) = table {
                table.rotate_memtable_and_wait().map_err(error::engine)?;
            }
        }
        Ok(())
    }
}
