//! Every helper of TBEL, with the examples that its documentation gives.

mod support;

use support::{fails, gives, gives_with};

const POLYGON: &str = "[[[37.7810,-122.4210],[37.7890,-122.3900],[37.7700,-122.3800],[37.7600,-122.4000],\
    [37.7700,-122.4250],[37.7810,-122.4210]],[[37.7730,-122.4050],[37.7700,-122.3950],[37.7670,-122.3980],\
    [37.7690,-122.4100],[37.7730,-122.4050]]]";

#[test]
fn texts_and_bytes() {
    gives("btoa('Hello, world')", "\"SGVsbG8sIHdvcmxk\"");
    gives("atob('SGVsbG8sIHdvcmxk')", "\"Hello, world\"");
    gives("bytesToString([0x48,0x45,0x4C,0x4C,0x4F])", "\"HELLO\"");
    gives("decodeToString([72, 105])", "\"Hi\"");
    gives("stringToBytes('hé')", "[104,-61,-87]");
    gives("stringToBytes('hé', 'ISO-8859-1')", "[104,-23]");
    gives("bytesToString(stringToBytes('Київ €😀'))", "\"Київ €😀\"");
    fails("stringToBytes(5)", "Expected 'String'");
    gives(
        "decodeToJson(stringToBytes(atob('eyJoZWxsbyI6ICJ3b3JsZCJ9')))",
        r#"{"hello":"world"}"#,
    );
    gives("bytesToHex([0xBB, 0xAA]) + bytesToHex([-69, 83])", "\"BBAABB53\"");
    gives("hexToBytes('0x01752B')", "[1,117,43]");
    gives(
        "isArray(hexToBytesArray('AABBCCDDEE')) ? hexToBytesArray('AABB') : 0",
        "[-86,-69]",
    );
    fails("hexToBytes('ABC')", "even-length");
    gives("printUnsignedBytes(hexToBytes('D8FF'))", "[216,255]");
    gives("bytesToExecutionArrayList([0xAA, 0xBB])", "[-86,-69]");
    fails("bytesToHex([256])", "8 bits");
    gives("base64ToHex('Kkk=') + hexToBase64('2A49')", "\"2A49Kkk=\"");
    gives(
        "[bytesToBase64([42, 73]), base64ToBytes('Kkk='), base64ToBytesList('AQIDBAU=')]",
        r#"["Kkk=",[42,73],[1,2,3,4,5]]"#,
    );
    gives(
        "padStart('010011', 8, '0') + padStart('1001010011', 8, '0') + padEnd('20', 4, '*')",
        "\"00010011100101001120**\"",
    );
    gives(
        "encodeURI('http://example.ж д/?a=Київ 1&b=+')",
        "\"http://example.%D0%B6%20%D0%B4/?a=%D0%9A%D0%B8%D1%97%D0%B2%201&b=+\"",
    );
    gives(
        "decodeURI('http://example.%D0%B6%20%D0%B4/?a=%20')",
        "\"http://example.ж д/?a= \"",
    );
    fails(
        "raiseError('frequency must be 0, 1 or 2.')",
        "frequency must be 0, 1 or 2.",
    );
}

