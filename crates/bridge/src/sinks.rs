//! Where messages go that are no clients of MQTT: HTTP servers and Kafka.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_codec::MqttProperty;
use fieldline_connectors::ConnectorFault;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::kafka::{KafkaClient, KafkaConfig};
use fieldline_connectors::rest::{RestBody, RestCallClient, RestConfig, RestRequest, RestSettings};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::leg::OutgoingMessage;
use crate::options::{HttpSink, KafkaSink, SinkPayload, TOPIC_PLACEHOLDER};
use crate::retries::RefusalCause;

const NO_JSON: &str = "the payload is no JSON";
/// Longest name of a topic of Kafka, bytes.
const MAX_KAFKA_TOPIC: usize = 249;

/// Why a message is not taken.
pub(crate) enum SinkFailure {
    /// It cannot be sent as the settings say.
    Unsendable(String),
    /// It was sent, or there was nobody to send it to.
    Failed(RefusalCause, String),
}

impl SinkFailure {
    /// The reason, for people.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Unsendable(reason) | Self::Failed(_, reason) => reason,
        }
    }
}

/// Takes messages, one at a time or several at once.
pub(crate) enum MessageSink {
    Http {
        client: Box<RestCallClient>,
        settings: HttpSink,
        headers: Vec<(String, String)>,
    },
    Kafka {
        client: Box<KafkaClient>,
        settings: KafkaSink,
    },
}

impl MessageSink {
    /// Sends to an HTTP server.
    ///
    /// # Errors
    /// The setting that cannot work, and why.
    pub(crate) fn http(settings: &HttpSink) -> Result<Self, String> {
        let credentials = match &settings.username {
            Some(username) => {
                json!({ "type": "basic", "username": username, "password": settings.password.clone().unwrap_or_default() })
            }
            None => json!({ "type": "anonymous" }),
        };
        let config = json!({
            "requestMethod": settings.method,
            "credentials": credentials,
            "readTimeoutMs": settings.timeout.0.as_millis() as u64,
            // What is sent is what was received, whatever it is.
            "parseToPlainText": true,
        });
        let config = RestConfig::deserialize(&config).map_err(|error| error.to_string())?;
        let client = RestCallClient::new(&config, &RestSettings::default(), &Egress::open())
            .map_err(|error| error.to_string())?;
        let mut headers: BTreeMap<String, String> = settings.headers.clone();
        if !headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("content-type"))
        {
            let kind = match (settings.payload_only, settings.payload) {
                (true, SinkPayload::Text | SinkPayload::Base64) => "text/plain;charset=UTF-8",
                _ => "application/json",
            };
            headers.insert("Content-Type".to_owned(), kind.to_owned());
        }
        let headers: Vec<_> = headers.into_iter().collect();
        client.check(&http_request(settings, &headers, ""))?;
        Ok(Self::Http {
            client: Box::new(client),
            headers,
            settings: settings.clone(),
        })
    }

    /// Sends to Kafka.
    ///
    /// # Errors
    /// The setting that cannot work, and why.
    pub(crate) fn kafka(settings: &KafkaSink) -> Result<Self, String> {
        let config = json!({
            "topicPattern": settings.topic,
            "bootstrapServers": settings.servers,
            "otherProperties": settings.properties,
        });
        let config = KafkaConfig::deserialize(&config).map_err(|error| error.to_string())?;
        let name = format!("fieldline-{}", settings.name);
        let client = KafkaClient::new(&config, &name, &Egress::open());
        Ok(Self::Kafka {
            client: Box::new(client.map_err(|error| error.to_string())?),
            settings: settings.clone(),
        })
    }

    /// Names it in messages.
    pub(crate) fn peer(&self) -> String {
        match self {
            // Without what may be secret in it.
            Self::Http { settings, .. } => settings
                .url
                .split(['?', '#'])
                .next()
                .unwrap_or_default()
                .to_owned(),
            Self::Kafka { settings, .. } => settings.servers.clone(),
        }
    }

    /// Sends a message, and waits until it is taken.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) async fn send(&self, message: &OutgoingMessage) -> Result<(), SinkFailure> {
        match self {
            Self::Http {
                client,
                settings,
                headers,
            } => {
                let body = body_of(message, &settings.name, settings.payload, settings.payload_only)
                    .map_err(SinkFailure::Unsendable)?;
                let sent = client.deliver(&http_request(settings, headers, &body)).await;
                // All messages have the same destination: if it is not there, it is not the message.
                sent.map_err(|error| SinkFailure::Failed(cause_of(error.fault, false), error.message))
            }
            Self::Kafka { client, settings } => {
                let body = body_of(message, &settings.name, settings.payload, settings.payload_only)
                    .map_err(SinkFailure::Unsendable)?;
                let topic = kafka_topic(&settings.topic, &message.topic).map_err(SinkFailure::Unsendable)?;
                let key = settings.key.replace(TOPIC_PLACEHOLDER, &message.topic);
                let key = (!key.is_empty()).then_some(key.as_str());
                let sent = client.send(&topic, key, &body, &[]).await;
                let is_own = settings.topic.contains(TOPIC_PLACEHOLDER);
                sent.map(drop)
                    .map_err(|error| SinkFailure::Failed(cause_of(error.fault, is_own), error.message))
            }
        }
    }
}

