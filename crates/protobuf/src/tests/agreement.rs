//! Arbitrary schemas and messages, with errors: the decoder by plan must agree with the decoder by reflection.

use proptest::prelude::*;

use super::compile;
use crate::ProtobufSchema;
use crate::reference::check_agreement;

const SCALARS: [&str; 15] = [
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
    "sfixed32", "sfixed64", "bool", "string", "bytes",
];
/// The scalars allowed as map keys.
const KEYS: [usize; 12] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
const ENUM: usize = SCALARS.len();
const MESSAGES: usize = 3;

/// A small, fast random generator.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A field: its number, its type (above [`ENUM`]: a message), and the type of its keys if it is a map.
#[derive(Clone, Copy)]
struct Field {
    number: usize,
    kind: usize,
    key: Option<usize>,
}

struct Shapes(Vec<Vec<Field>>);

fn type_name(kind: usize) -> String {
    match kind {
        ENUM => "E".to_owned(),
        _ => SCALARS
            .get(kind)
            .map_or_else(|| format!("M{}", kind - ENUM - 1), |name| (*name).to_owned()),
    }
}

/// Generates a schema of a few messages that refer to each other.
fn schema(noise: &mut Noise) -> (ProtobufSchema, Shapes, String) {
    let mut text = String::from("enum E { NONE = 0; SOME = 1; LESS = -2; }");
    let mut shapes = Vec::new();
    for message in 0..MESSAGES {
        let (mut fields, mut number) = (Vec::new(), 0);
        text.push_str(&format!("message M{message} {{"));
        let most = if noise.one_in(4) { 30 } else { 7 };
        for _ in 0..noise.below(most) {
            number += if noise.one_in(5) { 1 + noise.below(300) } else { 1 };
            let kind = noise.below(ENUM + 1 + MESSAGES);
            let (name, mut key) = (type_name(kind), None);
            let before = match noise.below(6) {
                0 => "",
                1 => "optional ",
                2 | 3 => "repeated ",
                4 => {
                    text.push_str(&format!("oneof o{number} {{ {name} f_{number} = {number};"));
                    fields.push(Field {
                        number,
                        kind,
                        key: None,
                    });
                    number += 1;
                    text.push_str(&format!("string f_{number} = {number}; }}"));
                    fields.push(Field {
                        number,
                        kind: 13,
                        key: None,
                    });
                    continue;
                }
                _ => {
                    key = Some(KEYS[noise.below(KEYS.len())]);
                    "map"
                }
            };
            // Telemetry with its own time.
            let called = match (noise.below(12), fields.len()) {
                (0, 0) => "ts".to_owned(),
                (0, 1) => "values".to_owned(),
                _ => format!("f_{number}"),
            };
            match key {
                Some(key) => text.push_str(&format!("map<{}, {name}> {called} = {number};", SCALARS[key])),
                None => text.push_str(&format!("{before}{name} {called} = {number};")),
            }
            fields.push(Field { number, kind, key });
        }
        text.push('}');
        shapes.push(fields);
    }
    (compile(&text), Shapes(shapes), text)
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn chunk(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

impl Shapes {
    /// Generates a message, mostly a valid one.
    fn message(&self, at: usize, depth: usize, noise: &mut Noise) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..noise.below(8) {
            let fields = &self.0[at];
            if fields.is_empty() || noise.one_in(12) {
                unknown(noise, &mut out);
                continue;
            }
            let field = fields[noise.below(fields.len())];
            if let Some(key) = field.key {
                let mut entry = Vec::new();
                for _ in 0..noise.below(4) {
                    match noise.below(8) {
                        0..4 => self.field(1, key, depth, noise, &mut entry),
                        4..7 => self.field(2, field.kind, depth, noise, &mut entry),
                        _ => unknown(noise, &mut entry),
                    }
                }
                varint((field.number << 3 | 2) as u64, &mut out);
                chunk(&entry, &mut out);
            } else if field.kind <= ENUM && noise.one_in(3) {
                // Packed values, whether the field may be repeated or not.
                let mut packed = Vec::new();
                for _ in 0..noise.below(5) {
                    self.value(field.kind, depth, noise, &mut packed);
                }
                varint((field.number << 3 | 2) as u64, &mut out);
                chunk(&packed, &mut out);
            } else {
                self.field(field.number, field.kind, depth, noise, &mut out);
            }
        }
        out
    }

    fn field(&self, number: usize, kind: usize, depth: usize, noise: &mut Noise, out: &mut Vec<u8>) {
        let wire = match kind {
            0 | 9 | 11 => 1,
            1 | 8 | 10 => 5,
            13 | 14 => 2,
            kind if kind > ENUM => 2,
            _ => 0,
        };
        let wire = if noise.one_in(60) { noise.below(8) } else { wire };
        varint((number << 3 | wire) as u64, out);
        self.value(kind, depth, noise, out);
    }

    fn value(&self, kind: usize, depth: usize, noise: &mut Noise, out: &mut Vec<u8>) {
        let number = match noise.below(4) {
            0 => noise.below(3) as u64,
            1 => noise.0,
            2 => u64::MAX - noise.below(3) as u64,
            _ => 1 << noise.below(64),
        };
        let double = [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -1e300, 3.6][noise.below(7)];
        match kind {
            0 => out.extend_from_slice(&double.to_le_bytes()),
            1 => out.extend_from_slice(&(double as f32).to_le_bytes()),
            9 | 11 => out.extend_from_slice(&number.to_le_bytes()),
            8 | 10 => out.extend_from_slice(&(number as u32).to_le_bytes()),
            13 => {
                let texts: [&[u8]; 8] = [
                    b"",
                    b"a",
                    b"12",
                    b" ",
                    "ö\"\n".as_bytes(),
                    b"true",
                    b"-1.5e3",
                    b"\xff",
                ];
                let some = if noise.one_in(20) { 8 } else { 7 };
                chunk(texts[noise.below(some)], out);
            }
            14 => chunk(&number.to_le_bytes()[..noise.below(8)], out),
            kind if kind > ENUM => {
                let within = match depth {
                    0 => Vec::new(),
                    _ => self.message(kind - ENUM - 1, depth - 1, noise),
                };
                chunk(&within, out);
            }
            _ => varint(number, out),
        }
    }
}

fn unknown(noise: &mut Noise, out: &mut Vec<u8>) {
    let number = 1 + noise.below(2_000) as u64;
    match noise.below(6) {
        0 => {
            varint(number << 3, out);
            varint(noise.0, out);
        }
        1 => {
            varint(number << 3 | 1, out);
            out.extend_from_slice(&[1; 8]);
        }
        2 => {
            varint(number << 3 | 2, out);
            chunk(b"\xff\xfe", out);
        }
        3 => {
            varint(number << 3 | 5, out);
            out.extend_from_slice(&[1; 4]);
        }
        4 => {
            varint(number << 3 | 3, out);
            unknown(noise, out);
            varint(number << 3 | 4, out);
        }
        _ => varint(noise.below(200) as u64, out),
    }
}

#[track_caller]
fn check(schema: &ProtobufSchema, text: &str, payload: &[u8]) {
    if let Err(difference) = check_agreement(schema, payload) {
        panic!("{difference}\nfor {payload:?}\nof {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn both_decoders_say_the_same(seed in 1u64.., garbage in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut noise = Noise(seed);
        let (schema, shapes, text) = schema(&mut noise);
        check(&schema, &text, &garbage);
        for _ in 0..8 {
            let mut payload = shapes.message(MESSAGES - 1, 4, &mut noise);
            check(&schema, &text, &payload);
            // Truncated, and with changed bytes.
            check(&schema, &text, &payload[..noise.below(payload.len() + 1)]);
            for _ in 0..noise.below(3) {
                if !payload.is_empty() {
                    let place = noise.below(payload.len());
                    payload[place] = noise.below(256) as u8;
                }
            }
            check(&schema, &text, &payload);
        }
    }
}

#[test]
fn both_decoders_nest_as_deep_as_each_other() {
    let text = "message A { A a = 1; repeated A list = 2; map<string, A> map = 3; oneof o { A b = 4; string c = 5; } }";
    let schema = compile(text);
    let within = |number: u8, inner: &[u8]| {
        let mut out = vec![number << 3 | 2];
        chunk(inner, &mut out);
        out
    };
    for depth in 97..104 {
        // Groups nest as well, and unknown fields in a map entry count as deep as groups.
        for innermost in [
            b"".as_slice(),
            b"\x38\x01",
            b"\x3b\x3c",
            b"\x3b\x43\x44\x3c",
            b"\x1a\x02\x38\x01",
            b"\x1a\x02\x3b\x3c",
        ] {
            for number in [1, 2, 4] {
                let payload = (0..depth).fold(innermost.to_vec(), |inner, _| within(number, &inner));
                check(&schema, text, &payload);
            }
            let payload = (0..depth).fold(innermost.to_vec(), |inner, _| within(3, &within(2, &inner)));
            check(&schema, text, &payload);
        }
    }
}

#[test]
fn what_comes_more_than_once_is_joined_replaced_or_added() {
    let text = "message A { A a = 1; int32 n = 2; repeated int32 list = 3; map<int32, A> map = 4;
                            oneof o { A b = 5; string c = 6; } optional string s = 7; }";
    let schema = compile(text);
    let json = |payload: &[u8]| {
        check(&schema, text, payload);
        schema.to_json(payload).expect("a message")
    };
    let empty = |more: &str| format!("{{{more}\"n\":0,\"list\":[],\"map\":{{}}}}");
    assert_eq!(
        json(b"\x0a\x02\x10\x01\x0a\x02\x18\x02"),
        empty("\"a\":{\"n\":1,\"list\":[2],\"map\":{}},")
    );
    assert_eq!(json(b"\x10\x01\x10\x02"), "{\"n\":2,\"list\":[],\"map\":{}}");
    assert_eq!(
        json(b"\x18\x01\x1a\x02\x02\x03\x18\x04"),
        "{\"n\":0,\"list\":[1,2,3,4],\"map\":{}}"
    );
    // An entry replaces one with the same key; within one entry, values are joined.
    assert_eq!(
        json(b"\x22\x06\x08\x07\x12\x02\x10\x01\x22\x0a\x08\x07\x12\x02\x18\x05\x12\x02\x18\x06"),
        "{\"n\":0,\"list\":[],\"map\":{\"7\":{\"n\":0,\"list\":[5,6],\"map\":{}}}}"
    );
    // Another field of a oneof clears the previous one.
    assert_eq!(
        json(b"\x2a\x02\x10\x01\x32\x01x\x2a\x02\x18\x02"),
        "{\"n\":0,\"list\":[],\"map\":{},\"b\":{\"n\":0,\"list\":[2],\"map\":{}}}"
    );
    assert_eq!(
        json(b"\x2a\x00\x32\x01x"),
        "{\"n\":0,\"list\":[],\"map\":{},\"c\":\"x\"}"
    );
    // A cleared value must be valid nevertheless.
    assert!(schema.to_json(b"\x2a\x02\x10\xff\x32\x01x").is_err());
    // A map has the wire type of messages.
    assert!(schema.to_json(b"\x20\x00").is_err());
}
