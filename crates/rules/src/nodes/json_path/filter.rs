//! Conditions such as `?(@.a > 1 && @.b == 'x')`.

use std::borrow::Cow;
use std::cmp::Ordering;

use fieldline_model::budget::{BudgetOverrun, EvaluationBudget};
use serde_json::Value;

use super::eval::JsonPathMatch;
use super::{JsonPath, JsonPathError};
use crate::nodes::regex::WholeMatch;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonPathFilter {
    All(Vec<JsonPathFilter>),
    Any(Vec<JsonPathFilter>),
    Not(Box<JsonPathFilter>),
    /// A path leads somewhere; any other operand is taken as it is.
    Exists(FilterOperand),
    Compare(FilterOperand, FilterOperator, FilterOperand),
}

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FilterOperand {
    Value(Value),
    /// From the value that is looked at.
    Here(JsonPath),
    /// From the root.
    Root(JsonPath),
    Regex(WholeMatch),
}

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Matches,
    In,
    NotIn,
    SubsetOf,
    AnyOf,
    NoneOf,
    AllOf,
    Size,
    Empty,
    Contains,
}

impl FilterOperator {
    /// The operators that are words.
    pub(super) const WORDS: [(&'static str, Self); 9] = [
        ("subsetof", Self::SubsetOf),
        ("anyof", Self::AnyOf),
        ("noneof", Self::NoneOf),
        ("contains", Self::Contains),
        ("empty", Self::Empty),
        ("size", Self::Size),
        ("all", Self::AllOf),
        ("nin", Self::NotIn),
        ("in", Self::In),
    ];
    /// The others, the longer ones first.
    pub(super) const SIGNS: [(&'static str, Self); 9] = [
        ("===", Self::Equal),
        ("!==", Self::NotEqual),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("=~", Self::Matches),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
    ];
}

/// What a value is chosen by.
#[derive(Clone, Copy)]
pub(super) struct JsonPathContext<'v> {
    /// The document.
    pub(super) root: &'v Value,
    /// The value.
    pub(super) here: &'v Value,
}

impl JsonPathFilter {
    /// Whether it holds for a value.
    pub(super) fn accepts(
        &self,
        looked: JsonPathContext<'_>,
        budget: &mut EvaluationBudget,
    ) -> Result<bool, BudgetOverrun> {
        budget.step(1)?;
        match self {
            Self::All(filters) => {
                for filter in filters {
                    if !filter.accepts(looked, budget)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(filters) => {
                for filter in filters {
                    if filter.accepts(looked, budget)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(filter) => Ok(!filter.accepts(looked, budget)?),
            Self::Exists(operand @ (FilterOperand::Here(path) | FilterOperand::Root(path))) => {
                let start = if matches!(operand, FilterOperand::Here(_)) {
                    looked.here
                } else {
                    looked.root
                };
                Ok(match there(path.find(looked.root, start, budget))? {
                    Some(JsonPathMatch::Many(values)) => !values.is_empty(),
                    found => found.is_some(),
                })
            }
            Self::Exists(FilterOperand::Value(value)) => Ok(*value == Value::Bool(true)),
            Self::Exists(FilterOperand::Regex(_)) => Ok(false),
            Self::Compare(left, operator, right) => compare(left, *operator, right, looked, budget),
        }
    }
}

/// What a path leads to, if anything.
fn there<T>(found: Result<T, JsonPathError>) -> Result<Option<T>, BudgetOverrun> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(JsonPathError::Nothing(_)) => Ok(None),
        Err(JsonPathError::Overrun(overrun)) => Err(overrun),
    }
}

impl FilterOperand {
    fn value<'v>(
        &'v self,
        looked: JsonPathContext<'v>,
        budget: &mut EvaluationBudget,
    ) -> Result<Option<Cow<'v, Value>>, BudgetOverrun> {
        let (path, from) = match self {
            Self::Value(value) => return Ok(Some(Cow::Borrowed(value))),
            Self::Here(path) => (path, looked.here),
            Self::Root(path) => (path, looked.root),
            Self::Regex(_) => return Ok(None),
        };
        // Each comparison drops what it has made.
        let made = budget.made();
        let value = there(path.value(looked.root, from, budget))?;
        budget.release(made);
        Ok(value)
    }
}

fn compare(
    left: &FilterOperand,
    operator: FilterOperator,
    right: &FilterOperand,
    looked: JsonPathContext<'_>,
    budget: &mut EvaluationBudget,
) -> Result<bool, BudgetOverrun> {
    if operator == FilterOperator::Matches {
        return match (left, right) {
            (FilterOperand::Regex(pattern), other) | (other, FilterOperand::Regex(pattern)) => {
                match other.value(looked, budget)?.as_deref() {
                    Some(Value::String(text)) => pattern.matches(text, budget),
                    _ => Ok(false),
                }
            }
            _ => Ok(false),
        };
    }
    let (left, right) = (left.value(looked, budget)?, right.value(looked, budget)?);
    let (Some(left), Some(right)) = (left.as_deref(), right.as_deref()) else {
        return Ok(matches!(
            operator,
            FilterOperator::NotEqual | FilterOperator::NotIn
        ));
    };
    compare_values(left, operator, right, budget)
}

fn compare_values(
    left: &Value,
    operator: FilterOperator,
    right: &Value,
    budget: &mut EvaluationBudget,
) -> Result<bool, BudgetOverrun> {
    match operator {
        FilterOperator::Equal => same(left, right, budget),
        FilterOperator::NotEqual => Ok(!same(left, right, budget)?),
        FilterOperator::Less => ordered(left, right, budget, Ordering::is_lt),
        FilterOperator::LessOrEqual => ordered(left, right, budget, Ordering::is_le),
        FilterOperator::Greater => ordered(left, right, budget, Ordering::is_gt),
        FilterOperator::GreaterOrEqual => ordered(left, right, budget, Ordering::is_ge),
        FilterOperator::In => match right {
            Value::Array(items) => has(items, left, budget),
            _ => Ok(false),
        },
        FilterOperator::NotIn => match right {
            Value::Array(items) => Ok(!has(items, left, budget)?),
            _ => Ok(true),
        },
        FilterOperator::Contains => match (left, right) {
            (Value::String(text), Value::String(part)) => {
                budget.read(text.len() + part.len())?;
                Ok(text.contains(part.as_str()))
            }
            (Value::Array(items), value) => has(items, value, budget),
            _ => Ok(false),
        },
        FilterOperator::Size => {
            let length = length(left, budget)?;
            Ok(length.is_some_and(|length| right.as_f64() == Some(length as f64)))
        }
        FilterOperator::Empty => {
            let length = length(left, budget)?;
            Ok(length.is_some_and(|length| right.as_bool() == Some(length == 0)))
        }
        FilterOperator::SubsetOf | FilterOperator::AnyOf | FilterOperator::NoneOf | FilterOperator::AllOf => {
            compare_lists(left, operator, right, budget)
        }
        FilterOperator::Matches => Ok(false),
    }
}

fn compare_lists(
    left: &Value,
    operator: FilterOperator,
    right: &Value,
    budget: &mut EvaluationBudget,
) -> Result<bool, BudgetOverrun> {
    let (Value::Array(left), Value::Array(right)) = (left, right) else {
        return Ok(false);
    };
    let (items, list) = match operator {
        FilterOperator::AllOf => (right, left),
        _ => (left, right),
    };
    // `all` and `subsetof` end at an item that the list lacks, the others at one that it has.
    let ends_at = matches!(operator, FilterOperator::AnyOf | FilterOperator::NoneOf);
    for item in items {
        if has(list, item, budget)? == ends_at {
            return Ok(operator == FilterOperator::AnyOf);
        }
    }
    Ok(operator != FilterOperator::AnyOf)
}

fn has(list: &[Value], value: &Value, budget: &mut EvaluationBudget) -> Result<bool, BudgetOverrun> {
    for item in list {
        if same(item, value, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn length(value: &Value, budget: &mut EvaluationBudget) -> Result<Option<usize>, BudgetOverrun> {
    Ok(match value {
        Value::Array(items) => Some(items.len()),
        Value::String(text) => {
            budget.read(text.len())?;
            Some(text.chars().count())
        }
        _ => None,
    })
}

fn same(left: &Value, right: &Value, budget: &mut EvaluationBudget) -> Result<bool, BudgetOverrun> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            budget.step(1)?;
            Ok(left == right || left.as_f64() == right.as_f64())
        }
        (Value::String(left), Value::String(right)) => {
            budget.read(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            // Equal ones are looked at to their ends.
            super::eval::size(left, budget)?;
            Ok(left == right)
        }
        _ => {
            budget.step(1)?;
            Ok(left == right)
        }
    }
}

fn ordered(
    left: &Value,
    right: &Value,
    budget: &mut EvaluationBudget,
    fits: fn(Ordering) -> bool,
) -> Result<bool, BudgetOverrun> {
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left
                .as_f64()
                .zip(right.as_f64())
                .and_then(|(left, right)| left.partial_cmp(&right)),
        },
        (Value::String(left), Value::String(right)) => {
            budget.read(left.len().min(right.len()))?;
            Some(left.cmp(right))
        }
        _ => None,
    };
    Ok(order.is_some_and(fits))
}
