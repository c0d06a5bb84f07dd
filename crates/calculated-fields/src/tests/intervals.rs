//! Metrics over intervals of time; the calendar; history.

use CalculatedFieldType::EntityAggregation;

use super::*;
use crate::IntervalAnswer;
use crate::interval::IntervalCalendar;

const HOUR: i64 = 3_600_000;
/// 2023-11-14 22:00:00 UTC.
const TEN: i64 = 1_699_999_200_000;

fn hourly(watermark: u64, intermediate: bool) -> Arc<CompiledField> {
    field(
        EntityAggregation,
        json!({
            "type": "ENTITY_AGGREGATION",
            "arguments": { "energy": latest("e"), "temperature": latest("t") },
            "metrics": {
                "mean": { "function": "AVG", "input": { "type": "key", "key": "temperature" } },
                "total": { "function": "SUM", "input": { "type": "key", "key": "energy" }, "defaultValue": 0 },
            },
            "interval": { "type": "HOUR", "tz": "UTC" },
            "watermark": { "duration": watermark },
            "produceIntermediateResult": intermediate,
            "output": { "type": "TIME_SERIES", "decimalsByDefault": 1 },
        }),
    )
}

fn energy(field: &CompiledField, ts: i64) -> [ArgumentUpdate<'static>; 1] {
    [double(field, "energy", ts, 1.0)]
}

/// Answers all queries with this number.
fn answered(field: &CompiledField, outcome: &FieldOutcome, value: Option<f64>) -> Vec<Json> {
    let answers: Vec<IntervalAnswer> = outcome
        .queries
        .iter()
        .map(|query| IntervalAnswer {
            query: query.clone(),
            value: value.map(KvValue::Double),
        })
        .collect();
    let outputs = field.answer(&answers).unwrap();
    outputs
        .iter()
        .map(|output| serde_json::from_str(&output.message_body()).unwrap())
        .collect()
}

#[test]
fn an_interval_has_its_result_when_it_ends() {
    let field = hourly(0, false);
    let mut state = state(&field, &energy(&field, NOW));
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert!(outcome.outputs.is_empty() && outcome.queries.is_empty());
    assert_eq!(outcome.next_check, Some(TEN + HOUR));

    let outcome = evaluate(&field, &mut state, TEN + HOUR).unwrap();
    let query = &outcome.queries[0];
    assert_eq!((&*query.key, query.start, query.end), ("e", TEN, TEN + HOUR));
    assert_eq!(
        outcome.queries.len(),
        1,
        "there is nothing to read of the other series"
    );
    assert_eq!(
        answered(&field, &outcome, Some(12.34)),
        [json!({ "ts": TEN, "values": { "total": 12.3 } })]
    );
    assert_eq!(outcome.previous, [field_id(7)]);
    // The next interval has begun; without any values its result is the default.
    assert_eq!(outcome.next_check, Some(TEN + 2 * HOUR));
    let outcome = evaluate(&field, &mut state, TEN + 2 * HOUR).unwrap();
    assert!(outcome.queries.is_empty());
    assert_eq!(
        bodies(&outcome),
        [json!({ "ts": TEN + HOUR, "values": { "total": 0.0 } })]
    );
}

#[test]
fn intermediate_results_come_while_values_do() {
    let field = hourly(0, true);
    let mut state = state(&field, &energy(&field, NOW));
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert_eq!(outcome.queries.len(), 1);
    let quiet = evaluate(&field, &mut state, NOW + 1).unwrap();
    assert!(quiet.queries.is_empty() && quiet.outputs.is_empty());
    field
        .update(&mut state, &energy(&field, NOW + 2), &[], NOW + 2)
        .unwrap();
    let outcome = evaluate(&field, &mut state, NOW + 2).unwrap();
    assert!(outcome.queries.is_empty());
    assert_eq!(outcome.next_check, Some(NOW + 300_000));
    assert_eq!(
        evaluate(&field, &mut state, NOW + 300_000).unwrap().queries.len(),
        1
    );
}

#[test]
fn values_that_come_late_count_until_the_watermark_has_passed() {
    let field = hourly(600, false);
    let mut state = state(&field, &energy(&field, NOW));
    let end = TEN + HOUR;
    assert_eq!(evaluate(&field, &mut state, end).unwrap().queries.len(), 1);
    // A minute of rest between two results.
    field
        .update(&mut state, &energy(&field, end - 1), &[], end + 10_000)
        .unwrap();
    let outcome = evaluate(&field, &mut state, end + 10_000).unwrap();
    assert!(outcome.queries.is_empty());
    assert_eq!(outcome.next_check, Some(end + 60_000));
    assert_eq!(
        evaluate(&field, &mut state, end + 60_000).unwrap().queries.len(),
        1
    );
    // The last one at the watermark, and then no more.
    field
        .update(&mut state, &energy(&field, end - 1), &[], end + 599_000)
        .unwrap();
    assert_eq!(
        evaluate(&field, &mut state, end + 600_001).unwrap().queries.len(),
        1
    );
    let late = field.update(&mut state, &energy(&field, end - 1), &[], end + 600_002);
    assert_eq!(late, Ok(false));
    // An hour that ended before this state began, but within the watermark.
    let mut fresh = field.new_state(device(1));
    let early = field.update(&mut fresh, &energy(&field, TEN - 1), &[], TEN + 1);
    assert_eq!(early, Ok(true));
    let outcome = evaluate(&field, &mut fresh, TEN + 1).unwrap();
    assert_eq!(outcome.queries[0].start, TEN - HOUR);
}

