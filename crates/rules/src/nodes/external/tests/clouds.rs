//! Nodes of clouds against stand-ins that verify what is signed, and every node against servers that hang.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_testkit::fakes::azure::{self, FakeIotHub};
use fieldline_testkit::fakes::{aws, google};
use futures::future::join_all;
use tokio::time::timeout;

use super::*;
use crate::external::CloudEndpoints;
use crate::message::RuleMessage;
use crate::node::{Node, NodeResult, Suspension};
use crate::nodes::tests::Out;

/// A world whose clouds are there.
async fn world_with(endpoints: CloudEndpoints) -> World {
    let mut world = World::new().await;
    set_external(
        &mut world,
        ExternalNodeSettings {
            endpoints,
            ..ExternalNodeSettings::default()
        },
    );
    world
}

/// A world whose clouds are this server.
async fn world(server: &FakeHttpServer) -> World {
    world_with(CloudEndpoints {
        http: Some(server.url.clone()),
        ..CloudEndpoints::default()
    })
    .await
}

/// What comes of a message with the body `{"t":5}` and the metadata `{"deviceName": "thing"}`.
async fn sent(world: &mut World, class: &str, patch: Value) -> Out {
    let node = world.node(class, patch);
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"t": 5}));
    world.one(&node, msg).await
}

/// The metadata of a message besides that it came with.
fn added(out: &Out) -> Value {
    let all = out.msg.meta.to_metadata();
    let added = all.iter().filter(|(name, _)| *name != "deviceName");
    Value::Object(
        added
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect(),
    )
}

fn succeeds(out: &Out, body: &Value, metadata: &Value) {
    assert_eq!(
        (out.label.as_str(), &out.body()),
        ("Success", body),
        "{:?}",
        out.error
    );
    assert_eq!(added(out), *metadata);
}

fn fails(out: &Out, error: &str) {
    assert_eq!((out.label.as_str(), out.body()), ("Failure", json!({"t": 5})));
    assert_eq!(out.error.as_deref(), Some(error));
    assert_eq!(added(out), json!({ "error": error }));
}

