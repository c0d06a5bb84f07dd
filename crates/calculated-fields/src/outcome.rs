//! What an evaluation says is to be done.

use std::fmt::Write as _;
use std::sync::Arc;

use fieldline_model::entity::calculated_field::{AggregationFunction, OutputStrategy};
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CalculatedFieldId, EntityId};

/// Why a field has no result, or a value was not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FieldEvaluationError {
    /// An argument has to be a number and is not.
    #[error("Argument '{0}' is not a number.")]
    NotANumber(Arc<str>),
    /// A number is infinite or undefined.
    #[error("The result is not a finite number.")]
    NotFinite,
    /// The expression divides by zero.
    #[error("{0}")]
    Undefined(#[from] fieldline_model::expression::EvaluationError),
    /// The script failed.
    #[error("{0}")]
    Script(String),
    /// The script has returned something that is no result.
    #[error("The script must return {0}")]
    ScriptResult(&'static str),
    /// A single value is too large.
    #[error(
        "Single value size exceeds the maximum allowed limit. The argument '{0}' will not be used for calculation."
    )]
    ValueTooLarge(Arc<str>),
    /// The state is too large.
    #[error("State size exceeds limit of {0}Kb!")]
    StateTooLarge(u64),
    /// There are too many related entities.
    #[error(
        "Number of related entities exceeds the maximum allowed limit '{0}'. Increase the limit in the tenant profile \
         configuration."
    )]
    TooManyEntities(u64),
    /// A value cannot be aggregated.
    #[error("Cannot parse value {0}")]
    Unparsable(String),
    /// An attribute is no perimeter.
    #[error("Invalid perimeter definition format for Zone with id: {zone}. {problem}")]
    Perimeter {
        /// The zone.
        zone: EntityId,
        /// What is wrong.
        problem: String,
    },
    /// Values are so far apart that too many intervals would be open.
    #[error("Too many open intervals of argument '{0}'")]
    TooManyIntervals(Arc<str>),
    /// There is no argument of that number, or it takes other updates.
    #[error("Argument {0} does not take this update")]
    WrongArgument(usize),
}

/// What results become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// Points of series.
    TimeSeries,
    /// Attributes of this scope.
    Attributes(AttributeScope),
}

/// Whose the results are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputTargets {
    /// Of the entity that was evaluated.
    Own,
    /// Of these.
    Entities(Vec<EntityId>),
}

/// Values of one time.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRow {
    /// Their time, milliseconds; that of storing them where absent. Of no meaning to attributes.
    pub ts: Option<i64>,
    /// The values by their names.
    pub values: Vec<(Arc<str>, KvValue)>,
}

/// Results.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Whose they are.
    pub targets: OutputTargets,
    /// What they become.
    pub kind: OutputKind,
    /// How they are stored.
    pub strategy: OutputStrategy,
    /// The values.
    pub rows: Vec<OutputRow>,
}

impl Output {
    /// The results as the body of a message: `{"key": value}`, `{"ts", "values"}`, or an array of the latter.
    pub fn message_body(&self) -> String {
        let mut out = String::new();
        if let (OutputKind::TimeSeries, [_, _, ..]) = (self.kind, self.rows.as_slice()) {
            out.push('[');
            for (index, row) in self.rows.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_row(row, true, &mut out);
            }
            out.push(']');
            return out;
        }
        match self.rows.first() {
            Some(row) => write_row(row, self.kind == OutputKind::TimeSeries, &mut out),
            None => out.push_str("{}"),
        }
        out
    }
}

fn write_row(row: &OutputRow, timed: bool, out: &mut String) {
    let ts = row.ts.filter(|_| timed);
    if let Some(ts) = ts {
        // Writing to a string cannot fail.
        let _ = write!(out, "{{\"ts\":{ts},\"values\":");
    }
    out.push('{');
    for (index, (key, value)) in row.values.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        fieldline_model::json::write_string(key, out);
        out.push(':');
        value.as_ref().write_json(out);
    }
    out.push('}');
    if ts.is_some() {
        out.push('}');
    }
}

/// A relation that has to be made or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationChange {
    /// Where it starts.
    pub from: EntityId,
    /// Where it ends.
    pub to: EntityId,
    /// Its type, in the common group.
    pub relation_type: Arc<str>,
    /// Whether it has to be there.
    pub exists: bool,
}

/// An aggregate that the caller has to read from the entity's series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalQuery {
    /// Name of the series.
    pub key: Arc<str>,
    /// First time of the interval, milliseconds.
    pub start: i64,
    /// First time behind it, milliseconds.
    pub end: i64,
    /// How its values become one.
    pub function: AggregationFunction,
    /// Number of the metric.
    pub(super) metric: usize,
}

/// What was read for a query.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalAnswer {
    /// The query.
    pub query: IntervalQuery,
    /// The aggregate; `None` for an interval without values.
    pub value: Option<KvValue>,
}

/// What an evaluation says is to be done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldOutcome {
    /// Results.
    pub outputs: Vec<Output>,
    /// Relations.
    pub relations: Vec<RelationChange>,
    /// What has to be read and handed to [`super::CompiledField::answer`] for further results.
    pub queries: Vec<IntervalQuery>,
    /// The fields that have taken part in making the results, this one included: they go along with the results.
    pub previous: Vec<CalculatedFieldId>,
    /// Why there is no result, for people who look for mistakes.
    pub not_ready: Option<String>,
    /// When to evaluate again though nothing has changed, milliseconds.
    pub next_check: Option<i64>,
}
