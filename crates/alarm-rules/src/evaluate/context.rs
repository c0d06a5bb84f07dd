//! Values as they are at one moment of an evaluation: what the event brings over what is stored.

use std::cell::RefCell;

use fieldline_model::budget::EvaluationBudget;
use fieldline_model::kv::{KvValue, KvValueRef};

use super::{AlarmInputChange, AlarmValueSource};
use crate::convert::as_text;
use crate::rules::{AlarmInputKind, AlarmRuleSet};
use crate::schedule::{AlarmSchedule, ScheduleSource};

/// What the rules see.
pub(crate) struct EvaluationContext<'a> {
    pub rules: &'a AlarmRuleSet,
    pub values: &'a dyn AlarmValueSource,
    pub overlay: &'a ChangeOverlay<'a>,
    pub now: i64,
    pub anchor_ts: i64,
    /// What the event may cost, all rules together.
    pub budget: &'a RefCell<EvaluationBudget>,
}

const INLINE: usize = 32;
const REMOVED: u32 = u32::MAX;

/// What an event changes, by need: 0 for nothing, else the position of the change plus one.
pub(crate) struct ChangeOverlay<'a> {
    changes: &'a [AlarmInputChange<'a>],
    inline: [u32; INLINE],
    large: Vec<u32>,
}

impl<'a> ChangeOverlay<'a> {
    pub(super) fn new(needs: usize, changes: &'a [AlarmInputChange<'a>]) -> Self {
        let large = if needs > INLINE {
            vec![0; needs]
        } else {
            Vec::new()
        };
        Self {
            changes,
            inline: [0; INLINE],
            large,
        }
    }

    fn slot(&mut self, need: u16) -> Option<&mut u32> {
        let slots = if self.large.is_empty() {
            &mut self.inline[..]
        } else {
            &mut self.large[..]
        };
        slots.get_mut(usize::from(need))
    }

    fn mark(&self, need: u16) -> u32 {
        let slots = if self.large.is_empty() {
            &self.inline[..]
        } else {
            &self.large[..]
        };
        slots.get(usize::from(need)).copied().unwrap_or(0)
    }

    /// Lets the change at a position count.
    pub(super) fn set(&mut self, position: usize) {
        if let Some(change) = self.changes.get(position)
            && let Some(slot) = self.slot(change.input)
        {
            *slot = position as u32 + 1;
        }
    }

    pub(super) fn remove(&mut self, need: u16) {
        if let Some(slot) = self.slot(need) {
            *slot = REMOVED;
        }
    }

    pub(super) fn change(&self, need: u16) -> Option<&AlarmInputChange<'a>> {
        self.changes.get((self.mark(need) as usize).checked_sub(1)?)
    }
}

impl<'a> EvaluationContext<'a> {
    /// Counts a look at a value.
    pub(crate) fn read(&self, value: KvValueRef<'_>) -> Result<(), String> {
        let bytes = match value {
            KvValueRef::Text(text) | KvValueRef::Json(text) => text.len(),
            _ => 0,
        };
        let counted = self.budget.borrow_mut().read(bytes);
        counted.map_err(|overrun| overrun.to_string())
    }

    /// Counts comparisons.
    pub(crate) fn step(&self, count: usize) -> Result<(), String> {
        let counted = self.budget.borrow_mut().step(count);
        counted.map_err(|overrun| overrun.to_string())
    }

    /// Counts bytes that are about to be made.
    pub(crate) fn make(&self, bytes: usize) -> Result<(), String> {
        let counted = self.budget.borrow_mut().make(bytes);
        counted.map_err(|overrun| overrun.to_string())
    }

    /// The value at a position of the needs.
    pub(crate) fn need(&self, need: u16) -> Option<(i64, KvValueRef<'a>)> {
        match self.overlay.mark(need) {
            0 => self.values.get(usize::from(need)),
            // Of a time series, an older point may remain.
            REMOVED if self.is_series(need) => self.values.get(usize::from(need)),
            REMOVED => None,
            mark => self
                .overlay
                .changes
                .get(mark as usize - 1)
                .map(|change| (change.ts, change.value)),
        }
    }

    fn is_series(&self, need: u16) -> bool {
        self.rules
            .inputs
            .get(usize::from(need))
            .is_some_and(|need| need.kind == AlarmInputKind::TimeSeries)
    }

