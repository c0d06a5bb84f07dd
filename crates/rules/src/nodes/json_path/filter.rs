//! Conditions such as `?(@.a > 1 && @.b == 'x')`.

use std::cmp::Ordering;

use fancy_regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::JsonPath;
use super::eval::Found;

/// Steps back that matching one text may take.
const MAX_BACKTRACKS: usize = 100_000;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    /// A path leads somewhere; any other operand is taken as it is.
    Exists(Operand),
    Compare(Operand, Operator, Operand),
}

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    Value(Value),
    /// From the value that is looked at.
    Here(JsonPath),
    /// From the root.
    Root(JsonPath),
    Regex(Pattern),
}

/// A regular expression that a whole text has to match.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Pattern {
    pub(super) fn new(text: &str, flags: &str) -> Result<Self, String> {
        let flags: String = flags.chars().filter(|flag| "imsxu".contains(*flag)).collect();
        let flags = if flags.is_empty() {
            String::new()
        } else {
            format!("(?{flags})")
        };
        let regex = RegexBuilder::new(&format!(r"{flags}\A(?:{text})\z"))
            .backtrack_limit(MAX_BACKTRACKS)
            .build();
        regex.map(Self).map_err(|error| format!("`{text}`: {error}"))
    }
}

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
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

impl Operator {
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

impl Filter {
    /// Whether it holds for a value.
    pub(super) fn accepts(&self, root: &Value, here: &Value) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.accepts(root, here)),
            Self::Any(filters) => filters.iter().any(|filter| filter.accepts(root, here)),
            Self::Not(filter) => !filter.accepts(root, here),
            Self::Exists(operand @ (Operand::Here(path) | Operand::Root(path))) => {
                let start = if matches!(operand, Operand::Here(_)) {
                    here
                } else {
                    root
                };
                match path.find(root, start) {
                    Ok(Found::Many(values)) => !values.is_empty(),
                    Ok(_) => true,
                    Err(_) => false,
                }
            }
            Self::Exists(Operand::Value(value)) => *value == Value::Bool(true),
            Self::Exists(Operand::Regex(_)) => false,
            Self::Compare(left, operator, right) => compare(left, *operator, right, root, here),
        }
    }
}

impl Operand {
    fn value(&self, root: &Value, here: &Value) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value.clone()),
            Self::Here(path) => path.find_value(root, here),
            Self::Root(path) => path.find_value(root, root),
            Self::Regex(_) => None,
        }
    }
}

impl JsonPath {
    fn find_value(&self, root: &Value, from: &Value) -> Option<Value> {
        let found = self.find(root, from).ok()?;
        Some(match self.function {
            Some(function) => function.of(found),
            None => found.into_value(),
        })
    }
}

fn compare(left: &Operand, operator: Operator, right: &Operand, root: &Value, here: &Value) -> bool {
    if operator == Operator::Matches {
        return match (left, right) {
            (Operand::Regex(pattern), other) | (other, Operand::Regex(pattern)) => {
                match other.value(root, here) {
                    Some(Value::String(text)) => pattern.0.is_match(&text).unwrap_or(false),
                    _ => false,
                }
            }
            _ => false,
        };
    }
    let (left, right) = (left.value(root, here), right.value(root, here));
    let (Some(left), Some(right)) = (left, right) else {
        return matches!(operator, Operator::NotEqual | Operator::NotIn);
    };
    let ordered = |fits: fn(Ordering) -> bool| order(&left, &right).is_some_and(fits);
    let list = |value: &Value| value.as_array().cloned();
    let has = |list: &[Value], value: &Value| list.iter().any(|item| same(item, value));
    match operator {
        Operator::Equal => same(&left, &right),
        Operator::NotEqual => !same(&left, &right),
        Operator::Less => ordered(Ordering::is_lt),
        Operator::LessOrEqual => ordered(Ordering::is_le),
        Operator::Greater => ordered(Ordering::is_gt),
        Operator::GreaterOrEqual => ordered(Ordering::is_ge),
        Operator::In => list(&right).is_some_and(|list| has(&list, &left)),
        Operator::NotIn => list(&right).is_none_or(|list| !has(&list, &left)),
        Operator::Contains => match (&left, &right) {
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            (Value::Array(items), value) => has(items, value),
            _ => false,
        },
        Operator::Size => length(&left).is_some_and(|length| right.as_f64() == Some(length as f64)),
        Operator::Empty => length(&left).is_some_and(|length| right.as_bool() == Some(length == 0)),
        Operator::SubsetOf | Operator::AnyOf | Operator::NoneOf | Operator::AllOf => {
            let (Value::Array(left), Value::Array(right)) = (&left, &right) else {
                return false;
            };
            match operator {
                Operator::SubsetOf => left.iter().all(|item| has(right, item)),
                Operator::AnyOf => left.iter().any(|item| has(right, item)),
                Operator::NoneOf => !left.iter().any(|item| has(right, item)),
                _ => right.iter().all(|item| has(left, item)),
            }
        }
        Operator::Matches => false,
    }
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => Some(items.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    }
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
