//! SIMPLE, DURATION and REPEATING in device profiles.

use fieldline_model::entity::AlarmSeverity::{Critical, Major, Minor};
use fieldline_model::kv::{KvValue, KvValueRef};
use serde_json::json;

use super::{
    AlarmActionKind, AlarmInputChange, AlarmInputChanges, AlarmInputSource, AlarmRuleEvent, MINUTE, NOON,
    RAISED, UPDATED, World, duration, kinds, repeating, simple, t_rule,
};

#[test]
fn a_duration_is_measured_between_events() {
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, duration(10))}),
        json!(null),
    );
    assert!(world.t(60.0).actions.is_empty());
    world.now += 10_000;
    assert!(
        world.t(60.0).actions.is_empty(),
        "it must be longer than the duration"
    );
    world.now += 1;
    let outcome = world.t(60.0);
    assert_eq!(kinds(&outcome), [(RAISED, Major)]);
    assert_eq!(outcome.actions[0].condition_duration, Some(10_001));
    assert_eq!(outcome.actions[0].start_ts, world.now);

    // A value in between starts it anew, and so does nothing else.
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, duration(10))}),
        json!(null),
    );
    world.t(60.0);
    world.now += 6_000;
    world.telemetry(&[("other", KvValue::Long(1))]);
    world.t(40.0);
    world.now += 6_000;
    assert!(world.t(60.0).actions.is_empty());
    world.now += 6_000;
    assert!(world.t(60.0).actions.is_empty());
    world.now += 6_000;
    assert_eq!(kinds(&world.t(60.0)), [(RAISED, Major)]);
}

#[test]
fn a_duration_comes_true_without_events_and_updates_every_minute() {
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, duration(90))}),
        json!(null),
    );
    let outcome = world.t(60.0);
    assert_eq!(outcome.next_check, Some(NOON + 90_001));
    assert!(outcome.changed);
    let actions = world.wait(90_000, outcome.next_check);
    assert_eq!(actions, []);
    let actions = world.wait(4 * MINUTE, outcome.next_check);
    let kinds: Vec<AlarmActionKind> = actions.iter().map(|action| action.kind).collect();
    assert_eq!(kinds, [RAISED, UPDATED, UPDATED, UPDATED, UPDATED]);
    assert_eq!(actions[0].start_ts, NOON);

    // An event that does not match ends the checks.
    let outcome = world.t(40.0);
    assert_eq!((outcome.next_check, outcome.changed), (None, true));
}

#[test]
fn a_duration_of_a_clock_that_is_ahead_is_not_forgotten() {
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, duration(10))}),
        json!(null),
    );
    let ahead = NOON + 5 * MINUTE;
    let outcome = world.update(
        super::AlarmInputKind::TimeSeries,
        ahead,
        &[("t", KvValue::Long(60))],
    );
    assert_eq!(outcome.next_check, Some(ahead + 10_001));
    assert!(world.evaluate(&AlarmRuleEvent::Timer).actions.is_empty());
    let actions = world.wait(5 * MINUTE + 30_000, outcome.next_check);
    assert_eq!(actions.len(), 1);
    assert_eq!(actions[0].start_ts, ahead, "which has passed by then");
}

#[test]
fn repeats_count_events_and_go_on_counting() {
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, repeating(3))}),
        json!(null),
    );
    for expected in [false, false, true, true] {
        let outcome = world.t(60.0);
        assert_eq!(!outcome.actions.is_empty(), expected);
        world.now += 1;
    }
    let outcome = world.t(60.0);
    assert_eq!(kinds(&outcome), [(UPDATED, Major)]);
    assert_eq!(outcome.actions[0].condition_repeats, Some(5));
    assert!(!outcome.changed, "there is nothing new to store");
    assert_eq!(outcome.next_check, None);

    world.now += 1;
    assert!(world.t(40.0).changed);
    world.now += 1;
    assert!(world.t(60.0).actions.is_empty());
}

#[test]
fn the_same_event_twice_counts_once() {
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, repeating(2))}),
        json!(null),
    );
    world.t(60.0);
    assert!(world.t(60.0).actions.is_empty());
    // Another value at that time is another event.
    assert_eq!(kinds(&world.t(61.0)), [(RAISED, Major)]);
}

#[test]
fn points_of_several_times_are_several_events() {
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, repeating(3))}),
        json!(null),
    );
    let need = world.rules.find(super::AlarmInputKind::TimeSeries, "t").unwrap() as u16;
    let change = |ts, value| AlarmInputChange {
        input: need,
        ts,
        value: KvValueRef::Long(value),
    };
    // The low value is the oldest, so that it does not interrupt.
    let outcome = world.evaluate(&AlarmRuleEvent::Update(&[
        change(NOON - 10, 60),
        change(NOON - 40, 10),
        change(NOON - 30, 60),
        change(NOON - 20, 60),
    ]));
    assert_eq!(kinds(&outcome), [(RAISED, Major)]);
    assert_eq!(outcome.actions[0].start_ts, NOON - 10);
}

