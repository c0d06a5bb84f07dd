use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::kv::{KvValue, unpack};
use crate::record::{JournalRecord, RecordBatch, RecordBody, rows, split};
use crate::{DeviceId, EntityKey, TenantId};

const NOW: i64 = 1_700_000_000_000;

type Rows = Vec<(i64, Vec<(String, KvValue)>)>;

fn read_rows(payload: &[u8], rules: &JsonRules) -> Result<Rows, JsonError> {
    let subject = EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(2)));
    let mut batch = RecordBatch::new();
    let mut writer = batch.begin_telemetry(subject, NOW, 0);
    telemetry(payload, rules, || NOW, &mut writer)?;
    let points = writer.finish();
    let mut found = Vec::new();
    for record in split(batch.as_bytes()) {
        let RecordBody::Telemetry { rows: bytes, .. } = JournalRecord::decode(record.unwrap()).unwrap().body
        else {
            panic!("not telemetry");
        };
        for row in rows(bytes) {
            let row = row.unwrap();
            let values = owned(row.values);
            assert_eq!(values.len(), row.count as usize);
            found.push((row.ts, values));
        }
    }
    assert_eq!(
        points as usize,
        found.iter().map(|(_, values)| values.len()).sum::<usize>()
    );
    Ok(found)
}

fn owned(packed: &[u8]) -> Vec<(String, KvValue)> {
    let values = unpack(packed).map(|item| item.unwrap());
    values
        .map(|(key, value)| (key.to_owned(), value.to_value()))
        .collect()
}

fn read_attributes(payload: &str, rules: &JsonRules) -> Result<Vec<(String, KvValue)>, JsonError> {
    let mut out = b"kept".to_vec();
    let count = attributes(payload.as_bytes(), rules, &mut out);
    let packed = out.strip_prefix(b"kept").unwrap();
    if count.is_err() {
        assert!(packed.is_empty());
    }
    let values = owned(packed);
    assert_eq!(values.len(), count? as usize);
    Ok(values)
}

fn read(payload: &str) -> Result<Vec<(String, KvValue)>, JsonError> {
    read_attributes(payload, &JsonRules::default())
}

fn typed(value: &str) -> KvValue {
    let values = read(&format!("{{\"k\":{value}}}")).unwrap_or_else(|error| panic!("{value}: {error}"));
    let [(_, value)] = &values[..] else {
        panic!("{values:?}")
    };
    value.clone()
}

fn text(text: &str) -> KvValue {
    KvValue::Text(text.into())
}

fn json(text: &str) -> KvValue {
    KvValue::Json(text.into())
}

