//! Nodes against real servers, which the scripts in `tests/services` of the repository start.

use fieldline_testkit::services::{
    MosquittoSubscriber, RabbitmqQueue, consume_with_kafka, find_mail, port, service_variable, unique,
};

use super::*;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Mosquitto: tests/services/with-mosquitto.sh"]
async fn mqtt_node_publishes_and_tells_refusals() {
    let mut world = World::new().await;
    let topic = unique("node");
    let mut subscriber = MosquittoSubscriber::to(&format!("{topic}/thing")).await;
    let broker = |password: &str| {
        json!({
            "host": "127.0.0.1", "port": port("FIELDLINE_TEST_MQTT"), "topicPattern": format!("{topic}/${{deviceName}}"),
            "credentials": {"type": "basic", "username": "alice", "password": password},
        })
    };
    let node = world.node(MQTT, broker("alice-secret"));
    for number in 1..=3 {
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({ "t": number }));
        let out = world.one(&node, msg).await;
        assert_eq!(out.label, "Success", "{:?}", out.error);
        assert_eq!((out.body(), out.meta("error")), (json!({ "t": number }), None));
        assert_eq!(
            subscriber.line_with("got").await,
            format!("got {topic}/thing 1 0 {{\"t\":{number}}}")
        );
    }

    let node = world.node(MQTT, broker("guessed-secret"));
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"t": 5}));
    let out = world.one(&node, msg).await;
    assert_eq!((out.label.as_str(), out.body()), ("Failure", json!({"t": 5})));
    assert_eq!(out.meta("error"), out.error);
    let error = out.error.unwrap();
    assert!(
        error.contains("refused") && !error.contains("guessed-secret"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn kafka_node_says_where_its_messages_are() {
    let mut world = World::new().await;
    let topic = unique("node");
    let configuration = |patch: Value| {
        let mut configuration = json!({
            "bootstrapServers": service_variable("FIELDLINE_TEST_KAFKA"), "topicPattern": format!("{topic}-${{deviceName}}"),
            "keyPattern": "$[key]", "addMetadataKeyValuesAsKafkaHeaders": true,
        });
        configuration
            .as_object_mut()
            .unwrap()
            .extend(patch.as_object().unwrap().clone());
        configuration
    };
    let node = world.node(KAFKA, configuration(json!({})));
    let mut expected = Vec::new();
    for key in ["a", "b", "a"] {
        let body = json!({ "key": key });
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &body);
        let out = world.one(&node, msg).await;
        assert_eq!(
            (out.label.as_str(), &out.body()),
            ("Success", &body),
            "{:?}",
            out.error
        );
        let (offset, partition) = (out.meta("offset").unwrap(), out.meta("partition").unwrap());
        assert_eq!(out.meta("topic"), Some(format!("{topic}-thing")));
        expected.push(format!(
            "Partition:{partition}\tOffset:{offset}\ttb_msg_md_deviceName:thing\t{key}\t{body}"
        ));
    }
    expected.sort();
    assert_eq!(consume_with_kafka(&format!("{topic}-thing"), 3), expected);

    // The listener asks for a login that this node does not know.
    let properties =
        json!({"max.block.ms": "2000", "delivery.timeout.ms": "2000", "request.timeout.ms": "1000"});
    let wrong = json!({"bootstrapServers": service_variable("FIELDLINE_TEST_KAFKA_SASL"), "otherProperties": properties});
    let node = world.node(KAFKA, configuration(wrong));
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"key": "a"}));
    let out = world.one(&node, msg).await;
    assert_eq!((out.label.as_str(), out.body()), ("Failure", json!({"key": "a"})));
    assert!(out.error.is_some() && out.meta("error") == out.error);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: tests/services/with-rabbitmq.sh"]
async fn rabbitmq_node_publishes_and_tells_refusals() {
    let mut world = World::new().await;
    let queue = RabbitmqQueue::declare().await;
    let broker = json!({
        "host": "127.0.0.1", "port": port("FIELDLINE_TEST_RABBITMQ"), "exchangeNamePattern": "${exchange}",
        "routingKeyPattern": queue.name, "messageProperties": "PERSISTENT_TEXT_PLAIN",
    });
    let node = world.node(RABBIT, broker);
    for (exchange, label) in [("", "Success"), ("no-such-exchange", "Failure"), ("", "Success")] {
        let metadata = meta([("exchange", exchange)]);
        let msg = world.msg_with(MsgType::PostTelemetry, nobody(), &json!({"t": 5}), metadata);
        let out = world.one(&node, msg).await;
        assert_eq!(
            (out.label.as_str(), out.body()),
            (label, json!({"t": 5})),
            "{:?}",
            out.error
        );
        assert_eq!(out.meta("error"), out.error);
        match &out.error {
            Some(error) => assert!(error.contains("NOT_FOUND"), "{error}"),
            None => assert_eq!(queue.get().await.delivery.data, br#"{"t":5}"#),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a mail server: tests/services/with-smtp.sh"]
async fn smtp_node_sends_what_the_node_before_it_has_made() {
    let mut world = World::new().await;
    let subject = unique("subject");
    let maker = world.node(
        "mail.TbMsgToEmailNode",
        json!({
            "fromTemplate": "platform@example.org", "toTemplate": "a@example.org", "bccTemplate": "b@example.org",
            "subjectTemplate": format!("{subject} of ${{deviceName}}"), "bodyTemplate": "$[t] degrees",
        }),
    );
    let server = |password: &str| {
        json!({
            "useSystemSmtpSettings": false, "smtpHost": "localhost", "smtpPort": service_variable("FIELDLINE_TEST_SMTP_PORT"),
            "username": "alice", "password": password,
        })
    };
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"t": 5}));
    let mail = world.one(&maker, msg).await.msg;
    let node = world.node(MAIL, server("alice-secret"));
    let out = world.one(&node, mail.clone()).await;
    assert_eq!(out.label, "Success", "{:?}", out.error);
    let (envelope, text) = find_mail(&subject);
    assert_eq!(envelope["to"], json!(["a@example.org", "b@example.org"]));
    assert!(
        text.contains("5 degrees") && text.contains(&format!("{subject} of thing")),
        "{text}"
    );

    let node = world.node(MAIL, server("guessed-secret"));
    let out = world.one(&node, mail.clone()).await;
    assert_eq!(
        (out.label.as_str(), out.msg.data.to_text()),
        ("Failure", mail.data.to_text())
    );
    let error = out.error.unwrap();
    assert!(
        error.starts_with("Unable to send mail: ") && !error.contains("guessed-secret"),
        "{error}"
    );
}
