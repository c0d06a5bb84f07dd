//! Writes that fail, and reads that fail for a while: neither leaves anything behind in memory.

use std::sync::atomic::Ordering;

use fieldline_core::ports::{
    AttributeRow, AttributeStore, IngestStore, Offset, SeriesDeletion, StoreEffects, StoreErrorKind,
    StoreResult, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore, ValueRemoval, ValueRemovalScope,
};
use fieldline_model::kv::{KvValue, KvValueRef, pack};
use fieldline_model::timeseries::AttributeScope;

use super::super::health::SeriesHealth;
use super::super::read::read_header;
use super::World;
use super::memtable::{ALL, partition, subject};
use crate::series::SeriesStore;

fn packed(name: &str, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    pack(name, KvValueRef::Long(value), &mut out);
    out
}

fn row(ts: i64, values: &[u8]) -> TelemetryRow<'_> {
    TelemetryRow {
        subject: subject(0),
        ts,
        ttl_seconds: 0,
        strategy: TelemetrySaveStrategy::ALL,
        values,
    }
}

async fn save_point(store: &SeriesStore, ts: i64, value: i64) -> StoreResult<()> {
    TimeSeriesStore::save(store, &[row(ts, &packed("k", value))]).await
}

async fn save_attribute(store: &SeriesStore, name: &str, value: i64) -> StoreResult<()> {
    let row = AttributeRow {
        subject: subject(0),
        scope: AttributeScope::Server,
        ts: value,
        values: &packed(name, value),
    };
    AttributeStore::save(store, &[row]).await
}

/// All that readers see: attributes, latest values, points.
async fn sight(store: &SeriesStore) -> (Vec<(String, KvValue)>, Vec<(i64, KvValue)>, Vec<(i64, KvValue)>) {
    let attributes = AttributeStore::get(store, subject(0), AttributeScope::Server, None)
        .await
        .unwrap();
    let latest = store.latest(subject(0), None).await.unwrap();
    let points = store.range(subject(0), "k", ALL).await.unwrap();
    (
        attributes
            .into_iter()
            .map(|found| (found.key, found.value))
            .collect(),
        latest
            .into_iter()
            .map(|found| (found.point.ts, found.point.value))
            .collect(),
        points.into_iter().map(|point| (point.ts, point.value)).collect(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_write_that_fails_is_seen_by_nobody() {
    let world = World::new();
    let store = world.store();
    save_attribute(&store, "a", 1).await.unwrap();
    save_point(&store, 10, 1).await.unwrap();
    let before = sight(&store).await;
    assert_eq!(
        (before.0.len(), before.1.len(), before.2.len()),
        (1, 1, 1),
        "{before:?}"
    );

    let delete = |range| SeriesDeletion {
        range,
        delete_latest: true,
        rewrite_latest: true,
    };
    let (names, keys) = (["a".to_owned()], ["k".to_owned()]);
    let fails = |fail: bool| {
        let engine = store.engine().unwrap();
        engine.fails.store(fail, Ordering::Relaxed);
        // The store goes on only after a restart; the test does not wait for one.
        *store.health.lock() = SeriesHealth::Good;
    };
    for attempt in 0..6 {
        fails(true);
        let done = match attempt {
            0 => save_attribute(&store, "b", 2).await,
            1 => save_attribute(&store, "a", 2).await,
            2 => save_point(&store, 20, 2).await,
            3 => AttributeStore::delete(&*store, subject(0), AttributeScope::Server, &names)
                .await
                .map(drop),
            4 => TimeSeriesStore::delete(&*store, subject(0), &keys, delete(Some((0, 15)))).await,
            _ => store.remove(&[ValueRemovalScope::Subject(subject(0))], &[]).await,
        };
        assert!(done.is_err(), "attempt {attempt}");
        assert_eq!(sight(&store).await, before, "attempt {attempt}");
    }
    fails(false);
    store.checkpoint().await.unwrap();
    assert_eq!(sight(&store).await, before);
    world.crash();
    assert_eq!(sight(&world.store()).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_cannot_be_read_for_a_moment_are_not_corrupt_and_not_replaced_by_older_ones() {
    let world = World::new();
    save_point(&world.store(), 10, 1).await.unwrap();
    // What was in memory is not any more.
    world.crash();
    let store = world.store();
    store.latest.fails.store(true, Ordering::Relaxed);
    let refused = store.latest(subject(0), None).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    let values = packed("k", 0);
    let older = StoreEffects {
        states: Vec::new(),
        telemetry: vec![row(5, &values)],
        attributes: Vec::new(),
    };
    let refused = store.apply(partition(0), Offset(1), &older).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable, "it is tried again");
    store.latest.fails.store(false, Ordering::Relaxed);
    store.apply(partition(0), Offset(1), &older).await.unwrap();
    let (_, latest, points) = sight(&store).await;
    assert_eq!(latest, [(10, KvValue::Long(1))]);
    assert_eq!(points, [(5, KvValue::Long(0)), (10, KvValue::Long(1))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_at_the_end_of_time_is_packed_like_any_other() {
    let world = World::new();
    let store = world.store();
    save_point(&store, i64::MAX, 1).await.unwrap();
    store.compact_now().unwrap();
    let engine = store.engine().unwrap();
    let last: Vec<i64> = engine
        .chunks
        .from(&[])
        .map(|entry| {
            let (key, value) = entry.unwrap();
            read_header(&key, &value).unwrap().0.last_ts
        })
        .collect();
    assert_eq!(last, [i64::MAX]);
}
