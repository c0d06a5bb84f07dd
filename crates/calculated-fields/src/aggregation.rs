//! Metrics over intervals of the entity's own series.
//!
//! The state knows which intervals are open, and when values came for them; the values themselves are read when a result
//! is due. An interval is open until the watermark behind its end has passed.

use std::sync::Arc;

use fieldline_model::entity::calculated_field::{
    AggregationFunction, CalculatedFieldLimits, EntityAggregation, FieldConfigError,
};
use fieldline_model::kv::KvValue;

use super::field::CompiledField;
use super::geofencing::millis;
use super::input::FieldInput;
use super::interval::IntervalCalendar;
use super::number::{number, rounded};
use super::outcome::{FieldEvaluationError, IntervalAnswer, IntervalQuery, OutputRow};
use super::state::{ArgumentEntry, CalculatedFieldState, NEVER};
use super::update::take_slot;

/// Most open intervals an argument.
const MAX_OPEN: usize = 1_000;

/// An interval that results may still come for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenInterval {
    pub(super) start: i64,
    pub(super) end: i64,
    /// When the last value came that no result has yet, milliseconds.
    pub(super) refreshed_at: i64,
    /// When the last result was made, milliseconds.
    pub(super) evaluated_at: i64,
}

impl OpenInterval {
    fn new(start: i64, end: i64, refreshed_at: i64) -> Self {
        Self {
            start,
            end,
            refreshed_at,
            evaluated_at: NEVER,
        }
    }

    fn is_waiting(&self) -> bool {
        self.refreshed_at != NEVER || self.evaluated_at == NEVER
    }
}

#[derive(Debug)]
struct IntervalMetric {
    name: Arc<str>,
    function: AggregationFunction,
    argument: usize,
    default: Option<f64>,
}

#[derive(Debug)]
pub(super) struct IntervalAggregation {
    calendar: IntervalCalendar,
    metrics: Vec<IntervalMetric>,
    watermark_ms: i64,
    intermediate: bool,
    /// Time between two results within an interval, milliseconds.
    intermediate_ms: i64,
    /// Time between two results of values that come late, milliseconds.
    check_ms: i64,
}

impl IntervalAggregation {
    pub(super) fn new(
        configuration: &EntityAggregation,
        needs: &[FieldInput],
        limits: &CalculatedFieldLimits,
    ) -> Result<Self, FieldConfigError> {
        let mut metrics = Vec::with_capacity(configuration.metrics.len());
        for (name, metric) in &configuration.metrics {
            let key = metric.input.key.as_deref().unwrap_or_default();
            let argument = needs.iter().position(|need| *need.name == *key).ok_or_else(|| {
                FieldConfigError::new(
                    format!("configuration.metrics.{name}.input.key"),
                    format!("Metric references unknown argument: '{key}'."),
                )
            })?;
            metrics.push(IntervalMetric {
                name: name.as_str().into(),
                function: metric.function,
                argument,
                default: metric.default_value.filter(|default| default.is_finite()),
            });
        }
        Ok(Self {
            calendar: IntervalCalendar::new(&configuration.interval)?,
            metrics,
            watermark_ms: configuration
                .watermark
                .map_or(0, |watermark| millis(watermark.duration)),
            intermediate: configuration.produce_intermediate_result,
            intermediate_ms: millis(limits.intermediate_aggregation_interval_sec.max(1)),
            check_ms: millis(limits.reevaluation_interval_sec.max(1)),
        })
    }

    /// Opens the interval that holds this moment.
    fn open_current(&self, state: &mut CalculatedFieldState, now: i64) {
        for slot in &mut state.slots {
            if !matches!(slot, ArgumentEntry::Intervals(_)) {
                *slot = ArgumentEntry::Intervals(Vec::new());
            }
            let ArgumentEntry::Intervals(intervals) = slot else {
                continue;
            };
            let is_open = |interval: &OpenInterval| interval.start <= now && now < interval.end;
            if !intervals.iter().any(is_open)
                && intervals.len() < MAX_OPEN
                && let Some((start, end)) = self.calendar.bounds(now)
            {
                intervals.push(OpenInterval::new(start, end, NEVER));
            }
        }
    }

    /// Opens the intervals between the newest one that is known and now, where values may have come unseen.
    pub(super) fn restore(&self, state: &mut CalculatedFieldState, now: i64) {
        for slot in &mut state.slots {
            let ArgumentEntry::Intervals(intervals) = slot else {
                continue;
            };
            let Some(mut start) = intervals.iter().map(|interval| interval.end).max() else {
                continue;
            };
            // Intervals whose watermark has passed are of no use; the calendar finds the first that is.
            if let Some((oldest, _)) = self.calendar.bounds(now.saturating_sub(self.watermark_ms)) {
                start = start.max(oldest);
            }
            while start <= now && intervals.len() < MAX_OPEN {
                let Some(end) = self.calendar.end_of(start).filter(|end| *end > start) else {
                    break;
                };
                intervals.push(OpenInterval::new(start, end, now));
                start = end;
            }
        }
        self.open_current(state, now);
    }

    /// What has to be read for results that are due, and the results of intervals that have no values.
    pub(super) fn evaluate(
        &self,
        state: &mut CalculatedFieldState,
        needs: &[FieldInput],
        now: i64,
    ) -> (Vec<IntervalQuery>, Vec<IntervalAnswer>) {
        self.open_current(state, now);
        let (mut queries, mut empty) = (Vec::new(), Vec::new());
        for (argument, slot) in state.slots.iter_mut().enumerate() {
            let ArgumentEntry::Intervals(intervals) = slot else {
                continue;
            };
            let Some(need) = needs.get(argument) else { continue };
            intervals.retain_mut(|interval| {
                let (due, keep) = self.look(interval, now);
                if let Some(has_values) = due {
                    for query in self.queries(argument, need, interval) {
                        if has_values {
                            queries.push(query);
                        } else {
                            empty.push(IntervalAnswer { query, value: None });
                        }
                    }
                }
                keep
            });
        }
        (queries, empty)
    }

