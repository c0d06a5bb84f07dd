//! Chains of all node types with configurations and messages that mean no good: whatever they are, the process stays, and
//! the partition goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_model::entity::{NodeConnection, RuleChain, RuleChainMetaData, RuleNode};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::{RuleChainId, RuleNodeId};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::rig::Rig;
use crate::chain::CompiledChain;
use crate::external::CloudEndpoints;
use crate::node_types::PREFIX;
use crate::nodes::tests::NOW;
use crate::nodes::tests::table::valid_configurations;
use crate::strategy::QueueStrategy;

/// How long the messages of a batch may take.
const PACK_TIMEOUT: Duration = Duration::from_millis(300);
/// What a batch may take besides, on a machine that has other things to do.
const MARGIN: Duration = Duration::from_secs(30);
/// Names of fields that say where something is sent to.
const ADDRESSES: &[&str] = &[
    "host",
    "bootstrap",
    "endpoint",
    "url",
    "server",
    "proxy",
    "region",
];

/// A node: its type, and what becomes of values of its configuration.
#[derive(Debug, Clone)]
struct OddNode {
    node_type: Index,
    changes: Vec<(Index, Change)>,
}

/// What becomes of a value.
#[derive(Debug, Clone)]
enum Change {
    /// It becomes another one.
    Becomes(Value),
    /// It stands in so many lists of one.
    Nests(usize),
    /// It is there so often.
    Repeats(usize),
}

#[derive(Debug, Clone)]
struct Case {
    nodes: Vec<OddNode>,
    /// Connections besides those from each node to the next one.
    edges: Vec<(Index, Index)>,
    bodies: Vec<Value>,
    metadata: Vec<(String, String)>,
}

fn texts() -> Vec<String> {
    let nested = (0..20).fold("@.x".to_owned(), |filter, _| format!("$..[?({filter})]"));
    let zeros = vec!["0"; 400].join(",");
    let names = vec!["'a'"; 400].join(",");
    vec![
        String::new(),
        "x".repeat(200_000),
        "${".repeat(2_000),
        "$[".repeat(2_000),
        "$[${".repeat(1_000),
        "$[*]".repeat(2_000),
        "${*}".repeat(2_000),
        "$[a]${big}".repeat(900),
        nested,
        format!("$.a[{zeros}][{zeros}]"),
        format!("$..[{names}]..[{names}]"),
        "$..*..*..*..*".to_owned(),
        "$..[?(@.a =~ /(?=x)(x|x)*(?=y)y/)]".to_owned(),
        "(?=x)(x|x)*(?=y)y".to_owned(),
        ".*".to_owned(),
        r"\w{50}\w{50}".to_owned(),
        "(".repeat(5_000),
        "sin(".repeat(100),
        "pie".repeat(5_000),
        "9".repeat(400),
        "[[0,0],[0,9],[9,9]]".to_owned(),
        "POST_TELEMETRY_REQUEST".to_owned(),
        "SECONDS".to_owned(),
        "DATA".to_owned(),
        "a".to_owned(),
    ]
}

fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => prop::sample::select(texts()).prop_map(Value::from),
        2 => prop::sample::select(vec![i64::MIN, -1, 0, 1, 1_000_000, i64::MAX]).prop_map(Value::from),
        1 => prop::sample::select(vec![f64::MIN, -0.0, 1e-300, f64::MAX]).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!({})),
        1 => Just(json!([])),
    ]
}

fn odd_node() -> impl Strategy<Value = OddNode> {
    let change = prop_oneof![
        4 => odd_value().prop_map(Change::Becomes),
        1 => (1_usize..100).prop_map(Change::Nests),
        1 => prop::sample::select(vec![2, 100, 4_000]).prop_map(Change::Repeats),
    ];
    (
        any::<Index>(),
        prop::collection::vec((any::<Index>(), change), 0..3),
    )
        .prop_map(|(node_type, changes)| OddNode { node_type, changes })
}

fn body() -> impl Strategy<Value = Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let wide = serde_json::Map::from_iter((0..3_000).map(|at| (format!("k{at}"), json!(at))));
    prop_oneof![
        2 => Just(json!({"temperature": 20.5, "a": 1, "x": "y"})),
        1 => Just(json!({"a": [["x".repeat(100_000)]], "x": vec![json!({}); 1_000]})),
        1 => Just(json!({"a": "x".repeat(60_000)})),
        1 => Just(json!(vec![json!({"a": 1}); 3_000])),
        1 => Just(json!(vec![json!(vec![0; 200]); 50])),
        1 => Just(Value::Object(wide)),
        1 => Just(deep),
        1 => odd_value(),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let metadata = prop::sample::select(vec![
        vec![("ts".to_owned(), i64::MAX.to_string())],
        vec![
            ("big".to_owned(), "y".repeat(50_000)),
            ("ts".to_owned(), "-1".to_owned()),
        ],
        (0..3_000).map(|at| (format!("m{at}"), "v".to_owned())).collect(),
        vec![],
    ]);
    (
        prop::collection::vec(odd_node(), 1..8),
        prop::collection::vec((any::<Index>(), any::<Index>()), 0..6),
        prop::collection::vec(body(), 1..6),
        metadata,
    )
        .prop_map(|(nodes, edges, bodies, metadata)| Case {
            nodes,
            edges,
            bodies,
            metadata,
        })
}

