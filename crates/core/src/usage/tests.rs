//! Tests of usage, with simulated time.

use fieldline_model::entity::TenantProfile;
use serde_json::{Value as Json, json};

use super::*;

/// 2023-11-14 22:13:20 UTC, and the start of its month and hour.
const NOW: i64 = 1_700_000_000_000;
const MONTH: i64 = 1_698_796_800_000;
const HOUR: i64 = 1_699_999_200_000;
/// 2023-12-01 00:00:00 UTC.
const NEXT_MONTH: i64 = 1_701_388_800_000;

fn limits(settings: Json) -> UsageLimits {
    UsageLimits::of(&TenantProfile {
        profile_data: json!({ "configuration": settings }),
        ..TenantProfile::default()
    })
}

/// Formats the points as `key@time = value`.
fn shown(report: &UsageReport) -> Vec<String> {
    let mut points: Vec<String> = report
        .points
        .iter()
        .map(|point| format!("{}@{} = {}", point.key, point.ts, point.value.to_text()))
        .collect();
    points.sort_unstable();
    points
}

#[test]
fn counts_are_of_the_month_and_the_hour() {
    let usage = TenantUsage::new(&[], UsageLimits::default(), NOW);
    usage.add(UsageKey::TransportMessages, 2);
    usage.add(UsageKey::TransportMessages, 3);
    let report = usage.take_report(false, NOW);
    assert_eq!(
        shown(&report),
        [
            format!("transportMsgCount@{MONTH} = 5"),
            format!("transportMsgCountHourly@{HOUR} = 5"),
        ]
    );
    assert_eq!(usage.take_report(false, NOW), UsageReport::default());

    usage.add(UsageKey::TransportMessages, 1);
    let next_hour = HOUR + HOUR_MS;
    assert_eq!(
        shown(&usage.take_report(false, next_hour)),
        [
            format!("transportMsgCount@{MONTH} = 6"),
            format!("transportMsgCountHourly@{next_hour} = 1"),
        ]
    );
    usage.add(UsageKey::TransportMessages, 4);
    let report = shown(&usage.take_report(false, NEXT_MONTH + 1));
    assert!(
        report.contains(&format!("transportMsgCount@{NEXT_MONTH} = 4")),
        "{report:?}"
    );
    assert!(
        report.contains(&format!("smsCount@{NEXT_MONTH} = 0")),
        "{report:?}"
    );
    assert_eq!(usage.used(UsageKey::TransportMessages), 4);
}

#[test]
fn a_sum_begins_with_what_was_counted_before_it() {
    let parts = [2, 3].map(|count| {
        let usage = TenantUsage::new(&[], UsageLimits::default(), NOW - HOUR_MS);
        usage.add(UsageKey::TransportMessages, 10);
        usage.set(UsageKey::ActiveDevices, 7);
        usage.take_report(false, NOW - HOUR_MS);
        usage.add(UsageKey::TransportMessages, count);
        usage.take_report(false, NOW);
        usage
    });
    let counted: Vec<StoredUsage> = parts.iter().flat_map(TenantUsage::counted).collect();
    let sum = TenantUsage::new(&[], UsageLimits::default(), NOW);
    sum.restore(&counted, &[], UsageLimits::default(), NOW);
    sum.add(UsageKey::TransportMessages, 1);
    let report = shown(&sum.take_report(false, NOW));
    assert_eq!(
        report,
        [
            format!("transportMsgCount@{MONTH} = 26"),
            format!("transportMsgCountHourly@{HOUR} = 6"),
        ],
        "and devices are not added up"
    );
}

#[test]
fn no_count_is_lost_between_threads() {
    let usage = TenantUsage::new(&[], UsageLimits::default(), NOW);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10_000).for_each(|_| usage.add(UsageKey::TbelExecutions, 1)));
        }
        (0..100).for_each(|_| drop(usage.take_report(false, NOW)));
    });
    usage.take_report(false, NOW);
    assert_eq!(usage.used(UsageKey::TbelExecutions), 40_000);
}

