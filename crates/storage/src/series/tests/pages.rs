//! Points in pages of so many bytes: together they are what one read gives, and none is larger.

use fieldline_core::ports::{
    IngestStore, Offset, StoreEffects, StoreErrorKind, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore,
};
use fieldline_model::EntityKey;
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::timeseries::{Aggregation, AggregationBucket, DataPoint, PointOrder, RangeQuery};

use super::super::SeriesStore;
use super::World;
use super::memtable::{ALL, flush, partition, subject};

/// What a number takes.
pub(super) const POINT_BYTES: usize = size_of::<DataPoint>();

/// All points of a query, read in pages.
pub(super) async fn all(
    store: &SeriesStore,
    of: EntityKey,
    name: &str,
    mut query: RangeQuery,
    max_bytes: usize,
) -> Vec<(i64, KvValue)> {
    let mut found = Vec::new();
    let mut allowed = max_bytes;
    loop {
        let page = store.page(of, name, query, allowed).await.unwrap();
        let bytes: usize = page.points.iter().map(DataPoint::bytes).sum();
        assert!(bytes <= allowed, "{bytes} bytes in a page of {allowed}");
        assert!(page.needs == 0 || (page.points.is_empty() && page.needs > allowed));
        allowed = max_bytes.max(page.needs);
        query.limit -= page.points.len();
        found.extend(page.points.into_iter().map(|point| (point.ts, point.value)));
        match page.rest.filter(|_| query.limit > 0) {
            Some((start, end)) => {
                assert!(query.start <= start && end <= query.end);
                (query.start, query.end) = (start, end);
            }
            None => return found,
        }
    }
}

/// The text of a point: too long for a page now and then.
fn text(number: i64) -> String {
    let length = if number % 50 == 7 { 200_000 } else { 30_000 };
    format!("{number:05}").repeat(length / 5)
}

/// Applies rows, which are in memory then.
async fn apply(
    store: &SeriesStore,
    next: u64,
    numbers: impl Iterator<Item = i64>,
    times: impl Fn(i64) -> i64,
) {
    let packed: Vec<(i64, Vec<u8>)> = numbers
        .map(|number| {
            let mut values = Vec::new();
            pack("text", KvValue::Text(text(number).into()).as_ref(), &mut values);
            pack("number", KvValue::Long(number).as_ref(), &mut values);
            (times(number), values)
        })
        .collect();
    let telemetry: Vec<TelemetryRow<'_>> = packed
        .iter()
        .map(|(ts, values)| TelemetryRow {
            strategy: TelemetrySaveStrategy::ALL,
            subject: subject(0),
            ts: *ts,
            ttl_seconds: 0,
            values,
        })
        .collect();
    let effects = StoreEffects {
        states: Vec::new(),
        telemetry,
        attributes: Vec::new(),
    };
    store.apply(partition(0), Offset(next), &effects).await.unwrap();
}

async fn check(store: &SeriesStore, count: i64) {
    let backwards = RangeQuery {
        order: PointOrder::Descending,
        ..ALL
    };
    for query in [
        ALL,
        backwards,
        RangeQuery {
            limit: 70,
            ..backwards
        },
    ] {
        let mut expected: Vec<(i64, KvValue)> = (0..count)
            .map(|number| (number, KvValue::Text(text(number).into())))
            .collect();
        if query.order == PointOrder::Descending {
            expected.reverse();
        }
        expected.truncate(query.limit);
        let found = all(store, subject(0), "text", query, 100_000).await;
        assert!(found == expected, "{} of {} texts", found.len(), expected.len());
    }
    let bucket = [AggregationBucket { start: 0, end: count }];
    let value = async |aggregation| {
        let found = store.aggregate(subject(0), "text", aggregation, &bucket).await;
        found.unwrap().remove(0).value
    };
    assert_eq!(value(Aggregation::Count).await, KvValue::Long(count));
    assert_eq!(value(Aggregation::Min).await, KvValue::Text(text(0).into()));
    assert_eq!(
        value(Aggregation::Max).await,
        KvValue::Text(text(count - 1).into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_come_in_pages_wherever_they_are_stored() {
    const COUNT: i64 = 120;
    let world = World::new();
    let store = world.store();
    // All of one window of time, and written in another order than that of their times.
    apply(&store, 1, (0..COUNT).filter(|number| number % 2 == 1), |number| {
        number
    })
    .await;
    flush(&store, true, true);
    // The later value of a time counts.
    apply(&store, 2, 0..COUNT, |number| COUNT - 1 - number).await;
    flush(&store, true, true);
    apply(&store, 3, 0..COUNT, |number| number).await;
    check(&store, COUNT).await;
    flush(&store, true, true);
    check(&store, COUNT).await;
    store.compact_now().unwrap();
    check(&store, COUNT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregation_does_not_keep_more_text_than_it_may() {
    let world = World::new();
    let store = world.store();
    apply(&store, 1, 0..200, |number| number).await;
    let buckets: Vec<AggregationBucket> = (0..200)
        .map(|start| AggregationBucket {
            start,
            end: start + 1,
        })
        .collect();
    let read = async |name, aggregation| store.aggregate(subject(0), name, aggregation, &buckets).await;
    for _ in 0..2 {
        let refused = read("text", Aggregation::Max).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Invalid, "{refused}");
        assert_eq!(read("text", Aggregation::Count).await.unwrap().len(), 200);
        assert_eq!(read("number", Aggregation::Max).await.unwrap().len(), 200);
        store.compact_now().unwrap();
    }
}
