//! What one originator has under one rule set. In device profiles that is nothing almost always, so what goes on stands behind a
//! pointer.

use fieldline_model::entity::AlarmSeverity;
use uuid::Uuid;

use super::evaluate::{AlarmInputChange, is_of_one_time};
use super::rules::{AlarmInput, AlarmInputKind, AlarmRuleSet, RuleSetForm};

/// An alarm that is active at the originator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveAlarm {
    /// Its id.
    pub id: Uuid,
    /// Its severity.
    pub severity: AlarmSeverity,
    /// When it began, milliseconds.
    pub start_ts: i64,
}

/// State of one originator under one rule set. It follows changes of the rules: what belongs to a rule that is gone, or
/// whose condition has another type now, is dropped with the next use.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmRuleState {
    pub(super) definition: u64,
    /// In a device profile, the time of the newest update. In a calculated field, when the state began, which is the time
    /// of arguments that have only their default.
    pub(super) anchor_ts: i64,
    pub(super) parts: Option<Box<AlarmRuleProgress>>,
    /// Whether schedules were last seen in force, two bits a rule: known, active. Calculated fields only.
    pub(super) schedules: u16,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AlarmRuleProgress {
    pub running: Vec<PartialMatch>,
    pub alarms: Vec<AlarmEntry>,
    /// Fingerprints of the values last seen, by need. Device profiles only.
    pub seen: Box<[u32]>,
    /// Times of the newest points that counted, by need. Calculated fields only: the store may be ahead of the state, when
    /// messages are done again after a crash.
    pub newest: Box<[Option<i64>]>,
}

/// A rule that has begun to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PartialMatch {
    pub rule: u64,
    pub first_ts: i64,
    /// In a device profile the newest matching event, in a calculated field the last check.
    pub last_ts: i64,
    pub count: u32,
}

/// An alarm that is not known to be inactive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AlarmEntry {
    pub alarm: u64,
    /// `None` until the store was asked.
    pub active: Option<ActiveAlarm>,
}

impl AlarmRuleState {
    /// The state of an originator that was not evaluated before. Nothing is known of its alarms yet.
    pub fn new(rules: &AlarmRuleSet, now_ms: i64) -> Self {
        let anchor_ts = match rules.form {
            RuleSetForm::DeviceProfile => 0,
            RuleSetForm::CalculatedField => now_ms,
        };
        let mut state = Self {
            definition: !rules.definition,
            anchor_ts,
            parts: None,
            schedules: 0,
        };
        state.bind(rules);
        state
    }

    /// Takes over a changed rule set; whether it had changed.
    pub(super) fn bind(&mut self, rules: &AlarmRuleSet) -> bool {
        if self.definition == rules.definition {
            return false;
        }
        self.definition = rules.definition;
        self.schedules = 0;
        let parts = self.parts.get_or_insert_default();
        parts.running.retain(|running| rules.rule(running.rule).is_some());
        parts.alarms.retain(|entry| {
            entry.active.is_some() && rules.alarms.iter().any(|alarm| alarm.key == entry.alarm)
        });
        for alarm in &rules.alarms {
            if !parts.alarms.iter().any(|entry| entry.alarm == alarm.key) {
                parts.alarms.push(AlarmEntry {
                    alarm: alarm.key,
                    active: None,
                });
            }
        }
        parts.seen = Box::default();
        parts.newest = Box::default();
        self.compact();
        true
    }

    /// Whether it is known for every alarm type if one is active. Cheap.
    pub fn is_resolved(&self, rules: &AlarmRuleSet) -> bool {
        let unknown = |parts: &AlarmRuleProgress| parts.alarms.iter().any(|entry| entry.active.is_none());
        self.definition == rules.definition && !self.parts.as_deref().is_some_and(unknown)
    }

    /// Positions of the alarms of which the store must be asked once whether one is active; the answer goes to
    /// [`Self::set_alarm`]. Until then none counts as active.
    pub fn unresolved(&mut self, rules: &AlarmRuleSet) -> Vec<usize> {
        self.bind(rules);
        let Some(parts) = &self.parts else {
            return Vec::new();
        };
        let unknown = |key| {
            parts
                .alarms
                .iter()
                .any(|entry| entry.alarm == key && entry.active.is_none())
        };
        let positions = rules.alarms.iter().enumerate();
        positions
            .filter(|(_, alarm)| unknown(alarm.key))
            .map(|(position, _)| position)
            .collect()
    }

    /// The active alarm at a position of the rule set.
    pub fn alarm(&self, rules: &AlarmRuleSet, alarm: usize) -> Option<ActiveAlarm> {
        self.active(rules.alarms.get(alarm)?.key)
    }

    /// Says which alarm is active, `None` for none: after the store was asked, where it already had an alarm of a type
    /// that was to be raised, or where it refused one.
    pub fn set_alarm(&mut self, rules: &AlarmRuleSet, alarm: usize, active: Option<ActiveAlarm>) {
        self.bind(rules);
        if let Some(alarm) = rules.alarms.get(alarm) {
            self.set_active(alarm.key, active);
            self.compact();
        }
    }

    /// Whether no rule has begun to match and no alarm is active.
    pub fn is_idle(&self) -> bool {
        self.parts.as_deref().is_none_or(|parts| {
            parts.running.is_empty() && parts.alarms.iter().all(|entry| entry.active.is_none())
        })
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.parts.as_deref().map_or(0, |parts| {
            size_of::<AlarmRuleProgress>()
                + parts.running.capacity() * size_of::<PartialMatch>()
                + parts.alarms.capacity() * size_of::<AlarmEntry>()
                + size_of_val(&*parts.seen)
                + size_of_val(&*parts.newest)
        })
    }

