//! Random histories against a model that fits on a page.

use std::collections::BTreeMap;

use fieldline_core::clock::Clock;
use fieldline_core::ports::{
    IngestStore, Offset, Partition, QueueId, SeriesDeletion, StoreEffects, TelemetryRow,
    TelemetrySaveStrategy, TimeSeriesStore, ValueRemoval, ValueRemovalScope,
};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::timeseries::{Aggregation, AggregationBucket, PointOrder, RangeQuery};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use proptest::prelude::*;
use uuid::Uuid;

use super::super::chunk::is_expired;
use super::World;

const NAMES: [&str; 3] = ["a", "ab", "c"];
const SUBJECTS: u8 = 3;
/// Times are this close together, so that points meet.
const TIMES: i64 = 40;

#[derive(Debug, Clone)]
struct Row {
    subject: u8,
    ts: i64,
    ttl: u32,
    values: Vec<(usize, KvValue)>,
}

#[derive(Debug, Clone)]
enum Action {
    Ingest(Vec<Row>),
    Save(Row),
    Delete(u8, usize, Option<(i64, i64)>, bool, bool),
    DeleteSubject(u8),
    Checkpoint,
    Pack,
    Sweep,
    Crash,
    Wait(i64),
}

fn value() -> impl Strategy<Value = KvValue> {
    prop_oneof![
        4 => (-5i64..5).prop_map(KvValue::Long),
        2 => (-5i32..5).prop_map(|n| KvValue::Double(f64::from(n) / 2.0)),
        1 => any::<bool>().prop_map(KvValue::Bool),
        1 => "[a-c]{0,3}".prop_map(|text| KvValue::Text(text.into())),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let ttl = prop_oneof![3 => Just(0u32), 1 => 1u32..60];
    let values = proptest::collection::vec((0..NAMES.len(), value()), 1..4);
    (0..SUBJECTS, 0..TIMES, ttl, values).prop_map(|(subject, ts, ttl, values)| Row {
        subject,
        ts,
        ttl,
        values,
    })
}

fn action() -> impl Strategy<Value = Action> {
    let range = proptest::option::of((0..TIMES, 0..TIMES).prop_map(|(a, b)| (a.min(b), a.max(b))));
    prop_oneof![
        8 => proptest::collection::vec(row(), 1..12).prop_map(Action::Ingest),
        3 => row().prop_map(Action::Save),
        2 => (0..SUBJECTS, 0..NAMES.len(), range, any::<bool>(), any::<bool>())
            .prop_map(|(a, b, c, d, e)| Action::Delete(a, b, c, d, e)),
        1 => (0..SUBJECTS).prop_map(Action::DeleteSubject),
        2 => Just(Action::Checkpoint),
        3 => Just(Action::Pack),
        1 => Just(Action::Sweep),
        2 => Just(Action::Crash),
        1 => (1_000i64..20_000).prop_map(Action::Wait),
    ]
}

type Stored = (u32, KvValue);

#[derive(Default)]
struct Model {
    points: BTreeMap<(u8, usize), BTreeMap<i64, Stored>>,
    latest: BTreeMap<(u8, usize), (i64, Stored)>,
    /// The journal: what was ever ingested, by partition.
    journal: [Vec<Vec<Row>>; 2],
}

impl Model {
    fn save(&mut self, row: &Row) {
        for (name, value) in &row.values {
            let key = (row.subject, *name);
            let stored = (row.ttl, value.clone());
            self.points.entry(key).or_default().insert(row.ts, stored.clone());
            if self.latest.get(&key).is_none_or(|(ts, _)| *ts <= row.ts) {
                self.latest.insert(key, (row.ts, stored));
            }
        }
    }

    fn delete(&mut self, key: (u8, usize), range: Option<(i64, i64)>, latest: bool, rewrite: bool, now: i64) {
        let goes = |ts: i64| range.is_none_or(|(start, end)| start <= ts && ts < end);
        let points = self.points.entry(key).or_default();
        points.retain(|ts, _| !goes(*ts));
        if latest && self.latest.get(&key).is_some_and(|(ts, _)| goes(*ts)) {
            let left = points
                .iter()
                .rev()
                .find(|(ts, (ttl, _))| !is_expired(to_time(**ts), *ttl, now));
            match left.filter(|_| rewrite && range.is_some()) {
                Some((ts, stored)) => self.latest.insert(key, (*ts, stored.clone())),
                None => self.latest.remove(&key),
            };
        }
    }
}

/// Model times are small numbers; stored ones lie around the clock, so that some expire.
fn to_time(ts: i64) -> i64 {
    1_700_000_000_000 + ts * 1_000
}

fn subject(of: u8) -> EntityKey {
    EntityKey::device(
        TenantId(Uuid::from_u128(9)),
        DeviceId(Uuid::from_u128(u128::from(of))),
    )
}

fn partition(of: usize) -> Partition {
    Partition {
        queue: QueueId(0),
        index: of as u16,
    }
}

fn packed(row: &Row) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in &row.values {
        pack(NAMES[*name], value.as_ref(), &mut out);
    }
    out
}

