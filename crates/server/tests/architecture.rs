//! Checks the dependencies between the crates against the arrows that ARCHITECTURE.md draws.

use std::collections::BTreeSet;
use std::process::Command;

/// For each crate, the crates of this workspace that it may depend on outside its tests.
const ARROWS: [(&str, &[&str]); 23] = [
    ("model", &[]),
    ("codec", &[]),
    ("event-loop", &["codec"]),
    ("protobuf", &["model"]),
    ("core", &["model"]),
    ("devices", &["core", "model", "protobuf"]),
    ("entities", &["core", "devices", "model", "protobuf"]),
    ("journal", &["core", "model"]),
    ("storage", &["core", "model"]),
    (
        "transport",
        &[
            "core",
            "devices",
            "entities",
            "model",
            "codec",
            "event-loop",
            "protobuf",
        ],
    ),
    ("broker", &["core", "model", "codec", "event-loop"]),
    ("bridge", &["core", "codec", "connectors"]),
    ("api", &["core", "devices", "entities", "model"]),
    ("script", &[]),
    ("connectors", &["codec"]),
    ("alarm-rules", &["model"]),
    ("calculated-fields", &["model", "alarm-rules", "script"]),
    (
        "rules",
        &[
            "core",
            "devices",
            "entities",
            "model",
            "alarm-rules",
            "calculated-fields",
            "script",
            "connectors",
        ],
    ),
    (
        "replay",
        &["core", "devices", "entities", "model", "alarm-rules", "rules"],
    ),
    ("loadgen", &["codec", "event-loop"]),
    ("web", &[]),
    ("testkit", &["core", "model", "codec"]),
    (
        "server",
        &[
            "core",
            "bridge",
            "broker",
            "connectors",
            "event-loop",
            "devices",
            "entities",
            "model",
            "journal",
            "storage",
            "transport",
            "api",
            "loadgen",
            "rules",
            "replay",
            "web",
        ],
    ),
];

#[test]
fn crates_depend_on_each_other_only_along_the_arrows() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert_eq!(packages.len(), ARROWS.len(), "a crate is missing in the list");
    for package in packages {
        let name = package["name"]
            .as_str()
            .and_then(|name| name.strip_prefix("fieldline-"))
            .expect("our prefix");
        let (_, allowed) = ARROWS
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a known crate");
        let actual: BTreeSet<_> = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .filter_map(|dependency| dependency["name"].as_str()?.strip_prefix("fieldline-"))
            .collect();
        let forbidden: Vec<_> = actual
            .iter()
            .filter(|dependency| !allowed.contains(dependency))
            .collect();
        assert!(forbidden.is_empty(), "{name} must not depend on {forbidden:?}");
    }
}
