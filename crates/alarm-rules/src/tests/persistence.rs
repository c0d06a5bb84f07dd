//! States that are stored, read back, damaged, or meet changed rules.

use std::sync::Arc;

use fieldline_model::entity::AlarmSeverity::Critical;
use fieldline_model::kv::{KvValue, KvValueRef};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use serde_json::json;
use uuid::Uuid;

use super::{
    AlarmInputChange, AlarmInputKind, AlarmRuleEvent, AlarmRuleOutcome, AlarmRuleSet, AlarmRuleState, NOON,
    RAISED, Stored, World, alarm, duration, evaluate, kinds, profile_rules, repeating, series, simple,
    t_field, t_rule,
};
use crate::ActiveAlarm;

fn five_alarms() -> Arc<AlarmRuleSet> {
    let specs = [simple(), duration(30), repeating(3), duration(5), repeating(2)];
    let alarms: Vec<_> = specs
        .into_iter()
        .enumerate()
        .map(|(number, spec)| {
            let create = json!({
                "CRITICAL": t_rule("GREATER", 60.0, spec.clone()),
                "MINOR": t_rule("GREATER", 40.0, simple()),
            });
            alarm(&format!("a{number}"), create, t_rule("LESS", 20.0, spec))
        })
        .collect();
    profile_rules(json!(alarms))
}

fn field() -> Arc<AlarmRuleSet> {
    let hours = json!({"type": "SPECIFIC_TIME", "timezone": "Europe/Berlin", "daysOfWeek": [1], "startsOn": 0,
        "endsOn": 54_000_000});
    let lasting = json!({"type": "DURATION", "unit": "SECONDS", "value": {"staticValue": 20}});
    let configuration = json!({"arguments": {"t": series("t", json!("0"))}, "createRules": {
        "CRITICAL": t_field("GREATER", 60.0, lasting.clone()),
        "MAJOR": t_field("GREATER", 50.0, json!({"schedule": {"staticValue": hours}})),
    }, "clearRule": t_field("LESS", 20.0, lasting)});
    AlarmRuleSet::from_calculated_field("f", &configuration).unwrap()
}

#[test]
fn an_idle_device_with_five_alarms_is_small() {
    let mut world = World::new(five_alarms());
    let outcome = world.t(30.0);
    assert!(!outcome.changed);
    assert!(world.state.is_idle());
    let bytes = size_of::<AlarmRuleState>() + world.state.heap_bytes();
    assert!(bytes <= 200, "{bytes} bytes in memory");
    let mut stored = Vec::new();
    world.state.encode(&mut stored);
    assert!(stored.len() <= 64, "{} bytes stored", stored.len());
}

#[test]
fn running_rules_survive_changes_of_the_profile() {
    let rules = |limit: f64, second: serde_json::Value| {
        profile_rules(json!([
            alarm(
                "a",
                json!({"CRITICAL": t_rule("GREATER", limit, repeating(3))}),
                json!(null)
            ),
            alarm("b", json!({"CRITICAL": second}), json!(null)),
        ]))
    };
    let mut world = World::new(rules(50.0, t_rule("GREATER", 50.0, repeating(3))));
    for _ in 0..2 {
        world.now += 1;
        world.t(60.0);
    }
    // The first alarm has another limit now, the second one another type of condition.
    world.rules = rules(55.0, t_rule("GREATER", 50.0, duration(3)));
    assert!(!world.state.is_resolved(&world.rules));
    for alarm in world.state.unresolved(&world.rules) {
        world.state.set_alarm(&world.rules, alarm, None);
    }
    world.now += 1;
    let outcome = world.t(60.0);
    assert_eq!(kinds(&outcome), [(RAISED, Critical)]);
    assert_eq!(world.rules.alarm_type(outcome.actions[0].alarm), Some("a"));

    // An alarm type that is gone takes what it had with it.
    world.rules = profile_rules(json!([alarm("c", json!({}), json!(null))]));
    let outcome = world.evaluate(&AlarmRuleEvent::Timer);
    assert!(outcome.changed && outcome.actions.is_empty());
    assert!(world.state.is_idle());
}

#[test]
fn a_duration_goes_on_after_a_restart() {
    let mut world = World::new(profile_rules(json!([alarm(
        "a",
        json!({"CRITICAL": t_rule("GREATER", 50.0, duration(60))}),
        json!(null)
    )])));
    let next = world.t(60.0).next_check;
    let mut bytes = Vec::new();
    world.state.encode(&mut bytes);
    world.state = AlarmRuleState::decode(&bytes).unwrap();
    world.now += 20_000;
    assert_eq!(world.evaluate(&AlarmRuleEvent::Timer).next_check, next);
    assert_eq!(world.wait(45_000, next).len(), 1);
}

#[test]
fn a_state_without_newest_points_is_of_the_first_version() {
    let mut world = World::new(five_alarms());
    world.t(70.0);
    let mut bytes = Vec::new();
    world.state.encode(&mut bytes);
    assert_eq!(bytes[0], 1, "there are none of a profile");
    assert_eq!(AlarmRuleState::decode(&bytes).unwrap(), world.state);
}