fn http_request<'a>(
    settings: &'a HttpSink,
    headers: &'a [(String, String)],
    body: &'a str,
) -> RestRequest<'a> {
    RestRequest {
        url: &settings.url,
        query: Some(&[]),
        headers,
        body: RestBody::Template(body),
    }
}

/// What stands in the way of a message, which may have a destination of its own.
const fn cause_of(fault: ConnectorFault, is_own_destination: bool) -> RefusalCause {
    match fault {
        ConnectorFault::Message => RefusalCause::Message,
        ConnectorFault::Destination if is_own_destination => RefusalCause::Destination,
        ConnectorFault::Destination | ConnectorFault::Service => RefusalCause::Side,
        ConnectorFault::Busy => RefusalCause::Busy,
    }
}

/// The topic of Kafka for a topic of MQTT.
pub(crate) fn kafka_topic(pattern: &str, topic: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let named: String = topic
        .chars()
        .map(|letter| match letter {
            '/' => '.',
            letter if is_plain(letter) => letter,
            _ => '_',
        })
        .collect();
    let name = pattern.replace(TOPIC_PLACEHOLDER, &named);
    let is_name = name.len() <= MAX_KAFKA_TOPIC
        && !matches!(name.as_str(), "" | "." | "..")
        && name.chars().all(is_plain);
    match is_name {
        true => Ok(name),
        false => Err("Kafka has no such names of topics".to_owned()),
    }
}

/// What is sent of a message: its payload, or JSON with everything that it says, as TBMQ's integrations send it.
fn body_of(
    message: &OutgoingMessage,
    name: &str,
    payload: SinkPayload,
    payload_only: bool,
) -> Result<String, String> {
    let text = || std::str::from_utf8(&message.payload).map_err(|_| "the payload is no text".to_owned());
    if payload_only && payload == SinkPayload::Json {
        // As it is: numbers may have more digits than ours.
        let json: &RawValue = serde_json::from_str(text()?).map_err(|_| NO_JSON)?;
        return Ok(json.get().to_owned());
    }
    let content = match payload {
        SinkPayload::Base64 => Value::String(STANDARD.encode(&message.payload)),
        SinkPayload::Text => Value::String(text()?.to_owned()),
        SinkPayload::Json => serde_json::from_str(text()?).map_err(|_| NO_JSON)?,
    };
    if payload_only {
        return Ok(match content {
            Value::String(text) => text,
            content => content.to_string(),
        });
    }
    let mut user_properties = Map::new();
    for property in &message.properties.as_properties() {
        if let MqttProperty::UserProperty(name, value) = property {
            user_properties.insert(name.to_owned(), value.into());
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(json!({
        "payload": content,
        "topicName": message.topic,
        "eventType": "PUBLISH_MSG",
        "qos": message.qos as u8,
        "retain": message.retain,
        "ts": now.as_millis() as u64,
        "props": user_properties,
        "metadata": { "integrationName": name },
    })
    .to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload: &[u8]) -> OutgoingMessage {
        OutgoingMessage {
            topic: "plant/1".to_owned(),
            payload: payload.to_vec().into(),
            ..OutgoingMessage::default()
        }
    }

    #[test]
    fn a_message_is_sent_as_the_settings_say() {
        let whole = |payload: SinkPayload, bytes: &[u8]| -> Value {
            let body = body_of(&message(bytes), "sink", payload, false).expect("a body");
            serde_json::from_str(&body).expect("JSON")
        };
        let sent = whole(SinkPayload::Base64, b"\0\xff");
        assert_eq!(sent["payload"], "AP8=");
        assert_eq!(sent["topicName"], "plant/1");
        assert_eq!(sent["metadata"], json!({ "integrationName": "sink" }));
        assert_eq!(whole(SinkPayload::Text, b"7")["payload"], "7");
        assert_eq!(whole(SinkPayload::Json, b"7")["payload"], 7);
        let plain = |payload: SinkPayload, bytes: &[u8]| body_of(&message(bytes), "sink", payload, true);
        assert_eq!(plain(SinkPayload::Text, b"a b").as_deref(), Ok("a b"));
        let exact = "[1.00, 12345678901234567890123]";
        assert_eq!(plain(SinkPayload::Json, exact.as_bytes()).as_deref(), Ok(exact));
        assert_eq!(plain(SinkPayload::Base64, b"\0").as_deref(), Ok("AA=="));
        assert!(plain(SinkPayload::Json, b"{").is_err() && plain(SinkPayload::Text, b"\xff").is_err());
    }

    #[test]
    fn topics_get_names_that_kafka_has() {
        let topic = |topic: &str| kafka_topic("${topic}", topic);
        assert_eq!(topic("plant/line 1/ö").as_deref(), Ok("plant.line_1._"));
        assert_eq!(kafka_topic("mqtt-${topic}", "a/b").as_deref(), Ok("mqtt-a.b"));
        for none in ["/", "//", &"a".repeat(250)] {
            assert!(topic(none).is_err(), "{none}");
        }
        assert!(kafka_topic("a topic", "a").is_err());
    }
}
