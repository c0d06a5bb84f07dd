//! A field over history: what its results would have been.

use std::iter::Peekable;
use std::sync::Arc;

use fieldline_model::EntityId;
use fieldline_model::kv::Value;

use super::field::Field;
use super::outcome::{EvalError, Outcome};
use super::script::ScriptCalls;
use super::state::State;
use super::update::Update;

/// A value of the past.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoricValue {
    /// Number of its argument.
    pub argument: usize,
    /// Whose value it is.
    pub entity: EntityId,
    /// Its time, milliseconds.
    pub ts: i64,
    /// The value.
    pub value: Value,
}

/// One evaluation.
#[derive(Debug)]
pub struct Step {
    /// Its time, milliseconds: that of the value that caused it, or when it was due.
    pub now: i64,
    /// What came of it. Queries are answered by [`Field::answer`], as always.
    pub result: Result<Outcome, EvalError>,
}

/// Evaluates a field over values in the order of their times, the clock standing at the time of each. The reader of the
/// values is the caller's; an error of it is handed through.
pub struct Reprocess<I: Iterator> {
    field: Arc<Field>,
    state: State,
    values: Peekable<I>,
    now: i64,
    until: i64,
}

impl<I, E> Reprocess<I>
where
    I: Iterator<Item = Result<HistoricValue, E>>,
{
    /// Begins with a state that knows what does not come as values: defaults, related entities, zones.
    pub fn new(field: Arc<Field>, state: State, values: I, from: i64, until: i64) -> Self {
        Self {
            field,
            state,
            values: values.peekable(),
            now: from,
            until,
        }
    }

    /// The state after all steps so far.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The next evaluation with something to tell; `None` at the end.
    ///
    /// # Errors
    /// The reader's.
    pub fn step(&mut self, scripts: &mut dyn ScriptCalls) -> Option<Result<Step, E>> {
        loop {
            let value_at = match self.values.peek() {
                Some(Ok(value)) => Some(value.ts.max(self.now)).filter(|ts| *ts <= self.until),
                Some(Err(_)) => return self.values.next()?.err().map(Err),
                None => None,
            };
            let check_at = self
                .field
                .next_check(&self.state, self.now)
                .map(|at| at.max(self.now))
                .filter(|at| *at <= self.until && value_at.is_none_or(|value_at| *at < value_at));
            let evaluate = match (check_at, value_at) {
                (Some(at), _) => {
                    self.now = at;
                    Ok(true)
                }
                (None, Some(at)) => {
                    self.now = at;
                    self.take_values()
                }
                (None, None) => return None,
            };
            let result = match evaluate {
                Ok(false) => continue,
                Ok(true) => self.field.evaluate(&mut self.state, scripts, self.now),
                Err(error) => Err(error),
            };
            if result.as_ref().is_ok_and(is_quiet) {
                continue;
            }
            return Some(Ok(Step {
                now: self.now,
                result,
            }));
        }
    }

    /// Takes all values of this moment.
    fn take_values(&mut self) -> Result<bool, EvalError> {
        let now = self.now;
        let mut changed = false;
        let is_now = |value: &Result<HistoricValue, E>| value.as_ref().is_ok_and(|value| value.ts <= now);
        while let Some(Ok(value)) = self.values.next_if(is_now) {
            let update = Update::Value {
                argument: value.argument,
                entity: value.entity,
                ts: value.ts,
                value: value.value.as_ref(),
            };
            changed |= self.field.update(&mut self.state, &[update], &[], now)?;
        }
        Ok(changed)
    }
}

fn is_quiet(outcome: &Outcome) -> bool {
    outcome.outputs.is_empty() && outcome.relations.is_empty() && outcome.queries.is_empty()
}
