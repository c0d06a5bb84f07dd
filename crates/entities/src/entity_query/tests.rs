//! A table against what the store says, whatever happens to both.

use std::collections::BTreeMap;

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{
    StoreErrorKind, StoreResult, StoredValue, ValueReadRequest, ValueReader, ValueSource,
};
use fieldline_model::entity::{Authority, Device};
use fieldline_model::kv::KvValue;
use fieldline_model::query::{EntityQueryKey, KeyType, NumericOperation};
use fieldline_model::{CustomerId, DeviceId, EntityType, TenantId, UserId};
use parking_lot::Mutex;
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::evaluate::{OwnerTitles, evaluate};
use super::plan::{EntityCandidates, EntityQueryPlan, EntityScan, QueryCondition};
use super::predicate::ValuePredicate;
use super::prepare::{QueryMemoryLimits, TableSource};
use super::table::{ALL_SOURCES, ColumnKey, SOURCES, TableData, source_bit};
use super::table_cache::EntityTable;
use crate::access::Principal;

#[derive(Default)]
struct Store(Mutex<BTreeMap<(Uuid, ValueSource, String), i64>>);

impl ValueReader for Store {
    fn read(
        &self,
        values: ValueReadRequest<'_>,
        visit: &mut dyn FnMut(usize, usize, StoredValue<'_>),
    ) -> StoreResult<()> {
        let held = self.0.lock();
        for (place, id) in values.ids.iter().enumerate() {
            for (name_place, name) in values.names.iter().enumerate() {
                if let Some(value) = held.get(&(*id, values.source, name.clone())) {
                    let stored = StoredValue {
                        ts: *value,
                        ttl_seconds: 0,
                        value: fieldline_model::kv::KvValueRef::Long(*value),
                    };
                    visit(place, name_place, stored);
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    Remove(u8),
    Write(u8, usize, u8, i64),
    Delete(u8, usize, u8),
    /// A query that names this column.
    Query(usize, u8),
    Shed,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (entity, source, name) = (0u8..6, 0usize..4, 0u8..3);
    let step = prop_oneof![
        entity.clone().prop_map(Step::Add),
        entity.clone().prop_map(Step::Remove),
        (entity.clone(), source.clone(), name.clone(), 0i64..100)
            .prop_map(|(e, s, n, v)| Step::Write(e, s, n, v)),
        (entity, source.clone(), name.clone()).prop_map(|(e, s, n)| Step::Delete(e, s, n)),
        (source, name).prop_map(|(s, n)| Step::Query(s, n)),
        Just(Step::Shed),
    ];
    prop::collection::vec(step, 1..60)
}

fn id(entity: u8) -> Uuid {
    Uuid::from_u128(u128::from(entity) + 1)
}

fn device(entity: u8) -> AnyEntity {
    AnyEntity::Device(Device {
        id: DeviceId(id(entity)),
        name: format!("D{entity}"),
        ..Device::default()
    })
}

proptest! {
    #[test]
    fn a_query_sees_what_the_store_holds(steps in steps()) {
        let store = Store::default();
        let mut table = TableData::new(TenantId::new(), EntityType::Device);
        let mut notes: FxHashMap<Uuid, u8> = FxHashMap::default();
        for step in steps {
            match step {
                Step::Add(entity) => {
                    if table.put(&device(entity)).1 {
                        notes.insert(id(entity), ALL_SOURCES);
                    }
                }
                Step::Remove(entity) => table.remove(id(entity)),
                Step::Write(entity, source, name, value) => {
                    let source = SOURCES[source];
                    store.0.lock().insert((id(entity), source, name.to_string()), value);
                    *notes.entry(id(entity)).or_default() |= source_bit(source) & table.sources();
                }
                Step::Delete(entity, source, name) => {
                    let source = SOURCES[source];
                    store.0.lock().remove(&(id(entity), source, name.to_string()));
                    *notes.entry(id(entity)).or_default() |= source_bit(source) & table.sources();
                }
                Step::Shed => {
                    table.shed(1);
                }
                Step::Query(source, name) => {
                    let key: ColumnKey = (SOURCES[source], name.to_string());
                    table.refresh(&std::mem::take(&mut notes), &store).unwrap();
                    table.fill(std::slice::from_ref(&key), &store).unwrap();
                    table.touch(std::slice::from_ref(&key));
                    for entity in 0..6 {
                        let Some(place) = table.place(id(entity)) else { continue };
                        let held = store.0.lock().get(&(id(entity), key.0, key.1.clone())).copied();
                        let shown = table.column(&key).and_then(|column| column.get(place)).map(|slot| slot.value.clone());
                        prop_assert_eq!(shown, held.map(KvValue::Long));
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_query_may_take_is_bounded_and_what_it_only_shows_takes_no_column() {
    let tenant = TenantId::new();
    let store = Store::default();
    let mut data = TableData::new(tenant, EntityType::Device);
    for value in 0..100 {
        let id = DeviceId::new();
        data.put(&AnyEntity::Device(Device {
            id,
            tenant_id: tenant,
            ..Device::default()
        }));
        for name in ["tested", "shown"] {
            let key = (id.0, ValueSource::Latest, name.to_owned());
            store.0.lock().insert(key, value);
        }
    }
    let key = |name: &str| EntityQueryKey::new(KeyType::TimeSeries, name);
    let plan = EntityQueryPlan {
        parts: vec![EntityScan {
            kind: EntityType::Device,
            candidates: EntityCandidates::All,
            types: None,
        }],
        conditions: vec![QueryCondition {
            key: key("tested"),
            predicate: ValuePredicate::Number(NumericOperation::Less, 10.0),
        }],
        shown: vec![key("shown")],
        page_size: 100,
        ..EntityQueryPlan::default()
    };
    let who = Principal {
        user: UserId::new(),
        authority: Authority::TenantAdmin,
        tenant,
        customer: CustomerId::default(),
    };
    let table = std::sync::Arc::new(EntityTable::new(tenant, EntityType::Device));
    *table.data.write() = data;
    let ask = |limits: QueryMemoryLimits| {
        let mut sources = [TableSource::Shared(std::sync::Arc::clone(&table))];
        evaluate(
            &who,
            &plan,
            &mut sources,
            &OwnerTitles::default(),
            &store,
            1,
            limits,
        )
    };
    let room = QueryMemoryLimits::default();
    for tight in [
        QueryMemoryLimits {
            memory: 1_000,
            ..room
        },
        QueryMemoryLimits { page: 500, ..room },
    ] {
        assert_eq!(ask(tight).unwrap_err().kind(), StoreErrorKind::Invalid);
    }
    let (found, total) = ask(room).unwrap();
    assert_eq!((found.len(), total), (10, 10));
    let mut values: Vec<&str> = found
        .iter()
        .map(|entity| entity.latest[&KeyType::TimeSeries]["shown"].value.as_str())
        .collect();
    values.sort_unstable();
    assert_eq!(values, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let held = table.data.read();
    assert!(held.has_columns(&[(ValueSource::Latest, "tested".to_owned())]));
    assert!(!held.has_columns(&[(ValueSource::Latest, "shown".to_owned())]));
}
