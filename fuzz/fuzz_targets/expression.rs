//! Mathematical expressions: whatever is written is refused with its place, or has a value.

#![no_main]

use fieldline_model::expression::MathExpression;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (names, text) = text.split_once('\0').unwrap_or(("x,y,xy", &text));
    let names: Vec<&str> = names.split(',').take(16).collect();
    match MathExpression::compile(text, &names) {
        Ok(expression) => {
            let values: Vec<f64> = (0..names.len()).map(|at| at as f64 - 1.5).collect();
            let _ = expression.evaluate(&values);
            let _ = expression.evaluate(&[]);
        }
        Err(error) => assert!(error.at() <= text.len()),
    }
});
