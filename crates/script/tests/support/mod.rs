//! Runs TBEL scripts and compares what they return.
#![allow(dead_code, reason = "each test file uses a part")]

use fieldline_script::{Script, ScriptArg, ScriptError, ScriptHost, ScriptLang, ScriptLimits, ScriptOutput};

pub(crate) const PARAMS: &[&str] = &["msg", "metadata", "msgType"];

/// Runs a body with a message.
pub(crate) fn run(lang: ScriptLang, msg: &str, body: &str) -> Result<ScriptOutput, ScriptError> {
    let script = Script::new(lang, PARAMS, body)?;
    let metadata = [
        ("deviceName".to_owned(), "Pump".to_owned()),
        ("ts".to_owned(), "1000".to_owned()),
    ];
    ScriptHost::new(ScriptLimits::default()).call(
        &script,
        &[
            ScriptArg::Json(msg),
            ScriptArg::Map(&metadata),
            ScriptArg::Text("POST_TELEMETRY_REQUEST"),
        ],
    )
}

/// The result of a TBEL body with a message must be this JSON text.
#[track_caller]
pub(crate) fn gives_with(msg: &str, body: &str, json: &str) {
    match run(ScriptLang::Tbel, msg, body) {
        Ok(output) => assert_eq!(output.into_json(), json, "{body}"),
        Err(error) => panic!("{body}\n{error}"),
    }
}

/// As [`gives_with`] with an empty message.
#[track_caller]
pub(crate) fn gives(body: &str, json: &str) {
    gives_with("{}", body, json);
}

/// The TBEL body must fail with a message that contains this text.
#[track_caller]
pub(crate) fn fails(body: &str, text: &str) {
    match run(ScriptLang::Tbel, "{}", body) {
        Ok(output) => panic!("{body}\nreturned {output:?}"),
        Err(error) => assert!(error.to_string().contains(text), "{body}\n{error}"),
    }
}