#[test]
fn counters_of_a_lost_message_are_not_counted_twice() {
    let mut world = World::new(five_alarms());
    world.now += 1;
    world.t(70.0);
    let mut bytes = Vec::new();
    world.state.encode(&mut bytes);
    // The same message comes again after a crash.
    world.state = AlarmRuleState::decode(&bytes).unwrap();
    assert_eq!(
        world.t(70.0),
        AlarmRuleOutcome {
            next_check: Some(world.now + 5001),
            ..AlarmRuleOutcome::default()
        }
    );
}

#[test]
fn times_far_away_do_no_harm() {
    for rules in [five_alarms(), field()] {
        let need = rules.find(AlarmInputKind::TimeSeries, "t").unwrap() as u16;
        for first in [i64::MIN, -1, 0, 1, i64::MAX] {
            for second in [i64::MIN, 0, NOON, i64::MAX] {
                let mut state = AlarmRuleState::new(&rules, NOON);
                for ts in [first, second] {
                    for value in [70, 10] {
                        let change = AlarmInputChange {
                            input: need,
                            ts,
                            value: KvValueRef::Long(value),
                        };
                        evaluate(
                            &rules,
                            &mut state,
                            &AlarmRuleEvent::Update(&[change]),
                            &Stored::default(),
                            NOON,
                        );
                        let outcome = evaluate(
                            &rules,
                            &mut state,
                            &AlarmRuleEvent::Timer,
                            &Stored::default(),
                            NOON,
                        );
                        assert!(outcome.next_check.is_none_or(|next| next > NOON));
                    }
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Value(i64, i64),
    Pass(i64),
    Timer,
    Clear(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..100i64, -10..10i64).prop_map(|(value, late)| Step::Value(value, late)),
        3 => (1..30_000i64).prop_map(Step::Pass),
        2 => (0..1i64).prop_map(|_| Step::Timer),
        1 => (0..5usize).prop_map(Step::Clear),
    ];
    prop::collection::vec(step, 1..60)
}

/// Ids are new each time: they are compared by the order in which they appear.
fn apply(rules: &AlarmRuleSet, state: &mut AlarmRuleState, step: &Step, now: i64) -> AlarmRuleOutcome {
    let stored = Stored::default();
    let need = rules.find(AlarmInputKind::TimeSeries, "t").unwrap() as u16;
    let mut outcome = match step {
        Step::Value(value, late) => {
            let change = AlarmInputChange {
                input: need,
                ts: now + late,
                value: KvValueRef::Long(*value),
            };
            evaluate(rules, state, &AlarmRuleEvent::Update(&[change]), &stored, now)
        }
        Step::Clear(alarm) => {
            let id = state.alarm(rules, *alarm).map_or(Uuid::nil(), |alarm| alarm.id);
            evaluate(rules, state, &AlarmRuleEvent::AlarmCleared(id), &stored, now)
        }
        Step::Timer | Step::Pass(_) => evaluate(rules, state, &AlarmRuleEvent::Timer, &stored, now),
    };
    for action in &mut outcome.actions {
        action.id = Uuid::nil();
    }
    outcome
}

fn same_with_and_without_storing(rules: &AlarmRuleSet, steps: &[Step]) {
    let mut kept = AlarmRuleState::new(rules, NOON);
    let mut read_back = kept.clone();
    let mut now = NOON;
    for step in steps {
        if let Step::Pass(millis) = step {
            now += millis;
        }
        let mut bytes = Vec::new();
        read_back.encode(&mut bytes);
        read_back = AlarmRuleState::decode(&bytes).unwrap();
        let first = apply(rules, &mut kept, step, now);
        let second = apply(rules, &mut read_back, step, now);
        assert_eq!(first, second, "after {step:?}");
        assert!(first.next_check.is_none_or(|next| next > now));
    }
}

proptest! {
    #[test]
    fn stored_states_behave_as_those_in_memory(steps in steps()) {
        same_with_and_without_storing(&five_alarms(), &steps);
        same_with_and_without_storing(&field(), &steps);
    }

    #[test]
    fn damaged_bytes_never_panic(mut noise in prop::collection::vec(any::<u8>(), 0..200), at in any::<usize>(), flip in 1..255u8) {
        let _ = AlarmRuleState::decode(&noise);
        if let Some(first) = noise.first_mut() {
            *first = 1;
        }
        let _ = AlarmRuleState::decode(&noise);

        let rules = five_alarms();
        let mut state = AlarmRuleState::new(&rules, NOON);
        let value = KvValue::Long(70);
        let need = rules.find(AlarmInputKind::TimeSeries, "t").unwrap() as u16;
        let change = AlarmInputChange { input: need, ts: NOON, value: value.as_ref() };
        evaluate(&rules, &mut state, &AlarmRuleEvent::Update(&[change]), &Stored::default(), NOON);
        state.set_alarm(&rules, 0, Some(ActiveAlarm { id: Uuid::from_u128(1), severity: Critical, start_ts: 5 }));
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        let at = at % bytes.len();
        bytes[at] ^= flip;
        if let Ok(mut damaged) = AlarmRuleState::decode(&bytes) {
            let later = AlarmInputChange { ts: NOON + 9, ..change };
            evaluate(&rules, &mut damaged, &AlarmRuleEvent::Update(&[later]), &Stored::default(), NOON + 9);
            evaluate(&rules, &mut damaged, &AlarmRuleEvent::Timer, &Stored::default(), NOON + 99);
        }
        bytes.truncate(at);
        assert!(AlarmRuleState::decode(&bytes).is_err());
    }
}
