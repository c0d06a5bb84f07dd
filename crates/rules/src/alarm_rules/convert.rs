//! Values as numbers, texts and booleans, the way the platform's clients know it from the JVM.

use std::borrow::Cow;

use fieldline_model::fnv;
use fieldline_model::kv::ValueRef;

use super::rules::Form;

/// A double from text: decimal, `NaN`, `Infinity`, with the suffixes that Java allows.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(sign * f64::INFINITY),
        _ => {}
    }
    let digits = unsigned.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(unsigned);
    // Rust also takes words such as `inf`.
    if !digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    if digits.starts_with(['+', '-']) {
        return None;
    }
    digits.parse::<f64>().ok().map(|value| sign * value)
}

pub(super) fn as_double(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Long(value) => Some(value as f64),
        ValueRef::Double(value) => Some(value),
        ValueRef::Bool(value) => Some(f64::from(u8::from(value))),
        ValueRef::Text(text) | ValueRef::Json(text) => parse_double(text),
    }
}

pub(super) fn as_long(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Long(value) => Some(value),
        ValueRef::Double(value) => Some(value as i64),
        ValueRef::Bool(value) => Some(i64::from(value)),
        ValueRef::Text(text) | ValueRef::Json(text) => text.parse().ok(),
    }
}

/// Numbers are true above zero in device profiles, and other than zero in calculated fields.
pub(super) fn as_bool(value: ValueRef<'_>, form: Form) -> bool {
    match (value, form) {
        (ValueRef::Bool(value), _) => value,
        (ValueRef::Long(value), Form::DeviceProfile) => value > 0,
        (ValueRef::Double(value), Form::DeviceProfile) => value > 0.0,
        (ValueRef::Long(value), Form::CalculatedField) => value != 0,
        (ValueRef::Double(value), Form::CalculatedField) => value != 0.0,
        (ValueRef::Text(text) | ValueRef::Json(text), _) => text.eq_ignore_ascii_case("true"),
    }
}

pub(super) fn as_text(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Text(text) | ValueRef::Json(text) => Cow::Borrowed(text),
        ValueRef::Bool(true) => Cow::Borrowed("true"),
        ValueRef::Bool(false) => Cow::Borrowed("false"),
        number => {
            let mut text = String::new();
            number.write_json(&mut text);
            Cow::Owned(text)
        }
    }
}

/// The text in lower case, borrowed where it is already.
pub(super) fn lower(text: Cow<'_, str>) -> Cow<'_, str> {
    if text
        .bytes()
        .any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii())
    {
        Cow::Owned(text.to_lowercase())
    } else {
        text
    }
}

/// Equality of boxed doubles: NaN equals itself, and the two zeros differ.
pub(super) fn same_double(left: f64, right: f64) -> bool {
    left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
}

/// A stable hash of 64 bits, for identities that are stored.
pub(super) fn stable_hash(parts: &[&[u8]]) -> u64 {
    // The separator keeps ("ab", "c") and ("a", "bc") apart.
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0xff]));
    fnv::hash(fnv::BASIS, bytes.copied())
}

/// A stable fingerprint of a value, never zero.
pub(super) fn fingerprint(value: ValueRef<'_>) -> u32 {
    let bits = match value {
        ValueRef::Bool(value) => u64::from(value),
        ValueRef::Long(value) => value as u64,
        ValueRef::Double(value) => value.to_bits(),
        ValueRef::Text(text) | ValueRef::Json(text) => stable_hash(&[text.as_bytes()]),
    };
    let mixed = (bits ^ (u64::from(value.type_code()) << 60)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as u32) | 1
}