#[test]
fn numbers_in_texts() {
    gives(
        "[parseInt('0'), parseInt('473'), parseInt('+42'), parseInt('-0', 10), parseInt('-0xFF'), \
        parseInt('-FF', 16), parseInt('1100110', 2), parseInt('-2147483648', 10), parseInt('Kona', 27)]",
        "[0,473,42,0,-255,-255,102,-2147483648,411787]",
    );
    let minus_102 = format!("{}10011010", "1".repeat(56));
    gives(
        &format!(
            "[parseInt('{minus_102}', 2), parseLong('{minus_102}', 2), parseInt('{minus_102}'.substring(32), 2)]"
        ),
        "[-102,-102,-102]",
    );
    gives(&format!("parseInt('{}1100110', 2)", "0".repeat(57)), "102");
    fails(&format!("parseInt('0{}', 2)", "1".repeat(32)), "For input string");
    fails(
        &format!("parseInt('10{}', 2)", "1".repeat(31)),
        "For input string",
    );
    fails("parseInt('2147483648', 10)", "For input string: \"2147483648\"");
    fails("parseInt('99', 8)", "Failed radix [8] for value: \"99\"");
    gives("parseInt('')", "null");
    gives(
        "[parseLong('473'), parseLong('-FFFF', 16), parseLong('777777777777777777777', 8), \
        parseLong('KonaLong', 27), parseLong('-9223372036854775808', 10)]",
        "[473,-65535,9223372036854775807,218840926543,-9223372036854775808]",
    );
    fails("parseLong('9223372036854775808', 10)", "For input string");
    fails("parseLong('FFFFFFFFF', 16)", "must be of even length");
    gives(
        "[parseFloat('4.2'), parseDouble('4.2'), parseDouble('5')]",
        "[4.2,4.2,5.0]",
    );
    gives(
        "[parseHexToInt('BBAA'), parseHexToInt('AABB', false), parseBigEndianHexToInt('BBAA'), \
        parseLittleEndianHexToInt('AABB')]",
        "[48042,48042,48042,48042]",
    );
    gives(
        "[parseHexToLong('00BBAA'), parseLittleEndianHexToLong('AABB'), parseBigEndianHexToLong('BBAA')]",
        "[48042,48042,48042]",
    );
    gives(
        "[parseHexToFloat('41EA62CC'), parseHexToFloat('CC62EA41', false), \
        parseLittleEndianHexToFloat('CC62EA41'), parseBigEndianHexToFloat('41EA62CC')]",
        "[29.29824,29.29824,29.29824,29.29824]",
    );
    gives(
        "[parseHexIntLongToFloat('0x0A', true), parseHexIntLongToFloat('0x0A0A00', false)]",
        "[10.0,2570.0]",
    );
    gives(
        "[parseHexToDouble('409B04B10CB295EA'), parseLittleEndianHexToDouble('EA95B20CB1049B40'), \
        parseBigEndianHexToDouble('409B04B10CB295EA')]",
        "[1729.1729,1729.1729,1729.1729]",
    );
    gives(
        "[isBinary('1100110'), isBinary('2'), isOctal('4567734'), isOctal('8'), isDecimal('4567039'), \
        isDecimal('C1'), isHexadecimal('F5D7039'), isHexadecimal('K1')]",
        "[2,-1,8,-1,10,-1,16,-1]",
    );
    gives("[isNaN(0.0 / 0.0), isNaN(1.0)]", "[true,false]");
    gives(
        "[toFixed(0.345, 1), toFixed(0.345, 2), toFixed(-1.005, 2), toFixed(3, 1)]",
        "[0.3,0.35,-1.01,3.0]",
    );
    gives("[toInt(0.3), toInt(0.5), toInt(2.7), toInt(-2.5)]", "[0,1,3,-3]");
}

#[test]
fn numbers_as_texts() {
    gives(
        "[intToHex(0x7FFFFFFF, true, true), intToHex(171, true, false), intToHex(0xABCDEF, false, true, 4), \
        intToHex(0xABCD, false, false, 2)]",
        r#"["0x7FFFFFFF","AB","0xCDAB","AB"]"#,
    );
    gives(
        "[longToHex(9223372036854775807, true, true), longToHex(0x7A12BCD3, true, true, 4), \
        longToHex(0x7A12BCD3, false, false, 4)]",
        r#"["0x7FFFFFFFFFFFFFFF","0xBCD3","127A"]"#,
    );
    gives(
        "[floatToHex(123456789.00), floatToHex(123456789.00, false), doubleToHex(1729.1729d), \
        doubleToHex(1729.1729d, false)]",
        r#"["0x4CEB79A3","0xA379EB4C","0x409B04B10CB295EA","0xEA95B20CB1049B40"]"#,
    );
    gives(
        "[intLongToRadixString(58, 2), intLongToRadixString(13158, 8), intLongToRadixString(-13158, 8), \
        intLongToRadixString(-13158, 10), intLongToRadixString(13158, 16), intLongToRadixString(-13158, 16, true, true)]",
        r#"["00111010","31546","1777777777777777746232","-13158","3366","0xFFCC9A"]"#,
    );
    gives(
        "intLongToRadixString(9223372036854775807, 16)",
        "\"7FFFFFFFFFFFFFFF\"",
    );
}

