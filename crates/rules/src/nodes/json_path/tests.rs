//! Paths over one document.

use serde_json::{Value, json};

use super::*;

fn document() -> Value {
    json!({
        "store": {
            "book": [
                {"category": "reference", "title": "A", "price": 8.95, "tags": ["x", "y"]},
                {"category": "fiction", "title": "B", "price": 12.99, "isbn": "1", "tags": []},
                {"category": "fiction", "title": "C", "price": 22, "isbn": "2"},
            ],
            "bicycle": {"color": "red", "price": 19.95},
        },
        "max": 10,
        "null": null,
        "odd name": {"it's": 1},
        "numbers": [1, 2, 3.5],
    })
}

fn read(path: &str) -> Result<Value, String> {
    JsonPath::new(path)
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .read(&document())
}

#[test]
fn a_path_to_one_place_gives_its_value() {
    for (path, expected) in [
        ("$", document()),
        ("$.max", json!(10)),
        ("max", json!(10)),
        ("$.null", json!(null)),
        ("$.store.book[0].title", json!("A")),
        ("$['store']['bicycle'][\"color\"]", json!("red")),
        ("$['odd name']['it\\'s']", json!(1)),
        ("$.store.book[-1].title", json!("C")),
        (
            "$.store.bicycle['color','price','none']",
            json!({"color": "red", "price": 19.95}),
        ),
    ] {
        assert_eq!(read(path), Ok(expected), "{path}");
    }
    for path in [
        "$.none",
        "$.max.x",
        "$.store.book[3]",
        "$.null.x",
        "$.numbers.x",
        "$.max[0]",
        "$.none[*]",
        "$.none..x",
    ] {
        assert!(read(path).is_err(), "{path}");
    }
}

#[test]
fn a_path_with_a_choice_gives_all_that_it_finds() {
    for (path, expected) in [
        ("$.store.book[*].title", json!(["A", "B", "C"])),
        ("$.store.book[*].isbn", json!(["1", "2"])),
        ("$..title", json!(["A", "B", "C"])),
        ("$..price", json!([8.95, 12.99, 22, 19.95])),
        ("$.store..price", json!([8.95, 12.99, 22, 19.95])),
        ("$..none", json!([])),
        ("$.numbers[0,2]", json!([1, 3.5])),
        ("$.numbers[1:]", json!([2, 3.5])),
        ("$.numbers[:-1]", json!([1, 2])),
        ("$.numbers[-2:]", json!([2, 3.5])),
        ("$.numbers[5:9]", json!([])),
        ("$.store.bicycle.*", json!(["red", 19.95])),
        ("$.max[*]", json!([])),
        ("$..book[0].title", json!(["A"])),
        (
            "$.store.book[*]['title','isbn']",
            json!(["A", "B", "1", "C", "2"]),
        ),
        ("$..[1].title", json!(["B"])),
    ] {
        assert_eq!(read(path), Ok(expected), "{path}");
    }
}

#[test]
fn filters_choose() {
    for (filter, expected) in [
        ("@.price > 10", "BC"),
        ("@.price <= 12.99", "AB"),
        ("@.price < $.max", "A"),
        ("@.isbn", "BC"),
        ("!@.isbn", "A"),
        ("@['category'] == 'fiction' && @.price > 20", "C"),
        (
            "@.category == \"reference\" || (@.price > 20 && @.isbn != '1')",
            "AC",
        ),
        ("@.isbn != '1'", "AC"),
        ("@.price == 22.0", "C"),
        ("@.title =~ /[ab]/i", "AB"),
        ("@.category =~ /fic/", ""),
        ("@.title in ['A','C']", "AC"),
        ("@.title nin [\"A\"]", "BC"),
        ("@.tags contains 'x'", "A"),
        ("@.title contains 'B'", "B"),
        ("@.tags size 2", "A"),
        ("@.tags empty true", "B"),
        ("@.tags anyof ['x']", "A"),
        ("@.tags subsetof ['x','y','z']", "AB"),
        ("@.tags noneof ['x']", "B"),
        ("@.tags all ['x','y']", "A"),
        ("@.tags.length() == 2", "A"),
        ("@.title > 5", ""),
    ] {
        let path = format!("$.store.book[?({filter})].title");
        let titles: String = read(&path)
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(titles, expected, "{filter}");
    }
    assert_eq!(read("$..[?(@.price > 19)].price"), Ok(json!([22, 19.95])));
    assert_eq!(
        read("$.store.bicycle[?(@.color == 'red')].price"),
        Ok(json!([19.95]))
    );
    assert_eq!(read("$.numbers[?(@ >= 2)]"), Ok(json!([2, 3.5])));
}

#[test]
fn functions_end_a_path() {
    for (path, expected) in [
        ("$.numbers.length()", json!(3)),
        ("$.store.book.size()", json!(3)),
        ("$.numbers.sum()", json!(6.5)),
        ("$.numbers.min()", json!(1.0)),
        ("$.numbers.max()", json!(3.5)),
        ("$..price.max()", json!(22.0)),
        ("$.store.bicycle.keys()", json!(["color", "price"])),
        ("$.numbers.first()", json!(1)),
        ("$.numbers.last()", json!(3.5)),
        ("$.numbers.index(-2)", json!(2)),
        ("$.store.book[?(@.price > 100)].price.avg()", json!(null)),
    ] {
        assert_eq!(read(path), Ok(expected), "{path}");
    }
}

#[test]
fn what_is_no_path_is_refused_with_its_place() {
    for path in [
        "",
        "$.",
        "$[",
        "$['a]",
        "$[?(@.a == )]",
        "$[?(@.a == 1]",
        "$.a b",
        "$[a]",
        "$x",
        "$.a.f()",
        "$[?]",
        "$[99999999999999999999]",
        "$[?(@.a =~ /(/)]",
    ] {
        assert!(JsonPath::new(path).is_err(), "{path}");
    }
    assert!(JsonPath::new("$.ab[x]").unwrap_err().contains("character 6"));
    let deep = format!("$[?({}1{})]", "(".repeat(1000), ")".repeat(1000));
    assert!(JsonPath::new(&deep).is_err());
    let long = |bytes: usize| JsonPath::new(&format!("$.{}", "a".repeat(bytes - 2)));
    assert!(long(10_000).is_ok());
    assert_eq!(long(10_001).unwrap_err(), "the path is longer than 10000 bytes");
}

#[test]
fn a_path_finds_only_so_many_values() {
    let path = JsonPath::new("$..a").unwrap();
    let body = |count: usize| Value::Array(vec![json!([]); count]);
    assert_eq!(path.read(&body(100_000)), Ok(json!([])));
    assert_eq!(
        path.read(&body(100_002)).unwrap_err(),
        "the path finds more than 100000 values"
    );
}
