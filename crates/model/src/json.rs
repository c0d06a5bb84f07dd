//! The lenient JSON that devices send, typed and packed in one pass.
//!
//! Accepted is what the JSON reader that devices of this field were written against accepts: besides strict JSON,
//! comments (`//`, `#`, `/* */`), single quotes, names and strings without quotes, `;` between and `=` or `=>` within
//! members, literals in any case and empty array slots. Of members with the same name the last one counts. Invalid
//! UTF-8 and halves of surrogate pairs become U+FFFD.
//!
//! No tree is built, and nothing is allocated unless a payload has escapes, nested values, repeated names or more than
//! a few dozen members. Time is linear in the payload; what is written is at most a small multiple of it.
//!
//! Left out on purpose: digits outside ASCII make text, not numbers; nesting ends at [`MAX_DEPTH`] so that whatever is
//! kept can be read back by any JSON parser; a value that is refused within `values` refuses the payload even if a
//! second `values` follows.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::record::TelemetryWriter;

mod escape;
pub mod lenient;
mod nested;
mod number;
mod reader;
mod repeated;
mod row;
#[cfg(test)]
mod tests;

pub use escape::write_string;

use reader::JsonReader;
use row::RowBuilder;

/// How deep objects and arrays may nest, the outermost included.
pub const MAX_DEPTH: u32 = 127;

/// How the values of a payload are typed, and which are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonRules {
    /// Strings that hold a number become numbers, and numbers that fit no numeric type become strings; without it the
    /// former stay strings and the latter are refused.
    pub type_cast: bool,
    /// Longest string value, in UTF-16 units; 0 is no limit.
    pub max_string_length: usize,
    /// What becomes of a key whose value is null.
    pub nulls: NullPolicy,
}

impl Default for JsonRules {
    fn default() -> Self {
        Self {
            type_cast: true,
            max_string_length: 0,
            nulls: NullPolicy::Skip,
        }
    }
}

/// What becomes of a key whose value is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullPolicy {
    /// It is left out, as devices expect.
    Skip,
    /// The payload is refused, as on the REST API.
    Reject,
}

/// Why a payload was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    at: usize,
    problem: &'static str,
}

impl JsonError {
    /// Where in the payload, in bytes from its start (counted after invalid UTF-8 was replaced).
    pub const fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

impl std::error::Error for JsonError {}

/// The keys that a device asks for; `None` where the request does not name the scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttributeKeysRequest {
    /// Client attributes.
    pub client_keys: Option<Vec<String>>,
    /// Shared attributes.
    pub shared_keys: Option<Vec<String>>,
}

/// Writes the rows of a telemetry payload: an object of values, an object with `ts` and `values`, or an array of both.
/// `now` gives the time of all elements without one, and is called at most once.
pub fn telemetry(
    payload: &[u8],
    rules: &JsonRules,
    now: impl FnOnce() -> i64,
    out: &mut TelemetryWriter<'_>,
) -> Result<(), JsonError> {
    let (mut now, mut server_ts) = (Some(now), 0);
    let mut server_ts = || {
        if let Some(now) = now.take() {
            server_ts = now();
        }
        server_ts
    };
    let text = decode(payload);
    let mut reader = JsonReader::new(&text);
    match reader.first_token()? {
        b'{' => row::write_element(&mut reader, rules, &mut server_ts, out)?,
        b'[' => elements(&mut reader, rules, &mut server_ts, out)?,
        _ => return Err(reader.error("expected an object or an array")),
    }
    reader.finish()
}

fn elements(
    reader: &mut JsonReader<'_>,
    rules: &JsonRules,
    server_ts: &mut dyn FnMut() -> i64,
    out: &mut TelemetryWriter<'_>,
) -> Result<(), JsonError> {
    reader.enter()?;
    if reader.token()? == b']' {
        reader.leave();
        return Ok(());
    }
    loop {
        if reader.token()? != b'{' {
            return Err(reader.error("expected an object"));
        }
        row::write_element(reader, rules, server_ts, out)?;
        match reader.token()? {
            b',' | b';' => reader.skip_byte(),
            b']' => {
                reader.leave();
                return Ok(());
            }
            _ => return Err(reader.error("expected `,` or `]`")),
        }
    }
}

/// Packs the key-values of an attributes payload, one object, onto `out` and returns how many there are. After an
/// error `out` is as it was.
pub fn attributes(payload: &[u8], rules: &JsonRules, out: &mut Vec<u8>) -> Result<u32, JsonError> {
    let text = decode(payload);
    let mut reader = JsonReader::new(&text);
    let base = out.len();
    let packed = pack_object(&mut reader, rules, out);
    if packed.is_err() {
        out.truncate(base);
    }
    packed
}

fn pack_object(reader: &mut JsonReader<'_>, rules: &JsonRules, out: &mut Vec<u8>) -> Result<u32, JsonError> {
    if reader.first_token()? != b'{' {
        return Err(reader.error("expected an object"));
    }
    let mut row = RowBuilder::new(out.len());
    row.read(reader, rules, out)?;
    reader.finish()?;
    row.finish(out)
}

/// Packs the value part of a text that another format carries, typed as a string of a JSON payload is.
///
/// # Errors
/// It is longer than the rules allow; `out` is as it was.
pub fn pack_text(text: &str, rules: &JsonRules, out: &mut Vec<u8>) -> Result<(), JsonError> {
    row::pack_string(text, rules, out)
}