#[test]
fn required_spans_may_come_from_attributes() {
    let dynamic = |spec: &str| {
        json!({"type": spec, "unit": "MINUTES", "predicate": {"defaultValue": 1, "dynamicValue":
            {"sourceType": "CURRENT_DEVICE", "sourceAttribute": "span", "inherit": true}}})
    };
    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, dynamic("DURATION"))}),
        json!(null),
    );
    assert_eq!(world.t(60.0).next_check, Some(NOON + MINUTE + 1));
    world.store(AlarmInputSource::Tenant, "span", KvValue::Text("3".into()));
    world.now += 1;
    assert_eq!(world.t(60.0).next_check, Some(NOON + 3 * MINUTE + 1));

    let mut world = World::profile(
        json!({"MAJOR": t_rule("GREATER", 50.0, dynamic("REPEATING"))}),
        json!(null),
    );
    world.store(AlarmInputSource::Customer, "span", KvValue::Double(2.9));
    assert!(world.t(60.0).actions.is_empty());
    world.now += 1;
    assert_eq!(world.t(60.0).actions.len(), 1);

    world.store(
        AlarmInputSource::Originator,
        "span",
        KvValue::Text("often".into()),
    );
    world.now += 1;
    let error = world.t(60.0).error.unwrap();
    assert_eq!(
        error.to_string(),
        "Could not convert attribute 'span' with value 'often' to numeric value!"
    );
}

#[test]
fn only_rules_that_read_a_changed_key_run() {
    let other = json!({"condition": {"condition": [{"key": {"type": "TIME_SERIES", "key": "u"}, "valueType": "NUMERIC",
        "predicate": super::number("GREATER", json!({"defaultValue": 0}))}], "spec": repeating(2)}});
    let rules = super::profile_rules(json!([super::alarm(
        "a",
        json!({"CRITICAL": t_rule("GREATER", 50.0, simple()), "MINOR": other}),
        json!(null)
    ),]));
    let mut world = World::new(rules);
    world.telemetry(&[("u", KvValue::Long(1))]);
    world.now += 1;
    // The first rule is false now, and the second one keeps its count since its key did not come.
    assert!(world.t(0.0).actions.is_empty());
    world.now += 1;
    assert_eq!(
        kinds(&world.telemetry(&[("u", KvValue::Long(1))])),
        [(RAISED, Minor)]
    );
    world.now += 1;
    assert_eq!(kinds(&world.t(60.0)), [(super::CHANGED, Critical)]);
    assert_eq!(
        world.telemetry(&[("v", KvValue::Long(1))]),
        super::AlarmRuleOutcome::default()
    );
}

#[test]
fn a_deleted_attribute_is_no_longer_seen() {
    let rule = json!({"condition": {"condition": [{"key": {"type": "ATTRIBUTE", "key": "a"}, "valueType": "NUMERIC",
        "predicate": super::number("GREATER", json!({"defaultValue": 0}))}], "spec": repeating(2)}});
    let mut world = World::profile(json!({"MAJOR": rule}), json!(null));
    world.attribute("a", KvValue::Long(1));
    let need = world
        .rules
        .find(super::AlarmInputKind::Attribute(None), "a")
        .unwrap();
    let outcome = world.evaluate(&AlarmRuleEvent::Removed(&[need]));
    assert!(
        outcome.actions.is_empty() && outcome.changed,
        "the count starts anew"
    );
    world.now += 1;
    assert!(world.attribute("a", KvValue::Long(1)).actions.is_empty());
}

#[test]
fn many_keys_in_one_message() {
    let alarms: Vec<serde_json::Value> = (0..100)
        .map(|number| {
            let filter = json!({"key": {"type": "TIME_SERIES", "key": format!("k{number}")}, "valueType": "NUMERIC",
                "predicate": super::number("EQUAL", json!({"defaultValue": number}))});
            let rule = json!({"condition": {"condition": [filter], "spec": simple()}});
            super::alarm(&format!("a{number}"), json!({"MAJOR": rule}), json!(null))
        })
        .collect();
    let mut world = World::new(super::profile_rules(json!(alarms)));
    let mut changes = AlarmInputChanges::default();
    for number in 0..100 {
        let kind = super::AlarmInputKind::TimeSeries;
        changes.add(
            &world.rules,
            kind,
            &format!("k{number}"),
            NOON,
            KvValueRef::Long(number),
        );
        changes.add(
            &world.rules,
            kind,
            &format!("other{number}"),
            NOON,
            KvValueRef::Long(number),
        );
    }
    assert_eq!(changes.as_slice().len(), 100);
    let outcome = world.evaluate(&AlarmRuleEvent::Update(changes.as_slice()));
    let raised: Vec<usize> = outcome.actions.iter().map(|action| action.alarm).collect();
    assert_eq!(raised, (0..100).collect::<Vec<_>>());
}
