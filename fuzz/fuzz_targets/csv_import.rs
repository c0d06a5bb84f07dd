//! CSV texts of imports: whatever is sent, each line is read once, and its values are whole. The first byte says what
//! stands between cells.

#![no_main]

use fieldline_entities::services::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else {
        return;
    };
    let delimiter = [',', ';', '\t', 'é'][usize::from(*first) % 4];
    fuzzing::import_lines(&String::from_utf8_lossy(rest), delimiter);
});
