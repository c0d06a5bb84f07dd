//! What every store of time series, latest values, attributes and journal positions promises.
//!
//! Every function works on fresh subjects, so they may share one database. [`SeriesBackend::crash`] ends the running stores as a
//! crash would, and opens them again on what is durable.

mod ingest;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use async_trait::async_trait;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, IngestStore, Offset, Partition, QueueId, SeriesDeletion, StateRow,
    StoreEffects, StoreResult, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore, ValueRemoval,
    ValueRemovalScope,
};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::timeseries::{
    Aggregation, AggregationBucket, AttributeScope, DataPoint, PointOrder, RangeQuery,
};
use fieldline_model::{DeviceId, EntityKey, TenantId};

pub use self::ingest::{
    a_replay_completes_what_a_crash_cut_off, a_replay_does_not_undo_what_people_did,
    applied_effects_are_seen_and_skipped_the_second_time, records_after_a_rewind_are_new_ones,
    what_happens_between_records_leaves_the_position,
};

/// The ports over one set of data.
#[derive(Clone)]
pub struct SeriesStores {
    /// Time series and latest values.
    pub series: Arc<dyn TimeSeriesStore>,
    /// Attributes.
    pub attributes: Arc<dyn AttributeStore>,
    /// Effects of journal records.
    pub ingest: Arc<dyn IngestStore>,
    /// Removal of what is gone.
    pub removal: Arc<dyn ValueRemoval>,
}

/// A backend under test.
#[async_trait]
pub trait SeriesBackend: Send + Sync {
    /// The stores, running.
    async fn stores(&self) -> SeriesStores;
    /// Ends the stores without warning and opens them again.
    async fn crash(&self) -> SeriesStores;
    /// The time by which the backend judges what has expired.
    fn now_ms(&self) -> i64;
}

fn ok<T>(result: StoreResult<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the store failed: {error}"),
    }
}

fn subject() -> EntityKey {
    EntityKey::device(TenantId::new(), DeviceId::new())
}

fn fresh_partition() -> Partition {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    Partition {
        queue: QueueId(7),
        index: NEXT.fetch_add(1, Ordering::Relaxed),
    }
}

