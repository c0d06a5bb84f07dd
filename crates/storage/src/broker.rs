//! The broker's sessions, queued and retained messages in an LSM tree each.

use std::ops::{Bound, Range};
use std::path::{Path, PathBuf};

use fieldline_core::ports::{
    BrokerChanges, BrokerStore, BrokerTable, Offset, StoreError, StoreErrorKind, StoreResult,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use parking_lot::RwLock;

use crate::series::engine_error_kind;

/// Memory of the cache of blocks, bytes.
const CACHE_BYTES: u64 = 32 << 20;
/// The engine refuses less than 64 MiB.
const MAX_JOURNAL_BYTES: u64 = 64 << 20;
const MEMTABLE_BYTES: u64 = 16 << 20;
const POSITION: &[u8] = b"position";

/// The store on this machine.
pub struct EmbeddedBrokerStore {
    dir: PathBuf,
    /// `None` after a write has failed, which the engine does not survive: the next write opens it again.
    engine: RwLock<Option<BrokerEngine>>,
}

struct BrokerEngine {
    db: Database,
    meta: Keyspace,
    sessions: Keyspace,
    cursors: Keyspace,
    queued: Keyspace,
    retained: Keyspace,
}

impl EmbeddedBrokerStore {
    /// Opens the store in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// The directory cannot be used, or its content is corrupt.
    pub fn open(dir: &Path) -> StoreResult<Self> {
        Ok(Self {
            dir: dir.to_owned(),
            engine: RwLock::new(Some(BrokerEngine::open(dir)?)),
        })
    }

    fn read<R>(&self, call: impl FnOnce(&BrokerEngine) -> StoreResult<R>) -> StoreResult<R> {
        match &*self.engine.read() {
            Some(engine) => call(engine),
            None => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "the broker's store cannot serve now",
            )),
        }
    }

    /// Opens the engine again after a write has failed. What it had accepted is in its journal.
    fn reopen(&self) -> StoreResult<()> {
        // Who only reads needs not wait for who writes, nor the other way round.
        if self.engine.read().is_some() {
            return Ok(());
        }
        let mut engine = self.engine.write();
        if engine.is_none() {
            *engine = Some(BrokerEngine::open(&self.dir)?);
        }
        Ok(())
    }
}

impl BrokerEngine {
    fn open(dir: &Path) -> StoreResult<Self> {
        // The engine asserts some of what it reads from its journal.
        std::panic::catch_unwind(|| Self::open_tables(dir)).unwrap_or_else(|_| {
            Err(StoreError::new(
                StoreErrorKind::Corrupt,
                format!(
                    "the broker's store in {} is corrupt: it cannot be recovered",
                    dir.display()
                ),
            ))
        })
    }

    fn open_tables(dir: &Path) -> StoreResult<Self> {
        let db = Database::builder(dir)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(MAX_JOURNAL_BYTES)
            .worker_threads(1)
            .open()
            .map_err(engine_error)?;
        let table = |name: &str| {
            let options = KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
            db.keyspace(name, || options).map_err(engine_error)
        };
        Ok(Self {
            meta: table("meta")?,
            sessions: table("sessions")?,
            cursors: table("cursors")?,
            queued: table("queued")?,
            retained: table("retained")?,
            db,
        })
    }

    const fn table(&self, table: BrokerTable) -> &Keyspace {
        match table {
            BrokerTable::Sessions => &self.sessions,
            BrokerTable::Cursors => &self.cursors,
            BrokerTable::Queued => &self.queued,
            BrokerTable::Retained => &self.retained,
        }
    }

    fn apply(&self, changes: &BrokerChanges) -> StoreResult<()> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for (table, key, value) in &changes.rows {
            match value {
                Some(value) => batch.insert(self.table(*table), key.as_slice(), value.as_slice()),
                None => batch.remove(self.table(*table), key.as_slice()),
            }
        }
        if let Some(position) = changes.position {
            batch.insert(&self.meta, POSITION, position.0.to_le_bytes());
        }
        batch.commit().map_err(engine_error)
    }
}

impl BrokerStore for EmbeddedBrokerStore {
    fn position(&self) -> StoreResult<Option<Offset>> {
        let stored = self.read(|engine| engine.meta.get(POSITION).map_err(engine_error))?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        let bytes = <[u8; 8]>::try_from(stored.as_ref()).map_err(|_| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                "the broker's position has a wrong length",
            )
        })?;
        Ok(Some(Offset(u64::from_le_bytes(bytes))))
    }

    fn apply(&self, changes: &BrokerChanges) -> StoreResult<()> {
        self.reopen()?;
        let applied = self.read(|engine| engine.apply(changes));
        if applied.is_err() {
            *self.engine.write() = None;
        }
        applied
    }

    fn scan(
        &self,
        table: BrokerTable,
        keys: Range<&[u8]>,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> StoreResult<()> {
        let range = (Bound::Included(keys.start), Bound::Excluded(keys.end));
        self.read(|engine| {
            for row in engine.table(table).range::<&[u8], _>(range) {
                let (key, value) = row.into_inner().map_err(engine_error)?;
                if !visit(&key, &value) {
                    return Ok(());
                }
            }
            Ok(())
        })
    }

    fn disk_bytes(&self) -> StoreResult<u64> {
        self.read(|engine| engine.db.disk_space().map_err(engine_error))
    }
}

fn engine_error(error: fjall::Error) -> StoreError {
    let kind = engine_error_kind(&error);
    let message = match kind {
        StoreErrorKind::DiskFull => "the disk of the broker's store is full",
        StoreErrorKind::Corrupt => "a file of the broker's store is corrupt",
        _ => "the broker's store cannot serve now",
    };
    StoreError::new(kind, message).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_there_after_opening_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedBrokerStore::open(dir.path()).unwrap();
        assert_eq!(store.position().unwrap(), None);
        let mut changes = BrokerChanges::default();
        for key in [1_u8, 2, 3] {
            changes.put(BrokerTable::Queued, [key], vec![key; 2]);
        }
        changes.position = Some(Offset(7));
        store.apply(&changes).unwrap();
        let mut changes = BrokerChanges::default();
        changes.delete(BrokerTable::Queued, [2]);
        store.apply(&changes).unwrap();
        drop(store);

        let store = EmbeddedBrokerStore::open(dir.path()).unwrap();
        assert_eq!(store.position().unwrap(), Some(Offset(7)));
        let mut rows = Vec::new();
        let mut collect = |key: &[u8], value: &[u8]| {
            rows.push((key.to_vec(), value.to_vec()));
            true
        };
        store
            .scan(BrokerTable::Queued, &[1][..]..&[3][..], &mut collect)
            .unwrap();
        store
            .scan(BrokerTable::Queued, &[3][..]..&[9][..], &mut collect)
            .unwrap();
        assert_eq!(rows, [(vec![1], vec![1, 1]), (vec![3], vec![3, 3])]);
        assert!(store.disk_bytes().unwrap() > 0);
    }
}