fn telemetry<'a>(rows: &[Row], packed: &'a [Vec<u8>]) -> Vec<TelemetryRow<'a>> {
    rows.iter()
        .zip(packed)
        .map(|(row, values)| TelemetryRow {
            strategy: TelemetrySaveStrategy::ALL,
            subject: subject(row.subject),
            ts: to_time(row.ts),
            ttl_seconds: row.ttl,
            values,
        })
        .collect()
}

async fn ingest(world: &World, of: usize, record: usize, rows: &[Row]) {
    let packed: Vec<_> = rows.iter().map(packed).collect();
    let effects = StoreEffects {
        states: Vec::new(),
        telemetry: telemetry(rows, &packed),
        attributes: Vec::new(),
    };
    let next = Offset(record as u64 + 1);
    world.store().apply(partition(of), next, &effects).await.unwrap();
}

async fn act(world: &World, model: &mut Model, action: &Action) {
    let now = world.clock.now_ms();
    let store = world.store();
    match action {
        Action::Ingest(rows) => {
            // The records of a device are all in one partition.
            for of in [0, 1] {
                let mine: Vec<Row> = rows
                    .iter()
                    .filter(|row| usize::from(row.subject) % 2 == of)
                    .cloned()
                    .collect();
                mine.iter().for_each(|row| model.save(row));
                ingest(world, of, model.journal[of].len(), &mine).await;
                model.journal[of].push(mine);
            }
        }
        Action::Save(row) => {
            model.save(row);
            let packed = [packed(row)];
            let rows = telemetry(std::slice::from_ref(row), &packed);
            TimeSeriesStore::save(&*store, &rows).await.unwrap();
        }
        Action::Delete(of, name, range, delete_latest, rewrite_latest) => {
            model.delete((*of, *name), *range, *delete_latest, *rewrite_latest, now);
            let what = SeriesDeletion {
                range: range.map(|(start, end)| (to_time(start), to_time(end))),
                delete_latest: *delete_latest,
                rewrite_latest: *rewrite_latest,
            };
            let names = [NAMES[*name].to_owned()];
            TimeSeriesStore::delete(&*store, subject(*of), &names, what)
                .await
                .unwrap();
        }
        Action::DeleteSubject(of) => {
            model.points.retain(|key, _| key.0 != *of);
            model.latest.retain(|key, _| key.0 != *of);
            let gone = [ValueRemovalScope::Subject(subject(*of))];
            store.remove(&gone, &[]).await.unwrap();
        }
        Action::Checkpoint => drop(store.checkpoint().await.unwrap()),
        Action::Pack => store.compact_now().unwrap(),
        Action::Sweep => store.expire_slice().unwrap(),
        Action::Wait(ms) => world.clock.advance(*ms),
        Action::Crash => {
            drop(store);
            world.crash();
            for of in [0, 1] {
                let resume = world.store().resume_position(partition(of)).await.unwrap();
                let resume = resume.map_or(0, |offset| offset.0 as usize);
                for (record, rows) in model.journal[of].iter().enumerate().skip(resume) {
                    ingest(world, of, record, rows).await;
                }
            }
        }
    }
}

