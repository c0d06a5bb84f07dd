//! Rules of a device profile: durations are measured between the times of events.

use super::{Context, Verdict};
use crate::alarm_rules::rules::Rule;
use crate::alarm_rules::span::Span;
use crate::alarm_rules::state::State;

pub(super) fn on_update(
    cx: &Context<'_>,
    state: &mut State,
    rule: &Rule,
    changed: &mut bool,
) -> Result<Verdict, String> {
    let ts = if cx.anchor_ts == 0 { cx.now } else { cx.anchor_ts };
    if !cx.is_in_force(rule.schedule.as_ref(), ts)? || !rule.expression.holds(cx)? {
        return Ok(Verdict::False);
    }
    let is_true = match rule.span {
        Span::Simple => true,
        Span::Duration { .. } => {
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
        Span::Repeating { .. } => {
            let running = state.running_mut(rule.key);
            running.count = running.count.saturating_add(1);
            let count = i64::from(running.count);
            let required = rule.span.required(cx);
            // Counts beyond what is required make no difference after a restart.
            *changed |= required.as_ref().map_or(true, |required| count <= *required);
            count >= required?
        }
    };
    Ok(if is_true { Verdict::True } else { Verdict::NotYet })
}

pub(super) fn on_timer(cx: &Context<'_>, state: &State, rule: &Rule) -> Result<Verdict, String> {
    let Span::Duration { .. } = rule.span else {
        return Ok(Verdict::NotYet);
    };
    let Some(running) = state.running(rule.key) else {
        return Ok(Verdict::False);
    };
    let required = rule.span.required(cx)?;
    if required <= 0 {
        return Ok(Verdict::False);
    }
    if cx.now <= running.last_ts {
        // The device's clock is ahead: its event is still to come, which is no reason to forget it.
        return Ok(Verdict::NotYet);
    }
    if !cx.is_in_force(rule.schedule.as_ref(), cx.now)? {
        return Ok(Verdict::False);
    }
    Ok(if cx.now.saturating_sub(running.first_ts) > required {
        Verdict::True
    } else {
        Verdict::NotYet
    })
}
