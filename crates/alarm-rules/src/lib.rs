//! Alarm rules: one evaluator for both forms of the field, `profileData.alarms` of a device profile and calculated
//! fields of type ALARM.
//!
//! [`AlarmRuleSet`] is a configuration, checked and compiled once. [`AlarmRuleState`] is what one originator has under one rule set:
//! counters, running durations and active alarms; a few bytes while nothing goes on. [`evaluate`] applies one [`AlarmRuleEvent`]
//! and says what to do with alarms and when to look again. There is no I/O here: current values come through [`AlarmValueSource`],
//! time through a parameter.
//!
//! What the two forms do differently:
//!
//! | | device profile | calculated field |
//! |---|---|---|
//! | evaluated | rules that read a changed key | all rules, once every argument has a value or a default |
//! | DURATION | event times: true when more than the duration lies between | from the first event to now |
//! | schedule | of the event's time | the same, and checked every minute |
//! | re-check | running durations, every minute once true, which updates the alarm | reports once |
//! | late data | counts as any other | dropped when older than the stored value |
//!
//! The caller applies the [`AlarmAction`]s, corrects the state with [`AlarmRuleState::set_alarm`] where the store knew better, stores the
//! state when [`AlarmRuleOutcome::changed`] says so, and calls again with [`AlarmRuleEvent::Timer`] at [`AlarmRuleOutcome::next_check`].

mod calculated_field;
mod codec;
mod condition;
mod condition_spec;
mod convert;
mod details;
mod device_profile;
mod evaluate;
mod parse;
mod predicate;
mod rules;
mod schedule;
mod state;
#[cfg(test)]
mod tests;

pub use evaluate::{
    AlarmAction, AlarmActionKind, AlarmInputChange, AlarmInputChanges, AlarmRuleError, AlarmRuleEvent,
    AlarmRuleOutcome, AlarmScriptArguments, AlarmValueSource, evaluate,
};
pub use parse::AlarmConfigError;
pub use rules::{AlarmInput, AlarmInputKind, AlarmInputSource, AlarmRuleSet, RuleSetForm};
pub use state::{ActiveAlarm, AlarmRuleState};
