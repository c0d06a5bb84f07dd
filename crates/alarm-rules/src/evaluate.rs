//! Applying an event to a state.

mod api;
mod context;
mod field;
mod profile;
mod timer;

use std::cell::RefCell;

use fieldline_model::budget::EvaluationBudget;
use fieldline_model::new_uuid;
use uuid::Uuid;

pub use api::{
    AlarmAction, AlarmActionKind, AlarmInputChange, AlarmInputChanges, AlarmRuleError, AlarmRuleEvent,
    AlarmRuleOutcome, AlarmValueSource,
};
pub use context::AlarmScriptArguments;
pub(super) use context::EvaluationContext;

use super::condition_spec::AlarmConditionSpec;
use super::convert::fingerprint;
use super::rules::{
    AlarmDefinition, AlarmInputKind, AlarmInputSet, AlarmInputSource, AlarmRule, AlarmRuleSet, RuleSetForm,
};
use super::state::{ActiveAlarm, AlarmRuleState};
use context::ChangeOverlay;

/// What a rule came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionVerdict {
    True,
    /// It matches, but not often or long enough yet.
    NotYet,
    /// It does not match; what has run for it starts anew.
    False,
    /// There was nothing to decide.
    Nothing,
}

/// Why rules are evaluated.
#[derive(Debug, Clone, Copy)]
enum EvaluationCause<'a> {
    /// These values changed.
    Changed(&'a AlarmInputSet),
    /// The rules or the state are new.
    Started,
    /// Time passed.
    Timer,
}

/// Position of the clear rule among the rules of a calculated field.
const CLEAR_POSITION: usize = 5;

/// Applies an event to the state of an originator. `now_ms` is the server's time in milliseconds.
pub fn evaluate(
    rules: &AlarmRuleSet,
    state: &mut AlarmRuleState,
    event: &AlarmRuleEvent<'_>,
    values: &dyn AlarmValueSource,
    now_ms: i64,
) -> AlarmRuleOutcome {
    let mut out = AlarmRuleOutcome {
        changed: state.bind(rules),
        ..AlarmRuleOutcome::default()
    };
    let sorted: Vec<AlarmInputChange<'_>>;
    let changes = match event {
        AlarmRuleEvent::Update(changes)
            if rules.form == RuleSetForm::DeviceProfile && !is_of_one_time(changes) =>
        {
            sorted = by_time(changes);
            &sorted
        }
        AlarmRuleEvent::Update(changes) => *changes,
        _ => &[],
    };
    let mut overlay = ChangeOverlay::new(rules.inputs.len(), changes);
    let budget = RefCell::default();
    let mut run = RuleEvaluation {
        rules,
        values,
        now: now_ms,
        budget: &budget,
        out: &mut out,
    };
    match (event, rules.form) {
        (AlarmRuleEvent::Update(_), RuleSetForm::DeviceProfile) => {
            let mut start = 0;
            for group in changes.chunk_by(|left, right| left.ts == right.ts) {
                run.update_profile(state, &mut overlay, start, group);
                start += group.len();
            }
        }
        (AlarmRuleEvent::Update(_), RuleSetForm::CalculatedField) => {
            run.update_field(state, &mut overlay, changes);
        }
        (AlarmRuleEvent::Removed(needs), form) => {
            let mut updated = AlarmInputSet::default();
            for need in needs.iter().filter_map(|need| u16::try_from(*need).ok()) {
                overlay.remove(need);
                updated.insert(need);
                match form {
                    RuleSetForm::DeviceProfile => {
                        state.replace_fingerprint(rules.inputs.len(), need, 0);
                    }
                    // The next point may be older than the one that is gone.
                    RuleSetForm::CalculatedField => run.out.changed |= state.forget_newest(need),
                }
            }
            run.all(state, &overlay, EvaluationCause::Changed(&updated));
        }
        (AlarmRuleEvent::Started, RuleSetForm::CalculatedField) => {
            // The time from which silence is counted must not be lost.
            run.out.changed = true;
            // Somebody else may be the owner now, whose points have times of their own.
            for (need, input) in (0..).zip(&rules.inputs) {
                if matches!(input.source, AlarmInputSource::Owner | AlarmInputSource::Customer) {
                    state.forget_newest(need);
                }
            }
            run.all(state, &overlay, EvaluationCause::Started);
        }
        (AlarmRuleEvent::Timer, _) => run.all(state, &overlay, EvaluationCause::Timer),
        (AlarmRuleEvent::AlarmCleared(id), _) => run.handle_external_end(state, *id, false),
        (AlarmRuleEvent::AlarmDeleted(id), _) => run.handle_external_end(state, *id, true),
        (AlarmRuleEvent::AlarmAcknowledged(_), _) | (AlarmRuleEvent::Started, RuleSetForm::DeviceProfile) => {
        }
    }
    state.compact();
    let next_check = timer::next_check(&run.context(state, &overlay), state);
    out.next_check = next_check;
    out
}

