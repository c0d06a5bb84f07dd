//! The kinds of fields that reach beyond their entity's series: zones, relations, intervals of the calendar, attributes.

use fieldline_core::ports::{AttributeStore as _, RelationEnds};
use fieldline_model::kv::KvValue as Kv;

use super::*;

/// Waits until the latest value of a series is that text.
async fn says(world: &World, entity: EntityId, key: &str, text: &str) {
    let keys = [key.to_owned()];
    eventually(&format!("{key} is not {text}"), async || {
        let found = world
            .store
            .latest(world.subject(entity), Some(&keys))
            .await
            .unwrap();
        found
            .first()
            .is_some_and(|latest| latest.point.value == Kv::Text(text.into()))
    })
    .await;
}

/// Waits until an attribute of the server has that value.
async fn is_set(world: &World, entity: EntityId, key: &str, value: Kv) {
    let keys = [key.to_owned()];
    eventually(&format!("{key} is not {value:?}"), async || {
        let found = world
            .store
            .get(world.subject(entity), AttributeScope::Server, Some(&keys))
            .await
            .unwrap();
        found.first().is_some_and(|attribute| attribute.value == value)
    })
    .await;
}

async fn related(world: &World, from: EntityId, relation_type: &str) -> Vec<EntityId> {
    let ends = RelationEnds::from(from).of_type(relation_type);
    let found = world
        .services
        .stores
        .relations
        .find(world.tenant, &ends)
        .await
        .unwrap();
    found.into_iter().map(|relation| relation.to).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_enters_and_leaves_a_zone_and_is_related_to_it_meanwhile() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let truck = world.device("truck", json!(null)).await;
    let yard = world.asset("yard", "zones", json!(null)).await;
    let perimeter = json!({"latitude": 50.0, "longitude": 30.0, "radius": 1000.0, "radiusUnit": "METER"});
    world
        .attributes(
            yard,
            AttributeScope::Server,
            json!({"zone": perimeter.to_string()}),
        )
        .await;
    world.relate(truck, yard, "AllowedZone").await;
    let running = Running::start(&world, &dir, &seen).await;
    let fence = json!({
        "type": "GEOFENCING",
        "entityCoordinates": {"latitudeKeyName": "lat", "longitudeKeyName": "lon"},
        "zoneGroups": {"allowed": {
            "refDynamicSourceConfiguration": {"type": "RELATION_PATH_QUERY",
                "levels": [{"direction": "FROM", "relationType": "AllowedZone"}]},
            "perimeterKeyName": "zone",
            "reportStrategy": "REPORT_TRANSITION_EVENTS_AND_PRESENCE_STATUS",
            "createRelationsWithMatchedZones": true, "relationType": "CurrentZone", "direction": "FROM",
        }},
        "scheduledUpdateEnabled": true, "scheduledUpdateInterval": 60,
        "output": immediately(""),
    });
    field(&world, truck, CalculatedFieldType::Geofencing, "fence", fence).await;
    running
        .send(&world, truck, NOW, &[("lat", 50.001), ("lon", 30.001)])
        .await;
    says(&world, truck, "allowedStatus", "INSIDE").await;
    assert_eq!(related(&world, truck, "CurrentZone").await, [yard]);
    running
        .send(&world, truck, NOW + 1000, &[("lat", 51.0), ("lon", 30.0)])
        .await;
    says(&world, truck, "allowedStatus", "OUTSIDE").await;
    says(&world, truck, "allowedEvent", "LEFT").await;
    assert!(related(&world, truck, "CurrentZone").await.is_empty());
    running
        .send(&world, truck, NOW + 2000, &[("lat", 50.0), ("lon", 30.0)])
        .await;
    says(&world, truck, "allowedEvent", "ENTERED").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_propagated_to_those_that_are_related_and_to_those_that_come_to_be() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let meter = world.device("meter", json!(null)).await;
    let floor = world.asset("floor", "floors", json!(null)).await;
    let house = world.asset("house", "houses", json!(null)).await;
    world.relate(floor, meter, "Contains").await;
    let running = Running::start(&world, &dir, &seen).await;
    let copies = json!({
        "type": "PROPAGATION",
        "relation": {"direction": "TO", "relationType": "Contains"},
        "arguments": {"power": latest("power"), "volts": latest("volts")},
        "applyExpressionToResolvedArguments": false,
        "output": immediately(""),
    });
    field(&world, meter, CalculatedFieldType::Propagation, "up", copies).await;
    running
        .send(&world, meter, NOW, &[("power", 5.0), ("volts", 230.0)])
        .await;
    becomes(&world, floor, "power", 5.0).await;
    becomes(&world, floor, "volts", 230.0).await;
    // Who comes to be related gets all there is.
    world.relate(house, meter, "Contains").await;
    let relation = json!({"from": house, "to": meter, "type": "Contains", "typeGroup": "COMMON"});
    running
        .tell(&world, MsgType::RelationAddOrUpdate, meter, &[], relation)
        .await;
    becomes(&world, house, "power", 5.0).await;
    becomes(&world, house, "volts", 230.0).await;
    running.send(&world, meter, NOW + 1000, &[("power", 6.0)]).await;
    becomes(&world, floor, "power", 6.0).await;
    becomes(&world, house, "power", 6.0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn intervals_are_aggregated_when_they_end_also_after_a_restart() {
    const MINUTE: i64 = 60_000;
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let meter = world.device("meter", json!(null)).await;
    let running = Running::start(&world, &dir, &seen).await;
    let sum = json!({
        "type": "ENTITY_AGGREGATION",
        "arguments": {"e": latest("energy")},
        "metrics": {
            "sum": {"function": "SUM", "input": {"type": "key", "key": "e"}},
            "different": {"function": "COUNT_UNIQUE", "input": {"type": "key", "key": "e"}},
        },
        "interval": {"type": "CUSTOM", "durationSec": 3600, "tz": "UTC"},
        "output": immediately(""),
    });
    field(&world, meter, CalculatedFieldType::EntityAggregation, "sum", sum).await;
    let begin = NOW / (60 * MINUTE) * 60 * MINUTE;
    // The clock is at an hour's begin from here on.
    world.clock.advance(begin + 60 * MINUTE - NOW);
    let hour = begin + 60 * MINUTE;
    for (minute, value) in [(0, 1.0), (1, 2.0), (2, 2.0)] {
        running
            .send(&world, meter, hour + minute * MINUTE, &[("energy", value)])
            .await;
    }
    becomes(&world, meter, "energy", 2.0).await;
    let uplink = running.stop().await;
    let running = Running::over(&world, uplink, &seen).await;
    world.clock.advance(61 * MINUTE);
    becomes(&world, meter, "sum", 5.0).await;
    becomes(&world, meter, "different", 2.0).await;
    let keys = ["sum".to_owned()];
    let found = world
        .store
        .latest(world.subject(meter), Some(&keys))
        .await
        .unwrap();
    assert_eq!(found.first().map(|latest| latest.point.ts), Some(hour));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_become_attributes_directly_or_through_the_chain() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let device = world.device("a", json!(null)).await;
    let running = Running::start(&world, &dir, &seen).await;
    let output = |name: &str, strategy: Value| {
        json!({"type": "ATTRIBUTES", "scope": "SERVER_SCOPE", "name": name, "decimalsByDefault": 1,
            "strategy": strategy})
    };
    let direct = json!({
        "type": "IMMEDIATE", "saveAttribute": true, "processCfs": true,
        "sendAttributesUpdatedNotification": true, "updateAttributesOnlyOnValueChange": true,
    });
    let limit = simple(json!({"t": latest("t")}), "t * 0 + 7.5", output("limit", direct));
    let mut limit = limit;
    limit["useLatestTs"] = json!(false);
    field(&world, device, CalculatedFieldType::Simple, "limit", limit).await;
    // Another field looks at the attribute, and its result goes through the chain.
    let attribute =
        json!({"l": {"refEntityKey": {"key": "limit", "type": "ATTRIBUTE", "scope": "SERVER_SCOPE"}}});
    let mut double = simple(
        attribute,
        "l * 2",
        output("double", json!({"type": "RULE_CHAIN"})),
    );
    double["useLatestTs"] = json!(false);
    field(&world, device, CalculatedFieldType::Simple, "double", double).await;
    // Each is evaluated once when it is saved, and says that its argument is missing.
    for name in ["limit", "double"] {
        running.shows(&world, name).await;
    }
    for n in 0..3 {
        running.send(&world, device, NOW + n, &[("t", n as f64)]).await;
    }
    is_set(&world, device, "limit", Kv::Double(7.5)).await;
    is_set(&world, device, "double", Kv::Double(15.0)).await;
    becomes(&world, device, "t", 2.0).await;
    let kinds = |kind: &str| seen.lock().iter().filter(|(is, ..)| is == kind).count();
    eventually("nobody was told", async || kinds("ATTRIBUTES_UPDATED") > 0).await;
    assert_eq!(
        kinds("ATTRIBUTES_UPDATED"),
        1,
        "the value has not changed since: {:?}",
        seen.lock()
    );
    assert_eq!(kinds("POST_ATTRIBUTES_REQUEST"), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_is_run_for_every_value_of_a_burst_in_its_order_and_others_do_not_wait_for_it() {
    const VALUES: i64 = 200;
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let (device, other) = (
        world.device("a", json!(null)).await,
        world.device("b", json!(null)).await,
    );
    let running = Running::start(&world, &dir, &seen).await;
    let script = |body: &str| {
        let output = json!({"type": "TIME_SERIES", "strategy": {
            "type": "IMMEDIATE", "saveTimeSeries": true, "saveLatest": true, "processCfs": true,
        }});
        json!({"type": "SCRIPT", "arguments": {"a": latest("a")}, "expression": body, "output": output})
    };
    let kind = CalculatedFieldType::Script;
    let body = "var t = ctx.args.a.ts; return {ts: t, values: {twice: a * 2}};";
    field(&world, device, kind, "twice", script(body)).await;
    field(
        &world,
        other,
        kind,
        "spins",
        script("while (true) {} return {x: a};"),
    )
    .await;
    running.send(&world, other, NOW, &[("a", 1.0)]).await;
    for n in 1..=VALUES {
        running.send(&world, device, NOW + n, &[("a", n as f64)]).await;
    }
    becomes(&world, device, "twice", 2.0 * VALUES as f64).await;
    running.shows(&world, "spins").await;
    let query = fieldline_model::timeseries::RangeQuery {
        start: 0,
        end: i64::MAX,
        limit: 1000,
        order: fieldline_model::timeseries::PointOrder::Ascending,
    };
    let subject = world.subject(device);
    let points = world.store.range(subject, "twice", query).await.unwrap();
    let found: Vec<(i64, f64)> = points
        .iter()
        .map(|point| (point.ts - NOW, point.value.as_number().unwrap()))
        .collect();
    let expected: Vec<(i64, f64)> = (1..=VALUES).map(|n| (n, 2.0 * n as f64)).collect();
    assert_eq!(found, expected);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_waited_for_a_script_is_told_to_the_field_as_it_is_by_then() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let device = world.device("a", json!(null)).await;
    let running = Running::start(&world, &dir, &seen).await;
    let script = |body: &str| {
        let output = json!({"type": "TIME_SERIES", "strategy": {
            "type": "IMMEDIATE", "saveTimeSeries": true, "saveLatest": true, "processCfs": true,
        }});
        json!({"type": "SCRIPT", "arguments": {"a": latest("a")}, "expression": body, "output": output})
    };
    let spins = script("while (true) {} return {twice: 0};");
    field(&world, device, CalculatedFieldType::Script, "twice", spins).await;
    running.send(&world, device, NOW, &[("a", 1.0)]).await;
    running.send(&world, device, NOW + 1, &[("a", 2.0)]).await;
    // Once this has gone through, the second value waits for the script of the first.
    running.send(&world, device, NOW + 2, &[("b", 3.0)]).await;
    eventually("messages wait for a field", async || {
        seen.lock().iter().any(|(_, body, _)| body["b"] == 3.0)
    })
    .await;
    let stores = &world.services.stores.calculated_fields;
    let mut found = stores.of_entity(world.tenant, device).await.unwrap();
    let edited = CalculatedField {
        configuration: script("return {twice: a * 2};"),
        ..found.remove(0)
    };
    let fields = &world.services.rules.calculated_fields;
    fields.save(world.tenant, edited.into()).await.unwrap();
    becomes(&world, device, "twice", 4.0).await;
    running.stop().await;
}
