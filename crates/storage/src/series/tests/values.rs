//! Values of many entities at once: the same from memory and from the disk.

use std::sync::Arc;

use fieldline_core::ports::{
    AttributeRow, AttributeStore, IngestStore as _, Offset, Partition, QueueId, StoreEffects, TelemetryRow,
    TelemetrySaveStrategy, TimeSeriesStore, ValueReadRequest, ValueReader as _, ValueSource,
};
use fieldline_model::kv::{KvValue, KvValueRef, pack};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, EntityKey, EntityType, TenantId};
use uuid::Uuid;

use super::World;
use crate::series::SeriesStore;

fn packed(name: &str, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    pack(name, KvValueRef::Long(value), &mut out);
    out
}

fn row(subject: EntityKey, parts: TelemetrySaveStrategy, values: &[u8]) -> TelemetryRow<'_> {
    TelemetryRow {
        subject,
        ts: 5,
        ttl_seconds: 0,
        strategy: parts,
        values,
    }
}

fn read(
    store: &SeriesStore,
    tenant: TenantId,
    ids: &[Uuid],
    source: ValueSource,
) -> Vec<(usize, usize, KvValue)> {
    let names = ["b".to_owned(), "absent".to_owned(), "a".to_owned()];
    let values = ValueReadRequest {
        tenant,
        kind: EntityType::Device,
        ids,
        source,
        names: &names,
    };
    let mut found = Vec::new();
    store
        .read(values, &mut |entity, name, stored| {
            found.push((entity, name, stored.value.to_value()));
        })
        .unwrap();
    found
}

#[tokio::test]
async fn values_are_the_same_from_memory_and_from_the_disk() {
    let world = World::new();
    let tenant = TenantId::new();
    let ids: Vec<Uuid> = (0..3).map(|_| DeviceId::new().0).collect();
    let subject = |place: usize| EntityKey::device(tenant, DeviceId(ids[place]));
    let (a, b) = (packed("a", 1), packed("b", 2));
    let rows = [
        row(subject(0), TelemetrySaveStrategy::ALL, &a),
        row(subject(2), TelemetrySaveStrategy::ALL, &b),
    ];
    let store = world.store();
    TimeSeriesStore::save(store.as_ref(), &rows).await.unwrap();
    let attribute = AttributeRow {
        subject: subject(1),
        scope: AttributeScope::Shared,
        ts: 5,
        values: &b,
    };
    AttributeStore::save(store.as_ref(), &[attribute]).await.unwrap();
    let shared = ValueSource::Attribute(AttributeScope::Shared);
    for _ in 0..2 {
        let store: Arc<SeriesStore> = world.store();
        let latest = read(&store, tenant, &ids, ValueSource::Latest);
        assert_eq!(latest, [(0, 2, KvValue::Long(1)), (2, 0, KvValue::Long(2))]);
        assert_eq!(read(&store, tenant, &ids, shared), [(1, 0, KvValue::Long(2))]);
        let server = ValueSource::Attribute(AttributeScope::Server);
        assert!(read(&store, tenant, &ids, server).is_empty());
        assert!(read(&store, TenantId::new(), &ids, ValueSource::Latest).is_empty());
        drop(store);
        world.crash();
    }
}

#[tokio::test]
async fn rows_are_stored_in_the_parts_they_say() {
    let world = World::new();
    let tenant = TenantId::new();
    let id = DeviceId::new();
    let subject = EntityKey::device(tenant, id);
    let parts = [
        TelemetrySaveStrategy::ALL,
        TelemetrySaveStrategy {
            latest: false,
            ..TelemetrySaveStrategy::ALL
        },
        TelemetrySaveStrategy::LATEST,
        TelemetrySaveStrategy {
            latest: false,
            ..TelemetrySaveStrategy::LATEST
        },
    ];
    let names = ["both", "history", "latest", "shown"];
    let values: Vec<Vec<u8>> = names.iter().map(|name| packed(name, 1)).collect();
    let effects = StoreEffects {
        telemetry: parts
            .iter()
            .zip(&values)
            .map(|(parts, values)| row(subject, *parts, values))
            .collect(),
        ..StoreEffects::default()
    };
    let partition = Partition {
        queue: QueueId(0),
        index: 0,
    };
    let store = world.store();
    store.apply(partition, Offset(1), &effects).await.unwrap();
    assert_eq!(store.keys(subject).await.unwrap(), ["both", "latest"]);
    let query = fieldline_model::timeseries::RangeQuery {
        start: 0,
        end: 10,
        limit: 10,
        order: fieldline_model::timeseries::PointOrder::Ascending,
    };
    for (name, count) in names.iter().zip([1, 1, 0, 0]) {
        assert_eq!(
            store.range(subject, name, query).await.unwrap().len(),
            count,
            "{name}"
        );
    }
}