#[test]
fn numbers_in_bytes() {
    gives(
        "var b = [0xAA, 0xBB, 0xCC, 0xDD]; [parseBytesToInt(b), parseBytesToInt(b, 0, 3), \
        parseBytesToInt(b, 0, 3, false), parseBytesToUnsignedInt(b)]",
        "[-1430532899,11189196,13417386,2864434397]",
    );
    gives(
        "parseBytesToLong([64, -101, 4, -79, 12, -78, -107, -22], 0, 8)",
        "4655319798286292458",
    );
    gives(
        "var b = [0x41, 0xEA, 0x62, 0xCC]; [parseBytesToFloat(b), parseBytesToFloat(b, 0, 4, true)]",
        "[29.29824,29.29824]",
    );
    fails("parseBytesToFloat([0x7F, 0xC0, 0, 0])", "Not-a-Number");
    gives(
        "parseBytesToDouble(hexToBytes('409B04B10CB295EA'), 0)",
        "1729.1729",
    );
    gives(
        "[parseBytesIntToFloat([0, 0, 0, 10], 3, 1, true), parseBytesIntToFloat([0, 0, 0, 10], 0, 4, false)]",
        "[10.0,167772160.0]",
    );
    gives(
        "parseBytesLongToDouble(hexToBytes('0x32D009423F23B300'), 0, 8, false) / 1e15",
        "50.42277542905861",
    );
    fails(
        "parseBytesToInt([1, 2], 1, 4)",
        "out of bounds for array with length: 2",
    );
    fails("parseBytesToInt([1, 2, 3, 4, 5], 0, 5)", "Maximum 4 bytes");
    gives(
        "[parseByteToBinaryArray(0x39), parseByteToBinaryArray(0x39, 6, false)]",
        "[[0,0,1,1,1,0,0,1],[1,0,0,1,1,1]]",
    );
    gives(
        "parseBytesToBinaryArray([0xCE, 0xB2], 14)",
        "[0,0,1,1,1,0,1,0,1,1,0,0,1,0]",
    );
    gives(
        "parseLongToBinaryArray(52914L, 16)",
        "[1,1,0,0,1,1,1,0,1,0,1,1,0,0,1,0]",
    );
    gives(
        "[parseBinaryArrayToInt([1, 0, 0, 1, 1, 1, 1, 1]), parseBinaryArrayToInt([1, 0, 0, 1, 1, 1, 1, 1], 1, 7)]",
        "[-97,31]",
    );
}

#[test]
fn kinds_of_collections() {
    gives(
        "[isMap(msg), isList([1]), isArray(new int[3]), isSet(newSet()), isList(new int[3]), isMap([])]",
        "[true,true,true,true,false,false]",
    );
    gives(
        "var s = toSet(['B', 'A', 'C', 'A']); s.add(35); [s, s.size(), s.contains('A'), s.add(35), s.remove('B'), s]",
        r#"[["A","C",35],4,true,false,true,["A","C",35]]"#,
    );
    gives(
        "toSet(['C', 34567, 'hello', 34]).toSorted()",
        r#"[34,34567,"C","hello"]"#,
    );
    let map = r#"{"key1":"v","key3":{"key6":[{"key7":7},"s",56],"key1":"w"}}"#;
    gives_with(
        map,
        "toFlatMap(msg)",
        r#"{"key1":"v","key3.key6.0.key7":7,"key3.key6.1":"s","key3.key6.2":56,"key3.key1":"w"}"#,
    );
    gives_with(
        map,
        "toFlatMap(msg, false)",
        r#"{"key1":"w","key7":7,"key6.1":"s","key6.2":56}"#,
    );
    gives_with(
        map,
        "toFlatMap(msg, ['key1'], false)",
        r#"{"key7":7,"key6.1":"s","key6.2":56}"#,
    );
}