fn packed(values: &[(&str, KvValue)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in values {
        pack(key, value.as_ref(), &mut out);
    }
    out
}

async fn save(stores: &SeriesStores, subject: EntityKey, ts: i64, values: &[(&str, KvValue)]) {
    save_for(stores, subject, ts, 0, values).await;
}

async fn save_for(
    stores: &SeriesStores,
    subject: EntityKey,
    ts: i64,
    ttl_seconds: u32,
    values: &[(&str, KvValue)],
) {
    let values = packed(values);
    let row = TelemetryRow {
        strategy: TelemetrySaveStrategy::ALL,
        subject,
        ts,
        ttl_seconds,
        values: &values,
    };
    ok(stores.series.save(&[row]).await);
}

type PointRows<'a> = &'a [(EntityKey, i64, &'a str, i64)];

async fn apply(stores: &SeriesStores, partition: Partition, next: u64, rows: PointRows<'_>) {
    let values = values_of(rows);
    let effects = effects(rows, &values, Vec::new());
    ok(stores.ingest.apply(partition, Offset(next), &effects).await);
}

async fn apply_between_records(
    stores: &SeriesStores,
    partition: Partition,
    rows: PointRows<'_>,
    states: Vec<StateRow>,
) {
    let values = values_of(rows);
    ok(stores
        .ingest
        .apply_between_records(partition, &effects(rows, &values, states))
        .await);
}

fn values_of(rows: PointRows<'_>) -> Vec<Vec<u8>> {
    rows.iter()
        .map(|(_, _, key, value)| packed(&[(key, KvValue::Long(*value))]))
        .collect()
}

fn effects<'a>(rows: PointRows<'_>, values: &'a [Vec<u8>], states: Vec<StateRow>) -> StoreEffects<'a> {
    let telemetry = rows
        .iter()
        .zip(values)
        .map(|((subject, ts, _, _), values)| TelemetryRow {
            strategy: TelemetrySaveStrategy::ALL,
            subject: *subject,
            ts: *ts,
            ttl_seconds: 0,
            values,
        })
        .collect();
    StoreEffects {
        states,
        telemetry,
        attributes: Vec::new(),
    }
}

const ALL: RangeQuery = RangeQuery {
    start: i64::MIN,
    end: i64::MAX,
    limit: 1000,
    order: PointOrder::Ascending,
};

async fn range(
    stores: &SeriesStores,
    subject: EntityKey,
    key: &str,
    query: RangeQuery,
) -> Vec<(i64, KvValue)> {
    let points = ok(stores.series.range(subject, key, query).await);
    points.into_iter().map(|point| (point.ts, point.value)).collect()
}

async fn times(stores: &SeriesStores, subject: EntityKey, key: &str) -> Vec<i64> {
    let points = range(stores, subject, key, ALL).await;
    points.into_iter().map(|(ts, _)| ts).collect()
}

async fn latest(stores: &SeriesStores, subject: EntityKey, key: &str) -> Option<(i64, KvValue)> {
    let keys = [key.to_owned()];
    let mut found = ok(stores.series.latest(subject, Some(&keys)).await);
    found.pop().map(|value| (value.point.ts, value.point.value))
}

fn long(value: i64) -> KvValue {
    KvValue::Long(value)
}

fn text(value: &str) -> KvValue {
    KvValue::Text(value.into())
}

/// Raw points come in the order asked for, from the range asked for, in their types.
pub async fn points_come_back_in_range_and_order(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let subject = subject();
    let values = [
        (30, KvValue::Bool(true)),
        (10, long(i64::MIN)),
        (40, text("grüße")),
        (20, KvValue::Double(0.5)),
        (50, KvValue::Json("{\"a\":1}".into())),
    ];
    for (ts, value) in &values {
        save(&stores, subject, *ts, &[("a", value.clone()), ("ab", long(1))]).await;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by_key(|(ts, _)| *ts);
    assert_eq!(range(&stores, subject, "a", ALL).await, sorted);
    let query = RangeQuery {
        start: 20,
        end: 50,
        limit: 2,
        order: PointOrder::Descending,
    };
    let newest: Vec<_> = [3, 2].map(|at: usize| sorted[at].clone()).to_vec();
    assert_eq!(range(&stores, subject, "a", query).await, newest);
    let none = RangeQuery { start: 50, ..query };
    assert_eq!(range(&stores, subject, "a", none).await, []);
    assert_eq!(range(&stores, subject, "b", ALL).await, []);
}

/// A point at a time that has one replaces it; the latest value has the greatest time, and of equal ones the later write.
pub async fn a_later_write_replaces_and_late_data_does_not_become_latest(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let subject = subject();
    save(&stores, subject, 100, &[("k", long(1))]).await;
    save(&stores, subject, 100, &[("k", text("two"))]).await;
    assert_eq!(range(&stores, subject, "k", ALL).await, [(100, text("two"))]);
    assert_eq!(latest(&stores, subject, "k").await, Some((100, text("two"))));
    save(&stores, subject, 50, &[("k", long(3))]).await;
    assert_eq!(latest(&stores, subject, "k").await, Some((100, text("two"))));
    assert_eq!(times(&stores, subject, "k").await, [50, 100]);
    let stores = backend.crash().await;
    assert_eq!(latest(&stores, subject, "k").await, Some((100, text("two"))));
    assert_eq!(times(&stores, subject, "k").await, [50, 100], "saves are durable");
}

/// Names and latest values are sorted by name, and what does not exist is left out.
pub async fn keys_and_latest_values_are_sorted(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let subject = subject();
    save(
        &stores,
        subject,
        1,
        &[("b", long(1)), ("a", long(2)), ("c", long(3))],
    )
    .await;
    assert_eq!(ok(stores.series.keys(subject).await), ["a", "b", "c"]);
    let keys = ["c".to_owned(), "x".to_owned(), "a".to_owned()];
    let found = ok(stores.series.latest(subject, Some(&keys)).await);
    let names: Vec<_> = found.iter().map(|value| value.key.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(ok(stores.series.latest(subject, None).await).len(), 3);
}

async fn aggregated(
    stores: &SeriesStores,
    subject: EntityKey,
    key: &str,
    kind: Aggregation,
    buckets: &[AggregationBucket],
) -> Vec<DataPoint> {
    ok(stores.series.aggregate(subject, key, kind, buckets).await)
}

/// Each aggregation over each kind of values, a point a bucket that holds anything.
pub async fn buckets_are_aggregated_by_the_types_in_them(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let subject = subject();
    for (ts, value) in [
        (0, long(3)),
        (5, long(-1)),
        (10, KvValue::Double(0.5)),
        (11, long(2)),
    ] {
        save(&stores, subject, ts, &[("n", value)]).await;
    }
    for (ts, value) in [(30, text("b")), (31, text("a")), (32, KvValue::Bool(true))] {
        save(&stores, subject, ts, &[("n", value)]).await;
    }
    let buckets =
        [(0, 10), (10, 20), (20, 30), (30, 40)].map(|(start, end)| AggregationBucket { start, end });
    let expected = [
        (
            Aggregation::Min,
            vec![(5, long(-1)), (15, KvValue::Double(0.5)), (35, text("a"))],
        ),
        (
            Aggregation::Max,
            vec![(5, long(3)), (15, KvValue::Double(2.0)), (35, text("b"))],
        ),
        (
            Aggregation::Avg,
            vec![(5, KvValue::Double(1.0)), (15, KvValue::Double(1.25))],
        ),
        (Aggregation::Sum, vec![(5, long(2)), (15, KvValue::Double(2.5))]),
        (
            Aggregation::Count,
            vec![(5, long(2)), (15, long(2)), (35, long(3))],
        ),
    ];
    for (kind, expected) in expected {
        let points = aggregated(&stores, subject, "n", kind, &buckets).await;
        let points: Vec<_> = points.into_iter().map(|point| (point.ts, point.value)).collect();
        assert_eq!(points, expected, "{kind:?}");
    }
    for ts in [1, 2] {
        save(&stores, subject, ts, &[("big", long(i64::MAX))]).await;
    }
    let sum = aggregated(&stores, subject, "big", Aggregation::Sum, &buckets).await;
    assert_eq!(
        sum,
        [DataPoint {
            ts: 5,
            value: KvValue::Double(2.0 * i64::MAX as f64)
        }],
        "a sum that does not fit"
    );
}

/// Points past their time-to-live are not returned, not counted and not latest.
pub async fn expired_points_are_not_returned(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let subject = subject();
    let now = backend.now_ms();
    save_for(
        &stores,
        subject,
        now - 20_000,
        5,
        &[("gone", long(1)), ("k", long(1))],
    )
    .await;
    save_for(&stores, subject, now - 10_000, 3600, &[("k", long(2))]).await;
    save_for(&stores, subject, now - 5_000, 0, &[("k", long(3))]).await;
    assert_eq!(times(&stores, subject, "k").await, [now - 10_000, now - 5_000]);
    assert_eq!(times(&stores, subject, "gone").await, [0; 0]);
    assert_eq!(latest(&stores, subject, "gone").await, None);
    let bucket = AggregationBucket {
        start: now - 30_000,
        end: now,
    };
    let count = aggregated(&stores, subject, "k", Aggregation::Count, &[bucket]).await;
    assert_eq!(
        count,
        [DataPoint {
            ts: bucket.middle(),
            value: long(2)
        }]
    );
}

/// Ranges and whole series are deleted, and the latest value follows as asked.
pub async fn deletion_follows_the_rules_for_latest_values(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let subject = subject();
    let delete = |key: &'static str, range, delete_latest, rewrite_latest| {
        let what = SeriesDeletion {
            range,
            delete_latest,
            rewrite_latest,
        };
        let series = Arc::clone(&stores.series);
        async move { ok(series.delete(subject, &[key.to_owned()], what).await) }
    };
    for ts in [1, 2, 3, 4] {
        save(
            &stores,
            subject,
            ts,
            &[("a", long(ts)), ("b", long(ts)), ("c", long(ts)), ("d", long(ts))],
        )
        .await;
    }
    delete("a", Some((2, 4)), true, true).await;
    assert_eq!(times(&stores, subject, "a").await, [1, 4]);
    assert_eq!(
        latest(&stores, subject, "a").await,
        Some((4, long(4))),
        "outside of the range"
    );
    delete("a", Some((4, 5)), true, true).await;
    assert_eq!(
        latest(&stores, subject, "a").await,
        Some((1, long(1))),
        "rewritten"
    );
    delete("b", Some((4, 5)), false, false).await;
    assert_eq!(latest(&stores, subject, "b").await, Some((4, long(4))), "kept");
    delete("c", Some((4, 5)), true, false).await;
    assert_eq!(latest(&stores, subject, "c").await, None, "not rewritten");
    assert_eq!(times(&stores, subject, "c").await, [1, 2, 3]);
    delete("d", None, true, true).await;
    assert_eq!(
        (
            times(&stores, subject, "d").await,
            latest(&stores, subject, "d").await
        ),
        (vec![], None)
    );
    let stores = backend.crash().await;
    assert_eq!(times(&stores, subject, "a").await, [1], "deletions are durable");
    assert_eq!(latest(&stores, subject, "a").await, Some((1, long(1))));
    assert_eq!(times(&stores, subject, "b").await, [1, 2, 3]);
    ok(stores
        .removal
        .remove(&[ValueRemovalScope::Subject(subject)], &[])
        .await);
    assert_eq!(ok(stores.series.keys(subject).await), [""; 0]);
    assert_eq!(times(&stores, subject, "b").await, [0; 0]);
}

/// Of what is gone nothing is left, of others everything.
pub async fn what_is_gone_leaves_nothing_and_others_keep_theirs(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let (gone, spared, also) = (subject(), subject(), subject());
    let of = |tenant: EntityKey| EntityKey::device(tenant.tenant, DeviceId::new());
    // A tenant with two devices, of which one has gone to another tenant; one device of a tenant that has another.
    let (second, kept) = (of(spared), of(also));
    let everybody = [gone, spared, second, also, kept];
    for whose in everybody {
        for ts in 1..4 {
            save(&stores, whose, ts, &[("k", long(ts)), ("l", long(ts))]).await;
        }
        let row = AttributeRow {
            subject: whose,
            scope: AttributeScope::Shared,
            ts: 1,
            values: &packed(&[("a", long(1))]),
        };
        ok(stores.attributes.save(&[row]).await);
    }
    let left = async |stores: &SeriesStores| {
        let mut left = Vec::new();
        for whose in everybody {
            let points = times(stores, whose, "k").await.len() + times(stores, whose, "l").await.len();
            let keys = ok(stores.series.keys(whose).await).len();
            let attributes = ok(stores.attributes.get(whose, AttributeScope::Shared, None).await).len();
            left.push((points, keys, attributes));
        }
        left
    };
    let (all, nothing) = ((6, 2, 1), (0, 0, 0));
    let removed = [
        ValueRemovalScope::Tenant(gone.tenant),
        ValueRemovalScope::Tenant(spared.tenant),
        ValueRemovalScope::Subject(also),
    ];
    for _ in 0..2 {
        ok(stores.removal.remove(&removed, &[spared]).await);
        assert_eq!(left(&stores).await, [nothing, all, nothing, nothing, all]);
    }
    let stores = backend.crash().await;
    assert_eq!(
        left(&stores).await,
        [nothing, all, nothing, nothing, all],
        "it is durable"
    );
    // What comes later is there, until it is asked again.
    save(&stores, also, 9, &[("k", long(9))]).await;
    assert_eq!(left(&stores).await[3], (1, 1, 0));
    ok(stores.removal.remove(&removed, &[]).await);
    assert_eq!(left(&stores).await, [nothing, nothing, nothing, nothing, all]);
}

/// Nothing of a subject is seen or deleted through another tenant, entity or name.
pub async fn subjects_are_walls(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let mine = subject();
    let others = [
        EntityKey {
            tenant: TenantId::new(),
            ..mine
        },
        EntityKey::device(mine.tenant, DeviceId::new()),
    ];
    let attribute = packed(&[("k", long(1))]);
    save(&stores, mine, 1, &[("k", long(1)), ("kk", long(2))]).await;
    let row = AttributeRow {
        subject: mine,
        scope: AttributeScope::Server,
        ts: 1,
        values: &attribute,
    };
    ok(stores.attributes.save(&[row]).await);
    for other in others {
        assert_eq!(times(&stores, other, "k").await, [0; 0]);
        assert_eq!(latest(&stores, other, "k").await, None);
        assert_eq!(
            ok(stores.attributes.get(other, AttributeScope::Server, None).await),
            []
        );
        save(&stores, other, 1, &[("k", long(9))]).await;
        ok(stores
            .removal
            .remove(&[ValueRemovalScope::Subject(other)], &[])
            .await);
    }
    let whole = SeriesDeletion {
        range: None,
        delete_latest: true,
        rewrite_latest: false,
    };
    ok(stores.series.delete(mine, &["k".to_owned()], whole).await);
    assert_eq!(
        times(&stores, mine, "kk").await,
        [1],
        "a longer name is another series"
    );
    assert_eq!(
        ok(stores.attributes.get(mine, AttributeScope::Server, None).await).len(),
        1
    );
}

async fn attribute(
    stores: &SeriesStores,
    subject: EntityKey,
    scope: AttributeScope,
    key: &str,
) -> Option<(i64, KvValue)> {
    let keys = [key.to_owned()];
    let mut found = ok(stores.attributes.get(subject, scope, Some(&keys)).await);
    found.pop().map(|it| (it.last_update_ts, it.value))
}

/// Of two writes to an attribute the later wins; scopes are apart; deletion names what existed.
pub async fn attributes_keep_the_last_write_of_each_scope(backend: &dyn SeriesBackend) {
    use AttributeScope::{Client, Server, Shared};
    let stores = backend.stores().await;
    let subject = subject();
    let save = |scope, ts, value: i64| {
        let attributes = Arc::clone(&stores.attributes);
        let values = packed(&[("k", long(value)), ("j", long(value))]);
        async move {
            let row = AttributeRow {
                subject,
                scope,
                ts,
                values: &values,
            };
            ok(attributes.save(&[row]).await);
        }
    };
    save(Client, 10, 1).await;
    save(Client, 10, 2).await;
    save(Client, 9, 3).await;
    save(Shared, 1, 4).await;
    assert_eq!(
        attribute(&stores, subject, Client, "k").await,
        Some((9, long(3))),
        "also where the clock was set back in between"
    );
    assert_eq!(attribute(&stores, subject, Shared, "k").await, Some((1, long(4))));
    assert_eq!(attribute(&stores, subject, Server, "k").await, None);
    let relaxed = packed(&[("active", KvValue::Bool(true))]);
    let row = AttributeRow {
        subject,
        scope: Server,
        ts: 5,
        values: &relaxed,
    };
    ok(stores.attributes.save_relaxed(&[row]).await);
    assert_eq!(
        attribute(&stores, subject, Server, "active").await,
        Some((5, KvValue::Bool(true)))
    );
    let names: Vec<_> = ok(stores.attributes.get(subject, Client, None).await)
        .into_iter()
        .map(|it| it.key)
        .collect();
    assert_eq!(names, ["j", "k"]);
    let goes = ["k".to_owned(), "x".to_owned()];
    assert_eq!(ok(stores.attributes.delete(subject, Client, &goes).await), ["k"]);
    let stores = backend.crash().await;
    assert_eq!(
        attribute(&stores, subject, Client, "k").await,
        None,
        "deletions are durable"
    );
    assert_eq!(
        attribute(&stores, subject, Client, "j").await,
        Some((9, long(3))),
        "saves are durable"
    );
    ok(stores
        .removal
        .remove(&[ValueRemovalScope::Subject(subject)], &[])
        .await);
    assert_eq!(ok(stores.attributes.get(subject, Shared, None).await), []);
}
