//! Whatever is given to the translator, it answers; whatever it accepts, the engine can compile.

use fieldline_script::{Script, ScriptArg, ScriptHost, ScriptLang, ScriptLimits};
use proptest::prelude::{ProptestConfig, Strategy, prop, prop_oneof, proptest};

const PIECES: &[&str] = &[
    "msg",
    "metadata",
    "x",
    "foo",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    ",",
    ".",
    ".?",
    "?",
    ":",
    "=",
    "==",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "<<",
    ">>>",
    "!",
    "~",
    "++",
    "--",
    "+=",
    "if",
    "else",
    "for",
    "foreach",
    "while",
    "until",
    "do",
    "switch",
    "case",
    "default",
    "return",
    "function",
    "var",
    "int",
    "String",
    "new",
    "is",
    "contains",
    "and",
    "or",
    "empty",
    "null",
    "true",
    "1",
    "2.5",
    "0xFF",
    "99L",
    "1e3",
    "\"a\"",
    "'b'",
    "Math",
    "parseInt",
    "size",
    "\n",
    " ",
    "//c\n",
    "/*c*/",
    "\\",
    "\u{1}5\u{2}",
    "`",
    "${",
    "ä",
    "😀",
    "#",
    "@",
    "?:",
    "~=",
    "**",
    "isdef",
    "(int)",
];

fn accepted_means_compiled(lang: ScriptLang, body: &str) {
    if let Ok(script) = Script::new(lang, &["msg", "metadata", "msgType"], body) {
        let mut limits = ScriptLimits::default();
        limits.tbel.time = std::time::Duration::from_millis(50);
        limits.javascript.time = limits.tbel.time;
        let result = ScriptHost::new(limits).call(
            &script,
            &[ScriptArg::Json("{}"), ScriptArg::Json("{}"), ScriptArg::Text("T")],
        );
        assert!(
            !matches!(result, Err(fieldline_script::ScriptError::Syntax(_))),
            "{body}"
        );
    }
}

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![prop::sample::select(PIECES).prop_map(str::to_owned), ".{0,3}"],
        0..40,
    )
    .prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_translator_never_panics(body in soup()) {
        accepted_means_compiled(ScriptLang::Tbel, &body);
    }

    #[test]
    fn nor_does_javascript(body in soup()) {
        accepted_means_compiled(ScriptLang::JavaScript, &body);
    }

    #[test]
    fn any_text_at_all(body in ".{0,200}") {
        accepted_means_compiled(ScriptLang::Tbel, &body);
    }
}

#[test]
fn nesting_is_bounded() {
    for piece in [
        "(",
        "[",
        "{",
        "!",
        "-",
        "a(",
        "if (1) ",
        "x = ",
        "1 ? ",
        "function f() {",
        "new int[",
        "a.b[",
    ] {
        let _ = Script::new(ScriptLang::Tbel, &["msg"], &piece.repeat(49_000 / piece.len()));
    }
    for chain in ["+1", ".a", "[0]", ".b()", "||1", "?1:1", " is String", "&&(1)"] {
        let _ = Script::new(
            ScriptLang::Tbel,
            &["msg"],
            &format!("msg{}", chain.repeat(49_000 / chain.len())),
        );
    }
    let nested: String = (0..60).fold("msg".to_owned(), |inner, _| {
        format!("({inner}{})", "+1".repeat(100))
    });
    let _ = Script::new(ScriptLang::Tbel, &["msg"], &nested);
}
