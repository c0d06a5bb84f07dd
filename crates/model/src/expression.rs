//! Mathematical expressions: compiled once to a flat program, evaluated without allocation.
//!
//! Numbers, variables, `+ - * / % ^` (`÷` is `/`), signs, brackets `( [ {`, functions and the constants `pi`, `π`, `e`
//! and `φ`. A sign binds less than `^` and more than `*`: `-2^2` is -4. `^` goes from right to left. Between two operands
//! without an operator stands an implied `*`; a word that is no name as a whole is the longest name it begins with, times
//! the rest: `2x` and `xy` are products. Dividing by zero is an error.

mod parser;
#[cfg(test)]
mod tests;

use std::fmt;

/// Deepest stack of a program.
const MAX_STACK: usize = 64;

/// Longest expression, in bytes.
pub const MAX_BYTES: usize = 50_000;

/// What is wrong with the text of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    at: usize,
    problem: String,
}

impl ExpressionError {
    fn new(at: usize, problem: impl Into<String>) -> Self {
        Self {
            at,
            problem: problem.into(),
        }
    }

    /// Where, in bytes from the start.
    pub const fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at position {}", self.problem, self.at)
    }
}

impl std::error::Error for ExpressionError {}

/// Why an expression has no value for these variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The right side of `/` or `%`, or what a reciprocal function divides by, is zero.
    #[error("Division by zero!")]
    DivisionByZero,
    /// Fewer variables were given than the expression was compiled with.
    #[error("No value has been set for a variable of the expression")]
    MissingVariable,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum MathOp {
    Number(f64),
    Variable(u16),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Call(MathFunction),
}

macro_rules! functions {
    ($($variant:ident $name:literal $arguments:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum MathFunction { $($variant,)* }

        impl MathFunction {
            const ALL: &[Self] = &[$(Self::$variant,)*];

            fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            const fn arguments(self) -> usize {
                match self { $(Self::$variant => $arguments,)* }
            }
        }
    };
}

functions! {
    Sin "sin" 1; Cos "cos" 1; Tan "tan" 1; Cot "cot" 1; Csc "csc" 1; Sec "sec" 1;
    Asin "asin" 1; Acos "acos" 1; Atan "atan" 1;
    Sinh "sinh" 1; Cosh "cosh" 1; Tanh "tanh" 1; Csch "csch" 1; Sech "sech" 1; Coth "coth" 1;
    Abs "abs" 1; Signum "signum" 1; Ceil "ceil" 1; Floor "floor" 1; Sqrt "sqrt" 1; Cbrt "cbrt" 1;
    Exp "exp" 1; Expm1 "expm1" 1; Pow "pow" 2;
    Log "log" 1; Ln "ln" 1; Log10 "log10" 1; Lg "lg" 1; Log2 "log2" 1; Log1p "log1p" 1; LogAb "logab" 2;
    ToRadian "toradian" 1; ToDegree "todegree" 1;
}

/// Whether a variable cannot have this name, because a function has it.
pub fn is_function(name: &str) -> bool {
    MathFunction::from_name(name).is_some()
}

/// A compiled expression.
#[derive(Debug, Clone, PartialEq)]
pub struct MathExpression {
    program: Box<[MathOp]>,
    stack: usize,
}

impl MathExpression {
    /// Compiles an expression of these variables.
    ///
    /// # Errors
    /// The text is no expression, names something else, or a variable is called as a function is.
    pub fn compile(text: &str, variables: &[&str]) -> Result<Self, ExpressionError> {
        if text.len() > MAX_BYTES {
            return Err(ExpressionError::new(0, "the expression is too long"));
        }
        if let Some(name) = variables.iter().find(|name| is_function(name)) {
            return Err(ExpressionError::new(
                0,
                format!("A variable can not have the same name as a function [{name}]"),
            ));
        }
        let program = parser::parse(text, variables)?;
        let stack = depth(&program);
        if stack > MAX_STACK {
            return Err(ExpressionError::new(0, "the expression is nested too deeply"));
        }
        Ok(Self {
            program: program.into(),
            stack,
        })
    }

    /// Its value where the variables, in the order they were compiled in, have these values.
    ///
    /// # Errors
    /// It divides by zero, or there are too few values.
    pub fn evaluate(&self, variables: &[f64]) -> Result<f64, EvaluationError> {
        // Most expressions need few places; clearing all of them would cost more than the expression.
        if self.stack <= 8 {
            self.run(&mut [0.0; 8], variables)
        } else {
            self.run(&mut [0.0; MAX_STACK], variables)
        }
    }

    fn run(&self, stack: &mut [f64], variables: &[f64]) -> Result<f64, EvaluationError> {
        let mut top = 0usize;
        for op in &self.program {
            let value = match *op {
                MathOp::Number(number) => number,
                MathOp::Variable(index) => *variables
                    .get(usize::from(index))
                    .ok_or(EvaluationError::MissingVariable)?,
                MathOp::Negate => -pop(stack, &mut top),
                MathOp::Call(function) => {
                    let second = if function.arguments() == 2 {
                        pop(stack, &mut top)
                    } else {
                        0.0
                    };
                    let first = pop(stack, &mut top);
                    call(function, first, second)?
                }
                binary => {
                    let right = pop(stack, &mut top);
                    let left = pop(stack, &mut top);
                    combine(binary, left, right)?
                }
            };
            if let Some(place) = stack.get_mut(top) {
                *place = value;
            }
            top += 1;
        }
        Ok(pop(stack, &mut top))
    }
}

/// Takes the topmost value; compiling has made sure that there is one.
fn pop(stack: &[f64], top: &mut usize) -> f64 {
    *top = top.saturating_sub(1);
    stack.get(*top).copied().unwrap_or(f64::NAN)
}

fn combine(op: MathOp, left: f64, right: f64) -> Result<f64, EvaluationError> {
    Ok(match op {
        MathOp::Add => left + right,
        MathOp::Subtract => left - right,
        MathOp::Multiply => left * right,
        MathOp::Divide | MathOp::Modulo if right == 0.0 => return Err(EvaluationError::DivisionByZero),
        MathOp::Divide => left / right,
        MathOp::Modulo => left % right,
        _ => power(left, right),
    })
}

/// As the JVM has it: one to an infinite or undefined power is undefined.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) {
        return f64::NAN;
    }
    base.powf(exponent)
}

