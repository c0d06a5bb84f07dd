//! Scalars taken as what is wanted, for fields of `serde`: small devices write numbers as text, and shells take the quotes away
//! from text that looks like a number.

use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize as _, Deserializer};
use serde_json::value::RawValue;

/// Text; that of a number or a flag where it is one.
///
/// # Errors
/// It is null, a list or an object.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    optional_text(deserializer)?.ok_or_else(|| D::Error::custom("expected text"))
}

/// The same where there may be null.
///
/// # Errors
/// It is a list or an object.
pub fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw.get()).map_err(D::Error::custom),
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') => Err(D::Error::custom("expected text")),
        _ => Ok(Some(raw.get().to_owned())),
    }
}

/// A whole number, perhaps as text.
///
/// # Errors
/// It is something else.
pub fn whole<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<T, D::Error> {
    let text = text(deserializer)?;
    text.parse()
        .map_err(|_| D::Error::custom("expected a whole number"))
}

/// A flag, perhaps as text: whatever is not true is false.
///
/// # Errors
/// It is null, a list or an object.
pub fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(text(deserializer)?.eq_ignore_ascii_case("true"))
}

/// The same where there may be null.
///
/// # Errors
/// It is a list or an object.
pub fn optional_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let text = optional_text(deserializer)?;
    Ok(text.map(|text| text.eq_ignore_ascii_case("true")))
}
