//! What calculated fields of type ALARM do in their own way.

use fieldline_model::entity::AlarmSeverity::{Critical, Major};
use fieldline_model::kv::{KvValue, KvValueRef};
use serde_json::{Value as Json, json};

use super::{
    AlarmInputKind, AlarmInputSource, AlarmRuleEvent, CHANGED, CLEARED, HOUR, MINUTE, NOON, RAISED, UPDATED,
    World, field_rule, kinds, series, t_field,
};

fn t() -> Json {
    json!({"t": series("t", json!(null))})
}

fn lasting(seconds: i64) -> Json {
    json!({"type": "DURATION", "unit": "SECONDS", "value": {"staticValue": seconds}})
}

fn often(count: i64) -> Json {
    json!({"type": "REPEATING", "count": {"staticValue": count}})
}

#[test]
fn nothing_runs_until_every_argument_has_a_value() {
    let arguments =
        json!({"t": series("t", json!(null)), "u": series("u", json!(null)), "v": series("v", json!("5"))});
    let mut world = World::field(
        arguments,
        json!({"MAJOR": t_field("GREATER", 50.0, json!({}))}),
        json!(null),
    );
    assert!(world.t(60.0).actions.is_empty());
    world.now += 1;
    assert_eq!(
        kinds(&world.telemetry(&[("u", KvValue::Long(1))])),
        [(RAISED, Major)]
    );
}

#[test]
fn any_argument_runs_all_rules() {
    let arguments = json!({"t": series("t", json!(null)), "u": series("u", json!("0"))});
    let mut world = World::field(
        arguments,
        json!({"MAJOR": t_field("GREATER", 50.0, often(3))}),
        json!(null),
    );
    world.t(60.0);
    world.now += 1;
    world.telemetry(&[("u", KvValue::Long(1))]);
    world.now += 1;
    let outcome = world.telemetry(&[("u", KvValue::Long(1))]);
    assert_eq!(kinds(&outcome), [(RAISED, Major)]);
    assert_eq!(outcome.actions[0].condition_repeats, Some(3));
    // A start is no event that counts.
    assert_eq!(
        world.evaluate(&AlarmRuleEvent::Started).actions[0].condition_repeats,
        Some(3)
    );
}

#[test]
fn filters_are_joined_by_and_or_or() {
    let part = |argument: &str, limit: f64| {
        json!({"argument": argument, "operation": "OR", "predicates": [
            super::number("GREATER", json!({"staticValue": limit})),
            super::number("EQUAL", json!({"dynamicValueArgument": "v"}))]})
    };
    for (operation, expected) in [("AND", [false, true, true]), ("OR", [true, true, true])] {
        let mut rule = field_rule(json!([part("t", 50.0), part("u", 10.0)]), json!({}));
        rule["condition"]["expression"]["operation"] = json!(operation);
        let arguments = json!({"t": series("t", json!(null)), "u": series("u", json!("0")), "v": series("v", json!("-7"))});
        let values = [(60.0, 0.0), (60.0, 20.0), (60.0, -7.0)];
        for ((t, u), expected) in values.into_iter().zip(expected) {
            let mut world = World::field(arguments.clone(), json!({"MAJOR": rule}), json!(null));
            let outcome = world.telemetry(&[("t", KvValue::Double(t)), ("u", KvValue::Double(u))]);
            assert_eq!(!outcome.actions.is_empty(), expected, "{operation} {t} {u}");
        }
    }
}

#[test]
fn a_duration_runs_from_the_first_event_and_is_reported_once() {
    let create = json!({"CRITICAL": t_field("GREATER", 50.0, lasting(120))});
    let mut world = World::field(t(), create, t_field("LESS", 30.0, lasting(60)));
    let outcome = world.t(60.0);
    assert_eq!(outcome.next_check, Some(NOON + 2 * MINUTE));
    let actions = world.wait(HOUR, outcome.next_check);
    assert_eq!(actions.len(), 1);
    assert_eq!((actions[0].kind, actions[0].severity), (RAISED, Critical));
    assert_eq!(actions[0].condition_duration, Some(2 * MINUTE));
    assert_eq!(actions[0].start_ts, NOON);

    let outcome = world.t(60.0);
    assert_eq!(kinds(&outcome), [(UPDATED, Critical)]);
    assert_eq!(
        (outcome.actions[0].condition_duration, outcome.next_check),
        (Some(HOUR), None)
    );

    world.now += 1;
    let outcome = world.t(20.0);
    assert!(outcome.actions.is_empty());
    let actions = world.wait(HOUR, outcome.next_check);
    assert_eq!(actions.len(), 1);
    assert_eq!(
        (actions[0].kind, actions[0].condition_duration),
        (CLEARED, Some(MINUTE))
    );
    assert!(world.state.is_idle());
}

