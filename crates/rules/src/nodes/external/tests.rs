mod clouds;
mod services;

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::ports::StoreResult;
use fieldline_model::TenantId;
use fieldline_model::message::{MetadataMap, MsgType};
use fieldline_testkit::fakes::server::{FakeHttpServer, answer};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::external::{AiResource, ExternalNodeSettings, ServiceAccounts};
use crate::nodes::tests::{World, nobody, upgraded};
use crate::services::NodeServices;

const REST: &str = "rest.TbRestApiCallNode";
const MQTT: &str = "mqtt.TbMqttNode";
const AZURE: &str = "mqtt.azure.TbAzureIotHubNode";
const KAFKA: &str = "kafka.TbKafkaNode";
const RABBIT: &str = "rabbitmq.TbRabbitMqNode";
const SQS: &str = "aws.sqs.TbSqsNode";
const SNS: &str = "aws.sns.TbSnsNode";
const LAMBDA: &str = "aws.lambda.TbAwsLambdaNode";
const PUBSUB: &str = "gcp.pubsub.TbPubSubNode";
const MAIL: &str = "mail.TbSendEmailNode";
const SMS: &str = "sms.TbSendSmsNode";
const SLACK: &str = "notification.TbSlackNode";
const NOTIFICATION: &str = "notification.TbNotificationNode";
const AI: &str = "ai.TbAiNode";

