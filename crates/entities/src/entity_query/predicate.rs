//! Conditions, ready to be tried on one value after the other.

use std::borrow::Cow;

use fieldline_model::kv::KvValueRef;
use fieldline_model::query::{BooleanOperation, ComplexOperation, NumericOperation, StringOperation};

/// What a condition is tried on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PredicateOperand<'a> {
    /// There is no such value at all.
    Absent,
    /// A field that the entity may lack.
    Text(Option<Cow<'a, str>>),
    /// A field that is a time.
    Time(i64),
    /// An attribute or latest value.
    Value(KvValueRef<'a>),
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValuePredicate {
    Text {
        operation: StringOperation,
        /// One text, or the list of `IN`; lower-case where case does not matter.
        texts: Vec<String>,
        ignore_case: bool,
    },
    Number(NumericOperation, f64),
    Flag(BooleanOperation, bool),
    Every(Vec<ValuePredicate>),
    Some(Vec<ValuePredicate>),
}

impl ValuePredicate {
    /// A condition on a text; `None` where it is compared with nothing, which lets everything through.
    pub(super) fn text(operation: StringOperation, value: &str, ignore_case: bool) -> Option<Self> {
        if value.is_empty() {
            return None;
        }
        let value = if ignore_case {
            value.to_lowercase()
        } else {
            value.to_owned()
        };
        let texts = if operation.takes_list() {
            list(&value)
        } else {
            vec![value]
        };
        Some(Self::Text {
            operation,
            texts,
            ignore_case,
        })
    }

    /// Conditions together; `None` where there is none.
    pub(super) fn joined(operation: ComplexOperation, mut parts: Vec<Self>) -> Option<Self> {
        match (parts.len(), operation) {
            (0, _) => None,
            (1, _) => parts.pop(),
            (_, ComplexOperation::And) => Some(Self::Every(parts)),
            (_, ComplexOperation::Or) => Some(Self::Some(parts)),
        }
    }

    /// Whether it holds.
    pub(super) fn holds(&self, operand: &PredicateOperand<'_>) -> bool {
        match self {
            Self::Every(parts) => parts.iter().all(|part| part.holds(operand)),
            Self::Some(parts) => parts.iter().any(|part| part.holds(operand)),
            Self::Number(operation, value) => {
                number(operand).is_some_and(|number| operation.holds(number, *value))
            }
            Self::Flag(operation, value) => {
                flag(operand).is_some_and(|flag| (flag == *value) == (*operation == BooleanOperation::Equal))
            }
            Self::Text {
                operation,
                texts,
                ignore_case,
            } => text_holds(*operation, texts, *ignore_case, operand),
        }
    }
}

/// A list with commas between its texts, which may be quoted.
fn list(text: &str) -> Vec<String> {
    let plain = |item: &str| item.trim().trim_matches(['\'', '"']).to_owned();
    text.split(',').map(plain).collect()
}

fn number(operand: &PredicateOperand<'_>) -> Option<f64> {
    match operand {
        PredicateOperand::Time(time) => Some(*time as f64),
        PredicateOperand::Value(value) => value.as_number(),
        PredicateOperand::Text(text) => text.as_deref()?.trim().parse().ok(),
        PredicateOperand::Absent => None,
    }
}

fn flag(operand: &PredicateOperand<'_>) -> Option<bool> {
    match operand {
        PredicateOperand::Value(KvValueRef::Bool(flag)) => Some(*flag),
        PredicateOperand::Text(Some(text)) => text.parse().ok(),
        _ => None,
    }
}

fn text_holds(
    operation: StringOperation,
    texts: &[String],
    ignore_case: bool,
    operand: &PredicateOperand<'_>,
) -> bool {
    let text: Cow<'_, str> = match operand {
        PredicateOperand::Text(Some(text)) => Cow::Borrowed(text),
        PredicateOperand::Value(KvValueRef::Text(text)) => Cow::Borrowed(text),
        PredicateOperand::Time(time) => time.to_string().into(),
        // What is no text is not equal to one, and contains none.
        PredicateOperand::Absent | PredicateOperand::Text(None) | PredicateOperand::Value(_) => {
            return matches!(
                operation,
                StringOperation::NotEqual | StringOperation::NotContains
            );
        }
    };
    let text: Cow<'_, str> = if ignore_case && !is_lower(&text) {
        text.to_lowercase().into()
    } else {
        text
    };
    operation.holds(&text, texts)
}

fn is_lower(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}