#[test]
fn a_default_can_begin_a_duration() {
    let arguments = json!({"t": series("t", json!("60"))});
    let mut world = World::field(
        arguments,
        json!({"MAJOR": t_field("GREATER", 50.0, lasting(10))}),
        json!(null),
    );
    let outcome = world.evaluate(&AlarmRuleEvent::Started);
    assert_eq!(outcome.next_check, Some(NOON + 10_000));
    assert_eq!(world.wait(MINUTE, outcome.next_check).len(), 1);
}

#[test]
fn spans_and_limits_may_be_arguments() {
    let server = |key: &str, default: &str| json!({"refEntityKey": {"key": key, "type": "ATTRIBUTE", "scope": "SERVER_SCOPE"}, "defaultValue": default});
    let arguments =
        json!({"t": series("t", json!(null)), "limit": server("limit", "50"), "n": server("n", "0")});
    let predicate = super::number("GREATER_OR_EQUAL", json!({"dynamicValueArgument": "limit"}));
    let filters = json!([{"argument": "t", "predicates": [predicate]}]);
    let rule = field_rule(
        filters,
        json!({"type": "REPEATING", "count": {"dynamicValueArgument": "n"}}),
    );
    let mut world = World::field(arguments, json!({"MAJOR": rule}), json!(null));
    assert!(world.t(50.0).actions.is_empty(), "a count of 0 is never reached");
    world.now += 1;
    assert_eq!(kinds(&world.attribute("n", KvValue::Long(2))), [(RAISED, Major)]);
    world.now += 1;
    assert!(world.attribute("limit", KvValue::Long(70)).actions.is_empty());
    world.now += 1;
    let outcome = world.attribute("limit", KvValue::Text("hot".into()));
    assert_eq!(
        outcome.error.unwrap().to_string(),
        "No proper value found for argument limit"
    );
    // A deleted attribute is its default from then on.
    world.t(60.0);
    world.now += 1;
    let need = world.rules.find(
        AlarmInputKind::Attribute(Some(fieldline_model::timeseries::AttributeScope::Server)),
        "limit",
    );
    let outcome = world.evaluate(&AlarmRuleEvent::Removed(&[need.unwrap()]));
    assert_eq!(outcome.error, None);
    world.stored.values.remove(&need.unwrap());
    world.now += 1;
    assert_eq!(world.t(60.0).actions.len(), 1);
}

#[test]
fn arguments_may_be_of_the_owner_or_of_another_entity() {
    let other = "01020304-0506-0708-090a-0b0c0d0e0f10";
    let arguments = json!({
        "t": {"refEntityId": {"entityType": "ASSET", "id": other}, "refEntityKey": {"key": "t", "type": "TS_LATEST"}},
        "on": {"refDynamicSourceConfiguration": {"type": "CURRENT_OWNER"},
            "refEntityKey": {"key": "on", "type": "ATTRIBUTE", "scope": "SERVER_SCOPE"}},
    });
    let mut world = World::field(
        arguments,
        json!({"MAJOR": t_field("GREATER", 50.0, json!({}))}),
        json!(null),
    );
    assert_eq!(
        world.rules.find(AlarmInputKind::TimeSeries, "t"),
        None,
        "a value of its own is not meant"
    );
    world.store(AlarmInputSource::Owner, "on", KvValue::Bool(true));
    let need = world
        .rules
        .inputs()
        .iter()
        .position(|need| &*need.key == "t")
        .unwrap();
    assert!(
        matches!(world.rules.inputs()[need].source, AlarmInputSource::Entity(id) if id.id.to_string() == other)
    );
    let change = super::AlarmInputChange {
        input: need as u16,
        ts: NOON,
        value: KvValueRef::Long(60),
    };
    assert_eq!(
        kinds(&world.evaluate(&AlarmRuleEvent::Update(&[change]))),
        [(RAISED, Major)]
    );
}

