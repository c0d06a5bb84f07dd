//! Values as numbers, texts and booleans, the way the platform's clients know it from the JVM.

use std::borrow::Cow;

use fieldline_model::fnv;
use fieldline_model::kv::KvValueRef;

use super::rules::RuleSetForm;

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

pub(super) fn as_double(value: KvValueRef<'_>) -> Option<f64> {
    match value {
        KvValueRef::Long(value) => Some(value as f64),
        KvValueRef::Double(value) => Some(value),
        KvValueRef::Bool(value) => Some(f64::from(u8::from(value))),
        KvValueRef::Text(text) | KvValueRef::Json(text) => parse_double(text),
    }
}

pub(super) fn as_long(value: KvValueRef<'_>) -> Option<i64> {
    match value {
        KvValueRef::Long(value) => Some(value),
        KvValueRef::Double(value) => Some(value as i64),
        KvValueRef::Bool(value) => Some(i64::from(value)),
        KvValueRef::Text(text) | KvValueRef::Json(text) => text.parse().ok(),
    }
}

/// Numbers are true above zero in device profiles, and other than zero in calculated fields.
pub(super) fn as_bool(value: KvValueRef<'_>, form: RuleSetForm) -> bool {
    match (value, form) {
        (KvValueRef::Bool(value), _) => value,
        (KvValueRef::Long(value), RuleSetForm::DeviceProfile) => value > 0,
        (KvValueRef::Double(value), RuleSetForm::DeviceProfile) => value > 0.0,
        (KvValueRef::Long(value), RuleSetForm::CalculatedField) => value != 0,
        (KvValueRef::Double(value), RuleSetForm::CalculatedField) => value != 0.0,
        (KvValueRef::Text(text) | KvValueRef::Json(text), _) => text.eq_ignore_ascii_case("true"),
    }
}

pub(super) fn as_text(value: KvValueRef<'_>) -> Cow<'_, str> {
    match value {
        KvValueRef::Text(text) | KvValueRef::Json(text) => Cow::Borrowed(text),
        KvValueRef::Bool(true) => Cow::Borrowed("true"),
        KvValueRef::Bool(false) => Cow::Borrowed("false"),
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
pub(super) fn fingerprint(value: KvValueRef<'_>) -> u32 {
    let bits = match value {
        KvValueRef::Bool(value) => u64::from(value),
        KvValueRef::Long(value) => value as u64,
        KvValueRef::Double(value) => value.to_bits(),
        KvValueRef::Text(text) | KvValueRef::Json(text) => stable_hash(&[text.as_bytes()]),
    };
    let mixed = (bits ^ (u64::from(value.type_code()) << 60)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as u32) | 1
}