fn keys(patch: Value) -> Value {
    let mut keys =
        json!({"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": aws::SECRET, "region": "eu-central-1"});
    keys.as_object_mut()
        .unwrap()
        .extend(patch.as_object().unwrap().clone());
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn sqs_messages_are_signed_and_its_refusals_are_told() {
    let server = FakeHttpServer::start(|request| {
        aws::is_signed(request, "eu-central-1", "sqs");
        if request.body.contains("gone") {
            return answer(
                400,
                &[],
                r#"{"__type": "a#QueueDoesNotExist", "message": "no such queue"}"#,
            );
        }
        let body = r#"{"MessageId": "m-1", "MD5OfMessageBody": "b", "MD5OfMessageAttributes": "a"}"#;
        answer(200, &[("x-amzn-RequestId", "r-1")], body)
    })
    .await;
    let mut world = world(&server).await;
    let queue = |name: &str| json!(format!("{}/1/{name}-${{deviceName}}", server.url));
    let attributes = json!({"of ${deviceName}": "$[t]"});
    let patch = keys(json!({"queueUrlPattern": queue("q"), "messageAttributes": attributes}));
    let out = sent(&mut world, SQS, patch).await;
    let expected = json!({
        "messageId": "m-1", "requestId": "r-1", "messageBodyMd5": "b", "messageAttributesMd5": "a",
    });
    succeeds(&out, &json!({"t": 5}), &expected);
    let body = server.last().json();
    assert_eq!(
        (
            &body["MessageBody"],
            &body["MessageAttributes"]["of thing"]["StringValue"]
        ),
        (&json!(r#"{"t":5}"#), &json!("5"))
    );
    assert!(body["QueueUrl"].as_str().unwrap().ends_with("/1/q-thing"));

    let patch = keys(json!({"queueUrlPattern": queue("fifo"), "queueType": "FIFO"}));
    let out = sent(&mut world, SQS, patch).await;
    let body = server.last().json();
    assert_eq!(
        (&body["MessageDeduplicationId"], &body["MessageGroupId"]),
        (&json!(out.msg.id), &json!(out.msg.originator.id)),
        "a replay has to be the same message for the queue"
    );

    let out = sent(&mut world, SQS, keys(json!({"queueUrlPattern": queue("gone")}))).await;
    fails(
        &out,
        "no such queue (Service: AmazonSQS; Status Code: 400; Error Code: QueueDoesNotExist; Request ID: )",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sns_messages_are_signed_and_its_refusals_are_told() {
    let server = FakeHttpServer::start(|request| {
        aws::is_signed(request, "eu-central-1", "sns");
        if request.body.contains("gone") {
            let error = "<ErrorResponse><Error><Code>NotFound</Code><Message>no topic</Message></Error>\
                         <RequestId>r-9</RequestId></ErrorResponse>";
            return answer(404, &[], error);
        }
        let published =
            "<PublishResponse><MessageId>m-2</MessageId><RequestId>r-2</RequestId></PublishResponse>";
        answer(200, &[], published)
    })
    .await;
    let mut world = world(&server).await;
    let out = sent(
        &mut world,
        SNS,
        keys(json!({"topicArnPattern": "arn:${deviceName}"})),
    )
    .await;
    succeeds(
        &out,
        &json!({"t": 5}),
        &json!({"messageId": "m-2", "requestId": "r-2"}),
    );
    let form = server.last().form();
    assert!(
        form.contains(&("TopicArn".to_owned(), "arn:thing".to_owned())),
        "{form:?}"
    );
    assert!(
        form.contains(&("Message".to_owned(), r#"{"t":5}"#.to_owned())),
        "{form:?}"
    );

    let out = sent(&mut world, SNS, keys(json!({"topicArnPattern": "arn:gone"}))).await;
    fails(
        &out,
        "no topic (Service: AmazonSNS; Status Code: 404; Error Code: NotFound; Request ID: r-9)",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lambda_results_become_bodies_and_its_exceptions_failures() {
    let server = FakeHttpServer::start(|request| {
        aws::is_signed(request, "us-east-1", "lambda");
        let id = ("x-amzn-RequestId", "r-3");
        match request.target.contains("broken") {
            false => answer(200, &[id], r#"{"ok":1}"#),
            true => answer(200, &[id, ("X-Amz-Function-Error", "Unhandled")], r#"{"oops":1}"#),
        }
    })
    .await;
    let mut world = world(&server).await;
    let function = |name: &str, fails: bool| {
        json!({
            "accessKey": "AKIDEXAMPLE", "secretKey": aws::SECRET, "functionName": name, "qualifier": "v$[t]",
            "tellFailureIfFuncThrowsExc": fails,
        })
    };
    let out = sent(&mut world, LAMBDA, function("f-${deviceName}", true)).await;
    succeeds(&out, &json!({"ok": 1}), &json!({"requestId": "r-3"}));
    let target = "/2015-03-31/functions/f-thing/invocations?Qualifier=v5";
    assert_eq!(server.last().target, target);
    let out = sent(&mut world, LAMBDA, function("broken", false)).await;
    succeeds(&out, &json!({"oops": 1}), &json!({"requestId": "r-3"}));
    let out = sent(&mut world, LAMBDA, function("broken", true)).await;
    assert_eq!((out.label.as_str(), out.body()), ("Failure", json!({"t": 5})));
    assert_eq!(added(&out), json!({"error": r#"{"oops":1}"#, "requestId": "r-3"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn pubsub_messages_go_with_a_token_of_the_service_account() {
    let server = FakeHttpServer::start(|request| match request.target.as_str() {
        "/token" => answer(200, &[], &google::token(request)),
        _ if request.header("authorization") != "Bearer token-1" => answer(401, &[], "{}"),
        "/v1/projects/p/topics/t:publish" => answer(200, &[], r#"{"messageIds":["17"]}"#),
        _ => answer(404, &[], r#"{"error":{"message":"no such topic"}}"#),
    })
    .await;
    let mut world = world(&server).await;
    let topic = |name: &str| {
        json!({
            "projectId": "p", "topicName": name, "serviceAccountKey": google::key_file(&server.url),
            "messageAttributes": {"name": "${deviceName}"},
        })
    };
    let out = sent(&mut world, PUBSUB, topic("t")).await;
    succeeds(&out, &json!({"t": 5}), &json!({"messageId": "17"}));
    let message = &server.last().json()["messages"][0];
    assert_eq!(
        message,
        &json!({"data": "eyJ0Ijo1fQ==", "attributes": {"name": "thing"}})
    );
    fails(
        &sent(&mut world, PUBSUB, topic("gone")).await,
        "404 Not Found no such topic",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_hubs_get_messages_of_devices_they_know() {
    let hub = FakeIotHub::start().await;
    let mut world = world_with(CloudEndpoints {
        azure_port: Some(hub.port),
        ..CloudEndpoints::default()
    })
    .await;
    // "key" in Base64.
    let credentials = json!({"type": "sas", "sasKey": "a2V5", "caCert": hub.certificate});
    let patch = json!({
        "host": "127.0.0.1", "clientId": "device-1", "topicPattern": "devices/${deviceName}/messages/events/",
        "credentials": credentials,
    });
    let out = sent(&mut world, AZURE, patch.clone()).await;
    succeeds(&out, &json!({"t": 5}), &json!({}));
    let seen = hub.message().await;
    azure::is_signed(&seen, "127.0.0.1", b"key");
    assert_eq!(
        (&seen["client"], &seen["topic"], &seen["body"]),
        (
            &json!("device-1"),
            &json!("devices/thing/messages/events/"),
            &json!(r#"{"t":5}"#)
        )
    );

    // The hub has gone.
    let out = sent(&mut world, AZURE, patch).await;
    assert_eq!((out.label.as_str(), out.body()), ("Failure", json!({"t": 5})));
    assert_eq!(added(&out), json!({ "error": out.error }));
    assert!(
        out.error.as_deref().unwrap().contains("not connected: "),
        "{:?}",
        out.error
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_and_sms_go_to_the_accounts_of_the_node() {
    let server = FakeHttpServer::start(|request| match request.target.as_str() {
        "/chat.postMessage" if request.header("authorization") != "Bearer xoxb-1" => {
            answer(200, &[], r#"{"ok": false, "error": "invalid_auth"}"#)
        }
        "/chat.postMessage" => answer(200, &[], r#"{"ok": true}"#),
        _ => answer(400, &[], r#"{"message": "no such number"}"#),
    })
    .await;
    let mut world = world(&server).await;
    let slack = |token: &str| {
        json!({
            "useSystemSettings": false, "botToken": token, "conversation": {"id": "C1"},
            "messageTemplate": "${deviceName}: $[t]",
        })
    };
    let out = sent(&mut world, SLACK, slack("xoxb-1")).await;
    succeeds(&out, &json!({"t": 5}), &json!({}));
    assert_eq!(server.last().json(), json!({"channel": "C1", "text": "thing: 5"}));
    let out = sent(&mut world, SLACK, slack("xoxb-2")).await;
    assert_eq!((out.label.as_str(), out.body()), ("Failure", json!({"t": 5})));
    assert!(out.error.unwrap().contains("invalid_auth"));

    let twilio =
        json!({"type": "TWILIO", "accountSid": "AC1", "accountToken": "t", "numberFrom": "+15550001"});
    let patch = json!({
        "useSystemSmsSettings": false, "smsProviderConfiguration": twilio, "numbersToTemplate": "+4912345",
        "smsMessageTemplate": "$[t] degrees",
    });
    let out = sent(&mut world, SMS, patch).await;
    assert_eq!(
        out.error.as_deref(),
        Some("Failed to send SMS message - no such number")
    );
    assert!(
        server
            .last()
            .form()
            .contains(&("Body".to_owned(), "5 degrees".to_owned()))
    );
}

/// Starts to send a message; the worker goes on meanwhile.
fn start(world: &mut World, node: &Arc<dyn Node>, msg: RuleMessage) -> crate::node::NodeFuture {
    let begun = Instant::now();
    let step = node.handle(&mut world.ctx(), msg);
    assert!(
        begun.elapsed() < Duration::from_millis(500),
        "the worker was held up"
    );
    match step {
        NodeResult::Suspend(Suspension::Outside(waiting)) => waiting,
        other => panic!("{other:?}"),
    }
}

// Of one thread, so that its clock can be stopped.
#[tokio::test]
async fn servers_that_hang_cost_their_messages_only() {
    let silent = FakeHttpServer::silent().await;
    let live = FakeHttpServer::always(200, json!({"ok": 1})).await;
    let mut world = world(&silent).await;
    let port = silent.port();
    let address = format!("127.0.0.1:{port}");
    let mail = json!({"from": "a@b.c", "to": "a@b.c", "subject": "s", "body": "b"});
    let properties = json!({
        "max.block.ms": "900", "delivery.timeout.ms": "900", "request.timeout.ms": "400",
    });
    let azure = json!({"type": "sas", "sasKey": "a2V5"});
    let twilio =
        json!({"type": "TWILIO", "accountSid": "AC1", "accountToken": "t", "numberFrom": "+15550001"});
    let host = |more: Value| {
        let mut host = json!({"host": "127.0.0.1", "port": port});
        host.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        host
    };
    let nodes = [
        (
            REST,
            json!({"restEndpointUrlPattern": silent.url, "readTimeoutMs": 300}),
        ),
        (MQTT, host(json!({"connectTimeoutSec": 1}))),
        (
            AZURE,
            host(json!({"clientId": "d", "connectTimeoutSec": 1, "credentials": azure})),
        ),
        (
            KAFKA,
            json!({"bootstrapServers": address, "otherProperties": properties}),
        ),
        (
            RABBIT,
            host(json!({"connectionTimeout": 500, "handshakeTimeout": 500})),
        ),
        (SQS, keys(json!({"queueUrlPattern": format!("{}/q", silent.url)}))),
        (SNS, keys(json!({}))),
        (
            LAMBDA,
            json!({"accessKey": "a", "secretKey": "s", "functionName": "f", "requestTimeout": 1}),
        ),
        (
            PUBSUB,
            json!({"serviceAccountKey": google::key_file(&silent.url)}),
        ),
        (
            MAIL,
            json!({"useSystemSmtpSettings": false, "smtpHost": "127.0.0.1", "smtpPort": port, "timeout": 500}),
        ),
        (
            SLACK,
            json!({"useSystemSettings": false, "botToken": "xoxb-1", "conversation": {"id": "C1"}}),
        ),
        (
            SMS,
            json!({
                "useSystemSmsSettings": false, "smsProviderConfiguration": twilio,
                "numbersToTemplate": "+4912345",
            }),
        ),
    ];
    let mut waiting = Vec::new();
    for (class, patch) in nodes {
        let node = world.node(class, patch);
        let (kind, body) = match class {
            MAIL => (MsgType::SendEmail, mail.clone()),
            _ => (MsgType::PostTelemetry, json!({"t": 5})),
        };
        let msg = world.msg(kind, nobody(), &body);
        let step = start(&mut world, &node, msg);
        waiting.push(async move { (class, body, timeout(Duration::from_secs(60), step).await) });
    }
    let waiting = tokio::spawn(join_all(waiting));
    let out = sent(&mut world, REST, json!({"restEndpointUrlPattern": live.url})).await;
    assert_eq!((out.label.as_str(), out.body()), ("Success", json!({"ok": 1})));
    assert!(!waiting.is_finished());
    // From here on time passes as fast as everybody waits.
    tokio::time::pause();
    for (class, body, step) in waiting.await.unwrap() {
        match step {
            Ok(NodeResult::Fail(msg, error)) => {
                assert_eq!(msg.data.to_text(), body.to_string(), "{class}");
                assert!(!error.to_string().is_empty(), "{class}");
            }
            other => panic!("{class}: {other:?}"),
        }
    }
}
