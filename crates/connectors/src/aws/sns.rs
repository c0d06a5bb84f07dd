//! Simple Notification Service.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::client::{AwsClient, AwsRequest, AwsService, check, request_id, tag};
use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::egress::Egress;
use crate::lenient;
use crate::outcome::{ConnectorError, ConnectorOutcome, entry};
use crate::percent;
use crate::secret::Secret;

/// The configuration of `TbSnsNode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SnsConfig {
    /// Pattern of the name (ARN) of the topic.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Topic ARN", extend("x-editor" = "template"))]
    pub topic_arn_pattern: String,
    /// The access key.
    #[serde(deserialize_with = "lenient::string")]
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: Secret,
    /// The region.
    #[serde(deserialize_with = "lenient::string")]
    pub region: String,
}

impl Default for SnsConfig {
    fn default() -> Self {
        Self {
            topic_arn_pattern: "arn:aws:sns:us-east-1:123456789012:MyNewTopic".to_owned(),
            access_key_id: String::new(),
            secret_access_key: Secret::default(),
            region: "us-east-1".to_owned(),
        }
    }
}

impl ConnectorConfig for SnsConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("topicArnPattern", &self.topic_arn_pattern)?;
        let fields = ["accessKeyId", "secretAccessKey", "region"];
        check(fields, &self.access_key_id, &self.secret_access_key, &self.region)
    }
}

const SERVICE: AwsService = AwsService {
    host: "sns",
    signed: "sns",
    name: "AmazonSNS",
};

/// Publishes to topics.
#[derive(Debug)]
pub struct SnsClient {
    client: AwsClient,
}

impl SnsClient {
    /// Makes a client.
    pub fn new(config: &SnsConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        Self::with_endpoint(config, None, egress)
    }

    /// Like [`Self::new`], with another base URL than that of the region.
    pub fn with_endpoint(
        config: &SnsConfig,
        endpoint: Option<&str>,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        let credentials = (config.access_key_id.as_str(), &config.secret_access_key);
        Ok(Self {
            client: client(credentials, &config.region, endpoint, egress)?,
        })
    }

    /// Publishes a message.
    pub async fn send(&self, topic_arn: &str, body: &str) -> Result<ConnectorOutcome, ConnectorError> {
        publish(&self.client, &[("TopicArn", topic_arn), ("Message", body)])
            .await
            .map_err(ConnectorError::with_error_metadata)
    }
}

fn client(
    credentials: (&str, &Secret),
    region: &str,
    endpoint: Option<&str>,
    egress: &Egress,
) -> Result<AwsClient, ConnectorConfigError> {
    let timeouts = (Duration::from_secs(10), Duration::from_secs(15));
    AwsClient::new(SERVICE, credentials, region, endpoint, timeouts, egress)
}

/// Makes a client that sends text messages.
pub(crate) fn sms_client(
    credentials: (&str, &Secret),
    region: &str,
    endpoint: Option<&str>,
    egress: &Egress,
) -> Result<AwsClient, ConnectorConfigError> {
    let fields = ["accessKeyId", "secretAccessKey", "region"];
    check(fields, credentials.0, credentials.1, region)?;
    client(credentials, region, endpoint, egress)
}

/// Sends a text message to a phone.
pub(crate) async fn publish_sms(client: &AwsClient, number: &str, message: &str) -> Result<(), String> {
    let parameters = [
        ("PhoneNumber", number),
        ("Message", message),
        ("MessageAttributes.entry.1.Name", "AWS.SNS.SMS.SMSType"),
        ("MessageAttributes.entry.1.Value.DataType", "String"),
        ("MessageAttributes.entry.1.Value.StringValue", "Transactional"),
    ];
    publish(client, &parameters).await.map(|_| ())
}

async fn publish(client: &AwsClient, parameters: &[(&str, &str)]) -> Result<ConnectorOutcome, String> {
    let mut body = "Action=Publish&Version=2010-03-31".to_owned();
    for (name, value) in parameters {
        body.push('&');
        body.push_str(name);
        body.push('=');
        body.push_str(&percent::encode(value));
    }
    let headers = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
    let call = AwsRequest {
        target: "/",
        endpoint: None,
        headers: &headers,
        body,
    };
    let answer = client.call(call).await?;
    let message_id = tag(&answer.body, "MessageId")
        .ok_or_else(|| "the service answered without an identifier".to_owned())?;
    Ok(ConnectorOutcome::with_metadata(vec![
        entry("messageId", message_id),
        entry("requestId", request_id(&answer)),
    ]))
}
