//! Tests against a small world: one originator with its values, a clock, and a store of alarms that always obeys.

mod alarms;
mod conditions;
mod configuration;
mod fields;
mod persistence;
mod predicates;
mod schedules;

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_model::entity::AlarmSeverity;
use fieldline_model::kv::{KvValue, KvValueRef};
use fieldline_model::timeseries::AttributeScope;
use serde_json::{Value as Json, json};

use super::{
    AlarmAction, AlarmActionKind, AlarmInputChange, AlarmInputChanges, AlarmInputKind, AlarmInputSource,
    AlarmRuleEvent, AlarmRuleOutcome, AlarmRuleSet, AlarmRuleState, AlarmScriptArguments, AlarmValueSource,
    evaluate,
};

/// A Monday noon, UTC.
const NOON: i64 = 1_750_075_200_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

struct World {
    rules: Arc<AlarmRuleSet>,
    state: AlarmRuleState,
    stored: Stored,
    now: i64,
}

#[derive(Default)]
struct Stored {
    values: HashMap<usize, (i64, KvValue)>,
    /// Result of scripts; an error where none is set.
    script: Option<fn(&AlarmScriptArguments<'_>) -> bool>,
}

impl AlarmValueSource for Stored {
    fn get(&self, need: usize) -> Option<(i64, KvValueRef<'_>)> {
        self.values.get(&need).map(|(ts, value)| (*ts, value.as_ref()))
    }

    fn expression(&self, _: usize, arguments: &AlarmScriptArguments<'_>) -> Result<bool, String> {
        self.script
            .map(|script| script(arguments))
            .ok_or_else(|| "no script".to_owned())
    }
}

impl World {
    fn new(rules: Arc<AlarmRuleSet>) -> Self {
        let mut state = AlarmRuleState::new(&rules, NOON);
        for alarm in state.unresolved(&rules) {
            state.set_alarm(&rules, alarm, None);
        }
        Self {
            rules,
            state,
            stored: Stored::default(),
            now: NOON,
        }
    }

    /// A device profile with one alarm that has these rules.
    fn profile(create: Json, clear: Json) -> Self {
        Self::new(profile_rules(json!([alarm("a", create, clear)])))
    }

    fn field(arguments: Json, create: Json, clear: Json) -> Self {
        let configuration =
            json!({"type": "ALARM", "arguments": arguments, "createRules": create, "clearRule": clear});
        Self::new(AlarmRuleSet::from_calculated_field("High", &configuration).unwrap())
    }

    fn evaluate(&mut self, event: &AlarmRuleEvent<'_>) -> AlarmRuleOutcome {
        let outcome = evaluate(&self.rules, &mut self.state, event, &self.stored, self.now);
        // A state that was stored and read back must be the same one.
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        assert_eq!(AlarmRuleState::decode(&bytes).unwrap(), self.state);
        outcome
    }

    fn update(&mut self, kind: AlarmInputKind, ts: i64, values: &[(&str, KvValue)]) -> AlarmRuleOutcome {
        let found = values
            .iter()
            .filter_map(|(key, value)| Some((self.rules.find(kind, key)?, value)));
        let found: Vec<(usize, &KvValue)> = found.collect();
        let changes: Vec<AlarmInputChange<'_>> = found
            .iter()
            .map(|(need, value)| AlarmInputChange {
                input: *need as u16,
                ts,
                value: value.as_ref(),
            })
            .collect();
        let outcome = self.evaluate(&AlarmRuleEvent::Update(&changes));
        for (need, value) in found {
            if self.stored.get(need).is_none_or(|(stored, _)| stored <= ts) {
                self.stored.values.insert(need, (ts, value.clone()));
            }
        }
        outcome
    }

    /// Telemetry with the time of now.
    fn telemetry(&mut self, values: &[(&str, KvValue)]) -> AlarmRuleOutcome {
        self.update(AlarmInputKind::TimeSeries, self.now, values)
    }

    fn t(&mut self, temperature: f64) -> AlarmRuleOutcome {
        self.telemetry(&[("t", KvValue::Double(temperature))])
    }

