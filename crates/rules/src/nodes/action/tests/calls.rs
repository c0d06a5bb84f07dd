use fieldline_model::message::MsgType;
use serde_json::{Value, json};

use super::meta;
use crate::nodes::tests::{NOW, World, nobody};

const STATE: &str = "action.TbDeviceStateNode";
const RPC: &str = "rpc.TbSendRPCRequestNode";
const REPLY: &str = "rpc.TbSendRPCReplyNode";
const REST_REPLY: &str = "rest.TbSendRestApiCallReplyNode";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_device_ends_here_and_its_answer_goes_on() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(RPC, json!({"timeoutInSeconds": 5}));
    let call = json!({"method": "setGpio", "params": {"pin": 1}, "additionalInfo": {"by": "x"}});
    let metadata = meta([
        ("oneway", "true"),
        ("originServiceId", "here"),
        ("expirationTime", "1760000003000"),
        ("retries", "3"),
        ("requestUUID", "6f3bf0a2-0000-4000-8000-000000000001"),
    ]);
    let msg = world.msg_with(MsgType::RpcFromServer, device, &call, metadata.clone());
    for (answer, label, body) in [
        (Some("{\"ok\":true}"), "Success", json!({"ok": true})),
        (None, "Failure", json!({"error": "NO_ACTIVE_CONNECTION"})),
    ] {
        *world.callers.answer.lock() = answer.map(str::to_owned);
        assert!(
            world.send(&node, msg.clone()).await.is_empty(),
            "it is acknowledged"
        );
        let reply = loop {
            if let Some(reply) = world.queue.take().pop() {
                break reply;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(reply.from, Some((world.node, label.to_owned())));
        assert_eq!(serde_json::from_str::<Value>(&reply.data).unwrap(), body);
        assert_eq!(
            (&reply.msg_type, reply.originator, &reply.metadata),
            (&MsgType::RpcFromServer, device, &metadata)
        );
    }
    let request = world.callers.requests.lock().remove(0);
    assert_eq!(
        (request.method.as_str(), request.params.as_str()),
        ("setGpio", "{\"pin\":1}")
    );
    assert_eq!(
        (request.oneway, request.persistent, request.retries),
        (true, false, Some(3))
    );
    assert_eq!(request.expires_ms, NOW + 3_000);
    assert_eq!(request.id.to_string(), "6f3bf0a2-0000-4000-8000-000000000001");
    assert_eq!(request.rest_origin.as_deref(), Some("here"));

    for (originator, body, problem) in [
        (
            world.customer.into(),
            &call,
            "Message originator is not a device entity!",
        ),
        (
            device,
            &json!({"params": 1}),
            "Method is not present in the message!",
        ),
        (
            device,
            &json!({"method": "m"}),
            "Params are not present in the message!",
        ),
    ] {
        let msg = world.msg(MsgType::PostTelemetry, originator, body);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
    let msg = world.msg_with(MsgType::PostTelemetry, device, &call, meta([("retries", "many")]));
    assert_eq!(
        world.one(&node, msg).await.error.as_deref(),
        Some("`retries` in the metadata is invalid: many")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_and_clients_are_answered() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let session = "6f3bf0a2-0000-4000-8000-000000000001";
    let node = world.node(REPLY, json!({"requestIdMetaDataAttribute": "number"}));
    let whole = meta([("serviceId", "here"), ("sessionId", session), ("number", "7")]);
    let msg = world.msg_with(MsgType::ToServerRpc, device, &json!({"a": 1}), whole.clone());
    assert_eq!(world.one(&node, msg).await.label, "Success");
    let answers = std::mem::take(&mut *world.callers.answers.lock());
    assert_eq!(
        answers,
        [(
            "here".to_owned(),
            session.parse().unwrap(),
            7,
            "{\"a\":1}".to_owned()
        )]
    );
    for (missing, problem) in [
        ("number", "Request id is not present in the metadata!"),
        ("serviceId", "Service id is not present in the metadata!"),
        ("sessionId", "Session id is not present in the metadata!"),
    ] {
        let mut metadata = whole.clone();
        metadata.remove(missing);
        let msg = world.msg_with(MsgType::ToServerRpc, device, &json!({}), metadata);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
    let node = world.node(REST_REPLY, json!({}));
    let metadata = meta([("serviceId", "here"), ("requestUUID", session)]);
    let msg = world.msg_with(MsgType::RestApiRequest, world.tenant, &json!({"a": 1}), metadata);
    assert_eq!(world.one(&node, msg).await.label, "Success");
    let rest = std::mem::take(&mut *world.callers.rest.lock());
    let (service, tenant, request, message) = &rest[0];
    assert_eq!((service.as_str(), *tenant), ("here", world.tenant));
    assert_eq!(
        (request.to_string().as_str(), message.data.as_str()),
        (session, "{\"a\":1}")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_device_are_limited() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(STATE, json!({"event": "CONNECT_EVENT"}));
    let mut labels = Vec::new();
    for pause in [0, 0, 999, 1] {
        world.clock.advance(pause);
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        labels.push(world.one(&node, msg).await.label);
    }
    assert_eq!(labels, ["Success", "Rate limited", "Rate limited", "Success"]);
    let mut passed = 0;
    for _ in 0..120 {
        world.clock.advance(1_000);
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        passed += usize::from(world.one(&node, msg).await.label == "Success");
    }
    assert_eq!(passed, 60, "what is left of sixty an hour, and two more");
    let msg = world.msg(MsgType::PostTelemetry, world.customer, &json!({}));
    assert!(
        world
            .one(&node, msg)
            .await
            .error
            .unwrap()
            .contains("[CUSTOMER]. Only DEVICE")
    );
    assert_eq!(world.wrong(STATE, json!({"event": "ALARM"})), "event");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_platform_does_not_have_says_so() {
    let mut world = World::new().await;
    for class in ["edge.TbMsgPushToEdgeNode", "edge.TbMsgPushToCloudNode"] {
        let node = world.node(class, json!({}));
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        assert_eq!(
            world.one(&node, msg).await.error.as_deref(),
            Some("Edge is not supported")
        );
    }
    assert_eq!(
        world.wrong(
            "action.TbSaveToCustomCassandraTableNode",
            json!({"tableName": "t"})
        ),
        "tableName"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_node_needs_a_text() {
    let mut world = World::new().await;
    let node = world.node("action.TbLogNode", json!({}));
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(
        world.wrong("action.TbLogNode", json!({"tbelScript": "return '"})),
        "tbelScript"
    );
}
