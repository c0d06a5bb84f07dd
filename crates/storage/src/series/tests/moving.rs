//! Rows that move while others read, delete, and reopen the engine: each is seen once, in its place, and stays deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use fieldline_core::options::ByteSize;
use fieldline_core::ports::{
    IngestStore, Offset, SeriesDeletion, StoreEffects, StoreError, StoreErrorKind, TelemetryRow,
    TelemetrySaveStrategy, TimeSeriesStore,
};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::timeseries::{Aggregation, AggregationBucket, PointOrder, RangeQuery};
use fieldline_testkit::clock::ManualClock;
use tokio::runtime::Runtime;

use super::super::health::SeriesHealth;
use super::super::{Options, SeriesStore};
use super::memtable::{ALL, flush, partition, runtime, subject};
use super::{World, quiet};

/// Times a writer uses in turn; they lie in several windows.
const SLOTS: i64 = 40;
const SLOT_MS: i64 = 1_500;
const ROUNDS: i64 = 1_200;

/// One device of the test below, how far it has come, and how far its deleter.
#[derive(Default)]
struct Device {
    /// Number of the row that is being applied, and of the last one that was.
    started: AtomicI64,
    applied: AtomicI64,
    /// Rows up to this number are deleted from the series `d`; rows after the other one are not.
    gone: AtomicI64,
    kept: AtomicI64,
}

fn again<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> T {
    loop {
        match call() {
            Ok(done) => return done,
            // Another thread reopens the engine.
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    StoreErrorKind::DiskFull | StoreErrorKind::Unavailable
                ),
                "{error}"
            ),
        }
    }
}

fn write(store: &SeriesStore, devices: &[Device], of: usize) {
    let runtime = runtime();
    let padding = "x".repeat(600);
    for n in 1..=ROUNDS {
        let mine = || (of..devices.len()).step_by(2);
        let values: Vec<_> = mine()
            .map(|_| {
                let mut both = Vec::new();
                pack("k", KvValue::Long(n).as_ref(), &mut both);
                pack(
                    "padding",
                    KvValue::Text(padding.as_str().into()).as_ref(),
                    &mut both,
                );
                let mut deleted = Vec::new();
                pack("d", KvValue::Long(n).as_ref(), &mut deleted);
                (both, deleted)
            })
            .collect();
        mine().for_each(|at| devices[at].started.store(n, Ordering::SeqCst));
        let row = |at: usize, ts, values| TelemetryRow {
            strategy: TelemetrySaveStrategy::ALL,
            subject: subject(at as u8),
            ts,
            ttl_seconds: 0,
            values,
        };
        let effects = StoreEffects {
            states: Vec::new(),
            telemetry: mine()
                .zip(&values)
                .flat_map(|(at, (both, deleted))| {
                    [row(at, n % SLOTS * SLOT_MS, both), row(at, n * 100, deleted)]
                })
                .collect(),
            attributes: Vec::new(),
        };
        again(|| runtime.block_on(store.apply(partition(of), Offset(n as u64), &effects)));
        mine().for_each(|at| devices[at].applied.store(n, Ordering::SeqCst));
    }
}

/// Checks the series whose times repeat: each has a value that is not older than what was applied before.
fn check_slots(store: &SeriesStore, runtime: &Runtime, device: &Device, of: u8, order: PointOrder) {
    let before = device.applied.load(Ordering::SeqCst);
    let found = again(|| runtime.block_on(store.range(subject(of), "k", RangeQuery { order, ..ALL })));
    let after = device.started.load(Ordering::SeqCst);
    let mut times: Vec<_> = found.iter().map(|point| point.ts).collect();
    if order == PointOrder::Descending {
        times.reverse();
    }
    assert!(
        times.is_sorted_by(|a, b| a < b),
        "each time once, in order: {times:?}"
    );
    for slot in 0..SLOTS {
        let newest = before - (before - slot).rem_euclid(SLOTS);
        let value = found
            .iter()
            .find(|point| point.ts == slot * SLOT_MS)
            .map(|point| &point.value);
        match value {
            Some(KvValue::Long(n)) => assert!(
                n % SLOTS == slot && *n >= newest && *n <= after,
                "{n} at {slot} between {before} and {after}"
            ),
            None => assert!(newest <= 0, "no value at {slot}, {newest} was applied"),
            other => panic!("{other:?}"),
        }
    }
    let bucket = AggregationBucket {
        start: 0,
        end: SLOTS * SLOT_MS,
    };
    let count = again(|| runtime.block_on(store.aggregate(subject(of), "k", Aggregation::Count, &[bucket])));
    let count = count.first().map_or(0, |point| match point.value {
        KvValue::Long(count) => count,
        _ => -1,
    });
    assert!(
        (before.min(SLOTS)..=SLOTS).contains(&count),
        "{count} after {before}"
    );
}

/// Checks the series that is deleted again and again.
fn check_deleted(store: &SeriesStore, runtime: &Runtime, device: &Device, of: u8) {
    let gone = device.gone.load(Ordering::SeqCst);
    let before = device.applied.load(Ordering::SeqCst);
    let found = again(|| runtime.block_on(store.range(subject(of), "d", ALL)));
    let kept = device.kept.load(Ordering::SeqCst);
    let times: Vec<_> = found.iter().map(|point| point.ts / 100).collect();
    assert!(
        times.is_sorted_by(|a, b| a < b),
        "each time once, in order: {times:?}"
    );
    assert!(
        times.iter().all(|n| *n > gone),
        "{times:?} came back after {gone} was deleted"
    );
    let missing = (kept + 1..=before).find(|n| times.binary_search(n).is_err());
    assert_eq!(missing, None, "of {} to {before}: {times:?}", kept + 1);
}

