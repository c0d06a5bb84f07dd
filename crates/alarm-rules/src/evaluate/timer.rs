//! When to look again.

use super::EvaluationContext;
use crate::condition_spec::AlarmConditionSpec;
use crate::rules::{AlarmRule, RuleSetForm};
use crate::state::{AlarmRuleState, PartialMatch};

/// How often rules are checked whose result depends on more than one moment, milliseconds.
const RECHECK_MS: i64 = 60_000;

pub(super) fn next_check(cx: &EvaluationContext<'_>, state: &AlarmRuleState) -> Option<i64> {
    let mut next: Option<i64> = None;
    let mut earliest = |at: i64| next = Some(next.map_or(at, |next| next.min(at)));
    if let Some(parts) = state.parts.as_deref() {
        for running in &parts.running {
            let Some((alarm, rule)) = cx.rules.rule(running.rule) else {
                continue;
            };
            // A clear rule waits for the next alarm.
            let is_in_use = rule.severity.is_some() || state.active(alarm.key).is_some();
            if is_in_use && let Some(at) = next_duration_check(cx, rule, running) {
                earliest(at);
            }
        }
    }
    if cx.rules.form == RuleSetForm::CalculatedField && (cx.rules.scheduled || cx.rules.watches_silence) {
        if cx.rules.scheduled {
            earliest(next_minute(state.anchor_ts, cx.now));
        }
        for alarm in &cx.rules.alarms {
            let active = state.active(alarm.key).map(|active| active.severity);
            for rule in alarm.rules().filter(|rule| rule.expression.watches_silence()) {
                // A silence matters while it can raise something worse than there is, or clear what there is.
                let matters = match (rule.severity, active) {
                    (Some(own), Some(active)) => own < active,
                    (own, active) => own.is_some() || active.is_some(),
                };
                match rule.expression.next_silence(cx) {
                    _ if !matters => {}
                    Some(at) => earliest(at),
                    None if rule.severity.is_some() => earliest(next_minute(state.anchor_ts, cx.now)),
                    None => {}
                }
            }
        }
    }
    next
}

fn next_duration_check(cx: &EvaluationContext<'_>, rule: &AlarmRule, running: &PartialMatch) -> Option<i64> {
    let AlarmConditionSpec::Duration { .. } = rule.span else {
        return None;
    };
    let required = rule.span.required(cx).ok().filter(|required| *required > 0)?;
    if running.first_ts <= 0 {
        return None;
    }
    let minute = next_minute(running.first_ts, cx.now);
    match cx.rules.form {
        RuleSetForm::DeviceProfile => {
            let true_at = (running.first_ts.saturating_add(required).max(running.last_ts)).saturating_add(1);
            // A schedule may end meanwhile, which starts the duration anew.
            Some(
                if true_at <= cx.now || (rule.schedule.is_some() && minute < true_at) {
                    minute
                } else {
                    true_at
                },
            )
        }
        RuleSetForm::CalculatedField => {
            let is_reported = running.last_ts.saturating_sub(running.first_ts) >= required;
            let true_at = running.first_ts.saturating_add(required);
            (!is_reported).then_some(true_at.max(cx.now + 1))
        }
    }
}

/// The next whole minute after now, counted from an origin, so that checks of many originators do not come at once.
fn next_minute(origin: i64, now: i64) -> i64 {
    now + RECHECK_MS - now.wrapping_sub(origin).rem_euclid(RECHECK_MS)
}
