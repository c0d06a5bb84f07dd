use fieldline_core::ports::{AttributeStore as _, TimeSeriesStore as _};
use fieldline_model::EntityId;
use fieldline_model::message::{MetadataMap, MsgType};
use fieldline_model::timeseries::{AttributeScope, PointOrder, RangeQuery};
use serde_json::{Value, json};

use crate::nodes::tests::{NOW, World, upgraded};

const TIMESERIES: &str = "telemetry.TbMsgTimeseriesNode";
const ATTRIBUTES: &str = "telemetry.TbMsgAttributesNode";
const DELETE: &str = "telemetry.TbMsgDeleteAttributesNode";
const FIELDS: &str = "telemetry.TbCalculatedFieldsNode";

fn meta<const N: usize>(entries: [(&str, &str); N]) -> MetadataMap {
    entries.into_iter().collect()
}

/// Times and values of a series.
async fn history(world: &World, entity: EntityId, key: &str) -> Vec<(i64, Value)> {
    let all = RangeQuery {
        start: 0,
        end: i64::MAX,
        limit: 100,
        order: PointOrder::Ascending,
    };
    let points = world.store.range(world.subject(entity), key, all).await.unwrap();
    points
        .into_iter()
        .map(|point| (point.ts, point.value.to_json()))
        .collect()
}

async fn latest(world: &World, entity: EntityId, key: &str) -> Option<(i64, Value)> {
    let keys = [key.to_owned()];
    let found =
        fieldline_core::ports::TimeSeriesStore::latest(&*world.store, world.subject(entity), Some(&keys))
            .await;
    let value = found.unwrap().into_iter().next()?;
    Some((value.point.ts, value.point.value.to_json()))
}