    /// The first of several values that exists.
    pub(crate) fn first(&self, chain: &[u16]) -> Option<KvValueRef<'a>> {
        chain
            .iter()
            .find_map(|need| self.need(*need))
            .map(|(_, value)| value)
    }

    /// An argument of a calculated field, or its default.
    pub(crate) fn argument(&self, argument: u16) -> Option<(i64, KvValueRef<'a>)> {
        self.argument_or_default(argument)
            .map(|(ts, value, _)| (ts, value))
    }

    fn argument_or_default(&self, argument: u16) -> Option<(i64, KvValueRef<'a>, bool)> {
        let argument = self.rules.arguments.get(usize::from(argument))?;
        if let Some((ts, value)) = self.need(argument.need) {
            return Some((ts, value, false));
        }
        let default = argument.default.as_ref().map(KvValue::as_ref)?;
        // A value that was just deleted turns into its default now, which is an event as any other.
        let is_deleted = self.overlay.mark(argument.need) == REMOVED;
        Some((
            if is_deleted { self.now } else { self.anchor_ts },
            default,
            !is_deleted,
        ))
    }

    /// Whether every argument has a value.
    pub(super) fn is_ready(&self) -> bool {
        (0..self.rules.arguments.len() as u16).all(|argument| self.argument(argument).is_some())
    }

    /// The time of the newest argument; defaults count only where there is nothing else.
    pub(crate) fn latest_ts(&self) -> i64 {
        let mut newest: Option<i64> = None;
        let mut newest_default = -1;
        for argument in 0..self.rules.arguments.len() as u16 {
            match self.argument_or_default(argument) {
                Some((ts, _, false)) => newest = newest.max(Some(ts)),
                Some((ts, _, true)) => newest_default = newest_default.max(ts),
                None => {}
            }
        }
        newest.unwrap_or(newest_default)
    }

    pub(crate) fn required_argument(&self, argument: u16) -> Result<(i64, KvValueRef<'a>), String> {
        self.argument(argument)
            .ok_or_else(|| format!("Argument '{}' is missing", self.argument_name(argument)))
    }

    fn argument_name(&self, argument: u16) -> &str {
        self.rules
            .arguments
            .get(usize::from(argument))
            .map_or("", |argument| &*argument.name)
    }

    pub(crate) fn no_proper_value(&self, argument: u16) -> String {
        format!(
            "No proper value found for argument {}",
            self.argument_name(argument)
        )
    }

    pub(crate) fn no_number(&self, chain: &[u16], value: KvValueRef<'_>) -> String {
        let need = chain
            .first()
            .and_then(|need| self.rules.inputs.get(usize::from(*need)));
        let key = need.map_or("", |need| &*need.key);
        format!(
            "Could not convert attribute '{key}' with value '{}' to numeric value!",
            as_text(value)
        )
    }

    pub(crate) fn script(&self, expression: u16) -> Result<bool, String> {
        self.values
            .expression(usize::from(expression), &AlarmScriptArguments(self))
    }

    /// Counts a value that is about to be parsed: some ten times what comparing it takes.
    fn read_json(&self, value: KvValueRef<'_>) -> Result<(), String> {
        (0..10).try_for_each(|_| self.read(value))
    }

    /// Whether a rule is in force at a time.
    pub(super) fn is_in_force(&self, schedule: Option<&ScheduleSource>, ts: i64) -> Result<bool, String> {
        match schedule {
            None => Ok(true),
            Some(ScheduleSource::Fixed(schedule)) => Ok(schedule.is_active(ts)),
            Some(ScheduleSource::Attribute { chain, fallback }) => {
                let dynamic = self.first(chain);
                dynamic.map_or(Ok(()), |value| self.read_json(value))?;
                let dynamic = dynamic
                    .and_then(|value| AlarmSchedule::from_text(&as_text(value), Some(fallback.kind())).ok());
                Ok(dynamic.as_ref().unwrap_or(fallback).is_active(ts))
            }
            Some(ScheduleSource::Argument(argument)) => {
                let (_, value) = self.required_argument(*argument)?;
                self.read_json(value)?;
                Ok(AlarmSchedule::from_text(&as_text(value), None)?.is_active(ts))
            }
        }
    }
}

/// The arguments of a calculated field, for its scripts.
#[derive(Clone, Copy)]
pub struct AlarmScriptArguments<'a>(&'a EvaluationContext<'a>);

impl<'a> AlarmScriptArguments<'a> {
    /// Name, time and value, in the order of [`AlarmRuleSet::argument_names`].
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, i64, KvValueRef<'a>)> {
        let cx = self.0;
        cx.rules
            .arguments
            .iter()
            .enumerate()
            .filter_map(move |(position, argument)| {
                cx.argument(position as u16)
                    .map(|(ts, value)| (&*argument.name, ts, value))
            })
    }

    /// The time of the newest argument, milliseconds.
    pub fn latest_ts(&self) -> i64 {
        self.0.latest_ts()
    }
}
