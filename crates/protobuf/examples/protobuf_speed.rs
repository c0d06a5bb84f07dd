//! Measures the conversion of typical Protobuf payloads to a packed journal record: by the plan of the schema, by
//! reflection over a tree, and for comparison the same values in JSON.
//!
//! `cargo run --release -p fieldline-protobuf --features reference --example protobuf_speed`

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

use fieldline_model::json::{self, JsonRules};
use fieldline_model::record::{RecordBatch, TelemetryWriter};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use fieldline_protobuf::{ProtobufSchema, reference};
use prost::encoding::{WireType, double, encode_key, encode_varint, int64, string};
use uuid::Uuid;

struct BenchPayload {
    name: &'static str,
    schema: String,
    bytes: Vec<u8>,
    json: String,
}

/// A payload of temperature, humidity and state.
fn three() -> (&'static str, Vec<u8>, &'static str) {
    let mut bytes = Vec::new();
    double::encode(1, &21.5, &mut bytes);
    int64::encode(2, &40, &mut bytes);
    string::encode(3, &"on".to_owned(), &mut bytes);
    let fields = "optional double temperature = 1; optional int64 humidity = 2; optional string state = 3;";
    (
        fields,
        bytes,
        r#"{"temperature":21.5,"humidity":40,"state":"on"}"#,
    )
}

fn within(number: u32, message: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(message.len() as u64, out);
    out.extend_from_slice(message);
}

fn many(count: u32) -> (String, Vec<u8>, String) {
    let (mut fields, mut bytes, mut members) = (String::new(), Vec::new(), Vec::new());
    for number in 1..=count {
        fields.push_str(&format!("optional double sensor_{number} = {number};"));
        double::encode(number, &(f64::from(number) * 3.0 + 0.5), &mut bytes);
        members.push(format!("\"sensor{number}\":{}.5", number * 3));
    }
    (fields, bytes, format!("{{{}}}", members.join(",")))
}

fn payloads() -> Vec<BenchPayload> {
    let schema = |body: &str| format!("syntax = \"proto3\"; message M {{ {body} }}");
    let (fields, bytes, json) = three();
    let mut timed = Vec::new();
    int64::encode(1, &1_700_000_000_000, &mut timed);
    within(2, &bytes, &mut timed);
    let mut nested = Vec::new();
    let mut position = Vec::new();
    double::encode(1, &52.5163, &mut position);
    double::encode(2, &13.3777, &mut position);
    within(1, &position, &mut nested);
    within(2, &(1..20).collect::<Vec<u8>>(), &mut nested);
    let list: Vec<String> = (1..20).map(|n| n.to_string()).collect();
    let mut payloads = vec![
        BenchPayload {
            name: "flat, 3 points",
            schema: schema(fields),
            bytes,
            json: json.to_owned(),
        },
        BenchPayload {
            name: "ts and values, 3 points",
            schema: schema(&format!(
                "optional int64 ts = 1; Values values = 2; message Values {{ {fields} }}"
            )),
            bytes: timed,
            json: format!("{{\"ts\":1700000000000,\"values\":{json}}}"),
        },
        BenchPayload {
            name: "nested message and list",
            schema: schema(
                "Position position = 1; repeated int32 list = 2; message Position { double lat = 1; double lon = 2; }",
            ),
            bytes: nested,
            json: format!(
                "{{\"position\":{{\"lat\":52.5163,\"lon\":13.3777}},\"list\":[{}]}}",
                list.join(",")
            ),
        },
    ];
    for (name, count) in [("10 points", 10), ("100 points", 100), ("500 points", 500)] {
        let (fields, bytes, json) = many(count);
        payloads.push(BenchPayload {
            name,
            schema: schema(&fields),
            bytes,
            json,
        });
    }
    payloads
}

fn main() -> Result<(), fieldline_protobuf::SchemaError> {
    println!(
        "{:26} {:>7} {:>9} {:>14} {:>9} {:>10} {:>10}",
        "payload", "bytes", "ns", "reflection, ns", "JSON, ns", "reflection", "JSON"
    );
    let rules = JsonRules::default();
    for BenchPayload {
        name,
        schema,
        bytes,
        json,
    } in payloads()
    {
        let schema = ProtobufSchema::compile(&schema, "schema")?;
        let plan = best_of(bytes.len(), || {
            packed_length(|out| schema.telemetry(black_box(&bytes), &rules, || 0, out).is_ok())
        });
        let reflection = best_of(bytes.len(), || {
            packed_length(|out| reference::telemetry(&schema, black_box(&bytes), &rules, || 0, out).is_ok())
        });
        let text = best_of(json.len(), || {
            packed_length(|out| json::telemetry(black_box(json.as_bytes()), &rules, || 0, out).is_ok())
        });
        println!(
            "{name:26} {:>7} {plan:>9.0} {reflection:>14.0} {text:>9.0} {:>9.1}x {:>9.2}x",
            bytes.len(),
            reflection / plan,
            text / plan,
        );
    }
    Ok(())
}

thread_local! {
    static BATCH: RefCell<RecordBatch> = const { RefCell::new(RecordBatch::new()) };
}

fn packed_length(write: impl FnOnce(&mut TelemetryWriter<'_>) -> bool) -> usize {
    let subject = EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(2)));
    BATCH.with_borrow_mut(|batch| {
        batch.clear();
        let mut writer = batch.begin_telemetry(subject, 0, 0);
        let written = write(&mut writer);
        writer.finish();
        usize::from(written) + batch.as_bytes().len()
    })
}

/// Nanoseconds per call, the best of several rounds of some milliseconds.
fn best_of(bytes: usize, mut call: impl FnMut() -> usize) -> f64 {
    let calls = (500_000 / (bytes + 20)).max(10);
    let rounds = (0..15).map(|_| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        start.elapsed().as_nanos() as f64 / calls as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}
