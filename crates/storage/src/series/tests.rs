//! The contract on this backend, random histories against a model, crashes, and damaged files.

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
mod transfer;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use fieldline_core::clock::Clock;
use fieldline_core::options::HumanDuration;
use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::contract::series as contract;
use fieldline_testkit::contract::series::{SeriesBackend, SeriesStores};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::{Options, SeriesStore};

/// A store in a directory that nobody touches but the test: no checkpoint, compaction or sweep by the clock.
pub(super) struct World {
    root: TempDir,
    pub(super) clock: Arc<ManualClock>,
    running: Mutex<(usize, Arc<SeriesStore>)>,
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
        let root = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(1_700_000_000_000);
        let store = SeriesStore::open(&root.path().join("0"), &quiet(), clock.clone()).unwrap();
        Self {
            root,
            clock,
            running: Mutex::new((0, store)),
        }
    }

    pub(super) fn store(&self) -> Arc<SeriesStore> {
        Arc::clone(&self.running.lock().1)
    }

    fn dir(&self, life: usize) -> PathBuf {
        self.root.path().join(life.to_string())
    }

    /// Goes on with a copy of the files as the operating system has them now, which is what kill -9 leaves.
    pub(super) fn crash(&self) {
        let mut running = self.running.lock();
        let (life, store) = &*running;
        let (from, to) = (self.dir(*life), self.dir(*life + 1));
        copy(&from, &to);
        store.close().unwrap();
        std::fs::remove_dir_all(&from).unwrap();
        let store = SeriesStore::open(&to, &quiet(), self.clock.clone()).unwrap();
        *running = (*life + 1, store);
    }

    /// Closes the store, lets the test damage its files, and opens it again.
    pub(super) fn damage(&self, damage: impl FnOnce(&Path)) -> fieldline_core::ports::StoreResult<()> {
        let mut running = self.running.lock();
        running.1.close().unwrap();
        damage(&self.dir(running.0));
        running.1 = SeriesStore::open(&self.dir(running.0), &quiet(), self.clock.clone())?;
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

macro_rules! contract {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            contract::$name(&World::new()).await;
        }
    )*};
}

contract! {
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
