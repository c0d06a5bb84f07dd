//! Messages to Slack.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::egress::{Egress, HttpClient};
use crate::http;
use crate::lenient;
use crate::outcome::{ConnectorError, ConnectorOutcome};
use crate::secret::Secret;

/// The configuration of `TbSlackNode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SlackConfig {
    /// The token of the bot, unless the system's settings have it.
    pub bot_token: Secret,
    /// Whether the token is in the system's settings.
    #[serde(deserialize_with = "lenient::boolean")]
    pub use_system_settings: bool,
    /// Pattern of the message.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Message", extend("x-editor" = "template"))]
    pub message_template: String,
    /// The kind of the conversation: `PUBLIC_CHANNEL`, `PRIVATE_CHANNEL` or `DIRECT`.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("enum" = CONVERSATION_TYPES))]
    pub conversation_type: String,
    /// The conversation to write to.
    pub conversation: SlackConversation,
}

/// A channel or a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SlackConversation {
    /// The identifier.
    #[serde(deserialize_with = "lenient::string")]
    pub id: String,
    /// The name.
    #[serde(deserialize_with = "lenient::string")]
    pub name: String,
}

/// The kinds of conversations.
const CONVERSATION_TYPES: [&str; 3] = ["PUBLIC_CHANNEL", "PRIVATE_CHANNEL", "DIRECT"];

impl Default for SlackConfig {
    fn default() -> Self {
        Self {
            bot_token: Secret::new("xoxb-"),
            use_system_settings: true,
            message_template: "Device ${deviceId}: temperature is $[temperature]".to_owned(),
            conversation_type: "PUBLIC_CHANNEL".to_owned(),
            conversation: SlackConversation::default(),
        }
    }
}

impl ConnectorConfig for SlackConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("messageTemplate", &self.message_template)?;
        if !CONVERSATION_TYPES.contains(&self.conversation_type.as_str()) {
            return Err(ConnectorConfigError::new(
                "conversationType",
                "must be PUBLIC_CHANNEL, PRIVATE_CHANNEL or DIRECT",
            ));
        }
        require("conversation.id", &self.conversation.id)?;
        if !self.use_system_settings {
            require("botToken", self.bot_token.expose())?;
        }
        Ok(())
    }
}

const ENDPOINT: &str = "https://slack.com/api";
const MAX_PARALLEL: usize = 16;
const MAX_WAITING: usize = 1000;

/// Writes to conversations as a bot.
#[derive(Debug)]
pub struct SlackClient {
    client: HttpClient,
    url: String,
    token: Secret,
    gate: ConcurrencyLimiter,
}

impl SlackClient {
    /// Makes a client with the token of a bot.
    pub fn new(token: &Secret, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        Self::with_endpoint(token, None, egress)
    }

    /// Like [`Self::new`], with another base URL than Slack's.
    pub fn with_endpoint(
        token: &Secret,
        endpoint: Option<&str>,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        require("botToken", token.expose())?;
        let endpoint = endpoint.unwrap_or(ENDPOINT).trim_end_matches('/');
        Ok(Self {
            client: http::service_client(egress, Duration::from_secs(30))?,
            url: format!("{endpoint}/chat.postMessage"),
            token: token.clone(),
            gate: ConcurrencyLimiter::new(MAX_PARALLEL, MAX_WAITING),
        })
    }

    /// Writes a message into a conversation.
    pub async fn send(
        &self,
        conversation_id: &str,
        message: &str,
    ) -> Result<ConnectorOutcome, ConnectorError> {
        self.post(conversation_id, message)
            .await
            .map(|()| ConnectorOutcome::default())
            .map_err(ConnectorError::bare)
    }

    async fn post(&self, conversation_id: &str, message: &str) -> Result<(), String> {
        let _permit = self
            .gate
            .acquire()
            .await
            .map_err(|_| "too many messages wait".to_owned())?;
        let request = self
            .client
            .post(&self.url)
            .bearer_auth(self.token.expose())
            .header("content-type", "application/json; charset=utf-8")
            .body(json!({"channel": conversation_id, "text": message}).to_string());
        let answer = http::exchange(&self.client, request).await?;
        let result: Value = serde_json::from_str(&answer.body)
            .map_err(|_| format!("Slack API error: status {}", answer.status))?;
        if result.get("ok").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        let text = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default();
        Err(match text("error") {
            "missing_scope" => format!("Slack API error: bot token scope '{}' is needed", text("needed")),
            "not_in_channel" => "Slack API error: app needs to be added to the channel".to_owned(),
            _ => format!("Slack API error: {result}"),
        })
    }
}
