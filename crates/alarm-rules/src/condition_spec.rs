//! How long or how often a condition must hold.

use super::evaluate::EvaluationContext;
use super::parse::DurationUnit;
use super::predicate::AlarmOperand;

#[derive(Debug)]
pub(super) enum AlarmConditionSpec {
    Simple,
    Duration {
        unit: DurationUnit,
        value: AlarmOperand<i64>,
    },
    Repeating {
        count: AlarmOperand<i64>,
    },
}

impl AlarmConditionSpec {
    /// A stable number of the type, part of a rule's identity.
    pub(super) const fn code(&self) -> u8 {
        match self {
            Self::Simple => 0,
            Self::Duration { .. } => 1,
            Self::Repeating { .. } => 2,
        }
    }

    /// Milliseconds or repeats that are required; 0 for a simple condition.
    pub(super) fn required(&self, cx: &EvaluationContext<'_>) -> Result<i64, String> {
        match self {
            Self::Simple => Ok(0),
            Self::Duration { unit, value } => Ok(unit.millis(value.count(cx)?)),
            Self::Repeating { count } => count.count(cx),
        }
    }
}
