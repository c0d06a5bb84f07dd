//! What scripts may not do: run for ever, eat the memory, see each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fieldline_script::{
    LangLimits, MAX_BODY, Script, ScriptArg, ScriptClock, ScriptError, ScriptHost, ScriptLang, ScriptLimits,
    ScriptOutput,
};

const LANGS: [ScriptLang; 2] = [ScriptLang::JavaScript, ScriptLang::Tbel];

fn script(lang: ScriptLang, body: &str) -> Script {
    Script::new(lang, &["msg"], body).unwrap_or_else(|error| panic!("{body}\n{error}"))
}

/// Limits that a test reaches soon.
fn tight() -> ScriptLimits {
    let lang = LangLimits {
        time: Duration::from_millis(100),
        memory: 4 << 20,
    };
    ScriptLimits {
        javascript: lang,
        tbel: lang,
        ..ScriptLimits::default()
    }
}

fn one(host: &mut ScriptHost, lang: ScriptLang) {
    assert_eq!(
        host.call(&script(lang, "return 1;"), &[]),
        Ok(ScriptOutput::Json("1".to_owned()))
    );
}

#[test]
fn an_endless_loop_is_stopped_and_the_host_goes_on() {
    for lang in LANGS {
        let mut host = ScriptHost::new(tight());
        let body = "var n = 0; while (true) { n++; } return n;";
        let start = Instant::now();
        assert!(
            matches!(host.call(&script(lang, body), &[]), Err(ScriptError::Time { .. })),
            "{lang:?}"
        );
        assert!(start.elapsed() < Duration::from_secs(5));
        one(&mut host, lang);
    }
}

#[test]
fn catching_everything_does_not_keep_a_script_running() {
    let body = "for (;;) { try { for (;;) {} } catch (e) {} finally { continue; } }";
    let mut host = ScriptHost::new(tight());
    let result = host.call(&script(ScriptLang::JavaScript, body), &[]);
    assert!(matches!(result, Err(ScriptError::Time { .. })), "{result:?}");
}

#[test]
fn built_in_loops_end_too() {
    let bodies = [
        "return /^(a+)+$/.test('a'.repeat(40) + 'b');",
        "return new Array(4294967295).indexOf(1);",
        "return [].concat(Array.prototype.map.call({length: 1e15}, x => x)).length;",
        "return new Set(new Array(4294967295)).size;",
        "var a = []; for (var i = 0; i < 60; i++) { a = [a, a]; } return a.flat(Infinity).length;",
        "var a = []; a.length = 4294967295; return JSON.stringify(a.fill(0)).length;",
        "Promise.resolve().then(function again() { Promise.resolve().then(again); }); return 1;",
        "var s = 'a'.repeat(1000000); return s.indexOf(s.slice(500000) + 'b');",
    ];
    let ends = |lang: ScriptLang, body: &str| {
        let mut host = ScriptHost::new(tight());
        let start = Instant::now();
        let result = host.call(&script(lang, body), &[]);
        assert!(result.is_err(), "{body} {result:?}");
        assert!(
            start.elapsed() < Duration::from_secs(8),
            "{body} took {:?}",
            start.elapsed()
        );
        one(&mut host, lang);
    };
    bodies.iter().for_each(|body| ends(ScriptLang::JavaScript, body));
    let bodies = [
        "return 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.matches('(a+)+');",
        "var l = []; l[4294967294] = 1; return l.indexOf(2);",
        "return new int[2000000000];",
    ];
    bodies.iter().for_each(|body| ends(ScriptLang::Tbel, body));
}

#[test]
fn a_memory_bomb_costs_its_call_only() {
    let bodies = [
        (ScriptLang::JavaScript, "var t = 'abc'; while (true) { t += t; }"),
        (
            ScriptLang::JavaScript,
            "var all = []; while (true) { all.push(new Array(1000).fill('x' + all.length)); }",
        ),
        (ScriptLang::Tbel, "t = 'abc'; while(true) { t += t}; t"),
        (
            ScriptLang::Tbel,
            "m = []; while(true) { m.add('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' + Math.random())}; m",
        ),
        (
            ScriptLang::Tbel,
            "m = {}; m.a = {}; i = 0; while(true) { m.a[i++] = 'aaaaaaaaaaaaaaaaaa' + i;}; m",
        ),
        (
            ScriptLang::Tbel,
            "a = ['aaaaaaaaaaaaa']; b = []; while(true) { b.addAll(a); b.addAll(b)}; m",
        ),
    ];
    for (lang, body) in bodies {
        let slow = LangLimits {
            time: Duration::from_secs(20),
            memory: 4 << 20,
        };
        let mut host = ScriptHost::new(ScriptLimits {
            javascript: slow,
            tbel: slow,
            ..ScriptLimits::default()
        });
        one(&mut host, lang);
        let result = host.call(&script(lang, body), &[]);
        assert!(
            matches!(result, Err(ScriptError::Memory { limit: 4_194_304 })),
            "{body} {result:?}"
        );
        one(&mut host, lang);
    }
}

