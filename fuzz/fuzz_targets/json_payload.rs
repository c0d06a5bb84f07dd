//! Device payloads: whatever arrives, what is packed is whole, typed and bounded, and nested values are strict JSON.

#![no_main]

use std::collections::HashSet;

use fieldline_model::json::{JsonRules, NullPolicy, attribute_request, attributes, telemetry};
use fieldline_model::kv::{KvValueRef, MAX_KEY_BYTES, unpack};
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, rows, split};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use uuid::Uuid;

fuzz_target!(|payload: &[u8]| {
    let strict = JsonRules {
        type_cast: false,
        max_string_length: 8,
        nulls: NullPolicy::Reject,
    };
    for rules in [JsonRules::default(), strict] {
        check_telemetry(payload, &rules);
        check_attributes(payload, &rules);
    }
    let _ = attribute_request(payload);
});

fn check_telemetry(payload: &[u8], rules: &JsonRules) {
    let subject = EntityKey::device(TenantId(Uuid::nil()), DeviceId(Uuid::nil()));
    let mut batch = RecordBatch::new();
    let mut writer = batch.begin_telemetry(subject, 0, 0);
    if telemetry(payload, rules, || 0, &mut writer).is_err() {
        drop(writer);
        assert!(batch.as_bytes().is_empty());
        return;
    }
    let points = writer.finish();
    let mut found = 0;
    for record in split(batch.as_bytes()) {
        let record = JournalRecord::decode(record.expect("a whole record")).expect("a decodable record");
        let RecordBody::Telemetry { rows: bytes, .. } = record.body else {
            panic!("not telemetry");
        };
        for row in rows(bytes) {
            let row = row.expect("a whole row");
            assert_eq!(check_values(row.values), row.count);
            found += row.count;
        }
    }
    assert_eq!(found, points);
    // A row of a few bytes of JSON has a header of its own.
    assert!(batch.as_bytes().len() <= 2048 + 16 * payload.len());
}

fn check_attributes(payload: &[u8], rules: &JsonRules) {
    let mut packed = Vec::new();
    match attributes(payload, rules, &mut packed) {
        Ok(count) => assert_eq!(check_values(&packed), count),
        Err(error) => {
            assert!(packed.is_empty());
            // Replacing what is not UTF-8 makes a payload at most three times as long.
            assert!(error.at() <= 3 * payload.len());
        }
    }
}

fn check_values(packed: &[u8]) -> u32 {
    let mut keys = HashSet::new();
    for item in unpack(packed) {
        let (key, value) = item.expect("a whole key-value");
        assert!(!key.trim().is_empty() && key.len() <= MAX_KEY_BYTES);
        assert!(keys.insert(key), "{key} twice");
        match value {
            KvValueRef::Double(value) => assert!(value.is_finite()),
            KvValueRef::Json(text) => {
                serde_json::from_str::<&RawValue>(text).expect("strict JSON");
            }
            KvValueRef::Bool(_) | KvValueRef::Long(_) | KvValueRef::Text(_) => {}
        }
    }
    keys.len() as u32
}
