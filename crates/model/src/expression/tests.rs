//! Facts about expressions, and that no text breaks the compiler.

use proptest::prelude::*;

use super::*;

fn value(text: &str) -> f64 {
    MathExpression::compile(text, &["a", "b", "temp_1"])
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .evaluate(&[3.0, 4.0, 25.5])
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn operators_bind_as_documented() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("[1 + 2] * {3}", 9.0),
        ("2 - 3 - 4", -5.0),
        ("24 / 4 / 2", 3.0),
        ("7 % 4", 3.0),
        ("-7 % 4", -3.0),
        ("9 ÷ 3", 3.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("(-2) ^ 2", 4.0),
        ("2 ^ -1", 0.5),
        ("2 ^ -2 * 4", 1.0),
        ("2 * -3", -6.0),
        ("2 - -3", 5.0),
        ("--3", 3.0),
        ("+3", 3.0),
        ("-3 * 2 + 1", -5.0),
        ("1e3 + 1.5E-1", 1000.15),
        (".5 + 1.", 1.5),
        ("a + b", 7.0),
        ("(temp_1 - 32) / 1.8", (25.5 - 32.0) / 1.8),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn products_may_be_implied() {
    for (text, expected) in [
        ("2a", 6.0),
        ("2(3 + 4)", 14.0),
        ("(1 + 1)(2 + 2)", 8.0),
        ("ab", 12.0),
        ("a b", 12.0),
        ("a2", 6.0),
        ("2a^2", 18.0),
        ("12 / 2a", 18.0),
        ("2e", 2.0 * std::f64::consts::E),
        ("2sqrt(b)", 4.0),
        ("-2a", -6.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn functions_and_constants_have_their_values() {
    for (text, expected) in [
        ("sin(pi / 2)", 1.0),
        ("cos(0)", 1.0),
        ("ln(e)", 1.0),
        ("log(e)", 1.0),
        ("lg(1000)", 3.0),
        ("log10(100)", 2.0),
        ("log2(8)", 3.0),
        ("logab(2, 8)", 3.0),
        ("log1p(0)", 0.0),
        ("pow(2, 10)", 1024.0),
        ("sqrt(a * a + b * b)", 5.0),
        ("cbrt(27)", 3.0),
        ("abs(-3.5)", 3.5),
        ("signum(-2)", -1.0),
        ("ceil(1.2) + floor(1.8)", 3.0),
        ("expm1(0)", 0.0),
        ("todegree(pi)", 180.0),
        ("atan(tan(0.5))", 0.5),
        ("cot(0.5) * tan(0.5)", 1.0),
    ] {
        assert!((value(text) - expected).abs() < 1e-12, "{text}");
    }
}

#[test]
fn what_is_no_expression_is_refused_with_its_place() {
    for (text, at, problem) in [
        ("", 0, "Expression can not be empty"),
        ("  ", 0, "Expression can not be empty"),
        ("1 +", 3, "an operand is missing"),
        ("1 + * 2", 4, "Unable to parse char '*'"),
        ("(1 + 2", 6, "a closing bracket is missing"),
        ("1 + 2)", 5, "Unable to parse char ')'"),
        ("1 2", 2, "Unable to parse char '2'"),
        ("2 * 1 2", 6, "Unable to parse char '2'"),
        ("a + unknown", 4, "Unknown function or variable 'unknown'"),
        ("1.2.3", 0, "`1.2.3` is not a number"),
        ("sin 1", 4, "a bracket is missing behind function 'sin'"),
        ("pow(1)", 6, "function 'pow' takes 2 argument(s), not 1"),
        ("sin(1, 2)", 9, "function 'sin' takes 1 argument(s), not 2"),
        ("a; b", 1, "Unable to parse char ';'"),
    ] {
        let error = MathExpression::compile(text, &["a", "b"]).unwrap_err();
        assert_eq!((error.at(), error.problem.as_str()), (at, problem), "{text}");
    }
    let shadowing = MathExpression::compile("1", &["sin"]).unwrap_err();
    assert!(shadowing.to_string().contains("[sin]"), "{shadowing}");
    assert!(MathExpression::compile(&"(".repeat(10_000), &[]).is_err());
    assert!(MathExpression::compile(&"-".repeat(10_000), &[]).is_err());
}

#[test]
fn division_by_zero_is_an_error_and_a_variable_may_hide_a_constant() {
    for text in ["1 / a", "1 % a", "cot(a)", "csc(a)"] {
        let expression = MathExpression::compile(text, &["a"]).unwrap();
        assert_eq!(
            expression.evaluate(&[0.0]),
            Err(EvaluationError::DivisionByZero),
            "{text}"
        );
        assert_eq!(
            expression.evaluate(&[]),
            Err(EvaluationError::MissingVariable),
            "{text}"
        );
    }
    let hiding = MathExpression::compile("e + 1", &["e"]).unwrap();
    assert_eq!(hiding.evaluate(&[1.0]), Ok(2.0));
}

#[test]
fn a_name_hides_what_it_begins_with() {
    let variables = ["x", "xy", "e", "xyz1", "pi_2"];
    let value = |text: &str| {
        let expression = MathExpression::compile(text, &variables).unwrap();
        expression.evaluate(&[2.0, 3.0, 5.0, 7.0, 11.0]).unwrap()
    };
    for (text, expected) in [
        ("xy", 3.0),
        ("xyx", 6.0),
        ("xyz1", 7.0),
        ("xyxyz1", 21.0),
        ("ex", 10.0),
        ("pi_2x", 22.0),
        ("xsqrt(xx)", 4.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    let unknown = MathExpression::compile("xyz", &variables).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "Unknown function or variable 'z' at position 2"
    );
}

#[test]
fn products_of_names_are_compiled_in_one_go() {
    // Looking for the end of each word and trying all its beginnings took seconds.
    for (word, variable) in [("x", "x"), ("xy", "xy"), ("e", "x")] {
        let text = word.repeat(MAX_BYTES / word.len());
        let long = "y".repeat(10_000);
        assert!(MathExpression::compile(&text, &[variable, &long]).is_ok());
    }
    assert!(MathExpression::compile(&"x".repeat(MAX_BYTES + 1), &["x"]).is_err());
}

#[test]
fn a_deep_expression_is_either_refused_or_has_its_value() {
    for terms in 1..200 {
        let text = format!("{}1{}", "1+(".repeat(terms), ")".repeat(terms));
        if let Ok(expression) = MathExpression::compile(&text, &[]) {
            assert_eq!(expression.evaluate(&[]), Ok(terms as f64 + 1.0));
        } else {
            assert!(terms > 60, "{terms}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_compiler(text in r"[-+*/%^()\[\]{}0-9.,eabsinpow πφ_!]{0,40}") {
        if let Ok(expression) = MathExpression::compile(&text, &["a", "b"]) {
            let _ = expression.evaluate(&[1.5, -2.0]);
        }
    }
}