async fn compare(world: &World, model: &Model) {
    let (store, now) = (world.store(), world.clock.now_ms());
    for of in 0..SUBJECTS {
        let latest = store.latest(subject(of), None).await.unwrap();
        for (index, name) in NAMES.iter().enumerate() {
            let key = (of, index);
            let held = model.points.get(&key).into_iter().flatten();
            let mut expected: Vec<(i64, KvValue)> = held
                .map(|(ts, (ttl, value))| (to_time(*ts), *ttl, value.clone()))
                .filter(|(ts, ttl, _)| !is_expired(*ts, *ttl, now))
                .map(|(ts, _, value)| (ts, value))
                .collect();
            let query = RangeQuery {
                start: i64::MIN,
                end: i64::MAX,
                limit: usize::MAX,
                order: PointOrder::Ascending,
            };
            let found = store.range(subject(of), name, query).await.unwrap();
            let found: Vec<_> = found.into_iter().map(|point| (point.ts, point.value)).collect();
            assert_eq!(found, expected, "points of {name} of {of}");

            let buckets: Vec<AggregationBucket> = [(0, 7), (7, 20), (25, TIMES)]
                .map(|(start, end)| AggregationBucket {
                    start: to_time(start),
                    end: to_time(end),
                })
                .to_vec();
            let counts = store
                .aggregate(subject(of), name, Aggregation::Count, &buckets)
                .await
                .unwrap();
            let counts: Vec<_> = counts.into_iter().map(|point| (point.ts, point.value)).collect();
            let in_bucket = |bucket: &AggregationBucket| {
                expected
                    .iter()
                    .filter(|(ts, _)| bucket.start <= *ts && *ts < bucket.end)
                    .count()
            };
            let expected_counts: Vec<_> = buckets
                .iter()
                .map(|bucket| (bucket.middle(), KvValue::Long(in_bucket(bucket) as i64)))
                .filter(|(_, count)| *count != KvValue::Long(0))
                .collect();
            assert_eq!(counts, expected_counts, "counts of {name} of {of}");

            let query = RangeQuery {
                start: to_time(5),
                end: to_time(30),
                limit: 3,
                order: PointOrder::Descending,
            };
            let newest = store.range(subject(of), name, query).await.unwrap();
            let newest: Vec<_> = newest.into_iter().map(|point| (point.ts, point.value)).collect();
            expected.retain(|(ts, _)| (query.start..query.end).contains(ts));
            expected.reverse();
            expected.truncate(3);
            assert_eq!(newest, expected, "newest points of {name} of {of}");

            let found = latest.iter().find(|value| value.key == *name);
            let found = found.map(|value| (value.point.ts, value.point.value.clone()));
            match model.latest.get(&key) {
                // Once the latest value has expired, it may be forgotten at any time, and then older ones may follow it.
                Some((ts, (ttl, _))) if is_expired(to_time(*ts), *ttl, now) => {}
                Some((ts, (_, value))) => assert_eq!(
                    found,
                    Some((to_time(*ts), value.clone())),
                    "latest {name} of {of}"
                ),
                None => assert_eq!(found, None, "latest {name} of {of}"),
            }
        }
    }
}

fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(20)
}

proptest! {
    // Each case opens several databases; PROPTEST_CASES asks for more of them.
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn any_history_reads_like_the_model(actions in proptest::collection::vec(action(), 1..40)) {
        live_through(&World::new(), &actions);
    }

    #[test]
    #[cfg(feature = "sql")]
    #[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
    fn any_history_reads_like_the_model_on_postgres(actions in proptest::collection::vec(action(), 1..40)) {
        live_through(&super::postgres::world(), &actions);
    }
}

fn live_through(world: &World, actions: &[Action]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut model = Model::default();
        for action in actions {
            act(world, &mut model, action).await;
            compare(world, &model).await;
        }
        world.store().close().unwrap();
    });
}
