//! Scripts: what they are given, and what becomes of what they return.

use CalculatedFieldType::Script as ScriptType;

use super::*;

fn script(body: &str, output: Json) -> Arc<CompiledField> {
    field(
        ScriptType,
        json!({
            "type": "SCRIPT",
            "arguments": { "t": rolling("temperature", 4, 60_000), "limit": attribute("limit") },
            "expression": body,
            "output": output,
        }),
    )
}

fn warm(field: &CompiledField) -> CalculatedFieldState {
    let points: Vec<ArgumentUpdate<'_>> = [20.0, 22.0, 27.0]
        .iter()
        .zip(1..)
        .map(|(value, at)| double(field, "t", NOW - 10_000 + at * 1_000, *value))
        .collect();
    let mut state = state(field, &points);
    let limit = [of(field, device(1), "limit", NOW - 500, KvValueRef::Long(25))];
    field.update(&mut state, &limit, &[], NOW).unwrap();
    state
}

#[test]
fn scripts_see_values_windows_and_their_times() {
    let field = script(
        "return {\"mean\": t.mean(), \"n\": t.count(), \"over\": t.max() > limit, \"last\": t.last(), \
         \"ts\": ctx.latestTs, \"at\": ctx.args.limit.ts, \"limit\": ctx.args.limit.value};",
        series(),
    );
    let mut state = warm(&field);
    let outcome = field.evaluate(&mut state, &mut Scripts::new(), NOW).unwrap();
    assert_eq!(
        normal(&bodies(&outcome)[0]),
        json!({
            "mean": 23, "n": 3, "over": true, "last": 27, "ts": NOW - 500, "at": NOW - 500, "limit": 25,
        })
    );
}

/// Whole doubles and whole numbers are the same to scripts.
fn normal(body: &Json) -> Json {
    let mut body = body.clone();
    for value in body.as_object_mut().unwrap().values_mut() {
        if let Some(number) = value.as_f64().filter(|number| number.fract() == 0.0) {
            *value = json!(number as i64);
        }
    }
    body
}

#[test]
fn windows_hold_the_newest_points_within_limit_and_age() {
    let field = script("return {\"first\": t.first(), \"n\": t.count()};", series());
    let mut state = warm(&field);
    // Out of order, twice at one time, and beyond the limit of four.
    for (ts, value) in [
        (NOW - 9_500, 1.0),
        (NOW - 9_500, 2.0),
        (NOW - 100, 3.0),
        (NOW, 4.0),
    ] {
        let taken = field.update(&mut state, &[double(&field, "t", ts, value)], &[], NOW);
        assert_eq!(taken, Ok(true));
    }
    let mut scripts = Scripts::new();
    let first = |outcome: FieldOutcome| normal(&bodies(&outcome)[0]);
    let outcome = field.evaluate(&mut state, &mut scripts, NOW).unwrap();
    assert_eq!(first(outcome), json!({ "first": 22, "n": 4 }));
    // A minute later only the last point is young enough, and then none.
    let outcome = field.evaluate(&mut state, &mut scripts, NOW + 60_000).unwrap();
    assert_eq!(first(outcome), json!({ "first": 4, "n": 1 }));
    let outcome = field.evaluate(&mut state, &mut scripts, NOW + 60_001).unwrap();
    assert_eq!(
        outcome.not_ready.as_deref(),
        Some("Required arguments are missing: t")
    );
}

#[test]
fn results_are_objects_rows_or_arrays_of_rows() {
    let attributes = json!({ "type": "ATTRIBUTES", "scope": "SERVER_SCOPE" });
    type Expected = Result<Vec<Json>, &'static str>;
    let cases: [(&str, Json, Expected); 9] = [
        (
            "return {\"a\": \"x\", \"b\": null, \"c\": {\"d\": [1]}};",
            series(),
            Ok(vec![json!({ "a": "x", "c": { "d": [1] } })]),
        ),
        (
            "return {\"ts\": 5, \"values\": {\"a\": true}};",
            series(),
            Ok(vec![json!({ "ts": 5, "values": { "a": true } })]),
        ),
        (
            "return [{\"ts\": 5, \"values\": {\"a\": 1}}, {\"ts\": 6, \"values\": {\"a\": \"2.5\"}}];",
            series(),
            Ok(vec![
                json!([{ "ts": 5, "values": { "a": 1 } }, { "ts": 6, "values": { "a": 2.5 } }]),
            ]),
        ),
        ("return null;", series(), Ok(vec![])),
        ("return {};", series(), Ok(vec![])),
        (
            "return 5;",
            series(),
            Err("The script must return an object of values"),
        ),
        (
            "return {\"a\": 1};",
            attributes.clone(),
            Ok(vec![json!({ "a": 1 })]),
        ),
        (
            "return [];",
            attributes,
            Err("The script must return an object, for attributes"),
        ),
        ("return missing.field;", series(), Err("missing")),
    ];
    for (body, output, expected) in cases {
        let field = script(body, output);
        let result = field.evaluate(&mut warm(&field), &mut Scripts::new(), NOW);
        match (result, expected) {
            (Ok(outcome), Ok(expected)) => assert_eq!(bodies(&outcome), expected, "{body}"),
            (Err(error), Err(start)) => assert!(error.to_string().contains(start), "{body}: {error}"),
            (result, _) => panic!("{body}: {result:?}"),
        }
    }
}

#[test]
fn a_state_that_grows_too_large_is_given_up() {
    let field = field(
        ScriptType,
        json!({
            "arguments": { "t": rolling("temperature", 0, 0) },
            "expression": "return {\"n\": 1};",
            "output": series(),
        }),
    );
    let limits = CalculatedFieldLimits {
        max_state_bytes: 2_048,
        ..CalculatedFieldLimits::default()
    };
    let model = CalculatedField {
        field_type: ScriptType,
        configuration: json!({
            "arguments": { "t": rolling("temperature", 0, 0) }, "expression": "return {\"n\": 1};", "output": series(),
        }),
        ..CalculatedField::default()
    };
    let small = CompiledField::compile(&model, &limits).unwrap();
    for (field, fits) in [(field, true), (small, false)] {
        let mut state = field.new_state(device(1));
        let points: Vec<(i64, f64)> = (0..900).map(|at| (NOW - at, at as f64)).collect();
        let update = [ArgumentUpdate::Points {
            argument: 0,
            points: &points,
        }];
        field.update(&mut state, &update, &[], NOW).unwrap();
        let result = field.evaluate(&mut state, &mut Scripts::new(), NOW);
        assert_eq!(result.is_ok(), fits);
        assert_eq!(state.is_oversized(), !fits);
        assert_eq!(field.update(&mut state, &update, &[], NOW).is_ok(), fits);
    }
}
