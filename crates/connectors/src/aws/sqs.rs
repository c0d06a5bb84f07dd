//! Simple Queue Service.

use std::time::Duration;

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::client::{AwsClient, AwsRequest, AwsService, check, request_id};
use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::egress::Egress;
use crate::lenient;
use crate::outcome::{ConnectorError, ConnectorOutcome, entry};
use crate::secret::Secret;

/// The configuration of `TbSqsNode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SqsConfig {
    /// The kind of the queue.
    pub queue_type: SqsQueueType,
    /// Pattern of the URL of the queue.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Queue URL", extend("x-editor" = "template"))]
    pub queue_url_pattern: String,
    /// How long a standard queue holds a message back, in seconds, up to 900.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(title = "Delay", extend("x-unit" = "s"), range(max = 900))]
    pub delay_seconds: u16,
    /// Patterns of names and values of attributes.
    #[serde(deserialize_with = "lenient::pairs")]
    #[schemars(schema_with = "lenient::pairs_schema")]
    pub message_attributes: Vec<(String, String)>,
    /// The access key.
    #[serde(deserialize_with = "lenient::string")]
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: Secret,
    /// The region.
    #[serde(deserialize_with = "lenient::string")]
    pub region: String,
}

/// The kind of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum SqsQueueType {
    /// Without order.
    #[default]
    Standard,
    /// In order, and each message once.
    Fifo,
}

impl Default for SqsConfig {
    fn default() -> Self {
        Self {
            queue_type: SqsQueueType::Standard,
            queue_url_pattern: "https://sqs.us-east-1.amazonaws.com/123456789012/my-queue-name".to_owned(),
            delay_seconds: 0,
            message_attributes: Vec::new(),
            access_key_id: String::new(),
            secret_access_key: Secret::default(),
            region: "us-east-1".to_owned(),
        }
    }
}

impl ConnectorConfig for SqsConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("queueUrlPattern", &self.queue_url_pattern)?;
        if self.delay_seconds > 900 {
            return Err(ConnectorConfigError::new(
                "delaySeconds",
                "must be between 0 and 900",
            ));
        }
        let fields = ["accessKeyId", "secretAccessKey", "region"];
        check(fields, &self.access_key_id, &self.secret_access_key, &self.region)
    }
}

const SERVICE: AwsService = AwsService {
    host: "sqs",
    signed: "sqs",
    name: "AmazonSQS",
};

/// Sends messages to queues.
#[derive(Debug)]
pub struct SqsClient {
    client: AwsClient,
    queue_type: SqsQueueType,
    delay_seconds: u16,
}

/// A message; its patterns are resolved.
#[derive(Debug, Clone, Copy)]
pub struct SqsMessage<'a> {
    /// The URL of the queue; the request goes to its host.
    pub queue_url: &'a str,
    /// The body.
    pub body: &'a str,
    /// Names and values of attributes.
    pub attributes: &'a [(String, String)],
    /// The identifier of the message, by which a FIFO queue drops what comes twice.
    pub deduplication_id: &'a str,
    /// The identifier of the originator, whose messages a FIFO queue keeps in order.
    pub group_id: &'a str,
}

impl SqsClient {
    /// Makes a client.
    pub fn new(config: &SqsConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        Ok(Self {
            client: AwsClient::new(
                SERVICE,
                (&config.access_key_id, &config.secret_access_key),
                &config.region,
                None,
                (Duration::from_secs(10), Duration::from_secs(15)),
                egress,
            )?,
            queue_type: config.queue_type,
            delay_seconds: config.delay_seconds,
        })
    }

    /// Sends a message.
    pub async fn send(&self, message: &SqsMessage<'_>) -> Result<ConnectorOutcome, ConnectorError> {
        self.deliver(message)
            .await
            .map_err(ConnectorError::with_error_metadata)
    }

    async fn deliver(&self, message: &SqsMessage<'_>) -> Result<ConnectorOutcome, String> {
        let url = Url::parse(message.queue_url)
            .ok()
            .filter(|url| url.has_host() && matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| format!("'{}' is not the URL of a queue", message.queue_url))?;
        let endpoint = url.origin().ascii_serialization();
        let headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-target", "AmazonSQS.SendMessage"),
        ];
        let call = AwsRequest {
            target: "/",
            endpoint: Some(&endpoint),
            headers: &headers,
            body: self.body(message).to_string(),
        };
        let answer = self.client.call(call).await?;
        let result: Value = serde_json::from_str(&answer.body)
            .map_err(|_| "the service answered with something else than JSON".to_owned())?;
        let text = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut metadata = vec![
            entry("messageId", text("MessageId")),
            entry("requestId", request_id(&answer)),
        ];
        for (key, name) in [
            ("messageBodyMd5", "MD5OfMessageBody"),
            ("messageAttributesMd5", "MD5OfMessageAttributes"),
            ("sequenceNumber", "SequenceNumber"),
        ] {
            if !text(name).is_empty() {
                metadata.push(entry(key, text(name)));
            }
        }
        Ok(ConnectorOutcome::with_metadata(metadata))
    }

    fn body(&self, message: &SqsMessage<'_>) -> Value {
        let attributes: Map<String, Value> = message
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), json!({"DataType": "String", "StringValue": value})))
            .collect();
        let mut body = json!({
            "QueueUrl": message.queue_url,
            "MessageBody": message.body,
            "MessageAttributes": attributes,
        });
        let more = match self.queue_type {
            SqsQueueType::Standard => json!({"DelaySeconds": self.delay_seconds}),
            SqsQueueType::Fifo => json!({
                "MessageDeduplicationId": message.deduplication_id,
                "MessageGroupId": message.group_id,
            }),
        };
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        body
    }
}
