//! Subjects with very many keys, and what it takes to take them away.

use std::time::{Duration, Instant};

use fieldline_core::ports::{
    AttributeRow, AttributeStore, IngestStore, Offset, StoreEffects, TelemetryRow, TelemetrySaveStrategy,
    TimeSeriesStore, ValueRemoval, ValueRemovalScope,
};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, EntityKey, TenantId};
use uuid::Uuid;

use super::super::{SeriesStore, keys};
use super::World;
use super::memtable::{partition, runtime, subject};

const NOW: i64 = 1_700_000_000_000;
const KEYS_A_ROW: usize = 1_000;

/// Stores a value under each of so many keys, in no order, as a device of bad will would.
fn fill(store: &SeriesStore, whose: EntityKey, count: usize, position: &mut u64) {
    let runtime = runtime();
    for first in (0..count).step_by(KEYS_A_ROW) {
        let mut values = Vec::new();
        for key in first..(first + KEYS_A_ROW).min(count) {
            let name = format!("{:016x}", (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            pack(&name, KvValue::Long(1).as_ref(), &mut values);
        }
        let row = TelemetryRow {
            subject: whose,
            ts: NOW + *position as i64,
            ttl_seconds: 0,
            values: &values,
            strategy: TelemetrySaveStrategy::ALL,
        };
        let effects = StoreEffects {
            telemetry: vec![row],
            ..StoreEffects::default()
        };
        *position += 1;
        runtime
            .block_on(store.apply(partition(0), Offset(*position), &effects))
            .unwrap();
    }
    let mut values = Vec::new();
    pack("attribute", KvValue::Long(1).as_ref(), &mut values);
    let row = AttributeRow {
        subject: whose,
        scope: AttributeScope::Client,
        ts: NOW,
        values: &values,
    };
    runtime.block_on(AttributeStore::save(store, &[row])).unwrap();
}

/// Keys of the stored tables that begin with a tenant: of rows, chunks, latest values and attributes.
fn stored(store: &SeriesStore, tenant: TenantId) -> [usize; 4] {
    let engine = store.engine().unwrap();
    let prefix = tenant.0.as_bytes();
    let epochs = engine.epochs();
    let rows = epochs.iter().map(|epoch| {
        let prefix = [&keys::epoch_key(epoch.number)[..], prefix].concat();
        epoch.rows.prefix(&prefix).count()
    });
    let tables = [&engine.chunks, &engine.latest.rows, &engine.attributes.rows];
    let [chunks, latest, attributes] = tables.map(|table| table.prefix(prefix).count());
    [rows.sum(), chunks, latest, attributes]
}

#[test]
fn a_removal_that_is_cut_off_goes_on_after_a_crash() {
    const COUNT: usize = 5_000;
    let world = World::new();
    let (tenant, other) = (subject(0).tenant, TenantId(Uuid::from_u128(8)));
    let neighbour = EntityKey::device(other, DeviceId(Uuid::from_u128(1)));
    let mut position = 0;
    for whose in [subject(0), neighbour] {
        fill(&world.store(), whose, COUNT, &mut position);
    }
    world.store().compact_now().unwrap();
    for whose in [subject(0), subject(1), neighbour] {
        fill(&world.store(), whose, COUNT, &mut position);
    }
    let gone = [ValueRemovalScope::Tenant(tenant)];
    let before = stored(&world.store(), other);
    assert_eq!(before, stored(&world.store(), other));
    for steps in [0, 1, 4, 7] {
        let store = world.store();
        let mut removal = store.begin_removal(&gone, &[]).unwrap();
        for _ in 0..steps {
            assert!(store.removal_step(&mut removal).unwrap());
        }
        drop(store);
        world.crash();
    }
    let left = stored(&world.store(), tenant);
    assert!(left.iter().sum::<usize>() > 0, "it was cut off: {left:?}");
    let runtime = runtime();
    runtime.block_on(world.store().remove(&gone, &[])).unwrap();
    for _ in 0..2 {
        assert_eq!(stored(&world.store(), tenant), [0; 4]);
        assert_eq!(
            stored(&world.store(), other),
            before,
            "others keep what they have"
        );
        let found = runtime.block_on(world.store().keys(neighbour)).unwrap();
        assert_eq!(found.len(), COUNT);
        world.crash();
    }
    world.store().close().unwrap();
}

#[test]
fn others_write_while_a_subject_is_taken_away() {
    let world = World::new();
    let mut position = 0;
    fill(&world.store(), subject(0), 60_000, &mut position);
    let gone = [ValueRemovalScope::Subject(subject(0))];
    let store = world.store();
    let removing = {
        let store = world.store();
        std::thread::spawn(move || runtime().block_on(store.remove(&gone, &[])))
    };
    let mut longest = Duration::ZERO;
    let mut writes = 0;
    while !removing.is_finished() {
        let began = Instant::now();
        fill(&store, subject(1), 1, &mut position);
        longest = longest.max(began.elapsed());
        writes += 1;
    }
    removing.join().unwrap().unwrap();
    assert!(
        writes > 3 && longest < Duration::from_secs(2),
        "{writes} writes, {longest:?}"
    );
    let runtime = runtime();
    assert_eq!(runtime.block_on(store.keys(subject(0))).unwrap().len(), 0);
    assert_eq!(runtime.block_on(store.keys(subject(1))).unwrap().len(), 1);
    store.close().unwrap();
}

#[test]
#[ignore = "measures; KEYS says how many"]
fn how_long_it_takes() {
    let keys = std::env::var("KEYS").ok().and_then(|it| it.parse().ok());
    let world = World::new();
    let mut position = 0;
    let begin = Instant::now();
    let shown = |what: &str| println!("{what}: at {:?}", begin.elapsed());
    fill(&world.store(), subject(0), keys.unwrap_or(50_000), &mut position);
    shown("filled");
    world.store().compact_now().unwrap();
    shown("packed");
    fill(&world.store(), subject(0), keys.unwrap_or(50_000), &mut position);
    shown("filled again");
    world.crash();
    shown("opened again");
    let found = runtime().block_on(world.store().keys(subject(0))).unwrap().len();
    shown(&format!("{found} keys read"));
    for _ in 0..2 {
        let gone = [ValueRemovalScope::Subject(subject(0))];
        runtime().block_on(world.store().remove(&gone, &[])).unwrap();
        shown("taken away");
    }
    let many = (0..1_000).map(|of| {
        ValueRemovalScope::Subject(EntityKey::device(
            subject(0).tenant,
            DeviceId(Uuid::from_u128(of)),
        ))
    });
    let many: Vec<ValueRemovalScope> = many.collect();
    runtime().block_on(world.store().remove(&many, &[])).unwrap();
    shown("taken away what a thousand devices have, which is nothing");
    world.store().close().unwrap();
}