    fn attribute(&mut self, key: &str, value: KvValue) -> AlarmRuleOutcome {
        let kind = AlarmInputKind::Attribute(Some(AttributeScope::Server));
        self.update(kind, self.now, &[(key, value)])
    }

    /// Stores a value without an event, such as an attribute of the customer.
    fn store(&mut self, of: AlarmInputSource, key: &str, value: KvValue) {
        let is_it = |need: &super::AlarmInput| need.source == of && &*need.key == key;
        let need = self.rules.inputs().iter().position(is_it).unwrap();
        self.stored.values.insert(need, (self.now, value));
    }

    /// Lets time pass, with the checks that were asked for; their actions.
    fn wait(&mut self, millis: i64, mut next: Option<i64>) -> Vec<AlarmAction> {
        let end = self.now + millis;
        let mut actions = Vec::new();
        while let Some(at) = next.filter(|at| *at <= end) {
            assert!(at > self.now, "a check must lie ahead");
            self.now = at;
            let outcome = self.evaluate(&AlarmRuleEvent::Timer);
            actions.extend(outcome.actions);
            next = outcome.next_check;
        }
        self.now = end;
        actions
    }
}

fn profile_rules(alarms: Json) -> Arc<AlarmRuleSet> {
    AlarmRuleSet::from_device_profile(&json!({"profileData": {"alarms": alarms}})).unwrap()
}

fn alarm(alarm_type: &str, create: Json, clear: Json) -> Json {
    json!({"id": format!("{alarm_type}-id"), "alarmType": alarm_type, "createRules": create, "clearRule": clear})
}

/// A rule of a device profile: the time series `t` compared with a number.
fn t_rule(operation: &str, limit: f64, spec: Json) -> Json {
    json!({"condition": {"condition": [filter(number(operation, json!({"defaultValue": limit})))], "spec": spec}})
}

fn filter(predicate: Json) -> Json {
    json!({"key": {"type": "TIME_SERIES", "key": "t"}, "valueType": "NUMERIC", "predicate": predicate})
}

fn number(operation: &str, value: Json) -> Json {
    json!({"type": "NUMERIC", "operation": operation, "value": value})
}

fn simple() -> Json {
    json!({"type": "SIMPLE"})
}

fn duration(seconds: i64) -> Json {
    json!({"type": "DURATION", "unit": "SECONDS", "predicate": {"defaultValue": seconds}})
}

fn repeating(count: i64) -> Json {
    json!({"type": "REPEATING", "predicate": {"defaultValue": count}})
}

/// A rule of a calculated field: the argument `t` compared with a number; `extra` adds to the condition.
fn t_field(operation: &str, limit: f64, extra: Json) -> Json {
    let predicate = number(operation, json!({"staticValue": limit}));
    field_rule(
        json!([{"argument": "t", "valueType": "NUMERIC", "predicates": [predicate]}]),
        extra,
    )
}

fn field_rule(filters: Json, extra: Json) -> Json {
    let mut condition = json!({"type": "SIMPLE", "expression": {"type": "SIMPLE", "filters": filters}});
    for (name, value) in extra.as_object().unwrap() {
        condition[name] = value.clone();
    }
    json!({"condition": condition})
}

fn series(key: &str, default: Json) -> Json {
    json!({"refEntityKey": {"key": key, "type": "TS_LATEST"}, "defaultValue": default})
}

fn kinds(outcome: &AlarmRuleOutcome) -> Vec<(AlarmActionKind, AlarmSeverity)> {
    assert_eq!(outcome.error, None);
    outcome
        .actions
        .iter()
        .map(|action| (action.kind, action.severity))
        .collect()
}

const RAISED: AlarmActionKind = AlarmActionKind::Raise;
const CLEARED: AlarmActionKind = AlarmActionKind::Clear;
const UPDATED: AlarmActionKind = AlarmActionKind::Update {
    severity_changed: false,
};
const CHANGED: AlarmActionKind = AlarmActionKind::Update {
    severity_changed: true,
};