/// The ways to all values of a configuration but those of addresses: no message leaves the machine.
fn ways(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut inner = |name: &str, value: &Value| {
        let lower = name.to_lowercase();
        if !ADDRESSES.iter().any(|address| lower.contains(address)) {
            let way = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            found.push(way.clone());
            ways(value, &way, found);
        }
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| inner(name, field)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(place, item)| inner(&place.to_string(), item)),
        _ => {}
    }
}

fn changed(mut configuration: Value, changes: &[(Index, Change)]) -> Value {
    for (which, change) in changes {
        let mut found = Vec::new();
        ways(&configuration, "", &mut found);
        if found.is_empty() {
            break;
        }
        let way: &String = which.get(&found);
        let Some(value) = configuration.pointer_mut(way) else {
            continue;
        };
        match change {
            Change::Becomes(other) => value.clone_from(other),
            Change::Nests(depth) => {
                let inner = value.take();
                *value = (0..*depth).fold(inner, |inner, _| json!([inner]));
            }
            Change::Repeats(count) => match value {
                Value::Array(items) => {
                    let of = items.clone();
                    *items = of.iter().cycle().take(of.len() * count).cloned().collect();
                }
                Value::Object(fields) => {
                    let of: Vec<_> = fields.clone().into_iter().collect();
                    fields.extend((0..*count).flat_map(|number| {
                        of.iter()
                            .take(2)
                            .map(move |(name, field)| (format!("{name}{number}"), field.clone()))
                    }));
                }
                other => *other = Value::from(vec![other.take(); *count]),
            },
        }
    }
    configuration
}

impl Case {
    fn metadata_of_chain(&self) -> RuleChainMetaData {
        let types = valid_configurations();
        let nodes: Vec<RuleNode> = self
            .nodes
            .iter()
            .map(|odd| {
                let (node_type, configuration) = odd.node_type.get(&types);
                RuleNode {
                    id: RuleNodeId::new(),
                    name: node_type.name.to_owned(),
                    node_type: format!("{PREFIX}{}", node_type.class),
                    configuration_version: node_type.version,
                    configuration: changed(configuration.clone(), &odd.changes),
                    ..RuleNode::default()
                }
            })
            .collect();
        let labels = ["Success", "Failure", "True", "False", "Other", "Post telemetry"];
        let next = (1..nodes.len()).map(|at| (at - 1, at));
        let others = self.edges.iter().map(|(a, b)| {
            let (a, b) = (a.index(nodes.len()), b.index(nodes.len()));
            (a.min(b), a.max(b))
        });
        let edges = next.chain(others).filter(|(from, to)| from < to);
        let connections = edges.flat_map(|(from, to)| {
            labels.map(|label| NodeConnection {
                from_index: from as u32,
                to_index: to as u32,
                label: label.to_owned(),
            })
        });
        RuleChainMetaData {
            first_node_index: Some(0),
            connections: Some(connections.collect()),
            nodes,
            ..RuleChainMetaData::default()
        }
    }

    /// Sends the messages through the chain until all are done with; returns how many were, and how long it took.
    async fn run(&self) -> (u64, Duration) {
        let strategy = QueueStrategy {
            timeout: PACK_TIMEOUT,
            ..QueueStrategy::default()
        };
        let mut rig = Rig::new(1, strategy).await;
        // Nobody is there.
        rig.services().external.endpoints = CloudEndpoints {
            http: Some("http://127.0.0.1:1".to_owned()),
            azure_port: Some(1),
        };
        let device = rig.device_in(0).await;
        for body in &self.bodies {
            let metadata: MetadataMap = self.metadata.iter().cloned().collect();
            let message = QueueMessage::new(MsgType::PostTelemetry, device, NOW, metadata, body.to_string());
            rig.send_message(&message).await;
        }
        let began = Instant::now();
        let chain = RuleChain {
            id: RuleChainId::new(),
            ..RuleChain::default()
        };
        let (services, tenant) = (Arc::clone(&rig.world.services), rig.world.tenant);
        rig.put(CompiledChain::compile(
            &services,
            tenant,
            &chain,
            &self.metadata_of_chain(),
            None,
        ));
        let service = rig.start().await;
        let (counts, _) = rig.finish(service).await;
        (counts.total, began.elapsed())
    }
}

#[test]
fn no_chain_takes_the_process_down_or_holds_a_partition() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut runner = TestRunner::new(Config {
        cases: 12,
        failure_persistence: None,
        max_shrink_iters: 50,
        ..Config::default()
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let checked = runner.run(&case(), |case| {
        let (total, took) = runtime.block_on(case.run());
        prop_assert_eq!(total, case.bodies.len() as u64);
        prop_assert!(took < PACK_TIMEOUT + MARGIN, "{:?}", took);
        Ok(())
    });
    let _ = std::panic::take_hook();
    runtime.shutdown_background();
    checked.unwrap();
}