fn meta<const N: usize>(entries: [(&str, &str); N]) -> MetadataMap {
    entries.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rest_call_is_made_of_the_message_and_its_answer_goes_on() {
    let mut world = World::new().await;
    let server = FakeHttpServer::start(|_| answer(200, &[("x-answer", "yes")], r#"{"got":1}"#)).await;
    let node = world.node(
        REST,
        json!({
            "restEndpointUrlPattern": format!("{}/${{path}}", server.url), "requestMethod": "PUT",
            "headers": {"X-${name}": "$[t]"}, "queryParams": [{"key": "q", "value": "${name} & co"}],
            "requestBodyTemplate": "{\"said\": \"$[text]\"}",
        }),
    );
    let metadata = meta([("path", "a/b"), ("name", "thing")]);
    let body = json!({"t": 5, "text": "a \"quote\""});
    let msg = world.msg_with(MsgType::PostTelemetry, nobody(), &body, metadata);
    let out = world.one(&node, msg).await;
    assert_eq!(
        (out.label.as_str(), out.body()),
        ("Success", json!({"got": 1})),
        "{:?}",
        out.error
    );
    assert_eq!(
        (out.meta("status").as_deref(), out.meta("statusCode").as_deref()),
        (Some("OK"), Some("200"))
    );
    assert_eq!(
        (out.meta("X-Answer").as_deref(), out.meta("path").as_deref()),
        (Some("yes"), Some("a/b"))
    );
    let request = server.last();
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("PUT", "/a/b?q=thing%20%26%20co")
    );
    assert_eq!(request.header("x-thing"), "5");
    assert_eq!(request.body, r#"{"said": "a \"quote\""}"#);

    let server = FakeHttpServer::start(|_| answer(404, &[], "no such thing")).await;
    let node = world.node(REST, json!({"restEndpointUrlPattern": server.url}));
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"a": 1}));
    let out = world.one(&node, msg).await;
    assert_eq!((out.label.as_str(), out.body()), ("Failure", json!({"a": 1})));
    assert_eq!(out.meta("statusCode").as_deref(), Some("404"));
    assert_eq!(out.meta("error_body").as_deref(), Some("no such thing"));
    assert_eq!(out.meta("error"), out.error);
    assert_eq!(server.last().body, r#"{"a":1}"#);
}

/// Waits for a message in the queue.
async fn queued(world: &World) -> fieldline_model::message::QueueMessage {
    loop {
        if let Some(message) = world.queue.take().pop() {
            return message;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_can_be_acknowledged_before_they_are_sent() {
    let mut world = World::new().await;
    let server = FakeHttpServer::always(200, json!({})).await;
    set_external(
        &mut world,
        ExternalNodeSettings {
            force_ack: true,
            ..ExternalNodeSettings::default()
        },
    );
    for (url, label) in [
        (server.url.clone(), "Success"),
        ("ftp://nowhere".to_owned(), "Failure"),
    ] {
        let node = world.node(REST, json!({"restEndpointUrlPattern": url}));
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"a": 1}));
        assert!(world.send(&node, msg.clone()).await.is_empty());
        let next = queued(&world).await;
        assert_eq!(next.from, Some((world.node, label.to_owned())));
        assert_eq!(
            (next.originator, next.metadata.get("deviceName")),
            (msg.originator, Some("thing"))
        );
        assert_ne!(next.id, msg.id);
    }
}

fn set_external(world: &mut World, external: ExternalNodeSettings) {
    let old = &world.services;
    world.services = Arc::new(NodeServices {
        external,
        ..NodeServices::clone(old)
    });
}

struct Kept {
    model: Value,
}

#[async_trait]
impl ServiceAccounts for Kept {
    async fn settings(&self, _: TenantId, key: &str) -> StoreResult<Option<Value>> {
        Ok((key == "mail")
            .then(|| json!({"smtpHost": "127.0.0.1", "smtpPort": 1, "timeout": 2000, "mailFrom": "a@b.c"})))
    }

    async fn ai_model(&self, _: TenantId, id: Uuid) -> StoreResult<Option<Value>> {
        Ok((id == Uuid::from_u128(7)).then(|| self.model.clone()))
    }

    async fn resource(&self, _: TenantId, id: Uuid) -> StoreResult<Option<AiResource>> {
        Ok((id == Uuid::from_u128(8)).then(|| AiResource {
            media_type: "text/plain".to_owned(),
            data: b"the manual".to_vec(),
        }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_with_prompts_and_resources() {
    let mut world = World::new().await;
    let content = json!({"role": "assistant", "content": r#"{"hot":true}"#});
    let server = FakeHttpServer::always(200, json!({ "message": content })).await;
    let model = json!({"provider": "OLLAMA", "modelId": "m", "providerConfig": {"baseUrl": server.url, "auth": {"type": "NONE"}}});
    set_external(
        &mut world,
        ExternalNodeSettings {
            accounts: Arc::new(Kept { model }),
            ..ExternalNodeSettings::default()
        },
    );
    let patch = json!({
        "modelId": {"entityType": "AI_MODEL", "id": Uuid::from_u128(7)}, "userPrompt": "Is $[t] hot?",
        "resourceIds": [Uuid::from_u128(8)], "forceAck": false,
    });
    let node = world.node(AI, patch);
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"t": 99}));
    let out = world.one(&node, msg.clone()).await;
    assert_eq!(
        (out.label.as_str(), out.body()),
        ("Success", json!({"hot": true})),
        "{:?}",
        out.error
    );
    let request = server.last().body;
    assert!(
        request.contains("Is 99 hot?") && request.contains("the manual"),
        "{request}"
    );

    let node = world.node(AI, json!({"modelId": Uuid::from_u128(9), "userPrompt": "?"}));
    assert!(
        world.send(&node, msg).await.is_empty(),
        "it is acknowledged first by default"
    );
    assert_eq!(queued(&world).await.from.unwrap().1, "Failure");
    assert_eq!(
        world.wrong(AI, json!({"modelId": "x", "userPrompt": "?"})),
        "modelId"
    );
    assert_eq!(
        world.wrong(AI, json!({"modelId": Uuid::from_u128(7)})),
        "userPrompt"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_configured_says_so() {
    let mut world = World::new().await;
    let mail = json!({"to": "a@b.c", "subject": "s", "body": "b"});
    let node = world.node(MAIL, json!({}));
    for (kind, body, problem) in [
        (
            MsgType::SendEmail,
            &mail,
            "Unable to send mail: no mail server is configured",
        ),
        (
            MsgType::PostTelemetry,
            &mail,
            "Not expected msg type POST_TELEMETRY_REQUEST for SendEmail Node",
        ),
        (
            MsgType::SendEmail,
            &json!({"to": " "}),
            "Email destination can not be blank",
        ),
    ] {
        let msg = world.msg(kind, nobody(), body);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
    for (class, patch, problem) in [
        (
            SMS,
            json!({}),
            "Unable to send SMS: no SMS provider is configured",
        ),
        (
            SLACK,
            json!({"conversation": {"id": "C1"}}),
            "Slack token is missing",
        ),
        (
            NOTIFICATION,
            json!({"targets": [Uuid::nil()], "templateId": {"id": Uuid::nil()}}),
            "Notifications are not supported: there is no notification center",
        ),
    ] {
        let node = world.node(class, patch);
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
    set_external(
        &mut world,
        ExternalNodeSettings {
            accounts: Arc::new(Kept { model: Value::Null }),
            ..ExternalNodeSettings::default()
        },
    );
    let node = world.node(MAIL, json!({}));
    let msg = world.msg(MsgType::SendEmail, nobody(), &mail);
    let error = world.one(&node, msg).await.error.unwrap();
    assert!(
        error.starts_with("Unable to send mail: ") && !error.contains("configured"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_fails_and_keeps_the_message() {
    let mut world = World::new().await;
    let nowhere = json!({"host": "127.0.0.1", "port": 1, "connectTimeoutSec": 2});
    let properties = json!({
        "bootstrapServers": "127.0.0.1:1",
        "otherProperties": {"max.block.ms": "500", "delivery.timeout.ms": "500", "request.timeout.ms": "200"},
    });
    for (class, patch) in [(MQTT, nowhere.clone()), (RABBIT, nowhere), (KAFKA, properties)] {
        let node = world.node(class, patch);
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"a": 1}));
        let out = world.one(&node, msg).await;
        assert_eq!(
            (out.label.as_str(), out.body()),
            ("Failure", json!({"a": 1})),
            "{class}"
        );
        assert!(
            out.meta("error").is_some_and(|error| !error.is_empty()),
            "{class}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_configurations_are_named() {
    let world = World::new().await;
    for (class, patch, field) in [
        (
            REST,
            json!({"restEndpointUrlPattern": ""}),
            "restEndpointUrlPattern",
        ),
        (REST, json!({"requestMethod": "FETCH"}), "requestMethod"),
        (
            REST,
            json!({"maxInMemoryBufferSizeInKb": 30_000}),
            "maxInMemoryBufferSizeInKb",
        ),
        (MQTT, json!({}), "host"),
        (AZURE, json!({}), "clientId"),
        (KAFKA, json!({"bootstrapServers": ""}), "bootstrapServers"),
        (RABBIT, json!({}), "host"),
        (SQS, json!({"queueUrlPattern": ""}), "queueUrlPattern"),
        (SNS, json!({"topicArnPattern": ""}), "topicArnPattern"),
        (LAMBDA, json!({"functionName": "f"}), "accessKey"),
        (PUBSUB, json!({}), "serviceAccountKey"),
        (
            MAIL,
            json!({"useSystemSmtpSettings": false, "smtpHost": ""}),
            "smtpHost",
        ),
        (
            SMS,
            json!({"useSystemSmsSettings": false}),
            "smsProviderConfiguration",
        ),
        (SLACK, json!({}), "conversation.id"),
    ] {
        assert_eq!(world.wrong(class, patch), field, "{class}");
    }
}

#[test]
fn older_configurations_are_brought_up_to_date() {
    let old = upgraded(
        REST,
        0,
        json!({"trimDoubleQuotes": true, "useRedisQueueForMsgPersistence": false, "headers": {}}),
    );
    let new = json!({
        "parseToPlainText": true, "headers": {}, "maxInMemoryBufferSizeInKb": 256, "requestBodyTemplate": null,
    });
    assert_eq!(old, new);
    let old = upgraded(MQTT, 0, json!({"host": "h"}));
    assert_eq!(
        old,
        json!({"host": "h", "parseToPlainText": false, "protocolVersion": "MQTT_3_1"})
    );
    let old = upgraded(AZURE, 0, json!({"host": "h"}));
    assert_eq!(old, json!({"host": "h", "protocolVersion": "MQTT_3_1_1"}));
    let old = upgraded(
        KAFKA,
        0,
        json!({"keySerializer": "a", "valueSerializer": "b", "acks": "1"}),
    );
    assert_eq!(old, json!({"acks": "1"}));
}
