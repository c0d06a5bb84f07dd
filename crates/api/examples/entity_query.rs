//! Measures entity queries: three conditions over many devices, sorted by a latest value.
//!
//! ```text
//! cargo run --release -p fieldline-api --example entity_query [devices] [queries]
//! ```

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on is over")]

mod world;

use std::time::{Duration, Instant};

use fieldline_core::clock::Clock as _;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore,
};
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::query::EntityDataQuery;
use fieldline_model::timeseries::AttributeScope;
use serde_json::json;

use self::world::ExampleFixture;

/// Rows per save.
const AT_ONCE: usize = 1_000;

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse::<usize>().unwrap());
    let (devices, rounds) = (numbers.next().unwrap_or(100_000), numbers.next().unwrap_or(500));
    let begun = Instant::now();
    let world = ExampleFixture::with(devices).await;
    let (live, queries, who) = (&world.live, &world.queries, &world.who);
    let now = world.clock.now_ms();
    for (chunk, group) in world.subjects.chunks(AT_ONCE).enumerate() {
        let values: Vec<(Vec<u8>, Vec<u8>)> = (0..group.len())
            .map(|place| {
                let number = (chunk * AT_ONCE + place) as i64;
                let (mut points, mut attributes) = (Vec::new(), Vec::new());
                pack(
                    "temperature",
                    KvValueRef::Double((number % 997) as f64 / 10.0),
                    &mut points,
                );
                pack("humidity", KvValueRef::Long(number % 101), &mut points);
                pack("active", KvValueRef::Bool(number % 3 == 0), &mut attributes);
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
                strategy: TelemetrySaveStrategy::ALL,
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
        TimeSeriesStore::save(live.as_ref(), &points).await.unwrap();
        AttributeStore::save(live.as_ref(), &attributes).await.unwrap();
    }
    println!("{devices} devices with values made in {:.1?}", begun.elapsed());

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
    let found = queries.find(who, &query).await.unwrap();
    println!(
        "first query: {} of {devices} in {:.1?}",
        found.total_elements,
        begun.elapsed()
    );

    for changed in [0, 1_000] {
        let mut took: Vec<Duration> = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let mut values = Vec::new();
            pack("temperature", KvValueRef::Double(round as f64), &mut values);
            let changed = world.subjects.get(..changed).unwrap_or(&world.subjects);
            world.store(changed, now + 1 + round as i64, &values).await;
            let begun = Instant::now();
            queries.find(who, &query).await.unwrap();
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
