//! Rows on their way from memory through epochs into chunks, by random histories: they read the same wherever they are, and
//! whatever fails or ends on the way.

use std::collections::BTreeMap;

use fieldline_core::ports::{
    IngestStore, Offset, Partition, QueueId, SeriesDeletion, StoreEffects, StoreError, StoreErrorKind,
    TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore, ValueRemoval, ValueRemovalScope,
};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::timeseries::{Aggregation, AggregationBucket, PointOrder, RangeQuery};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use fieldline_testkit::clock::ManualClock;
use proptest::prelude::*;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::super::health::SeriesHealth;
use super::super::{SeriesStore, block};
use super::pages::POINT_BYTES;
use super::{World, quiet};

const NAMES: [&str; 2] = ["a", "b"];
const SUBJECTS: u8 = 3;

pub(super) const ALL: RangeQuery = RangeQuery {
    start: i64::MIN,
    end: i64::MAX,
    limit: usize::MAX,
    order: PointOrder::Ascending,
};

pub(super) fn subject(of: u8) -> EntityKey {
    EntityKey::device(
        TenantId(Uuid::from_u128(7)),
        // All but the last are in one shard.
        DeviceId(Uuid::from_u128(match of {
            0 => 16,
            1 => 32,
            other => u128::from(other) + 1,
        })),
    )
}

pub(super) fn partition(of: usize) -> Partition {
    Partition {
        queue: QueueId(0),
        index: of as u16,
    }
}

pub(super) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// A row of the model. `large` makes its block full.
#[derive(Debug, Clone)]
struct Row {
    subject: u8,
    ts: i64,
    value: i64,
    names: u8,
    large: bool,
}

impl Row {
    fn packed(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, name) in NAMES.iter().enumerate() {
            if self.names & (1 << at) != 0 {
                pack(name, KvValue::Long(self.value).as_ref(), &mut out);
            }
        }
        if self.large {
            let text = "x".repeat(block::BLOCK_BYTES / 2);
            pack("padding", KvValue::Text(text.into()).as_ref(), &mut out);
        }
        out
    }
}

#[derive(Debug, Clone)]
enum Action {
    Apply(Vec<Row>),
    Save(Vec<Row>),
    Delete(u8, usize, Option<(i64, i64)>),
    DeleteSubject(u8),
    /// Rows are handed to the engine: it takes them; or it refuses them; or it says that it refuses, and took them.
    Flush,
    RefusedFlush,
    DoubtfulFlush,
    Checkpoint,
    Seal,
    PackStep,
    PackAll,
    Reopen,
    Restart,
    Crash,
}

/// Times at the edges of windows and of time itself, few enough that they meet.
fn time() -> impl Strategy<Value = i64> {
    let width = -block::window_start(-1);
    prop_oneof![
        12 => (-2_i64..3, -1_i64..3).prop_map(move |(window, off)| window * width + off),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MIN + 1), Just(i64::MAX - 1), Just(i64::MAX - width)],
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let large = prop_oneof![6 => Just(false), 1 => Just(true)];
    (0..SUBJECTS, time(), -100_i64..100, 1_u8..4, large).prop_map(|(subject, ts, value, names, large)| Row {
        subject,
        ts,
        value,
        names,
        large,
    })
}

