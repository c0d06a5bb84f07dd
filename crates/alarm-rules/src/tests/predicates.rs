//! Every operation on every type of value.

use fieldline_model::kv::KvValue;
use serde_json::json;

use super::{NOON, World, filter, number, series, simple};
use crate::{AlarmInputKind, AlarmInputSource};

fn text(value: &str) -> KvValue {
    KvValue::Text(value.into())
}

/// Whether an alarm is raised by a value of `t` in a device profile, and in a calculated field.
fn both(predicate: &serde_json::Value, value: &KvValue) -> (bool, bool) {
    let rule = json!({"condition": {"condition": [filter(predicate.clone())], "spec": simple()}});
    let mut profile = World::profile(json!({"MAJOR": rule}), json!(null));
    let in_profile = profile.telemetry(&[("t", value.clone())]);

    let written = predicate.to_string().replace("defaultValue", "staticValue");
    let predicate: serde_json::Value = serde_json::from_str(&written).unwrap();
    let rule = super::field_rule(json!([{"argument": "t", "predicates": [predicate]}]), json!({}));
    let mut field = World::field(
        json!({"t": series("t", json!(null))}),
        json!({"MAJOR": rule}),
        json!(null),
    );
    let in_field = field.telemetry(&[("t", value.clone())]);
    assert_eq!((in_profile.error, in_field.error), (None, None));
    (!in_profile.actions.is_empty(), !in_field.actions.is_empty())
}

#[test]
fn numbers() {
    let cases = [
        ("EQUAL", 5.0, [false, true, false]),
        ("NOT_EQUAL", 5.0, [true, false, true]),
        ("GREATER", 5.0, [false, false, true]),
        ("GREATER_OR_EQUAL", 5.0, [false, true, true]),
        ("LESS", 5.0, [true, false, false]),
        ("LESS_OR_EQUAL", 5.0, [true, true, false]),
    ];
    for (operation, limit, expected) in cases {
        let predicate = number(operation, json!({"defaultValue": limit}));
        for (value, expected) in [4.0, 5.0, 6.0].into_iter().zip(expected) {
            assert_eq!(
                both(&predicate, &KvValue::Double(value)),
                (expected, expected),
                "{value} {operation} 5"
            );
            assert_eq!(
                both(&predicate, &KvValue::Long(value as i64)),
                (expected, expected)
            );
            assert_eq!(
                both(&predicate, &text(&format!(" {value:.1}f "))),
                (expected, expected)
            );
        }
    }
    let equals = |limit: f64| number("EQUAL", json!({"defaultValue": limit}));
    assert_eq!(both(&equals(1.0), &KvValue::Bool(true)), (true, true));
    assert_eq!(
        both(&equals(0.0), &KvValue::Double(-0.0)),
        (false, false),
        "the zeros of boxed doubles differ"
    );
    for no_number in ["", "inf", "1e", "0x10", "--1", "five"] {
        let predicate = number("NOT_EQUAL", json!({"defaultValue": 5}));
        assert_eq!(
            both(&predicate, &text(no_number)),
            (false, false),
            "{no_number:?} is no number"
        );
    }
    let huge = number("GREATER", json!({"defaultValue": 1e300}));
    assert_eq!(both(&huge, &text("Infinity")), (true, true));
    assert_eq!(both(&huge, &text("-Infinity")), (false, false));
}