#[test]
fn places() {
    gives(
        &format!(
            "[isInsidePolygon(37.8000, -122.4300, \"{POLYGON}\"), isInsidePolygon(37.7725, -122.4010, \
        \"{POLYGON}\"), isInsidePolygon(37.7700, -122.4030, \"{POLYGON}\")]"
        ),
        "[false,true,false]",
    );
    gives(
        "var c = \"{\\\"latitude\\\":37.7749,\\\"longitude\\\":-122.4194,\\\"radius\\\":3000,\\\"radiusUnit\\\":\\\"METER\\\"}\"; \
        [isInsideCircle(37.8044, -122.2712, c), isInsideCircle(37.7599, -122.4148, c)]",
        "[false,true]",
    );
}

#[test]
fn classes_of_java() {
    gives(
        "[Integer.toString(0x1A, 16), Integer.toString(-255, 2), Integer.parseInt('12'), Integer.valueOf('7')]",
        r#"["1a","-11111111",12,7]"#,
    );
    gives(
        "[Integer.MAX_VALUE, Long.MAX_VALUE, Integer.toHexString(-1), Integer.bitCount(255)]",
        r#"[2147483647,9223372036854775807,"ffffffff",8]"#,
    );
    gives(
        "[Long.toString(9223372036854775807, 16), Long.valueOf('5'), Long.parseLong('-9')]",
        r#"["7fffffffffffffff",5,-9]"#,
    );
    gives(
        "[Float.toHexString(7823764.8374), Double.toHexString(99993219.156013e-002)]",
        r#"["0x1.dd8654p22","0x1.e83f862142b5bp19"]"#,
    );
    gives(
        "[Double.parseDouble('1e3'), Double.isNaN(0.0 / 0.0), Boolean.parseBoolean('TRUE'), Byte.toUnsignedInt(-1)]",
        "[1000.0,true,true,255]",
    );
    gives(
        "String.format('%.8f|%5d|%-5s|%05d|%x|%,d|%s', 999932.19156013, 42, 'ab', 7, 255, 1234567, 5.0)",
        "\"999932.19156013|   42|ab   |00007|ff|1,234,567|5.0\"",
    );
    gives(
        "[Math.sqrt(4), Math.abs(-3), Math.max(1, 2), Math.max(1, 2.0), Math.round(2.5), Math.floor(2.7), Math.pow(2, 3)]",
        "[2.0,3,2,2.0,3,2.0,8.0]",
    );
    gives(
        "[Character.isDigit('5'), String.valueOf(5.0), String.join('-', ['a', 'b'])]",
        r#"[true,"5.0","a-b"]"#,
    );
    gives(
        "var r = new Random(42); [r.nextInt(100), r.nextInt(100)]",
        "[30,63]",
    );
    fails("Integer.parseInt('x')", "For input string: \"x\"");
    fails("new java.io.File('x')", "could not resolve class: java.io.File");
}

#[test]
fn json() {
    gives(
        "JSON.stringify({a: 1.0, b: [1, null], c: 'x\"y', d: 5})",
        r#""{\"a\":1.0,\"b\":[1,null],\"c\":\"x\\\"y\",\"d\":5}""#,
    );
    gives(
        r#"JSON.parse('{"a": 1.0, "b": null, "c": [null, 5], "l": 9007199254740993}')"#,
        r#"{"a":1.0,"c":[null,5],"l":9007199254740993}"#,
    );
    fails("JSON.parse('{')", "not valid JSON");
}

