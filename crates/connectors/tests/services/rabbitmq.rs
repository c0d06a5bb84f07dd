use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::rabbitmq::{RabbitMqClient, RabbitMqConfig};
use fieldline_testkit::services::{RabbitmqQueue, TcpProxy, port, service_variable};
use serde_json::json;

const ADDRESS: &str = "FIELDLINE_TEST_RABBITMQ";

fn client(port: u16, password: &str, properties: Option<&str>) -> RabbitMqClient {
    let config = RabbitMqConfig::from_json(&json!({
        "host": "127.0.0.1",
        "port": port,
        "password": password,
        "messageProperties": properties,
        "clientProperties": {"product": "fieldline"},
    }));
    RabbitMqClient::new(&config.unwrap(), &Egress::open()).unwrap()
}

#[tokio::test]
#[ignore = "needs RabbitMQ: tests/services/with-rabbitmq.sh"]
async fn rabbitmq_has_what_was_confirmed() {
    let queue = RabbitmqQueue::declare().await;
    let cases = [
        (None, None, None),
        (Some("PERSISTENT_TEXT_PLAIN"), Some("text/plain"), Some(2)),
        (Some("BASIC"), Some("application/octet-stream"), Some(1)),
    ];
    for (properties, content_type, mode) in cases {
        client(port(ADDRESS), "guest", properties)
            .send("", &queue.name, r#"{"t":1}"#)
            .await
            .unwrap();
        let got = queue.get().await;
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
    let queue = RabbitmqQueue::declare().await;
    let proxy = TcpProxy::to(service_variable(ADDRESS)).await;
    let client = client(proxy.port, "guest", None);
    client.send("", &queue.name, "1").await.unwrap();

    let error = client
        .send("no-such-exchange", &queue.name, "2")
        .await
        .unwrap_err();
    assert!(error.message.contains("NOT_FOUND"), "{error}");
    assert_eq!(error.metadata[0].0, "error");
    client.send("", &queue.name, "3").await.unwrap();

    proxy.cut();
    // It may take a message to see that the connection is gone.
    let mut lost = 0;
    while client.send("", &queue.name, "4").await.is_err() {
        lost += 1;
        assert!(lost < 20, "connection did not come back");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
#[ignore = "needs RabbitMQ: tests/services/with-rabbitmq.sh"]
async fn rabbitmq_does_not_take_everybody() {
    let client = client(port(ADDRESS), "guessed-secret", None);
    let error = client.send("", "q", "x").await.unwrap_err();
    assert!(
        error.message.contains("ACCESS_REFUSED") || error.message.contains("not connected"),
        "{error}"
    );
    assert!(!error.message.contains("guessed-secret"));
}
