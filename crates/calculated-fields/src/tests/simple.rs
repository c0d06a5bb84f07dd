//! Expressions, arguments, windows, numbers.

use CalculatedFieldType::Simple;

use super::*;
use crate::number::rounded;

fn simple(expression: &str, decimals: Option<i32>, use_latest_ts: bool) -> Arc<CompiledField> {
    field(
        Simple,
        json!({
            "type": "SIMPLE",
            "arguments": { "a": latest("temperature"), "b": attribute("offset") },
            "expression": expression,
            "output": { "type": "TIME_SERIES", "name": "result", "decimalsByDefault": decimals },
            "useLatestTs": use_latest_ts,
        }),
    )
}

#[test]
fn an_expression_is_evaluated_once_every_argument_has_a_value() {
    let field = simple("(a - 32) / 1.8 + b", Some(2), false);
    let mut state = field.new_state(device(1));
    assert_eq!(
        field.update(&mut state, &[double(&field, "a", NOW, 50.0)], &[], NOW),
        Ok(true)
    );
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert_eq!(
        outcome.not_ready.as_deref(),
        Some("Required arguments are missing: b")
    );
    assert!(outcome.outputs.is_empty());

    field
        .update(&mut state, &[double(&field, "b", NOW, 0.5)], &[], NOW)
        .unwrap();
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert_eq!(bodies(&outcome), [json!({ "result": 10.5 })]);
    assert_eq!(outcome.previous, [field_id(7)]);
    assert_eq!(outcome.next_check, None);
}

#[test]
fn values_of_every_type_count_as_the_number_they_spell() {
    let field = simple("a + b", None, false);
    for (value, sum) in [
        (KvValueRef::Long(2), json!(3.0)),
        (KvValueRef::Double(2.5), json!(3.5)),
        (KvValueRef::Bool(true), json!(2.0)),
        (KvValueRef::Text(" 1e1 "), json!(11.0)),
        (KvValueRef::Json("4"), json!(5.0)),
    ] {
        let updates = [
            of(&field, device(1), "a", NOW, value),
            double(&field, "b", NOW, 1.0),
        ];
        assert_eq!(
            body(evaluate(&field, &mut state(&field, &updates), NOW)),
            json!({ "result": sum })
        );
    }
    let updates = [
        of(&field, device(1), "a", NOW, KvValueRef::Text("warm")),
        double(&field, "b", NOW, 1.0),
    ];
    let error = evaluate(&field, &mut state(&field, &updates), NOW).unwrap_err();
    assert_eq!(error.to_string(), "Argument 'a' is not a number.");
}

#[test]
fn what_has_no_value_is_an_error() {
    for (expression, message) in [
        ("a / b", "Division by zero!"),
        ("sqrt(b - 1)", "The result is not a finite number."),
        ("1e308 * a * 10", "The result is not a finite number."),
    ] {
        let field = simple(expression, Some(2), false);
        let updates = [double(&field, "a", NOW, 50.0), double(&field, "b", NOW, 0.0)];
        let error = evaluate(&field, &mut state(&field, &updates), NOW).unwrap_err();
        assert_eq!(error.to_string(), message, "{expression}");
    }
}

#[test]
fn the_time_of_the_result_is_that_of_the_newest_argument_where_asked_for() {
    let updates =
        |field: &CompiledField| [double(field, "a", NOW - 7, 1.0), double(field, "b", NOW - 9, 2.0)];
    let timed = simple("a + b", Some(0), true);
    let result = body(evaluate(&timed, &mut state(&timed, &updates(&timed)), NOW));
    assert_eq!(result, json!({ "ts": NOW - 7, "values": { "result": 3 } }));
    let untimed = simple("a + b", Some(0), false);
    let result = body(evaluate(&untimed, &mut state(&untimed, &updates(&untimed)), NOW));
    assert_eq!(result, json!({ "result": 3 }));
}

#[test]
fn late_points_are_left_out_and_attributes_take_every_write() {
    let field = simple("a * 100 + b", Some(0), false);
    let mut state = state(
        &field,
        &[double(&field, "a", NOW, 1.0), double(&field, "b", NOW, 1.0)],
    );
    for (name, ts, value, counts, result) in [
        ("a", NOW - 1, 9.0, false, 101),
        ("a", NOW, 2.0, true, 201),
        ("b", NOW - 1, 5.0, true, 205),
    ] {
        let taken = field.update(&mut state, &[double(&field, name, ts, value)], &[], NOW);
        assert_eq!(taken, Ok(counts), "{name} {ts}");
        assert_eq!(
            body(evaluate(&field, &mut state, NOW)),
            json!({ "result": result })
        );
    }
}

