//! Evaluations of alarm rules a second and core, and memory of their state:
//! `cargo run --release -p fieldline-alarm-rules --example speed`.
//!
//! A device profile has five alarm types, each with a create and a clear rule, over the three values of a smart meter. An
//! evaluation is one message: finding the keys that rules read, the rules themselves, and when to look again.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_alarm_rules::{
    AlarmInputChanges, AlarmInputKind, AlarmRuleEvent, AlarmRuleSet, AlarmRuleState, AlarmValueSource,
    evaluate,
};
use fieldline_model::kv::KvValueRef;
use serde_json::{Value as Json, json};

const START: i64 = 1_750_075_200_000;
const KEYS: [&str; 3] = ["voltage", "current", "energy"];

struct NothingStored;

impl AlarmValueSource for NothingStored {
    fn get(&self, _: usize) -> Option<(i64, KvValueRef<'_>)> {
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let one = [profile(0)?];
    let thousand: Vec<Arc<AlarmRuleSet>> = (0..1000).map(profile).collect::<Result<_, _>>()?;
    for (what, profiles, devices, voltage) in [
        ("1 profile, 1 device, nothing matches", &one[..], 1, 230.0),
        (
            "1 profile, 100,000 devices, nothing matches",
            &one[..],
            100_000,
            230.0,
        ),
        (
            "1,000 profiles, 100,000 devices, nothing matches",
            &thousand[..],
            100_000,
            230.0,
        ),
        (
            "1 profile, 100,000 devices, durations run",
            &one[..],
            100_000,
            255.0,
        ),
        (
            "1 profile, 100,000 devices, alarms are active",
            &one[..],
            100_000,
            265.0,
        ),
    ] {
        measure(what, profiles, devices, voltage);
    }
    Ok(())
}

fn measure(what: &str, profiles: &[Arc<AlarmRuleSet>], devices: usize, voltage: f64) {
    let mut fleet: Vec<(&Arc<AlarmRuleSet>, AlarmRuleState)> = profiles
        .iter()
        .cycle()
        .take(devices)
        .map(|rules| (rules, known(rules)))
        .collect();
    let round = |fleet: &mut Vec<(&Arc<AlarmRuleSet>, AlarmRuleState)>, number: i64| {
        for (rules, state) in fleet {
            let now = START + number * 1000;
            let mut changes = AlarmInputChanges::default();
            for (key, value) in KEYS.into_iter().zip([voltage, 4.2, 1000.0 + number as f64]) {
                changes.add(
                    rules,
                    AlarmInputKind::TimeSeries,
                    key,
                    now,
                    KvValueRef::Double(value),
                );
            }
            black_box(evaluate(
                rules,
                state,
                &AlarmRuleEvent::Update(changes.as_slice()),
                &NothingStored,
                now,
            ));
        }
    };
    let mut rounds = 1;
    round(&mut fleet, rounds);
    let began = Instant::now();
    let mut evaluations = 0;
    while began.elapsed() < Duration::from_secs(2) {
        rounds += 1;
        round(&mut fleet, rounds);
        evaluations += devices;
    }
    let a_second = evaluations as f64 / began.elapsed().as_secs_f64();
    let bytes: usize = fleet
        .iter()
        .map(|(_, state)| size_of::<AlarmRuleState>() + state.heap_bytes())
        .sum();
    let mut stored = Vec::new();
    fleet.iter().for_each(|(_, state)| state.encode(&mut stored));
    println!(
        "{what}: {:.2} million evaluations/s and core, state {} bytes in memory, {} stored",
        a_second / 1e6,
        bytes / devices,
        stored.len() / devices
    );
}

/// A state whose alarms are known to be inactive.
fn known(rules: &AlarmRuleSet) -> AlarmRuleState {
    let mut state = AlarmRuleState::new(rules, START);
    for alarm in state.unresolved(rules) {
        state.set_alarm(rules, alarm, None);
    }
    state
}

/// Five alarm types; the number makes the profile its own.
fn profile(number: i64) -> Result<Arc<AlarmRuleSet>, Box<dyn std::error::Error>> {
    let simple = json!({"type": "SIMPLE"});
    let lasting = json!({"type": "DURATION", "unit": "MINUTES", "predicate": {"defaultValue": 10 + number}});
    let repeated = json!({"type": "REPEATING", "predicate": {"defaultValue": 5}});
    let alarms = [
        ("overvoltage", "voltage", "GREATER", 260.0, 240.0, &simple),
        ("high voltage", "voltage", "GREATER", 250.0, 240.0, &lasting),
        ("undervoltage", "voltage", "LESS", 200.0, 210.0, &repeated),
        ("overcurrent", "current", "GREATER", 63.0, 50.0, &lasting),
        ("no energy", "energy", "LESS_OR_EQUAL", 0.0, 1.0, &simple),
    ]
    .map(|(name, key, operation, raise, clear, spec)| {
        let back = if operation == "GREATER" { "LESS" } else { "GREATER" };
        json!({
            "id": name, "alarmType": name,
            "createRules": {"MAJOR": rule(key, operation, raise, spec)},
            "clearRule": rule(key, back, clear, &simple),
        })
    });
    Ok(AlarmRuleSet::from_device_profile(&json!({"alarms": alarms}))?)
}

fn rule(key: &str, operation: &str, limit: f64, spec: &Json) -> Json {
    json!({"condition": {"condition": [{
        "key": {"type": "TIME_SERIES", "key": key}, "valueType": "NUMERIC",
        "predicate": {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": limit}},
    }], "spec": spec}})
}
