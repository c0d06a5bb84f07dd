//! Reprocessing over real stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_core::observed_store::ObservedStore;
use fieldline_core::ports::{TimeSeriesStore as _, ValueChange, ValueListener};
use fieldline_entities::ports::FieldReprocess as _;
use fieldline_entities::services::ServiceErrorKind;
use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_model::kv::KvValue;
use fieldline_model::reprocess::{ReprocessReport, ReprocessRequest, ReprocessStatus};
use fieldline_model::timeseries::{AttributeScope, PointOrder, RangeQuery};
use fieldline_model::{CalculatedFieldId, EntityId};
use fieldline_rules::engine::EngineShared;
use fieldline_rules::services::NodeServices;
use serde_json::{Value as Json, json};

use super::{FieldReprocessJob, FieldReprocessor, MAX_CONCURRENT_JOBS, batch};
use crate::tests::world::{NOW, World};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// Begin of an hour, a day before now.
const START: i64 = (NOW - 24 * HOUR) / HOUR * HOUR;

async fn field(
    world: &World,
    entity: EntityId,
    kind: CalculatedFieldType,
    configuration: Json,
) -> CalculatedField {
    let field = CalculatedField {
        id: CalculatedFieldId::new(),
        tenant_id: world.tenant,
        entity_id: Some(entity),
        field_type: kind,
        name: format!("{kind:?}"),
        configuration,
        ..CalculatedField::default()
    };
    let stores = &world.services.stores.calculated_fields;
    stores.insert(field).await.unwrap()
}

fn fahrenheit() -> Json {
    json!({
        "type": "SIMPLE",
        "arguments": { "c": { "refEntityKey": { "key": "celsius", "type": "TS_LATEST" } } },
        "expression": "c * 1.8 + 32",
        "output": { "type": "TIME_SERIES", "name": "fahrenheit", "decimalsByDefault": 1 },
    })
}

fn time(start: i64, end: i64) -> ReprocessRequest {
    ReprocessRequest {
        start_ts: Some(start),
        end_ts: Some(end),
    }
}

