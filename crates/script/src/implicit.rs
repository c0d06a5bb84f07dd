//! Names that a JavaScript body assigns without declaring them.
//!
//! Such a name would become a global, and the realm's global object is frozen. So these names are declared around
//! the body. The search knows no grammar: a name too many is declared where it does no harm.

use std::collections::BTreeSet;

/// Globals that an assignment must not hide.
const PROTECTED_GLOBALS: &[&str] = &[
    "undefined",
    "NaN",
    "Infinity",
    "arguments",
    "eval",
    "this",
    "globalThis",
];
const WORDS: &[&str] = &[
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "let",
    "new",
    "null",
    "return",
    "static",
    "super",
    "switch",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "await",
    "of",
];

/// The names, in order.
pub(crate) fn names<'a>(params: &[&str], body: &'a str) -> Vec<&'a str> {
    let mut found = BTreeSet::new();
    let bytes = body.as_bytes();
    let mut at = 0;
    let mut before = 0u8;
    let mut declares = false;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'"' || byte == b'\'' {
            at = after_text(bytes, at);
            before = byte;
        } else if byte == b'/' && matches!(bytes.get(at + 1), Some(b'/' | b'*')) {
            at = after_comment(bytes, at);
        } else if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' {
            let end = at
                + bytes[at..]
                    .iter()
                    .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_' || **b == b'$')
                    .count();
            let name = &body[at..end];
            let known = params.contains(&name) || WORDS.contains(&name) || PROTECTED_GLOBALS.contains(&name);
            if before != b'.' && !known && !declares && is_assigned(&bytes[end..], before) {
                found.insert(name);
            }
            declares = matches!(name, "var" | "let" | "const" | "function" | "class");
            before = bytes[end - 1];
            at = end;
        } else {
            if !byte.is_ascii_whitespace() {
                before = byte;
                declares = false;
            }
            at += 1;
        }
    }
    found.into_iter().collect()
}

/// Whether what follows a name assigns it: `=`, a compound assignment, `++`, `--`, or `in` and `of` of a loop.
fn is_assigned(rest: &[u8], before: u8) -> bool {
    let start = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let rest = &rest[start..];
    let looped = before == b'(' && start > 0 && (rest.starts_with(b"in ") || rest.starts_with(b"of "));
    let operator = rest.iter().take_while(|b| b"+-*/%&|^<>?".contains(b)).count();
    let equals = rest.get(operator) == Some(&b'=') && !matches!(rest.get(operator + 1), Some(b'=' | b'>'));
    let compares = operator == 1 && matches!(rest[0], b'<' | b'>');
    looped
        || (equals && !compares)
        || rest.starts_with(b"++")
        || rest.starts_with(b"--")
        || before == b'+'
        || before == b'-'
}

fn after_text(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn after_comment(bytes: &[u8], start: usize) -> usize {
    let (end, size): (&[u8], usize) = if bytes[start + 1] == b'/' {
        (b"\n", 1)
    } else {
        (b"*/", 2)
    };
    let from = start + 2;
    bytes[from..]
        .windows(size)
        .position(|window| window == end)
        .map_or(bytes.len(), |found| from + found + size)
}
