//! JSON paths over messages: whatever is written and sent, what is looked at and made stays within the budget. The input is
//! a path, a zero byte, and a document. The first byte of a path may ask for a regular expression instead.

#![no_main]

use fieldline_rules::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (path, document) = text.split_once('\0').unwrap_or((&text, "{}"));
    match path.strip_prefix('~') {
        Some(expression) => fuzzing::regex(expression, document),
        None => fuzzing::json_path(path, document),
    }
});
