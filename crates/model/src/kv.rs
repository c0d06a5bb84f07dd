//! Typed values and their packed form, the bytes that the journal and the recent rows of the time-series store share.
//!
//! A packed key-value is `varint key length · key · type byte · value`, where the value is one byte for a boolean, a
//! zigzag varint for a long, eight little-endian bytes for a double, and `varint length · bytes` for text and JSON.

use std::fmt::Write as _;

use serde_json::value::RawValue;

/// Longest name of a series or attribute, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;

/// A value as a device, a person or a rule produced it. The numbers of the variants are stored and sent
/// (`KeyValueType` of the Protobuf transport API).
#[derive(Debug, Clone, PartialEq)]
pub enum KvValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Long(i64),
    /// A finite floating-point number.
    Double(f64),
    /// Text.
    Text(Box<str>),
    /// A JSON object or array, kept as compact text.
    Json(Box<str>),
}

/// A [`KvValue`] borrowed from packed bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KvValueRef<'a> {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Long(i64),
    /// A finite floating-point number.
    Double(f64),
    /// Text.
    Text(&'a str),
    /// A JSON object or array as compact text.
    Json(&'a str),
}

/// Packed bytes that do not follow the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("packed key-values are corrupt: {0}")]
pub struct CorruptData(pub &'static str);

impl KvValue {
    /// The same value, borrowed.
    pub fn as_ref(&self) -> KvValueRef<'_> {
        match self {
            Self::Bool(value) => KvValueRef::Bool(*value),
            Self::Long(value) => KvValueRef::Long(*value),
            Self::Double(value) => KvValueRef::Double(*value),
            Self::Text(value) => KvValueRef::Text(value),
            Self::Json(value) => KvValueRef::Json(value),
        }
    }

    /// The number, `None` for other types.
    pub fn as_number(&self) -> Option<f64> {
        self.as_ref().as_number()
    }

    /// The value as plain text, as the REST API shows it by default: `25.0`, `true`, the JSON text itself.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Text(text) | Self::Json(text) => out.push_str(text),
            other => other.as_ref().write_json(&mut out),
        }
        out
    }

    /// The value as a JSON value of its own type. JSON text that no longer parses is given as a string.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Bool(value) => (*value).into(),
            Self::Long(value) => (*value).into(),
            Self::Double(value) => (*value).into(),
            Self::Text(value) => value.to_string().into(),
            Self::Json(value) => serde_json::from_str(value).unwrap_or_else(|_| value.to_string().into()),
        }
    }

    /// Bytes on the heap, for limits and caches.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) => text.len(),
            _ => 0,
        }
    }
}

impl<'a> KvValueRef<'a> {
    /// Code of the type, as stored and as in the Protobuf transport API.
    pub const fn type_code(self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Long(_) => 1,
            Self::Double(_) => 2,
            Self::Text(_) => 3,
            Self::Json(_) => 4,
        }
    }

    /// An owned copy.
    pub fn to_value(self) -> KvValue {
        match self {
            Self::Bool(value) => KvValue::Bool(value),
            Self::Long(value) => KvValue::Long(value),
            Self::Double(value) => KvValue::Double(value),
            Self::Text(value) => KvValue::Text(value.into()),
            Self::Json(value) => KvValue::Json(value.into()),
        }
    }

    /// The number, `None` for other types.
    pub fn as_number(self) -> Option<f64> {
        match self {
            Self::Long(value) => Some(value as f64),
            Self::Double(value) => Some(value),
            _ => None,
        }
    }

    /// Appends the value as JSON of its own type.
    pub fn write_json(self, out: &mut String) {
        match self {
            Self::Bool(value) => out.push_str(if value { "true" } else { "false" }),
            Self::Long(value) => out.push_str(itoa::Buffer::new().format(value)),
            Self::Double(value) => write_double(value, out),
            Self::Text(value) => crate::json::write_string(value, out),
            // Anything that is not JSON (it can only come from elsewhere than the parser) must not break the document.
            Self::Json(value) => match serde_json::from_str::<&RawValue>(value) {
                Ok(_) => out.push_str(value),
                Err(_) => crate::json::write_string(value, out),
            },
        }
    }
}

/// Writes a double the way the JVM does, which clients of the REST API are used to: `25.0`, `1.0E10`, `1.5E-5`.
fn write_double(value: f64, out: &mut String) {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        out.push_str(ryu::Buffer::new().format(value));
        return;
    }
    let start = out.len();
    // Writing to a string cannot fail.
    let _ = write!(out, "{value:E}");
    let mantissa_end = out
        .get(start..)
        .and_then(|text| text.find('E'))
        .map_or(out.len(), |at| start + at);
    if !out
        .get(start..mantissa_end)
        .is_some_and(|mantissa| mantissa.contains('.'))
        && value.is_finite()
    {
        out.insert_str(mantissa_end, ".0");
    }
}

/// Appends an unsigned LEB128 number.
pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes an unsigned LEB128 number off the front of `bytes`.
pub fn read_varint(bytes: &mut &[u8]) -> Result<u64, CorruptData> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(CorruptData("number cut short"))?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(CorruptData("number too long"))
}

/// Takes `count` bytes off the front of `bytes`.
pub fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], CorruptData> {
    let (taken, rest) = bytes
        .split_at_checked(count)
        .ok_or(CorruptData("value cut short"))?;
    *bytes = rest;
    Ok(taken)
}

