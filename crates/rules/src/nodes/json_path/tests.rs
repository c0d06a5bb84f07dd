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

fn compile(path: &str) -> Result<JsonPath, String> {
    JsonPath::new(path, &RegexAllowance::default())
}

fn read_from(path: &str, document: &Value) -> Result<Value, JsonPathError> {
    compile(path)
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .read(document, &mut EvaluationBudget::new())
}

fn read(path: &str) -> Result<Value, JsonPathError> {
    read_from(path, &document())
}

fn overrun(path: &str, document: &Value) -> BudgetOverrun {
    match read_from(path, document) {
        Err(JsonPathError::Overrun(overrun)) => overrun,
        other => panic!("{path}: {:?}", other.map(|value| value.to_string().len())),
    }
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
        assert!(compile(path).is_err(), "{path}");
    }
    assert!(compile("$.ab[x]").unwrap_err().contains("character 6"));
    let deep = format!("$[?({}1{})]", "(".repeat(1000), ")".repeat(1000));
    assert!(compile(&deep).is_err());
    let long = |bytes: usize| compile(&format!("$.{}", "a".repeat(bytes - 2)));
    assert!(long(10_000).is_ok());
    assert_eq!(long(10_001).unwrap_err(), "the path is longer than 10000 bytes");
}

#[test]
fn a_path_finds_only_so_many_values() {
    // The list itself is one of them.
    let body = |count: usize| Value::Array(vec![json!([]); count - 1]);
    assert_eq!(read_from("$..a", &body(100_000)), Ok(json!([])));
    let refused = overrun("$..a", &body(100_001));
    assert_eq!(
        refused.to_string(),
        "beyond the limit of values that a path finds: 100001, allowed are 100000"
    );
}

#[test]
fn filters_that_start_anew_at_the_root_share_their_steps() {
    let body = json!({"x": vec![json!({}); 1000]});
    for path in [
        "$..[?($..[?($..[?($..[?(@.x)])])])]",
        "$..[?($..[?($..[?(@ == $..x)])])]",
        "$.x[?($.x[?($.x[?($.x.length() > 5000)])])]",
        "$.x[?(!$.x[?(!$.x[?(@.a || @.b || @.c)])])]",
    ] {
        let refused = overrun(path, &body);
        assert_eq!(
            (refused.limit, refused.allowed),
            ("steps of an evaluation", 1_000_000),
            "{path}"
        );
    }
    let flat =
        json!({"limit": 5, "x": (0..10_000).map(|v| json!({"v": v, "name": "n"})).collect::<Vec<_>>()});
    let found = read_from("$.x[?(@.v < $.limit && @.name == 'n')].v", &flat);
    assert_eq!(found, Ok(json!([0, 1, 2, 3, 4])));
    let listed = json!({"ids": vec![7; 20], "x": vec![json!({"id": 7}); 5_000]});
    let found = read_from("$.x[?(@.id in $.ids[*])].length()", &listed);
    assert_eq!(found, Ok(json!(5_000)), "what is compared is not kept");
}

#[test]
fn what_is_found_again_counts_again() {
    let zeros = vec!["0"; 150].join(",");
    let path = format!("$.a[{zeros}][{zeros}]");
    let body = json!({"a": [["x".repeat(100_000)]]});
    let refused = overrun(&path, &body);
    assert_eq!(refused.limit, "bytes that an evaluation makes");
    assert!(
        (4 << 20..4 << 20 | 1 << 19).contains(&refused.figure),
        "nothing is made beyond: {refused}"
    );
    let names = vec!["'a'"; 150].join(",");
    for path in [
        format!("$[{names}]"),
        format!("$[?($.a[{zeros}][{zeros}] == 1)]"),
        format!("$.a[{zeros}][{zeros}].length()"),
    ] {
        match read_from(&path, &body) {
            Ok(value) => assert!(value.to_string().len() < 200_000, "one field of the name"),
            Err(error) => assert!(matches!(error, JsonPathError::Overrun(_)), "{error}"),
        }
    }
}

#[test]
fn parts_of_a_large_document_are_no_more_than_the_document() {
    let body = json!({"a": vec![json!("x".repeat(1 << 20)); 8]});
    for path in ["$.a", "$.a[*]", "$..a", "$.a[0]"] {
        assert!(read_from(path, &body).is_ok(), "{path}");
    }
    let twice = "$.a[0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7]";
    assert_eq!(overrun(twice, &body).limit, "bytes that an evaluation makes");
}

#[test]
fn a_path_has_so_many_selectors_and_no_more() {
    let zeros = |count: usize| format!("$[{}]", vec!["0"; count].join(","));
    assert!(compile(&zeros(1_000)).is_ok());
    let refused = compile(&zeros(1_001)).unwrap_err();
    assert!(refused.contains("more than 1000 selectors"), "{refused}");
    assert!(compile(&format!("${}", ".a".repeat(1_001))).is_err());
}
