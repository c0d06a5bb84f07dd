//! Metrics over related entities.

use CalculatedFieldType::RelatedEntitiesAggregation;

use super::*;

fn aggregation(direction: &str) -> Arc<CompiledField> {
    let metric = |function: &str, filter: Option<&str>, input: Json| json!({ "function": function, "filter": filter, "input": input });
    let key = || json!({ "type": "key", "key": "temperature" });
    field(
        RelatedEntitiesAggregation,
        json!({
            "type": "RELATED_ENTITIES_AGGREGATION",
            "relation": { "direction": direction, "relationType": "Contains" },
            "arguments": { "temperature": latest("t"), "on": {
                "refEntityKey": { "key": "on", "type": "ATTRIBUTE", "scope": "SHARED_SCOPE" }, "defaultValue": "true",
            } },
            "deduplicationIntervalInSec": 30,
            "metrics": {
                "avg": metric("AVG", None, key()),
                "max": metric("MAX", None, key()),
                "min": metric("MIN", Some("return on;"), key()),
                "n": metric("COUNT", Some("return on && temperature > -5;"), key()),
                "sum": metric("SUM", None, json!({ "type": "function", "function": "return temperature * 2;" })),
                "unique": metric("COUNT_UNIQUE", None, key()),
            },
            "output": { "type": "TIME_SERIES", "decimalsByDefault": 2 },
            "useLatestTs": true,
        }),
    )
}

fn temperature(field: &CompiledField, entity: u128, ts: i64, value: f64) -> ArgumentUpdate<'static> {
    of(
        field,
        device(entity),
        "temperature",
        ts,
        KvValueRef::Double(value),
    )
}

fn started(field: &CompiledField) -> CalculatedFieldState {
    let related = [device(33), device(31), device(32)];
    let mut updates = vec![ArgumentUpdate::Related(&related)];
    for (entity, value) in [(31, -10.1), (32, -3.2), (33, -0.1)] {
        updates.push(temperature(field, entity, NOW - entity as i64, value));
        updates.push(ArgumentUpdate::Missing {
            argument: number(field, "on"),
            entity: device(entity),
        });
    }
    let argument = number(field, "on");
    updates.push(ArgumentUpdate::Value {
        argument,
        entity: device(31),
        ts: NOW,
        value: KvValueRef::Bool(false),
    });
    state(field, &updates)
}

#[test]
fn metrics_are_computed_over_what_passes_their_filters() {
    let field = aggregation("FROM");
    let mut state = started(&field);
    let outcome = field.evaluate(&mut state, &mut Scripts::new(), NOW).unwrap();
    assert_eq!(
        bodies(&outcome),
        [json!({ "ts": NOW, "values": {
            "avg": -4.47, "max": -0.1, "min": -3.2, "n": 2, "sum": -26.8, "unique": 3,
        } })]
    );
}

#[test]
fn results_are_an_interval_apart_and_nothing_is_lost_between() {
    let field = aggregation("FROM");
    let mut scripts = Scripts::new();
    let mut state = started(&field);
    let first = field.evaluate(&mut state, &mut scripts, NOW).unwrap();
    assert_eq!(first.next_check, None);

    let chained = field.update(
        &mut state,
        &[temperature(&field, 31, NOW + 1, 0.0)],
        &[field_id(3)],
        NOW + 1,
    );
    assert_eq!(chained, Ok(true));
    let outcome = field.evaluate(&mut state, &mut scripts, NOW + 1).unwrap();
    assert!(outcome.outputs.is_empty());
    assert_eq!(outcome.next_check, Some(NOW + 30_000));

    // It remembers who has taken part until its result, so that two aggregations cannot feed each other.
    let outcome = field.evaluate(&mut state, &mut scripts, NOW + 30_000).unwrap();
    assert_eq!(bodies(&outcome)[0]["values"]["max"], 0.0);
    assert_eq!(outcome.previous, [field_id(3), field_id(7)]);
    assert_eq!(outcome.next_check, None);

    // Late points do not count, nor do those of strangers.
    let late = [
        temperature(&field, 31, NOW, 99.0),
        temperature(&field, 99, NOW + 5, 99.0),
    ];
    assert_eq!(field.update(&mut state, &late, &[], NOW + 40_000), Ok(false));
}

#[test]
fn entities_that_come_and_go_are_told_at_once() {
    let field = aggregation("FROM");
    let mut scripts = Scripts::new();
    let mut state = started(&field);
    field.evaluate(&mut state, &mut scripts, NOW).unwrap();
    let news = [
        ArgumentUpdate::RelatedRemoved(device(31)),
        ArgumentUpdate::RelatedAdded(device(40)),
    ];
    assert_eq!(field.update(&mut state, &news, &[], NOW + 1), Ok(true));
    let outcome = field.evaluate(&mut state, &mut scripts, NOW + 1);
    // The new one has no values yet, and a filter that cannot handle that says so.
    assert!(outcome.is_ok() || outcome.unwrap_err().to_string().len() > 3);
    let values = [
        temperature(&field, 40, NOW + 2, 8.0),
        ArgumentUpdate::Missing {
            argument: number(&field, "on"),
            entity: device(40),
        },
    ];
    field.update(&mut state, &values, &[], NOW + 2).unwrap();
    let outcome = field.evaluate(&mut state, &mut scripts, NOW + 30_001).unwrap();
    assert_eq!(bodies(&outcome)[0]["values"]["max"], 8.0);
    assert_eq!(bodies(&outcome)[0]["values"]["unique"], 3);
}

#[test]
fn against_the_direction_of_the_relation_there_is_one_entity() {
    let field = aggregation("TO");
    let mut state = started(&field);
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert!(outcome.not_ready.unwrap().contains("Found: 3."));
    assert_eq!(outcome.next_check, None);
    let none = [ArgumentUpdate::Related(&[])];
    field.update(&mut state, &none, &[], NOW).unwrap();
    assert!(
        evaluate(&field, &mut state, NOW)
            .unwrap()
            .not_ready
            .unwrap()
            .starts_with("No entities found")
    );
}

#[test]
fn sums_are_those_of_the_decimals_that_people_see() {
    let field = field(
        RelatedEntitiesAggregation,
        json!({
            "relation": { "direction": "FROM", "relationType": "Contains" },
            "arguments": { "temperature": latest("t") },
            "deduplicationIntervalInSec": 30,
            "metrics": { "sum": { "function": "SUM", "input": { "type": "key", "key": "temperature" } } },
            "output": { "type": "ATTRIBUTES", "scope": "SERVER_SCOPE" },
        }),
    );
    let related = [device(31), device(32)];
    let mut state = state(
        &field,
        &[
            ArgumentUpdate::Related(&related),
            temperature(&field, 31, NOW, 0.1),
            temperature(&field, 32, NOW, 0.2),
        ],
    );
    assert_eq!(body(evaluate(&field, &mut state, NOW)), json!({ "sum": 0.3 }));
    let text = [of(
        &field,
        device(31),
        "temperature",
        NOW,
        KvValueRef::Text("warm"),
    )];
    field.update(&mut state, &text, &[], NOW).unwrap();
    let error = evaluate(&field, &mut state, NOW + 30_000).unwrap_err();
    assert_eq!(error, FieldEvaluationError::Unparsable("warm".to_owned()));
}