/// Takes a fixed number of bytes off the front of `bytes`.
pub fn take_array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], CorruptData> {
    let (taken, rest) = bytes
        .split_first_chunk::<N>()
        .ok_or(CorruptData("value cut short"))?;
    *bytes = rest;
    Ok(*taken)
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, CorruptData> {
    let length = usize::try_from(read_varint(bytes)?).map_err(|_| CorruptData("text too long"))?;
    std::str::from_utf8(take(bytes, length)?).map_err(|_| CorruptData("text is not UTF-8"))
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

const fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Appends one packed key-value.
pub fn pack(key: &str, value: KvValueRef<'_>, out: &mut Vec<u8>) {
    pack_key(key, out);
    pack_value(value, out);
}

/// Appends the key part of a packed key-value.
pub fn pack_key(key: &str, out: &mut Vec<u8>) {
    write_varint(key.len() as u64, out);
    out.extend_from_slice(key.as_bytes());
}

/// Appends the value part of a packed key-value.
pub fn pack_value(value: KvValueRef<'_>, out: &mut Vec<u8>) {
    out.push(value.type_code());
    match value {
        KvValueRef::Bool(value) => out.push(u8::from(value)),
        KvValueRef::Long(value) => write_varint(zigzag(value), out),
        KvValueRef::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
        KvValueRef::Text(text) | KvValueRef::Json(text) => {
            write_varint(text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Takes one packed value (without a key) off the front of `bytes`.
pub fn unpack_value<'a>(bytes: &mut &'a [u8]) -> Result<KvValueRef<'a>, CorruptData> {
    let [code] = take_array::<1>(bytes)?;
    Ok(match code {
        0 => KvValueRef::Bool(take_array::<1>(bytes)? != [0]),
        1 => KvValueRef::Long(unzigzag(read_varint(bytes)?)),
        2 => KvValueRef::Double(f64::from_le_bytes(take_array(bytes)?)),
        3 => KvValueRef::Text(take_text(bytes)?),
        4 => KvValueRef::Json(take_text(bytes)?),
        _ => return Err(CorruptData("unknown value type")),
    })
}

/// How many packed key-values `bytes` holds, up to the first corrupt one; their texts are not looked at.
pub fn count(mut bytes: &[u8]) -> u32 {
    fn skip_text(bytes: &mut &[u8]) -> Option<()> {
        let length = usize::try_from(read_varint(bytes).ok()?).ok()?;
        take(bytes, length).ok().map(drop)
    }
    fn skip(bytes: &mut &[u8]) -> Option<()> {
        skip_text(bytes)?;
        match take_array::<1>(bytes).ok()? {
            [0] => take(bytes, 1).ok().map(drop),
            [1] => read_varint(bytes).ok().map(drop),
            [2] => take(bytes, 8).ok().map(drop),
            [3 | 4] => skip_text(bytes),
            _ => None,
        }
    }
    let mut count = 0;
    while !bytes.is_empty() && skip(&mut bytes).is_some() {
        count += 1;
    }
    count
}

/// Appends packed key-values as a JSON object. Texts are written as they are read: a tree of a large body would be many
/// times its size.
///
/// # Errors
/// The bytes are no packed key-values; what was readable of them is appended.
pub fn write_object(bytes: &[u8], out: &mut String) -> Result<(), CorruptData> {
    out.push('{');
    for (index, item) in unpack(bytes).enumerate() {
        let (name, value) = item?;
        if index > 0 {
            out.push(',');
        }
        crate::json::write_string(name, out);
        out.push(':');
        value.write_json(out);
    }
    out.push('}');
    Ok(())
}

/// The packed key-values of `bytes`, in order. A name that stands twice counts with its later value.
pub fn unpack(bytes: &[u8]) -> KeyValueIter<'_> {
    KeyValueIter { rest: bytes }
}

/// Iterator over packed key-values; ends after the first corrupt one.
#[derive(Debug, Clone)]
pub struct KeyValueIter<'a> {
    rest: &'a [u8],
}

impl<'a> KeyValueIter<'a> {
    /// The bytes behind the last key-value given out.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for KeyValueIter<'a> {
    type Item = Result<(&'a str, KvValueRef<'a>), CorruptData>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = take_text(&mut self.rest).and_then(|key| Ok((key, unpack_value(&mut self.rest)?)));
        if item.is_err() {
            self.rest = &[];
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_key_values_come_back_as_they_were() {
        let values = [
            ("b", KvValueRef::Bool(true)),
            ("min", KvValueRef::Long(i64::MIN)),
            ("max", KvValueRef::Long(i64::MAX)),
            ("d", KvValueRef::Double(-0.5)),
            ("s", KvValueRef::Text("grüße")),
            ("j", KvValueRef::Json("{\"a\":[1]}")),
        ];
        let mut bytes = Vec::new();
        for (key, value) in values {
            pack(key, value, &mut bytes);
        }
        let back: Vec<_> = unpack(&bytes).map(|item| item.unwrap()).collect();
        assert_eq!(back, values);
        assert_eq!(count(&bytes), 6);
        for cut in 0..bytes.len() {
            // Any cut either ends between two key-values or is reported.
            let _ = unpack(&bytes[..cut]).count();
        }
    }

    #[test]
    fn doubles_read_as_the_jvm_writes_them() {
        for (value, text) in [
            (25.0, "25.0"),
            (0.001, "0.001"),
            (1e7, "1.0E7"),
            (1.25e10, "1.25E10"),
            (1e-5, "1.0E-5"),
            (-0.0, "-0.0"),
            (9_999_999.5, "9999999.5"),
        ] {
            assert_eq!(KvValue::Double(value).to_text(), text);
        }
    }
}
