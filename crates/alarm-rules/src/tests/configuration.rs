//! Wrong configurations are refused with the field's name.

use serde_json::{Value as Json, json};

use super::{alarm, series, simple, t_field, t_rule};
use crate::AlarmRuleSet;

fn profile_error(change: impl FnOnce(&mut Json)) -> String {
    let mut profile = json!({"profileData": {"alarms": [
        alarm("a", json!({"MAJOR": t_rule("GREATER", 50.0, simple())}), t_rule("LESS", 30.0, simple()))]}});
    assert!(AlarmRuleSet::from_device_profile(&profile).is_ok());
    change(&mut profile["profileData"]["alarms"]);
    AlarmRuleSet::from_device_profile(&profile)
        .unwrap_err()
        .to_string()
}

fn field_error(change: impl FnOnce(&mut Json)) -> String {
    let mut configuration = json!({"type": "ALARM", "arguments": {"t": series("t", json!("0"))},
        "createRules": {"MAJOR": t_field("GREATER", 50.0, json!({}))}, "clearRule": null});
    assert!(AlarmRuleSet::from_calculated_field("High", &configuration).is_ok());
    change(&mut configuration);
    AlarmRuleSet::from_calculated_field("High", &configuration)
        .unwrap_err()
        .to_string()
}

#[test]
fn device_profiles() {
    const RULE: &str = "profileData.alarms[0].createRules.MAJOR";
    let rule = |change: fn(&mut Json)| profile_error(|alarms| change(&mut alarms[0]["createRules"]["MAJOR"]));
    let cases = [
        (
            profile_error(|alarms| *alarms = json!({})),
            "profileData.alarms: must be an array".to_owned(),
        ),
        (
            profile_error(|alarms| alarms[0]["alarmType"] = json!(" ")),
            "profileData.alarms[0].alarmType: must not be empty".to_owned(),
        ),
        (
            profile_error(|alarms| {
                let copy = alarms[0].clone();
                alarms.as_array_mut().unwrap().push(copy);
            }),
            "profileData.alarms[1].alarmType: is the type of an earlier alarm as well".to_owned(),
        ),
        (
            profile_error(|alarms| alarms[0]["createRules"]["BAD"] = json!({})),
            "profileData.alarms[0].createRules.BAD: is no severity of alarms".to_owned(),
        ),
        (
            rule(|rule| rule["condition"]["condition"][0]["key"]["type"] = json!("X")),
            format!(
                "{RULE}.condition.condition[0].key.type: `X` is none of TIME_SERIES, ATTRIBUTE, ENTITY_FIELD, CONSTANT"
            ),
        ),
        (
            rule(|rule| rule["condition"]["condition"][0]["predicate"]["operation"] = json!("IN")),
            format!(
                "{RULE}.condition.condition[0].predicate.operation: `IN` is none of EQUAL, NOT_EQUAL, GREATER, LESS, \
                 GREATER_OR_EQUAL, LESS_OR_EQUAL"
            ),
        ),
        (
            rule(|rule| rule["condition"]["condition"][0]["predicate"] = json!({"type": "NO_DATA"})),
            format!("{RULE}.condition.condition[0].predicate.type: `NO_DATA` is no type of predicate"),
        ),
        (
            rule(|rule| rule["condition"]["spec"] = json!({"type": "DURATION", "unit": "WEEKS"})),
            format!(
                "{RULE}.condition.spec.unit: `WEEKS` is none of NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, \
                 MINUTES, HOURS, DAYS"
            ),
        ),
        (
            rule(|rule| rule["condition"]["spec"] = json!({"type": "REPEATING", "predicate": {}})),
            format!("{RULE}.condition.spec.predicate.defaultValue: is required"),
        ),
        (
            rule(|rule| {
                rule["schedule"] =
                    json!({"type": "SPECIFIC_TIME", "timezone": "Mars/Base", "daysOfWeek": [1]});
            }),
            format!("{RULE}.schedule.timezone: `Mars/Base` is no time zone"),
        ),
        (
            rule(|rule| rule["schedule"] = json!({"type": "SPECIFIC_TIME", "daysOfWeek": [0]})),
            format!("{RULE}.schedule.daysOfWeek[0]: must be from 1 (Monday) to 7 (Sunday)"),
        ),
        (
            rule(|rule| rule["dashboardId"] = json!({"id": "x"})),
            format!("{RULE}.dashboardId.id: must be a UUID"),
        ),
    ];
    for (error, expected) in cases {
        assert_eq!(error, expected);
    }
}

