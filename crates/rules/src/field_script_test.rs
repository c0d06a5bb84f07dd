//! Runs the script of a calculated field on given arguments, for a test.

use fieldline_core::ports::FieldScriptTest;
use fieldline_script::{Script, ScriptArg, ScriptHost, ScriptLang};
use serde_json::Value;

/// An argument of a test: `SINGLE_VALUE`, or `TS_ROLLING` with its window.
enum TestArgument<'a> {
    Single {
        ts: i64,
        value: ScriptArg<'a>,
    },
    Rolling {
        start_ts: i64,
        end_ts: i64,
        values: Vec<(i64, f64)>,
    },
}

/// Runs the script of a test once and returns its result.
///
/// # Errors
/// An argument is invalid, or the script cannot be run; the text says why.
pub(crate) fn test_field_script(request: &FieldScriptTest, host: &mut ScriptHost) -> Result<Value, String> {
    let mut parameters = vec!["ctx"];
    parameters.extend(request.arguments.keys().map(String::as_str));
    let script =
        Script::new(ScriptLang::Tbel, &parameters, &request.expression).map_err(|error| error.to_string())?;
    let given = request
        .arguments
        .iter()
        .map(|(name, argument)| Ok((name.as_str(), read(name, argument)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let named: Vec<(&str, ScriptArg<'_>)> = given
        .iter()
        .map(|(name, given)| {
            let arg = match given {
                TestArgument::Single { ts, value } => ScriptArg::Single { ts: *ts, value },
                TestArgument::Rolling {
                    start_ts,
                    end_ts,
                    values,
                } => ScriptArg::Rolling {
                    start_ts: *start_ts,
                    end_ts: *end_ts,
                    values,
                },
            };
            (*name, arg)
        })
        .collect();
    let mut args = vec![ScriptArg::Context {
        args: &named,
        latest_ts: request.latest_ts,
    }];
    args.extend(
        given
            .iter()
            .zip(&named)
            .map(|((_, given), (_, arg))| match given {
                TestArgument::Single { value, .. } => *value,
                TestArgument::Rolling { .. } => *arg,
            }),
    );
    let output = host.call(&script, &args).map_err(|error| error.to_string());
    // The script is not called again.
    host.evict_script(script.id());
    Ok(output?.to_value())
}

fn read<'a>(name: &str, argument: &'a Value) -> Result<TestArgument<'a>, String> {
    let whole = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or(0);
    match argument.get("type").and_then(Value::as_str) {
        Some("SINGLE_VALUE") => Ok(TestArgument::Single {
            ts: whole(argument.get("ts")),
            value: argument.get("value").map_or(ScriptArg::Null, ScriptArg::Value),
        }),
        Some("TS_ROLLING") => {
            let window = argument.get("timeWindow");
            let side = |name: &str| whole(window.and_then(|window| window.get(name)));
            let points = argument.get("values").and_then(Value::as_array);
            let mut values: Vec<(i64, f64)> = points
                .into_iter()
                .flatten()
                .map(|point| {
                    let value = point.get("value").and_then(Value::as_f64);
                    (whole(point.get("ts")), value.unwrap_or(f64::NAN))
                })
                .collect();
            values.sort_by_key(|(ts, _)| *ts);
            Ok(TestArgument::Rolling {
                start_ts: side("startTs"),
                end_ts: side("endTs"),
                values,
            })
        }
        _ => Err(format!(
            "argument '{name}' must have the type SINGLE_VALUE or TS_ROLLING"
        )),
    }
}