#[test]
fn what_happened_during_a_stop_is_made_up_for_within_the_watermark() {
    let field = hourly(3 * 3_600, false);
    let mut state = state(&field, &energy(&field, NOW));
    let bytes = field.encode(&state);
    let mut restored = field.decode(device(1), &bytes).unwrap();
    let now = TEN + 5 * HOUR + 1;
    field.restore(&mut restored, now);
    let outcome = evaluate(&field, &mut restored, now).unwrap();
    let starts = |key: &str| -> Vec<i64> {
        let of_key = outcome.queries.iter().filter(|query| &*query.key == key);
        let mut hours: Vec<i64> = of_key.map(|query| (query.start - TEN) / HOUR).collect();
        hours.sort_unstable();
        hours
    };
    // The hours from the oldest one that is still waited for, and the one that had begun before the stop.
    assert_eq!(starts("e"), [0, 2, 3, 4]);
    assert_eq!(starts("t"), [2, 3, 4]);
    // Without a stop there is nothing to make up for.
    field.restore(&mut state, NOW + 1);
    assert!(evaluate(&field, &mut state, NOW + 1).unwrap().queries.is_empty());
}

#[test]
fn intervals_are_those_of_the_calendar_and_the_time_zone() {
    let bounds = |interval: Json, at: &str| {
        let calendar = IntervalCalendar::new(&serde_json::from_value(interval).unwrap()).unwrap();
        let at = chrono::DateTime::parse_from_rfc3339(at)
            .unwrap()
            .timestamp_millis();
        let (start, end) = calendar.bounds(at).unwrap();
        assert_eq!(calendar.end_of(start), Some(end));
        let show = |ts: i64| {
            chrono::DateTime::from_timestamp_millis(ts)
                .unwrap()
                .format("%FT%RZ")
                .to_string()
        };
        (show(start), show(end))
    };
    for (kind, tz, at, start, end) in [
        (
            "HOUR",
            "Asia/Kolkata",
            "2024-05-15T10:40:00Z",
            "2024-05-15T10:30Z",
            "2024-05-15T11:30Z",
        ),
        (
            "DAY",
            "Europe/Berlin",
            "2024-05-15T23:00:00Z",
            "2024-05-15T22:00Z",
            "2024-05-16T22:00Z",
        ),
        // The days on which the clocks change have 23 and 25 hours.
        (
            "DAY",
            "Europe/Berlin",
            "2024-03-31T12:00:00Z",
            "2024-03-30T23:00Z",
            "2024-03-31T22:00Z",
        ),
        (
            "DAY",
            "Europe/Berlin",
            "2024-10-27T12:00:00Z",
            "2024-10-26T22:00Z",
            "2024-10-27T23:00Z",
        ),
        // A day without a midnight.
        (
            "DAY",
            "America/Sao_Paulo",
            "2018-11-04T12:00:00Z",
            "2018-11-04T03:00Z",
            "2018-11-05T02:00Z",
        ),
        (
            "WEEK",
            "UTC",
            "2024-05-19T10:00:00Z",
            "2024-05-13T00:00Z",
            "2024-05-20T00:00Z",
        ),
        (
            "WEEK_SUN_SAT",
            "UTC",
            "2024-05-19T10:00:00Z",
            "2024-05-19T00:00Z",
            "2024-05-26T00:00Z",
        ),
        (
            "MONTH",
            "UTC",
            "2024-02-29T10:00:00Z",
            "2024-02-01T00:00Z",
            "2024-03-01T00:00Z",
        ),
        (
            "QUARTER",
            "UTC",
            "2024-06-30T10:00:00Z",
            "2024-04-01T00:00Z",
            "2024-07-01T00:00Z",
        ),
        (
            "YEAR",
            "UTC",
            "2024-06-30T10:00:00Z",
            "2024-01-01T00:00Z",
            "2025-01-01T00:00Z",
        ),
    ] {
        let interval = json!({ "type": kind, "tz": tz });
        assert_eq!(
            bounds(interval, at),
            (start.to_owned(), end.to_owned()),
            "{kind} {tz} {at}"
        );
    }
    let custom = json!({ "type": "CUSTOM", "tz": "UTC", "durationSec": 7_200, "offsetSec": 600 });
    let shifted = bounds(custom, "2024-05-15T10:05:00Z");
    assert_eq!(
        shifted,
        ("2024-05-15T08:10Z".to_owned(), "2024-05-15T10:10Z".to_owned())
    );
    let shifted = bounds(
        json!({ "type": "DAY", "tz": "UTC", "offsetSec": 3_600 }),
        "2024-05-15T00:30:00Z",
    );
    assert_eq!(
        shifted,
        ("2024-05-14T01:00Z".to_owned(), "2024-05-15T01:00Z".to_owned())
    );
}
