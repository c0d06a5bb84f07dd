mod agreement;

use fieldline_model::json::JsonRules;
use fieldline_model::kv::{KvValue, unpack};
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, rows, split};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use prost::Message as _;
use serde_json::json;
use uuid::Uuid;

use super::api::{self, KeyValueProto, PostTelemetryMsg, TsKvListProto};
use super::*;

const HEADER: &str = "syntax = \"proto3\";\npackage test;\n";

/// Encodes a field of bytes: a message, a text or packed numbers.
fn chunk(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, bytes.len() as u8];
    out.extend_from_slice(bytes);
    out
}

fn compile(body: &str) -> ProtobufSchema {
    ProtobufSchema::compile(&format!("{HEADER}{body}"), "attributes proto schema").expect("a valid schema")
}

fn refusal(schema: &str) -> String {
    ProtobufSchema::compile(schema, "attributes proto schema")
        .expect_err("a wrong schema")
        .to_string()
}

fn attributes(schema: &ProtobufSchema, payload: &[u8]) -> Result<Vec<(String, KvValue)>, MessageError> {
    let mut out = Vec::new();
    schema.attributes(payload, &JsonRules::default(), &mut out)?;
    Ok(pairs(&out))
}

fn pairs(packed: &[u8]) -> Vec<(String, KvValue)> {
    unpack(packed)
        .map(|item| item.map(|(key, value)| (key.to_owned(), value.to_value())))
        .collect::<Result<_, _>>()
        .expect("packed values")
}

type Rows = Vec<(i64, Vec<(String, KvValue)>)>;

