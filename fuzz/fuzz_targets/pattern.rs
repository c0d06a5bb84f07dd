//! Templates of nodes: whatever is written and sent, compiling takes one go, and what is made stays within the budget. The
//! input is a template, a zero byte, a value of the metadata, a zero byte, and a body.

#![no_main]

use fieldline_rules::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut parts = text.splitn(3, '\0');
    let (template, key) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    fuzzing::pattern(template, key, parts.next().unwrap_or("{}"));
    fuzzing::configuration(template);
});