fn span() -> impl Strategy<Value = (i64, i64)> {
    (time(), time()).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn action() -> impl Strategy<Value = Action> {
    let rows = || proptest::collection::vec(row(), 1..10);
    prop_oneof![
        10 => rows().prop_map(Action::Apply),
        2 => rows().prop_map(Action::Save),
        3 => (0..SUBJECTS, 0..NAMES.len(), proptest::option::of(span())).prop_map(|(a, b, c)| Action::Delete(a, b, c)),
        1 => (0..SUBJECTS).prop_map(Action::DeleteSubject),
        4 => Just(Action::Flush),
        2 => Just(Action::RefusedFlush),
        2 => Just(Action::DoubtfulFlush),
        2 => Just(Action::Checkpoint),
        3 => Just(Action::Seal),
        3 => Just(Action::PackStep),
        1 => Just(Action::PackAll),
        1 => Just(Action::Reopen),
        1 => Just(Action::Restart),
        2 => Just(Action::Crash),
    ]
}

#[derive(Default)]
struct Model {
    points: BTreeMap<(u8, usize), BTreeMap<i64, i64>>,
    /// What was ever applied, by partition.
    journal: [Vec<Vec<Row>>; 2],
}

impl Model {
    fn save(&mut self, row: &Row) {
        for at in (0..NAMES.len()).filter(|at| row.names & (1 << at) != 0) {
            self.points
                .entry((row.subject, at))
                .or_default()
                .insert(row.ts, row.value);
        }
    }

    fn range(&self, key: (u8, usize), query: RangeQuery) -> Vec<(i64, i64)> {
        let held = self.points.get(&key).into_iter().flatten();
        let mut found: Vec<_> = held
            .map(|(ts, value)| (*ts, *value))
            .filter(|(ts, _)| (query.start..query.end).contains(ts))
            .collect();
        if query.order == PointOrder::Descending {
            found.reverse();
        }
        found.truncate(query.limit);
        found
    }
}

/// Hands the rows in memory to the engine as the store does, with an outcome of choice.
pub(super) fn flush(store: &SeriesStore, is_committed: bool, is_known: bool) {
    let _one = store.checkpointing.lock();
    let engine = store.engine().unwrap();
    let epoch = engine.active().unwrap();
    let mut batch = engine.batch(16);
    let leaving = store.memtable.flush(&epoch, &mut batch, 0);
    if is_committed {
        engine.commit(batch, &[&epoch.rows]).unwrap();
    }
    if is_committed && is_known {
        store.memtable.remove_flushed(leaving);
    }
}

async fn apply(store: &SeriesStore, of: usize, next: usize, rows: &[Row]) -> Result<(), StoreError> {
    let packed: Vec<_> = rows.iter().map(Row::packed).collect();
    let effects = StoreEffects {
        states: Vec::new(),
        telemetry: lent(rows, &packed),
        attributes: Vec::new(),
    };
    store.apply(partition(of), Offset(next as u64), &effects).await
}

fn lent<'a>(rows: &[Row], packed: &'a [Vec<u8>]) -> Vec<TelemetryRow<'a>> {
    let rows = rows.iter().zip(packed);
    rows.map(|(row, values)| TelemetryRow {
        strategy: TelemetrySaveStrategy::ALL,
        subject: subject(row.subject),
        ts: row.ts,
        ttl_seconds: 0,
        values,
    })
    .collect()
}

async fn delete(store: &SeriesStore, of: u8, name: &str, range: Option<(i64, i64)>) {
    let what = SeriesDeletion {
        range,
        delete_latest: true,
        rewrite_latest: true,
    };
    TimeSeriesStore::delete(store, subject(of), &[name.to_owned()], what)
        .await
        .unwrap();
}

