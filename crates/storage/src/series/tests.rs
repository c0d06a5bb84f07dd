//! The contract on this backend, random histories against a model, crashes, and damaged files.

#[cfg(feature = "cassandra")]
mod cassandra;
mod clock;
mod corruption;
mod disk_full;
mod epochs;
mod failures;
mod many_keys;
mod memtable;
mod model;
mod moving;
mod pages;
#[cfg(feature = "sql")]
mod plain_rows;
#[cfg(feature = "sql")]
mod postgres;
mod transfer;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use fieldline_core::clock::Clock;
use fieldline_core::options::HumanDuration;
use fieldline_core::ports::StoreResult;
use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::contract::series::{SeriesBackend, SeriesStores};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::{Options, SeriesStore};

/// A store that nobody touches but the test: no checkpoint, compaction or sweep by the clock.
pub(super) struct World {
    place: WorldPlace,
    pub(super) clock: Arc<ManualClock>,
    running: Mutex<(usize, Arc<SeriesStore>)>,
}

/// Where the store of a test is.
enum WorldPlace {
    /// A directory each life of it.
    Directories(TempDir),
    #[cfg(feature = "sql")]
    Database(postgres::TestDatabase),
    #[cfg(feature = "cassandra")]
    Keyspace(Box<cassandra::TestKeyspace>),
}

impl WorldPlace {
    fn open(&self, life: usize, clock: &Arc<ManualClock>) -> StoreResult<Arc<SeriesStore>> {
        match self {
            Self::Directories(root) => SeriesStore::open(&directory(root, life), &quiet(), clock.clone()),
            #[cfg(feature = "sql")]
            Self::Database(database) => SeriesStore::open_sql(&database.options(), &quiet(), clock.clone()),
            #[cfg(feature = "cassandra")]
            Self::Keyspace(keyspace) => {
                let (owner, tables) = keyspace.options();
                SeriesStore::open_cassandra(&owner, &tables, &quiet(), clock.clone())
            }
        }
    }
}

fn directory(root: &TempDir, life: usize) -> PathBuf {
    root.path().join(life.to_string())
}

pub(super) fn quiet() -> Options {
    let never = HumanDuration::secs(1_000_000);
    Options {
        sweep_interval: never,
        pack_age: HumanDuration::secs(1_000_000_000),
        // The clock of these tests jumps.
        clock_grace: HumanDuration::secs(0),
        ..Options::default()
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::at(WorldPlace::Directories(tempfile::tempdir().unwrap()))
    }

    fn at(place: WorldPlace) -> Self {
        let clock = ManualClock::at(1_700_000_000_000);
        let store = place.open(0, &clock).unwrap();
        Self {
            place,
            clock,
            running: Mutex::new((0, store)),
        }
    }

    pub(super) fn store(&self) -> Arc<SeriesStore> {
        Arc::clone(&self.running.lock().1)
    }

    /// Goes on with what a kill leaves: a copy of the files as the operating system has them now, or what is committed in the
    /// database, which the killed process can no longer write to.
    pub(super) fn crash(&self) {
        let mut running = self.running.lock();
        let (life, killed) = &*running;
        let life = life + 1;
        let store = match &self.place {
            WorldPlace::Directories(root) => {
                let from = directory(root, life - 1);
                copy(&from, &directory(root, life));
                killed.close().unwrap();
                std::fs::remove_dir_all(&from).unwrap();
                self.place.open(life, &self.clock).unwrap()
            }
            #[cfg(feature = "sql")]
            _ => {
                let store = self.place.open(life, &self.clock).unwrap();
                // It may have had nothing to write.
                drop(killed.close());
                store
            }
        };
        *running = (life, store);
    }

    /// Closes the store, lets the test damage its files, and opens it again.
    pub(super) fn damage(&self, damage: impl FnOnce(&Path)) -> StoreResult<()> {
        let mut running = self.running.lock();
        running.1.close().unwrap();
        let WorldPlace::Directories(root) = &self.place else {
            panic!("there are no files to damage");
        };
        damage(&directory(root, running.0));
        running.1 = self.place.open(running.0, &self.clock)?;
        Ok(())
    }
}

/// Copies a directory as it is at one moment: again and again until nothing has changed meanwhile.
fn copy(from: &Path, to: &Path) {
    loop {
        let before = listing(from);
        let _ = std::fs::remove_dir_all(to);
        if try_copy(from, to).is_ok()
            && before.is_ok_and(|before| listing(from).is_ok_and(|after| before == after))
        {
            return;
        }
    }
}

fn listing(dir: &Path) -> std::io::Result<Vec<(PathBuf, u64, SystemTime)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let about = entry.metadata()?;
        found.push((entry.path(), about.len(), about.modified()?));
        if about.is_dir() {
            found.extend(listing(&entry.path())?);
        }
    }
    found.sort();
    Ok(found)
}

fn try_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            try_copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[async_trait]
impl SeriesBackend for World {
    async fn stores(&self) -> SeriesStores {
        let store = self.store();
        SeriesStores {
            series: store.clone(),
            attributes: store.clone(),
            ingest: store.clone(),
            removal: store,
        }
    }

    async fn crash(&self) -> SeriesStores {
        World::crash(self);
        self.stores().await
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

/// A test for each promise of the contract, in a world of its own.
macro_rules! series_contract {
    ($world:path $(, $attribute:meta)?) => {
        series_contract! { @each $world, ($($attribute)?),
            points_come_back_in_range_and_order
            a_later_write_replaces_and_late_data_does_not_become_latest
            keys_and_latest_values_are_sorted
            buckets_are_aggregated_by_the_types_in_them
            expired_points_are_not_returned
            deletion_follows_the_rules_for_latest_values
            subjects_are_walls
            what_is_gone_leaves_nothing_and_others_keep_theirs
            attributes_keep_the_last_write_of_each_scope
            applied_effects_are_seen_and_skipped_the_second_time
            what_happens_between_records_leaves_the_position
            a_replay_completes_what_a_crash_cut_off
            a_replay_does_not_undo_what_people_did
            records_after_a_rewind_are_new_ones
        }
    };
    (@each $world:path, $attributes:tt, $($name:ident)*) => {
        $(series_contract! { @one $world, $attributes, $name })*
    };
    (@one $world:path, ($($attribute:meta)?), $name:ident) => {
        #[tokio::test(flavor = "multi_thread")]
        $(#[$attribute])?
        async fn $name() {
            fieldline_testkit::contract::series::$name(&$world()).await;
        }
    };
}
pub(crate) use series_contract;

series_contract!(World::new);

#[test]
fn a_directory_whose_creation_was_cut_off_is_no_obstacle() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("keyspaces")).unwrap();
    std::fs::write(root.path().join("0.jnl"), [0; 4_096]).unwrap();
    let store = SeriesStore::open(root.path(), &quiet(), ManualClock::at(1_700_000_000_000)).unwrap();
    store.close().unwrap();
}

#[test]
fn a_store_of_another_format_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let open = || SeriesStore::open(root.path(), &quiet(), ManualClock::at(1_700_000_000_000));
    let store = open().unwrap();
    let other = 99_u64.to_be_bytes();
    store.engine().unwrap().meta.insert(b"f", other).unwrap();
    store.close().unwrap();
    drop(store);
    let refused = open().err().unwrap().to_string();
    assert!(
        refused.contains("format 99") && refused.contains("format 3"),
        "{refused}"
    );
}
