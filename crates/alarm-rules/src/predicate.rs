//! Comparisons of a value with something fixed, or with another value.

use std::borrow::Cow;

use fieldline_model::kv::KvValueRef;
use fieldline_model::query::{NumericOperation, StringOperation};

use super::convert::{as_bool, as_double, as_long, as_text, lower, same_double};
use super::evaluate::EvaluationContext;
use super::parse::{ConfigCursor, ConfigResult, DurationUnit, FromConfig};

/// Deepest nesting of COMPLEX predicates.
const MAX_DEPTH: usize = 16;
/// Most predicates in one list.
pub(super) const MAX_LIST: usize = 256;

/// What a value is compared with.
#[derive(Debug)]
pub(super) enum AlarmOperand<T> {
    Fixed(Option<T>),
    /// The first attribute of the chain that exists; the fallback where none does.
    Attribute {
        chain: Box<[u16]>,
        fallback: Option<T>,
    },
    Argument(u16),
}

/// Text to compare with, prepared for its operation.
#[derive(Debug)]
pub(super) struct ComparisonText {
    /// One, or the elements of the list for `IN` and `NOT_IN`.
    texts: Box<[Box<str>]>,
}

#[derive(Debug)]
pub(super) enum AlarmPredicate {
    Number {
        op: NumericOperation,
        value: AlarmOperand<f64>,
    },
    Flag {
        equal: bool,
        value: AlarmOperand<bool>,
    },
    Text {
        op: StringOperation,
        ignore_case: bool,
        value: AlarmOperand<ComparisonText>,
    },
    /// No new value for so long.
    NoData {
        unit: DurationUnit,
        value: AlarmOperand<i64>,
    },
    All(Box<[AlarmPredicate]>),
    Any(Box<[AlarmPredicate]>),
}

/// How a form writes down operands.
pub(super) trait OperandParser {
    /// Whether NO_DATA exists in this form.
    const NO_DATA: bool;

    fn operand<T: FromConfig>(&mut self, at: &ConfigCursor<'_>) -> ConfigResult<AlarmOperand<T>>;
}

impl<T> AlarmOperand<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> AlarmOperand<U> {
        match self {
            Self::Fixed(value) => AlarmOperand::Fixed(value.map(change)),
            Self::Attribute { chain, fallback } => AlarmOperand::Attribute {
                chain,
                fallback: fallback.map(change),
            },
            Self::Argument(argument) => AlarmOperand::Argument(argument),
        }
    }
}

impl<T: Copy> AlarmOperand<T> {
    /// The value. An attribute of another type counts as absent; an argument of another type is an error.
    fn resolve(
        &self,
        cx: &EvaluationContext<'_>,
        convert: impl Fn(KvValueRef<'_>) -> Option<T>,
    ) -> Result<Option<T>, String> {
        match self {
            Self::Fixed(value) => Ok(*value),
            Self::Attribute { chain, fallback } => {
                let value = cx.first(chain);
                value.map_or(Ok(()), |value| cx.read(value))?;
                Ok(value.and_then(convert).or(*fallback))
            }
            Self::Argument(argument) => {
                let (_, value) = cx.required_argument(*argument)?;
                cx.read(value)?;
                convert(value)
                    .map(Some)
                    .ok_or_else(|| cx.no_proper_value(*argument))
            }
        }
    }
}

impl AlarmOperand<i64> {
    /// A count. A value that is no whole number is an error in both forms.
    pub(super) fn count(&self, cx: &EvaluationContext<'_>) -> Result<i64, String> {
        match self {
            Self::Attribute { chain, fallback } => match cx.first(chain) {
                None => Ok(fallback.unwrap_or(0)),
                Some(value) => as_long(value).ok_or_else(|| cx.no_number(chain, value)),
            },
            other => Ok(other.resolve(cx, as_long)?.unwrap_or(0)),
        }
    }
}

impl AlarmPredicate {
    pub(super) fn parse(
        at: &ConfigCursor<'_>,
        operands: &mut impl OperandParser,
        depth: usize,
    ) -> ConfigResult<Self> {
        if depth > MAX_DEPTH {
            return at.error(format_args!("is nested deeper than {MAX_DEPTH}"));
        }
        let kind = at.field("type");
        let value = at.field("value");
        match kind.text()?.as_str() {
            "NUMERIC" => Ok(Self::Number {
                op: number_operation(&at.field("operation"))?,
                value: operands.operand(&value)?,
            }),
            "BOOLEAN" => Ok(Self::Flag {
                equal: at
                    .field("operation")
                    .one_of(&[("EQUAL", true), ("NOT_EQUAL", false)])?,
                value: operands.operand(&value)?,
            }),
            "STRING" => {
                let op = text_operation(&at.field("operation"))?;
                let ignore_case = at.field("ignoreCase").flag()?;
                let value: AlarmOperand<String> = operands.operand(&value)?;
                Ok(Self::Text {
                    op,
                    ignore_case,
                    value: value.map(|text| ComparisonText::new(Cow::Owned(text), op, ignore_case)),
                })
            }
            "NO_DATA" if may_watch_silence(operands) => Ok(Self::NoData {
                unit: at.field("unit").unit()?,
                value: operands.operand(&at.field("duration"))?,
            }),
            "COMPLEX" => {
                let list = at.field("predicates");
                let parts = Self::parse_list(&list, operands, depth + 1)?;
                let any = at.field("operation").one_of(&[("AND", false), ("OR", true)])?;
                Ok(if any { Self::Any(parts) } else { Self::All(parts) })
            }
            other => kind.error(format_args!(
                "`{}` is no type of predicate",
                super::parse::shortened(other)
            )),
        }
    }

