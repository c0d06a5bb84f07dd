//! Messages that wait for something: where they go on, in what order, and how many there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_core::ports::IngestStore as _;
use fieldline_core::ports::{AttributeStore as _, Partition};
use fieldline_model::entity::ProcessingStrategyType;
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::AttributeScope;
use serde_json::json;
use tokio::sync::Semaphore;

use super::rig::{Rig, Seen, eventually, node};
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, NodeResult};
use crate::strategy::QueueStrategy;
use crate::worker::rounds::MAX_SUSPENDED;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_acknowledge_nodes_in_a_row_need_no_deep_stack() {
    const NODES: usize = 5000;
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let (device, seen) = (rig.device_in(0).await, Seen::default());
    let mut nodes = vec![rig.world.node("flow.TbAckNode", json!({})); NODES];
    nodes.push(seen.node());
    let edges: Vec<_> = (0..NODES).map(|at| (at, at + 1, "Success")).collect();
    rig.chain(nodes, &edges);
    rig.send(device, [1]).await;
    let service = rig.start().await;
    let (counts, _) = rig.finish(service).await;
    assert_eq!((counts.successful, seen.all()), (1, vec![1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_late_message_keeps_lands_in_the_partition_it_came_from() {
    let strategy = QueueStrategy {
        timeout: Duration::from_millis(1),
        ..QueueStrategy::default()
    };
    let rig = Rig::new(2, strategy).await;
    let (early, late) = (rig.device_in(1).await, rig.device_in(0).await);
    let (came, gone, gate) = (Seen::default(), Seen::default(), Arc::new(Semaphore::new(0)));
    let waits = {
        let (came, gate) = (came.clone(), gate.clone());
        node(move |_, msg| {
            came.note(&msg);
            let (gate, waits) = (gate.clone(), msg.originator == late);
            NodeResult::wait(async move {
                if waits {
                    let _permit = gate.acquire().await;
                }
                NodeResult::then(move |ctx| {
                    ctx.set_state(msg.subject(), 0, None, b"kept");
                    NodeResult::success(msg)
                })
            })
        })
    };
    let chain = rig.chain(vec![waits, gone.node()], &[(0, 1, "Success")]);
    let service = rig.start().await;
    rig.send(late, [1]).await;
    eventually("the first message has not come", async || came.all() == [1]).await;
    rig.send(early, [2]).await;
    // The worker has turned to the other partition since.
    eventually("the second message has not gone on", async || gone.all() == [2]).await;
    gate.add_permits(1);
    eventually("the first message has not gone on", async || gone.all() == [2, 1]).await;
    rig.finish(service).await;
    let kept = async |partition: Partition| -> Vec<_> {
        let rows = rig.store.states(partition).await.unwrap();
        let of_node = rows
            .into_iter()
            .filter(|row| row.key.owner == chain.nodes[0].id.0);
        of_node.map(|row| row.key.subject.entity).collect()
    };
    assert_eq!(kept(rig.partition(0)).await, [late]);
    assert_eq!(kept(rig.partition(1)).await, [early]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_attribute_messages_the_later_one_wins_however_long_the_first_read_takes() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    let saves = rig.world.node(
        "telemetry.TbMsgAttributesNode",
        json!({"scope": "SERVER_SCOPE", "updateAttributesOnlyOnValueChange": true}),
    );
    rig.chain(vec![saves], &[]);
    rig.send_attribute(device, "version", 1).await;
    rig.send_attribute(device, "version", 2).await;
    rig.attributes.slow.store(1, Ordering::Release);
    let service = rig.start().await;
    let (counts, _) = rig.finish(service).await;
    assert_eq!(
        (counts.successful, rig.attributes.slow.load(Ordering::Acquire)),
        (2, 0)
    );
    let mut stored = Vec::new();
    for scope in [AttributeScope::Client, AttributeScope::Server] {
        let subject = rig.world.subject(device);
        stored.extend(rig.world.store.get(subject, scope, None).await.unwrap());
    }
    let values: Vec<_> = stored.into_iter().map(|stored| stored.value).collect();
    assert_eq!(values, [KvValue::Long(2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_messages_than_may_wait_are_all_submitted_however_late_that_is() {
    let strategy = QueueStrategy {
        processing: ProcessingStrategyType::SkipAllFailuresAndTimedOut,
        timeout: Duration::from_millis(50),
        ..QueueStrategy::default()
    };
    let rig = Rig::new(1, strategy).await;
    let (device, came, gate) = (
        rig.device_in(0).await,
        Seen::default(),
        Arc::new(Semaphore::new(0)),
    );
    let waits = {
        let (came, gate) = (came.clone(), gate.clone());
        node(move |_, msg| {
            came.note(&msg);
            let gate = gate.clone();
            NodeResult::wait(async move {
                let _permit = gate.acquire().await;
                NodeResult::success(msg)
            })
        })
    };
    rig.chain(vec![waits], &[]);
    let all: Vec<i64> = (1..=MAX_SUSPENDED as i64 + 500).collect();
    rig.send(device, all.iter().copied()).await;
    let service = rig.start().await;
    eventually("the worker is not full", async || {
        came.all().len() >= MAX_SUSPENDED
    })
    .await;
    // Long after the batch's time is up.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(
        came.all().len(),
        MAX_SUSPENDED,
        "no more than these wait at a time"
    );
    gate.add_permits(1);
    let (counts, _) = rig.finish(service).await;
    assert_eq!(came.all(), all);
    assert_eq!(counts.total, all.len() as u64);
}

/// A message becomes more parts than may wait, each of which waits as it is told to; once there is no room for more, whoever
/// waits for the gate may pass. All parts have to arrive.
async fn divide(gate: Arc<Semaphore>, waits: impl Fn(RuleMessage) -> NodeResult + Send + Sync + 'static) {
    const PARTS: usize = MAX_SUSPENDED + 500;
    // The batch's time is not to be up, however slow the machine is.
    let strategy = QueueStrategy {
        timeout: Duration::from_secs(3600),
        ..QueueStrategy::default()
    };
    let rig = Rig::new(1, strategy).await;
    let device = rig.device_in(0).await;
    let [came, gone] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let splits = node(|_, msg| NodeResult::Many(vec![(msg, ConnectionLabel::SUCCESS); PARTS]));
    let waits = {
        let came = came.clone();
        node(move |_, msg| {
            came.fetch_add(1, Ordering::AcqRel);
            waits(msg)
        })
    };
    let ends = {
        let gone = gone.clone();
        node(move |_, _| {
            gone.fetch_add(1, Ordering::AcqRel);
            NodeResult::Done
        })
    };
    rig.chain(vec![splits, waits, ends], &[(0, 1, "Success"), (1, 2, "Success")]);
    rig.send(device, [1]).await;
    let service = rig.start().await;
    eventually("the message is not divided", async || {
        came.load(Ordering::Acquire) > MAX_SUSPENDED
    })
    .await;
    gate.add_permits(1);
    let (counts, _) = rig.finish(service).await;
    assert_eq!((counts.successful, gone.load(Ordering::Acquire)), (1, PARTS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_one_message_that_becomes_thousands_no_more_wait_than_of_thousands() {
    let gate = Arc::new(Semaphore::new(0));
    let [waiting, most] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let waits = {
        let (gate, most) = (gate.clone(), most.clone());
        move |msg| {
            let (gate, waiting, most) = (gate.clone(), waiting.clone(), most.clone());
            NodeResult::wait(async move {
                let now = waiting.fetch_add(1, Ordering::AcqRel) + 1;
                most.fetch_max(now, Ordering::AcqRel);
                let _permit = gate.acquire().await;
                waiting.fetch_sub(1, Ordering::AcqRel);
                NodeResult::success(msg)
            })
        }
    };
    divide(gate, waits).await;
    assert_eq!(most.load(Ordering::Acquire), MAX_SUSPENDED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_that_wait_for_the_turn_of_one_that_has_come_back_do_not_wait_for_ever() {
    let (gate, turns) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(1)));
    let waits = {
        let gate = gate.clone();
        move |msg| {
            let (gate, turns) = (gate.clone(), turns.clone());
            NodeResult::wait(async move {
                let turn = turns.acquire_owned().await;
                let _permit = gate.acquire().await;
                // The turn is over when the worker has done its part.
                NodeResult::then(move |_| {
                    drop(turn);
                    NodeResult::success(msg)
                })
            })
        }
    };
    divide(gate, waits).await;
}
