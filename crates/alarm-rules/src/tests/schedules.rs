//! Days, hours, time zones and changes of clocks.

use fieldline_model::kv::KvValue;
use serde_json::{Value as Json, json};

use super::{AlarmInputSource, HOUR, MINUTE, NOON, World, duration, repeating, simple, t_rule};
use crate::AlarmRuleEvent;
use crate::parse::ConfigCursor;
use crate::schedule::{AlarmSchedule, ScheduleType};

fn schedule(json: &Json) -> AlarmSchedule {
    let at = ConfigCursor::root(json, "schedule");
    AlarmSchedule::parse(&at, ScheduleType::parse(&at).unwrap()).unwrap()
}

fn specific(zone: &str, days: &[u8], starts: i64, ends: i64) -> Json {
    json!({"type": "SPECIFIC_TIME", "timezone": zone, "daysOfWeek": days, "startsOn": starts, "endsOn": ends})
}

fn ts(text: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text)
        .unwrap()
        .timestamp_millis()
}

const ALL: &[u8] = &[1, 2, 3, 4, 5, 6, 7];

/// Zone, days, start, end, and whether it is in force at some moments.
type Case = (
    &'static str,
    &'static [u8],
    i64,
    i64,
    &'static [(&'static str, bool)],
);

#[test]
fn specific_hours() {
    let cases: &[Case] = &[
        // The start belongs to it, the end does not.
        (
            "UTC",
            ALL,
            8 * HOUR,
            17 * HOUR,
            &[
                ("2025-06-16T07:59:59.999Z", false),
                ("2025-06-16T08:00:00Z", true),
                ("2025-06-16T16:59:59.999Z", true),
                ("2025-06-16T17:00:00Z", false),
            ],
        ),
        // An end of 0 is the end of the day; 2025-06-16 is a Monday.
        (
            "",
            &[1, 7],
            0,
            0,
            &[
                ("2025-06-15T00:00:00Z", true),
                ("2025-06-16T23:59:59.999Z", true),
                ("2025-06-17T12:00:00Z", false),
            ],
        ),
        // Over midnight; the day is that of the event.
        (
            "UTC",
            &[1],
            22 * HOUR,
            6 * HOUR,
            &[
                ("2025-06-16T05:59:00Z", true),
                ("2025-06-16T06:00:00Z", false),
                ("2025-06-16T22:00:00Z", false),
                ("2025-06-16T22:00:00.001Z", true),
                ("2025-06-17T03:00:00Z", false),
                ("2025-06-16T00:00:00Z", false),
            ],
        ),
        // Local days and hours.
        (
            "America/New_York",
            &[1],
            20 * HOUR,
            0,
            &[
                ("2025-06-16T23:59:59Z", false),
                ("2025-06-17T00:00:00Z", true),
                ("2025-06-17T03:59:59Z", true),
                ("2025-06-17T04:00:00Z", false),
            ],
        ),
        (
            "UTC+05:30",
            ALL,
            9 * HOUR,
            10 * HOUR,
            &[("2025-06-16T03:30:00Z", true), ("2025-06-16T04:30:00Z", false)],
        ),
        (
            "-3",
            ALL,
            9 * HOUR,
            10 * HOUR,
            &[("2025-06-16T12:00:00Z", true), ("2025-06-16T09:00:00Z", false)],
        ),
        // Hours count from the start of the day: when clocks go forward at 02:00, "08:00" comes when clocks show 09:00.
        (
            "Europe/Berlin",
            ALL,
            8 * HOUR,
            9 * HOUR,
            &[
                ("2025-03-29T07:00:00Z", true),
                ("2025-03-30T06:30:00Z", false),
                ("2025-03-30T07:00:00Z", true),
                ("2025-03-31T06:00:00Z", true),
                ("2025-03-31T07:00:00Z", false),
                // And when they go back, it comes when they show 07:00.
                ("2025-10-26T05:59:00Z", false),
                ("2025-10-26T06:00:00Z", true),
                ("2025-10-26T07:00:00Z", false),
            ],
        ),
        // Clocks that skip midnight: the day begins at 01:00.
        (
            "Asia/Beirut",
            ALL,
            0,
            HOUR,
            &[
                ("2024-03-30T21:59:00Z", false),
                ("2024-03-30T22:00:00Z", true),
                ("2024-03-30T23:00:00Z", false),
            ],
        ),
        // Before 1970.
        (
            "UTC",
            &[3],
            23 * HOUR,
            0,
            &[("1969-12-31T23:30:00Z", true), ("1970-01-01T00:00:00Z", false)],
        ),
    ];
    for (zone, days, starts, ends, moments) in cases {
        let schedule = schedule(&specific(zone, days, *starts, *ends));
        for (moment, expected) in *moments {
            assert_eq!(
                schedule.is_active(ts(moment)),
                *expected,
                "{zone} {days:?} {starts} {ends} at {moment}"
            );
        }
    }
}