    pub(super) fn parse_list(
        at: &ConfigCursor<'_>,
        operands: &mut impl OperandParser,
        depth: usize,
    ) -> ConfigResult<Box<[Self]>> {
        at.list(MAX_LIST)?
            .iter()
            .map(|part| Self::parse(part, operands, depth))
            .collect()
    }

    /// Whether it holds for a value and its time.
    pub(super) fn holds(
        &self,
        subject: (i64, KvValueRef<'_>),
        cx: &EvaluationContext<'_>,
    ) -> Result<bool, String> {
        cx.read(subject.1)?;
        match self {
            Self::Number { op, value } => {
                let Some(left) = as_double(subject.1) else {
                    return Ok(false);
                };
                let right = value.resolve(cx, as_double)?;
                Ok(right.is_some_and(|right| compare(*op, left, right)))
            }
            Self::Flag { equal, value } => {
                let form = cx.rules.form;
                let right = value.resolve(cx, |value| Some(as_bool(value, form)))?;
                Ok(right.is_some_and(|right| (as_bool(subject.1, form) == right) == *equal))
            }
            Self::Text {
                op,
                ignore_case,
                value,
            } => text_holds(subject.1, *op, *ignore_case, value, cx),
            Self::NoData { unit, value } => {
                let count = value.count(cx)?;
                Ok(count > 0 && cx.now.saturating_sub(subject.0) >= unit.millis(count))
            }
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(subject, cx)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(subject, cx)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    pub(super) fn watches_silence(&self) -> bool {
        match self {
            Self::NoData { .. } => true,
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::watches_silence),
            _ => false,
        }
    }

    /// The next time at which a silence that began at `since` grows long enough, after now.
    pub(super) fn next_silence(&self, since: i64, cx: &EvaluationContext<'_>) -> Option<i64> {
        match self {
            Self::NoData { unit, value } => {
                let count = value.count(cx).ok().filter(|count| *count > 0)?;
                Some(since.saturating_add(unit.millis(count))).filter(|at| *at > cx.now)
            }
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().filter_map(|part| part.next_silence(since, cx)).min()
            }
            _ => None,
        }
    }
}

fn text_holds(
    value: KvValueRef<'_>,
    op: StringOperation,
    ignore_case: bool,
    operand: &AlarmOperand<ComparisonText>,
    cx: &EvaluationContext<'_>,
) -> Result<bool, String> {
    let fold = |text| if ignore_case { lower(text) } else { text };
    let holds = |needle: &Option<ComparisonText>| -> Result<bool, String> {
        let Some(needle) = needle else { return Ok(false) };
        cx.step(needle.texts.len() / 8)?;
        Ok(op.holds(&fold(as_text(value)), &needle.texts))
    };
    let other = match operand {
        AlarmOperand::Fixed(needle) => return holds(needle),
        AlarmOperand::Attribute { chain, fallback } => match cx.first(chain) {
            Some(other) => other,
            None => return holds(fallback),
        },
        AlarmOperand::Argument(argument) => cx.required_argument(*argument)?.1,
    };
    // Once for each of its letters that may be a comma.
    (0..4).try_for_each(|_| cx.read(other))?;
    let (value, other) = (fold(as_text(value)), fold(as_text(other)));
    Ok(if op.takes_list() {
        op.holds(&value, &split_list(&other))
    } else {
        op.holds(&value, &[other])
    })
}

impl ComparisonText {
    fn new(text: Cow<'_, str>, op: StringOperation, ignore_case: bool) -> Self {
        let text = if ignore_case { lower(text) } else { text };
        let texts = if op.takes_list() {
            split_list(&text)
        } else {
            Box::new([Box::from(text)])
        };
        Self { texts }
    }
}

fn number_operation(at: &ConfigCursor<'_>) -> ConfigResult<NumericOperation> {
    at.one_of(&[
        ("EQUAL", NumericOperation::Equal),
        ("NOT_EQUAL", NumericOperation::NotEqual),
        ("GREATER", NumericOperation::Greater),
        ("LESS", NumericOperation::Less),
        ("GREATER_OR_EQUAL", NumericOperation::GreaterOrEqual),
        ("LESS_OR_EQUAL", NumericOperation::LessOrEqual),
    ])
}

/// Numbers are equal as boxed ones are.
fn compare(op: NumericOperation, left: f64, right: f64) -> bool {
    match op {
        NumericOperation::Equal => same_double(left, right),
        NumericOperation::NotEqual => !same_double(left, right),
        _ => op.holds(left, right),
    }
}

fn text_operation(at: &ConfigCursor<'_>) -> ConfigResult<StringOperation> {
    at.one_of(&[
        ("EQUAL", StringOperation::Equal),
        ("NOT_EQUAL", StringOperation::NotEqual),
        ("STARTS_WITH", StringOperation::StartsWith),
        ("ENDS_WITH", StringOperation::EndsWith),
        ("CONTAINS", StringOperation::Contains),
        ("NOT_CONTAINS", StringOperation::NotContains),
        ("IN", StringOperation::In),
        ("NOT_IN", StringOperation::NotIn),
    ])
}

/// Elements between commas. Quotes around them are taken off where all have the same kind.
fn split_list(text: &str) -> Box<[Box<str>]> {
    let plain: Vec<&str> = text.split(',').map(str::trim).collect();
    let quote = plain.first().and_then(|first| first.chars().next());
    let unquoted = quote
        .filter(|quote| matches!(quote, '\'' | '"'))
        .and_then(|quote| {
            plain
                .iter()
                .map(|element| element.strip_prefix(quote)?.strip_suffix(quote))
                .collect::<Option<Vec<&str>>>()
        });
    unquoted.unwrap_or(plain).into_iter().map(Box::from).collect()
}

const fn may_watch_silence<O: OperandParser>(_: &O) -> bool {
    O::NO_DATA
}
