//! Scripts of chains: they hold up their own messages alone, keep their order, and end with what wants them.

use std::time::{Duration, Instant};

use fieldline_core::ports::RuleUsageSource as _;
use fieldline_model::entity::ProcessingStrategyType;
use serde_json::json;

use super::rig::{Rig, Seen, eventually, node};
use crate::node::{ConnectionLabel, NodeResult};
use crate::strategy::QueueStrategy;

const FILTER: &str = "filter.TbJsFilterNode";
const SPIN: &str = "while (true) {}";

fn script(body: &str) -> serde_json::Value {
    json!({"scriptLang": "JS", "jsScript": body})
}

impl Rig {
    /// Calls of scripts that have ended.
    fn ended(&self) -> u64 {
        let ledger = self.world.services.scripts.ledger().clone();
        ledger.of_tenant(self.world.tenant).total.calls
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_without_scripts_pass_one_whose_script_spins_and_a_repair_ends_it() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let (slow, quick) = (
        rig.device_in(0).await,
        rig.world.device("quick", json!(null)).await,
    );
    let (passed, failed) = (Seen::default(), Seen::default());
    let route = node(move |_, msg| {
        let label = ConnectionLabel::from(if msg.originator == slow { "Slow" } else { "Quick" });
        NodeResult::Next(msg, label)
    });
    let nodes = vec![
        route,
        rig.world.node(FILTER, script(SPIN)),
        passed.node(),
        failed.node(),
    ];
    let chain = rig.chain(nodes, &[(0, 1, "Slow"), (0, 2, "Quick"), (1, 3, "Failure")]);
    rig.send(slow, [1]).await;
    rig.send(quick, [2]).await;
    let service = rig.start().await;
    eventually("the second message waits for the first", async || {
        passed.all() == [2]
    })
    .await;
    assert_eq!(rig.ended(), 0, "the script has spun all its time");
    rig.world
        .services
        .scripts
        .cancel_owner(rig.world.tenant, chain.nodes[1].id.into());
    eventually("the script goes on", async || failed.all() == [1]).await;
    let (counts, _) = rig.finish(service).await;
    assert_eq!(counts.total, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_a_pack_ends_its_scripts_where_late_messages_are_dropped() {
    let strategy = QueueStrategy {
        processing: ProcessingStrategyType::SkipAllFailuresAndTimedOut,
        timeout: Duration::from_millis(100),
        ..QueueStrategy::default()
    };
    let rig = Rig::new(1, strategy).await;
    let device = rig.device_in(0).await;
    rig.chain(vec![rig.world.node(FILTER, script(SPIN))], &[]);
    let service = rig.start().await;
    let begun = Instant::now();
    rig.send(device, [1]).await;
    eventually("the script goes on", async || rig.ended() == 1).await;
    assert!(
        begun.elapsed() < Duration::from_secs(6),
        "its own limit has ended it"
    );
    let (counts, _) = rig.finish(service).await;
    assert_eq!((counts.timeout, counts.successful), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_device_stay_in_their_order_through_scripts() {
    const MESSAGES: i64 = 500;
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let (device, other) = (
        rig.device_in(0).await,
        rig.world.device("other", json!(null)).await,
    );
    let seen = Seen::default();
    // Every third message is slower than those that follow it.
    let body = "for (var i = 0; msg.n % 3 == 0 && i < 3000; i++) {} return true;";
    let nodes = vec![
        rig.world.node(FILTER, script(body)),
        rig.world.node(FILTER, script("return msg.n > 0;")),
        seen.node(),
    ];
    rig.chain(nodes, &[(0, 1, "True"), (1, 2, "True")]);
    for n in 1..=MESSAGES {
        rig.send(device, [n]).await;
        rig.send(other, [10_000 + n]).await;
    }
    let service = rig.start().await;
    let (counts, _) = rig.finish(service).await;
    assert_eq!(counts.successful, 2 * MESSAGES as u64);
    for from in [0, 10_000] {
        let of_one: Vec<i64> = seen
            .all()
            .into_iter()
            .filter(|ts| (from..from + 10_000).contains(ts))
            .collect();
        let expected: Vec<i64> = (from + 1..=from + MESSAGES).collect();
        assert_eq!(of_one, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_program_fails_no_message_for_its_scripts() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    let failed = Seen::default();
    rig.chain(
        vec![rig.world.node(FILTER, script(SPIN)), failed.node()],
        &[(0, 1, "Failure")],
    );
    let service = rig.start().await;
    rig.send(device, [1]).await;
    rig.world.services.scripts.stop();
    rig.stop(service, Duration::from_secs(20)).await;
    assert_eq!(
        (failed.all(), rig.counts().0.total),
        (vec![], 0),
        "it is left to the next start"
    );
}
