//! What is left of epochs that are packed, of some that are packed in part, and of those of the format before.

use std::path::Path;
use std::sync::atomic::Ordering;

use fieldline_core::ports::{TelemetryRow, TimeSeriesStore, ValueRemoval, ValueRemovalScope};
use fieldline_model::kv::{self, KvValue};
use fieldline_model::timeseries::DataPoint;
use fjall::{Database, KeyspaceCreateOptions, PersistMode};

use super::memtable::{ALL, runtime, subject};
use super::{World, quiet};
use crate::series::backing::SeriesDatabase;
use crate::series::engine::SeriesEngine;
use crate::series::{Options, SeriesStore, compaction, keys};
use fieldline_core::options::ByteSize;
use fieldline_core::ports::TelemetrySaveStrategy;
use fieldline_testkit::clock::ManualClock;

const KIB: usize = 1024;

/// The tables of the embedded engine.
fn table_names(engine: &SeriesEngine) -> Vec<String> {
    match &engine.db {
        SeriesDatabase::Embedded(db) => db.list_keyspace_names().iter().map(ToString::to_string).collect(),
        #[cfg(feature = "sql")]
        _ => Vec::new(),
    }
}

fn text(fill: &str, length: usize) -> KvValue {
    KvValue::Text(fill.repeat(length).into())
}

fn save(store: &SeriesStore, of: u8, ts: i64, value: &KvValue) {
    let mut packed = Vec::new();
    kv::pack("k", value.as_ref(), &mut packed);
    let row = TelemetryRow {
        strategy: TelemetrySaveStrategy::ALL,
        subject: subject(of),
        ts,
        ttl_seconds: 0,
        values: &packed,
    };
    runtime().block_on(TimeSeriesStore::save(store, &[row])).unwrap();
}

fn points(store: &SeriesStore, of: u8) -> Vec<DataPoint> {
    runtime().block_on(store.range(subject(of), "k", ALL)).unwrap()
}

fn times(store: &SeriesStore, of: u8) -> Vec<i64> {
    points(store, of).iter().map(|point| point.ts).collect()
}

fn files(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}

#[test]
fn packed_epochs_leave_no_files_behind() {
    let root = tempfile::tempdir().unwrap();
    // Small enough that rows reach files before they are packed.
    let options = Options {
        memtable: ByteSize::mib(1),
        ..quiet()
    };
    let store = SeriesStore::open(root.path(), &options, ManualClock::at(1_700_000_000_000)).unwrap();
    let cycle = |n: usize| {
        let value = text("x", 300 * KIB + n);
        (0..4).for_each(|of| save(&store, of, 1, &value));
        store.compact_now().unwrap();
        assert_eq!(points(&store, 0).last().unwrap().value, value);
    };
    (0..20).for_each(cycle);
    let before = files(root.path());
    (20..120).for_each(cycle);
    let after = files(root.path());
    assert!(
        after < before + 25,
        "{before} files, {after} after a hundred epochs more"
    );
    store.close().unwrap();
}

#[test]
fn an_epoch_that_is_packed_in_part_takes_no_rows_after_a_restart() {
    let world = World::new();
    save(&world.store(), 5, 1, &KvValue::Long(5));
    let engine = world.store().engine().unwrap();
    let epoch = engine.active().unwrap().number;
    // As a crash leaves it between two steps.
    let done = keys::row_key(epoch, &keys::subject_key(subject(4)), 1, 0);
    engine.meta.insert(compaction::CURSOR_KEY, done).unwrap();
    drop(engine);
    world.damage(|_| {}).unwrap();
    // A row that lies before what is packed already.
    save(&world.store(), 2, 1, &KvValue::Long(2));
    world.store().compact_now().unwrap();
    for of in [2, 5] {
        assert_eq!(times(&world.store(), of), [1], "{of}");
    }
    assert_eq!(world.store().engine().unwrap().sealed_count(), 0);
    world.store().close().unwrap();
}