#[test]
fn calculated_fields() {
    const RULE: &str = "configuration.createRules.MAJOR.condition";
    let condition =
        |change: fn(&mut Json)| field_error(|field| change(&mut field["createRules"]["MAJOR"]["condition"]));
    let cases = [
        (
            field_error(|field| field["arguments"]["t"]["refEntityKey"]["type"] = json!("TS_ROLLING")),
            "configuration.arguments.t.refEntityKey.type: must be TS_LATEST or ATTRIBUTE, alarm rules take single values"
                .to_owned(),
        ),
        (field_error(|field| field["createRules"] = json!({})), "configuration.createRules: must have at least one rule".to_owned()),
        (
            condition(|condition| condition["expression"]["filters"][0]["argument"] = json!("x")),
            format!("{RULE}.expression.filters[0].argument: `x` is none of the arguments"),
        ),
        (
            condition(|condition| condition["expression"]["filters"][0]["predicates"] = json!([])),
            format!("{RULE}.expression.filters[0].predicates: must not be empty"),
        ),
        (
            condition(|condition| condition["expression"]["filters"][0]["predicates"][0]["value"] = json!({})),
            format!("{RULE}.expression.filters[0].predicates[0].value: must have either staticValue or dynamicValueArgument"),
        ),
        (
            condition(|condition| {
                condition["type"] = json!("REPEATING");
                condition["count"] = json!({"staticValue": 2});
                condition["expression"]["filters"][0]["predicates"] =
                    json!([{"type": "NO_DATA", "unit": "MINUTES", "duration": {"staticValue": 1}}]);
            }),
            format!("{RULE}.type: must be SIMPLE where NO_DATA is used"),
        ),
        (
            condition(|condition| condition["expression"] = json!({"type": "TBEL", "expression": ""})),
            format!("{RULE}.expression.expression: must not be empty"),
        ),
    ];
    for (error, expected) in cases {
        assert_eq!(error, expected);
    }
}

#[test]
fn sizes_are_bounded() {
    let mut nested = super::number("EQUAL", json!({"defaultValue": 1}));
    for _ in 0..20 {
        nested = json!({"type": "COMPLEX", "operation": "AND", "predicates": [nested]});
    }
    let error = profile_error(|alarms| {
        alarms[0]["createRules"]["MAJOR"]["condition"]["condition"][0]["predicate"] = nested;
    });
    assert!(error.ends_with("is nested deeper than 16"), "{error}");

    let alarms: Vec<Json> = (0..257)
        .map(|n| alarm(&format!("a{n}"), json!({}), json!(null)))
        .collect();
    let error = AlarmRuleSet::from_device_profile(&json!({"alarms": alarms})).unwrap_err();
    assert_eq!(error.to_string(), "alarms: has more than 256 elements");

    let arguments: serde_json::Map<String, Json> = (0..257)
        .map(|n| (format!("a{n}"), series(&format!("k{n}"), json!("0"))))
        .collect();
    assert!(field_error(|field| field["arguments"] = Json::Object(arguments)).contains("more than 256"));
}

#[test]
fn empty_and_loose_configurations_are_taken() {
    for profile in [
        json!({}),
        json!({"profileData": {}}),
        json!({"profileData": {"alarms": null}}),
        json!([]),
    ] {
        let rules = AlarmRuleSet::from_device_profile(&profile).unwrap();
        assert_eq!(rules.alarm_count(), 0);
    }
    // Numbers as text, no spec, no id, and what this version does not know.
    let rule = json!({"condition": {"condition": [{"key": {"type": "TIME_SERIES", "key": "t"}, "valueType": "NUMERIC",
        "predicate": {"type": "NUMERIC", "operation": "LESS", "value": {"defaultValue": "20", "userValue": null,
            "dynamicValue": {"sourceType": null, "sourceAttribute": null, "inherit": false}}}}]}, "more": 1});
    let profile = json!({"alarms": [{"alarmType": "x", "createRules": {"MAJOR": rule}, "propagate": true,
        "propagateRelationTypes": ["Contains"]}]});
    let rules = AlarmRuleSet::from_device_profile(&profile).unwrap();
    assert_eq!(rules.propagation(0), (true, false, false));
    assert_eq!(
        rules.propagation_relation_types(0).collect::<Vec<_>>(),
        ["Contains"]
    );
}