/// Any lenient value as compact JSON that every parser reads.
///
/// # Errors
/// It is no value, or more than one.
pub fn compact(payload: &[u8]) -> Result<String, JsonError> {
    let text = decode(payload);
    let mut reader = JsonReader::new(&text);
    reader.first_token()?;
    let mut strict = Vec::new();
    nested::compact(&mut reader, &mut strict)?;
    reader.finish()?;
    String::from_utf8(strict).map_err(|_| JsonError {
        problem: "expected text",
        at: 0,
    })
}

/// Reads a request for attributes: `{"clientKeys":"a,b","sharedKeys":"c"}`, either key optional.
pub fn attribute_request(payload: &[u8]) -> Result<AttributeKeysRequest, JsonError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct AttributeRequestBody {
        #[serde(default, deserialize_with = "deserialize_present")]
        client_keys: Option<Box<RawValue>>,
        #[serde(default, deserialize_with = "deserialize_present")]
        shared_keys: Option<Box<RawValue>>,
    }

    let text = decode(payload);
    let mut reader = JsonReader::new(&text);
    if reader.first_token()? != b'{' {
        return Err(reader.error("expected an object"));
    }
    let mut strict = Vec::new();
    nested::compact(&mut reader, &mut strict)?;
    reader.finish()?;
    let body: AttributeRequestBody =
        serde_json::from_slice(&strict).map_err(|_| reader.error("expected an object"))?;
    let keys = |raw: Option<Box<RawValue>>| match raw {
        Some(raw) => key_list(raw.get())
            .map(Some)
            .ok_or_else(|| reader.error("expected keys as text, separated by commas")),
        None => Ok(None),
    };
    Ok(AttributeKeysRequest {
        client_keys: keys(body.client_keys)?,
        shared_keys: keys(body.shared_keys)?,
    })
}

/// A call that a device makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRpcRequest {
    /// Name of the method.
    pub method: String,
    /// JSON text of the parameters.
    pub params: String,
}

/// Reads a call: `{"method":"m","params":…}`. Without parameters they are an empty object.
pub fn client_rpc(payload: &[u8]) -> Result<ClientRpcRequest, JsonError> {
    #[derive(Deserialize)]
    struct ClientRpcBody {
        #[serde(deserialize_with = "lenient::text")]
        method: String,
        params: Option<Box<RawValue>>,
    }

    let body: ClientRpcBody = read(payload, "expected `method` and `params`")?;
    Ok(ClientRpcRequest {
        method: body.method,
        params: body
            .params
            .map_or_else(|| "{}".to_owned(), |params| params.get().to_owned()),
    })
}

/// What a device that lets itself be claimed says.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimPayload {
    /// What whoever claims it has to know; empty for nothing.
    #[serde(deserialize_with = "lenient::text")]
    pub secret_key: String,
    /// For how long, milliseconds; 0 for the usual time.
    #[serde(deserialize_with = "lenient::whole")]
    pub duration_ms: i64,
}

/// Reads a claim: `{"secretKey":"s","durationMs":60000}`, both optional; nothing at all is one, too.
pub fn claim(payload: &[u8]) -> Result<ClaimPayload, JsonError> {
    if payload.trim_ascii().is_empty() {
        return Ok(ClaimPayload::default());
    }
    read(payload, "expected `secretKey` and `durationMs`")
}

/// Reads the object of a lenient payload; `expected` says what it should have been.
pub fn read<T: serde::de::DeserializeOwned>(payload: &[u8], expected: &'static str) -> Result<T, JsonError> {
    serde_json::from_str(&to_strict_json(payload)?).map_err(|_| JsonError {
        problem: expected,
        at: 0,
    })
}

/// The object of a lenient payload, as JSON that every parser reads.
fn to_strict_json(payload: &[u8]) -> Result<String, JsonError> {
    let strict = compact(payload)?;
    if !strict.starts_with('{') {
        return Err(JsonError {
            problem: "expected an object",
            at: 0,
        });
    }
    Ok(strict)
}

/// The entries of an object, each with the text of its value, in their order.
pub fn entries(payload: &[u8]) -> Result<Vec<(String, Box<RawValue>)>, JsonError> {
    struct EntriesVisitor;

    impl<'de> serde::de::Visitor<'de> for EntriesVisitor {
        type Value = Vec<(String, Box<RawValue>)>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    let strict = to_strict_json(payload)?;
    let mut reader = serde_json::Deserializer::from_str(&strict);
    serde::Deserializer::deserialize_map(&mut reader, EntriesVisitor).map_err(|_| JsonError {
        problem: "expected an object",
        at: 0,
    })
}

/// Tells a key that is null, which is an error, from one that is absent.
fn deserialize_present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// The keys of `"a,b"`, each once; a number or literal is taken by its text, a list of one by its element.
fn key_list(raw: &str) -> Option<Vec<String>> {
    let text: Cow<'_, str> = match raw.bytes().next()? {
        b'"' => serde_json::from_str::<String>(raw).ok()?.into(),
        b'[' => {
            let [only] = serde_json::from_str::<[Box<RawValue>; 1]>(raw).ok()?;
            return (!only.get().starts_with('[')).then(|| key_list(only.get()))?;
        }
        b'{' => return None,
        _ if raw == "null" => return None,
        _ => raw.into(),
    };
    let mut seen = std::collections::HashSet::new();
    let keys = text.split(',').filter(|key| !key.is_empty() && seen.insert(*key));
    Some(keys.map(str::to_owned).collect())
}

fn decode(payload: &[u8]) -> Cow<'_, str> {
    // The plain check is much faster than the replacing one, and nearly every payload passes it.
    match std::str::from_utf8(payload) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(payload),
    }
}
