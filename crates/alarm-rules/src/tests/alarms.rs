//! The life of an alarm in a device profile: severities, clearing, details, what others do to it.

use fieldline_model::entity::AlarmSeverity::{Critical, Indeterminate, Major, Minor};
use fieldline_model::kv::KvValue;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::{
    AlarmRuleEvent, CHANGED, CLEARED, NOON, RAISED, UPDATED, World, alarm, duration, kinds, profile_rules,
    repeating, simple, t_rule,
};
use crate::{ActiveAlarm, AlarmRuleState};

fn levels() -> Json {
    json!({
        "MINOR": t_rule("GREATER", 50.0, simple()),
        "CRITICAL": t_rule("GREATER", 90.0, simple()),
        "MAJOR": t_rule("GREATER", 70.0, simple()),
    })
}

#[test]
fn severity_goes_up_and_not_down() {
    let mut world = World::profile(levels(), t_rule("LESS", 30.0, simple()));
    let steps: &[(f64, &[_])] = &[
        (40.0, &[]),
        (60.0, &[(RAISED, Minor)]),
        (61.0, &[(UPDATED, Minor)]),
        (95.0, &[(CHANGED, Critical)]),
        (75.0, &[]),
        (96.0, &[(UPDATED, Critical)]),
        (40.0, &[]),
        (20.0, &[(CLEARED, Critical)]),
        (20.0, &[]),
        (75.0, &[(RAISED, Major)]),
    ];
    let mut ids = Vec::new();
    for (value, expected) in steps {
        world.now += 1000;
        let outcome = world.t(*value);
        assert_eq!(kinds(&outcome), *expected, "at {value}");
        for action in &outcome.actions {
            ids.push(action.id);
            let end = if action.kind == RAISED {
                action.start_ts
            } else {
                world.now
            };
            assert_eq!(action.end_ts, end);
        }
    }
    assert!(
        ids[..5].iter().all(|id| *id == ids[0]),
        "one alarm from raising to clearing"
    );
    assert_ne!(ids[5], ids[0]);
}

#[test]
fn an_alarm_begins_with_its_event_but_not_in_the_future() {
    for (ts, start) in [(NOON - 5, NOON - 5), (NOON + 5, NOON), (0, NOON)] {
        let mut world = World::profile(levels(), json!(null));
        let outcome = world.update(super::AlarmInputKind::TimeSeries, ts, &[("t", KvValue::Long(60))]);
        assert_eq!(
            (outcome.actions[0].start_ts, outcome.actions[0].end_ts),
            (start, start)
        );
    }
}

#[test]
fn clear_rules_have_spans_of_their_own() {
    let create = json!({"MAJOR": t_rule("GREATER", 50.0, repeating(2))});
    let mut world = World::profile(create, t_rule("LESS", 30.0, duration(10)));
    for value in [60.0, 60.0] {
        world.now += 1000;
        world.t(value);
    }
    world.now += 1000;
    let outcome = world.t(20.0);
    assert!(outcome.actions.is_empty());
    let actions = world.wait(11_000, outcome.next_check);
    assert_eq!(actions.len(), 1);
    assert_eq!(
        (actions[0].kind, actions[0].condition_duration),
        (CLEARED, Some(0))
    );
    assert!(world.state.is_idle());
    // A create rule that is true starts the clear rule anew.
    for value in [60.0, 60.0, 20.0, 60.0, 60.0] {
        world.now += 6000;
        assert!(kinds(&world.t(value)).iter().all(|(kind, _)| *kind != CLEARED));
    }
    world.now += 6000;
    assert!(world.t(20.0).actions.is_empty());
}

#[test]
fn a_clear_rule_without_an_alarm_does_nothing() {
    let mut world = World::profile(levels(), t_rule("LESS", 30.0, repeating(1)));
    let outcome = world.t(20.0);
    assert!(outcome.actions.is_empty() && !outcome.changed);
}

#[test]
fn what_others_do_to_an_alarm_is_followed() {
    let create = json!({"MAJOR": t_rule("GREATER", 50.0, repeating(2))});
    let mut world = World::profile(create, json!(null));
    world.t(60.0);
    world.now += 1;
    let id = world.t(60.0).actions[0].id;

    assert!(
        !world
            .evaluate(&AlarmRuleEvent::AlarmCleared(Uuid::from_u128(7)))
            .changed,
        "not this one"
    );
    assert!(!world.evaluate(&AlarmRuleEvent::AlarmAcknowledged(id)).changed);
    assert!(world.evaluate(&AlarmRuleEvent::AlarmCleared(id)).changed);
    assert!(world.state.is_idle());
    for expected in [None, Some(RAISED)] {
        world.now += 1;
        assert_eq!(world.t(60.0).actions.first().map(|action| action.kind), expected);
    }
    let id = world.state.alarm(&world.rules, 0).unwrap().id;
    assert!(world.evaluate(&AlarmRuleEvent::AlarmDeleted(id)).changed);
    assert!(world.state.is_idle());
}

