//! Rules of a calculated field: durations run from the first matching event to now.

use super::{ConditionVerdict, EvaluationContext};
use crate::condition_spec::AlarmConditionSpec;
use crate::rules::AlarmRule;
use crate::state::AlarmRuleState;

/// A changed argument, or a changed configuration where `is_event` is false.
pub(super) fn on_update(
    cx: &EvaluationContext<'_>,
    state: &mut AlarmRuleState,
    position: usize,
    rule: &AlarmRule,
    is_event: bool,
    changed: &mut bool,
) -> Result<ConditionVerdict, String> {
    if rule.schedule.is_some() {
        let ts = if is_event { cx.latest_ts() } else { cx.now };
        let active = cx.is_in_force(rule.schedule.as_ref(), ts)?;
        *changed |= state.set_schedule_active(position, active);
        if !active {
            return Ok(ConditionVerdict::False);
        }
    }
    decide(cx, state, rule, is_event, changed)
}

fn decide(
    cx: &EvaluationContext<'_>,
    state: &mut AlarmRuleState,
    rule: &AlarmRule,
    is_event: bool,
    changed: &mut bool,
) -> Result<ConditionVerdict, String> {
    if !rule.expression.holds(cx)? {
        return Ok(ConditionVerdict::False);
    }
    match rule.span {
        AlarmConditionSpec::Simple => Ok(ConditionVerdict::True),
        AlarmConditionSpec::Repeating { .. } => {
            let required = rule.span.required(cx);
            let mut count = state.running(rule.key).map_or(0, |running| running.count);
            if is_event {
                let running = state.running_mut(rule.key);
                running.count = running.count.saturating_add(1);
                count = running.count;
                // Counts beyond what is required make no difference after a restart.
                *changed |= required
                    .as_ref()
                    .map_or(true, |required| i64::from(count) <= *required);
            }
            let required = required?;
            Ok(if required > 0 && i64::from(count) >= required {
                ConditionVerdict::True
            } else {
                ConditionVerdict::NotYet
            })
        }
        AlarmConditionSpec::Duration { .. } => {
            let first_event = cx.latest_ts();
            let running = state.running_mut(rule.key);
            if running.first_ts <= 0 {
                running.first_ts = first_event;
                *changed = true;
            }
            running.last_ts = cx.now;
            let first_ts = running.first_ts;
            let required = rule.span.required(cx)?;
            let is_true = required > 0
                && first_ts > 0
                && cx.now > first_ts
                && cx.now.saturating_sub(first_ts) >= required;
            Ok(if is_true {
                ConditionVerdict::True
            } else {
                ConditionVerdict::NotYet
            })
        }
    }
}

pub(super) fn on_timer(
    cx: &EvaluationContext<'_>,
    state: &mut AlarmRuleState,
    position: usize,
    rule: &AlarmRule,
    changed: &mut bool,
) -> Result<ConditionVerdict, String> {
    let active = cx.is_in_force(rule.schedule.as_ref(), cx.now)?;
    if let AlarmConditionSpec::Duration { .. } = rule.span {
        if !active {
            return Ok(ConditionVerdict::False);
        }
        return duration_on_timer(cx, state, rule, changed);
    }
    let is_news = rule.schedule.is_some() && state.set_schedule_active(position, active);
    *changed |= is_news;
    if !active || !(is_news || rule.expression.watches_silence()) {
        return Ok(ConditionVerdict::Nothing);
    }
    match decide(cx, state, rule, false, changed)? {
        ConditionVerdict::True => Ok(ConditionVerdict::True),
        _ => Ok(ConditionVerdict::Nothing),
    }
}

fn duration_on_timer(
    cx: &EvaluationContext<'_>,
    state: &mut AlarmRuleState,
    rule: &AlarmRule,
    changed: &mut bool,
) -> Result<ConditionVerdict, String> {
    let Some(first_ts) = state.running(rule.key).map(|running| running.first_ts) else {
        return Ok(ConditionVerdict::Nothing);
    };
    let required = rule.span.required(cx)?;
    if required <= 0 || first_ts <= 0 || cx.now <= first_ts {
        return Ok(ConditionVerdict::Nothing);
    }
    let running = state.running_mut(rule.key);
    let was_reported = running.last_ts.saturating_sub(first_ts) >= required;
    running.last_ts = cx.now;
    if cx.now.saturating_sub(first_ts) < required {
        return Ok(ConditionVerdict::NotYet);
    }
    *changed |= !was_reported;
    Ok(if was_reported {
        ConditionVerdict::Nothing
    } else {
        ConditionVerdict::True
    })
}
