//! Workers over a real journal and real stores.

mod full;
mod lanes;
mod late;
mod limits;
mod marks;
mod order;
mod random;
mod restarts;
mod rig;
mod scripts;
mod street;
mod sweeping;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use fieldline_model::entity::{ProcessingStrategyType, SubmitStrategyType};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use self::rig::Rig;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeContext, NodeResult};
use crate::stats::MessageCounts;
use crate::strategy::QueueStrategy;

/// What a node of a made-up chain does with every message.
#[derive(Debug, Clone, Copy)]
enum Does {
    Passes(&'static str),
    Fails,
    Ends,
    Panics,
    Multiplies(usize),
    Waits(&'static str),
    WaitsAndPanics,
    WaitsTwice,
}

impl Node for Does {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        ctx.set_state(msg.subject(), 0, None, b"seen");
        match *self {
            Self::Passes(label) => NodeResult::Next(msg, label.into()),
            Self::Fails => NodeResult::fail(msg, "as it should"),
            Self::Ends => NodeResult::Done,
            Self::Panics => panic!("as it should"),
            Self::Multiplies(count) => NodeResult::Many(vec![(msg, ConnectionLabel::SUCCESS); count]),
            Self::Waits(label) => NodeResult::wait(async move {
                tokio::task::yield_now().await;
                NodeResult::Next(msg, label.into())
            }),
            Self::WaitsAndPanics => NodeResult::wait(async move {
                tokio::task::yield_now().await;
                panic!("as it should")
            }),
            Self::WaitsTwice => NodeResult::wait(async move {
                tokio::task::yield_now().await;
                NodeResult::then(move |_| NodeResult::wait(async move { NodeResult::success(msg) }))
            }),
        }
    }
}

fn does() -> impl Strategy<Value = Does> {
    let label = prop::sample::select(vec!["Success", "success", "Failure", "True", "Nowhere"]);
    prop_oneof![
        4 => label.clone().prop_map(Does::Passes),
        1 => Just(Does::Fails),
        1 => Just(Does::Ends),
        1 => Just(Does::Panics),
        2 => (0_usize..4).prop_map(Does::Multiplies),
        2 => label.prop_map(Does::Waits),
        1 => Just(Does::WaitsAndPanics),
        1 => Just(Does::WaitsTwice),
    ]
}

/// A chain without circles: edges lead to later nodes.
#[derive(Debug, Clone)]
struct Graph {
    nodes: Vec<Does>,
    edges: Vec<(usize, usize, &'static str)>,
}

fn graph() -> impl Strategy<Value = Graph> {
    prop::collection::vec(does(), 1..7).prop_flat_map(|nodes| {
        let count = nodes.len();
        let label = prop::sample::select(vec!["Success", "Failure", "True"]);
        let edge = (0..count, 0..count, label).prop_map(|(a, b, label)| (a.min(b), a.max(b), label));
        let edges = prop::collection::vec(edge, 0..12)
            .prop_map(|edges| edges.into_iter().filter(|(from, to, _)| from < to).collect());
        (Just(nodes), edges).prop_map(|(nodes, edges)| Graph { nodes, edges })
    })
}

fn queue_strategy() -> impl Strategy<Value = QueueStrategy> {
    use SubmitStrategyType as Submit;
    let submit = prop::sample::select(vec![
        Submit::Burst,
        Submit::Batch,
        Submit::Sequential,
        Submit::SequentialByOriginator,
        Submit::SequentialByTenant,
    ]);
    let processing = prop::sample::select(vec![
        ProcessingStrategyType::SkipAllFailures,
        ProcessingStrategyType::RetryAll,
        ProcessingStrategyType::RetryFailed,
        ProcessingStrategyType::RetryFailedAndTimedOut,
    ]);
    (submit, processing, 1_usize..4).prop_map(|(submit, processing, batch)| QueueStrategy {
        submit,
        processing,
        batch,
        retries: 2,
        pause: Duration::ZERO,
        max_pause: Duration::ZERO,
        timeout: Duration::from_secs(60),
        ..QueueStrategy::default()
    })
}

/// Sends messages of two devices through a graph until all are done with, and returns what was counted.
async fn run(graph: &Graph, strategy: &QueueStrategy, messages: i64) -> MessageCounts {
    let rig = Rig::new(2, strategy.clone()).await;
    let mut devices = Vec::new();
    for name in ["a", "b"] {
        devices.push(rig.world.device(name, serde_json::json!(null)).await);
    }
    for n in 0..messages {
        rig.send(devices[n as usize % 2], [n]).await;
    }
    let nodes = graph.nodes.iter().map(|does| Arc::new(*does) as Arc<dyn Node>);
    rig.chain(nodes.collect(), &graph.edges);
    let service = rig.start().await;
    rig.finish(service).await.0
}

#[test]
fn every_message_is_acknowledged_once_whatever_the_nodes_do() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut runner = TestRunner::new(Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let checked = runner.run(
        &(graph(), queue_strategy(), 1_i64..12),
        |(graph, strategy, messages)| {
            let counts = runtime.block_on(run(&graph, &strategy, messages));
            let all = counts.successful + counts.failed + counts.timeout;
            prop_assert_eq!((counts.total, all), (messages as u64, messages as u64));
            prop_assert_eq!(counts.timeout, 0);
            Ok(())
        },
    );
    let _ = std::panic::take_hook();
    checked.unwrap();
}