#[test]
fn texts() {
    let cases = [
        ("EQUAL", "Pump", "Pump", true),
        ("EQUAL", "pump", "Pump", false),
        ("NOT_EQUAL", "pump", "Pump", true),
        ("NOT_EQUAL", "Pump", "Pump", false),
        ("STARTS_WITH", "Pump 7", "Pump", true),
        ("STARTS_WITH", "a Pump", "Pump", false),
        ("ENDS_WITH", "a Pump", "Pump", true),
        ("ENDS_WITH", "Pump 7", "Pump", false),
        ("CONTAINS", "a Pump 7", "Pump", true),
        ("CONTAINS", "a pipe", "Pump", false),
        ("NOT_CONTAINS", "a pipe", "Pump", true),
        ("NOT_CONTAINS", "a Pump 7", "Pump", false),
        ("IN", "b", "a, b ,c", true),
        ("IN", "a, b", "a, b", false),
        ("IN", "b c", "'a', 'b c'", true),
        ("IN", "'b'", "'a', \"b\"", false),
        ("IN", "\"b\"", "'a', \"b\"", true),
        ("NOT_IN", "d", "a,b", true),
        ("NOT_IN", "b", "\"a\",\"b\"", false),
    ];
    for (operation, value, with, expected) in cases {
        let predicate = json!({"type": "STRING", "operation": operation, "value": {"defaultValue": with}});
        assert_eq!(
            both(&predicate, &text(value)),
            (expected, expected),
            "{value:?} {operation} {with:?}"
        );
    }
    for (operation, value, with) in [
        ("EQUAL", "GRÜN", "grün"),
        ("STARTS_WITH", "pUMP 7", "Pump"),
        ("IN", "B", "a,b"),
        ("CONTAINS", "xyz", "Y"),
    ] {
        let predicate = json!({"type": "STRING", "operation": operation, "value": {"defaultValue": with},
            "ignoreCase": true});
        assert_eq!(
            both(&predicate, &text(value)),
            (true, true),
            "{value:?} {operation} {with:?}"
        );
    }
    let written =
        |with: &str| json!({"type": "STRING", "operation": "EQUAL", "value": {"defaultValue": with}});
    for (value, with) in [
        (KvValue::Double(25.0), "25.0"),
        (KvValue::Long(-3), "-3"),
        (KvValue::Bool(true), "true"),
        (KvValue::Json("{\"a\":1}".into()), "{\"a\":1}"),
    ] {
        assert_eq!(
            both(&written(with), &value),
            (true, true),
            "{value:?} reads {with}"
        );
    }
}

#[test]
fn booleans_of_numbers_differ_between_the_forms() {
    let is_true = json!({"type": "BOOLEAN", "operation": "EQUAL", "value": {"defaultValue": true}});
    let is_not = json!({"type": "BOOLEAN", "operation": "NOT_EQUAL", "value": {"defaultValue": true}});
    for (value, expected) in [
        (KvValue::Bool(true), (true, true)),
        (KvValue::Bool(false), (false, false)),
        (KvValue::Long(2), (true, true)),
        (KvValue::Long(0), (false, false)),
        (KvValue::Long(-2), (false, true)),
        (KvValue::Double(-0.5), (false, true)),
        (text("TRUE"), (true, true)),
        (text("yes"), (false, false)),
    ] {
        assert_eq!(both(&is_true, &value), expected, "{value:?}");
        assert_eq!(both(&is_not, &value), (!expected.0, !expected.1), "{value:?}");
    }
}

#[test]
fn complex_predicates_nest() {
    let between = json!({"type": "COMPLEX", "operation": "AND", "predicates": [
        number("GREATER", json!({"defaultValue": 10})), number("LESS", json!({"defaultValue": 20}))]});
    let predicate = json!({"type": "COMPLEX", "operation": "OR", "predicates": [
        between, number("EQUAL", json!({"defaultValue": 99}))]});
    for (value, expected) in [(10.0, false), (15.0, true), (20.0, false), (99.0, true)] {
        assert_eq!(
            both(&predicate, &KvValue::Double(value)),
            (expected, expected),
            "{value}"
        );
    }
}

