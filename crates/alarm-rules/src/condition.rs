//! The condition of a rule: filters over values, or a script.

use fieldline_model::kv::{KvValue, KvValueRef};

use super::evaluate::EvaluationContext;
use super::predicate::AlarmPredicate;

#[derive(Debug)]
pub(super) enum AlarmCondition {
    All(Box<[ConditionFilter]>),
    Any(Box<[ConditionFilter]>),
    /// A TBEL expression, by its position.
    Script(u16),
}

#[derive(Debug)]
pub(super) struct ConditionFilter {
    pub subject: FilterInput,
    pub predicate: AlarmPredicate,
}

/// The value that a filter looks at.
#[derive(Debug)]
pub(super) enum FilterInput {
    Need(u16),
    /// `None` for a constant that is not of its type, which makes the filter false.
    Constant(Option<KvValue>),
    Argument(u16),
}

impl FilterInput {
    pub(super) fn value<'a>(&'a self, cx: &EvaluationContext<'a>) -> Option<(i64, KvValueRef<'a>)> {
        match self {
            Self::Need(need) => cx.need(*need),
            Self::Constant(value) => value.as_ref().map(|value| (cx.now, value.as_ref())),
            Self::Argument(argument) => cx.argument(*argument),
        }
    }
}

impl ConditionFilter {
    fn holds(&self, cx: &EvaluationContext<'_>) -> Result<bool, String> {
        match self.subject.value(cx) {
            Some(value) => self.predicate.holds(value, cx),
            None => Ok(false),
        }
    }
}

impl AlarmCondition {
    pub(super) fn holds(&self, cx: &EvaluationContext<'_>) -> Result<bool, String> {
        match self {
            Self::All(filters) => {
                for filter in filters {
                    if !filter.holds(cx)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(filters) => {
                for filter in filters {
                    if filter.holds(cx)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Script(expression) => cx.script(*expression),
        }
    }

    fn filters(&self) -> &[ConditionFilter] {
        match self {
            Self::All(filters) | Self::Any(filters) => filters,
            Self::Script(_) => &[],
        }
    }

    /// Whether time alone can make it true.
    pub(super) fn watches_silence(&self) -> bool {
        self.filters()
            .iter()
            .any(|filter| filter.predicate.watches_silence())
    }

    /// The next time after now at which a watched silence grows long enough.
    pub(super) fn next_silence(&self, cx: &EvaluationContext<'_>) -> Option<i64> {
        let next = |filter: &ConditionFilter| filter.predicate.next_silence(filter.subject.value(cx)?.0, cx);
        self.filters().iter().filter_map(next).min()
    }
}