#[test]
fn an_alarm_that_the_store_knows_is_updated() {
    let rules = profile_rules(json!([
        alarm("a", levels(), json!(null)),
        alarm("b", levels(), json!(null))
    ]));
    let mut world = World::new(rules);
    world.state = AlarmRuleState::new(&world.rules, NOON);
    assert!(!world.state.is_resolved(&world.rules));
    assert_eq!(world.state.unresolved(&world.rules), [0, 1]);
    let known = ActiveAlarm {
        id: Uuid::from_u128(7),
        severity: Major,
        start_ts: NOON - 5,
    };
    world.state.set_alarm(&world.rules, 0, None);
    world.state.set_alarm(&world.rules, 1, Some(known));
    assert!(world.state.is_resolved(&world.rules));
    let outcome = world.t(60.0);
    assert_eq!(
        kinds(&outcome),
        [(RAISED, Minor)],
        "the second one is worse already"
    );
    world.now += 1;
    let outcome = world.t(95.0);
    assert_eq!(kinds(&outcome), [(CHANGED, Critical), (CHANGED, Critical)]);
    assert_eq!(
        (outcome.actions[1].id, outcome.actions[1].start_ts),
        (known.id, known.start_ts)
    );
}

#[test]
fn details_show_values_of_the_rule() {
    let mut rule = t_rule("GREATER", 50.0, simple());
    rule["alarmDetails"] = json!("t=${t} u=${u} ${ unclosed");
    rule["dashboardId"] = json!({"entityType": "DASHBOARD", "id": "01020304-0506-0708-090a-0b0c0d0e0f10"});
    let mut clear = t_rule("LESS", 30.0, simple());
    clear["alarmDetails"] = json!("$ {t} ${t}${t}");
    let mut world = World::profile(json!({"INDETERMINATE": rule}), clear);
    let outcome = world.t(60.0);
    assert_eq!(kinds(&outcome), [(RAISED, Indeterminate)]);
    assert_eq!(
        outcome.actions[0].details_json().unwrap(),
        json!({"data": "t=60.0 u=${u} ${ unclosed", "dashboardId": "01020304-0506-0708-090a-0b0c0d0e0f10"})
    );
    world.now += 1;
    let outcome = world.telemetry(&[("t", KvValue::Text("2$1".into()))]);
    assert!(outcome.actions.is_empty());
    let outcome = world.telemetry(&[("t", KvValue::Long(-2))]);
    assert_eq!(
        outcome.actions[0].details_json().unwrap(),
        json!({"data": "$ {t} -2-2"})
    );

    let mut world = World::profile(levels(), json!(null));
    assert_eq!(world.t(60.0).actions[0].details_json(), None);
}

#[test]
fn details_become_only_so_long() {
    let world = |count: usize| {
        let mut rule = t_rule("GREATER", 50.0, simple());
        rule["alarmDetails"] = json!("${t}".repeat(count));
        World::profile(json!({"MAJOR": rule}), json!(null))
    };
    let long = KvValue::Text(format!("60.{}", "0".repeat((64 << 10) - 3)).into());
    let outcome = world(4).telemetry(&[("t", long.clone())]);
    assert_eq!(outcome.error, None);
    assert_eq!(
        outcome.actions[0].details.as_deref().map(str::len),
        Some(256 << 10)
    );
    let outcome = world(5).telemetry(&[("t", long)]);
    assert_eq!(
        outcome.error.unwrap().message,
        "beyond the limit of bytes of the details of an alarm: 327680, allowed are 262144"
    );
    assert_eq!(outcome.actions.len(), 1, "the alarm is raised without them");
    assert_eq!(outcome.actions[0].details, None);
}

#[test]
fn conditions_of_all_rules_together_take_only_so_long() {
    let contains = json!({"type": "STRING", "operation": "CONTAINS", "value": {"defaultValue": "y"}});
    let any = |predicates: Json| json!({"type": "COMPLEX", "operation": "OR", "predicates": predicates});
    let mut rule = t_rule("GREATER", 50.0, simple());
    rule["condition"]["condition"][0]["valueType"] = json!("STRING");
    rule["condition"]["condition"][0]["predicate"] = any(json!(vec![any(json!(vec![contains; 120])); 120]));
    let mut world = World::profile(json!({ "MAJOR": rule }), json!(null));
    let outcome = world.telemetry(&[("t", KvValue::Text("x".into()))]);
    assert_eq!(outcome.error, None);
    let outcome = world.telemetry(&[("t", KvValue::Text("x".repeat(10_000).into()))]);
    let message = outcome.error.unwrap().message;
    assert!(message.contains("limit of steps of an evaluation"), "{message}");
}

#[test]
fn a_rule_that_fails_costs_its_alarm_only() {
    let spec = json!({"type": "REPEATING", "predicate": {"defaultValue": 1, "dynamicValue":
        {"sourceType": "CURRENT_TENANT", "sourceAttribute": "n"}}});
    let rules = profile_rules(json!([
        alarm("a", json!({"MAJOR": t_rule("GREATER", 50.0, spec)}), json!(null)),
        alarm("b", levels(), json!(null)),
    ]));
    let mut world = World::new(rules);
    world.store(super::AlarmInputSource::Tenant, "n", KvValue::Text("x".into()));
    let outcome = world.t(60.0);
    assert_eq!(outcome.error.as_ref().map(|error| error.alarm), Some(0));
    assert_eq!(outcome.actions.len(), 1);
    assert_eq!(world.rules.alarm_type(outcome.actions[0].alarm), Some("b"));
}