/// How a name must begin, regardless of case; `%` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePattern {
    /// What stands between the `%`, in lower case.
    parts: Vec<String>,
}

impl NamePattern {
    /// A beginning, or a pattern where there is a `%` at an end.
    pub(super) fn new(text: &str) -> Self {
        let is_pattern = text.starts_with('%') || text.ends_with('%');
        let mut parts: Vec<String> = text.to_lowercase().split('%').map(str::to_owned).collect();
        if !is_pattern {
            parts.push(String::new());
        }
        Self { parts }
    }

    /// Whether a name is like this.
    pub(super) fn fits(&self, name: &str) -> bool {
        let name: Cow<'_, str> = if is_lower(name) {
            name.into()
        } else {
            name.to_lowercase().into()
        };
        let Some((first, rest)) = self.parts.split_first() else {
            return true;
        };
        let Some(mut left) = name.strip_prefix(first.as_str()) else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return left.is_empty();
        };
        for part in middle {
            let Some(at) = left.find(part.as_str()) else {
                return false;
            };
            left = left.get(at + part.len()..).unwrap_or_default();
        }
        left.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> PredicateOperand<'_> {
        PredicateOperand::Text(Some(text.into()))
    }

    fn try_text(
        operation: StringOperation,
        value: &str,
        ignore_case: bool,
        operand: &PredicateOperand<'_>,
    ) -> bool {
        ValuePredicate::text(operation, value, ignore_case).is_none_or(|test| test.holds(operand))
    }

    #[test]
    fn texts_are_compared_with_or_without_case() {
        use StringOperation as Op;
        let cases = [
            (Op::Equal, "Pump", false, true),
            (Op::Equal, "pump", false, false),
            (Op::Equal, "pUMP", true, true),
            (Op::NotEqual, "pump", false, true),
            (Op::StartsWith, "Pu", false, true),
            (Op::EndsWith, "MP", true, true),
            (Op::Contains, "um", false, true),
            (Op::NotContains, "um", false, false),
            (Op::In, "valve, 'Pump'", false, true),
            (Op::NotIn, "valve,PUMP", true, false),
            (Op::Equal, "", false, true),
        ];
        for (operation, value, ignore_case, expected) in cases {
            let held = try_text(operation, value, ignore_case, &text("Pump"));
            assert_eq!(held, expected, "{operation:?} {value}");
        }
    }

    #[test]
    fn what_is_no_text_is_only_unequal() {
        for operand in [
            PredicateOperand::Absent,
            PredicateOperand::Text(None),
            PredicateOperand::Value(KvValueRef::Long(1)),
        ] {
            assert!(try_text(StringOperation::NotEqual, "a", false, &operand));
            assert!(try_text(StringOperation::NotContains, "a", false, &operand));
            assert!(!try_text(StringOperation::Equal, "a", false, &operand));
            assert!(!try_text(StringOperation::NotIn, "a", false, &operand));
        }
    }

    #[test]
    fn numbers_of_both_kinds_are_compared_and_nothing_else() {
        let more = ValuePredicate::Number(NumericOperation::Greater, 5.0);
        assert!(more.holds(&PredicateOperand::Value(KvValueRef::Long(6))));
        assert!(more.holds(&PredicateOperand::Value(KvValueRef::Double(5.5))));
        assert!(!more.holds(&PredicateOperand::Value(KvValueRef::Double(5.0))));
        assert!(!more.holds(&PredicateOperand::Value(KvValueRef::Text("6"))));
        assert!(!ValuePredicate::Number(NumericOperation::NotEqual, 5.0).holds(&PredicateOperand::Absent));
        assert!(
            ValuePredicate::Flag(BooleanOperation::NotEqual, true)
                .holds(&PredicateOperand::Value(KvValueRef::Bool(false)))
        );
        assert!(
            !ValuePredicate::Flag(BooleanOperation::Equal, true)
                .holds(&PredicateOperand::Value(KvValueRef::Long(1)))
        );
    }

    #[test]
    fn names_begin_like_this_or_fit_a_pattern() {
        let fits = |pattern: &str, name: &str| NamePattern::new(pattern).fits(name);
        assert!(fits("dev", "Device 1"));
        assert!(fits("", "anything"));
        assert!(!fits("ev", "Device 1"));
        assert!(fits("%ICE%", "Device 1"));
        assert!(fits("%1", "Device 1"));
        assert!(!fits("%1", "Device 12"));
        assert!(fits("d%1%", "Device 12"));
        assert!(fits("%a%a", "aa"));
        assert!(!fits("%ab%ab", "ab"));
    }
}
