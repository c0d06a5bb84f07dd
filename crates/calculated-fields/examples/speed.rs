//! How many times a second a calculated field of type SIMPLE is evaluated, on one core.
//!
//! ```text
//! cargo run --release -p fieldline-calculated-fields --example speed [-- SECONDS]
//! ```
//!
//! Each round is what the engine does for a point of a device: an update of one of two arguments, the evaluation, and
//! dropping the result. `entities` states take turns, so that they do not all sit in the nearest cache. The last line
//! has the bytes that such a state takes when it is stored.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fieldline_calculated_fields::{
    ArgumentUpdate, CalculatedFieldLimits, CalculatedFieldState, CompiledField, NoScriptRunner,
};
use fieldline_model::DeviceId;
use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_model::kv::KvValueRef;
use serde_json::json;

const NOW: i64 = 1_700_000_000_000;

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let seconds: f64 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 2.0,
    };
    let span = Duration::from_secs_f64(seconds);
    for (name, expression) in [
        ("a sum", "a + b"),
        ("Fahrenheit to Celsius", "(a - 32) / 1.8 + b"),
        ("dew point", "b - (100 - a) / 5 * sqrt(abs(a)) + ln(1 + abs(b))"),
    ] {
        for entities in [1, 100_000] {
            let rate = rate(expression, entities, span)?;
            println!(
                "{name:22} {entities:>7} entities {:>8.2} million evaluations/s",
                rate / 1e6
            );
        }
    }
    let field = field("a + b")?;
    println!(
        "state of an entity: {} bytes stored",
        field.encode(&states(&field, 1)?[0]).len()
    );
    Ok(())
}

fn field(expression: &str) -> Result<std::sync::Arc<CompiledField>, AnyError> {
    let latest = |key: &str| json!({ "refEntityKey": { "key": key, "type": "TS_LATEST" } });
    let field = CalculatedField {
        field_type: CalculatedFieldType::Simple,
        name: "benchmark".to_owned(),
        configuration: json!({
            "arguments": { "a": latest("humidity"), "b": latest("temperature") },
            "expression": expression,
            "output": { "type": "TIME_SERIES", "name": "result", "decimalsByDefault": 2 },
            "useLatestTs": true,
        }),
        ..CalculatedField::default()
    };
    Ok(CompiledField::compile(&field, &CalculatedFieldLimits::default())?)
}

fn states(field: &CompiledField, count: usize) -> Result<Vec<CalculatedFieldState>, AnyError> {
    let mut states = Vec::with_capacity(count);
    for _ in 0..count {
        let entity = DeviceId::new().into();
        let mut state = field.new_state(entity);
        for argument in 0..2 {
            let value = KvValueRef::Double(21.5);
            let update = ArgumentUpdate::Value {
                argument,
                entity,
                ts: NOW,
                value,
            };
            field.update(&mut state, &[update], &[], NOW)?;
        }
        states.push(state);
    }
    Ok(states)
}

/// Evaluations a second.
fn rate(expression: &str, entities: usize, span: Duration) -> Result<f64, AnyError> {
    const BATCH: usize = 1_000;
    let field = field(expression)?;
    let mut states = states(&field, entities)?;
    let begin = Instant::now();
    let mut rounds = 0usize;
    while begin.elapsed() < span {
        for _ in 0..BATCH {
            rounds += 1;
            let Some(state) = states.get_mut(rounds % entities) else {
                continue;
            };
            let ts = NOW + rounds as i64;
            let update = ArgumentUpdate::Value {
                argument: rounds % 2,
                entity: state.entity(),
                ts,
                value: KvValueRef::Double((rounds % 1_000) as f64 / 10.0),
            };
            if field.update(state, &[update], &[], ts)? {
                black_box(field.evaluate(state, &mut NoScriptRunner, ts)?);
            }
        }
    }
    Ok(rounds as f64 / begin.elapsed().as_secs_f64())
}