#[test]
fn garbage_of_one_call_does_not_cost_the_next_one() {
    let body = "var all = []; for (var i = 0; i < 12000; i++) { var o = {all: all}; o.self = o; all.push(o); } \
        return all.length;";
    for lang in LANGS {
        let slow = LangLimits {
            time: Duration::from_secs(20),
            memory: 4 << 20,
        };
        let mut host = ScriptHost::new(ScriptLimits {
            javascript: slow,
            tbel: slow,
            ..ScriptLimits::default()
        });
        let script = script(lang, body);
        for round in 0..5 {
            assert_eq!(
                host.call(&script, &[]),
                Ok(ScriptOutput::Json("12000".to_owned())),
                "{lang:?} {round}"
            );
        }
    }
}

#[test]
fn deep_recursion_is_an_error() {
    for lang in LANGS {
        let mut host = ScriptHost::new(ScriptLimits::default());
        let body = "function deeper(n) { return deeper(n + 1) + 1; } return deeper(0);";
        let result = host.call(&script(lang, body), &[]);
        assert!(
            matches!(&result, Err(ScriptError::Runtime { .. })),
            "{lang:?} {result:?}"
        );
        one(&mut host, lang);
    }
}

#[test]
fn results_and_arguments_have_a_size() {
    for lang in LANGS {
        let mut host = ScriptHost::new(ScriptLimits {
            max_args: 1000,
            max_result: 1000,
            ..ScriptLimits::default()
        });
        let long = script(
            lang,
            "var s = 'x'; while (s.length < 2000) { s += s; } return {s: s};",
        );
        assert_eq!(
            host.call(&long, &[]),
            Err(ScriptError::ResultTooLarge { limit: 1000 })
        );
        let list = script(
            lang,
            "var l = []; for (var i = 0; i < 2000; i++) { l.push(i); } return l;",
        );
        assert_eq!(
            host.call(&list, &[]),
            Err(ScriptError::ResultTooLarge { limit: 1000 })
        );
        let text = "x".repeat(1001);
        let echo = script(lang, "return 1;");
        assert_eq!(
            host.call(&echo, &[ScriptArg::Text(&text)]),
            Err(ScriptError::ArgsTooLarge { limit: 1000 })
        );
        assert!(host.call(&echo, &[ScriptArg::Text(&text[..1000])]).is_ok());
        let cycle = script(lang, "var a = {}; a.a = a; return a;");
        assert!(host.call(&cycle, &[]).is_err());
        assert!(Script::new(lang, &[], &format!("return '{}';", "x".repeat(MAX_BODY))).is_err());
    }
}

#[test]
fn offenders_are_blocked_on_all_hosts_for_a_while() {
    for lang in LANGS {
        let (start, ms) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let clock = {
            let ms = Arc::clone(&ms);
            ScriptClock::new(move || start + Duration::from_millis(ms.load(Ordering::Relaxed)))
        };
        let limits = ScriptLimits {
            max_result: 10,
            ..ScriptLimits::default()
        };
        let mut first = ScriptHost::with_clock(limits.clone(), clock.clone());
        let mut second = ScriptHost::with_clock(limits, clock.clone());
        let bad = script(lang, "return '01234567890';");
        let throws = script(lang, "return msg.none.none;");
        for _ in 0..2 {
            assert!(matches!(
                first.call(&bad, &[]),
                Err(ScriptError::ResultTooLarge { .. })
            ));
            assert_eq!(bad.blocked_until(clock.now()), None);
            assert_eq!(first.take_blocked(), None);
        }
        assert!(matches!(
            second.call(&bad, &[]),
            Err(ScriptError::ResultTooLarge { .. })
        ));
        let until = start + Duration::from_secs(60);
        assert_eq!(bad.blocked_until(clock.now()), Some(until));
        assert_eq!(
            (first.take_blocked(), second.take_blocked()),
            (None, Some(Duration::from_secs(60)))
        );
        assert_eq!(second.take_blocked(), None, "it is told once");
        assert_eq!(first.call(&bad, &[]), Err(ScriptError::Blocked { until }));
        assert_eq!(
            second.call(&bad.clone(), &[]),
            Err(ScriptError::Blocked { until })
        );
        for _ in 0..5 {
            assert!(matches!(
                first.call(&throws, &[ScriptArg::Json("{}")]),
                Err(ScriptError::Runtime { .. })
            ));
        }
        assert_eq!(
            throws.blocked_until(clock.now()),
            None,
            "an ordinary error blocks nobody"
        );
        ms.store(60_000, Ordering::Relaxed);
        assert!(matches!(
            first.call(&bad, &[]),
            Err(ScriptError::ResultTooLarge { .. })
        ));
        assert_eq!(bad.blocked_until(clock.now()), None, "counting begins anew");
    }
}