#[test]
fn texts_have_the_methods_of_java() {
    gives(
        "['abc'.length(), 'abc'.charAt(1), 'abc'.substring(1), 'abc'.substring(0, 2), 'abc'.indexOf('c')]",
        r#"[3,"b","bc","ab",2]"#,
    );
    gives(
        "['abc'.contains('bc'), 'abc'.startsWith('ab'), 'abc'.endsWith('x'), 'a'.equals('a'), 'A'.equalsIgnoreCase('a')]",
        "[true,true,false,true,true]",
    );
    gives(
        "['a.b.a'.replace('a', 'x'), 'a1b2'.replaceAll('[0-9]', '#'), 'a1b2'.replaceFirst('([a-z])', '$1$1')]",
        r##"["x.b.x","a#b#","aa1b2"]"##,
    );
    gives(
        "['a,b,,'.split(','), 'a,b,c'.split(',', 2), 'a b'.split(' ')[1]]",
        r#"[["a","b"],["a","b,c"],"b"]"#,
    );
    gives(
        "[' a '.trim(), 'ab'.toUpperCase(), 'AB'.toLowerCase(), ''.isEmpty(), 'a1'.matches('[a-z][0-9]'), 'ab'.repeat(2)]",
        r#"["a","AB","ab",true,true,"abab"]"#,
    );
    gives(
        "['hi'.getBytes(), 'hi'.hashCode(), 'b'.compareTo('a'), 'a'.concat('b'), 5.toString(), 'abc'.toCharArray()]",
        r#"[[104,105],3329,1,"ab","5",["a","b","c"]]"#,
    );
    fails("'abc'.charAt(5)", "index 5, length 3");
    fails("'abc'.repeat(100000000)", "Max string length overflow");
}

#[test]
fn dates() {
    gives(
        "var d = new Date('2024-01-01T10:00:00.00Z'); d.addYears(1); d.addMonths(-13); d.addDays(45); d.addNanos(999999); \
        d.toISOString()",
        "\"2024-01-15T10:00:00.000999999Z\"",
    );
    gives(
        "[new Date('2023-08-06T04:04:05.00-04').toISOString(), new Date('2023-08-06T04:04:05.00+02:00').toISOString(), \
        new Date('Tue, 3 Jun 2008 11:05:30 +043056').toISOString()]",
        r#"["2023-08-06T08:04:05Z","2023-08-06T02:04:05Z","2008-06-03T06:34:34Z"]"#,
    );
    gives(
        "[new Date('2023-08-06 04:04:05.000-04:00', 'yyyy-MM-dd HH:mm:ss.SSSXXX').toISOString(), \
        new Date('12:15:30 PM, So. 10/09/2022', 'hh:mm:ss a, EEE M/d/uuuu', 'de').toISOString()]",
        r#"["2023-08-06T08:04:05Z","2022-10-09T12:15:30Z"]"#,
    );
    gives(
        "var d = new Date(2023, 8, 6, 4, 4, 5, 'America/New_York'); [d.toISOString(), d.toLocaleString(), \
        d.toLocaleString('de', 'Europe/Berlin'), d.toLocaleString('en-US', JSON.stringify({timeZone: 'Europe/Berlin', pattern: 'M-d/yyyy, h:mm=ss a'}))]",
        r#"["2023-08-06T08:04:05Z","2023-08-06 08:04:05","06.08.23, 10:04:05","8-6/2023, 10:04=05 AM"]"#,
    );
    gives(
        "var d = new Date(1691294645123); [d.getTime(), d.getFullYear(), d.getMonth(), d.getDate(), d.getDay(), d.getHours(), \
        d.getMinutes(), d.getSeconds(), d.getMilliseconds(), d.getUTCMonth()]",
        "[1691294645123,2023,8,6,7,4,4,5,123,8]",
    );
    gives(
        "var d = new Date('2023-08-31T00:00:00Z'); d.setMonth(2); d.setHours(5, 6); d.toISOString()",
        "\"2023-03-03T05:06:00Z\"",
    );
    gives(
        "[Date.UTC(2023, 8, 6), Date.parse('2023-08-06T00:00:00Z'), Date.parse('nonsense'), Date.now() > 1700000000000]",
        "[1691280000000,1691280000000,-1,true]",
    );
    gives(
        "new Date('2023-08-06T04:04:05Z')",
        "\"Sunday, August 6, 2023 at 4:04:05\u{202f}AM Coordinated Universal Time\"",
    );
    fails("new Date('x')", "Cannot parse value [x] as instant");
    fails("new Date(2023, 13, 1)", "MonthOfYear");
}
