//! What is calculated.

use fieldline_model::expression::MathExpression;
use schemars::{Schema, SchemaGenerator, json_schema};

use super::arguments::MathArgument;
use crate::node::{NodeConfigError, NodeError};

/// Longest expression, characters.
pub(super) const MAX_EXPRESSION: usize = 256;
/// Most arguments of an expression.
const MAX_ARGUMENTS: usize = 16;

/// A function of one or two numbers.
#[derive(Clone, Copy)]
pub(super) enum MathFunction {
    /// With whether its result is always a whole number.
    One(fn(f64) -> f64, bool),
    Two(fn(f64, f64) -> Result<f64, NodeError>),
}

/// What is calculated.
pub(super) enum MathOperation {
    Function(MathFunction),
    Custom(MathExpression),
}

/// The name of an expression of one's own.
const CUSTOM: &str = "CUSTOM";

/// The functions by their names.
const FUNCTIONS: &[(&str, MathFunction)] = &[
    ("ADD", MathFunction::Two(|a, b| Ok(a + b))),
    ("SUB", MathFunction::Two(|a, b| Ok(a - b))),
    ("MULT", MathFunction::Two(|a, b| Ok(a * b))),
    ("DIV", MathFunction::Two(|a, b| Ok(a / b))),
    ("ATAN2", MathFunction::Two(|a, b| Ok(a.atan2(b)))),
    ("HYPOT", MathFunction::Two(|a, b| Ok(a.hypot(b)))),
    ("POW", MathFunction::Two(|a, b| Ok(a.powf(b)))),
    (
        "MIN",
        MathFunction::Two(|a, b| {
            Ok(if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                a.min(b)
            })
        }),
    ),
    (
        "MAX",
        MathFunction::Two(|a, b| {
            Ok(if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                a.max(b)
            })
        }),
    ),
    (
        "FLOOR_DIV",
        MathFunction::Two(|a, b| {
            whole(a, b, |a, b| {
                a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0)
            })
        }),
    ),
    (
        "FLOOR_MOD",
        MathFunction::Two(|a, b| whole(a, b, |a, b| ((a % b) + b) % b)),
    ),
    ("SIN", MathFunction::One(f64::sin, false)),
    ("SINH", MathFunction::One(f64::sinh, false)),
    ("COS", MathFunction::One(f64::cos, false)),
    ("COSH", MathFunction::One(f64::cosh, false)),
    ("TAN", MathFunction::One(f64::tan, false)),
    ("TANH", MathFunction::One(f64::tanh, false)),
    ("ACOS", MathFunction::One(f64::acos, false)),
    ("ASIN", MathFunction::One(f64::asin, false)),
    ("ATAN", MathFunction::One(f64::atan, false)),
    ("EXP", MathFunction::One(f64::exp, false)),
    ("EXPM1", MathFunction::One(f64::exp_m1, false)),
    ("SQRT", MathFunction::One(f64::sqrt, false)),
    ("CBRT", MathFunction::One(f64::cbrt, false)),
    ("GET_EXP", MathFunction::One(exponent, true)),
    ("LOG", MathFunction::One(f64::ln, false)),
    ("LOG10", MathFunction::One(f64::log10, false)),
    ("LOG1P", MathFunction::One(f64::ln_1p, false)),
    ("CEIL", MathFunction::One(f64::ceil, true)),
    ("FLOOR", MathFunction::One(f64::floor, true)),
    ("ABS", MathFunction::One(f64::abs, false)),
    (
        "SIGNUM",
        MathFunction::One(|a| if a == 0.0 { a } else { a.signum() }, false),
    ),
    ("RAD", MathFunction::One(f64::to_radians, false)),
    ("DEG", MathFunction::One(f64::to_degrees, false)),
];

/// The schema of the names of all operations.
pub(super) fn names(_: &mut SchemaGenerator) -> Schema {
    let functions = FUNCTIONS.iter().map(|(name, _)| *name);
    let names: Vec<&str> = std::iter::once(CUSTOM).chain(functions).collect();
    json_schema!({ "type": "string", "enum": names })
}

impl MathOperation {
    /// The operation of that name, for these arguments.
    pub(super) fn new(
        name: &str,
        custom: Option<&str>,
        arguments: &[MathArgument],
    ) -> Result<Self, NodeConfigError> {
        let operation = if name == CUSTOM {
            Self::Custom(expression(custom.unwrap_or_default(), arguments)?)
        } else {
            let found = FUNCTIONS.iter().find(|(known, _)| *known == name);
            let (_, function) = found.ok_or_else(|| {
                NodeConfigError::new("operation", format!("there is no operation `{name}`"))
            })?;
            Self::Function(*function)
        };
        let (least, most) = match operation {
            Self::Function(MathFunction::One(..)) => (1, 1),
            Self::Function(MathFunction::Two(_)) => (2, 2),
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
        matches!(self, Self::Function(MathFunction::One(_, true)))
    }

    /// The result for values of the arguments, in their order.
    pub(super) fn apply(&self, values: &[f64]) -> Result<f64, NodeError> {
        match (self, values) {
            (Self::Function(MathFunction::One(function, _)), [a, ..]) => Ok(function(*a)),
            (Self::Function(MathFunction::Two(function)), [a, b, ..]) => function(*a, *b),
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
