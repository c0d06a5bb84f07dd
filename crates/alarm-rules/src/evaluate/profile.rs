//! Rules of a device profile: durations are measured between the times of events.

use super::{ConditionVerdict, EvaluationContext};
use crate::condition_spec::AlarmConditionSpec;
use crate::rules::AlarmRule;
use crate::state::AlarmRuleState;

pub(super) fn on_update(
    cx: &EvaluationContext<'_>,
    state: &mut AlarmRuleState,
    rule: &AlarmRule,
    changed: &mut bool,
) -> Result<ConditionVerdict, String> {
    let ts = if cx.anchor_ts == 0 { cx.now } else { cx.anchor_ts };
    if !cx.is_in_force(rule.schedule.as_ref(), ts)? || !rule.expression.holds(cx)? {
        return Ok(ConditionVerdict::False);
    }
    let is_true = match rule.span {
        AlarmConditionSpec::Simple => true,
        AlarmConditionSpec::Duration { .. } => {
            let running = state.running_mut(rule.key);
            if running.last_ts <= 0 {
                running.first_ts = cx.anchor_ts;
                running.last_ts = cx.anchor_ts;
                *changed = true;
            }
            running.last_ts = running.last_ts.max(cx.anchor_ts);
            let duration = running.last_ts.saturating_sub(running.first_ts);
            duration > rule.span.required(cx)?
        }
        AlarmConditionSpec::Repeating { .. } => {
            let running = state.running_mut(rule.key);
            running.count = running.count.saturating_add(1);
            let count = i64::from(running.count);
            let required = rule.span.required(cx);
            // Counts beyond what is required make no difference after a restart.
            *changed |= required.as_ref().map_or(true, |required| count <= *required);
            count >= required?
        }
    };
    Ok(if is_true {
        ConditionVerdict::True
    } else {
        ConditionVerdict::NotYet
    })
}

pub(super) fn on_timer(
    cx: &EvaluationContext<'_>,
    state: &AlarmRuleState,
    rule: &AlarmRule,
) -> Result<ConditionVerdict, String> {
    let AlarmConditionSpec::Duration { .. } = rule.span else {
        return Ok(ConditionVerdict::NotYet);
    };
    let Some(running) = state.running(rule.key) else {
        return Ok(ConditionVerdict::False);
    };
    let required = rule.span.required(cx)?;
    if required <= 0 {
        return Ok(ConditionVerdict::False);
    }
    if cx.now <= running.last_ts {
        // The device's clock is ahead: its event is still to come, which is no reason to forget it.
        return Ok(ConditionVerdict::NotYet);
    }
    if !cx.is_in_force(rule.schedule.as_ref(), cx.now)? {
        return Ok(ConditionVerdict::False);
    }
    Ok(if cx.now.saturating_sub(running.first_ts) > required {
        ConditionVerdict::True
    } else {
        ConditionVerdict::NotYet
    })
}
