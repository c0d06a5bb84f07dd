//! Schemas of device profiles, and messages by one: whatever arrives is refused, or becomes whole, typed and bounded values,
//! and those that reflection makes of it. The input is a schema, a zero byte, and a message.

#![no_main]

use fieldline_model::json::JsonRules;
use fieldline_model::kv::{KvValueRef, unpack};
use fieldline_model::record::RecordBatch;
use fieldline_model::{DeviceId, EntityKey, TenantId};
use fieldline_protobuf::{ProtobufSchema, reference};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use uuid::Uuid;

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(2, |byte| *byte == 0);
    let source = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let message = parts.next().unwrap_or_default();
    let Ok(schema) = ProtobufSchema::compile(&source, "fuzzed schema") else {
        return;
    };
    if let Err(difference) = reference::check_agreement(&schema, message) {
        panic!("{difference}");
    }
    let rules = JsonRules::default();
    let mut packed = Vec::new();
    match schema.attributes(message, &rules, &mut packed) {
        Ok(count) => assert_eq!(check(&packed), count),
        Err(_) => assert!(packed.is_empty()),
    }
    // Escapes make a text up to six times as long.
    assert!(packed.len() <= 8 * ((64 << 10) + 16 * message.len()));
    let subject = EntityKey::device(TenantId(Uuid::nil()), DeviceId(Uuid::nil()));
    let mut batch = RecordBatch::new();
    let mut writer = batch.begin_telemetry(subject, 0, 0);
    let written = schema.telemetry(message, &rules, || 0, &mut writer);
    drop(writer);
    assert!(written.is_ok() || batch.is_empty());
    if let Ok(text) = schema.to_json(message) {
        serde_json::from_str::<&RawValue>(&text).expect("strict JSON");
        let _ = schema.encode_rpc("method", 1, &text);
    }
});

fn check(packed: &[u8]) -> u32 {
    let mut count = 0;
    for item in unpack(packed) {
        let (key, value) = item.expect("a whole key-value");
        assert!(!key.trim().is_empty());
        match value {
            KvValueRef::Double(value) => assert!(value.is_finite()),
            KvValueRef::Json(text) => {
                serde_json::from_str::<&RawValue>(text).expect("strict JSON");
            }
            KvValueRef::Bool(_) | KvValueRef::Long(_) | KvValueRef::Text(_) => {}
        }
        count += 1;
    }
    count
}