    /// Whether a result is due, and for an interval with values; and whether the interval stays open.
    fn look(&self, interval: &mut OpenInterval, now: i64) -> (Option<bool>, bool) {
        if now.saturating_sub(interval.end) > self.watermark_ms {
            let due = interval.is_waiting().then_some(interval.refreshed_at != NEVER);
            return (due, false);
        }
        let (pause, keep) = if now >= interval.end {
            (self.check_ms, self.watermark_ms > 0)
        } else if self.intermediate {
            (self.intermediate_ms, true)
        } else {
            return (None, true);
        };
        let rested = interval.evaluated_at == NEVER || interval.evaluated_at <= now.saturating_sub(pause);
        // The last look at an interval does not wait.
        if !(interval.is_waiting() && (rested || !keep)) {
            return (None, keep);
        }
        let has_values = interval.refreshed_at != NEVER;
        interval.evaluated_at = now;
        interval.refreshed_at = NEVER;
        (Some(has_values), keep)
    }

    fn queries<'p>(
        &'p self,
        argument: usize,
        need: &'p FieldInput,
        interval: &OpenInterval,
    ) -> impl Iterator<Item = IntervalQuery> + 'p {
        let (start, end) = (interval.start, interval.end);
        self.metrics
            .iter()
            .enumerate()
            .filter(move |(_, metric)| metric.argument == argument)
            .map(move |(index, metric)| IntervalQuery {
                key: need.key.clone(),
                start,
                end,
                function: metric.function,
                metric: index,
            })
    }

    /// When something is due next after this moment, milliseconds.
    pub(super) fn next_check(&self, state: &CalculatedFieldState, now: i64) -> Option<i64> {
        state
            .slots
            .iter()
            .filter_map(|slot| match slot {
                ArgumentEntry::Intervals(intervals) => intervals
                    .iter()
                    .map(|interval| self.next_look(interval, now))
                    .min(),
                _ => None,
            })
            .min()
    }

    /// At the end of an interval the next one opens, so that each is looked at then.
    fn next_look(&self, interval: &OpenInterval, now: i64) -> i64 {
        let soon = now.saturating_add(1);
        let rested = |pause: i64| match interval.evaluated_at {
            NEVER => soon,
            last => last.saturating_add(pause).max(soon),
        };
        if now < interval.end {
            return if self.intermediate && interval.is_waiting() {
                rested(self.intermediate_ms).min(interval.end)
            } else {
                interval.end
            };
        }
        let closes = interval
            .end
            .saturating_add(self.watermark_ms)
            .saturating_add(1)
            .max(soon);
        if interval.is_waiting() {
            rested(self.check_ms).min(closes)
        } else {
            closes
        }
    }

    /// One row an interval of what was read.
    pub(super) fn rows(
        &self,
        answers: &[IntervalAnswer],
        decimals: Option<i32>,
    ) -> Result<Vec<OutputRow>, FieldEvaluationError> {
        let mut rows: Vec<OutputRow> = Vec::new();
        for answer in answers {
            let Some(metric) = self.metrics.get(answer.query.metric) else {
                continue;
            };
            let value = match (&answer.value, metric.default) {
                (Some(value), _) => result(value, decimals)?,
                (None, Some(default)) => rounded(default, decimals)?,
                (None, None) => continue,
            };
            let ts = Some(answer.query.start);
            let entry = (metric.name.clone(), value);
            match rows.iter_mut().find(|row| row.ts == ts) {
                Some(row) => row.values.push(entry),
                None => rows.push(OutputRow {
                    ts,
                    values: vec![entry],
                }),
            }
        }
        rows.sort_by_key(|row| row.ts);
        Ok(rows)
    }
}

/// Numbers are rounded; the smallest and largest of texts are texts.
fn result(value: &KvValue, decimals: Option<i32>) -> Result<KvValue, FieldEvaluationError> {
    match value {
        KvValue::Long(_) | KvValue::Double(_) => {
            rounded(number(value.as_ref()).unwrap_or(f64::NAN), decimals)
        }
        other => Ok(other.clone()),
    }
}

impl CompiledField {
    /// Notes that the series has a new point at a time.
    pub(super) fn take_point(
        &self,
        state: &mut CalculatedFieldState,
        argument: usize,
        need: &FieldInput,
        ts: i64,
        now: i64,
    ) -> Result<bool, FieldEvaluationError> {
        let Some(plan) = self.aggregation() else {
            return Err(FieldEvaluationError::WrongArgument(argument));
        };
        plan.open_current(state, now);
        let mut intervals = match take_slot(state, argument) {
            ArgumentEntry::Intervals(intervals) => intervals,
            _ => Vec::new(),
        };
        let known = intervals
            .iter_mut()
            .find(|interval| interval.start <= ts && ts < interval.end);
        let taken = match known {
            Some(interval) => {
                interval.refreshed_at = now;
                Ok(true)
            }
            None => match plan.calendar.bounds(ts) {
                Some((_, end)) if now.saturating_sub(end) > plan.watermark_ms => Ok(false),
                Some(_) if intervals.len() >= MAX_OPEN => {
                    Err(FieldEvaluationError::TooManyIntervals(need.name.clone()))
                }
                Some((start, end)) => {
                    intervals.push(OpenInterval::new(start, end, now));
                    Ok(true)
                }
                None => Ok(false),
            },
        };
        if let Some(slot) = state.slots.get_mut(argument) {
            *slot = ArgumentEntry::Intervals(intervals);
        }
        taken
    }
}