pub(super) fn is_of_one_time(changes: &[AlarmInputChange<'_>]) -> bool {
    changes
        .first()
        .is_none_or(|first| changes.iter().all(|change| change.ts == first.ts))
}

fn by_time<'a>(changes: &[AlarmInputChange<'a>]) -> Vec<AlarmInputChange<'a>> {
    let mut sorted = changes.to_vec();
    sorted.sort_by_key(|change| change.ts);
    sorted
}

/// One call of [`evaluate`].
struct RuleEvaluation<'a, 'o> {
    rules: &'a AlarmRuleSet,
    values: &'a dyn AlarmValueSource,
    now: i64,
    budget: &'a RefCell<EvaluationBudget>,
    out: &'o mut AlarmRuleOutcome,
}

impl<'a> RuleEvaluation<'a, '_> {
    fn context<'c>(&self, state: &AlarmRuleState, overlay: &'c ChangeOverlay<'a>) -> EvaluationContext<'c>
    where
        'a: 'c,
    {
        EvaluationContext {
            rules: self.rules,
            values: self.values,
            overlay,
            now: self.now,
            anchor_ts: state.anchor_ts,
            budget: self.budget,
        }
    }

    /// Changes of one time. A value that was seen before with the same time is no change.
    fn update_profile(
        &mut self,
        state: &mut AlarmRuleState,
        overlay: &mut ChangeOverlay<'a>,
        start: usize,
        group: &[AlarmInputChange<'_>],
    ) {
        let mut updated = AlarmInputSet::default();
        let mut is_updated = false;
        let anchor_ts = state.anchor_ts;
        for (position, change) in group.iter().enumerate() {
            let print = fingerprint(change.value);
            let before = state.replace_fingerprint(self.rules.inputs.len(), change.input, print);
            if change.ts != anchor_ts || before != print {
                updated.insert(change.input);
                is_updated = true;
            }
            overlay.set(start + position);
            state.anchor_ts = change.ts;
        }
        if is_updated {
            self.all(state, overlay, EvaluationCause::Changed(&updated));
        }
    }

    /// The newest change of each value, unless a newer point has counted already; of a value of which none has, unless the
    /// store has a newer one. Attributes have no order but that of arrival.
    fn update_field(
        &mut self,
        state: &mut AlarmRuleState,
        overlay: &mut ChangeOverlay<'a>,
        changes: &[AlarmInputChange<'_>],
    ) {
        let mut updated = AlarmInputSet::default();
        let mut is_updated = false;
        for (position, change) in changes.iter().enumerate() {
            let stored = overlay
                .change(change.input)
                .map(|earlier| earlier.ts)
                .or_else(|| state.newest(change.input))
                .or_else(|| Some(self.values.get(usize::from(change.input))?.0));
            let is_series = self.is_series(change.input);
            if stored.is_none_or(|stored| stored <= change.ts) || !is_series {
                if is_series {
                    let needs = self.rules.inputs.len();
                    self.out.changed |= state.set_newest(needs, change.input, change.ts);
                }
                overlay.set(position);
                updated.insert(change.input);
                is_updated = true;
            }
        }
        if is_updated {
            self.all(state, overlay, EvaluationCause::Changed(&updated));
        }
    }

    fn is_series(&self, need: u16) -> bool {
        self.rules
            .inputs
            .get(usize::from(need))
            .is_some_and(|need| need.kind == AlarmInputKind::TimeSeries)
    }

    fn all(&mut self, state: &mut AlarmRuleState, overlay: &ChangeOverlay<'a>, cause: EvaluationCause<'_>) {
        let cx = self.context(state, overlay);
        if self.rules.form == RuleSetForm::CalculatedField && !cx.is_ready() {
            return;
        }
        for (position, alarm) in self.rules.alarms.iter().enumerate() {
            if is_untouched(&alarm.triggers, cause) {
                continue;
            }
            if let Err(message) = self.alarm(&cx, state, position, alarm, cause) {
                self.out.error.get_or_insert(AlarmRuleError {
                    alarm: position,
                    message,
                });
            }
        }
    }

    /// Create rules, the worst severity first, up to the first that is true; the clear rule where none is.
    fn alarm(
        &mut self,
        cx: &EvaluationContext<'_>,
        state: &mut AlarmRuleState,
        position: usize,
        alarm: &AlarmDefinition,
        cause: EvaluationCause<'_>,
    ) -> Result<(), String> {
        let mut hit = None;
        for (rule_position, rule) in alarm.create.iter().enumerate() {
            if is_untouched(&rule.triggers, cause) {
                continue;
            }
            match self.rule(cx, state, rule_position, rule, cause)? {
                ConditionVerdict::True => {
                    hit = Some(rule);
                    break;
                }
                ConditionVerdict::False => self.out.changed |= state.reset(rule.key),
                ConditionVerdict::NotYet | ConditionVerdict::Nothing => {}
            }
        }
        if let Some(rule) = hit {
            self.raise(cx, state, position, alarm, rule, cause);
            if let Some(clear) = &alarm.clear {
                self.out.changed |= state.reset(clear.key);
            }
            return Ok(());
        }
        let (Some(active), Some(clear)) = (state.active(alarm.key), &alarm.clear) else {
            return Ok(());
        };
        if is_untouched(&clear.triggers, cause) {
            return Ok(());
        }
        match self.rule(cx, state, CLEAR_POSITION, clear, cause)? {
            ConditionVerdict::True => {
                let spent = spent(cx, state, clear, true);
                for rule in alarm.rules() {
                    state.reset(rule.key);
                }
                state.set_active(alarm.key, None);
                let kind = AlarmActionKind::Clear;
                self.act(cx, position, clear, kind, active, spent);
            }
            ConditionVerdict::False => self.out.changed |= state.reset(clear.key),
            ConditionVerdict::NotYet | ConditionVerdict::Nothing => {}
        }
        Ok(())
    }

    fn rule(
        &mut self,
        cx: &EvaluationContext<'_>,
        state: &mut AlarmRuleState,
        position: usize,
        rule: &AlarmRule,
        cause: EvaluationCause<'_>,
    ) -> Result<ConditionVerdict, String> {
        let changed = &mut self.out.changed;
        match (self.rules.form, cause) {
            (RuleSetForm::DeviceProfile, EvaluationCause::Timer) => profile::on_timer(cx, state, rule),
            (RuleSetForm::DeviceProfile, _) => profile::on_update(cx, state, rule, changed),
            (RuleSetForm::CalculatedField, EvaluationCause::Timer) => {
                field::on_timer(cx, state, position, rule, changed)
            }
            (RuleSetForm::CalculatedField, EvaluationCause::Changed(_)) => {
                field::on_update(cx, state, position, rule, true, changed)
            }
            (RuleSetForm::CalculatedField, EvaluationCause::Started) => {
                field::on_update(cx, state, position, rule, false, changed)
            }
        }
    }

    /// Raises the alarm, or updates the active one unless that is worse.
    fn raise(
        &mut self,
        cx: &EvaluationContext<'_>,
        state: &mut AlarmRuleState,
        position: usize,
        alarm: &AlarmDefinition,
        rule: &AlarmRule,
        cause: EvaluationCause<'_>,
    ) {
        let Some(severity) = rule.severity else { return };
        let spent = spent(cx, state, rule, false);
        let Some(active) = state.active(alarm.key) else {
            let event_ts = match self.rules.form {
                RuleSetForm::DeviceProfile => cx.anchor_ts,
                RuleSetForm::CalculatedField => cx.latest_ts(),
            };
            let start_ts = if event_ts <= 0 || event_ts > self.now {
                self.now
            } else {
                event_ts
            };
            let active = ActiveAlarm {
                id: new_uuid(),
                severity,
                start_ts,
            };
            state.set_active(alarm.key, Some(active));
            self.act(cx, position, rule, AlarmActionKind::Raise, active, spent);
            return;
        };
        let is_check =
            matches!(cause, EvaluationCause::Timer) && self.rules.form == RuleSetForm::CalculatedField;
        if severity > active.severity || (severity == active.severity && is_check) {
            return;
        }
        let severity_changed = severity != active.severity;
        let active = ActiveAlarm { severity, ..active };
        if severity_changed {
            state.set_active(alarm.key, Some(active));
        }
        let was_changed = self.out.changed;
        let kind = AlarmActionKind::Update { severity_changed };
        self.act(cx, position, rule, kind, active, spent);
        self.out.changed = was_changed || severity_changed;
    }

    fn act(
        &mut self,
        cx: &EvaluationContext<'_>,
        alarm: usize,
        rule: &AlarmRule,
        kind: AlarmActionKind,
        active: ActiveAlarm,
        spent: ConditionSpent,
    ) {
        self.out.changed = true;
        let details = rule.details.as_ref().map(|template| template.render(cx));
        let details = details.transpose().unwrap_or_else(|message| {
            self.out.error.get_or_insert(AlarmRuleError { alarm, message });
            None
        });
        self.out.actions.push(AlarmAction {
            alarm,
            kind,
            id: active.id,
            severity: active.severity,
            start_ts: active.start_ts,
            // An alarm that is raised has no more than its beginning.
            end_ts: match kind {
                AlarmActionKind::Raise => active.start_ts,
                AlarmActionKind::Update { .. } | AlarmActionKind::Clear => self.now,
            },
            details,
            dashboard: rule.dashboard,
            condition_repeats: spent.repeats,
            condition_duration: spent.duration,
        });
    }

    /// An alarm was cleared or deleted by somebody else.
    fn handle_external_end(&mut self, state: &mut AlarmRuleState, id: Uuid, deleted: bool) {
        let Some(key) = state.take_active(id) else { return };
        self.out.changed = true;
        let Some(alarm) = self.rules.alarms.iter().find(|alarm| alarm.key == key) else {
            return;
        };
        for rule in &alarm.create {
            state.reset(rule.key);
        }
        // In a device profile, clearing by hand leaves what runs for the clear rule.
        if let Some(clear) = &alarm.clear
            && (deleted || self.rules.form == RuleSetForm::CalculatedField)
        {
            state.reset(clear.key);
        }
    }
}

fn is_untouched(triggers: &AlarmInputSet, cause: EvaluationCause<'_>) -> bool {
    matches!(cause, EvaluationCause::Changed(updated) if !triggers.intersects(updated))
}

/// Repeats and milliseconds that a rule has run for, as reported with its alarm.
#[derive(Clone, Copy)]
struct ConditionSpent {
    repeats: Option<u32>,
    duration: Option<i64>,
}

/// How long a rule has run. Device profiles report nothing when an alarm is cleared.
fn spent(
    cx: &EvaluationContext<'_>,
    state: &AlarmRuleState,
    rule: &AlarmRule,
    clears: bool,
) -> ConditionSpent {
    let running = state.running(rule.key).copied().unwrap_or_default();
    let is_profile = cx.rules.form == RuleSetForm::DeviceProfile;
    let repeats = match rule.span {
        AlarmConditionSpec::Repeating { .. } if clears && is_profile => Some(0),
        AlarmConditionSpec::Repeating { .. } => Some(running.count),
        AlarmConditionSpec::Simple | AlarmConditionSpec::Duration { .. } => None,
    };
    let duration = match rule.span {
        AlarmConditionSpec::Duration { .. } if clears && is_profile => Some(0),
        AlarmConditionSpec::Duration { .. } if is_profile => {
            Some(running.last_ts.saturating_sub(running.first_ts))
        }
        AlarmConditionSpec::Duration { .. } if running.first_ts > 0 => {
            Some(cx.now.saturating_sub(running.first_ts))
        }
        AlarmConditionSpec::Duration { .. } => Some(0),
        AlarmConditionSpec::Simple | AlarmConditionSpec::Repeating { .. } => None,
    };
    ConditionSpent { repeats, duration }
}
