//! What goes into an evaluation and what comes out.

use fieldline_model::entity::AlarmSeverity;
use fieldline_model::kv::KvValueRef;
use serde_json::Value as Json;
use uuid::Uuid;

use super::context::AlarmScriptArguments;
use crate::rules::{AlarmInputKind, AlarmRuleSet};

/// Current values of an originator.
pub trait AlarmValueSource {
    /// The value at a position of [`AlarmRuleSet::inputs`] with its time in milliseconds, `None` where there is none.
    /// It does not matter whether it already is what the event brings.
    fn get(&self, need: usize) -> Option<(i64, KvValueRef<'_>)>;

    /// Evaluates the TBEL expression at a position of [`AlarmRuleSet::expressions`].
    ///
    /// # Errors
    /// A message where the script fails or its result is no boolean.
    fn expression(&self, expression: usize, arguments: &AlarmScriptArguments<'_>) -> Result<bool, String> {
        let _ = (expression, arguments);
        Err("scripts cannot be run here".to_owned())
    }
}

/// A new value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlarmInputChange<'a> {
    /// Position in [`AlarmRuleSet::inputs`].
    pub input: u16,
    /// Time of the value, milliseconds; of an attribute, when it was set.
    pub ts: i64,
    /// The value.
    pub value: KvValueRef<'a>,
}

const INLINE: usize = 8;

/// The changes that a message brings to values which the rules read. Few of them need no memory of their own.
#[derive(Debug, Clone)]
pub struct AlarmInputChanges<'a> {
    inline: [AlarmInputChange<'a>; INLINE],
    count: usize,
    spilled: Vec<AlarmInputChange<'a>>,
}

impl Default for AlarmInputChanges<'_> {
    fn default() -> Self {
        Self {
            inline: [const {
                AlarmInputChange {
                    input: 0,
                    ts: 0,
                    value: KvValueRef::Bool(false),
                }
            }; INLINE],
            count: 0,
            spilled: Vec::new(),
        }
    }
}

impl<'a> AlarmInputChanges<'a> {
    /// Adds a value of the originator itself, unless no rule reads it.
    pub fn add(
        &mut self,
        rules: &AlarmRuleSet,
        kind: AlarmInputKind,
        key: &str,
        ts: i64,
        value: KvValueRef<'a>,
    ) {
        if let Some(need) = rules.find(kind, key) {
            self.push(AlarmInputChange {
                input: need as u16,
                ts,
                value,
            });
        }
    }

    /// Adds a change.
    pub fn push(&mut self, change: AlarmInputChange<'a>) {
        if let Some(slot) = self.inline.get_mut(self.count) {
            *slot = change;
        } else {
            if self.spilled.is_empty() {
                self.spilled.extend_from_slice(&self.inline);
            }
            self.spilled.push(change);
        }
        self.count += 1;
    }

    /// All changes, in the order in which they were added.
    pub fn as_slice(&self) -> &[AlarmInputChange<'a>] {
        if self.spilled.is_empty() {
            self.inline.get(..self.count).unwrap_or_default()
        } else {
            &self.spilled
        }
    }

    /// Whether no rule reads anything of the message.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum AlarmRuleEvent<'a> {
    /// Values changed. Values of several times are applied in the order of time. Activity comes as such a change as well:
    /// the attribute or time series `active` and its companions.
    Update(&'a [AlarmInputChange<'a>]),
    /// Values at these positions of [`AlarmRuleSet::inputs`] were deleted. Attributes count as gone whatever
    /// [`AlarmValueSource`] says; of time series it may give an older point.
    Removed(&'a [usize]),
    /// The state is new, or the rules changed. Calculated fields are evaluated then; it is no event that is counted.
    Started,
    /// The time of [`AlarmRuleOutcome::next_check`] has come.
    Timer,
    /// Somebody acknowledged the alarm with that id.
    AlarmAcknowledged(Uuid),
    /// Somebody cleared the alarm with that id.
    AlarmCleared(Uuid),
    /// Somebody deleted the alarm with that id.
    AlarmDeleted(Uuid),
}

/// What is to be done with an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlarmActionKind {
    /// Create it, or update the active one of that type where the store has one.
    Raise,
    /// Update the active one.
    Update {
        /// Whether its severity is another one now.
        severity_changed: bool,
    },
    /// Clear the active one.
    Clear,
}

/// Something to do with an alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmAction {
    /// Position of the alarm in the rule set.
    pub alarm: usize,
    /// What to do.
    pub kind: AlarmActionKind,
    /// Id of the alarm; new when it is raised.
    pub id: Uuid,
    /// Its severity from now on; when it is cleared, the one it has.
    pub severity: AlarmSeverity,
    /// When it began, milliseconds.
    pub start_ts: i64,
    /// When it was last raised, or cleared, milliseconds.
    pub end_ts: i64,
    /// Text of the details.
    pub details: Option<Box<str>>,
    /// Dashboard of the details.
    pub dashboard: Option<Uuid>,
    /// How often a REPEATING condition matched.
    pub condition_repeats: Option<u32>,
    /// How long a DURATION condition has matched, milliseconds.
    pub condition_duration: Option<i64>,
}

impl AlarmAction {
    /// The details as stored with the alarm; `None` where it keeps those it has, or has none if it is new.
    pub fn details_json(&self) -> Option<Json> {
        if self.details.is_none() && self.dashboard.is_none() {
            return None;
        }
        let mut object = serde_json::Map::new();
        if let Some(text) = &self.details {
            object.insert("data".to_owned(), Json::from(&**text));
        }
        if let Some(dashboard) = self.dashboard {
            object.insert("dashboardId".to_owned(), dashboard.to_string().into());
        }
        Some(Json::Object(object))
    }
}

/// A rule that could not be evaluated. Other alarms of the rule set were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AlarmRuleError {
    /// Position of the alarm in the rule set.
    pub alarm: usize,
    /// Why.
    pub message: String,
}

/// What an evaluation came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlarmRuleOutcome {
    /// What to do, in order.
    pub actions: Vec<AlarmAction>,
    /// When to call again with [`AlarmRuleEvent::Timer`], milliseconds; replaces what was said before.
    pub next_check: Option<i64>,
    /// Whether the state should be stored. Of device profiles, times of events that change
    /// nothing else do not count; of calculated fields each newer point does.
    pub changed: bool,
    /// The first rule that could not be evaluated.
    pub error: Option<AlarmRuleError>,
}
