//! What one subject has is handed over to another, wherever it is.

use fieldline_core::ports::{
    AttributeRow, AttributeStore, IngestStore as _, StoreEffects, TelemetryRow, TelemetrySaveStrategy,
    TimeSeriesStore, ValueTransfer as _,
};
use fieldline_model::kv::{self, KvValue};
use fieldline_model::timeseries::{AttributeScope, DataPoint};

use super::World;
use super::memtable::{ALL, partition, runtime, subject};
use crate::series::{SeriesStore, compaction, keys};

const OLD: u8 = 5;
const NEW: u8 = 2;

fn packed(name: &str, value: i64) -> Vec<u8> {
    let mut packed = Vec::new();
    kv::pack(name, kv::KvValueRef::Long(value), &mut packed);
    packed
}

fn save(store: &SeriesStore, of: u8, ts: i64, value: i64) {
    let values = packed("k", value);
    let row = TelemetryRow {
        strategy: TelemetrySaveStrategy::ALL,
        subject: subject(of),
        ts,
        ttl_seconds: 0,
        values: &values,
    };
    runtime().block_on(TimeSeriesStore::save(store, &[row])).unwrap();
}

/// As a device's message is stored: in memory until the next checkpoint.
fn amend(store: &SeriesStore, of: u8, ts: i64, value: i64) {
    let values = packed("k", value);
    let effects = StoreEffects {
        telemetry: vec![TelemetryRow {
            strategy: TelemetrySaveStrategy::ALL,
            subject: subject(of),
            ts,
            ttl_seconds: 0,
            values: &values,
        }],
        attributes: Vec::new(),
        states: Vec::new(),
    };
    runtime()
        .block_on(store.apply_between_records(partition(0), &effects))
        .unwrap();
}

fn note(store: &SeriesStore, of: u8, name: &str, ts: i64, value: i64) {
    let values = packed(name, value);
    let row = AttributeRow {
        subject: subject(of),
        scope: AttributeScope::Client,
        ts,
        values: &values,
    };
    runtime().block_on(AttributeStore::save(store, &[row])).unwrap();
}

fn points(store: &SeriesStore, of: u8) -> Vec<(i64, i64)> {
    let found = runtime().block_on(store.range(subject(of), "k", ALL)).unwrap();
    found.iter().map(plain).collect()
}

fn plain(point: &DataPoint) -> (i64, i64) {
    match point.value {
        KvValue::Long(value) => (point.ts, value),
        ref other => panic!("{other:?}"),
    }
}

fn attributes(store: &SeriesStore, of: u8) -> Vec<(String, KvValue)> {
    let found = runtime().block_on(store.get(subject(of), AttributeScope::Client, None));
    let found = found.unwrap().into_iter();
    found.map(|attribute| (attribute.key, attribute.value)).collect()
}

fn hand_over(store: &SeriesStore) -> bool {
    let handed = store.transfer(subject(OLD), subject(NEW));
    runtime().block_on(handed).unwrap()
}

#[test]
fn everything_goes_over_once_and_survives_packing_and_a_crash() {
    let world = World::new();
    // In a chunk, in an epoch that is packed up to a place behind the new subject, and in memory.
    save(&world.store(), OLD, 1, 1);
    world.store().compact_now().unwrap();
    save(&world.store(), OLD, 2, 2);
    save(&world.store(), OLD, 2, 22);
    let engine = world.store().engine().unwrap();
    let epoch = engine.active().unwrap().number;
    let done = keys::row_key(epoch, &keys::subject_key(subject(4)), 1, 0);
    engine.meta.insert(compaction::CURSOR_KEY, done).unwrap();
    drop(engine);
    world.damage(|_| {}).unwrap();
    note(&world.store(), OLD, "a", 10, 1);
    note(&world.store(), OLD, "b", 10, 1);
    note(&world.store(), NEW, "b", 11, 2);
    amend(&world.store(), OLD, 3, 3);

    assert!(hand_over(&world.store()));
    let all = [(1, 1), (2, 22), (3, 3)];
    let check = |store: &SeriesStore| {
        assert_eq!(points(store, NEW), all);
        assert_eq!(points(store, OLD), []);
        let latest = runtime().block_on(store.latest(subject(NEW), None)).unwrap();
        assert_eq!(
            latest.iter().map(|one| plain(&one.point)).collect::<Vec<_>>(),
            [(3, 3)]
        );
        let expected = [
            ("a".to_owned(), KvValue::Long(1)),
            ("b".to_owned(), KvValue::Long(2)),
        ];
        assert_eq!(attributes(store, NEW), expected);
        assert_eq!(attributes(store, OLD), []);
        assert_eq!(runtime().block_on(store.keys(subject(OLD))).unwrap(), [""; 0]);
    };
    check(&world.store());
    assert!(!hand_over(&world.store()));
    world.crash();
    check(&world.store());
    world.store().compact_now().unwrap();
    check(&world.store());
    world.store().close().unwrap();
}

#[test]
fn chunks_that_meet_chunks_become_one_series() {
    let world = World::new();
    let store = world.store();
    for (of, times) in [(OLD, [1, 4, 7]), (NEW, [2, 5, 8])] {
        times
            .into_iter()
            .for_each(|ts| save(&store, of, ts, i64::from(of)));
        store.compact_now().unwrap();
    }
    assert!(hand_over(&store));
    let both = [(1, 5), (2, 2), (4, 5), (5, 2), (7, 5), (8, 2)];
    assert_eq!(points(&store, NEW), both);
    store.compact_now().unwrap();
    assert_eq!(points(&store, NEW), both);
    assert_eq!(points(&store, OLD), []);
    store.close().unwrap();
}
