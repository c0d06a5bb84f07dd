//! The lenient JSON that devices send.

/// Appends a JSON string literal.
pub fn write_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}