#[test]
fn silence_raises_an_alarm() {
    let predicate = json!({"type": "NO_DATA", "unit": "MINUTES", "duration": {"staticValue": 10}});
    let rule = field_rule(json!([{"argument": "t", "predicates": [predicate]}]), json!({}));
    let mut world = World::field(t(), json!({"MAJOR": rule}), t_field("LESS", 30.0, json!({})));
    let outcome = world.t(20.0);
    assert_eq!(outcome.next_check, Some(NOON + 10 * MINUTE));
    assert_eq!(world.wait(9 * MINUTE, outcome.next_check), []);
    let outcome = world.t(20.0);
    let actions = world.wait(HOUR, outcome.next_check);
    assert_eq!(actions.len(), 1);
    assert_eq!(actions[0].start_ts, NOON + 9 * MINUTE);

    // Cleared by hand, it comes again, since it still is silent.
    let next = world
        .evaluate(&AlarmRuleEvent::AlarmCleared(actions[0].id))
        .next_check;
    assert_eq!(world.wait(MINUTE, next).len(), 1);
    let outcome = world.t(20.0);
    assert_eq!(kinds(&outcome), [(CLEARED, Major)]);
}

#[test]
fn silence_of_an_argument_with_a_default_counts_from_the_start() {
    let predicate = json!({"type": "NO_DATA", "unit": "MINUTES", "duration": {"staticValue": 10}});
    let rule = field_rule(json!([{"argument": "t", "predicates": [predicate]}]), json!({}));
    let arguments = json!({"t": series("t", json!("0"))});
    let mut world = World::field(arguments, json!({"MAJOR": rule}), json!(null));
    world.now += MINUTE;
    let outcome = world.evaluate(&AlarmRuleEvent::Started);
    assert_eq!(outcome.next_check, Some(NOON + 10 * MINUTE));
    assert_eq!(world.wait(HOUR, outcome.next_check).len(), 1);
}

#[test]
fn late_values_are_dropped() {
    let mut world = World::field(
        t(),
        json!({"MAJOR": t_field("GREATER", 50.0, json!({}))}),
        json!(null),
    );
    world.t(10.0);
    let late = world.update(AlarmInputKind::TimeSeries, NOON - 1, &[("t", KvValue::Long(60))]);
    assert!(late.actions.is_empty());
    assert_eq!(
        world
            .update(AlarmInputKind::TimeSeries, NOON, &[("t", KvValue::Long(60))])
            .actions
            .len(),
        1
    );
    // Of several points in one message, the newest counts.
    let change = |ts, value| super::AlarmInputChange {
        input: 0,
        ts,
        value: KvValueRef::Long(value),
    };
    let outcome = world.evaluate(&AlarmRuleEvent::Update(&[
        change(NOON + 2, 70),
        change(NOON + 1, 10),
    ]));
    assert_eq!(kinds(&outcome), [(UPDATED, Major)]);
}

#[test]
fn points_that_come_again_behind_an_older_state_count_as_they_did() {
    let create = json!({"MAJOR": t_field("GREATER", 50.0, often(3))});
    let mut world = World::field(t(), create, json!(null));
    let at =
        |world: &mut World, ts| world.update(AlarmInputKind::TimeSeries, ts, &[("t", KvValue::Long(60))]);
    assert!(at(&mut world, NOON).actions.is_empty());
    let kept = world.state.clone();
    assert!(at(&mut world, NOON + 1).actions.is_empty());
    assert_eq!(kinds(&at(&mut world, NOON + 2)), [(RAISED, Major)]);
    // A crash: the store has all of them, the state only the first.
    world.state = kept;
    assert!(at(&mut world, NOON + 1).actions.is_empty());
    assert!(
        at(&mut world, NOON).actions.is_empty(),
        "late as seen from the state"
    );
    assert_eq!(kinds(&at(&mut world, NOON + 2)), [(RAISED, Major)]);
}

#[test]
fn an_update_covers_rules_if_it_brings_all_that_they_read_and_nothing_late() {
    let arguments = json!({"t": series("t", json!(null)), "u": series("u", json!("50"))});
    let mut world = World::field(
        arguments,
        json!({"MAJOR": t_field("GREATER", 50.0, json!({}))}),
        json!(null),
    );
    let change = |key: &str, ts, world: &World| super::AlarmInputChange {
        input: world.rules.find(AlarmInputKind::TimeSeries, key).unwrap() as u16,
        ts,
        value: KvValueRef::Long(60),
    };
    let covers = |world: &World, given: &[(&str, i64)]| {
        let changes: Vec<_> = given.iter().map(|(key, ts)| change(key, *ts, world)).collect();
        world.state.is_covered(&world.rules, &changes)
    };
    assert!(
        !covers(&world, &[("t", NOON), ("u", NOON)]),
        "the store may have newer ones"
    );
    world.telemetry(&[("t", KvValue::Long(60)), ("u", KvValue::Long(60))]);
    assert!(covers(&world, &[("t", NOON), ("u", NOON + 1)]));
    assert!(!covers(&world, &[("t", NOON), ("u", NOON - 1)]), "one is late");
    assert!(!covers(&world, &[("t", NOON), ("t", NOON + 1)]), "one is missing");
}