#[test]
fn a_feature_warns_before_it_ends_and_begins_anew_with_the_month() {
    let limits = limits(json!({ "maxTransportMessages": 100, "maxTransportDataPoints": 1_000 }));
    let usage = TenantUsage::new(&[], limits, NOW);
    for (messages, expected) in [
        (79, None),
        (1, Some((UsageState::Warning, 80))),
        (19, None),
        (1, Some((UsageState::Disabled, 100))),
        (50, None),
    ] {
        usage.add(UsageKey::TransportMessages, messages);
        let report = usage.take_report(false, NOW);
        let expected: Vec<UsageChange> = expected
            .into_iter()
            .map(|(state, value)| UsageChange {
                feature: ApiFeature::Transport,
                state,
                key: UsageKey::TransportMessages,
                value,
                limit: 100,
            })
            .collect();
        assert_eq!(report.changes, expected);
        if let [change] = expected.as_slice() {
            let state = format!("transportApiState@{NOW} = {}", change.state.name());
            assert!(shown(&report).contains(&state));
        }
    }
    assert!(!usage.allows(ApiFeature::Transport));
    assert!(usage.allows(ApiFeature::RuleEngine));
    let report = usage.take_report(false, NEXT_MONTH);
    assert_eq!(report.changes.len(), 1);
    assert!(usage.allows(ApiFeature::Transport));
}

#[test]
fn the_most_restricting_count_of_a_feature_decides() {
    let limits =
        limits(json!({ "maxTransportMessages": 100, "maxTransportDataPoints": 10, "warnThreshold": 0.5 }));
    let usage = TenantUsage::new(&[], limits, NOW);
    usage.add(UsageKey::TransportMessages, 50);
    usage.add(UsageKey::TransportDataPoints, 10);
    let change = usage.take_report(false, NOW).changes[0];
    assert_eq!(
        (change.state, change.key),
        (UsageState::Disabled, UsageKey::TransportDataPoints)
    );
}

#[test]
fn other_limits_count_at_once() {
    let usage = TenantUsage::new(&[], UsageLimits::default(), NOW);
    usage.add(UsageKey::Emails, 9);
    assert!(usage.take_report(true, NOW).changes.is_empty());
    let report = usage.set_limits(limits(json!({ "maxEmails": 10, "smsEnabled": false })), NOW + 1);
    assert_eq!(
        shown(&report),
        [
            format!("emailApiState@{} = WARNING", NOW + 1),
            format!("emailLimit@{} = 10", NOW + 1),
            format!("smsApiState@{} = DISABLED", NOW + 1),
        ]
    );
    assert_eq!(usage.state(ApiFeature::Email), UsageState::Warning);
    assert!(!usage.allows(ApiFeature::Sms));
}

#[test]
fn only_what_is_urgent_is_gathered_in_between() {
    let usage = TenantUsage::new(&[], UsageLimits::default(), NOW);
    usage.add(UsageKey::Sms, 1);
    usage.add(UsageKey::CreatedAlarms, 1);
    assert_eq!(
        shown(&usage.take_report(true, NOW)),
        [
            format!("smsCount@{MONTH} = 1"),
            format!("smsCountHourly@{HOUR} = 1")
        ]
    );
    assert_eq!(shown(&usage.take_report(false, NOW)).len(), 2);
}

#[test]
fn gauges_have_their_newest_value_and_the_largest_of_the_hour() {
    let usage = TenantUsage::new(&[], UsageLimits::default(), NOW);
    for (value, hourly) in [(5, 5), (3, 5), (7, 7)] {
        usage.set(UsageKey::ActiveDevices, value);
        assert_eq!(
            shown(&usage.take_report(false, NOW)),
            [
                format!("activeDevicesCount@{MONTH} = {value}"),
                format!("activeDevicesCountHourly@{HOUR} = {hourly}"),
            ]
        );
    }
}

#[test]
fn a_restart_goes_on_with_what_is_stored_of_this_month_and_hour() {
    let stored = |month: i64, hour: i64| StoredUsage {
        key: UsageKey::CreatedAlarms,
        month: Some((month, 10)),
        hour: Some((hour, 2)),
    };
    let limits = limits(json!({ "maxCreatedAlarms": 10 }));
    let usage = TenantUsage::new(&[stored(MONTH, HOUR - HOUR_MS)], limits, NOW);
    assert!(!usage.allows(ApiFeature::Alarms));
    usage.add(UsageKey::CreatedAlarms, 1);
    let report = usage.take_report(false, NOW);
    assert!(report.changes.is_empty(), "it was told before the restart");
    assert_eq!(
        shown(&report),
        [
            format!("createdAlarmsCount@{MONTH} = 11"),
            format!("createdAlarmsCountHourly@{HOUR} = 1"),
        ]
    );
    let usage = TenantUsage::new(&[stored(MONTH - 1, HOUR)], limits, NOW);
    assert!(usage.allows(ApiFeature::Alarms));
}

#[test]
fn points_that_are_kept_for_long_count_a_day_each() {
    for (points, ttl, expected) in [
        (3, 0, 3),
        (3, 86_399, 3),
        (3, 86_400, 3),
        (3, 10 * 86_400, 30),
        (u64::MAX, 864_000, u64::MAX),
    ] {
        assert_eq!(storage_points(points, ttl), expected);
    }
}