    pub(super) fn active(&self, alarm: u64) -> Option<ActiveAlarm> {
        let parts = self.parts.as_deref()?;
        parts.alarms.iter().find(|entry| entry.alarm == alarm)?.active
    }

    pub(super) fn set_active(&mut self, alarm: u64, active: Option<ActiveAlarm>) {
        let parts = self.parts.get_or_insert_default();
        parts.alarms.retain(|entry| entry.alarm != alarm);
        if active.is_some() {
            parts.alarms.reserve_exact(1);
            parts.alarms.push(AlarmEntry { alarm, active });
        }
    }

    /// The alarm with that id, by key; it is no longer active then.
    pub(super) fn take_active(&mut self, id: Uuid) -> Option<u64> {
        let parts = self.parts.as_deref_mut()?;
        let has_id = |entry: &AlarmEntry| entry.active.is_some_and(|active| active.id == id);
        let position = parts.alarms.iter().position(has_id)?;
        Some(parts.alarms.swap_remove(position).alarm)
    }

    pub(super) fn running(&self, rule: u64) -> Option<&PartialMatch> {
        self.parts
            .as_deref()?
            .running
            .iter()
            .find(|running| running.rule == rule)
    }

    /// What runs for a rule; it begins where nothing does.
    pub(super) fn running_mut(&mut self, rule: u64) -> &mut PartialMatch {
        let running = &mut self.parts.get_or_insert_default().running;
        let position = running
            .iter()
            .position(|running| running.rule == rule)
            .unwrap_or_else(|| {
                // Rarely does more than one rule run.
                running.reserve_exact(1);
                running.push(PartialMatch {
                    rule,
                    ..PartialMatch::default()
                });
                running.len() - 1
            });
        &mut running[position]
    }

    /// Forgets what runs for a rule; whether anything did.
    pub(super) fn reset(&mut self, rule: u64) -> bool {
        let Some(parts) = self.parts.as_deref_mut() else {
            return false;
        };
        let Some(position) = parts.running.iter().position(|running| running.rule == rule) else {
            return false;
        };
        parts.running.swap_remove(position);
        true
    }

    /// Notes the fingerprint of a value; the one before, 0 for none.
    pub(super) fn replace_fingerprint(&mut self, needs: usize, need: u16, fingerprint: u32) -> u32 {
        let parts = self.parts.get_or_insert_default();
        if parts.seen.len() != needs {
            parts.seen = vec![0; needs].into();
        }
        let slot = parts.seen.get_mut(usize::from(need));
        slot.map_or(0, |slot| std::mem::replace(slot, fingerprint))
    }

    /// Whether an update brings every value that the rules read, so that none has to be looked up. Profiles take its times one
    /// after the other, so that there must be one alone. Fields drop what comes late, so that it must be known that nothing does.
    pub fn is_covered(&self, rules: &AlarmRuleSet, changes: &[AlarmInputChange<'_>]) -> bool {
        let is_in_order = |input: &AlarmInput, change: &AlarmInputChange<'_>| {
            rules.form == RuleSetForm::DeviceProfile
                || input.kind != AlarmInputKind::TimeSeries
                || self
                    .newest(change.input)
                    .is_some_and(|newest| newest <= change.ts)
        };
        self.definition == rules.definition
            && (rules.form == RuleSetForm::CalculatedField || is_of_one_time(changes))
            && rules.inputs.len() <= changes.len()
            && (0..).zip(&rules.inputs).all(|(need, input)| {
                let mut of_input = changes.iter().filter(|change| change.input == need);
                of_input.any(|change| is_in_order(input, change))
            })
    }

    /// The time of the newest point of a need that counted; `None` where none has since the rules are what they are.
    pub(super) fn newest(&self, need: u16) -> Option<i64> {
        *self.parts.as_deref()?.newest.get(usize::from(need))?
    }

    /// Notes the time of the newest point of a need; whether it is another one.
    pub(super) fn set_newest(&mut self, needs: usize, need: u16, ts: i64) -> bool {
        let parts = self.parts.get_or_insert_default();
        if parts.newest.len() != needs {
            parts.newest = vec![None; needs].into();
        }
        let slot = parts.newest.get_mut(usize::from(need));
        slot.is_some_and(|slot| slot.replace(ts) != Some(ts))
    }

    /// Has the next point of a need count whatever its time, unless the store has a newer one; whether it is any news.
    pub(super) fn forget_newest(&mut self, need: u16) -> bool {
        let newest = self.parts.as_deref_mut().map(|parts| &mut parts.newest);
        let slot = newest.and_then(|newest| newest.get_mut(usize::from(need)));
        slot.is_some_and(|slot| slot.take().is_some())
    }

    pub(super) const fn schedule_was_active(&self, position: usize) -> Option<bool> {
        let bits = self.schedules >> (2 * position);
        if bits & 1 == 0 { None } else { Some(bits & 2 != 0) }
    }

    /// Notes whether a schedule is in force; whether that is news.
    pub(super) fn set_schedule_active(&mut self, position: usize, active: bool) -> bool {
        let is_news = self.schedule_was_active(position) != Some(active);
        self.schedules =
            (self.schedules & !(3 << (2 * position))) | ((1 | u16::from(active) << 1) << (2 * position));
        is_news
    }

    /// Gives back the memory of what has ended.
    pub(super) fn compact(&mut self) {
        let Some(parts) = self.parts.as_deref_mut() else {
            return;
        };
        if parts.running.is_empty() && parts.running.capacity() > 0 {
            parts.running = Vec::new();
        }
        if parts.alarms.len() < parts.alarms.capacity() {
            parts.alarms.shrink_to_fit();
        }
        let has_nothing = parts.running.is_empty() && parts.alarms.is_empty();
        if has_nothing && parts.seen.is_empty() && parts.newest.is_empty() {
            self.parts = None;
        }
    }
}