#[test]
fn the_clock_of_the_host_decides_when_time_is_over() {
    for lang in LANGS {
        let (start, asked) = (Instant::now(), AtomicU64::new(0));
        let clock =
            ScriptClock::new(move || start + Duration::from_secs(asked.fetch_add(1, Ordering::Relaxed)));
        let mut host = ScriptHost::with_clock(ScriptLimits::default(), clock);
        let result = host.call(&script(lang, "while (true) {}"), &[]);
        assert!(matches!(result, Err(ScriptError::Time { .. })), "{result:?}");
    }
}

#[test]
fn scripts_do_not_see_each_other() {
    let attempts = [
        "Object.prototype.polluted = 1;",
        "Array.prototype.push = function () { return 'mine'; };",
        "Math.max = function () { return 7; };",
        "JSON.stringify = function () { return 'mine'; };",
        "globalThis.leak = 1;",
        "leak = 1;",
        "this.leak = 1;",
        "String.prototype.trim = null;",
        "[][Symbol.iterator]().__proto__.next = null;",
        "Object.getPrototypeOf(function* () {}).leak = 1;",
        "(function () {}).constructor('leak = 1')();",
        "arguments.callee.leak = 1;",
        "Object.setPrototypeOf(Object.prototype, {leak: 1});",
        "Object.defineProperty(globalThis, 'leak', {value: 1});",
        "delete globalThis.JSON;",
        "Date.now = function () { return 5; };",
        "Error.prepareStackTrace = function () { return 'mine'; };",
        "RegExp.prototype.exec = function () { return null; };",
    ];
    let probe = "var a = [1]; a.push(2); return [typeof leak, ({}).polluted, a.length, Math.max(1, 2), \
        JSON.stringify({a: 1}), ' x '.trim(), Date.now() > 5, /a/.test('a'), [...a].length, arguments.callee.leak];";
    let mut host = ScriptHost::new(ScriptLimits::default());
    let probe = script(ScriptLang::JavaScript, probe);
    let expected = host.call(&probe, &[]).unwrap();
    assert_eq!(
        expected.clone().into_json(),
        r#"["undefined",null,2,2,"{\"a\":1}","x",true,true,2,null]"#
    );
    for attempt in attempts {
        let _ = host.call(&script(ScriptLang::JavaScript, attempt), &[]);
        assert_eq!(host.call(&probe, &[]).unwrap(), expected, "{attempt}");
    }
    let mut host = ScriptHost::new(ScriptLimits::default());
    let probe = script(
        ScriptLang::Tbel,
        "[{}.leak, [1].size(), Math.max(1, 2), parseInt('5'), ' x '.trim(), msg.leak]",
    );
    let expected = host.call(&probe, &[ScriptArg::Json("{}")]).unwrap();
    assert_eq!(expected.clone().into_json(), r#"[null,1,2,5,"x",null]"#);
    for attempt in [
        "Math.leak = 1;",
        "var p = {}.constructor.prototype; p.leak = 1;",
        "leak = 1;",
        "var f = [].constructor; f.leak = 1; f.prototype.leak = 1;",
        "var e = {a: 1}.entrySet().toArray()[0].constructor; e.prototype.leak = 1",
        "globalThis.leak = 1;",
        "var f = ''.constructor.constructor; f('leak = 1')",
    ] {
        let _ = host.call(&script(ScriptLang::Tbel, attempt), &[ScriptArg::Json("{}")]);
        assert_eq!(
            host.call(&probe, &[ScriptArg::Json("{}")]).unwrap(),
            expected,
            "{attempt}"
        );
    }
}

#[test]
fn nothing_of_a_call_outlives_it() {
    let mut host = ScriptHost::new(ScriptLimits::default());
    let counts = script(
        ScriptLang::JavaScript,
        "if (typeof n === 'undefined') n = 0; n++; return n;",
    );
    assert_eq!(host.call(&counts, &[]).unwrap().into_json(), "1");
    assert_eq!(host.call(&counts, &[]).unwrap().into_json(), "1");
}

#[test]
fn hosts_forget_and_evict() {
    let mut host = ScriptHost::new(ScriptLimits {
        cached_scripts: 10,
        ..ScriptLimits::default()
    });
    let scripts: Vec<Script> = (0..50)
        .map(|n| script(ScriptLang::Tbel, &format!("return {n};")))
        .collect();
    for _ in 0..2 {
        for (n, script) in scripts.iter().enumerate() {
            assert_eq!(host.call(script, &[]).unwrap().into_json(), n.to_string());
        }
    }
    host.evict_script(scripts[0].id());
    assert_eq!(host.call(&scripts[0], &[]).unwrap().into_json(), "0");
}
