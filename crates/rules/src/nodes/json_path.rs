//! JSONPath, in the dialect of Jayway that rule chains are written in.
//!
//! A path that can only lead to one place gives the value there, and fails where there is none; any other gives an array of
//! what it finds. A last step may be a function, such as `$.values.avg()`.

mod eval;
mod filter;
mod parser;

use serde_json::Value;

use self::eval::Found;
use self::filter::Filter;

/// A path, compiled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
    function: Option<Function>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// Values of these names.
    Names(Vec<String>),
    /// Elements at these places, from the end where negative.
    Indexes(Vec<i64>),
    /// Elements from a place to before another one.
    Slice(Option<i64>, Option<i64>),
    /// Everything within.
    All,
    /// What is so.
    Filter(Filter),
    /// The next step is taken from everything below as well.
    Deep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Length,
    Min,
    Max,
    Avg,
    Sum,
    StdDev,
    Keys,
    First,
    Last,
    Index(i64),
}

impl JsonPath {
    /// Compiles a path.
    ///
    /// # Errors
    /// What is wrong, and at which character.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        parser::parse(text)
    }

    /// What the path leads to.
    ///
    /// # Errors
    /// The path can only lead to one place, and nothing is there; or it finds too much.
    pub(crate) fn read(&self, root: &Value) -> Result<Value, String> {
        let found = self.find(root, root)?;
        Ok(match self.function {
            Some(function) => function.of(found),
            None => found.into_value(),
        })
    }

    fn find<'v>(&self, root: &'v Value, from: &'v Value) -> Result<Found<'v>, String> {
        eval::find(&self.steps, root, from)
    }
}

impl Step {
    /// Whether it leads to one place only.
    fn is_definite(&self) -> bool {
        match self {
            Self::Names(names) => names.len() == 1,
            Self::Indexes(indexes) => indexes.len() == 1,
            _ => false,
        }
    }
}

impl Function {
    fn of(self, found: Found<'_>) -> Value {
        let value = found.into_value();
        let items = match &value {
            Value::Array(items) => items.as_slice(),
            Value::Object(fields) => {
                return match self {
                    Self::Length => fields.len().into(),
                    Self::Keys => fields.keys().cloned().collect::<Vec<_>>().into(),
                    _ => Value::Null,
                };
            }
            _ => return Value::Null,
        };
        let numbers: Vec<f64> = items.iter().filter_map(Value::as_f64).collect();
        let count = numbers.len() as f64;
        let sum: f64 = numbers.iter().sum();
        let number = |number: f64| {
            if numbers.is_empty() {
                Value::Null
            } else {
                Value::from(number)
            }
        };
        match self {
            Self::Length => items.len().into(),
            Self::Min => number(numbers.iter().copied().fold(f64::INFINITY, f64::min)),
            Self::Max => number(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            Self::Avg => number(sum / count),
            Self::Sum => number(sum),
            Self::StdDev => {
                let mean = sum / count;
                number((numbers.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>() / count).sqrt())
            }
            Self::Keys => Value::Null,
            Self::First => items.first().cloned().unwrap_or_default(),
            Self::Last => items.last().cloned().unwrap_or_default(),
            Self::Index(index) => eval::place(index, items.len())
                .and_then(|at| items.get(at))
                .cloned()
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