async fn act(world: &World, model: &mut Model, action: &Action) {
    let store = world.store();
    match action {
        Action::Apply(rows) => {
            for of in [0, 1] {
                // The records of a device are all in one partition.
                let mine: Vec<Row> = rows
                    .iter()
                    .filter(|row| usize::from(row.subject) % 2 == of)
                    .cloned()
                    .collect();
                mine.iter().for_each(|row| model.save(row));
                model.journal[of].push(mine);
                let (next, rows) = (model.journal[of].len(), model.journal[of].last().unwrap());
                apply(&store, of, next, rows).await.unwrap();
            }
        }
        Action::Save(rows) => {
            rows.iter().for_each(|row| model.save(row));
            let packed: Vec<_> = rows.iter().map(Row::packed).collect();
            TimeSeriesStore::save(&*store, &lent(rows, &packed))
                .await
                .unwrap();
        }
        Action::Delete(of, name, range) => {
            let goes = |ts: i64| range.is_none_or(|(start, end)| start <= ts && ts < end);
            model
                .points
                .entry((*of, *name))
                .or_default()
                .retain(|ts, _| !goes(*ts));
            delete(&store, *of, NAMES[*name], *range).await;
        }
        Action::DeleteSubject(of) => {
            model.points.retain(|key, _| key.0 != *of);
            let gone = [ValueRemovalScope::Subject(subject(*of))];
            store.remove(&gone, &[]).await.unwrap();
        }
        Action::Flush => {
            flush(&store, true, true);
            let engine = store.engine().unwrap();
            let mut batch = engine.batch(1);
            store.memtable.flush(&engine.active().unwrap(), &mut batch, 0);
            assert!(
                store.memtable.is_empty() && batch.is_empty(),
                "rows stay in memory"
            );
        }
        Action::RefusedFlush => flush(&store, false, false),
        Action::DoubtfulFlush => flush(&store, true, false),
        Action::Checkpoint => drop(store.checkpoint().await.unwrap()),
        Action::Seal => store.seal_active().unwrap(),
        Action::PackStep => drop(store.compact_step().unwrap()),
        Action::PackAll => store.compact_now().unwrap(),
        Action::Reopen => {
            *store.health.lock() = SeriesHealth::DiskFull;
            store.try_reopen();
            assert!(store.refusal().is_none());
        }
        Action::Restart => {
            drop(store);
            world.damage(|_| {}).unwrap();
            assert!(world.store().memtable.is_empty());
        }
        Action::Crash => {
            drop(store);
            world.crash();
            for (of, journal) in model.journal.iter().enumerate() {
                let resume = world.store().resume_position(partition(of)).await.unwrap();
                let resume = resume.map_or(0, |offset| offset.0 as usize);
                for (at, rows) in journal.iter().enumerate().skip(resume) {
                    apply(&world.store(), of, at + 1, rows).await.unwrap();
                }
            }
        }
    }
}

async fn compare(store: &SeriesStore, model: &Model, asked: &[(RangeQuery, u8)]) {
    for of in 0..SUBJECTS {
        for (at, name) in NAMES.iter().enumerate() {
            let backwards = RangeQuery {
                order: PointOrder::Descending,
                ..ALL
            };
            let of_subject = asked
                .iter()
                .filter(|(_, other)| *other == of)
                .map(|(query, _)| *query);
            for query in [ALL, backwards].into_iter().chain(of_subject) {
                let found = store.range(subject(of), name, query).await.unwrap();
                let found: Vec<_> = found.into_iter().map(|point| (point.ts, point.value)).collect();
                let expected = model.range((of, at), query);
                let expected: Vec<_> = expected
                    .into_iter()
                    .map(|(ts, value)| (ts, KvValue::Long(value)))
                    .collect();
                assert_eq!(found, expected, "{name} of {of}, {query:?}");
                let paged = super::pages::all(store, subject(of), name, query, 3 * POINT_BYTES).await;
                assert_eq!(paged, expected, "{name} of {of} in pages, {query:?}");
            }
            let bucket = AggregationBucket {
                start: -100_000,
                end: 100_000,
            };
            let sums = store
                .aggregate(subject(of), name, Aggregation::Sum, &[bucket])
                .await
                .unwrap();
            let within = RangeQuery {
                start: bucket.start,
                end: bucket.end,
                ..ALL
            };
            let points = model.range((of, at), within);
            let sum = points.iter().map(|(_, value)| value).sum();
            let expected = (!points.is_empty()).then_some(KvValue::Long(sum));
            assert_eq!(
                sums.into_iter().next().map(|point| point.value),
                expected,
                "{name} of {of}"
            );
        }
    }
}

fn query() -> impl Strategy<Value = (RangeQuery, u8)> {
    let order = prop_oneof![Just(PointOrder::Ascending), Just(PointOrder::Descending)];
    (
        span(),
        prop_oneof![1_usize..4, Just(usize::MAX)],
        order,
        0..SUBJECTS,
    )
        .prop_map(|((start, end), limit, order, of)| {
            let query = RangeQuery {
                start,
                end,
                limit,
                order,
            };
            (query, of)
        })
}

fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn rows_read_the_same_wherever_they_are(
        actions in proptest::collection::vec((action(), proptest::collection::vec(query(), 0..4)), 1..40)
    ) {
        runtime().block_on(async {
            let world = World::new();
            let mut model = Model::default();
            for (action, asked) in &actions {
                act(&world, &mut model, action).await;
                compare(&world.store(), &model, asked).await;
            }
            world.store().close().unwrap();
        });
    }
}

#[test]
fn a_store_of_the_format_without_a_number_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let open = || SeriesStore::open(root.path(), &quiet(), ManualClock::at(1_700_000_000_000));
    let store = open().unwrap();
    store.engine().unwrap().meta.remove(b"f").unwrap();
    store.close().unwrap();
    drop(store);
    let refused = open().err().unwrap();
    assert_eq!(refused.kind(), StoreErrorKind::Invalid);
    assert!(refused.to_string().contains("format 1"), "{refused}");
}

/// The compaction takes some blocks at a time. Those of a window overlap, and the last of them need not hold the newest
/// rows.
#[test]
fn a_window_that_is_larger_than_what_is_packed_at_once_keeps_its_newest_values() {
    const TIMES: i64 = 600;
    let runtime = runtime();
    for length in [12_000, 12_500, 13_000, 13_500] {
        let world = World::new();
        let store = world.store();
        let text = |of: &str, ts: i64| KvValue::Text(format!("{of} {ts} {}", "x".repeat(length)).into());
        // A block takes two rows: those of the second write begin one earlier.
        for (of, first) in [("old", 2), ("new", 1)] {
            let packed: Vec<_> = (first..TIMES)
                .map(|ts| {
                    let mut out = Vec::new();
                    pack("k", text(of, ts).as_ref(), &mut out);
                    out
                })
                .collect();
            let rows: Vec<_> = packed
                .iter()
                .zip(first..)
                .map(|(values, ts)| TelemetryRow {
                    strategy: TelemetrySaveStrategy::ALL,
                    subject: subject(0),
                    ts,
                    ttl_seconds: 0,
                    values,
                })
                .collect();
            runtime.block_on(TimeSeriesStore::save(&*store, &rows)).unwrap();
        }
        store.compact_now().unwrap();
        let found = runtime.block_on(store.range(subject(0), "k", ALL)).unwrap();
        assert_eq!(found.len(), TIMES as usize - 1);
        assert!(found.iter().all(|point| point.value == text("new", point.ts)));
        store.close().unwrap();
    }
}

#[test]
fn an_epoch_is_as_large_after_a_restart_as_before() {
    let world = World::new();
    let runtime = runtime();
    let mut packed = Vec::new();
    pack("k", KvValue::Long(1).as_ref(), &mut packed);
    for n in 0..20 {
        let rows: Vec<_> = (0..2000)
            .map(|at| TelemetryRow {
                strategy: TelemetrySaveStrategy::ALL,
                subject: subject(0),
                ts: n * 2000 + at,
                ttl_seconds: 0,
                values: &packed,
            })
            .collect();
        runtime
            .block_on(TimeSeriesStore::save(&*world.store(), &rows))
            .unwrap();
    }
    let bytes = || {
        let epoch = world.store().engine().unwrap().active().unwrap();
        epoch.bytes.load(std::sync::atomic::Ordering::Relaxed)
    };
    let before = bytes();
    world.damage(|_| {}).unwrap();
    let after = bytes();
    assert!(
        (before / 2..before * 2).contains(&after),
        "{after} bytes, {before} before"
    );
    world.store().close().unwrap();
}

#[test]
fn rows_in_memory_are_packed_as_well_when_somebody_cannot_wait() {
    let world = World::new();
    let rows = [Row {
        subject: 0,
        ts: 1,
        value: 1,
        names: 1,
        large: false,
    }];
    runtime().block_on(apply(&world.store(), 0, 1, &rows)).unwrap();
    world.store().compact_now().unwrap();
    let engine = world.store().engine().unwrap();
    assert!(engine.chunks.from(&[]).next().is_some());
    drop(engine);
    world.store().close().unwrap();
}
