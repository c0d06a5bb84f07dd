//! Time is moved by hand, and what is kept goes through its stored form.

use fieldline_model::EntityId;

use super::*;
use crate::node::ChainCommand;
use crate::nodes::tests::{NOW, World, nobody, upgraded};

const CLASS: &str = "deduplication.TbMsgDeduplicationNode";

fn node(world: &World, patch: Value) -> Arc<dyn Node> {
    let mut configuration = json!({"interval": 10, "strategy": "FIRST"});
    for (key, value) in patch.as_object().unwrap() {
        configuration[key] = value.clone();
    }
    world
        .make_named(CLASS, "d", Some("HighPriority"), &configuration)
        .unwrap()
}

async fn put(
    world: &mut World,
    node: &Arc<dyn Node>,
    originator: EntityId,
    ts: i64,
    n: i64,
) -> Option<String> {
    let metadata = [("ts", ts.to_string())].into_iter().collect();
    let msg = world.msg_with(MsgType::PostTelemetry, originator, &json!({ "n": n }), metadata);
    let outs = world.send(node, msg).await;
    outs.into_iter().next().and_then(|out| out.error)
}

fn numbers(messages: &[QueueMessage]) -> Vec<i64> {
    let number = |message: &QueueMessage| {
        serde_json::from_str::<Value>(&message.data).unwrap()["n"]
            .as_i64()
            .unwrap()
    };
    messages.iter().map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_or_the_last_of_each_interval_goes_on_after_a_restart_as_well() {
    for (strategy, expected) in [("FIRST", vec![2, 5]), ("LAST", vec![3, 6])] {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        let node = node(&world, json!({ "strategy": strategy }));
        for (ts, n) in [
            (1000, 1),
            (500, 2),
            (2000, 3),
            (2000, 4),
            (20_000, 5),
            (21_000, 6),
        ] {
            assert_eq!(put(&mut world, &node, device, NOW - 60_000 + ts, n).await, None);
        }
        world.restart();
        world.clock.advance(10_000);
        world.due(&node).await;
        assert_eq!(world.queue.take(), [], "not due yet");
        world.clock.advance(1);
        world.due(&node).await;
        let messages = world.queue.take();
        assert_eq!(numbers(&messages), expected, "{strategy}");
        let first = &messages[0];
        assert_eq!(first.queue.as_deref(), Some("HighPriority"));
        assert_eq!(first.from, Some((world.node, "Success".to_owned())));
        assert_eq!((first.rule_chain, first.originator), (Some(world.chain), device));
        assert_eq!(world.parts.keyed_states.len(), 0, "nothing is kept any more");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_an_interval_that_goes_on_wait_longer() {
    let mut world = World::new().await;
    let (device, other) = (nobody(), nobody());
    let node = node(&world, json!({}));
    put(&mut world, &node, device, NOW, 1).await;
    world.clock.advance(5000);
    put(&mut world, &node, other, NOW + 5000, 2).await;
    put(&mut world, &node, device, NOW + 11_000, 3).await;
    world.clock.advance(5001);
    world.due(&node).await;
    assert_eq!(numbers(&world.queue.take()), [1]);
    world.clock.advance(5001);
    world.due(&node).await;
    assert_eq!(numbers(&world.queue.take()), [2]);
    world.clock.advance(5001);
    world.due(&node).await;
    world.clock.advance(10_001);
    world.due(&node).await;
    assert_eq!(numbers(&world.queue.take()), [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_become_one_message() {
    let mut world = World::new().await;
    let device = nobody();
    let node = node(&world, json!({"strategy": "ALL", "outMsgType": "PACK"}));
    let metadata = [("ts", NOW.to_string())].into_iter().collect();
    let mut msg = world.msg_with(MsgType::PostTelemetry, device, &json!({ "n": 1 }), metadata);
    // What the engine notes of its way is not shown.
    msg.hops = 3;
    world.send(&node, msg).await;
    put(&mut world, &node, device, NOW + 1, 2).await;
    world.clock.advance(10_001);
    world.due(&node).await;
    let message = world.queue.take().remove(0);
    let ts = |ts: i64| json!({ "ts": ts.to_string() });
    assert_eq!(
        serde_json::from_str::<Value>(&message.data).unwrap(),
        json!([{"msg": {"n": 1}, "metadata": ts(NOW)}, {"msg": {"n": 2}, "metadata": ts(NOW + 1)}])
    );
    assert_eq!(message.msg_type.name(), "PACK");
    assert_eq!(
        message.metadata.get("ts"),
        Some((NOW + 10_001).to_string().as_str())
    );
    let mut msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
    msg.data = crate::message::MessageBody::text("no json");
    assert_eq!(world.one(&node, msg).await.label, "Failure");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_what_waits_is_bounded_and_a_message_waits_once() {
    let mut world = World::new().await;
    let device = nobody();
    let node = node(&world, json!({"maxPendingMsgs": 2}));
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({"n": 1}));
    world.send(&node, msg.clone()).await;
    world.send(&node, msg).await;
    assert_eq!(put(&mut world, &node, device, NOW, 2).await, None);
    assert!(
        put(&mut world, &node, device, NOW, 3)
            .await
            .unwrap()
            .contains("max limit")
    );
    assert_eq!(
        put(&mut world, &node, nobody(), NOW, 4).await,
        None,
        "each originator has its own limit"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bytes_of_what_waits_are_bounded() {
    let mut world = World::new().await;
    let node = node(&world, json!({"maxPendingMsgs": 100}));
    let device = nobody();
    let of =
        |world: &World, bytes: usize| world.msg(MsgType::PostTelemetry, device, &json!("x".repeat(bytes)));
    let msg = of(&world, MAX_BYTES);
    let refused = world.one(&node, msg).await.error.unwrap();
    assert!(refused.ends_with("are too large"), "{refused}");
    for _ in 0..8 {
        let msg = of(&world, MAX_BYTES - 1000);
        assert!(world.send(&node, msg).await.is_empty());
    }
    let msg = of(&world, 8000);
    let refused = world.one(&node, msg).await.error.unwrap();
    assert!(refused.ends_with("are too large"), "{refused}");
    let msg = of(&world, 100);
    assert!(world.send(&node, msg).await.is_empty(), "it is small enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_asked_again_until_the_retries_are_over() {
    let mut world = World::new().await;
    let device = nobody();
    let node = node(&world, json!({"maxRetries": 1}));
    put(&mut world, &node, device, NOW, 1).await;
    world.queue.set_full(true);
    world.clock.advance(10_001);
    world.due(&node).await;
    world.queue.set_full(false);
    world.due(&node).await;
    assert_eq!(world.queue.take(), [], "it is asked after a while");
    world.clock.advance(RETRY_MS);
    world.due(&node).await;
    assert_eq!(numbers(&world.queue.take()), [1]);
    put(&mut world, &node, device, NOW + 30_000, 2).await;
    world.queue.set_full(true);
    for _ in 0..4 {
        world.clock.advance(10_001);
        world.due(&node).await;
    }
    assert_eq!(world.parts.keyed_states.len(), 0, "given up");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_kept_in_the_partition_of_their_originator() {
    let mut world = World::new().await;
    let node = node(&world, json!({}));
    world.parts.partitions = 64;
    let away = std::iter::repeat_with(nobody)
        .find(|entity| !world.parts.owns(world.subject(*entity)))
        .unwrap();
    let msg = world.msg(MsgType::PostTelemetry, away, &json!({}));
    assert!(matches!(
        world.step(&node, msg).await,
        NodeResult::Control(ChainCommand::ForwardToOwner(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_and_older_configurations() {
    let world = World::new().await;
    for (patch, field) in [
        (json!({"interval": 0}), "interval"),
        (json!({"strategy": "ALL"}), "outMsgType"),
        (json!({"strategy": "SOME"}), "strategy"),
        (json!({"maxPendingMsgs": 0}), "maxPendingMsgs"),
        (json!({"maxRetries": -1}), "maxRetries"),
    ] {
        assert_eq!(world.wrong(CLASS, patch), field);
    }
    assert_eq!(
        upgraded(CLASS, 0, json!({"interval": 5, "queueName": "Main"})),
        json!({"interval": 5})
    );
}
