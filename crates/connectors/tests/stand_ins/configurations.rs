use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::ai::AiConfig;
use fieldline_connectors::aws::{LambdaConfig, SnsConfig, SqsConfig};
use fieldline_connectors::azure::AzureIotHubConfig;
use fieldline_connectors::gcp::PubSubConfig;
use fieldline_connectors::kafka::KafkaConfig;
use fieldline_connectors::mail::{SendEmailConfig, SmtpProtocol};
use fieldline_connectors::mqtt::{MqttConfig, MqttVersion};
use fieldline_connectors::rabbitmq::RabbitMqConfig;
use fieldline_connectors::rest::RestConfig;
use fieldline_connectors::slack::SlackConfig;
use fieldline_connectors::sms::SendSmsConfig;
use serde_json::{Value, json};

const HIDDEN: &str = "hidden-hidden";

/// Reads a configuration, and checks that it does not show what is secret.
fn read<T: ConnectorConfig + std::fmt::Debug>(configuration: &Value) -> T {
    let config = T::from_json(configuration).unwrap();
    let shown = format!("{config:?}");
    assert!(!shown.contains(HIDDEN), "{shown}");
    config
}

fn field<T: ConnectorConfig>(configuration: &Value) -> String {
    match T::from_json(configuration) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.field().to_owned(),
    }
}

#[test]
fn mqtt_nodes_of_all_versions_are_read() {
    let mut node = json!({
        "topicPattern": "my-topic", "host": "h", "port": "1884", "connectTimeoutSec": 10, "clientId": null,
        "cleanSession": true, "ssl": false, "retainedMessage": false, "unknown": {},
        "credentials": {"type": "basic", "username": "u", "password": HIDDEN},
    });
    let old: MqttConfig = read(&node);
    assert_eq!((old.protocol_version, old.port), (MqttVersion::V31, 1884));
    node["protocolVersion"] = json!("MQTT_5");
    assert_eq!(read::<MqttConfig>(&node).protocol_version, MqttVersion::V5);

    node["protocolVersion"] = json!("MQTT_3_1");
    node["clientId"] = json!("a client identifier of 24");
    assert_eq!(field::<MqttConfig>(&node), "clientId");
    node["clientId"] = json!("");
    node["credentials"]["type"] = json!("magic");
    assert_eq!(field::<MqttConfig>(&node), "credentials.type");
    assert_eq!(field::<MqttConfig>(&json!({"host": ""})), "host");
    assert_eq!(field::<MqttConfig>(&json!({"host": "h", "port": 70000})), "port");
}

#[test]
fn secrets_do_not_show() {
    read::<RestConfig>(
        &json!({"proxyPassword": HIDDEN, "credentials": {"type": "basic", "password": HIDDEN}}),
    );
    read::<AzureIotHubConfig>(
        &json!({"clientId": "d", "credentials": {"type": "sas", "sasKey": "aGlkZGVu"}}),
    );
    read::<KafkaConfig>(
        &json!({"otherProperties": {"sasl.jaas.config": HIDDEN, "ssl.key.password": HIDDEN}}),
    );
    read::<RabbitMqConfig>(&json!({"host": "h", "password": HIDDEN, "messageProperties": null}));
    read::<SqsConfig>(&json!({"accessKeyId": "a", "secretAccessKey": HIDDEN}));
    read::<SnsConfig>(&json!({"accessKeyId": "a", "secretAccessKey": HIDDEN}));
    read::<LambdaConfig>(&json!({"accessKey": "a", "secretKey": HIDDEN, "functionName": "f"}));
    let conversation = json!({"type": "PUBLIC_CHANNEL", "id": "C1", "name": "n"});
    read::<SlackConfig>(
        &json!({"useSystemSettings": false, "botToken": HIDDEN, "conversation": conversation}),
    );
    let provider =
        json!({"type": "TWILIO", "accountSid": "a", "accountToken": HIDDEN, "numberFrom": "+4912345"});
    read::<SendSmsConfig>(&json!({"useSystemSmsSettings": false, "smsProviderConfiguration": provider}));
    let mail = json!({
        "useSystemSmtpSettings": false, "password": HIDDEN, "proxyPassword": HIDDEN, "smtpPort": "587",
        "smtpProtocol": "smtps", "proxyPort": null,
    });
    let mail: SendEmailConfig = read(&mail);
    assert_eq!(
        (mail.smtp.smtp_port, mail.smtp.smtp_protocol),
        (587, SmtpProtocol::Smtps)
    );
}

#[test]
fn what_is_wrong_is_named() {
    let system = json!({"useSystemSmtpSettings": true, "smtpHost": ""});
    assert_eq!(field::<SendEmailConfig>(&system), "nothing");
    assert_eq!(
        field::<SendEmailConfig>(&json!({"useSystemSmtpSettings": false, "smtpHost": ""})),
        "smtpHost"
    );
    assert_eq!(
        field::<SendEmailConfig>(&json!({"smtpProtocol": "imap"})),
        "smtpProtocol"
    );
    assert_eq!(
        field::<KafkaConfig>(&json!({"bootstrapServers": "h"})),
        "bootstrapServers"
    );
    assert_eq!(field::<KafkaConfig>(&json!({"acks": "2"})), "acks");
    assert_eq!(
        field::<RabbitMqConfig>(&json!({"host": "h", "messageProperties": "X"})),
        "messageProperties"
    );
    assert_eq!(field::<SqsConfig>(&json!({"queueType": "LIFO"})), "queueType");
    assert_eq!(field::<SnsConfig>(&json!({})), "accessKeyId");
    assert_eq!(field::<LambdaConfig>(&json!({})), "functionName");
    assert_eq!(field::<PubSubConfig>(&json!({})), "serviceAccountKey");
    assert_eq!(field::<AiConfig>(&json!({"modelId": "m"})), "userPrompt");
    let provider =
        json!({"type": "SMPP", "host": "h", "port": 2775, "systemId": "s", "password": "too long a one"});
    let node = json!({"useSystemSmsSettings": false, "smsProviderConfiguration": provider});
    assert_eq!(field::<SendSmsConfig>(&node), "smsProviderConfiguration.password");
    assert_eq!(field::<RestConfig>(&json!([])), "configuration");
}
