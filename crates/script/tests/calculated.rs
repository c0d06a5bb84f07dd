//! Arguments of calculated fields.

use fieldline_script::{Script, ScriptArg, ScriptHost, ScriptLang, ScriptLimits};

const TEMPERATURE: &[(i64, f64)] = &[(1000, 20.0), (2000, f64::NAN), (3000, 24.0), (4000, 22.0)];
const HUMIDITY: &[(i64, f64)] = &[(2000, 50.0), (3500, 60.0)];

fn rolling(values: &[(i64, f64)]) -> ScriptArg<'_> {
    ScriptArg::Rolling {
        start_ts: 0,
        end_ts: 5000,
        values,
    }
}

#[track_caller]
fn gives(body: &str, json: &str) {
    let params = ["ctx", "temperature", "humidity", "limit"];
    let script =
        Script::new(ScriptLang::Tbel, &params, body).unwrap_or_else(|error| panic!("{body}\n{error}"));
    let limit = ScriptArg::Single {
        ts: 4500,
        value: &ScriptArg::Double(23.0),
    };
    let args = [
        ("temperature", rolling(TEMPERATURE)),
        ("humidity", rolling(HUMIDITY)),
        ("limit", limit),
    ];
    let context = ScriptArg::Context {
        args: &args,
        latest_ts: 4500,
    };
    let all = [
        context,
        rolling(TEMPERATURE),
        rolling(HUMIDITY),
        ScriptArg::Double(23.0),
    ];
    match ScriptHost::new(ScriptLimits::default()).call(&script, &all) {
        Ok(output) => assert_eq!(output.into_json(), json, "{body}"),
        Err(error) => assert!(error.to_string().contains(json), "{body}\n{error}"),
    }
}

#[test]
fn rolling_arguments_are_summed_up() {
    gives(
        "[temperature.max(), temperature.min(), temperature.avg(), temperature.mean(), temperature.median(), \
        temperature.count(), temperature.sum(), temperature.first(), temperature.last()]",
        "[24.0,20.0,22.0,22.0,22.0,3,66.0,20.0,22.0]",
    );
    gives("toFixed(temperature.std(), 4)", "1.633");
    gives(
        "[temperature.max(false), temperature.count(false), temperature.first(false), temperature.sum(false)]",
        r#"["NaN",4,20.0,"NaN"]"#,
    );
    gives("humidity.max() > limit && limit == 23", "true");
    gives(
        "humidity.values",
        r#"[{"ts":2000,"value":50.0},{"ts":3500,"value":60.0}]"#,
    );
    gives(
        "var s = 0; foreach (v : humidity) { s += v.value + v.ts; } [s, humidity.size, humidity.timeWindow.endTs]",
        "[5610.0,2,5000]",
    );
}

#[test]
fn rolling_arguments_are_merged_by_time() {
    gives(
        "temperature.merge(humidity).values",
        r#"[{"ts":3000,"values":[24.0,50.0]},{"ts":3500,"values":[24.0,60.0]},{"ts":4000,"values":[22.0,60.0]}]"#,
    );
    gives(
        "var s = 0; foreach (v : temperature.mergeAll([humidity], {ignoreNaN: false, timeWindow: {startTs: 3500, endTs: 5000}})) \
        { s += v.v1 + v.v2; } s",
        "166.0",
    );
    gives(
        "temperature.merge(humidity).values[0].v3",
        "There are 2 values present",
    );
}

#[test]
fn the_context_has_values_and_times() {
    gives(
        "[ctx.latestTs, ctx.args.limit.value, ctx.args.limit.ts, ctx.args.humidity.last()]",
        "[4500,23.0,4500,60.0]",
    );
    gives(
        "{'max': toFixed(temperature.max(), 1), 'over': temperature.max() > ctx.args.limit.value}",
        r#"{"max":24.0,"over":true}"#,
    );
}