#[test]
fn hours_of_each_day() {
    let schedule = schedule(&json!({"type": "CUSTOM", "timezone": "Europe/Kyiv", "items": [
        {"enabled": true, "dayOfWeek": 1, "startsOn": 8 * HOUR, "endsOn": 12 * HOUR},
        {"enabled": true, "dayOfWeek": 1, "startsOn": 14 * HOUR, "endsOn": 18 * HOUR},
        {"enabled": false, "dayOfWeek": 2, "startsOn": 0, "endsOn": 0},
        {"enabled": true, "dayOfWeek": 3, "startsOn": 0, "endsOn": 0},
    ]}));
    for (moment, expected) in [
        ("2025-06-16T09:00:00+03:00", true),
        ("2025-06-16T15:00:00+03:00", false), // Only the first item of a day counts.
        ("2025-06-17T09:00:00+03:00", false),
        ("2025-06-18T00:00:00+03:00", true),
        ("2025-06-18T23:59:59+03:00", true),
        ("2025-06-19T12:00:00+03:00", false),
    ] {
        assert_eq!(schedule.is_active(ts(moment)), expected, "{moment}");
    }
}

fn with_schedule(mut rule: Json, schedule: Json) -> Json {
    rule["schedule"] = schedule;
    rule
}

#[test]
fn a_rule_out_of_schedule_is_false_at_the_time_of_the_event() {
    let rule = with_schedule(
        t_rule("GREATER", 50.0, repeating(2)),
        specific("UTC", ALL, 12 * HOUR, 13 * HOUR),
    );
    let mut world = World::profile(json!({"MAJOR": rule}), json!(null));
    world.t(60.0);
    world.now = NOON + HOUR;
    assert!(world.t(60.0).actions.is_empty());
    // An event of an earlier time is in it, and is the first again.
    let late = |world: &mut World, ts| {
        world.update(super::AlarmInputKind::TimeSeries, ts, &[("t", KvValue::Long(60))])
    };
    assert!(late(&mut world, NOON + 1).actions.is_empty());
    assert_eq!(late(&mut world, NOON + 2).actions.len(), 1);
}

#[test]
fn a_duration_ends_with_its_schedule() {
    let rule = with_schedule(
        t_rule("GREATER", 50.0, duration(3600)),
        specific("UTC", ALL, 0, 12 * HOUR + 30 * MINUTE),
    );
    let mut world = World::profile(json!({"MAJOR": rule}), json!(null));
    let outcome = world.t(60.0);
    assert_eq!(
        outcome.next_check,
        Some(NOON + MINUTE),
        "it is looked at every minute"
    );
    assert_eq!(world.wait(2 * HOUR, outcome.next_check), []);
    assert!(world.state.is_idle());
}

#[test]
fn a_schedule_may_come_from_an_attribute() {
    let mut fallback = specific("UTC", ALL, 0, HOUR);
    fallback["dynamicValue"] =
        json!({"sourceType": "CURRENT_DEVICE", "sourceAttribute": "hours", "inherit": true});
    let rule = with_schedule(t_rule("GREATER", 50.0, simple()), fallback);
    let mut world = World::profile(json!({"MAJOR": rule}), json!(null));
    assert!(world.t(60.0).actions.is_empty());
    let noon = r#"{"timezone":"UTC","daysOfWeek":[1],"startsOn":43200000,"endsOn":0}"#;
    world.store(AlarmInputSource::Tenant, "hours", KvValue::Json(noon.into()));
    world.now += 1;
    assert_eq!(world.t(60.0).actions.len(), 1);
    // What cannot be read is not used.
    world.store(AlarmInputSource::Originator, "hours", KvValue::Json("{}".into()));
    world.now += 1;
    assert!(world.t(60.0).actions.is_empty());
}

#[test]
fn a_calculated_field_is_looked_at_when_its_schedule_begins() {
    let hours = specific("UTC", ALL, 12 * HOUR + 10 * MINUTE, 0);
    let rule = super::t_field("GREATER", 50.0, json!({"schedule": {"staticValue": hours}}));
    let mut world = World::field(
        json!({"t": super::series("t", json!(null))}),
        json!({"MAJOR": rule}),
        json!(null),
    );
    let outcome = world.t(60.0);
    assert!(outcome.actions.is_empty());
    let actions = world.wait(9 * MINUTE, outcome.next_check);
    assert_eq!(actions, []);
    let next = world.evaluate(&AlarmRuleEvent::Timer).next_check;
    let actions = world.wait(30 * MINUTE, next);
    assert_eq!(actions.len(), 1, "once, and not every minute");
    assert_eq!(actions[0].start_ts, NOON);
}

#[test]
fn a_calculated_field_takes_its_schedule_from_an_argument() {
    let arguments = json!({"t": super::series("t", json!(null)), "hours":
        {"refEntityKey": {"key": "hours", "type": "ATTRIBUTE", "scope": "SERVER_SCOPE"}, "defaultValue": "{}"}});
    let rule = super::t_field(
        "GREATER",
        50.0,
        json!({"schedule": {"dynamicValueArgument": "hours"}}),
    );
    let mut world = World::field(arguments, json!({"MAJOR": rule}), json!(null));
    world.attribute(
        "hours",
        KvValue::Json(specific("UTC", &[2], 0, 0).to_string().into()),
    );
    world.now += 1;
    assert!(world.t(60.0).actions.is_empty());
    world.now += 1;
    assert_eq!(
        world.attribute("hours", KvValue::Text("{}".into())).actions.len(),
        1
    );
    world.now += 1;
    let error = world
        .attribute("hours", KvValue::Text("[]".into()))
        .error
        .unwrap();
    assert_eq!(error.to_string(), "schedule must be a JSON object");
}
