use fieldline_connectors::NodeConfig;
use fieldline_connectors::rabbitmq::{RabbitMqClient, RabbitMqConfig};
use lapin::options::{BasicGetOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};
use serde_json::json;

use crate::proxy::Proxy;
use crate::{told, unique};

fn client(port: u16, password: &str, properties: Option<&str>) -> RabbitMqClient {
    let config = RabbitMqConfig::from_json(&json!({
        "host": "127.0.0.1",
        "port": port,
        "password": password,
        "messageProperties": properties,
        "clientProperties": {"product": "fieldline"},
    }));
    RabbitMqClient::new(&config.unwrap()).unwrap()
}

fn broker() -> (String, u16) {
    let address = told("FIELDLINE_TEST_RABBITMQ");
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    (address, port)
}

/// A channel of the test's own, and a queue.
async fn queue() -> (Connection, Channel, String) {
    let uri = format!("amqp://guest:guest@{}/%2f", broker().0);
    let connection = Connection::connect(&uri, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let name = unique("queue");
    let options = QueueDeclareOptions::default();
    channel
        .queue_declare(name.as_str().into(), options, FieldTable::default())
        .await
        .unwrap();
    (connection, channel, name)
}

#[tokio::test]
#[ignore = "needs RabbitMQ: tests/services/with-rabbitmq.sh"]
async fn rabbitmq_has_what_was_confirmed() {
    let (_connection, channel, queue) = queue().await;
    let cases = [
        (None, None, None),
        (Some("PERSISTENT_TEXT_PLAIN"), Some("text/plain"), Some(2)),
        (Some("BASIC"), Some("application/octet-stream"), Some(1)),
    ];
    for (properties, content_type, mode) in cases {
        client(broker().1, "guest", properties)
            .send("", &queue, r#"{"t":1}"#)
            .await
            .unwrap();
        let options = BasicGetOptions { no_ack: true };
        let got = channel
            .basic_get(queue.as_str().into(), options)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(got.delivery.data, br#"{"t":1}"#);
        let got = &got.delivery.properties;
        assert_eq!(
            got.content_type().as_ref().map(|text| text.as_str()),
            content_type
        );
        assert_eq!(*got.delivery_mode(), mode);
    }
}

#[tokio::test]
#[ignore = "needs RabbitMQ: tests/services/with-rabbitmq.sh"]
async fn rabbitmq_comes_back_after_a_wrong_exchange_and_a_lost_connection() {
    let (_connection, _channel, queue) = queue().await;
    let (address, _) = broker();
    let proxy = Proxy::to(address).await;
    let client = client(proxy.port, "guest", None);
    client.send("", &queue, "1").await.unwrap();

    let error = client.send("no-such-exchange", &queue, "2").await.unwrap_err();
    assert!(error.message.contains("NOT_FOUND"), "{error}");
    assert_eq!(error.metadata[0].0, "error");
    client.send("", &queue, "3").await.unwrap();

    proxy.cut();
    // It may take a message to see that the connection is gone.
    let mut lost = 0;
    while client.send("", &queue, "4").await.is_err() {
        lost += 1;
        assert!(lost < 20, "connection did not come back");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
#[ignore = "needs RabbitMQ: tests/services/with-rabbitmq.sh"]
async fn rabbitmq_does_not_take_everybody() {
    let client = client(broker().1, "guessed-secret", None);
    let error = client.send("", "q", "x").await.unwrap_err();
    assert!(
        error.message.contains("ACCESS_REFUSED") || error.message.contains("not connected"),
        "{error}"
    );
    assert!(!error.message.contains("guessed-secret"));
}
