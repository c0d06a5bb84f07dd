//! Checks that every linked crate has an allowed licence and is in the list that the program prints.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licences allowed for linked crates.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];
/// Crates of which a build script packs files into the program.
const PACKED: [&str; 1] = ["utoipa-swagger-ui-vendored"];
const COLLECT: &str = "run `python3 crates/server/licenses/collect.py`";

/// Returns name, version and licence of each third-party crate linked into the program.
fn linked() -> BTreeSet<[String; 3]> {
    let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(platform)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let items = list.as_array().expect("a list").iter();
        items
            .map(|item| (item["id"].as_str().expect("an id").to_owned(), item.clone()))
            .collect()
    };
    let (packages, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let is_macro = |package: &Value| {
        let targets = package["targets"].as_array().expect("targets");
        targets
            .iter()
            .any(|target| target["kind"].to_string().contains("proc-macro"))
    };
    let server = packages
        .iter()
        .find(|(_, package)| package["name"] == "fieldline-server");
    let mut waiting: Vec<&str> = server.iter().map(|(id, _)| id.as_str()).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if is_macro(&packages[id]) || !seen.insert(id) {
            continue;
        }
        for dependency in nodes[id]["deps"].as_array().expect("dependencies") {
            let kinds = dependency["dep_kinds"].as_array().expect("kinds");
            let id = dependency["pkg"].as_str().expect("an id");
            let is_packed = packages[id]["name"]
                .as_str()
                .is_some_and(|name| PACKED.contains(&name));
            if is_packed || kinds.iter().any(|kind| kind["kind"].is_null()) {
                waiting.push(id);
            }
        }
    }
    let others = seen
        .iter()
        .map(|id| &packages[*id])
        .filter(|package| !package["source"].is_null());
    others
        .map(|package| {
            ["name", "version", "license"].map(|field| {
                package[field]
                    .as_str()
                    .expect("each crate names its licence")
                    .to_owned()
            })
        })
        .collect()
}

/// Whether a licence expression can be satisfied with allowed licences alone.
fn is_allowed(license: &str) -> bool {
    let plain = license.replace(['(', ')'], " ").replace('/', " OR ");
    plain
        .split(" AND ")
        .all(|part| part.split(" OR ").any(|one| ALLOWED.contains(&one.trim())))
}

#[test]
fn all_that_is_linked_may_be_and_is_listed_with_its_text() {
    let linked = linked();
    assert!(linked.len() > 100, "cargo told of {} crates", linked.len());
    let refused: Vec<_> = linked
        .iter()
        .filter(|[.., license]| !is_allowed(license))
        .collect();
    assert!(refused.is_empty(), "not allowed: {refused:?}");
    let output = Command::new(env!("CARGO_BIN_EXE_fieldline"))
        .arg("licenses")
        .output()
        .expect("the program runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    let list = printed.split("====").next().expect("a list");
    let listed = list.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next()?, words.next()?);
        let license = words.collect::<Vec<_>>().join(" ");
        version
            .starts_with(|first: char| first.is_ascii_digit())
            .then(|| [name.to_owned(), version.to_owned(), license])
    });
    let listed: BTreeSet<_> = listed.collect();
    let missing: Vec<_> = linked.symmetric_difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "listed or linked, but not both; {COLLECT}: {missing:?}"
    );
    for [name, version, _] in &linked {
        assert!(
            printed.contains(&format!("{name} {version}")),
            "no text of {name} {version}; {COLLECT}"
        );
    }
}