fn reciprocal(value: f64) -> Result<f64, EvaluationError> {
    if value == 0.0 {
        return Err(EvaluationError::DivisionByZero);
    }
    Ok(1.0 / value)
}

fn call(function: MathFunction, x: f64, y: f64) -> Result<f64, EvaluationError> {
    use MathFunction as F;
    Ok(match function {
        F::Sin => x.sin(),
        F::Cos => x.cos(),
        F::Tan => x.tan(),
        F::Cot => reciprocal(x.tan())?,
        F::Csc => reciprocal(x.sin())?,
        F::Sec => reciprocal(x.cos())?,
        F::Asin => x.asin(),
        F::Acos => x.acos(),
        F::Atan => x.atan(),
        F::Sinh => x.sinh(),
        F::Cosh => x.cosh(),
        F::Tanh => x.tanh(),
        F::Csch => reciprocal(x.sinh())?,
        F::Sech => reciprocal(x.cosh())?,
        F::Coth => reciprocal(x.tanh())?,
        F::Abs => x.abs(),
        F::Signum if x > 0.0 => 1.0,
        F::Signum if x < 0.0 => -1.0,
        F::Signum => 0.0,
        F::Ceil => x.ceil(),
        F::Floor => x.floor(),
        F::Sqrt => x.sqrt(),
        F::Cbrt => x.cbrt(),
        F::Exp => x.exp(),
        F::Expm1 => x.exp_m1(),
        F::Pow => power(x, y),
        F::Log | F::Ln => x.ln(),
        F::Log10 | F::Lg => x.log10(),
        F::Log2 => x.log2(),
        F::Log1p => x.ln_1p(),
        F::LogAb => y.ln() / x.ln(),
        F::ToRadian => x.to_radians(),
        F::ToDegree => x.to_degrees(),
    })
}

/// How many values a program has on its stack at most.
fn depth(program: &[MathOp]) -> usize {
    let mut now = 0usize;
    let mut most = 0;
    for op in program {
        now = match op {
            MathOp::Number(_) | MathOp::Variable(_) => now + 1,
            MathOp::Negate => now,
            MathOp::Call(function) => now + 1 - function.arguments(),
            _ => now - 1,
        };
        most = most.max(now);
    }
    most
}
