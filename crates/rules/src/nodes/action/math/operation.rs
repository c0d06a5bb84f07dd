//! What is calculated.

use fieldline_model::expression::MathExpression;

use super::arguments::MathArgument;
use crate::node::{NodeConfigError, NodeError};

/// Longest expression, characters.
const MAX_EXPRESSION: usize = 256;
/// Most arguments of an expression.
const MAX_ARGUMENTS: usize = 16;

/// What is calculated.
pub(super) enum MathOperation {
    One(fn(f64) -> f64, bool),
    Two(fn(f64, f64) -> Result<f64, NodeError>),
    Custom(MathExpression),
}

impl MathOperation {
    /// The operation of that name, for these arguments.
    pub(super) fn new(
        name: &str,
        custom: Option<&str>,
        arguments: &[MathArgument],
    ) -> Result<Self, NodeConfigError> {
        let operation = match name {
            "CUSTOM" => Self::Custom(expression(custom.unwrap_or_default(), arguments)?),
            "ADD" => Self::Two(|a, b| Ok(a + b)),
            "SUB" => Self::Two(|a, b| Ok(a - b)),
            "MULT" => Self::Two(|a, b| Ok(a * b)),
            "DIV" => Self::Two(|a, b| Ok(a / b)),
            "ATAN2" => Self::Two(|a, b| Ok(a.atan2(b))),
            "HYPOT" => Self::Two(|a, b| Ok(a.hypot(b))),
            "POW" => Self::Two(|a, b| Ok(a.powf(b))),
            "MIN" => Self::Two(|a, b| {
                Ok(if a.is_nan() || b.is_nan() {
                    f64::NAN
                } else {
                    a.min(b)
                })
            }),
            "MAX" => Self::Two(|a, b| {
                Ok(if a.is_nan() || b.is_nan() {
                    f64::NAN
                } else {
                    a.max(b)
                })
            }),
            "FLOOR_DIV" => Self::Two(|a, b| {
                whole(a, b, |a, b| {
                    a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0)
                })
            }),
            "FLOOR_MOD" => Self::Two(|a, b| whole(a, b, |a, b| ((a % b) + b) % b)),
            "SIN" => Self::One(f64::sin, false),
            "SINH" => Self::One(f64::sinh, false),
            "COS" => Self::One(f64::cos, false),
            "COSH" => Self::One(f64::cosh, false),
            "TAN" => Self::One(f64::tan, false),
            "TANH" => Self::One(f64::tanh, false),
            "ACOS" => Self::One(f64::acos, false),
            "ASIN" => Self::One(f64::asin, false),
            "ATAN" => Self::One(f64::atan, false),
            "EXP" => Self::One(f64::exp, false),
            "EXPM1" => Self::One(f64::exp_m1, false),
            "SQRT" => Self::One(f64::sqrt, false),
            "CBRT" => Self::One(f64::cbrt, false),
            "GET_EXP" => Self::One(exponent, true),
            "LOG" => Self::One(f64::ln, false),
            "LOG10" => Self::One(f64::log10, false),
            "LOG1P" => Self::One(f64::ln_1p, false),
            "CEIL" => Self::One(f64::ceil, true),
            "FLOOR" => Self::One(f64::floor, true),
            "ABS" => Self::One(f64::abs, false),
            "SIGNUM" => Self::One(|a| if a == 0.0 { a } else { a.signum() }, false),
            "RAD" => Self::One(f64::to_radians, false),
            "DEG" => Self::One(f64::to_degrees, false),
            other => {
                return Err(NodeConfigError::new(
                    "operation",
                    format!("there is no operation `{other}`"),
                ));
            }
        };
        let (least, most) = match operation {
            Self::One(..) => (1, 1),
            Self::Two(_) => (2, 2),
            Self::Custom(_) => (0, MAX_ARGUMENTS),
        };
        let count = arguments.len();
        if !(least..=most).contains(&count) {
            let problem = format!("Args count: {count} does not match operation: {name}");
            return Err(NodeConfigError::new("arguments", problem));
        }
        Ok(operation)
    }

    /// Whether its result is always a whole number.
    pub(super) const fn is_whole(&self) -> bool {
        matches!(self, Self::One(_, true))
    }

    /// The result for values of the arguments, in their order.
    pub(super) fn apply(&self, values: &[f64]) -> Result<f64, NodeError> {
        match (self, values) {
            (Self::One(function, _), [a, ..]) => Ok(function(*a)),
            (Self::Two(function), [a, b, ..]) => function(*a, *b),
            (Self::Custom(expression), values) => expression
                .evaluate(values)
                .map_err(|error| NodeError::new(error.to_string())),
            _ => Err(NodeError::new("too few arguments")),
        }
    }
}

fn expression(text: &str, arguments: &[MathArgument]) -> Result<MathExpression, NodeConfigError> {
    let wrong = |problem: String| NodeConfigError::new("customFunction", problem);
    if text.trim().is_empty() {
        return Err(wrong("Custom function is blank!".to_owned()));
    }
    if text.chars().count() > MAX_EXPRESSION {
        return Err(wrong(format!(
            "Custom function is too complex (length > {MAX_EXPRESSION})!"
        )));
    }
    let names: Vec<&str> = arguments.iter().map(MathArgument::name).collect();
    MathExpression::compile(text, &names).map_err(|error| wrong(error.to_string()))
}

fn whole(a: f64, b: f64, function: fn(i64, i64) -> i64) -> Result<f64, NodeError> {
    match (a as i64, b as i64) {
        (_, 0) => Err(NodeError::new("Division by zero!")),
        // The only quotient that does not fit: it overflows to itself, and leaves nothing.
        (a, -1) => Ok(function(a.max(-i64::MAX), -1) as f64),
        (a, b) => Ok(function(a, b) as f64),
    }
}

/// The exponent of the binary form, without its bias.
fn exponent(value: f64) -> f64 {
    let biased = (value.to_bits() >> 52) & 0x7ff;
    biased as f64 - 1023.0
}
