//! Metrics: many values become one.

use std::collections::BTreeSet;

use fieldline_model::entity::calculated_field::AggregationFunction;
use fieldline_model::kv::KvValue;

use super::number::{ExactDecimal, rounded};
use super::outcome::FieldEvaluationError;

/// Most different values that COUNT_UNIQUE tells apart.
const MAX_UNIQUE: usize = 100_000;

/// A metric under way.
#[derive(Debug)]
pub(super) struct MetricAccumulator {
    function: AggregationFunction,
    count: u64,
    /// The smallest or largest number.
    extreme: f64,
    sum: f64,
    /// The same sum without the errors of binary fractions, as long as it fits.
    exact: Option<ExactDecimal>,
    unique: BTreeSet<String>,
}

impl MetricAccumulator {
    pub(super) fn new(function: AggregationFunction) -> Self {
        Self {
            function,
            count: 0,
            extreme: f64::NAN,
            sum: 0.0,
            exact: Some(ExactDecimal::ZERO),
            unique: BTreeSet::new(),
        }
    }

    /// Takes one more value.
    pub(super) fn add(&mut self, value: &KvValue) -> Result<(), FieldEvaluationError> {
        use AggregationFunction as F;
        match self.function {
            F::Count => {}
            F::CountUnique => {
                if self.unique.len() < MAX_UNIQUE {
                    self.unique.insert(value.to_text());
                }
            }
            F::Min | F::Max | F::Sum | F::Avg => self.add_number(numeric(value)?),
        }
        self.count += 1;
        Ok(())
    }

    fn add_number(&mut self, number: f64) {
        let beats = match self.function {
            AggregationFunction::Min => number < self.extreme,
            _ => number > self.extreme,
        };
        if beats || self.extreme.is_nan() {
            self.extreme = number;
        }
        self.sum += number;
        self.exact = self
            .exact
            .and_then(|sum| sum.checked_add(ExactDecimal::from_f64(number)?));
    }

    /// The result; counts have one without values, too.
    pub(super) fn result(&self, decimals: Option<i32>) -> Result<Option<KvValue>, FieldEvaluationError> {
        use AggregationFunction as F;
        let sum = || self.exact.map_or(self.sum, ExactDecimal::to_f64);
        let number = match self.function {
            F::Count => return Ok(Some(KvValue::Long(i64::try_from(self.count).unwrap_or(i64::MAX)))),
            F::CountUnique => return Ok(Some(KvValue::Long(self.unique.len() as i64))),
            _ if self.count == 0 => return Ok(None),
            F::Min | F::Max => self.extreme,
            F::Sum => sum(),
            F::Avg => sum() / self.count as f64,
        };
        rounded(number, decimals).map(Some)
    }
}

/// Flags are no numbers here.
fn numeric(value: &KvValue) -> Result<f64, FieldEvaluationError> {
    let number = match value {
        KvValue::Bool(_) => None,
        other => super::number::number(other.as_ref()),
    };
    number.ok_or_else(|| FieldEvaluationError::Unparsable(value.to_text().chars().take(64).collect()))
}
