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
use fieldline_model::kv::{KvValue, KvValueRef};
use fieldline_model::{CalculatedFieldId, DeviceId, EntityId};
use fieldline_script::{Script, ScriptArg, ScriptHost, ScriptLimits};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::{
    ArgumentUpdate, CalculatedFieldLimits, CalculatedFieldState, CompiledField, FieldConfigError,
    FieldEvaluationError, FieldOutcome, NoScriptRunner, ScriptRunner,
};

/// The time at which tests begin: 2023-11-14 22:13:20 UTC.
const NOW: i64 = 1_700_000_000_000;

fn device(number: u128) -> EntityId {
    DeviceId(Uuid::from_u128(number)).into()
}

fn field_id(number: u128) -> CalculatedFieldId {
    CalculatedFieldId(Uuid::from_u128(number))
}

fn compiled(kind: CalculatedFieldType, configuration: Json) -> Result<Arc<CompiledField>, FieldConfigError> {
    let field = CalculatedField {
        id: field_id(7),
        entity_id: Some(device(1)),
        field_type: kind,
        name: "field".to_owned(),
        configuration,
        ..CalculatedField::default()
    };
    CompiledField::compile(&field, &CalculatedFieldLimits::default())
}

fn field(kind: CalculatedFieldType, configuration: Json) -> Arc<CompiledField> {
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
fn number(field: &CompiledField, name: &str) -> usize {
    field
        .inputs()
        .iter()
        .position(|need| *need.name == *name)
        .unwrap()
}

/// A value of the entity itself, or of another one.
fn of<'a>(
    field: &CompiledField,
    entity: EntityId,
    name: &str,
    ts: i64,
    value: KvValueRef<'a>,
) -> ArgumentUpdate<'a> {
    ArgumentUpdate::Value {
        argument: number(field, name),
        entity,
        ts,
        value,
    }
}

fn double(field: &CompiledField, name: &str, ts: i64, value: f64) -> ArgumentUpdate<'static> {
    of(field, device(1), name, ts, KvValueRef::Double(value))
}

/// A state into which these updates went, all of which count.
fn state(field: &CompiledField, updates: &[ArgumentUpdate<'_>]) -> CalculatedFieldState {
    let mut state = field.new_state(device(1));
    assert_eq!(field.update(&mut state, updates, &[], NOW), Ok(true));
    state
}

fn evaluate(
    field: &CompiledField,
    state: &mut CalculatedFieldState,
    now: i64,
) -> Result<FieldOutcome, FieldEvaluationError> {
    field.evaluate(state, &mut NoScriptRunner, now)
}

/// The bodies of all results.
fn bodies(outcome: &FieldOutcome) -> Vec<Json> {
    outcome
        .outputs
        .iter()
        .map(|output| serde_json::from_str(&output.message_body()).unwrap())
        .collect()
}

fn body(outcome: Result<FieldOutcome, FieldEvaluationError>) -> Json {
    let mut bodies = bodies(&outcome.unwrap());
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    bodies.remove(0)
}

/// Runs scripts for real.
struct Scripts(ScriptHost);

impl Scripts {
    fn new() -> Self {
        Self(ScriptHost::new(ScriptLimits::default()))
    }
}

impl ScriptRunner for Scripts {
    fn call(&mut self, script: &Script, args: &[ScriptArg<'_>]) -> Result<Json, String> {
        let output = self.0.call(script, args).map_err(|error| error.to_string())?;
        Ok(output.to_value())
    }
}
