use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mqtt::{MqttClient, MqttConfig};
use fieldline_testkit::services::{MosquittoSubscriber, TcpProxy, port, service_variable, unique};
use serde_json::{Value, json};

fn client(configuration: Value) -> MqttClient {
    let mut full = json!({
        "host": "127.0.0.1",
        "port": port("FIELDLINE_TEST_MQTT"),
        "protocolVersion": "MQTT_3_1_1",
        "credentials": {"type": "basic", "username": "alice", "password": "alice-secret"},
    });
    let changes = configuration.as_object().unwrap().clone();
    full.as_object_mut().unwrap().extend(changes);
    MqttClient::open(&MqttConfig::from_json(&full).unwrap(), "node-1", &Egress::open()).unwrap()
}

#[tokio::test]
#[ignore = "needs Mosquitto: tests/services/with-mosquitto.sh"]
async fn mqtt_messages_arrive_in_each_version() {
    for version in ["MQTT_3_1", "MQTT_3_1_1", "MQTT_5"] {
        let topic = unique("fieldline/test");
        let mut subscriber = MosquittoSubscriber::to(&topic).await;
        let client = client(json!({
            "protocolVersion": version,
            "clientId": unique("c"),
            "retainedMessage": true,
            "parseToPlainText": true,
        }));
        client.send(&topic, "\"a \\\"text\\\"\"").await.unwrap();
        assert_eq!(
            subscriber.line_with("got").await,
            format!("got {topic} 1 0 a \"text\""),
            "{version}"
        );
        // The broker has kept it.
        let mut later = MosquittoSubscriber::to(&topic).await;
        assert_eq!(
            later.line_with("got").await,
            format!("got {topic} 1 1 a \"text\""),
            "{version}"
        );
    }
}

#[tokio::test]
#[ignore = "needs Mosquitto: tests/services/with-mosquitto.sh"]
async fn mqtt_client_certificates_open_the_door() {
    let read = |name: &str| {
        std::fs::read_to_string(format!(
            "{}/{name}",
            service_variable("FIELDLINE_TEST_CERTIFICATES")
        ))
        .unwrap()
    };
    let topic = unique("fieldline/tls");
    let mut subscriber = MosquittoSubscriber::to(&topic).await;
    let with = |credentials: Value| {
        client(json!({"port": port("FIELDLINE_TEST_MQTT_TLS"), "ssl": true, "credentials": credentials}))
    };
    let known = with(json!({
        "type": "cert.PEM", "caCert": read("ca.pem"), "cert": read("client.pem"), "privateKey": read("client.key"),
    }));
    known.send(&topic, "over TLS").await.unwrap();
    assert_eq!(
        subscriber.line_with("got").await,
        format!("got {topic} 1 0 over TLS")
    );

    let error = with(json!({"type": "cert.PEM", "caCert": read("ca.pem")}))
        .send(&topic, "x")
        .await;
    assert_eq!(error.unwrap_err().metadata[0].0, "error");
    let error = with(json!({"type": "anonymous"}))
        .send(&topic, "x")
        .await
        .unwrap_err();
    assert!(error.message.contains("certificate"), "{error}");
}

#[tokio::test]
#[ignore = "needs Mosquitto: tests/services/with-mosquitto.sh"]
async fn mqtt_survives_lost_connections() {
    let topic = unique("fieldline/cut");
    let mut subscriber = MosquittoSubscriber::to(&topic).await;
    let proxy = TcpProxy::to(service_variable("FIELDLINE_TEST_MQTT")).await;
    let client = client(json!({"port": proxy.port, "clientId": unique("c"), "cleanSession": false}));
    for number in 0..20 {
        client.send(&topic, &number.to_string()).await.unwrap();
        if number % 5 == 0 {
            proxy.cut();
        }
    }
    for number in 0..20 {
        // A message that was cut off may come twice, but none is missing.
        let wanted = format!("got {topic} 1 0 {number}");
        while subscriber.line_with("got").await != wanted {}
    }
}

#[tokio::test]
#[ignore = "needs Mosquitto: tests/services/with-mosquitto.sh"]
async fn mqtt_refusals_are_told() {
    let credentials = json!({"type": "basic", "username": "alice", "password": "guessed-secret"});
    let client = client(json!({"credentials": credentials}));
    let error = client.send("t", "x").await.unwrap_err();
    assert!(
        error.message.contains("not connected: connection refused"),
        "{error}"
    );
    assert!(!error.message.contains("guessed-secret"));
    let error = client.send("a/#", "x").await.unwrap_err();
    assert!(error.message.contains("not a topic"), "{error}");
}
