//! Prints how long typical payloads take from JSON text to a packed journal record, next to a tree parser.

use std::hint::black_box;
use std::time::Instant;

use fieldline_model::json::{JsonRules, telemetry};
use fieldline_model::record::RecordBatch;
use fieldline_model::{DeviceId, EntityKey, TenantId};
use uuid::Uuid;

fn main() {
    let members = |count: usize| {
        let members: Vec<_> = (0..count)
            .map(|i| format!("\"sensor_{i}\":{}.5", i * 3))
            .collect();
        format!("{{{}}}", members.join(","))
    };
    let payloads = [
        ("nothing", "{}".to_owned()),
        (
            "flat, 3 points",
            r#"{"temperature":21.5,"humidity":40,"state":"on"}"#.to_owned(),
        ),
        (
            "ts and values, 3 points",
            r#"{"ts":1700000000000,"values":{"temperature":21.5,"humidity":40,"state":"on"}}"#.to_owned(),
        ),
        (
            "lenient, 3 points",
            "{temperature:21.5,humidity:40,state:on}".to_owned(),
        ),
        (
            "a null among 3",
            r#"{"temperature":21.5,"humidity":null,"state":"on"}"#.to_owned(),
        ),
        (
            "text as number",
            r#"{"temperature":"21.5","humidity":"40","state":"on"}"#.to_owned(),
        ),
        (
            "nested value",
            r#"{"position":{"lat":52.5163,"lon":13.3777},"ok":true}"#.to_owned(),
        ),
        (
            "escapes",
            r#"{"message":"line one\nline two \u00e9","ok":true}"#.to_owned(),
        ),
        ("10 points", members(10)),
        ("100 points", members(100)),
        ("1,000 points", members(1_000)),
        ("10,000 points", members(10_000)),
        (
            "array of 10 × 3",
            format!(
                "[{}]",
                [r#"{"ts":1,"values":{"a":1,"b":2.5,"c":true}}"#; 10].join(",")
            ),
        ),
    ];
    println!(
        "{:24} {:>9} {:>11} {:>11} {:>14}",
        "payload", "bytes", "ns", "ns/byte", "tree alone, ns"
    );
    for (name, payload) in payloads {
        let bytes = payload.as_bytes();
        let ours = best_of(bytes.len(), || packed_length(black_box(bytes)));
        let tree = best_of(bytes.len(), || {
            serde_json::from_slice::<serde_json::Value>(black_box(bytes))
                .map_or(0, |value| usize::from(value.is_null()))
        });
        println!(
            "{name:24} {:>9} {ours:>11.0} {:>11.2} {tree:>14.0}",
            bytes.len(),
            ours / bytes.len() as f64
        );
    }
}

thread_local! {
    static BATCH: std::cell::RefCell<RecordBatch> = const { std::cell::RefCell::new(RecordBatch::new()) };
}

fn packed_length(payload: &[u8]) -> usize {
    let subject = EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(2)));
    BATCH.with_borrow_mut(|batch| {
        batch.clear();
        let mut writer = batch.begin_telemetry(subject, 0, 0);
        let read = telemetry(payload, &JsonRules::default(), || 0, &mut writer);
        writer.finish();
        usize::from(read.is_ok()) + batch.as_bytes().len()
    })
}

/// Nanoseconds a call, the best of several rounds of about ten milliseconds.
fn best_of(bytes: usize, mut call: impl FnMut() -> usize) -> f64 {
    let calls = (2_000_000 / (bytes + 20)).max(10);
    let rounds = (0..15).map(|_| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        start.elapsed().as_nanos() as f64 / calls as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}