#[test]
fn an_epoch_without_rows_is_looked_at_once_when_it_is_due() {
    let world = World::new();
    let is_due = || {
        let epoch = world.store().engine().unwrap().active().unwrap();
        epoch.born_ms.load(Ordering::Relaxed) != i64::MAX
    };
    let after_its_time = || {
        world.clock.advance(quiet().pack_age.0.as_millis() as i64 + 1);
        world.store().seal_when_due().unwrap();
        assert_eq!(world.store().engine().unwrap().sealed_count(), 0);
    };
    // All that a restart finds is the mark of an epoch that is packed.
    save(&world.store(), 0, 1, &KvValue::Long(1));
    world.store().compact_now().unwrap();
    world.damage(|_| {}).unwrap();
    after_its_time();
    assert!(!is_due());
    // Its rows were deleted.
    save(&world.store(), 1, 1, &KvValue::Long(1));
    runtime()
        .block_on(
            world
                .store()
                .remove(&[ValueRemovalScope::Subject(subject(1))], &[]),
        )
        .unwrap();
    assert!(is_due());
    after_its_time();
    assert!(!is_due());
    // The next row counts again.
    save(&world.store(), 1, 2, &KvValue::Long(1));
    assert!(is_due());
    world.store().close().unwrap();
}

#[test]
fn what_was_deleted_after_packing_does_not_come_back_from_rows_that_are_not_gone_yet() {
    let world = World::new();
    save(&world.store(), 0, 1, &KvValue::Long(1));
    world.store().compact_now().unwrap();
    runtime()
        .block_on(
            world
                .store()
                .remove(&[ValueRemovalScope::Subject(subject(0))], &[]),
        )
        .unwrap();
    world.crash();
    assert_eq!(times(&world.store(), 0), [0; 0]);
    save(&world.store(), 0, 2, &KvValue::Long(2));
    world.store().compact_now().unwrap();
    assert_eq!(times(&world.store(), 0), [2]);
    world.store().close().unwrap();
}

/// The store as the format before had it: an epoch in `blocks-3` that is packed up to the first device, one in `blocks-4`,
/// and stuck rows, all with keys that do not name an epoch.
#[test]
fn a_store_of_the_format_before_is_brought_up() {
    let world = World::new();
    for of in [3, 4, 5] {
        save(&world.store(), of, 1, &KvValue::Long(of.into()));
    }
    let to_before = |dir: &Path| {
        let db = Database::builder(dir).open().unwrap();
        let table = |name: &str| db.keyspace(name, KeyspaceCreateOptions::default).unwrap();
        let (meta, blocks) = (table("meta"), table("blocks"));
        let rows: Vec<_> = blocks.iter().map(|entry| entry.into_inner().unwrap()).collect();
        assert_eq!(rows.len(), 3);
        for ((key, value), to) in rows.into_iter().zip(["blocks-3", "blocks-4", "stuck"]) {
            let old = keys::without_epoch(&key);
            if to == "blocks-3" {
                // As a kill in the midst of bringing it up leaves it: copied, and not gone yet.
                let copied = [&keys::epoch_key(3), old].concat();
                blocks.insert(copied, value.clone()).unwrap();
            }
            table(to).insert(old, value).unwrap();
            blocks.remove(key).unwrap();
        }
        meta.remove(b"e").unwrap();
        meta.insert(b"f", 2_u64.to_be_bytes()).unwrap();
        db.persist(PersistMode::SyncAll).unwrap();
    };
    world.damage(to_before).unwrap();
    let stored = |store: &SeriesStore| [3, 4, 5].map(|of| times(store, of));
    let all = [vec![1], vec![1], vec![1]];
    assert_eq!(stored(&world.store()), all);
    let engine = world.store().engine().unwrap();
    let numbers: Vec<u64> = engine.epochs().iter().map(|epoch| epoch.number).collect();
    assert_eq!(numbers, [0, 3, 4]);
    let names = table_names(&engine);
    assert!(!names.iter().any(|name| name.starts_with("blocks-")), "{names:?}");
    drop(engine);
    // As a kill after that leaves it: a table that is not dropped yet.
    let not_dropped = |dir: &Path| {
        let db = Database::builder(dir).open().unwrap();
        let table = db.keyspace("blocks-3", KeyspaceCreateOptions::default).unwrap();
        table.insert(keys::subject_key(subject(3)), [1]).unwrap();
        db.persist(PersistMode::SyncAll).unwrap();
    };
    world.damage(not_dropped).unwrap();
    assert_eq!(stored(&world.store()), all, "it is done once");
    let names = table_names(&world.store().engine().unwrap());
    assert!(!names.iter().any(|name| name.starts_with("blocks-")), "{names:?}");
    world.store().compact_now().unwrap();
    assert_eq!(stored(&world.store()), all);
    world.store().close().unwrap();
}