fn pairs(values: &[(&str, KvValue)]) -> Vec<(String, KvValue)> {
    values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

#[test]
fn numbers_get_the_type_their_digits_give_them() {
    for (written, value) in [
        ("25", KvValue::Long(25)),
        ("-7", KvValue::Long(-7)),
        ("-0", KvValue::Long(0)),
        ("9223372036854775807", KvValue::Long(i64::MAX)),
        ("-9223372036854775808", KvValue::Long(i64::MIN)),
        ("1e3", KvValue::Long(1000)),
        ("1E+1", KvValue::Long(10)),
        ("1.5E1", KvValue::Long(15)),
        ("1200e-2", KvValue::Long(12)),
        ("0e-30", KvValue::Long(0)),
        ("25.0", KvValue::Double(25.0)),
        ("-0.0", KvValue::Double(0.0)),
        ("0.1", KvValue::Double(0.1)),
        ("-21.75", KvValue::Double(-21.75)),
        ("101E-1", KvValue::Double(10.1)),
        ("0.1234567890123456", KvValue::Double(0.123_456_789_012_345_6)),
        ("123456789012345678.5", KvValue::Double(123_456_789_012_345_678.5)),
        ("0.12345678901234567", text("0.12345678901234567")),
        ("0.00000000000000000", text("0.00000000000000000")),
        ("1e-17", text("0.00000000000000001")),
        ("-12e-18", text("-0.000000000000000012")),
        ("9223372036854775808", text("9223372036854775808")),
        ("-1.25e20", text("-125000000000000000000")),
        ("1E19", text("10000000000000000000")),
    ] {
        assert_eq!(typed(written), value, "{written}");
    }
}

#[test]
fn text_that_is_a_number_becomes_one_unless_casting_is_off() {
    for (written, value) in [
        ("'12'", KvValue::Long(12)),
        ("'007'", KvValue::Long(7)),
        ("'-007'", KvValue::Long(-7)),
        ("'1.0'", KvValue::Double(1.0)),
        ("'.5'", KvValue::Double(0.5)),
        ("'-.5'", KvValue::Double(-0.5)),
        ("007", KvValue::Long(7)),
        ("'\\u0031'", KvValue::Long(1)),
        ("'00123456789012345678901'", text("123456789012345678901")),
        ("'-0.00000000000000000'", text("0.00000000000000000")),
        ("'1e3'", text("1e3")),
        ("'5.'", text("5.")),
        ("'+5'", text("+5")),
        ("'-'", text("-")),
        ("'.'", text(".")),
        ("''", text("")),
        ("'1.2.3'", text("1.2.3")),
        ("' 1'", text(" 1")),
        ("'٣'", text("٣")),
        ("1e", text("1e")),
        ("NaN", text("NaN")),
    ] {
        assert_eq!(typed(written), value, "{written}");
    }
    let plain = JsonRules {
        type_cast: false,
        ..JsonRules::default()
    };
    let values = read_attributes("{a:'12',b:12,c:007}", &plain).unwrap();
    assert_eq!(
        values,
        pairs(&[("a", text("12")), ("b", KvValue::Long(12)), ("c", text("007"))])
    );
    for number in ["89701010051400054084", "9.97e19", "0.12345678901234567"] {
        let refused = read_attributes(&format!("{{a:{number}}}"), &plain).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("number is out of range at byte {}", 3 + number.len())
        );
    }
}

#[test]
fn leniencies_of_devices_are_understood() {
    let expected = pairs(&[
        ("a", KvValue::Long(1)),
        ("b", text("x")),
        ("c", KvValue::Bool(true)),
    ]);
    for payload in [
        r#"{"a":1,"b":"x","c":true}"#,
        "{a:1,b:x,c:true}",
        "{'a':1;'b':'x';'c':TRUE}",
        "{a=1,b=>x,c = tRuE}",
        "\u{feff} {a:1,b:x,c:true} ",
        ")]}'\n{a:1,b:x,c:true}",
        "// head\n{ # one\r a /*:2*/ : 1 , b:x/**/,c:true//\n} # tail",
        "{\t\"a\"\r\n:1,\"\\u0062\":\"\\x\",c:true}"
            .replace("\\x", "\\u0078")
            .as_str(),
    ] {
        assert_eq!(read(payload).as_ref(), Ok(&expected), "{payload}");
    }
    assert_eq!(read("{}"), Ok(Vec::new()));
    assert_eq!(read("{a:nUll}"), Ok(Vec::new()));
    assert_eq!(typed("truex"), text("truex"));
    assert_eq!(typed("true\"x"), text("true\"x"));
    assert_eq!(typed("it's"), text("it's"));
    assert_eq!(read("{true:1}"), Ok(pairs(&[("true", KvValue::Long(1))])));
}

#[test]
fn malformed_payloads_are_refused() {
    for payload in [
        "",
        " ",
        "# only a comment",
        "null",
        "1",
        "\"text\"",
        "[",
        "{",
        "}",
        "]",
        ",",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":,}",
        "{a:1,}",
        "{a:1,,b:2}",
        "{a:1 b:2}",
        "{a b:1}",
        "{a:b c}",
        "{a:1}x",
        "{a:1}{b:2}",
        "{a:1},",
        "{a:'x}",
        "{a:\"\\x\"}",
        "{a:\"\\u12g4\"}",
        "{a:\"\\u12",
        "{a:1/*",
        "{a:1/}",
        "{a\\:1}",
        "{a:[1}",
        "{a:[1 2]}",
        "{a:{b:1]}",
        "{a:\u{c}1}",
        "[1]",
        "[{a:1},]",
        "[,{a:1}]",
        "[{a:1}{a:2}]",
        "[[{a:1}]]",
        "{'':1}",
        "{' ':1}",
        "{a:1e99999}",
        "{a:1e-99999}",
        "{a:1e9999999999}",
        "{ts:x,values:{a:1}}",
        "{ts:null,values:{a:1}}",
        "{ts:[1],values:{a:1}}",
        "{ts:true,values:{a:1}}",
        "{ts:1,values:[]}",
        "{ts:1,values:null}",
        "{values:5,ts:1}",
        "{ts:1e30,values:{}}",
    ] {
        assert!(
            read_rows(payload.as_bytes(), &JsonRules::default()).is_err(),
            "{payload}"
        );
    }
    assert!(read("[{a:1}]").is_err());
    let error = read("{\"a\":1,}").unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.at()),
        ("expected a name at byte 7", 7)
    );
}

