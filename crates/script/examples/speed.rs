//! Calls a second of typical scripts on one core, and memory a compiled script.

use std::time::{Duration, Instant};

use fieldline_script::{Script, ScriptArg, ScriptHost, ScriptLang, ScriptLimits};

const PARAMS: &[&str] = &["msg", "metadata", "msgType"];
const TRANSFORM: &str = "msg.temperature = msg.temperature * 1.8 + 32;\n\
    return {msg: msg, metadata: metadata, msgType: msgType};";
const FILTER: &str = "return msg.temperature > 20;";

fn main() {
    let metadata: Vec<(String, String)> = [
        ("deviceName", "Thermostat 17"),
        ("deviceType", "thermostat"),
        ("ts", "1732230000000"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let body = r#"{"temperature":21.5,"humidity":40,"active":true}"#;
    let only = std::env::args().nth(1);
    for lang in [ScriptLang::JavaScript, ScriptLang::Tbel] {
        let mut host = ScriptHost::new(ScriptLimits::default());
        let Ok(transform) = Script::new(lang, PARAMS, TRANSFORM) else {
            continue;
        };
        let Ok(filter) = Script::new(lang, PARAMS, FILTER) else {
            continue;
        };
        let args = [
            ScriptArg::Json(body),
            ScriptArg::Map(&metadata),
            ScriptArg::Text("POST_TELEMETRY_REQUEST"),
        ];
        let run = |name: &str| only.as_deref().is_none_or(|only| only == name);
        println!("{:?}", host.transform(&transform, &args));
        if run("transform") {
            measure(&format!("{lang:?} transform"), || {
                host.transform(&transform, &args).is_ok()
            });
        }
        if run("call") {
            measure(&format!("{lang:?} call"), || host.call(&transform, &args).is_ok());
        }
        if run("filter") {
            measure(&format!("{lang:?} filter"), || {
                host.filter(&filter, &args).is_ok()
            });
        }
        if run("object") {
            let fields = |object: &mut fieldline_script::ObjectBuilder<'_, '_>| {
                object.double("temperature", 21.5);
                object.long("humidity", 40);
                object.bool("active", true);
            };
            let args = [
                ScriptArg::Object(&fields),
                ScriptArg::Map(&metadata),
                ScriptArg::Text("POST_TELEMETRY_REQUEST"),
            ];
            measure(&format!("{lang:?} filter of a built object"), || {
                host.filter(&filter, &args).is_ok()
            });
        }
        if run("memory") {
            memory(lang);
        }
    }
}

fn measure(name: &str, mut call: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        assert!(call(), "{name} fails");
    }
    let mut best = 0.0f64;
    for _ in 0..5 {
        let (start, mut calls) = (Instant::now(), 0u32);
        while start.elapsed() < Duration::from_millis(400) {
            for _ in 0..1000 {
                call();
            }
            calls += 1000;
        }
        best = best.max(f64::from(calls) / start.elapsed().as_secs_f64());
    }
    println!("{name}: {best:.0} calls/s");
}

fn memory(lang: ScriptLang) {
    let mut host = ScriptHost::new(ScriptLimits {
        cached_scripts: 2000,
        ..ScriptLimits::default()
    });
    let args = [ScriptArg::Json("{}"), ScriptArg::Json("{}"), ScriptArg::Text("")];
    let script = |n: u32| Script::new(lang, PARAMS, &format!("msg.n = {n};\n{TRANSFORM}"));
    let Ok(first) = script(0) else { return };
    let _ = host.call(&first, &args);
    let before = host.memory();
    let start = Instant::now();
    let scripts: Vec<Script> = (1..=1000).filter_map(|n| script(n).ok()).collect();
    let checked = start.elapsed();
    for script in &scripts {
        let _ = host.call(script, &args);
    }
    let after = host.memory();
    println!(
        "{lang:?}: realm {} KiB, {} bytes a script, {:?} to check one, {:?} for its first call",
        before >> 10,
        (after - before) / scripts.len(),
        checked / 1000,
        (start.elapsed() - checked) / 1000,
    );
}