async fn attributes(world: &World, entity: EntityId, scope: AttributeScope) -> Value {
    let found =
        fieldline_core::ports::AttributeStore::get(&*world.store, world.subject(entity), scope, None).await;
    found
        .unwrap()
        .into_iter()
        .map(|it| (it.key, it.value.to_json()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn time_series_are_saved_at_the_time_of_the_message() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(TIMESERIES, json!({}));
    let body = json!({"t": 1, "s": "x"});
    let ts = world.msg_with(MsgType::PostTelemetry, device, &body, meta([("ts", "5000")]));
    assert_eq!(world.one(&node, ts).await.label, "Success");
    let packed = world.packed(device, &json!({"t": 2}));
    assert_eq!(world.one(&node, packed).await.label, "Success");
    let many = json!([{"ts": 7000, "values": {"t": 3}}, {"t": 4.5}]);
    let many = world.msg_with(MsgType::PostTelemetry, device, &many, meta([("ts", "8000")]));
    assert_eq!(world.one(&node, many).await.label, "Success");
    let expected = [
        (5000, json!(1)),
        (7000, json!(3)),
        (8000, json!(4.5)),
        (NOW, json!(2)),
    ];
    assert_eq!(history(&world, device, "t").await, expected);
    assert_eq!(latest(&world, device, "t").await, Some((NOW, json!(2))));
    assert_eq!(latest(&world, device, "s").await, Some((5000, json!("x"))));

    let node = world.node(TIMESERIES, json!({"useServerTs": true}));
    let msg = world.msg_with(
        MsgType::PostTelemetry,
        device,
        &json!({"u": 1}),
        meta([("ts", "5000")]),
    );
    world.one(&node, msg).await;
    assert_eq!(history(&world, device, "u").await, [(NOW, json!(1))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_telemetry_fails() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(TIMESERIES, json!({}));
    for (kind, body, metadata, problem) in [
        (
            MsgType::PostAttributes,
            json!({"t": 1}),
            meta([]),
            "Unsupported msg type: POST_ATTRIBUTES_REQUEST",
        ),
        (
            MsgType::PostTelemetry,
            json!({}),
            meta([]),
            "Msg body is empty: {}",
        ),
        (
            MsgType::PostTelemetry,
            json!({"t": null}),
            meta([]),
            "Msg body is empty: {\"t\":null}",
        ),
        (
            MsgType::PostTelemetry,
            json!(5),
            meta([]),
            "the body is no telemetry",
        ),
        (
            MsgType::PostTelemetry,
            json!({"t": 1}),
            meta([("TTL", "long")]),
            "TTL in the metadata is no number",
        ),
    ] {
        let msg = world.msg_with(kind, device, &body, metadata);
        let out = world.one(&node, msg).await;
        assert_eq!(out.label, "Failure");
        assert!(
            out.error.as_ref().unwrap().starts_with(problem),
            "{:?}",
            out.error
        );
    }
    assert!(history(&world, device, "t").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn points_live_as_long_as_metadata_node_and_tenant_say() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let old = NOW - 100_000;
    for (key, node_ttl, meta_ttl, tenant_ttl, is_gone) in [
        ("a", 50, None, 0, true),
        ("b", 50, Some("1000"), 0, false),
        ("c", 0, None, 50, true),
        ("d", 0, Some(""), 1000, false),
        ("e", 1000, Some("0"), 50, true),
        ("f", 0, Some("-1"), 50, false),
    ] {
        let node = world.node(TIMESERIES, json!({"defaultTTL": node_ttl}));
        let mut metadata = meta([("ts", &old.to_string())]);
        if let Some(ttl) = meta_ttl {
            metadata.set("TTL", ttl);
        }
        let mut msg = world.msg_with(MsgType::PostTelemetry, device, &json!({key: 1}), metadata);
        msg.ttl_seconds = tenant_ttl;
        world.one(&node, msg).await;
        assert_eq!(history(&world, device, key).await.is_empty(), is_gone, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_chosen_parts_are_stored() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let (always, never) = (json!({"type": "ON_EVERY_MESSAGE"}), json!({"type": "SKIP"}));
    let advanced = |history: &Value, latest: &Value| {
        json!({"processingSettings": {
            "type": "ADVANCED", "timeseries": history, "latest": latest, "webSockets": always, "calculatedFields": never,
        }})
    };
    for (key, settings, in_history, in_latest) in [
        ("a", advanced(&always, &never), true, false),
        ("b", advanced(&never, &always), false, true),
        (
            "c",
            json!({"processingSettings": {"type": "WEBSOCKETS_ONLY"}}),
            false,
            false,
        ),
    ] {
        let node = world.node(TIMESERIES, settings);
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({key: 1}));
        assert_eq!(world.one(&node, msg).await.label, "Success");
        assert_eq!(
            !history(&world, device, key).await.is_empty(),
            in_history,
            "{key}"
        );
        assert_eq!(latest(&world, device, key).await.is_some(), in_latest, "{key}");
    }
    let once = json!({"processingSettings": {"type": "DEDUPLICATE", "deduplicationIntervalSecs": 10}});
    let node = world.node(TIMESERIES, once);
    for ts in ["10000", "12000", "20000"] {
        let msg = world.msg_with(
            MsgType::PostTelemetry,
            device,
            &json!({"d": 1}),
            meta([("ts", ts)]),
        );
        assert_eq!(world.one(&node, msg).await.label, "Success");
    }
    let times: Vec<_> = history(&world, device, "d")
        .await
        .into_iter()
        .map(|(ts, _)| ts)
        .collect();
    assert_eq!(times, [10_000, 20_000]);
    let field = world.wrong(TIMESERIES, json!({"processingSettings": {"type": "SOMETIMES"}}));
    assert!(field.starts_with("processingSettings"), "{field}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_saved_in_the_scope_of_message_or_node() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(ATTRIBUTES, json!({"scope": "SHARED_SCOPE"}));
    let msg = world.msg(MsgType::PostAttributes, device, &json!({"a": 1}));
    assert_eq!(world.one(&node, msg).await.label, "Success");
    let msg = world.msg_with(
        MsgType::PostAttributes,
        device,
        &json!({"b": {"c": 2}}),
        meta([("scope", "CLIENT_SCOPE")]),
    );
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(
        attributes(&world, device, AttributeScope::Shared).await,
        json!({"a": 1})
    );
    assert_eq!(
        attributes(&world, device, AttributeScope::Client).await,
        json!({"b": {"c": 2}})
    );

    let empty = world.msg(MsgType::PostAttributes, device, &json!({}));
    assert_eq!(world.one(&node, empty).await.label, "Success");
    for (kind, body, scope, problem) in [
        (
            MsgType::PostTelemetry,
            json!({"a": 1}),
            "",
            "Unsupported msg type",
        ),
        (
            MsgType::PostAttributes,
            json!({"a": 1}),
            "MY_SCOPE",
            "Invalid attribute scope: MY_SCOPE",
        ),
        (
            MsgType::PostAttributes,
            json!([]),
            "",
            "the body holds no attributes",
        ),
    ] {
        let msg = world.msg_with(kind, device, &body, meta([("scope", scope)]));
        let out = world.one(&node, msg).await;
        assert!(
            out.error.as_ref().is_some_and(|error| error.starts_with(problem)),
            "{out:?}"
        );
    }
    assert_eq!(world.wrong(ATTRIBUTES, json!({"scope": "MY_SCOPE"})), "scope");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_changed_attributes_are_saved_and_told() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    world
        .attributes(
            device,
            AttributeScope::Server,
            json!({"same": 1, "other": 1, "typed": 1}),
        )
        .await;
    world.clock.advance(5_000);
    let node = world.node(ATTRIBUTES, json!({"sendAttributesUpdatedNotification": true}));
    let body = json!({"same": 1, "other": 2, "typed": 1.0, "new": true});
    let msg = world.msg(MsgType::PostAttributes, device, &body);
    assert_eq!(world.one(&node, msg.clone()).await.label, "Success");
    let [told] = &*world.queue.take() else {
        panic!("one message")
    };
    assert_eq!(
        (&told.msg_type, told.originator),
        (&MsgType::AttributesUpdated, device)
    );
    let said: Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!(said, json!({"other": 2, "typed": 1.0, "new": true}));
    assert_eq!(told.metadata.get("scope"), Some("SERVER_SCOPE"));
    assert_eq!(told.metadata.get("ruleNodeId"), Some(&*world.node.0.to_string()));
    let stored = world
        .store
        .get(world.subject(device), AttributeScope::Server, None)
        .await
        .unwrap();
    let times: Vec<_> = stored
        .iter()
        .map(|it| (&*it.key, it.last_update_ts - NOW))
        .collect();
    assert_eq!(
        times,
        [("new", 5000), ("other", 5000), ("same", 0), ("typed", 5000)]
    );

    // Nothing is new any more.
    assert_eq!(world.one(&node, msg.clone()).await.label, "Success");
    assert!(world.queue.take().is_empty());
    let node = world.node(
        ATTRIBUTES,
        json!({"sendAttributesUpdatedNotification": true, "updateAttributesOnlyOnValueChange": false}),
    );
    world.one(&node, msg.clone()).await;
    let [told] = &*world.queue.take() else {
        panic!("one message")
    };
    assert!(told.data.contains("same"));
    world.queue.set_full(true);
    assert_eq!(world.one(&node, msg).await.label, "Failure");
    world.queue.set_full(false);

    let client = world.msg_with(
        MsgType::PostAttributes,
        device,
        &json!({"a": 1}),
        meta([("scope", "CLIENT_SCOPE")]),
    );
    world.one(&node, client).await;
    assert!(
        world.queue.take().is_empty(),
        "nobody is told of what a device says of itself"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_deleted_by_patterns() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    world
        .attributes(device, AttributeScope::Shared, json!({"a": 1, "b": 1, "c": 1}))
        .await;
    let node = world.node(
        DELETE,
        json!({"keys": ["${key}", "$[name]", "b", " "], "sendAttributesDeletedNotification": true}),
    );
    let metadata = meta([("key", "a"), ("scope", "SHARED_SCOPE")]);
    let msg = world.msg_with(MsgType::PostTelemetry, device, &json!({"name": "b"}), metadata);
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(
        attributes(&world, device, AttributeScope::Shared).await,
        json!({"c": 1})
    );
    let [told] = &*world.queue.take() else {
        panic!("one message")
    };
    assert_eq!(
        (&told.msg_type, &*told.data),
        (&MsgType::AttributesDeleted, r#"{"attributes":["a","b"]}"#)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calculated_fields_are_fed_without_saving() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(FIELDS, json!({}));
    for (kind, scope, label) in [
        (MsgType::PostTelemetry, "", "Success"),
        (MsgType::PostAttributes, "SERVER_SCOPE", "Success"),
        (MsgType::PostAttributes, "", "Failure"),
        (MsgType::Alarm, "", "Failure"),
    ] {
        let msg = world.msg_with(kind, device, &json!({"a": 1}), meta([("scope", scope)]));
        assert_eq!(world.one(&node, msg).await.label, label);
    }
    assert!(history(&world, device, "a").await.is_empty());
    assert_eq!(
        attributes(&world, device, AttributeScope::Server).await,
        json!({})
    );
}

#[test]
fn older_configurations_are_brought_up_to_date() {
    let always = json!({"type": "ON_EVERY_MESSAGE"});
    let old = upgraded(
        TIMESERIES,
        0,
        json!({"defaultTTL": 5, "skipLatestPersistence": "true"}),
    );
    assert_eq!(old["processingSettings"]["latest"], json!({"type": "SKIP"}));
    assert_eq!(old.get("skipLatestPersistence"), None);
    let old = upgraded(TIMESERIES, 0, json!({"skipLatestPersistence": false}));
    assert_eq!(old, json!({"processingSettings": always}));
    let old = upgraded(
        ATTRIBUTES,
        0,
        json!({"scope": "CLIENT_SCOPE", "notifyDevice": "false"}),
    );
    let expected = json!({
        "scope": "CLIENT_SCOPE", "notifyDevice": false, "sendAttributesUpdatedNotification": false,
        "updateAttributesOnlyOnValueChange": false, "processingSettings": always,
    });
    assert_eq!(old, expected);
    let old = upgraded(ATTRIBUTES, 1, json!({}));
    assert_eq!(
        (&old["notifyDevice"], &old["updateAttributesOnlyOnValueChange"]),
        (&json!(true), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_told_of_its_shared_attributes_when_the_node_or_the_message_says_so() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let asset = world.tenant.into();
    for (scope, node, message, whom, told) in [
        ("SHARED_SCOPE", false, None, device, true),
        ("SHARED_SCOPE", false, Some("false"), device, false),
        ("SHARED_SCOPE", false, Some("true"), device, true),
        ("SHARED_SCOPE", true, Some("false"), device, true),
        ("SERVER_SCOPE", true, None, device, false),
        ("SHARED_SCOPE", true, None, asset, false),
    ] {
        let save = json!({"scope": scope, "notifyDevice": node, "updateAttributesOnlyOnValueChange": false});
        let save = world.node(ATTRIBUTES, save);
        let delete = json!({"scope": scope, "notifyDevice": node, "keys": ["t"]});
        let delete = world.node(DELETE, delete);
        let metadata: MetadataMap = message.map(|flag| ("notifyDevice", flag)).into_iter().collect();
        let body = json!({"t": 1});
        let saved = world.msg_with(MsgType::PostAttributes, whom, &body, metadata.clone());
        assert_eq!(world.one(&save, saved).await.label, "Success");
        world.apply_all().await;
        let deleted = world.msg_with(MsgType::PostAttributes, whom, &body, metadata);
        assert_eq!(world.one(&delete, deleted).await.label, "Success");
        let heard: Vec<String> = std::mem::take(&mut *world.callers.updates.lock())
            .into_iter()
            .map(|(_, update)| update)
            .collect();
        let mut expected = Vec::new();
        if told {
            expected.push(r#"{"t":1}"#.to_owned());
        }
        // Deletions are told only where somebody asks for it.
        if told && (node || message == Some("true")) {
            expected.push(r#"{"deleted":["t"]}"#.to_owned());
        }
        assert_eq!(heard, expected, "{scope} {node} {message:?}");
    }
}