fn written(
    write: impl FnOnce(&mut fieldline_model::record::TelemetryWriter<'_>) -> Result<(), MessageError>,
) -> Result<Rows, MessageError> {
    let subject = EntityKey::device(TenantId(Uuid::nil()), DeviceId(Uuid::nil()));
    let mut batch = RecordBatch::new();
    let mut writer = batch.begin_telemetry(subject, 0, 0);
    write(&mut writer)?;
    writer.finish();
    let mut out = Vec::new();
    for record in split(batch.as_bytes()) {
        let record = JournalRecord::decode(record.expect("a record")).expect("a decodable record");
        let RecordBody::Telemetry { rows: packed, .. } = record.body else {
            panic!("it is telemetry");
        };
        for row in rows(packed) {
            let row = row.expect("a row");
            let values = pairs(row.values);
            assert_eq!(values.len(), row.count as usize);
            out.push((row.ts, values));
        }
    }
    Ok(out)
}

fn telemetry(schema: &ProtobufSchema, payload: &[u8]) -> Result<Rows, MessageError> {
    written(|out| schema.telemetry(payload, &JsonRules::default(), || 77, out))
}

fn text(value: &str) -> KvValue {
    KvValue::Text(value.into())
}

fn json_of(value: &str) -> KvValue {
    KvValue::Json(value.into())
}

#[test]
fn fields_become_values_of_their_types() {
    let schema = compile(
        "enum Mode { OFF = 0; ECO = 1; }
         message Values {
           optional string name = 1; bool on = 2; double level = 3; int32 count = 4; uint64 large = 5;
           float warm_degrees = 6; bytes raw = 7; Mode mode = 8; repeated int64 list = 9; map<string, int32> map = 10;
           optional int32 absent = 11; Inner inner = 12; oneof choice { string left = 13; string right = 14; }
           message Inner { int64 big = 1; double d = 2; repeated Inner inner = 3; }
         }",
    );
    let mut payload = chunk(1, b"meter");
    payload.extend([2 << 3, 1, 3 << 3 | 1]);
    payload.extend(25.0f64.to_le_bytes());
    payload.extend([4 << 3, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    payload.extend([5 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    payload.push(6 << 3 | 5);
    payload.extend(3.6f32.to_le_bytes());
    payload.extend(chunk(7, b"\0\xff"));
    payload.extend([8 << 3, 1]);
    payload.extend(chunk(9, &[1, 2]));
    payload.extend(chunk(10, &[0x0a, 1, b'a', 0x10, 5]));
    payload.extend(chunk(12, &[1 << 3, 9]));
    payload.extend(chunk(14, b"12"));
    let found = attributes(&schema, &payload).expect("it follows the schema");
    let expected = [
        ("name", text("meter")),
        ("on", KvValue::Bool(true)),
        ("level", KvValue::Double(25.0)),
        ("count", KvValue::Long(-7)),
        ("large", text("18446744073709551615")),
        ("warmDegrees", KvValue::Double(3.6)),
        ("raw", text("AP8=")),
        ("mode", text("ECO")),
        ("list", json_of("[\"1\",\"2\"]")),
        ("map", json_of("{\"a\":5}")),
        ("inner", json_of("{\"big\":\"9\",\"d\":0.0,\"inner\":[]}")),
        // A text with a number becomes a number, as in JSON.
        ("right", KvValue::Long(12)),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    assert_eq!(found, expected);
}

#[test]
fn what_was_not_sent_has_its_default_unless_it_can_be_absent() {
    let schema = compile(
        "message A { string s = 1; bool b = 2; int64 n = 3; double d = 4; repeated A list = 5; optional int32 o = 6; A a = 7; }",
    );
    let expected = [
        ("s", text("")),
        ("b", KvValue::Bool(false)),
        ("n", KvValue::Long(0)),
        ("d", KvValue::Double(0.0)),
        ("list", json_of("[]")),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    assert_eq!(attributes(&schema, b"").expect("an empty message"), expected);
}

#[test]
fn a_message_with_ts_and_values_carries_its_time() {
    let schema = compile(
        "message M { optional int64 ts = 1; Values values = 2; message Values { optional double a = 1; } }",
    );
    let mut values = vec![1 << 3 | 1];
    values.extend(1.5f64.to_le_bytes());
    let mut payload = vec![1 << 3, 0x90, 0x4e];
    payload.extend(chunk(2, &values));
    let row = vec![("a".to_owned(), KvValue::Double(1.5))];
    assert_eq!(telemetry(&schema, &payload).expect("telemetry"), [(10_000, row)]);
    // Without a time, it is an ordinary message.
    let row = vec![("values".to_owned(), json_of("{\"a\":1.5}"))];
    assert_eq!(telemetry(&schema, &payload[3..]).expect("telemetry"), [(77, row)]);
    assert!(telemetry(&schema, b"").expect("nothing").is_empty());

    let keyed = compile("message M { int64 ts = 1; map<string, double> values = 2; }");
    let mut entry = chunk(1, b"any key");
    entry.push(2 << 3 | 1);
    entry.extend(2.0f64.to_le_bytes());
    let row = vec![("any key".to_owned(), KvValue::Double(2.0))];
    assert_eq!(
        telemetry(&keyed, &chunk(2, &entry)).expect("telemetry"),
        [(0, row)]
    );
}

#[test]
fn wrong_bytes_are_refused_and_leave_nothing_behind() {
    let schema = compile("message A { string s = 1; A a = 2; int32 n = 3; }");
    let mut out = b"before".to_vec();
    let deep = (0..60).fold(Vec::new(), |inner, _| chunk(2, &inner));
    assert!(schema.attributes(&deep, &JsonRules::default(), &mut out).is_ok());
    out.truncate(6);
    let mut endless = vec![0u8; 3 << 10];
    endless.fill(2 << 3 | 3);
    for wrong in [
        b"{\"s\":\"json\"}".as_slice(),
        b"\x0a\x05ab",
        b"\x0a\x02\xff\xfe",
        b"\x0a",
        b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        &endless,
    ] {
        assert!(schema.attributes(wrong, &JsonRules::default(), &mut out).is_err());
        assert_eq!(out, b"before");
    }
    let large = vec![0; MAX_MESSAGE_BYTES + 1];
    assert!(matches!(schema.to_json(&large), Err(MessageError::TooLarge)));
}

#[test]
fn a_small_message_does_not_grow_without_bound() {
    let optional: String = (2..700).map(|n| format!("optional int32 o{n} = {n};")).collect();
    let defaults: String = (2..700).map(|n| format!("int32 d{n} = {n};")).collect();
    for fields in [optional, defaults] {
        let schema = compile(&format!("message A {{ repeated A a = 1; {fields} }}"));
        let payload = [1 << 3 | 2, 0].repeat(30_000);
        assert!(matches!(attributes(&schema, &payload), Err(MessageError::Grows)));
        assert!(attributes(&schema, &payload[..4]).is_ok());
    }
}

#[test]
fn schemas_are_refused_in_the_words_of_the_field() {
    let wrong = |body: &str| refusal(&format!("{HEADER}{body}"));
    let invalid = |problem: &str| {
        format!("[Transport Configuration] invalid attributes proto schema provided! {problem}")
    };
    for (body, problem) in [
        (
            "option java_package = \"a\"; message A {}",
            "Schema options don't support!",
        ),
        (
            "import public \"a.proto\"; message A {}",
            "Schema public imports don't support!",
        ),
        (
            "import \"google/protobuf/any.proto\"; message A {}",
            "Schema imports don't support!",
        ),
        (
            "enum A { B = 0; }",
            "At least one Message definition should exists!",
        ),
        ("", "Type elements is empty!"),
        (
            "message A { option deprecated = true; }",
            "Message definition options don't support!",
        ),
        (
            "message A { reserved 2; }",
            "Message definition reserved elements don't support!",
        ),
        (
            "message A { message B { reserved \"x\"; } }",
            "Message definition reserved elements don't support!",
        ),
        (
            "enum E { option allow_alias = true; B = 0; C = 0; } message A {}",
            "Enum definitions options are not supported!",
        ),
    ] {
        assert_eq!(wrong(body), invalid(problem), "{body}");
    }
    assert_eq!(
        refusal("syntax = \"proto2\"; message A { required int32 a = 1; }"),
        "[Transport Configuration] invalid schema syntax: proto2 for attributes proto schema provided! Only proto3 allowed!"
    );
    let unparsable = "[Transport Configuration] failed to parse attributes proto schema due to: ";
    assert_eq!(
        wrong("message A {\n  required int32 a = 1;\n}"),
        format!("{unparsable}Syntax error in :4:3: required fields are not allowed in proto3 syntax")
    );
    for body in [
        "message A { Unknown a = 1; }",
        "message A { int32 a = 1; int32 b = 1; }",
        "message A { int32 a_b = 1; int32 aB = 2; }",
        "message A { int32 a = 0; }",
        "message A { int32 a = 19000000000; }",
        "message A { repeated group B = 1 {} }",
        "message A { ",
        "message A {} message A {}",
        "garbage",
    ] {
        assert!(wrong(body).starts_with(unparsable), "{body}: {}", wrong(body));
    }
    let deep = format!("{}{}", "message A {".repeat(2_000), "}".repeat(2_000));
    assert!(wrong(&deep).starts_with(unparsable));
    let long = "// comment\n".repeat(MAX_SCHEMA_BYTES / 10);
    assert_eq!(wrong(&long), invalid("Schema exceeds 32768 bytes!"));
}

fn payloads(more: serde_json::Value) -> Result<Option<PayloadSchemas>, SchemaError> {
    let body = format!("{HEADER}message A {{ optional string a = 1; }}");
    let mut configuration = json!({
        "transportPayloadType": "PROTOBUF",
        "deviceTelemetryProtoSchema": body,
        "deviceAttributesProtoSchema": body,
        "deviceRpcRequestProtoSchema": null,
        "deviceRpcResponseProtoSchema": "",
    });
    for (key, value) in more.as_object().expect("an object") {
        configuration[key] = value.clone();
    }
    PayloadSchemas::compile(&configuration)
}

#[test]
fn telemetry_and_calls_have_rules_of_their_own() {
    let telemetry = |body: &str| {
        let schema = format!("{HEADER}message M {{ {body} }}");
        let found = payloads(json!({ "deviceTelemetryProtoSchema": schema }));
        found.map(drop).map_err(|error| error.to_string())
    };
    let prefix = "[Transport Configuration] invalid telemetry proto schema provided!";
    for (body, problem) in [
        ("", "M fields is empty!"),
        (
            "int64 ts = 1; M values = 2;",
            "Field 'ts' has invalid label. Field 'ts' should have optional keyword!",
        ),
        (
            "optional int32 ts = 1; M values = 2;",
            "Field 'ts' has invalid data type. Only int64 type is supported!",
        ),
        (
            "optional int64 ts = 1; string values = 2;",
            "Field 'values' has invalid data type. Only message type is supported!",
        ),
    ] {
        assert_eq!(telemetry(body), Err(format!("{prefix} {problem}")));
    }
    assert_eq!(telemetry("optional int64 ts = 1; M values = 2;"), Ok(()));
    let call = |body: &str| {
        let schema = format!("{HEADER}message M {{ {body} }}");
        let found = payloads(json!({ "deviceRpcRequestProtoSchema": schema }));
        found.map(drop).map_err(|error| error.to_string())
    };
    let prefix = "[Transport Configuration] invalid rpc request proto schema provided!";
    for (body, problem) in [
        (
            "string method = 1; int32 requestId = 2;",
            "M message should always contains 3 fields: method, requestId and params!",
        ),
        (
            "string m = 1; int32 requestId = 2; string params = 3;",
            "Failed to get field descriptor for field: method!",
        ),
        (
            "int32 method = 1; int32 requestId = 2; string params = 3;",
            "Field 'method' has invalid data type. Only string type is supported!",
        ),
        (
            "string method = 1; repeated int32 requestId = 2; string params = 3;",
            "Field 'requestId' has invalid label!",
        ),
        (
            "string method = 1; int64 requestId = 2; string params = 3;",
            "Field 'requestId' has invalid data type. Only int32 type is supported!",
        ),
        (
            "string method = 1; int32 requestId = 2; repeated string params = 3;",
            "Field 'params' has invalid label!",
        ),
    ] {
        assert_eq!(call(body), Err(format!("{prefix} {problem}")));
    }
    assert!(payloads(json!({ "deviceAttributesProtoSchema": null })).is_err());
    assert!(payloads(json!({ "transportPayloadType": "XML" })).is_err());
    assert!(
        payloads(json!({ "transportPayloadType": "JSON" }))
            .expect("no schemas")
            .is_none()
    );
    let both = json!({ "enableCompatibilityWithJsonPayloadFormat": true, "useJsonPayloadFormatForDefaultDownlinkTopics": true });
    let found = payloads(both).expect("valid").expect("Protobuf");
    assert!(found.json_too && found.json_downlinks);
    let alone = json!({ "useJsonPayloadFormatForDefaultDownlinkTopics": true });
    assert!(!payloads(alone).expect("valid").expect("Protobuf").json_downlinks);
}

#[test]
fn calls_are_written_by_the_schema_of_the_profile() {
    let default = payloads(json!({})).expect("valid").expect("Protobuf");
    let call = default.call.encode_rpc("set", 7, "{\"pin\":1}").expect("a call");
    assert_eq!(call, b"\x0a\x03set\x10\x07\x1a\x09{\"pin\":1}");
    assert_eq!(
        default.call.encode_rpc("set", 7, "on").expect("a call"),
        b"\x0a\x03set\x10\x07\x1a\x02on"
    );
    assert_eq!(
        default.answer.to_json(&chunk(1, b"done")).expect("an answer"),
        "{\"payload\":\"done\"}"
    );
    let schema = compile(
        "message Call { optional string method = 1; optional int32 requestId = 2; optional Params params = 3;
           enum Level { LOW = 0; HIGH = 1; }
           message Params { string pin = 1; int32 value = 2; repeated double list = 3; Level level = 4; map<int32, bool> map = 5;
             float f = 6; bytes b = 7; uint64 u = 8; } }",
    );
    let params = r#"{"pin":26,"value":"1","list":[1,"2.5"],"level":"HIGH","map":{"3":true},"other":{},"f":null,"b":"AP8=","u":5.0}"#;
    let bytes = schema.encode_rpc("set", 7, params).expect("a call");
    let back: serde_json::Value =
        serde_json::from_str(&schema.to_json(&bytes).expect("a message")).expect("JSON");
    assert_eq!(
        back["params"],
        json!({ "pin": "26", "value": 1, "list": [1.0, 2.5], "level": "HIGH", "map": { "3": true }, "f": 0.0, "b": "AP8=", "u": "5" })
    );
    for (params, field) in [
        (r#"{"value":"x"}"#, "value"),
        (r#"{"value":3000000000}"#, "value"),
        (r#"{"list":1}"#, "list"),
        (r#"{"level":"NONE"}"#, "level"),
        ("[]", "params"),
        ("1", "params"),
    ] {
        let error = schema.encode_rpc("set", 7, params).expect_err("it does not fit");
        assert!(
            matches!(&error, MessageError::Misfit { field: found, .. } if found == field),
            "{error}"
        );
    }
}

#[test]
fn messages_of_gateways_are_checked_like_any_other() {
    let value = |key: &str, kind: i32| KeyValueProto {
        key: key.to_owned(),
        r#type: kind,
        json_v: "{a: 1}".to_owned(),
        double_v: f64::NAN,
        ..KeyValueProto::default()
    };
    let message = |ts: i64, kv: Vec<KeyValueProto>| PostTelemetryMsg {
        ts_kv_list: vec![TsKvListProto { ts, kv }],
    };
    let rows = |message: PostTelemetryMsg| {
        let message: PostTelemetryMsg = api::read(&message.encode_to_vec())?;
        written(|out| message.write(|| 77, out))
    };
    let found = rows(message(0, vec![value("a", 4), value("b", 1)])).expect("telemetry");
    let row = vec![
        ("a".to_owned(), json_of("{\"a\":1}")),
        ("b".to_owned(), KvValue::Long(0)),
    ];
    assert_eq!(found, [(77, row)]);
    for wrong in [
        message(1, vec![]),
        PostTelemetryMsg::default(),
        message(1, vec![value(" ", 1)]),
        message(1, vec![value("a", 9)]),
        message(1, vec![value("a", 2)]),
        message(1, vec![value(&"k".repeat(2_000), 1)]),
    ] {
        assert!(rows(wrong).is_err());
    }
}

#[test]
fn the_largest_schema_is_compiled_soon() {
    let mut body = String::from("message A {\n");
    let mut number = 1;
    while body.len() < MAX_SCHEMA_BYTES - 100 {
        body.push_str(&format!("A f{number} = {number};\n"));
        number += 1;
    }
    body.push('}');
    let begin = std::time::Instant::now();
    let schema = compile(&body);
    let taken = begin.elapsed();
    assert!(attributes(&schema, b"").expect("nothing was sent").is_empty());
    // Tens of milliseconds without optimisation.
    assert!(taken.as_secs() < 5, "{taken:?}");
}
