//! Writing JSON string literals.

/// Appends a JSON string literal.
pub fn write_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    runs(text, |run| out.push_str(run));
    out.push('"');
}

/// Appends a JSON string literal to bytes.
pub(super) fn write_string_bytes(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    runs(text, |run| out.extend_from_slice(run.as_bytes()));
    out.push(b'"');
}

/// Cuts text into runs that need no escape, and the escapes between them.
#[inline]
fn runs(text: &str, mut push: impl FnMut(&str)) {
    // Looking at every byte without stopping early is what compilers turn into vector instructions.
    let plain = !text.bytes().fold(false, |found, byte| {
        found | (byte < 0x20) | (byte == b'"') | (byte == b'\\')
    });
    if plain {
        return push(text);
    }
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            // The table covers every control character.
            0..0x20 => CONTROLS.get(usize::from(byte)).copied().unwrap_or_default(),
            _ => continue,
        };
        if start < at {
            push(text.get(start..at).unwrap_or_default());
        }
        push(escape);
        start = at + 1;
    }
    push(text.get(start..).unwrap_or_default());
}

#[rustfmt::skip]
const CONTROLS: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
    "\\b", "\\t", "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f",
    "\\u0010", "\\u0011", "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017",
    "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
];
