//! Scripts: what they are called with, and what becomes of what they return.

use std::sync::Arc;

use fieldline_model::entity::calculated_field::ConfigError;
use fieldline_model::kv::{Value, ValueRef};
use fieldline_script::{Arg, Lang, Script};
use serde_json::Value as Json;

use super::need::{Need, NeedKind, is_decimal};
use super::outcome::{EvalError, OutputKind, Row};
use super::state::{Single, Slot};

/// Runs scripts; the engine does so on the script host of its worker.
pub trait ScriptCalls {
    /// Calls a script with `ctx` and the values of its arguments.
    ///
    /// # Errors
    /// Why it failed, for people.
    fn call(&mut self, script: &Script, args: &[Arg<'_>]) -> Result<Json, String>;
}

/// For fields without scripts.
pub struct NoScripts;

impl ScriptCalls for NoScripts {
    fn call(&mut self, _: &Script, _: &[Arg<'_>]) -> Result<Json, String> {
        Err("scripts are not available here".to_owned())
    }
}

/// Compiles the body of a script whose parameters are `ctx` and the arguments.
pub(super) fn compile(setting: &str, needs: &[Need], body: &str) -> Result<Script, ConfigError> {
    let parameters: Vec<&str> = std::iter::once("ctx")
        .chain(needs.iter().map(|need| &*need.name))
        .collect();
    Script::new(Lang::Tbel, &parameters, body).map_err(|error| ConfigError::new(setting, error.to_string()))
}

/// What a script sees of an argument.
pub(super) enum View<'a> {
    Absent,
    Single(&'a Single),
    Rolling { window_ms: i64, points: Vec<(i64, f64)> },
}

impl<'a> View<'a> {
    pub(super) fn of(need: &Need, slot: &'a Slot) -> Self {
        match (slot, need.kind) {
            (Slot::Single(single), _) => Self::Single(single),
            (Slot::Rolling(rolling), NeedKind::Rolling { window_ms, .. }) => Self::Rolling {
                window_ms,
                points: rolling.points().collect(),
            },
            _ => Self::Absent,
        }
    }
}

/// Calls a script with its arguments in their order.
pub(super) fn call(
    script: &Script,
    names: &[Need],
    views: &[View<'_>],
    latest_ts: Option<i64>,
    now: i64,
    scripts: &mut dyn ScriptCalls,
) -> Result<Json, EvalError> {
    let values: Vec<Arg<'_>> = views
        .iter()
        .map(|view| match view {
            View::Single(single) => argument(single.value.as_ref()),
            _ => Arg::Null,
        })
        .collect();
    let described: Vec<Arg<'_>> = views
        .iter()
        .zip(&values)
        .map(|(view, value)| match view {
            View::Absent => Arg::Null,
            View::Single(single) => Arg::Single { ts: single.ts, value },
            View::Rolling { window_ms, points } => Arg::Rolling {
                start_ts: now.saturating_sub(*window_ms),
                end_ts: now,
                values: points,
            },
        })
        .collect();
    let named: Vec<(&str, Arg<'_>)> = names
        .iter()
        .map(|need| &*need.name)
        .zip(described.iter().copied())
        .collect();
    let mut args = Vec::with_capacity(views.len() + 1);
    args.push(Arg::Context {
        args: &named,
        latest_ts: latest_ts.unwrap_or(now),
    });
    // A single value is handed over bare; its time is in the context.
    args.extend(
        described
            .iter()
            .zip(&values)
            .map(|(described, value)| match described {
                Arg::Single { .. } => *value,
                other => *other,
            }),
    );
    scripts.call(script, &args).map_err(EvalError::Script)
}

fn argument(value: ValueRef<'_>) -> Arg<'_> {
    match value {
        ValueRef::Bool(value) => Arg::Bool(value),
        ValueRef::Long(value) => Arg::Long(value),
        ValueRef::Double(value) => Arg::Double(value),
        ValueRef::Text(text) => Arg::Text(text),
        ValueRef::Json(text) => Arg::Json(text),
    }
}

/// The rows that a returned value is.
pub(super) fn rows(json: Json, kind: OutputKind) -> Result<Vec<Row>, EvalError> {
    match (kind, json) {
        (_, Json::Null) => Ok(Vec::new()),
        (OutputKind::Attributes(_), json @ Json::Object(_)) => row(None, json).map(non_empty),
        (OutputKind::Attributes(_), _) => Err(EvalError::ScriptResult("an object, for attributes")),
        (OutputKind::TimeSeries, Json::Array(items)) => {
            let mut rows = Vec::with_capacity(items.len());
            for item in items {
                rows.extend(element(item)?);
            }
            Ok(rows)
        }
        (OutputKind::TimeSeries, json) => element(json),
    }
}

fn non_empty(row: Row) -> Vec<Row> {
    if row.values.is_empty() {
        Vec::new()
    } else {
        vec![row]
    }
}

/// An object of values, or `{ts, values}`.
fn element(json: Json) -> Result<Vec<Row>, EvalError> {
    let Json::Object(mut fields) = json else {
        return Err(EvalError::ScriptResult(
            "an object of values, {ts, values}, or an array of these",
        ));
    };
    let is_timed = fields.contains_key("ts") && fields.get("values").is_some_and(Json::is_object);
    if !is_timed {
        return row(None, Json::Object(fields)).map(non_empty);
    }
    let ts = fields
        .get("ts")
        .and_then(|ts| ts.as_i64().or_else(|| ts.as_f64().map(|ts| ts as i64)))
        .ok_or(EvalError::ScriptResult("a number as ts"))?;
    row(Some(ts), fields.remove("values").unwrap_or_default()).map(non_empty)
}

fn row(ts: Option<i64>, json: Json) -> Result<Row, EvalError> {
    let Json::Object(fields) = json else {
        return Err(EvalError::ScriptResult("an object of values"));
    };
    let values = fields
        .into_iter()
        .filter_map(|(key, value)| Some((Arc::from(key), value_of(value)?)))
        .collect();
    Ok(Row { ts, values })
}

/// A JSON value as one of a series: texts that spell a number are numbers, as in what devices send; null is nothing.
pub(super) fn value_of(json: Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => Value::Bool(flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Long(whole),
            None => Value::Double(number.as_f64().filter(|number| number.is_finite())?),
        },
        Json::String(text) if is_decimal(&text) => match (text.contains('.'), text.parse::<i64>()) {
            (false, Ok(whole)) => Value::Long(whole),
            (true, _) => text
                .parse()
                .map_or_else(|_| Value::Text(text.into()), Value::Double),
            (false, Err(_)) => Value::Text(text.into()),
        },
        Json::String(text) => Value::Text(text.into()),
        nested => Value::Json(nested.to_string().into()),
    })
}
