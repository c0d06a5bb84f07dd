//! Functions of the engine that loop by themselves, where no time limit is looked at: what each is given is bounded.

use std::time::{Duration, Instant};

use fieldline_script::{Script, ScriptHost, ScriptLang, ScriptLimits};

/// Each of these would run for minutes, or for ever, if it were not for a bound.
const BODIES: &[&str] = &[
    "var s = 'a'.repeat(2000000); return s.indexOf('a'.repeat(1000000) + 'b');",
    "var s = 'a'.repeat(2000000); return s.lastIndexOf('b' + 'a'.repeat(1000000));",
    "var s = 'a'.repeat(2000000); return s.includes('a'.repeat(1000000) + 'b');",
    "var s = 'a'.repeat(2000000); return s.split('a'.repeat(1000000) + 'b').length;",
    "var s = 'a'.repeat(2000000); return s.replace('a'.repeat(1000000) + 'b', '').length;",
    "var s = 'a'.repeat(2000000); return s.replaceAll('a'.repeat(1000000) + 'b', '').length;",
    // What is no text until it is searched for.
    "var s = 'a'.repeat(2000000), n = 'a'.repeat(1000000) + 'b'; return s.indexOf({toString: () => n});",
    "var s = 'a'.repeat(2000000), n = 'a'.repeat(1000000) + 'b'; return s.replaceAll([n], '').length;",
    "var s = 'a'.repeat(2000000), n = 'a'.repeat(1000000) + 'b'; \
        return String.prototype.indexOf.call({toString: () => s}, n);",
    "var a = []; a.length = 4294967295; return a.indexOf(1);",
    "var a = []; a.length = 4294967295; return a.lastIndexOf(1);",
    "var a = []; a.length = 4294967295; return a.includes(1);",
    "var a = []; a.length = 4294967295; return a.join('');",
    "var a = []; a.length = 4294967295; return a.toLocaleString().length;",
    "var a = []; a.length = 4294967295; return a.sort().length;",
    "var a = []; a.length = 4294967295; return a.reverse().length;",
    "var a = []; a.length = 4294967295; return a.slice(1).length;",
    "var a = []; a.length = 4294967295; return a.findLast(x => x);",
    "var a = []; a.length = 4294967295; return Array.from(a).length;",
    "var a = []; a.length = 4294967295; return [...a].length;",
    "var a = []; a.length = 4294967295; return Math.max.apply(null, a);",
    "var a = []; a.length = 4294967295; return JSON.stringify(a).length;",
    "var a = []; a.length = 4294967295; return [1].concat(a).length;",
    "return [1].concat({length: 1e15, [Symbol.isConcatSpreadable]: true}).length;",
    "return new Set([-1, -2]).isDisjointFrom({size: 0, has() {}, keys: () => [][Symbol.iterator].call({length: 1e15})});",
    "return new Set([-1, -2]).difference({size: 0, has() {}, keys: () => [][Symbol.iterator].call({length: 1e15})}).size;",
    "return Math.sumPrecise([].keys.call({length: 1e15}));",
    "return Array.from({length: 1e15}).length;",
    "return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1);",
    "return Array.prototype.unshift.call({length: 2 ** 53 - 2}, 1);",
    "return new Uint8Array(4e9).fill(1).length;",
    "return new Uint8Array({length: 4e9}).length;",
    "return 'a'.repeat(2 ** 29).padStart(2 ** 30 - 1, 'b').length;",
    "return ('a'.repeat(50) + 'b').match(/(a*)*c/);",
    "return 'a'.repeat(100000).search(/(.*)(.*)(.*)(.*)b/);",
    "return new RegExp('(a?){60}'.repeat(20) + 'b').test('a'.repeat(5000));",
    "var n = 3n; for (var i = 0; i < 40; i++) n = n * n; return String(n).length;",
    "return String(7n ** 100000000n).length;",
    "var a = []; for (var i = 0; i < 60; i++) a = [a, a]; return JSON.stringify(a).length;",
    "var a = []; for (var i = 0; i < 60; i++) a = [a, a]; return String(a).length;",
    "var o = {}; for (var i = 0; i < 40; i++) o = {a: o, b: o}; return {msg: o};",
];

/// These end by themselves, but take their time.
const HEAVY: &[&str] = &[
    "return new RegExp('[' + '\\\\p{L}'.repeat(9000) + ']', 'iu').test('a');",
    "return new RegExp('[' + '\\\\p{L}'.repeat(9000) + ']', 'iv').test('a');",
    "return new RegExp('('.repeat(20000) + ')'.repeat(20000)).test('a');",
    "return 'é'.repeat(2000000).normalize('NFD').length;",
    "return 'aé'.repeat(1000000).toUpperCase().length;",
    "var a = []; for (var i = 0; i < 300000; i++) a.push('k' + (i * 7919) % 300000); return a.sort()[0];",
    "return JSON.parse('['.repeat(100000)).length;",
    "return new Array(4000000).fill(0).join('').length;",
];

fn took(body: &str) -> Duration {
    let mut limits = ScriptLimits::default();
    limits.javascript.time = Duration::from_millis(300);
    limits.javascript.memory = 64 << 20;
    let mut host = ScriptHost::new(limits);
    let script =
        Script::new(ScriptLang::JavaScript, &["msg"], body).unwrap_or_else(|error| panic!("{body}\n{error}"));
    let begun = Instant::now();
    let result = host.call(&script, &[]);
    let took = begun.elapsed();
    println!("{took:?} {result:.60?} {body}");
    took
}

#[test]
fn no_function_of_the_engine_holds_its_thread() {
    let slow: Vec<(Duration, &str)> = BODIES
        .iter()
        .chain(HEAVY)
        .map(|body| (took(body), *body))
        .filter(|(took, _)| *took > Duration::from_secs(8))
        .collect();
    assert!(slow.is_empty(), "{slow:#?}");
}
