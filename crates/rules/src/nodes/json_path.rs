//! JSONPath, in the dialect of Jayway that rule chains are written in.
//!
//! A path that can only lead to one place gives the value there, and fails where there is none; any other gives an array of
//! what it finds. A last step may be a function, such as `$.values.avg()`.

mod eval;
mod filter;
mod parser;

use std::borrow::Cow;

use fieldline_model::budget::{BudgetOverrun, EvaluationBudget};
use serde_json::Value;

use self::eval::JsonPathMatch;
use self::filter::JsonPathFilter;
use super::regex::RegexAllowance;
use crate::node::NodeError;

/// A path, compiled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<JsonPathStep>,
    function: Option<JsonPathFunction>,
}

#[derive(Debug, Clone, PartialEq)]
enum JsonPathStep {
    /// Values of these names.
    Names(Vec<String>),
    /// Elements at these places, from the end where negative.
    Indexes(Vec<i64>),
    /// Elements from a place to before another one.
    Slice(Option<i64>, Option<i64>),
    /// Everything within.
    All,
    /// What is so.
    Filter(JsonPathFilter),
    /// The next step is taken from everything below as well.
    Deep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonPathFunction {
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

/// Why a path gives no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonPathError {
    /// It can only lead to one place, and nothing is there.
    #[error("{0}")]
    Nothing(Cow<'static, str>),
    /// Finding out takes too much.
    #[error("{0}")]
    Overrun(#[from] BudgetOverrun),
}

impl JsonPathError {
    fn nothing(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Nothing(what.into())
    }
}

impl From<JsonPathError> for NodeError {
    fn from(error: JsonPathError) -> Self {
        match error {
            JsonPathError::Nothing(what) => Self::new(what),
            JsonPathError::Overrun(overrun) => overrun.into(),
        }
    }
}

impl JsonPath {
    /// Compiles a path.
    ///
    /// # Errors
    /// What is wrong, and at which character.
    pub(crate) fn new(text: &str, regexes: &RegexAllowance) -> Result<Self, String> {
        parser::parse(text, regexes)
    }

    /// What the path leads to.
    ///
    /// # Errors
    /// The path can only lead to one place, and nothing is there; or finding out takes more than the budget has.
    pub(crate) fn read(&self, root: &Value, budget: &mut EvaluationBudget) -> Result<Value, JsonPathError> {
        self.value(root, root, budget).map(Cow::into_owned)
    }

    fn value<'v>(
        &self,
        root: &'v Value,
        from: &'v Value,
        budget: &mut EvaluationBudget,
    ) -> Result<Cow<'v, Value>, JsonPathError> {
        let found = self.find(root, from, budget)?.into_value(root, budget)?;
        Ok(match self.function {
            Some(function) => Cow::Owned(function.of(&found, root, budget)?),
            None => found,
        })
    }

    fn find<'v>(
        &self,
        root: &'v Value,
        from: &'v Value,
        budget: &mut EvaluationBudget,
    ) -> Result<JsonPathMatch<'v>, JsonPathError> {
        eval::find(&self.steps, root, from, budget)
    }
}

impl JsonPathStep {
    /// Whether it leads to one place only.
    fn is_definite(&self) -> bool {
        match self {
            Self::Names(names) => names.len() == 1,
            Self::Indexes(indexes) => indexes.len() == 1,
            _ => false,
        }
    }
}

impl JsonPathFunction {
    fn of(self, value: &Value, root: &Value, budget: &mut EvaluationBudget) -> Result<Value, BudgetOverrun> {
        match (self, value) {
            (Self::Length, Value::Array(items)) => Ok(items.len().into()),
            (Self::Length, Value::Object(fields)) => Ok(fields.len().into()),
            (Self::Keys, Value::Object(fields)) => {
                let mut names = Vec::with_capacity(fields.len());
                for name in fields.keys() {
                    budget.read(name.len())?;
                    budget.make(size_of::<Value>() + name.len())?;
                    names.push(name.clone());
                }
                Ok(names.into())
            }
            (Self::First, Value::Array(items)) => copy(items.first(), root, budget),
            (Self::Last, Value::Array(items)) => copy(items.last(), root, budget),
            (Self::Index(index), Value::Array(items)) => {
                let place = eval::place(index, items.len());
                copy(place.and_then(|at| items.get(at)), root, budget)
            }
            (_, Value::Array(items)) => {
                budget.step(items.len())?;
                Ok(self.of_numbers(items))
            }
            _ => Ok(Value::Null),
        }
    }

    fn of_numbers(self, items: &[Value]) -> Value {
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
            Self::Min => number(numbers.iter().copied().fold(f64::INFINITY, f64::min)),
            Self::Max => number(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            Self::Avg => number(sum / count),
            Self::Sum => number(sum),
            Self::StdDev => {
                let mean = sum / count;
                number((numbers.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>() / count).sqrt())
            }
            _ => Value::Null,
        }
    }
}

/// A copy of an item, null where there is none.
fn copy(item: Option<&Value>, root: &Value, budget: &mut EvaluationBudget) -> Result<Value, BudgetOverrun> {
    match item {
        Some(item) => {
            eval::count_copy(item, root, budget)?;
            Ok(item.clone())
        }
        None => Ok(Value::Null),
    }
}

#[cfg(test)]
mod tests;