#[test]
fn scripts_decide_and_their_errors_show() {
    let rule = json!({"condition": {"type": "SIMPLE", "expression": {"type": "TBEL", "expression": "return t > u;"}}});
    let arguments = json!({"t": series("t", json!(null)), "u": series("u", json!("50"))});
    let mut world = World::field(arguments, json!({"MAJOR": rule}), json!(null));
    assert_eq!(&*world.rules.expressions()[0], "return t > u;");
    world.stored.script = Some(|arguments| {
        let values: Vec<f64> = arguments
            .iter()
            .filter_map(|(_, _, value)| value.as_number())
            .collect();
        let names: Vec<&str> = arguments.iter().map(|(name, _, _)| name).collect();
        assert_eq!(names, ["t", "u"]);
        values[0] > values[1]
    });
    assert!(world.t(50.0).actions.is_empty());
    assert_eq!(kinds(&world.t(51.0)), [(RAISED, Major)]);
    world.stored.script = None;
    assert_eq!(world.t(52.0).error.unwrap().to_string(), "no script");
}

#[test]
fn severity_goes_up_with_repeats_and_details_name_arguments() {
    let mut major = t_field("GREATER", 50.0, often(2));
    major["alarmDetails"] = json!("t is ${t}, limit ${u}");
    let create = json!({"MAJOR": major, "CRITICAL": t_field("GREATER", 50.0, often(3))});
    let mut world = World::field(
        json!({"t": series("t", json!(null)), "u": series("u", json!("5"))}),
        create,
        json!(null),
    );
    assert!(world.t(60.0).actions.is_empty());
    world.now += 1;
    let outcome = world.t(60.0);
    assert_eq!(
        outcome.actions[0].details.as_deref(),
        Some("t is 60.0, limit 5.0")
    );
    world.now += 1;
    assert_eq!(kinds(&world.t(60.0)), [(CHANGED, Critical)]);
    let id = world.state.alarm(&world.rules, 0).unwrap().id;
    world.evaluate(&AlarmRuleEvent::AlarmCleared(id));
    assert!(world.state.is_idle());
}

#[test]
fn a_deleted_point_gives_way_to_the_one_before() {
    let arguments = json!({"t": series("t", json!("0"))});
    let mut world = World::field(
        arguments,
        json!({"MAJOR": t_field("GREATER", 50.0, json!({}))}),
        json!(null),
    );
    world.t(10.0);
    world.stored.values.insert(0, (NOON - 5, KvValue::Long(60)));
    assert_eq!(
        kinds(&world.evaluate(&AlarmRuleEvent::Removed(&[0]))),
        [(RAISED, Major)]
    );
    world.stored.values.clear();
    assert!(
        world.evaluate(&AlarmRuleEvent::Removed(&[0])).actions.is_empty(),
        "nothing but the default remains"
    );
    // A point of a device whose clock was wrong is deleted: others count again.
    let id = world.state.alarm(&world.rules, 0).unwrap().id;
    world.evaluate(&AlarmRuleEvent::AlarmCleared(id));
    world.now = NOON + 3_600_000;
    world.t(10.0);
    world.now = NOON;
    assert!(world.t(60.0).actions.is_empty(), "it is late");
    world.stored.values.clear();
    assert!(world.evaluate(&AlarmRuleEvent::Removed(&[0])).changed);
    assert_eq!(kinds(&world.t(60.0)), [(RAISED, Major)]);
}

#[test]
fn an_attribute_counts_even_if_the_store_knows_a_later_time() {
    let arguments =
        json!({"t": {"refEntityKey": {"key": "t", "type": "ATTRIBUTE", "scope": "SERVER_SCOPE"}}});
    let mut world = World::field(
        arguments,
        json!({"MAJOR": t_field("GREATER", 50.0, json!({}))}),
        json!(null),
    );
    world.stored.values.insert(0, (NOON + 1, KvValue::Long(60)));
    assert_eq!(world.attribute("t", KvValue::Long(60)).actions.len(), 1);
}
