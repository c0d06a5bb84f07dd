//! Measures queries of entities: three conditions over many devices, sorted by a latest value.
//!
//! ```text
//! cargo run --release -p fieldline-api --example entity_query [devices] [queries]
//! ```

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on is over")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::access::Principal;
use fieldline_core::clock::{Clock as _, SystemClock};
use fieldline_core::entity_query::{Deps, EntityQueries};
use fieldline_core::events::EntityEvents;
use fieldline_core::live::LiveStore;
use fieldline_core::password::Passwords;
use fieldline_core::ports::{
    AttributeRow, NoRuleEngine, NoRuleNodes, RowParts, TelemetryRow, TimeSeriesStore,
};
use fieldline_core::services::{Context, seed};
use fieldline_model::entity::{Authority, Device};
use fieldline_model::kv::{ValueRef, pack};
use fieldline_model::query::EntityDataQuery;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, Subject};
use fieldline_storage::series::{self, SeriesStore};
use fieldline_storage::sql;
use serde_json::json;

/// Rows saved at once.
const AT_ONCE: usize = 1_000;

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse::<usize>().unwrap());
    let (devices, rounds) = (numbers.next().unwrap_or(100_000), numbers.next().unwrap_or(500));
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let path = dir.path().join("entities.db");
    let database = sql::Database::sqlite(&path, &sql::Options::default())
        .await
        .unwrap();
    let stores = database.entity_stores();
    let store = SeriesStore::open(
        &dir.path().join("series"),
        &series::Options::default(),
        clock.clone(),
    )
    .unwrap();
    let live = LiveStore::new(store.clone(), store.clone(), store.clone());
    let context = Context {
        stores: stores.clone(),
        series: live.clone(),
        attributes: live.clone(),
        events: Arc::new(EntityEvents::default()),
        clock: clock.clone(),
        passwords: Passwords::new(1),
        rule_engine: Arc::new(NoRuleEngine),
        rule_nodes: Arc::new(NoRuleNodes),
    };
    seed::seed_demo(&context).await.unwrap();
    let user = stores
        .users
        .by_email("tenant@thingsboard.org")
        .await
        .unwrap()
        .unwrap();
    let who = Principal::of(&user);
    assert_eq!(who.authority, Authority::TenantAdmin);
    let profile = stores
        .device_profiles
        .default_profile(who.tenant)
        .await
        .unwrap()
        .unwrap();

    let begun = Instant::now();
    let mut subjects = Vec::with_capacity(devices);
    for number in 0..devices {
        let id = DeviceId::new();
        let device = Device {
            id: Some(id),
            created_time: clock.now_ms(),
            tenant_id: who.tenant,
            name: format!("Device {number:06}"),
            device_profile_id: profile.id,
            ..Device::default()
        };
        stores.devices.save(device, true).await.unwrap();
        subjects.push(Subject::device(who.tenant, id));
    }
    let now = clock.now_ms();
    for (chunk, group) in subjects.chunks(AT_ONCE).enumerate() {
        let values: Vec<(Vec<u8>, Vec<u8>)> = (0..group.len())
            .map(|place| {
                let number = (chunk * AT_ONCE + place) as i64;
                let (mut points, mut attributes) = (Vec::new(), Vec::new());
                pack(
                    "temperature",
                    ValueRef::Double((number % 997) as f64 / 10.0),
                    &mut points,
                );
                pack("humidity", ValueRef::Long(number % 101), &mut points);
                pack("active", ValueRef::Bool(number % 3 == 0), &mut attributes);
                (points, attributes)
            })
            .collect();
        let points: Vec<TelemetryRow<'_>> = group
            .iter()
            .zip(&values)
            .map(|(subject, (values, _))| TelemetryRow {
                subject: *subject,
                ts: now,
                ttl_seconds: 0,
                parts: RowParts::ALL,
                values,
            })
            .collect();
        let attributes: Vec<AttributeRow<'_>> = group
            .iter()
            .zip(&values)
            .map(|(subject, (_, values))| AttributeRow {
                subject: *subject,
                scope: AttributeScope::Server,
                ts: now,
                values,
            })
            .collect();
        store.save_points(&points).await;
        fieldline_core::ports::AttributeStore::save(store.as_ref(), &attributes)
            .await
            .unwrap();
    }
    println!("{devices} devices with values made in {:.1?}", begun.elapsed());

    let queries = EntityQueries::new(
        Deps {
            stores,
            rows: database.entity_rows(),
            values: store.clone(),
            attributes: store.clone(),
            clock,
        },
        1 << 30,
    );
    live.listen(queries.value_listener());
    let number = |key: &str, operation: &str, value: i64| {
        json!({
            "key": { "type": "TIME_SERIES", "key": key },
            "predicate": { "type": "NUMERIC", "operation": operation, "value": { "defaultValue": value } },
        })
    };
    let query: EntityDataQuery = serde_json::from_value(json!({
        "entityFilter": { "type": "entityType", "entityType": "DEVICE" },
        "keyFilters": [
            number("temperature", "GREATER", 20),
            number("humidity", "LESS", 80),
            {
                "key": { "type": "SERVER_ATTRIBUTE", "key": "active" },
                "predicate": { "type": "BOOLEAN", "operation": "EQUAL", "value": { "defaultValue": true } },
            },
        ],
        "entityFields": [{ "type": "ENTITY_FIELD", "key": "name" }],
        "latestValues": [{ "type": "TIME_SERIES", "key": "temperature" }],
        "pageLink": {
            "pageSize": 100, "page": 0,
            "sortOrder": { "key": { "type": "TIME_SERIES", "key": "temperature" }, "direction": "DESC" },
        },
    }))
    .unwrap();
    let begun = Instant::now();
    let found = queries.find(&who, &query).await.unwrap();
    println!(
        "first query: {} of {devices} in {:.1?}",
        found.total_elements,
        begun.elapsed()
    );

    for changed in [0, 1_000] {
        let mut took: Vec<Duration> = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let mut values = Vec::new();
            pack("temperature", ValueRef::Double(round as f64), &mut values);
            let rows: Vec<TelemetryRow<'_>> = subjects
                .iter()
                .take(changed)
                .map(|subject| TelemetryRow {
                    subject: *subject,
                    ts: now + 1 + round as i64,
                    ttl_seconds: 0,
                    parts: RowParts::LATEST,
                    values: &values,
                })
                .collect();
            live.save_points(&rows).await;
            let begun = Instant::now();
            queries.find(&who, &query).await.unwrap();
            took.push(begun.elapsed());
        }
        took.sort_unstable();
        let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
        println!(
            "{changed:>5} values changed between queries: p50 {:.2?}, p99 {:.2?}",
            at(50),
            at(99)
        );
    }
}

/// Saves points without naming the trait, which attributes have, too.
trait SavePoints {
    async fn save_points(&self, rows: &[TelemetryRow<'_>]);
}

impl<S: TimeSeriesStore> SavePoints for S {
    async fn save_points(&self, rows: &[TelemetryRow<'_>]) {
        if !rows.is_empty() {
            TimeSeriesStore::save(self, rows).await.unwrap();
        }
    }
}
