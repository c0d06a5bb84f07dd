//! Facts about calculated fields, with simulated time.

mod configuration;
mod geofencing;
mod intervals;
mod persistence;
mod propagation;
mod related;
mod scripts;
mod simple;

use std::sync::Arc;

use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_model::kv::{Value, ValueRef};
use fieldline_model::{CalculatedFieldId, DeviceId, EntityId};
use fieldline_script::{Arg, Host, Limits, Script};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::{
    CalculatedFieldLimits, ConfigError, EvalError, Field, NoScripts, Outcome, ScriptCalls, State, Update,
};

/// The time at which tests begin: 2023-11-14 22:13:20 UTC.
const NOW: i64 = 1_700_000_000_000;

fn device(number: u128) -> EntityId {
    DeviceId(Uuid::from_u128(number)).into()
}

fn field_id(number: u128) -> CalculatedFieldId {
    CalculatedFieldId(Uuid::from_u128(number))
}

fn compiled(kind: CalculatedFieldType, configuration: Json) -> Result<Arc<Field>, ConfigError> {
    let field = CalculatedField {
        id: Some(field_id(7)),
        entity_id: Some(device(1)),
        field_type: kind,
        name: "field".to_owned(),
        configuration,
        ..CalculatedField::default()
    };
    Field::compile(&field, &CalculatedFieldLimits::default())
}

fn field(kind: CalculatedFieldType, configuration: Json) -> Arc<Field> {
    compiled(kind, configuration).unwrap()
}

fn latest(key: &str) -> Json {
    json!({ "refEntityKey": { "key": key, "type": "TS_LATEST" } })
}

fn attribute(key: &str) -> Json {
    json!({ "refEntityKey": { "key": key, "type": "ATTRIBUTE", "scope": "SERVER_SCOPE" } })
}

fn rolling(key: &str, limit: u32, window: i64) -> Json {
    json!({ "refEntityKey": { "key": key, "type": "TS_ROLLING" }, "limit": limit, "timeWindow": window })
}

fn series() -> Json {
    json!({ "type": "TIME_SERIES" })
}

/// Number of an argument.
fn number(field: &Field, name: &str) -> usize {
    field.needs().iter().position(|need| *need.name == *name).unwrap()
}

/// A value of the entity itself, or of another one.
fn of<'a>(field: &Field, entity: EntityId, name: &str, ts: i64, value: ValueRef<'a>) -> Update<'a> {
    Update::Value {
        argument: number(field, name),
        entity,
        ts,
        value,
    }
}

fn double(field: &Field, name: &str, ts: i64, value: f64) -> Update<'static> {
    of(field, device(1), name, ts, ValueRef::Double(value))
}

/// A state into which these updates went, all of which count.
fn state(field: &Field, updates: &[Update<'_>]) -> State {
    let mut state = field.new_state(device(1));
    assert_eq!(field.update(&mut state, updates, &[], NOW), Ok(true));
    state
}

fn evaluate(field: &Field, state: &mut State, now: i64) -> Result<Outcome, EvalError> {
    field.evaluate(state, &mut NoScripts, now)
}

/// The bodies of all results.
fn bodies(outcome: &Outcome) -> Vec<Json> {
    outcome
        .outputs
        .iter()
        .map(|output| serde_json::from_str(&output.message_body()).unwrap())
        .collect()
}

fn body(outcome: Result<Outcome, EvalError>) -> Json {
    let mut bodies = bodies(&outcome.unwrap());
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    bodies.remove(0)
}

/// Runs scripts for real.
struct Scripts(Host);

impl Scripts {
    fn new() -> Self {
        Self(Host::new(Limits::default()))
    }
}

impl ScriptCalls for Scripts {
    fn call(&mut self, script: &Script, args: &[Arg<'_>]) -> Result<Json, String> {
        let output = self.0.call(script, args).map_err(|error| error.to_string())?;
        Ok(output.to_value())
    }
}