#[test]
fn dynamic_values_come_from_device_customer_and_tenant() {
    let world = |source: &str, inherit: bool| {
        let value = json!({"defaultValue": 50, "dynamicValue":
            {"sourceType": source, "sourceAttribute": "limit", "inherit": inherit}});
        let rule = json!({"condition": {"condition": [filter(number("GREATER", value))], "spec": simple()}});
        World::profile(json!({"MAJOR": rule}), json!(null))
    };
    let limits = [
        (AlarmInputSource::Originator, 10.0),
        (AlarmInputSource::Customer, 20.0),
        (AlarmInputSource::Tenant, 30.0),
    ];
    // Source, whether it inherits, which of the limits exist, and the limit that counts.
    let cases = [
        ("CURRENT_DEVICE", false, [true, true, true], 10.0),
        ("CURRENT_DEVICE", false, [false, true, true], 50.0),
        ("CURRENT_DEVICE", true, [false, true, true], 20.0),
        ("CURRENT_DEVICE", true, [false, false, true], 30.0),
        ("CURRENT_DEVICE", true, [false, false, false], 50.0),
        ("CURRENT_CUSTOMER", false, [true, true, true], 20.0),
        ("CURRENT_CUSTOMER", false, [true, false, true], 50.0),
        ("CURRENT_CUSTOMER", true, [true, false, true], 30.0),
        ("CURRENT_TENANT", true, [true, true, true], 30.0),
        ("CURRENT_TENANT", false, [true, true, false], 50.0),
    ];
    for (source, inherit, exist, limit) in cases {
        for (value, expected) in [(limit, false), (limit + 0.5, true)] {
            let mut world = world(source, inherit);
            for ((of, value), _) in limits.into_iter().zip(exist).filter(|(_, exists)| *exists) {
                if world
                    .rules
                    .inputs()
                    .iter()
                    .any(|need| need.source == of && &*need.key == "limit")
                {
                    world.store(of, "limit", KvValue::Double(value));
                }
            }
            let outcome = world.t(value);
            assert_eq!(
                !outcome.actions.is_empty(),
                expected,
                "{source} {inherit} {exist:?} {value}"
            );
        }
    }
    // What is no number counts as absent.
    let mut world = world("CURRENT_DEVICE", false);
    world.store(AlarmInputSource::Originator, "limit", text("hot"));
    assert!(world.t(50.0).actions.is_empty());
    assert_eq!(world.t(51.0).actions.len(), 1);
    // The limit itself may be what changes.
    assert_eq!(world.attribute("limit", KvValue::Long(40)).actions.len(), 1);
}

#[test]
fn constants_entity_fields_and_attributes_are_compared_as_well() {
    let by = |key: serde_json::Value, kind: &str, value: serde_json::Value, predicate: serde_json::Value| json!({"key": key, "valueType": kind, "value": value, "predicate": predicate});
    let limit = |attribute: &str| {
        json!({"defaultValue": 0, "dynamicValue":
            {"sourceType": "CURRENT_DEVICE", "sourceAttribute": attribute}})
    };
    let is_pump = json!({"type": "STRING", "operation": "STARTS_WITH", "value": {"defaultValue": "pump"}});
    let rule = json!({"condition": {"condition": [
        by(json!({"type": "CONSTANT", "key": "c"}), "NUMERIC", json!(7), number("EQUAL", limit("mode"))),
        by(json!({"type": "ENTITY_FIELD", "key": "name"}), "STRING", json!(null), is_pump),
        by(json!({"type": "ATTRIBUTE", "key": "on"}), "BOOLEAN", json!(null),
            json!({"type": "BOOLEAN", "operation": "EQUAL", "value": {"defaultValue": true}})),
    ], "spec": simple()}});
    let mut world = World::profile(json!({"MINOR": rule}), json!(null));
    world.store(AlarmInputSource::Originator, "name", text("pump-1"));
    assert!(
        world.attribute("on", KvValue::Bool(true)).actions.is_empty(),
        "a constant has no default to meet"
    );
    assert_eq!(world.attribute("mode", KvValue::Long(7)).actions.len(), 1);
    world.store(AlarmInputSource::Originator, "name", text("fan-1"));
    assert!(world.attribute("on", KvValue::Bool(true)).actions.is_empty());

    // Attributes of all scopes are one to a device profile.
    assert_eq!(world.rules.find(AlarmInputKind::Attribute(None), "on"), {
        use fieldline_model::timeseries::AttributeScope;
        world
            .rules
            .find(AlarmInputKind::Attribute(Some(AttributeScope::Client)), "on")
    });
    assert_eq!(world.rules.find(AlarmInputKind::TimeSeries, "on"), None);
    assert!(world.now == NOON);
}