#[test]
fn defaults_stand_in_for_absent_values_until_there_is_one() {
    let mut argument = latest("temperature");
    argument["defaultValue"] = json!("12.5");
    let field = field(
        Simple,
        json!({
            "arguments": { "a": argument, "b": latest("pressure") },
            "expression": "a + b",
            "output": { "type": "TIME_SERIES", "name": "sum", "decimalsByDefault": 1 },
            "useLatestTs": true,
        }),
    );
    let missing = |name: &str| ArgumentUpdate::Missing {
        argument: number(&field, name),
        entity: device(1),
    };
    let mut state = state(
        &field,
        &[missing("a"), missing("b"), double(&field, "b", NOW - 60, 1.0)],
    );
    // The time of a default does not count beside that of a value.
    assert_eq!(
        body(evaluate(&field, &mut state, NOW)),
        json!({ "ts": NOW - 60, "values": { "sum": 13.5 } })
    );
    let older = [double(&field, "a", NOW - 90, 2.0)];
    assert_eq!(field.update(&mut state, &older, &[], NOW), Ok(true));
    assert_eq!(body(evaluate(&field, &mut state, NOW))["values"]["sum"], 3.0);
    // Deleted, it is the default again; without one the field waits.
    field.update(&mut state, &[missing("a")], &[], NOW).unwrap();
    assert_eq!(body(evaluate(&field, &mut state, NOW))["values"]["sum"], 13.5);
    field.update(&mut state, &[missing("b")], &[], NOW).unwrap();
    assert!(evaluate(&field, &mut state, NOW).unwrap().not_ready.is_some());
}

#[test]
fn a_field_is_not_evaluated_because_of_its_own_result() {
    let field = simple("a + b", None, false);
    let mut state = field.new_state(device(1));
    let update = [double(&field, "a", NOW, 1.0)];
    assert_eq!(field.update(&mut state, &update, &[field_id(7)], NOW), Ok(false));
    let updates = [double(&field, "a", NOW, 1.0), double(&field, "b", NOW, 1.0)];
    assert_eq!(field.update(&mut state, &updates, &[field_id(3)], NOW), Ok(true));
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert_eq!(outcome.previous, [field_id(3), field_id(7)]);
    // The next result has nothing to do with the other field.
    field.update(&mut state, &update, &[], NOW).unwrap();
    assert_eq!(evaluate(&field, &mut state, NOW).unwrap().previous, [field_id(7)]);
}

#[test]
fn large_values_are_refused_by_the_name_of_their_argument() {
    let field = simple("a + b", None, false);
    let mut state = field.new_state(device(1));
    let long = "1".repeat(3_000);
    let updates = [
        of(&field, device(1), "a", NOW, KvValueRef::Text(&long)),
        double(&field, "b", NOW, 1.0),
    ];
    let error = field.update(&mut state, &updates, &[], NOW).unwrap_err();
    assert!(error.to_string().contains("'a'"), "{error}");
    // What came with it was taken.
    let missing = evaluate(&field, &mut state, NOW).unwrap().not_ready.unwrap();
    assert!(missing.ends_with(": a"), "{missing}");
}

#[test]
fn numbers_are_rounded_as_people_round_decimals() {
    for (value, decimals, expected) in [
        (49.4456, Some(0), KvValue::Long(49)),
        (2.5, Some(0), KvValue::Long(3)),
        (-2.5, Some(0), KvValue::Long(-3)),
        (1.005, Some(2), KvValue::Double(1.01)),
        (-1.005, Some(2), KvValue::Double(-1.01)),
        (2.675, Some(2), KvValue::Double(2.68)),
        (0.1 + 0.2, Some(3), KvValue::Double(0.3)),
        (0.1 + 0.2, None, KvValue::Double(0.1 + 0.2)),
        (1e300, Some(2), KvValue::Double(1e300)),
        (1e-300, Some(2), KvValue::Double(0.0)),
        (123_456_789.125, Some(2), KvValue::Double(123_456_789.13)),
        (1e19, Some(0), KvValue::Long(i64::MAX)),
        (7.0, Some(20), KvValue::Double(7.0)),
    ] {
        assert_eq!(rounded(value, decimals), Ok(expected), "{value} {decimals:?}");
    }
    assert_eq!(rounded(f64::NAN, Some(2)), Err(FieldEvaluationError::NotFinite));
}

#[test]
fn attributes_are_written_into_their_scope_without_a_time() {
    let field = field(
        Simple,
        json!({
            "arguments": { "a": latest("temperature") },
            "expression": "a",
            "output": { "type": "ATTRIBUTES", "scope": "SHARED_SCOPE", "name": "last", "decimalsByDefault": 0,
                "strategy": { "type": "IMMEDIATE", "saveAttribute": true, "processCfs": true } },
            "useLatestTs": true,
        }),
    );
    let mut state = state(&field, &[double(&field, "a", NOW - 5, 4.4)]);
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    let output = &outcome.outputs[0];
    let scope = fieldline_model::timeseries::AttributeScope::Shared;
    assert_eq!(output.kind, crate::OutputKind::Attributes(scope));
    assert!(output.strategy.save_attribute && output.strategy.process_cfs && !output.strategy.send_ws_update);
    assert_eq!(output.message_body(), r#"{"last":4}"#);
}
