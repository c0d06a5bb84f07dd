//! Scripts: what they are called with, and what becomes of what they return.

use std::sync::Arc;

use fieldline_model::entity::calculated_field::FieldConfigError;
use fieldline_model::kv::{KvValue, KvValueRef};
use fieldline_script::{Script, ScriptArg, ScriptLang};
use serde_json::Value as Json;

use super::input::{FieldInput, FieldInputKind, is_decimal};
use super::outcome::{FieldEvaluationError, OutputKind, OutputRow};
use super::state::{ArgumentEntry, SingleValue};

/// Runs scripts; the engine does so on the script host of its worker.
pub trait ScriptRunner {
    /// Calls a script with `ctx` and the values of its arguments.
    ///
    /// # Errors
    /// Why it failed, for people.
    fn call(&mut self, script: &Script, args: &[ScriptArg<'_>]) -> Result<Json, String>;
}

/// For fields without scripts.
pub struct NoScriptRunner;

impl ScriptRunner for NoScriptRunner {
    fn call(&mut self, _: &Script, _: &[ScriptArg<'_>]) -> Result<Json, String> {
        Err("scripts are not available here".to_owned())
    }
}

/// Compiles the body of a script whose parameters are `ctx` and the arguments.
pub(super) fn compile(setting: &str, needs: &[FieldInput], body: &str) -> Result<Script, FieldConfigError> {
    let parameters: Vec<&str> = std::iter::once("ctx")
        .chain(needs.iter().map(|need| &*need.name))
        .collect();
    Script::new(ScriptLang::Tbel, &parameters, body)
        .map_err(|error| FieldConfigError::new(setting, error.to_string()))
}

/// What a script sees of an argument.
pub(super) enum ArgumentView<'a> {
    Absent,
    Single(&'a SingleValue),
    Rolling { window_ms: i64, points: Vec<(i64, f64)> },
}

impl<'a> ArgumentView<'a> {
    pub(super) fn of(need: &FieldInput, slot: &'a ArgumentEntry) -> Self {
        match (slot, need.kind) {
            (ArgumentEntry::Single(single), _) => Self::Single(single),
            (ArgumentEntry::Rolling(rolling), FieldInputKind::Rolling { window_ms, .. }) => Self::Rolling {
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
    names: &[FieldInput],
    views: &[ArgumentView<'_>],
    latest_ts: Option<i64>,
    now: i64,
    scripts: &mut dyn ScriptRunner,
) -> Result<Json, FieldEvaluationError> {
    let values: Vec<ScriptArg<'_>> = views
        .iter()
        .map(|view| match view {
            ArgumentView::Single(single) => argument(single.value.as_ref()),
            _ => ScriptArg::Null,
        })
        .collect();
    let described: Vec<ScriptArg<'_>> = views
        .iter()
        .zip(&values)
        .map(|(view, value)| match view {
            ArgumentView::Absent => ScriptArg::Null,
            ArgumentView::Single(single) => ScriptArg::Single { ts: single.ts, value },
            ArgumentView::Rolling { window_ms, points } => ScriptArg::Rolling {
                start_ts: now.saturating_sub(*window_ms),
                end_ts: now,
                values: points,
            },
        })
        .collect();
    let named: Vec<(&str, ScriptArg<'_>)> = names
        .iter()
        .map(|need| &*need.name)
        .zip(described.iter().copied())
        .collect();
    let mut args = Vec::with_capacity(views.len() + 1);
    args.push(ScriptArg::Context {
        args: &named,
        latest_ts: latest_ts.unwrap_or(now),
    });
    // A single value is handed over bare; its time is in the context.
    args.extend(
        described
            .iter()
            .zip(&values)
            .map(|(described, value)| match described {
                ScriptArg::Single { .. } => *value,
                other => *other,
            }),
    );
    scripts.call(script, &args).map_err(FieldEvaluationError::Script)
}

fn argument(value: KvValueRef<'_>) -> ScriptArg<'_> {
    match value {
        KvValueRef::Bool(value) => ScriptArg::Bool(value),
        KvValueRef::Long(value) => ScriptArg::Long(value),
        KvValueRef::Double(value) => ScriptArg::Double(value),
        KvValueRef::Text(text) => ScriptArg::Text(text),
        KvValueRef::Json(text) => ScriptArg::Json(text),
    }
}

/// The rows that a returned value is.
pub(super) fn rows(json: Json, kind: OutputKind) -> Result<Vec<OutputRow>, FieldEvaluationError> {
    match (kind, json) {
        (_, Json::Null) => Ok(Vec::new()),
        (OutputKind::Attributes(_), json @ Json::Object(_)) => row(None, json).map(non_empty),
        (OutputKind::Attributes(_), _) => {
            Err(FieldEvaluationError::ScriptResult("an object, for attributes"))
        }
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

fn non_empty(row: OutputRow) -> Vec<OutputRow> {
    if row.values.is_empty() {
        Vec::new()
    } else {
        vec![row]
    }
}

/// An object of values, or `{ts, values}`.
fn element(json: Json) -> Result<Vec<OutputRow>, FieldEvaluationError> {
    let Json::Object(mut fields) = json else {
        return Err(FieldEvaluationError::ScriptResult(
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
        .ok_or(FieldEvaluationError::ScriptResult("a number as ts"))?;
    row(Some(ts), fields.remove("values").unwrap_or_default()).map(non_empty)
}

fn row(ts: Option<i64>, json: Json) -> Result<OutputRow, FieldEvaluationError> {
    let Json::Object(fields) = json else {
        return Err(FieldEvaluationError::ScriptResult("an object of values"));
    };
    let values = fields
        .into_iter()
        .filter_map(|(key, value)| Some((Arc::from(key), value_of(value)?)))
        .collect();
    Ok(OutputRow { ts, values })
}

/// A JSON value as one of a series: texts that spell a number are numbers, as in what devices send; null is nothing.
pub(super) fn value_of(json: Json) -> Option<KvValue> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => KvValue::Bool(flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => KvValue::Long(whole),
            None => KvValue::Double(number.as_f64().filter(|number| number.is_finite())?),
        },
        Json::String(text) if is_decimal(&text) => match (text.contains('.'), text.parse::<i64>()) {
            (false, Ok(whole)) => KvValue::Long(whole),
            (true, _) => text
                .parse()
                .map_or_else(|_| KvValue::Text(text.into()), KvValue::Double),
            (false, Err(_)) => KvValue::Text(text.into()),
        },
        Json::String(text) => KvValue::Text(text.into()),
        nested => KvValue::Json(nested.to_string().into()),
    })
}
