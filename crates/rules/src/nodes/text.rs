//! JSON values and numbers as the texts that rule chains are used to.

use fieldline_model::kv;
use serde_json::Value;

/// A value as plain text: texts as they are, numbers as the JVM writes them, everything else as compact JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => number.to_string(),
            (None, Some(number), _) => number.to_string(),
            (None, None, Some(number)) => kv::KvValue::Double(number).to_text(),
            (None, None, None) => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// A value as a number, as far as it can be read as one; 0 where it cannot.
pub(crate) fn as_double(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(0.0),
        Value::String(text) => text.trim().parse().unwrap_or(0.0),
        Value::Bool(true) => 1.0,
        _ => 0.0,
    }
}

/// Rounds the decimal digits of a number to so many places behind the point, halves away from zero; in front of it where
/// `places` is negative.
pub(crate) fn round_half_up(value: f64, places: i32) -> f64 {
    if !value.is_finite() {
        return value;
    }
    // The shortest decimal text of the number is what a person takes it for: 0.125 lies in the middle, 0.1249999 does not.
    let text = format!("{}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|digit| digit - b'0')
        .collect();
    let keep = whole.len() as i64 + i64::from(places);
    if keep >= digits.len() as i64 {
        return value;
    }
    if keep < 0 {
        return 0.0;
    }
    let keep = keep as usize;
    let up = digits.get(keep).is_some_and(|digit| *digit >= 5);
    let mut kept: Vec<u8> = std::iter::once(0)
        .chain(digits.iter().take(keep).copied())
        .collect();
    if up {
        for digit in kept.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                break;
            }
        }
    }
    let mut text: String = kept.iter().map(|digit| char::from(b'0' + digit)).collect();
    text.push_str(&format!("e{}", -places));
    let rounded: f64 = text.parse().unwrap_or(value);
    if value < 0.0 { -rounded } else { rounded }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_become_the_texts_of_the_jvm() {
        for (value, text) in [
            (json!("a"), "a"),
            (json!(5), "5"),
            (json!(5.0), "5.0"),
            (json!(1e10), "1.0E10"),
            (json!(null), "null"),
            (json!({"a": [1]}), r#"{"a":[1]}"#),
        ] {
            assert_eq!(plain(&value), text);
        }
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (value, places, rounded) in [
            (1.005, 2, 1.01),
            (-1.005, 2, -1.01),
            (2.5, 0, 3.0),
            (9.99, 1, 10.0),
            (1234.0, -2, 1200.0),
            (1250.0, -2, 1300.0),
            (49.0, -2, 0.0),
            (50.0, -2, 100.0),
            (0.1, 5, 0.1),
            (1e300, 2, 1e300),
            (1e-10, 3, 0.0),
        ] {
            assert_eq!(round_half_up(value, places), rounded, "{value} {places}");
        }
    }
}