#[test]
fn the_last_of_equal_names_counts() {
    assert_eq!(
        read("{a:1,b:2,a:x}"),
        Ok(pairs(&[("b", KvValue::Long(2)), ("a", text("x"))]))
    );
    assert_eq!(read("{a:1,'\\u0061':null}"), Ok(Vec::new()));
    assert_eq!(read("{a:null,a:1}"), Ok(pairs(&[("a", KvValue::Long(1))])));
    assert_eq!(read("{a:1e99999,a:1}"), Ok(pairs(&[("a", KvValue::Long(1))])));
    assert!(read("{a:1,a:1e99999}").is_err());
    assert_eq!(
        typed("{b:1,b:2,c:{d:1,d:[],d:3},b:4}"),
        json(r#"{"c":{"d":3},"b":4}"#)
    );
    assert_eq!(typed("{b:1,b:2}"), json(r#"{"b":2}"#));
    for count in [20, 33, 200] {
        let members: Vec<_> = (0..count)
            .map(|i| format!("key{i}:{i},again{}:{i}", i % 7))
            .collect();
        let object = format!("{{{}}}", members.join(","));
        let values = read(&object).unwrap();
        assert_eq!(values.len(), count + 7);
        for (key, value) in &values {
            let KvValue::Long(value) = *value else { panic!() };
            let value = usize::try_from(value).unwrap();
            match key.strip_prefix("again") {
                Some(rest) => assert!(value + 7 >= count && rest == (value % 7).to_string()),
                None => assert_eq!(*key, format!("key{value}")),
            }
        }
        let KvValue::Json(nested) = typed(&object) else {
            panic!()
        };
        let nested: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&nested).unwrap();
        assert_eq!(nested.len(), values.len());
    }
}

#[test]
fn nested_values_are_kept_as_compact_strict_json() {
    for (written, kept) in [
        ("{}", "{}"),
        ("[ ]", "[]"),
        ("[1,2,]", "[1,2,null]"),
        ("[,]", "[null,null]"),
        ("[;1]", "[null,1]"),
        (
            "{ x : 1.50 ; 'y' = [ TRUE , abc , 'q\"' ] }",
            r#"{"x":1.50,"y":[true,"abc","q\""]}"#,
        ),
        ("{'':null, z:007}", r#"{"":null,"z":"007"}"#),
        ("['\\u0001\\u00e9/\\ud83d\\ude00']", "[\"\\u0001é/😀\"]"),
        ("[1e999999999,-0]", "[1e999999999,-0]"),
    ] {
        assert_eq!(typed(written), json(kept), "{written}");
        serde_json::from_str::<&RawValue>(kept).unwrap();
    }
}

#[test]
fn telemetry_takes_its_time_from_the_payload_or_the_server() {
    let one = |value| pairs(&[("a", KvValue::Long(value))]);
    let default = JsonRules::default();
    for (payload, expected) in [
        (r#"{"a":1}"#, vec![(NOW, one(1))]),
        (r#"{"ts":5,"values":{"a":1}}"#, vec![(5, one(1))]),
        (r#"{"values":{"a":1},"ts":5}"#, vec![(5, one(1))]),
        ("{ts:'5',values:{a:1}}", vec![(5, one(1))]),
        ("{ts:-5.9,values:{a:1}}", vec![(-5, one(1))]),
        ("{ts:1.7e12,values:{a:1}}", vec![(NOW, one(1))]),
        ("{other:{},ts:5,values:{a:1},more:1}", vec![(5, one(1))]),
        ("{big:1e99999,ts:5,values:{a:1}}", vec![(5, one(1))]),
        ("{\"ts\":5,values:{a:1},\"ts\":6}", vec![(6, one(1))]),
        ("{\"ts\":5,values:{a:1},values:{a:2}}", vec![(5, one(2))]),
        ("{\"ts\":x,values:{b:3},ts:6,values:{a:2}}", vec![(6, one(2))]),
        (r#"{"ts":5}"#, vec![(NOW, pairs(&[("ts", KvValue::Long(5))]))]),
        (
            r#"{"values":{"a":1}}"#,
            vec![(NOW, pairs(&[("values", json(r#"{"a":1}"#))]))],
        ),
        (r#"{"ts":5,"values":{}}"#, vec![]),
        ("[]", vec![]),
        ("[{}]", vec![]),
        (
            r#"[{"a":1},{"ts":7,"values":{"a":2}};{"ts":8,"values":{"a":null}},{"a":3}]"#,
            vec![(NOW, one(1)), (7, one(2)), (NOW, one(3))],
        ),
    ] {
        assert_eq!(
            read_rows(payload.as_bytes(), &default).as_ref(),
            Ok(&expected),
            "{payload}"
        );
    }
}

#[test]
fn rules_refuse_nulls_and_long_strings_and_limits_hold() {
    let strict = JsonRules {
        nulls: NullPolicy::Reject,
        max_string_length: 3,
        ..JsonRules::default()
    };
    assert!(read_attributes("{a:null}", &strict).is_err());
    assert!(read_attributes("{a:abcd}", &strict).is_err());
    assert!(read_attributes("{a:'1234'}", &strict).is_err());
    assert!(read_attributes("{a:'😀😀'}", &strict).is_err());
    assert_eq!(read_attributes("{a:äöü,b:12345}", &strict).unwrap().len(), 2);

    assert!(read(&format!("{{{}:1}}", "k".repeat(crate::kv::MAX_KEY_BYTES))).is_ok());
    assert!(read(&format!("{{{}:1}}", "k".repeat(crate::kv::MAX_KEY_BYTES + 1))).is_err());

    let nested = |depth: usize| format!("{{a:{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let Ok(values) = read(&nested(MAX_DEPTH as usize - 1)) else {
        panic!()
    };
    assert!(values[0].1.to_json().is_array(), "what is kept can be read back");
    assert!(read(&nested(MAX_DEPTH as usize)).is_err());
    assert!(read(&"[{a:".repeat(100_000)).is_err());
}

#[test]
fn numbers_never_grow_beyond_a_small_multiple_of_the_payload() {
    let payload = format!(
        "{{{}z:1}}",
        (0..1000).map(|i| format!("k{i}:1e400,")).collect::<String>()
    );
    assert!(read(&payload).is_err());
    assert_eq!(typed("1e300").to_text().len(), 301);
}

#[test]
fn text_that_is_not_unicode_is_replaced() {
    let values = read_rows(b"{\"a\":\"x\xffy\"}", &JsonRules::default()).unwrap();
    assert_eq!(values, [(NOW, pairs(&[("a", text("x\u{fffd}y"))]))]);
    for (written, value) in [
        (r#""\ud83d\ude00""#, "😀"),
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ude00x""#, "\u{fffd}x"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
        (r#""\/\b\f\n\r\t\'\"\\""#, "/\u{8}\u{c}\n\r\t'\"\\"),
    ] {
        assert_eq!(typed(written), text(value), "{written}");
    }
}

#[test]
fn server_time_is_asked_for_at_most_once() {
    let subject = EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(2)));
    let mut batch = RecordBatch::new();
    let mut writer = batch.begin_telemetry(subject, NOW, 0);
    let timed = br#"[{"ts":1,"values":{"a":1}}]"#;
    telemetry(timed, &JsonRules::default(), || panic!("not needed"), &mut writer).unwrap();
}

#[test]
fn attribute_requests_name_keys_by_scope() {
    let request = |client: Option<&[&str]>, shared: Option<&[&str]>| {
        let owned = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect();
        Ok(AttributeKeysRequest {
            client_keys: client.map(owned),
            shared_keys: shared.map(owned),
        })
    };
    for (payload, expected) in [
        (
            r#"{"clientKeys":"a,b","sharedKeys":"c"}"#,
            request(Some(&["a", "b"]), Some(&["c"])),
        ),
        ("{sharedKeys:'a,,a, b,'}", request(None, Some(&["a", " b"]))),
        ("{}", request(None, None)),
        ("{other:1}", request(None, None)),
        ("{clientKeys:''}", request(Some(&[]), None)),
        (
            "{clientKeys:5,sharedKeys:[x]}",
            request(Some(&["5"]), Some(&["x"])),
        ),
    ] {
        assert_eq!(attribute_request(payload.as_bytes()), expected, "{payload}");
    }
    for payload in [
        "",
        "[]",
        "null",
        "{clientKeys:null}",
        "{clientKeys:{}}",
        "{clientKeys:[a,b]}",
        "{clientKeys:[[a]]}",
    ] {
        assert!(attribute_request(payload.as_bytes()).is_err(), "{payload}");
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        (-1_000_000i64..1_000_000).prop_map(|scaled| (scaled as f64 / 1000.0).into()),
        any::<String>().prop_map(Into::into),
        "[-.0-9]{0,4}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(".*", inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// What a strict JSON value becomes without type cast; `None` where the number's own rules decide.
fn expected(value: &serde_json::Value) -> Option<KvValue> {
    Some(match value {
        serde_json::Value::Bool(value) => KvValue::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(long) => KvValue::Long(long),
            None => return None,
        },
        serde_json::Value::String(value) => text(value),
        nested => json(&nested.to_string()),
    })
}

proptest! {
    #[test]
    fn strict_objects_keep_their_values(members in prop::collection::btree_map("[a-zA-Z\"\\\\\u{e9}]{1,6}", any_json(), 0..50)) {
        let object = serde_json::Value::Object(members.clone().into_iter().collect());
        let plain = JsonRules { type_cast: false, ..JsonRules::default() };
        let has_wide = members.values().any(|value| value.as_f64().is_some() && !value.is_i64());
        match read_attributes(&object.to_string(), &plain) {
            Err(error) => prop_assert!(has_wide, "{error}"),
            Ok(values) => {
                let kept = members.iter().filter(|(_, value)| !value.is_null());
                prop_assert_eq!(values.len(), kept.clone().count());
                for ((key, value), (found_key, found)) in kept.zip(&values) {
                    prop_assert_eq!(key, found_key);
                    match expected(value) {
                        Some(expected) => prop_assert_eq!(found, &expected),
                        None => prop_assert_eq!(found.as_number(), value.as_f64()),
                    }
                }
            }
        }
    }

    #[test]
    fn decimals_are_rounded_as_by_the_standard_library(number in "-?(0|[1-9][0-9]{0,17})\\.[0-9]{1,16}") {
        prop_assert_eq!(typed(&number), KvValue::Double(number.parse::<f64>().unwrap() + 0.0));
    }

    #[test]
    fn no_bytes_make_it_panic_or_pack_what_cannot_be_unpacked(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = read_rows(&bytes, &JsonRules::default());
        let _ = attribute_request(&bytes);
    }

    #[test]
    fn no_signs_make_it_panic(payload in "[{\\[]([\\]{}\\[:,;='\"\\\\/*#u0-9.eEt\n -]|ts|values|null|\"ts\":1|\"values\":\\{){0,24}\\}{0,3}") {
        if let Ok(rows) = read_rows(payload.as_bytes(), &JsonRules::default()) {
            for (_, values) in rows {
                for (_, value) in values {
                    if let KvValue::Json(text) = value {
                        prop_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{}", text);
                    }
                }
            }
        }
        let _ = attribute_request(payload.as_bytes());
    }

    #[test]
    fn string_literals_read_back(text in any::<String>()) {
        let mut out = String::new();
        write_string(&text, &mut out);
        prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}
