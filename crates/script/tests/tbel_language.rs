//! What TBEL scripts mean.

mod support;

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
    gives("int i = 5.7; i", "5");
    gives("double d = 5; d", "5.0");
    gives("long l = 3; l + 1", "4");
    gives("(int) 7.9", "7");
    gives("(double) 7", "7.0");
    gives("0x1F", "31");
    gives("010", "8");
    gives("2 ** 10", "1024");
    gives("99993219.156013e-002", "999932.19156013");
    gives_with(r#"{"a":25.0,"b":25,"c":9007199254740993}"#, "msg", r#"{"a":25.0,"b":25,"c":9007199254740993}"#);
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
    gives("[] == empty && '' == empty && msg.none == empty && 1 != empty", "true");
}

#[test]
fn operators_beyond_javascript() {
    gives("'abc' contains 'b' && [1, 2] contains 2 && {a: 1} contains 'a'", "true");
    gives("'foo' is String && 1 instanceof Integer && [] is List && {} is Map && 1.0 is Double", "true");
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
