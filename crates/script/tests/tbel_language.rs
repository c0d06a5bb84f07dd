//! What TBEL scripts mean.

mod support;

use fieldline_script::{Script, ScriptLang};
use support::{fails, gives, gives_with};

#[test]
fn ints_longs_and_doubles_are_kept_apart() {
    gives("2 + 3", "5");
    gives("5 / 2", "2.5");
    gives("4 / 2", "2.0");
    gives("2147483647 + 1", "2147483648");
    gives("5.0", "5.0");
    gives("5.0 + 1", "6.0");
    gives("2 * 2.5", "5.0");
    gives("-7 % 3", "-1");
    gives("'' + 5.0", "\"5.0\"");
    gives("'' + 12345678.9", "\"1.23456789E7\"");
    gives("'' + 0.0001", "\"1.0E-4\"");
    gives("'' + 4 / 2", "\"2.0\"");
    gives("var x = 3; x / 3", "1.0");
    gives("9223372036854775807", "9223372036854775807");
    gives(
        "var l = Long.MAX_VALUE; var d = 1e300; [-l, -d, -5, -(-5), -(-(5)), - -5, -(-0.5)]",
        "[-9223372036854775807,-1e+300,-5,5,5,5,0.5]",
    );
    gives("int i = 5.7; i", "5");
    gives("double d = 5; d", "5.0");
    gives("long l = 3; l + 1", "4");
    gives("(int) 7.9", "7");
    gives("(double) 7", "7.0");
    gives("0x1F", "31");
    gives("010", "8");
    gives("2 ** 10", "1024");
    gives("99993219.156013e-002", "999932.19156013");
    gives_with(
        r#"{"a":25.0,"b":25,"c":9007199254740993}"#,
        "msg",
        r#"{"a":25.0,"b":25,"c":9007199254740993}"#,
    );
    gives_with(r#"{"t":25}"#, "msg.t = msg.t * 1.8 + 32; msg", r#"{"t":77.0}"#);
    gives_with(r#"{"ts":1732230000000}"#, "msg.ts + 1", "1732230000001");
}

#[test]
fn bits_are_those_of_ints_and_longs() {
    gives("0xFF & 0x0F", "15");
    gives("1 << 31", "-2147483648");
    gives("-1 >>> 28", "15");
    gives("-1 >>> 0", "-1");
    gives("~5", "-6");
    gives("5 ^ 1 | 8", "12");
    gives("var l = 9223372036854775807; l << 10", "-1024");
    gives("var l = 9223372036854775807; l >> -14", "8191");
    gives("10 ^ 9223372036854775807", "9223372036854775797");
    gives("var x = true; var y = false; x & y", "0");
    gives("var b = [1, 2]; (b[0] & 0xFF) << 8 | (b[1] & 0xFF)", "258");
    fails("1.5 & 1", "bitwise operation");
}

#[test]
fn equality_is_by_value() {
    gives("'203' == 203", "true");
    gives("\"a\" == 'a'", "true");
    gives("[1, 2] == [1, 2]", "true");
    gives("{a: 1} == {a: 1}", "true");
    gives("{a: 1} != {a: 2}", "true");
    gives("'' == 0", "false");
    gives("null == nil", "true");
    gives("msg.none == null", "true");
    gives("msg.none > 0 || msg.none < 0", "false");
    gives("19.0 === 19", "true");
    gives("true == 'true'", "true");
    gives(
        "[] == empty && '' == empty && msg.none == empty && 1 != empty",
        "true",
    );
}

#[test]
fn operators_beyond_javascript() {
    gives(
        "'abc' contains 'b' && [1, 2] contains 2 && {a: 1} contains 'a'",
        "true",
    );
    gives(
        "'foo' is String && 1 instanceof Integer && [] is List && {} is Map && 1.0 is Double",
        "true",
    );
    gives("'foo123' ~= '[a-z]+[0-9]+'", "true");
    gives("'foo' soundslike 'fooh'", "true");
    gives("('foobar' strsim 'foobaz') > 0.5", "true");
    gives("true and false or true", "true");
    gives("null or '' or 'third'", "\"third\"");
    gives("isdef msg && !isdef nothing", "true");
    gives("'a' # 1 # 2.0", "\"a12.0\"");
    gives("msg.none ?: 5", "5");
    gives("msg.?none.deeper == null", "true");
    gives("var m = {a: {b: 1}}; m.?a.b", "1");
    fails("msg.none.deeper", "cannot read \"deeper\" of null");
}

#[test]
fn statements() {
    gives("if (1 > 2) { 'a' } else if (2 > 1) { 'b' } else { 'c' }", "\"b\"");
    gives(
        "var s = 0; for (int i = 0; i < 5; i++) { if (i == 1) continue; if (i == 4) break; s += i; } s",
        "5",
    );
    gives("var s = ''; foreach (x : ['a', 'b']) { s += x; } s", "\"ab\"");
    gives("var s = ''; for (String x : ['a', 'b']) s += x; s", "\"ab\"");
    gives("var s = 0; for (c : 'abc') { s += (int) c; } s", "294");
    gives_with(
        r#"{"a":1,"b":2}"#,
        "var s = ''; foreach (e : msg.entrySet()) { s += e.key + e.getValue(); } s",
        "\"a1b2\"",
    );
    gives_with(
        r#"{"a":1,"b":2}"#,
        "var s = 0; foreach (e : msg) { s += e.value; } s",
        "3",
    );
    gives("var x = 3; while (x > 0) { x--; } x", "0");
    gives("var x = 3; until (x == 0) { x--; } x", "0");
    gives("var x = 0; do { x++; } while (x < 3); x", "3");
    gives("var x = 0; do { x++; } until (x >= 3); x", "3");
    gives(
        "switch ('203') { case 'test': return 1; case 203: return 2; default: return 3; }",
        "2",
    );
    gives(
        "var r = 0; switch (1.0) { case 1: r += 1; case 2: r += 2; break; case 3: r += 4; } r",
        "3",
    );
    gives("m = {a: 1}; change(m); function change(m) { m.a += 1; } m.a", "2");
    gives("function twice(a) { a * 2 } twice(21)", "42");
    gives(
        "function fact(n) { return n <= 1 ? 1 : n * fact(n - 1); } fact(10)",
        "3628800",
    );
    gives(
        "var sum = sum([1, 2]); function sum(l) { return l[0] + l[1]; } sum",
        "3",
    );
    gives("var m = 1; function set() { m = 5; } set(); m", "5");
    gives("var a = 1, b = 2; int c = 3; String s; a + b + c", "6");
    gives("/* c */ var m = { // x\n  a: 1, /* y */ }; m", r#"{"a":1}"#);
    gives("var a = 1\nvar b = 2\na + b", "3");
    gives("return", "null");
    gives("", "null");
}

#[test]
fn collections() {
    gives(
        "[{5}, {1, 2}, [1, [2]], {}, [:], ['a': 1], {\"k\": {b: 2}}]",
        r#"[[5],[1,2],[1,[2]],{},{},{"a":1},{"k":{"b":2}}]"#,
    );
    gives("var a = new int[3]; a[1] = 7; a", "[0,7,0]");
    gives("var a = new double[2]; a", "[0.0,0.0]");
    gives("new byte[]{(byte) 0xFF, 2}", "[-1,2]");
    fails("var a = new int[3];\na[3] = 4;", "(line 2)");
    gives("new HashMap() == {} && new java.util.ArrayList() == []", "true");
    gives(
        "var m = {}; m.a = 1; m['b'] = 2; m.put('c', 3); m.c++; m['a'] += 10; m",
        r#"{"a":11,"b":2,"c":4}"#,
    );
    gives(
        "var m = {a: 1, b: null}; m.a = null; [m.size(), m.containsKey('a'), m]",
        "[0,false,{}]",
    );
    gives(
        "var m = {b: 2, a: 1}; m.sortByKey(); [m, m.keys(), m.values(), m.keySet(), m.get('a'), m.remove('a'), m.isEmpty()]",
        r#"[{"b":2},["a","b"],[1,2],["a","b"],1,1,false]"#,
    );
    gives(
        "var m = {i: 4}; [m.put('i', 5), m.putIfAbsent('i', 6), m.replace('i', 9, 1), m.replace('i', 5, 7), m]",
        r#"[4,5,false,true,{"i":7}]"#,
    );
    gives(
        "var l = ['A', 'B', 'C', 'B']; l.add(1, 'x'); l.addAll([4]); l.remove(0); l.remove('C'); l.unshift('q'); \
        [l, l.size(), l.size, l.length, l.indexOf('B'), l.lastIndexOf('B'), l.contains(4), l.pop(), l.shift(), l.set(0, 'y'), l.get(0)]",
        r#"[["y","B","B"],5,5,5,2,3,true,4,"q","x","y"]"#,
    );
    gives(
        "var l = [2096, '98', 5, '65']; l.sort(); var a = l.clone(); l.sort(false); [a, l, l.toSorted(), ['b', 'a'].toSorted()]",
        r#"[[5,"65","98",2096],[2096,"98","65",5],[5,"65","98",2096],["a","b"]]"#,
    );
    gives(
        "var l = [67, 2, 2, 2]; [l.slice(3), l.slice(0, 2), l.with(1, 69), l.concat(['x']), l.join(), l.toSpliced(1, 0, 'F'), \
        l.toSpliced(2, 2), l.toReversed(), l.fill(7, 1, 3), l.splice(1, 2), l]",
        r#"[[2],[67,2],[67,69,2,2,2],[67,2,2,2,"x"],"67,2,2,2",[67,"F",2,2,2],[67,2],[2,2,2,67],[67,2],[7,7],[67,2]]"#,
    );
    gives("[1] + 2 + [3]", "[1,2,3]");
    fails("var u = [1].toUnmodifiable(); u.add(2)", "List is unmodifiable");
    fails(
        "var u = {a: 1}.toUnmodifiable(); u.put('b', 2)",
        "Map is unmodifiable",
    );
    fails("[1].get(5)", "Index 5 out of bounds for length 1");
    gives("'' + {a: 1, b: [1.0, null, 'x']}", "\"{a=1, b=[1.0, null, x]}\"");
    gives("\"The text: \" + msg.none + true + 1", "\"The text: nulltrue1\"");
}

#[test]
fn errors_name_the_line_of_the_source() {
    let fail = |body: &str| Script::new(ScriptLang::Tbel, support::PARAMS, body).unwrap_err();
    assert_eq!(
        fail("var a = 1;\nvar b = [1, 2;").to_string(),
        "line 2, column 9: unbalanced braces [ ... ]"
    );
    assert_eq!(
        fail("if (true) {\n a").to_string(),
        "line 1, column 11: unbalanced braces: the block is not closed"
    );
    assert_eq!(
        fail("a b").to_string(),
        "line 1, column 3: unterminated statement: expected ';' before \"b\""
    );
    assert_eq!(
        fail("x = 'abc").to_string(),
        "line 1, column 5: the text has no end"
    );
    assert_eq!(
        fail("import java.util.HashMap;").to_string(),
        "line 1, column 1: import is forbidden"
    );
    assert_eq!(
        fail("case 1: 2").to_string(),
        "line 1, column 1: case without switch"
    );
    assert_eq!(
        fail("1 = 2").to_string(),
        "line 1, column 1: this cannot be assigned to"
    );
    assert_eq!(fail("x = 99999999999999999999").line, 1);
    fails("var a = 1;\n\nvar b = msg.x.y;", "(line 3)");
    fails("return {\n  a: 1,\n  b: msg.x.y\n};", "(line 3)");
    fails("function f(x) {\n  return x.y.z;\n}\nf({});", "(line 2)");
    fails("System.exit(1)", "unresolvable property or identifier: System");
    fails("nothing(1)", "function not found: nothing");
    fails("msg.foo()", "unable to resolve method");
    fails("new StringBuilder()", "could not resolve class: StringBuilder");
}

#[test]
fn scripts_of_the_greatest_length_are_translated_in_one_go() {
    let most = fieldline_script::MAX_BODY;
    let names = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>();
    for body in [
        "a;".repeat(most / 2),
        "[a,".repeat(most / 3),
        format!("x is a{}", ".a".repeat(most / 2 - 10)),
        format!("def f({}) {{ 1 }}", names(7_000).join(",")),
        format!(
            "def f({}) {{ {} }}",
            names(3_500).join(","),
            names(3_000).join("=1;")
        ),
        format!("return \"{}\";", "é".repeat(most / 2)),
        "(".repeat(most),
        "a?b:".repeat(most / 4),
        "/*".repeat(most / 2),
        "'".repeat(most),
    ] {
        // Whether it is a script or not.
        let _ = Script::new(ScriptLang::Tbel, &["a"], &body);
    }
}

#[test]
fn places_of_mistakes_are_counted_in_characters_of_their_line() {
    for (body, place) in [
        ("é = 1; \u{20ac}", (1, 8)),
        ("var a = 1;\n  é = 'x'; §", (2, 12)),
        ("/* é\n é */ §", (2, 7)),
    ] {
        let error = Script::new(ScriptLang::Tbel, &[], body).unwrap_err();
        assert_eq!((error.line, error.column), place, "{body}: {error}");
    }
}