async fn ended(reprocessor: &FieldReprocessor, field: &CalculatedField) -> ReprocessReport {
    for _ in 0..3000 {
        let progress = reprocessor.progress(field.tenant_id, field.id).unwrap();
        if progress.status != ReprocessStatus::Running {
            return progress;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a reprocessing does not end");
}

async fn reprocess(world: &World, field: &CalculatedField, start: i64, end: i64) -> ReprocessReport {
    let reprocessor = FieldReprocessor::new(world.common.clone());
    let begun = reprocessor.begin(field, time(start, end)).await.unwrap();
    assert_eq!(
        (begun.status, begun.finished_at),
        (ReprocessStatus::Running, None)
    );
    ended(&reprocessor, field).await
}

async fn points(world: &World, entity: EntityId, key: &str) -> Vec<(i64, f64)> {
    let query = RangeQuery {
        start: 0,
        end: i64::MAX,
        limit: 10_000,
        order: PointOrder::Ascending,
    };
    let points = world
        .store
        .range(world.subject(entity), key, query)
        .await
        .unwrap();
    points
        .into_iter()
        .map(|point| (point.ts, point.value.as_number().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_entities_of_a_profile_get_the_results_of_the_time_and_nothing_else_happens() {
    let world = World::new().await;
    let mut devices = Vec::new();
    // More than are played side by side.
    for n in 0..batch::MAX_BATCH_ENTITIES as i64 + 5 {
        let device = world.device(&format!("device {n}"), json!({})).await;
        for minute in [-1, 0, 1, 59, 60] {
            let celsius = json!({ "celsius": n + minute });
            world.telemetry(device, START + minute * MINUTE, celsius).await;
        }
        devices.push(device);
    }
    // A result that is newer than all that is made now.
    world
        .telemetry(devices[0], NOW, json!({ "fahrenheit": 1.5 }))
        .await;
    let field = field(
        &world,
        world.profile.into(),
        CalculatedFieldType::Simple,
        fahrenheit(),
    )
    .await;
    let done = reprocess(&world, &field, START, START + HOUR).await;
    assert_eq!((done.status, &done.error), (ReprocessStatus::Completed, &None));
    let count = devices.len() as u64;
    assert_eq!((done.entities, done.processed_entities), (count, count));
    assert_eq!(
        (done.values, done.results, done.without_result),
        (3 * count, 3 * count, 0)
    );
    assert!(done.finished_at.is_some());
    for (n, device) in (0..).zip(&devices) {
        let mut expected: Vec<(i64, f64)> = [0, 1, 59]
            .iter()
            .map(|minute| {
                (
                    START + minute * MINUTE,
                    ((n + minute) as f64 * 18.0 + 320.0) / 10.0,
                )
            })
            .collect();
        expected.extend((n == 0).then_some((NOW, 1.5)));
        assert_eq!(
            points(&world, *device, "fahrenheit").await,
            expected,
            "device {n}"
        );
    }
    let latest = world
        .store
        .latest(world.subject(devices[0]), Some(&["fahrenheit".to_owned()]))
        .await;
    assert_eq!(latest.unwrap()[0].point.value, KvValue::Double(1.5));
    assert!(
        world.queue.take().is_empty(),
        "a message has gone through a chain"
    );

    // Once more, with another expression: the points are replaced.
    let mut changed = field.clone();
    changed.configuration["expression"] = json!("c");
    reprocess(&world, &changed, START, START + HOUR).await;
    let again = points(&world, devices[1], "fahrenheit").await;
    assert_eq!(again[0], (START, 1.0));
    assert_eq!(again.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_attributes_and_owners_are_as_they_were_or_are() {
    let world = World::new().await;
    let device = world
        .device("boiler", json!({ "customerId": world.customer }))
        .await;
    for minute in -5..5 {
        world
            .telemetry(device, START + minute * MINUTE, json!({ "t": minute }))
            .await;
    }
    world
        .telemetry(world.customer, START - HOUR, json!({ "price": 2 }))
        .await;
    world
        .telemetry(world.customer, START + 2 * MINUTE, json!({ "price": 3 }))
        .await;
    // A later price is not known yet.
    world
        .telemetry(world.customer, START + HOUR, json!({ "price": 9 }))
        .await;
    world
        .attributes(device, AttributeScope::Server, json!({ "factor": 10 }))
        .await;
    let configuration = json!({
        "type": "SCRIPT",
        "arguments": {
            "w": { "refEntityKey": { "key": "t", "type": "TS_ROLLING" }, "timeWindow": 2 * MINUTE, "limit": 100 },
            "p": { "refEntityKey": { "key": "price", "type": "TS_LATEST" },
                "refDynamicSourceConfiguration": { "type": "CURRENT_OWNER" } },
            "f": { "refEntityKey": { "key": "factor", "type": "ATTRIBUTE", "scope": "SERVER_SCOPE" } },
        },
        "expression": "return { cost: w.sum() * p * f };",
        "output": { "type": "TIME_SERIES" },
    });
    let field = field(&world, device, CalculatedFieldType::Script, configuration).await;
    let done = reprocess(&world, &field, START, START + 4 * MINUTE).await;
    assert_eq!(
        (done.status, &done.last_problem),
        (ReprocessStatus::Completed, &None)
    );
    let found = points(&world, device, "cost").await;
    // The window has the minute itself and those less than two before it.
    let at = |minute: i64, cost: f64| (START + minute * MINUTE, cost);
    let sums: Vec<f64> = found.iter().map(|(_, cost)| *cost).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!((found[0].0, found[3].0), (at(0, 0.0).0, at(3, 0.0).0));
    // With the price of the time: 2 before the second minute, then 3.
    assert!(
        sums[1] > sums[0] && sums[2] > sums[1] && sums[3] > sums[2],
        "{sums:?}"
    );
    assert_eq!(sums[2] % 30.0, 0.0, "{sums:?}");
    assert_eq!(sums[3] % 30.0, 0.0, "{sums:?}");
    assert_eq!(sums[0] % 20.0, 0.0, "{sums:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn intervals_end_in_the_time_that_is_played() {
    let world = World::new().await;
    let device = world.device("meter", json!({})).await;
    for quarter in 0..16 {
        let ts = START + quarter * 15 * MINUTE;
        world
            .telemetry(device, ts, json!({ "energy": 1 + quarter / 4 }))
            .await;
    }
    let configuration = json!({
        "type": "ENTITY_AGGREGATION",
        "arguments": { "e": { "refEntityKey": { "key": "energy", "type": "TS_LATEST" } } },
        "metrics": { "hourly": { "function": "SUM", "input": { "type": "key", "key": "e" } } },
        "interval": { "type": "HOUR", "tz": "UTC" },
        "output": { "type": "TIME_SERIES" },
    });
    let field = field(
        &world,
        device,
        CalculatedFieldType::EntityAggregation,
        configuration,
    )
    .await;
    // The first hour began before, the fourth ends with the time.
    let done = reprocess(&world, &field, START + 30 * MINUTE, START + 4 * HOUR).await;
    assert_eq!((done.status, &done.error), (ReprocessStatus::Completed, &None));
    let expected: Vec<(i64, f64)> = (1..4)
        .map(|hour| (START + hour * HOUR, 4.0 * (hour + 1) as f64))
        .collect();
    assert_eq!(points(&world, device, "hourly").await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_related_entities_lead_to_results_of_those_that_look_at_them() {
    let world = World::new().await;
    let house = world.asset("house", "houses", json!({})).await;
    for n in 1..=2 {
        let meter = world.device(&format!("meter {n}"), json!({})).await;
        world.relate(house, meter, "Contains").await;
        for minute in 0..3 {
            world
                .telemetry(meter, START + minute * MINUTE, json!({ "power": n * 10 }))
                .await;
        }
    }
    let configuration = json!({
        "type": "RELATED_ENTITIES_AGGREGATION",
        "relation": { "direction": "FROM", "relationType": "Contains" },
        "arguments": { "power": { "refEntityKey": { "key": "power", "type": "TS_LATEST" }, "defaultValue": "0" } },
        "deduplicationIntervalInSec": 30,
        "scheduledUpdateInterval": 60,
        "metrics": { "total": { "function": "SUM", "input": { "type": "key", "key": "power" } } },
        "output": { "type": "TIME_SERIES" },
    });
    let field = field(
        &world,
        house,
        CalculatedFieldType::RelatedEntitiesAggregation,
        configuration,
    )
    .await;
    let done = reprocess(&world, &field, START, START + 3 * MINUTE).await;
    assert_eq!((done.status, &done.error), (ReprocessStatus::Completed, &None));
    let totals = points(&world, house, "total").await;
    assert!(totals.len() >= 3, "{totals:?}");
    assert_eq!(totals.last().unwrap().1, 30.0, "{totals:?}");
}

/// Counts how many rows are stored together.
#[derive(Default)]
struct Batches {
    rows: AtomicUsize,
    most: AtomicUsize,
}

impl ValueListener for Batches {
    fn is_listening(&self) -> bool {
        // Asked once a batch.
        self.rows.store(0, Ordering::Release);
        true
    }

    fn on_value(&self, _: ValueChange<'_>) {
        let rows = self.rows.fetch_add(1, Ordering::AcqRel) + 1;
        self.most.fetch_max(rows, Ordering::AcqRel);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_come_with_time_alone_do_not_gather_in_memory() {
    let world = World::new().await;
    let batches = Arc::new(Batches::default());
    let live = ObservedStore::new(
        world.store.clone(),
        world.store.clone(),
        world.store.clone(),
        world.store.clone(),
        world.store.clone(),
    );
    live.listen(batches.clone());
    let common = Arc::new(EngineShared {
        services: Arc::new(NodeServices {
            series: live,
            ..NodeServices::clone(&world.services)
        }),
        chains: world.common.chains.clone(),
        events: world.common.events.clone(),
    });
    let meter = world.device("meter", json!({})).await;
    let begin = START - 24 * HOUR;
    world.telemetry(meter, begin, json!({ "energy": 5 })).await;
    let configuration = json!({
        "type": "ENTITY_AGGREGATION",
        "arguments": { "e": { "refEntityKey": { "key": "energy", "type": "TS_LATEST" } } },
        "metrics": { "sum": { "function": "SUM", "input": { "type": "key", "key": "e" }, "defaultValue": 0 } },
        "interval": { "type": "CUSTOM", "durationSec": 60, "tz": "UTC" },
        "output": { "type": "TIME_SERIES" },
    });
    let kind = CalculatedFieldType::EntityAggregation;
    let field = field(&world, meter, kind, configuration).await;
    let reprocessor = FieldReprocessor::new(common);
    let asked = time(begin, begin + 40 * HOUR);
    reprocessor.begin(&field, asked).await.unwrap();
    let done = ended(&reprocessor, &field).await;
    assert_eq!((done.status, &done.error), (ReprocessStatus::Completed, &None));
    assert!(done.results > 2000, "{done:?}");
    assert!(batches.most.load(Ordering::Acquire) <= 2000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_stored_for_a_field_that_was_deleted_meanwhile() {
    let world = World::new().await;
    let device = world.device("boiler", json!({})).await;
    world.telemetry(device, START, json!({ "celsius": 1 })).await;
    let gone = field(&world, device, CalculatedFieldType::Simple, fahrenheit()).await;
    let fields = &world.services.stores.calculated_fields;
    fields.delete(world.tenant, gone.id).await.unwrap();
    let done = reprocess(&world, &gone, START, NOW).await;
    assert_eq!((done.status, done.results), (ReprocessStatus::Cancelled, 0));
    assert!(points(&world, device, "fahrenheit").await.is_empty());
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let world = World::new().await;
    let device = world.device("boiler", json!({})).await;
    let reprocessor = FieldReprocessor::new(world.common.clone());
    let simple = |patch: fn(&mut Json)| {
        let mut configuration = fahrenheit();
        patch(&mut configuration["output"]);
        CalculatedField {
            id: CalculatedFieldId::new(),
            tenant_id: world.tenant,
            entity_id: Some(device),
            field_type: CalculatedFieldType::Simple,
            name: "f".into(),
            configuration,
            ..CalculatedField::default()
        }
    };
    let good = simple(|_| ());
    for (request, text) in [
        (ReprocessRequest::default(), "startTs is missing!"),
        (
            ReprocessRequest {
                start_ts: Some(1),
                end_ts: None,
            },
            "endTs is missing!",
        ),
        (time(5, 5), "endTs (5) must be after startTs (5)"),
        (time(-1, 5), "must not be negative"),
        (time(NOW, NOW + 1), "must be before now"),
    ] {
        let refused = reprocessor.begin(&good, request).await.unwrap_err();
        assert_eq!(refused.kind(), ServiceErrorKind::Invalid);
        assert!(refused.to_string().contains(text), "{refused}");
    }
    let attributes = simple(|output| {
        output["type"] = json!("ATTRIBUTES");
        output["scope"] = json!("SERVER_SCOPE");
    });
    let nothing = simple(|output| output["strategy"] = json!({ "type": "IMMEDIATE", "saveLatest": true }));
    let mut alarm = simple(|_| ());
    alarm.field_type = CalculatedFieldType::Alarm;
    for (field, text) in [
        (attributes, "configuration.output.type"),
        (nothing, "configuration.output.strategy.saveTimeSeries"),
        (alarm, "Alarm rules"),
    ] {
        let refused = reprocessor.begin(&field, time(START, NOW)).await.unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
    }
    assert_eq!(reprocessor.progress(world.tenant, good.id), None);
    assert_eq!(reprocessor.cancel(world.tenant, good.id), None);
}

#[tokio::test]
async fn a_tenant_has_one_at_a_time_all_together_have_few_and_one_can_be_cancelled() {
    let world = World::new().await;
    let device = world.device("boiler", json!({})).await;
    world.telemetry(device, START, json!({ "celsius": 1 })).await;
    let first = field(&world, device, CalculatedFieldType::Simple, fahrenheit()).await;
    let reprocessor = FieldReprocessor::new(world.common.clone());
    // It has not begun to work before this test waits for something.
    reprocessor.begin(&first, time(START, NOW)).await.unwrap();
    let second = CalculatedField {
        id: CalculatedFieldId::new(),
        ..first.clone()
    };
    let refused = reprocessor.begin(&second, time(START, NOW)).await.unwrap_err();
    assert_eq!(refused.kind(), ServiceErrorKind::TooManyRequests);
    let begun = reprocessor.cancel(world.tenant, first.id).unwrap();
    assert_eq!(begun.status, ReprocessStatus::Running);
    let cancelled = ended(&reprocessor, &first).await;
    assert_eq!(
        (cancelled.status, cancelled.results),
        (ReprocessStatus::Cancelled, 0)
    );

    // Now there is room again, but not for more than a few tenants.
    let template = reprocessor.progress(world.tenant, first.id).unwrap();
    let job = |tenant| {
        Arc::new(FieldReprocessJob {
            tenant,
            progress: Arc::new(parking_lot::Mutex::new(ReprocessReport {
                status: ReprocessStatus::Running,
                finished_at: None,
                ..template.clone()
            })),
            cancelled: Arc::default(),
        })
    };
    let taken: Vec<_> = (0..MAX_CONCURRENT_JOBS)
        .map(|_| {
            reprocessor
                .register_job(&job(fieldline_model::TenantId::new()))
                .unwrap()
        })
        .collect();
    let refused = reprocessor.begin(&first, time(START, NOW)).await.unwrap_err();
    assert_eq!(refused.kind(), ServiceErrorKind::TooManyRequests);
    drop(taken);
    reprocessor.begin(&first, time(START, NOW)).await.unwrap();
    assert_eq!(ended(&reprocessor, &first).await.results, 1);
}
