//! Damaged files: a clear error or the right answer, never wrong data.

use std::path::{Path, PathBuf};

use fieldline_core::ports::{StoreErrorKind, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::timeseries::{DataPoint, PointOrder, RangeQuery};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use uuid::Uuid;

use super::super::keys;
use super::World;

fn subject(of: u128) -> EntityKey {
    EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(of)))
}

fn points(of: u128) -> Vec<DataPoint> {
    (0..200)
        .map(|n| DataPoint {
            ts: 1_000 * n + n % 7,
            value: KvValue::Long((n * 37 + of as i64) % 1009),
        })
        .collect()
}

async fn fill(world: &World, subjects: u128) {
    for of in 0..subjects {
        let points = points(of);
        let values: Vec<Vec<u8>> = points
            .iter()
            .map(|point| {
                let mut out = Vec::new();
                pack("k", point.value.as_ref(), &mut out);
                out
            })
            .collect();
        let rows: Vec<TelemetryRow<'_>> = points
            .iter()
            .zip(&values)
            .map(|(point, values)| TelemetryRow {
                strategy: TelemetrySaveStrategy::ALL,
                subject: subject(of),
                ts: point.ts,
                ttl_seconds: 0,
                values,
            })
            .collect();
        TimeSeriesStore::save(&*world.store(), &rows).await.unwrap();
    }
}

const ALL: RangeQuery = RangeQuery {
    start: i64::MIN,
    end: i64::MAX,
    limit: usize::MAX,
    order: PointOrder::Ascending,
};

#[tokio::test]
async fn a_corrupt_chunk_fails_its_series_only_and_keeps_its_new_points() {
    let world = World::new();
    fill(&world, 2).await;
    world.store().compact_now().unwrap();
    let engine = world.store().engine().unwrap();
    let prefix = keys::series_prefix(&keys::subject_key(subject(0)), "k");
    let (key, value) = engine.chunks.prefix(&prefix).next().unwrap().unwrap();
    let mut damaged = value.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    engine.chunks.insert(key.clone(), damaged).unwrap();
    drop(engine);

    let store = world.store();
    let error = store.range(subject(0), "k", ALL).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(
        error.message().contains("`k`") && error.message().contains(&subject(0).entity.to_string()),
        "{error}"
    );
    assert_eq!(store.range(subject(1), "k", ALL).await.unwrap(), points(1));

    // New points of the damaged chunk's time stay readable as rows when the compaction cannot merge them.
    let mut late = Vec::new();
    pack("k", KvValue::Long(-1).as_ref(), &mut late);
    let row = TelemetryRow {
        strategy: TelemetrySaveStrategy::ALL,
        subject: subject(0),
        ts: 300_000,
        ttl_seconds: 0,
        values: &late,
    };
    TimeSeriesStore::save(&*store, &[row]).await.unwrap();
    store.compact_now().unwrap();
    assert_eq!(store.range(subject(1), "k", ALL).await.unwrap(), points(1));
    let engine = store.engine().unwrap();
    engine.chunks.insert(key, value).unwrap();
    drop(engine);
    let mut expected = points(0);
    expected.push(DataPoint {
        ts: 300_000,
        value: KvValue::Long(-1),
    });
    assert_eq!(store.range(subject(0), "k", ALL).await.unwrap(), expected);
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.metadata().unwrap().len() > 0 {
            found.push(path);
        }
    }
}

/// Flips a byte at each of several places of every file in turn. The store must refuse to open, or each series must read
/// as it was or fail.
#[tokio::test]
async fn a_flipped_byte_in_a_file_is_an_error_or_harmless() {
    let world = World::new();
    fill(&world, 20).await;
    world.store().compact_now().unwrap();
    fill(&world, 10).await;
    let engine = world.store().engine().unwrap();
    let tables = [&engine.chunks, &engine.latest.rows, &engine.blocks];
    engine.db.write_to_disk(&tables).unwrap();
    drop(engine);
    let original = tempfile::tempdir().unwrap();
    world.damage(|dir| super::copy(dir, original.path())).unwrap();
    let mut all = Vec::new();
    files(original.path(), &mut all);
    all.retain(|path| !path.ends_with("lock"));
    let (mut refused, mut failed) = (0, 0);
    for file in &all {
        let name = file.strip_prefix(original.path()).unwrap();
        for place in 0..6 {
            let opened = world.damage(|dir| {
                std::fs::remove_dir_all(dir).unwrap();
                super::copy(original.path(), dir);
                let mut bytes = std::fs::read(file).unwrap();
                let end = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
                let at = (end * place / 6).min(end - 1);
                bytes[at] ^= 0x55;
                std::fs::write(dir.join(name), bytes).unwrap();
            });
            if let Err(error) = opened {
                refused += 1;
                assert_ne!(error.kind(), StoreErrorKind::DiskFull, "{error}");
                continue;
            }
            for of in 0..20 {
                match world.store().range(subject(of), "k", ALL).await {
                    Ok(found) => assert_eq!(found, points(of), "{} at {place}", name.display()),
                    Err(_) => failed += 1,
                }
            }
        }
    }
    assert!(refused > 0 && failed > 0, "{refused} refused, {failed} failed");
}
