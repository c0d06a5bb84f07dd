//! TBEL: whatever is written is refused with its place, or is translated to a program that the engine compiles.

#![no_main]

use fieldline_script::{Script, ScriptLang};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let body = String::from_utf8_lossy(input);
    if let Err(error) = Script::new(ScriptLang::Tbel, &["msg", "metadata", "msgType"], &body) {
        assert!(error.line >= 1 && error.column >= 1, "{error}");
    }
});
