use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ports::EventFilter;
use fieldline_model::EntityId;
use fieldline_model::entity::{EventBody, EventKind};
use fieldline_model::message::MsgType;
use fieldline_model::page::PageLink;
use serde_json::json;

use super::meta;
use crate::node::{Node, NodeBackgroundTask, NodeEmitter};
use crate::nodes::tests::{World, nobody, upgraded};

const COUNT: &str = "action.TbMsgCountNode";
const DELAY: &str = "delay.TbMsgDelayNode";
const GENERATOR: &str = "debug.TbMsgGeneratorNode";
const FENCE: &str = "geo.TbGpsGeofencingActionNode";

/// What a node does by itself.
fn work(world: &World, node: Arc<dyn Node>) -> NodeBackgroundTask {
    let source = NodeEmitter {
        services: world.services.clone(),
        tenant: world.tenant,
        chain: world.chain,
        node: world.node,
        queue: None,
    };
    node.run(source).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_messages_survive_a_restart() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let patch = json!({
        "maxPendingMsgs": 2, "useMetadataPeriodInSecondsPatterns": true, "periodInSecondsPattern": "${wait}",
    });
    let node = world.node(DELAY, patch.clone());
    let msg = |world: &World, wait: &str| {
        world.msg_with(
            MsgType::from("mine"),
            device,
            &json!({"wait": wait}),
            meta([("wait", wait)]),
        )
    };
    for wait in ["20", "10"] {
        let msg = msg(&world, wait);
        assert!(world.send(&node, msg).await.is_empty());
    }
    let third = msg(&world, "1");
    assert_eq!(
        world.one(&node, third).await.error.as_deref(),
        Some("Max limit of pending messages reached!")
    );
    world.restart();
    let node = world.node(DELAY, patch);
    world.clock.advance(9_999);
    assert!(world.due(&node).await.is_empty());
    world.clock.advance(1);
    let out = world.due(&node).await;
    assert_eq!(
        (out.len(), out[0].body(), out[0].label.as_str()),
        (1, json!({"wait": "10"}), "Success")
    );
    assert_eq!(
        (&out[0].msg.kind, out[0].msg.originator),
        (&MsgType::from("mine"), device)
    );
    world.clock.advance(10_000);
    assert_eq!(world.due(&node).await[0].meta("wait").as_deref(), Some("20"));
    let wrong = msg(&world, "soon");
    assert!(
        world
            .one(&node, wrong)
            .await
            .error
            .unwrap()
            .starts_with("Can't parse period in seconds")
    );
    let long = json!("x".repeat(1 << 20));
    let long = world.msg_with(MsgType::from("mine"), device, &long, meta([("wait", "1")]));
    assert_eq!(
        world.one(&node, long).await.error.as_deref(),
        Some("The message is longer than 1048576 bytes!")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_enters_and_leaves_is_told_and_kept() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let fence = |on_each: bool| {
        json!({
            "fetchPerimeterInfoFromMessageMetadata": false, "polygonsDefinition": "[[0,0],[0,10],[10,10],[10,0]]",
            "minInsideDuration": 10, "minInsideDurationTimeUnit": "SECONDS", "minOutsideDuration": 1,
            "reportPresenceStatusOnEachMessage": on_each,
        })
    };
    let node = world.node(FENCE, fence(false));
    let (inside, outside) = (
        json!({"latitude": 5, "longitude": 5}),
        json!({"latitude": 5, "longitude": 50}),
    );
    let mut labels = Vec::new();
    for (pause, place) in [
        (0, &inside),
        (10_000, &inside),
        (1, &inside),
        (5_000, &inside),
        (0, &outside),
        (60_000, &outside),
        (1, &outside),
    ] {
        world.clock.advance(pause);
        let msg = world.msg(MsgType::PostTelemetry, device, place);
        labels.push(world.one(&node, msg).await.label);
        world.parts.keyed_states.take_changes(world.parts.partition);
    }
    assert_eq!(
        labels,
        [
            "Entered", "Success", "Inside", "Success", "Left", "Success", "Outside"
        ]
    );
    let node = world.node(FENCE, fence(true));
    for (place, label) in [(&outside, "Outside"), (&inside, "Entered"), (&inside, "Inside")] {
        let msg = world.msg(MsgType::PostTelemetry, device, place);
        assert_eq!(world.one(&node, msg).await.label, label);
    }
    world.restart();
    let msg = world.msg(MsgType::PostTelemetry, device, &inside);
    assert_eq!(
        world.one(&node, msg).await.label,
        "Inside",
        "a restart is no entry"
    );
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
    assert_eq!(world.one(&node, msg).await.label, "Failure");
    let old = upgraded(FENCE, 0, json!({}));
    assert_eq!(old, json!({"reportPresenceStatusOnEachMessage": false}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_is_reported_at_intervals() {
    let mut world = World::new().await;
    let node = world.node(COUNT, json!({"interval": 1, "telemetryPrefix": "seen"}));
    for _ in 0..3 {
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        assert!(world.send(&node, msg).await.is_empty());
    }
    let task = tokio::spawn(work(&world, node.clone()));
    let report = loop {
        if let Some(report) = world.queue.take().pop() {
            break report;
        }
        tokio::task::yield_now().await;
    };
    task.abort();
    assert_eq!(
        (&report.msg_type, report.originator),
        (&MsgType::PostTelemetry, world.tenant.into())
    );
    assert_eq!(report.data, "{\"seen_here\":3}");
    assert_eq!(
        (report.metadata.get("ts"), report.metadata.get("delta")),
        (None, Some("0"))
    );
    assert_eq!(report.from, Some((world.node, "Success".to_owned())));
    assert_eq!(world.wrong(COUNT, json!({"interval": 0})), "interval");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generator_whose_script_is_switched_off_says_so_once() {
    let world = World::new().await;
    // It takes more memory than it may, three times; the fourth call is not made.
    let script = "var all = []; while (true) { all.push('many bytes of memory'); }";
    work(
        &world,
        world.node(GENERATOR, json!({"tbelScript": script, "msgCount": 4})),
    )
    .await;
    assert_eq!(world.queue.take().len(), 4);
    let events = &world.services.stores.events;
    let node = EntityId::from(world.node);
    let filter = EventFilter::of(EventKind::Error);
    let link = PageLink {
        page_size: 10,
        ..PageLink::default()
    };
    let mut found = Vec::new();
    for _ in 0..500 {
        found = events
            .list(world.tenant, node, &filter, &link)
            .await
            .unwrap()
            .data;
        if !found.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(found.len(), 1);
    let EventBody::Error { method, error } = &found[0].body else {
        panic!("{:?}", found[0]);
    };
    assert_eq!(method, "script");
    assert!(
        error.as_ref().unwrap().contains("switched off for 60 s"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generator_knows_what_it_has_made_before() {
    let world = World::new().await;
    let device = world.device("a", json!({})).await;
    let script = "var n = prevMsg.n == null ? 1 : prevMsg.n + 1; \
                  return {msg: {n: n}, metadata: {before: prevMsgType}, msgType: 'MINE'};";
    let node = world.node(
        GENERATOR,
        json!({"tbelScript": script, "msgCount": 2, "originatorType": "DEVICE", "originatorId": device.id}),
    );
    work(&world, node).await;
    let made = world.queue.take();
    let bodies: Vec<_> = made
        .iter()
        .map(|it| (it.data.as_str(), it.metadata.get("before").unwrap()))
        .collect();
    assert_eq!(bodies, [("{\"n\":1}", ""), ("{\"n\":2}", "MINE")]);
    assert_eq!((made[0].msg_type.name(), made[0].originator), ("MINE", device));
    assert_eq!(made[0].from, Some((world.node, "Success".to_owned())));

    let broken = json!({"tbelScript": "return 5;", "msgCount": 1});
    work(&world, world.node(GENERATOR, broken)).await;
    let made = world.queue.take();
    assert_eq!(
        (made[0].from.clone(), made[0].originator),
        (Some((world.node, "Failure".to_owned())), world.node.into())
    );
    let foreign = json!({"msgCount": 1, "originatorType": "DEVICE", "originatorId": nobody().id});
    work(&world, world.node(GENERATOR, foreign)).await;
    assert_eq!(world.queue.take()[0].from.clone().unwrap().1, "Failure");
    assert_eq!(
        world.wrong(GENERATOR, json!({"originatorType": "ALARM"})),
        "originatorType"
    );
    assert_eq!(
        world.wrong(GENERATOR, json!({"originatorType": "DEVICE"})),
        "originatorId"
    );
    let old = upgraded(
        GENERATOR,
        0,
        json!({"queueName": "Main", "originatorType": "DEVICE", "originatorId": ""}),
    );
    assert_eq!(old, json!({"originatorType": "RULE_NODE", "originatorId": ""}));
}
