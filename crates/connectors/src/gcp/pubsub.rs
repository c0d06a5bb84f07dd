//! Pub/Sub.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::token::{CLOUD_PLATFORM, TokenSource};
use crate::backoff::Backoff;
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::egress::{Egress, HttpClient};
use crate::http;
use crate::lenient;
use crate::outcome::{ConnectorError, ConnectorOutcome, entry};
use crate::secret::Secret;

/// The configuration of `TbPubSubNode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PubSubConfig {
    /// The project.
    #[serde(deserialize_with = "lenient::string")]
    pub project_id: String,
    /// The topic.
    #[serde(deserialize_with = "lenient::string")]
    pub topic_name: String,
    /// Patterns of names and values of attributes.
    #[serde(deserialize_with = "lenient::pairs")]
    #[schemars(schema_with = "lenient::pairs_schema")]
    pub message_attributes: Vec<(String, String)>,
    /// The key file of the service account.
    #[schemars(extend("x-editor" = "pem"))]
    pub service_account_key: Secret,
    /// The name of that file, for people.
    #[serde(deserialize_with = "lenient::string")]
    pub service_account_key_file_name: String,
}

impl Default for PubSubConfig {
    fn default() -> Self {
        Self {
            project_id: "my-google-cloud-project-id".to_owned(),
            topic_name: "my-pubsub-topic-name".to_owned(),
            message_attributes: Vec::new(),
            service_account_key: Secret::default(),
            service_account_key_file_name: String::new(),
        }
    }
}

const KEY: &str = "serviceAccountKey";

impl ConnectorConfig for PubSubConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("projectId", &self.project_id)?;
        require("topicName", &self.topic_name)?;
        require(KEY, self.service_account_key.expose())?;
        TokenSource::new(KEY, &self.service_account_key, CLOUD_PLATFORM).map(|_| ())
    }
}

const ENDPOINT: &str = "https://pubsub.googleapis.com";
const MAX_PARALLEL: usize = 64;
const MAX_WAITING: usize = 10_000;
/// How long a message is tried.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Publishes to one topic.
#[derive(Debug)]
pub struct PubSubClient {
    client: HttpClient,
    url: String,
    tokens: TokenSource,
    gate: ConcurrencyLimiter,
}

/// Why a request failed.
enum PubSubError {
    /// The same request may succeed later.
    Passing(String),
    Lasting(String),
}

impl PubSubClient {
    /// Makes a client.
    pub fn new(config: &PubSubConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        Self::with_endpoint(config, None, egress)
    }

    /// Like [`Self::new`], with another base URL than Google's.
    pub fn with_endpoint(
        config: &PubSubConfig,
        endpoint: Option<&str>,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        let endpoint = endpoint.unwrap_or(ENDPOINT).trim_end_matches('/');
        Ok(Self {
            client: http::service_client(egress, DELIVERY_TIMEOUT)?,
            url: format!(
                "{endpoint}/v1/projects/{}/topics/{}:publish",
                config.project_id.trim(),
                config.topic_name.trim()
            ),
            tokens: TokenSource::new(KEY, &config.service_account_key, CLOUD_PLATFORM)?,
            gate: ConcurrencyLimiter::new(MAX_PARALLEL, MAX_WAITING),
        })
    }

    /// Publishes a message with attributes, and tries again for a while if that may help.
    pub async fn send(
        &self,
        body: &str,
        attributes: &[(String, String)],
    ) -> Result<ConnectorOutcome, ConnectorError> {
        self.deliver(body, attributes)
            .await
            .map_err(ConnectorError::with_error_metadata)
    }

    async fn deliver(&self, body: &str, attributes: &[(String, String)]) -> Result<ConnectorOutcome, String> {
        let _permit = self
            .gate
            .acquire()
            .await
            .map_err(|_| "too many messages wait".to_owned())?;
        let attributes: Map<String, Value> = attributes
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
            .collect();
        let message = json!({"data": STANDARD.encode(body), "attributes": attributes});
        let request = json!({"messages": [message]}).to_string();
        let deadline = Instant::now() + DELIVERY_TIMEOUT;
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        loop {
            let failure = match timeout_at(deadline, self.publish(&request)).await {
                Ok(Ok(message_id)) => {
                    return Ok(ConnectorOutcome::with_metadata(vec![entry(
                        "messageId",
                        message_id,
                    )]));
                }
                Ok(Err(PubSubError::Lasting(error))) => return Err(error),
                Ok(Err(PubSubError::Passing(error))) => error,
                Err(_) => return Err("no answer in time".to_owned()),
            };
            let pause = backoff.pause();
            if Instant::now() + pause >= deadline {
                return Err(failure);
            }
            sleep(pause).await;
        }
    }

    async fn publish(&self, body: &str) -> Result<String, PubSubError> {
        let token = match self.tokens.token(&self.client).await {
            Ok(token) => token,
            Err(error) if error.is_transient => return Err(PubSubError::Passing(error.message)),
            Err(error) => return Err(PubSubError::Lasting(error.message)),
        };
        let request = self
            .client
            .post(&self.url)
            .bearer_auth(token.expose())
            .header("content-type", "application/json")
            .body(body.to_owned());
        let answer = http::exchange(&self.client, request)
            .await
            .map_err(PubSubError::Passing)?;
        let result: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if answer.status.is_success() {
            return result
                .pointer("/messageIds/0")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| {
                    PubSubError::Lasting("the service answered without an identifier".to_owned())
                });
        }
        let message = result
            .pointer("/error/message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let error = format!("{} {message}", answer.status);
        match answer.status {
            StatusCode::UNAUTHORIZED => {
                self.tokens.invalidate(&token).await;
                Err(PubSubError::Lasting(error))
            }
            StatusCode::TOO_MANY_REQUESTS => Err(PubSubError::Passing(error)),
            status if status.is_server_error() => Err(PubSubError::Passing(error)),
            _ => Err(PubSubError::Lasting(error)),
        }
    }
}
