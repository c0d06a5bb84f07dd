//! JavaScript of rule nodes: arguments in, results out.

use fieldline_script::{
    ObjectBuilder, Script, ScriptArg, ScriptError, ScriptHost, ScriptLang, ScriptLimits, ScriptOutput,
    TransformedMessage,
};

const PARAMS: &[&str] = &["msg", "metadata", "msgType"];

fn script(body: &str) -> Script {
    Script::new(ScriptLang::JavaScript, PARAMS, body).unwrap_or_else(|error| panic!("{body}\n{error}"))
}

fn metadata() -> Vec<(String, String)> {
    vec![
        ("deviceName".to_owned(), "Pump \"1\"\n".to_owned()),
        ("b".to_owned(), "2".to_owned()),
    ]
}

#[track_caller]
fn call(body: &str, msg: &str) -> Result<ScriptOutput, ScriptError> {
    let metadata = metadata();
    ScriptHost::new(ScriptLimits::default()).call(
        &script(body),
        &[
            ScriptArg::Json(msg),
            ScriptArg::Map(&metadata),
            ScriptArg::Text("T"),
        ],
    )
}

#[test]
fn a_transformation_gives_the_parts_of_messages() {
    let metadata = metadata();
    let mut host = ScriptHost::new(ScriptLimits::default());
    let args = [
        ScriptArg::Json(r#"{"z":1,"t":20.5,"a":[1,"x",null]}"#),
        ScriptArg::Map(&metadata),
        ScriptArg::Text("T"),
    ];
    let body = "msg.t = msg.t * 2; metadata.n = 5; metadata.none = null; metadata.flag = true;
        return {msg: msg, metadata: metadata, msgType: msgType};";
    let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let parts = TransformedMessage {
        msg: Some(r#"{"z":1,"t":41,"a":[1,"x",null]}"#.to_owned()),
        metadata: Some(vec![
            text("deviceName", "Pump \"1\"\n"),
            text("b", "2"),
            text("n", "5"),
            text("flag", "true"),
        ]),
        msg_type: Some("T".to_owned()),
    };
    assert_eq!(host.transform(&script(body), &args), Ok(vec![parts]));
    let some = host
        .transform(
            &script("return [{msg: 1}, {metadata: {}}, {msgType: 'X'}];"),
            &args,
        )
        .unwrap();
    assert_eq!(some.len(), 3);
    assert_eq!(
        some[0],
        TransformedMessage {
            msg: Some("1".to_owned()),
            ..TransformedMessage::default()
        }
    );
    assert_eq!(
        some[1],
        TransformedMessage {
            metadata: Some(Vec::new()),
            ..TransformedMessage::default()
        }
    );
    assert_eq!(
        some[2],
        TransformedMessage {
            msg_type: Some("X".to_owned()),
            ..TransformedMessage::default()
        }
    );
    for wrong in ["return 5;", "return;", "return [1];", "return {metadata: 5};"] {
        let error = host.transform(&script(wrong), &args).unwrap_err();
        assert!(error.to_string().contains("wrong result"), "{wrong} {error}");
    }
}

#[test]
fn filters_and_switches_have_their_types() {
    let mut host = ScriptHost::new(ScriptLimits::default());
    let args = [
        ScriptArg::Json(r#"{"t":25}"#),
        ScriptArg::Null,
        ScriptArg::Text("T"),
    ];
    assert_eq!(host.filter(&script("return msg.t > 20;"), &args), Ok(true));
    let error = host.filter(&script("return msg.t;"), &args).unwrap_err();
    assert_eq!(
        error.to_string(),
        "wrong result: expected boolean, the script returned a number"
    );
    assert_eq!(
        host.labels(&script("return 'one';"), &args),
        Ok(vec!["one".to_owned()])
    );
    assert_eq!(
        host.labels(&script("return ['a', 'b', 'a'];"), &args),
        Ok(vec!["a".to_owned(), "b".to_owned()])
    );
    assert!(host.labels(&script("return [1];"), &args).is_err());
}

#[test]
fn values_come_back_as_they_are() {
    let output = |body: &str, msg: &str| call(body, msg).unwrap();
    assert_eq!(output("return msg;", "true"), ScriptOutput::Bool(true));
    assert_eq!(output("return null;", "1"), ScriptOutput::Null);
    assert_eq!(
        output("return 'ä😀' + msg.length;", "\"x\""),
        ScriptOutput::Text("ä😀1".to_owned())
    );
    assert_eq!(
        output("return '\\ud800';", "1"),
        ScriptOutput::Text("\u{fffd}".to_owned())
    );
    let long = r#"{"id":9007199254740993,"other":9007199254740995,"u":18446744073709551615}"#;
    assert_eq!(output("return msg;", long).into_json(), long);
    assert_eq!(
        output("msg.x = new Date(0); return msg;", r#"{"id":9007199254740993}"#).into_json(),
        r#"{"id":9007199254740993,"x":"1970-01-01T00:00:00.000Z"}"#
    );
    assert_eq!(
        output("return {b: 1, a: undefined, f: function () {}, n: NaN};", "1").into_json(),
        r#"{"b":1,"n":null}"#
    );
    assert_eq!(
        output("return msg.__proto__;", r#"{"__proto__":5}"#).into_json(),
        "5"
    );
    assert_eq!(
        output("msg.constructor = 1; msg.toString = 2; return msg;", "{}").to_value(),
        serde_json::json!({"constructor": 1, "toString": 2})
    );
    assert!(
        call("return 1;", "{")
            .unwrap_err()
            .to_string()
            .contains("argument 1 is not valid JSON")
    );
}

#[test]
fn objects_are_built_without_json() {
    let fill = |object: &mut ObjectBuilder<'_, '_>| {
        object.bool("b", true);
        object.long("l", i64::MAX);
        object.double("d", 0.5);
        object.text("t", "x");
        object.json("j", "[1]");
        object.null("n");
        object.object("o", &|inner| inner.long("i", 1));
    };
    let value = serde_json::json!({"k": [1, 2.5, null, "x"]});
    let mut host = ScriptHost::new(ScriptLimits::default());
    let result = host
        .call(
            &script("return [msg, metadata];"),
            &[ScriptArg::Object(&fill), ScriptArg::Value(&value)],
        )
        .unwrap();
    assert_eq!(
        result.into_json(),
        r#"[{"b":true,"l":9223372036854775807,"d":0.5,"t":"x","j":[1],"n":null,"o":{"i":1}},{"k":[1,2.5,null,"x"]}]"#
    );
    let bad = |object: &mut ObjectBuilder<'_, '_>| object.json("j", "[1");
    let error = host
        .call(&script("return 1;"), &[ScriptArg::Object(&bad)])
        .unwrap_err();
    assert!(error.to_string().contains("not valid JSON"), "{error}");
}

#[test]
fn errors_name_the_line() {
    let error = Script::new(ScriptLang::JavaScript, PARAMS, "var a = 1;\nvar b = ;\nreturn b;").unwrap_err();
    assert_eq!((error.line, error.column), (2, 9), "{error}");
    let error = call("var a = 1;\n\nreturn msg.a.b;", "{}").unwrap_err();
    assert!(
        matches!(&error, ScriptError::Runtime { line: Some(3), .. }),
        "{error:?}"
    );
    let error = call("throw new Error('not today');", "{}").unwrap_err();
    assert_eq!(error.to_string(), "not today (line 1)");
    assert_eq!(
        call("throw {code: 5};", "{}").unwrap_err().to_string(),
        r#"{"code":5}"#
    );
    assert!(Script::new(ScriptLang::JavaScript, &["a b"], "return 1;").is_err());
}

#[test]
fn sloppy_scripts_run() {
    assert_eq!(
        call(
            "total = 0; for (i = 0; i < 4; i++) total += i; return total;",
            "{}"
        )
        .unwrap()
        .into_json(),
        "6"
    );
    assert_eq!(
        call("for (k in msg) last = k; return last;", r#"{"a":1,"b":2}"#)
            .unwrap()
            .into_json(),
        "\"b\""
    );
    assert_eq!(
        call("console.log(msg); print(1); return 1; // end", "{}")
            .unwrap()
            .into_json(),
        "1"
    );
    assert_eq!(
        call(
            "var slice = Array.prototype.slice.call(arguments); return slice.length;",
            "{}"
        )
        .unwrap()
        .into_json(),
        "3"
    );
}