#[test]
fn readers_see_each_row_once_while_it_moves() {
    let root = tempfile::tempdir().unwrap();
    let options = Options {
        memtable: ByteSize::mib(1),
        pack_bytes: ByteSize::kib(64),
        ..quiet()
    };
    let open = || SeriesStore::open(root.path(), &options, ManualClock::at(1_700_000_000_000)).unwrap();
    let store = open();
    let devices: Vec<Device> = (0..4).map(|_| Device::default()).collect();
    let is_over = AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::SeqCst);
    let (store_ref, devices_ref): (&Arc<SeriesStore>, &[Device]) = (&store, &devices);
    thread::scope(|threads| {
        let writers = [0, 1].map(|of| threads.spawn(move || write(store_ref, devices_ref, of)));
        let others = [
            threads.spawn(|| {
                let runtime = runtime();
                while goes_on() {
                    again(|| runtime.block_on(store.checkpoint()));
                }
            }),
            threads.spawn(|| {
                while goes_on() {
                    again(|| store.seal_active());
                    again(|| store.compact_step());
                }
            }),
            threads.spawn(|| {
                let runtime = runtime();
                for at in (0..devices.len()).cycle().take_while(|_| goes_on()) {
                    let device = &devices[at];
                    let gone = device.applied.load(Ordering::SeqCst);
                    device.kept.store(i64::MAX - 1, Ordering::SeqCst);
                    let what = SeriesDeletion {
                        range: None,
                        delete_latest: true,
                        rewrite_latest: false,
                    };
                    again(|| {
                        runtime.block_on(TimeSeriesStore::delete(
                            &**store_ref,
                            subject(at as u8),
                            &["d".to_owned()],
                            what,
                        ))
                    });
                    device.gone.store(gone, Ordering::SeqCst);
                    device
                        .kept
                        .store(device.started.load(Ordering::SeqCst), Ordering::SeqCst);
                    check_deleted(store_ref, &runtime, device, at as u8);
                }
            }),
            threads.spawn(|| {
                while goes_on() {
                    *store.health.lock() = SeriesHealth::DiskFull;
                    store.try_reopen();
                    // The keeper may hold the tables for a moment, and the engine can then not be opened.
                    while store.engine().is_err() {
                        *store.health.lock() = SeriesHealth::DiskFull;
                        store.try_reopen();
                    }
                    thread::yield_now();
                }
            }),
            threads.spawn(|| {
                let runtime = runtime();
                for at in (0..devices.len()).cycle().take_while(|_| goes_on()) {
                    check_slots(store_ref, &runtime, &devices[at], at as u8, PointOrder::Ascending);
                    check_slots(
                        store_ref,
                        &runtime,
                        &devices[at],
                        at as u8,
                        PointOrder::Descending,
                    );
                }
            }),
        ];
        // The others end when the writers have, also where those fail.
        let written = writers.map(|writer| writer.join().is_ok());
        is_over.store(true, Ordering::SeqCst);
        let checked = others.map(|other| other.join().is_ok());
        assert!(written == [true; 2] && checked == [true; 5]);
    });
    store.close().unwrap();
    drop(store);
    let (store, runtime) = (open(), runtime());
    for (at, device) in devices.iter().enumerate() {
        check_slots(&store, &runtime, device, at as u8, PointOrder::Ascending);
        check_deleted(&store, &runtime, device, at as u8);
        // A deletion takes the rows and the latest values that came before it, and none that came after.
        let names = ["d".to_owned()];
        let latest = runtime
            .block_on(store.latest(subject(at as u8), Some(&names)))
            .unwrap();
        let newest = runtime
            .block_on(store.range(subject(at as u8), "d", ALL))
            .unwrap();
        let latest = latest.into_iter().next().map(|value| value.point);
        assert_eq!(latest, newest.into_iter().next_back(), "latest value of {at}");
    }
    store.close().unwrap();
}

#[test]
fn no_row_is_missed_when_it_leaves_memory() {
    const STEP_MS: i64 = 5_000;
    let world = World::new();
    let store = world.store();
    let (applied, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    let mut packed = Vec::new();
    pack("k", KvValue::Long(1).as_ref(), &mut packed);
    let read = || {
        let runtime = runtime();
        while !is_over.load(Ordering::SeqCst) {
            let before = applied.load(Ordering::SeqCst);
            let query = RangeQuery {
                start: before * STEP_MS,
                limit: 1,
                ..ALL
            };
            let found = runtime.block_on(store.range(subject(0), "k", query)).unwrap();
            let first = found.first().map(|point| point.ts / STEP_MS);
            assert!(
                before == 0 || first == Some(before),
                "{first:?} instead of {before}"
            );
        }
    };
    thread::scope(|threads| {
        // More threads than processors, so that they are interrupted anywhere.
        let readers = [(); 6].map(|()| threads.spawn(read));
        let writer = threads.spawn(|| {
            let runtime = runtime();
            for n in 1..=20_000 {
                let row = TelemetryRow {
                    strategy: TelemetrySaveStrategy::ALL,
                    subject: subject(0),
                    ts: n * STEP_MS,
                    ttl_seconds: 0,
                    values: &packed,
                };
                let effects = StoreEffects {
                    states: Vec::new(),
                    telemetry: vec![row],
                    attributes: Vec::new(),
                };
                let applying = store.apply(partition(0), Offset(n as u64), &effects);
                runtime.block_on(applying).unwrap();
                applied.store(n, Ordering::SeqCst);
                flush(&store, true, true);
            }
        });
        let is_written = writer.join().is_ok();
        is_over.store(true, Ordering::SeqCst);
        assert!(is_written && readers.map(|reader| reader.join().is_ok()) == [true; 6]);
    });
    store.close().unwrap();
}
