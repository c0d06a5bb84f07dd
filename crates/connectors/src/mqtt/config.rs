//! The configuration of `TbMqttNode`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{BrokerPassword, MqttDialer, MqttEndpoint};
use crate::config::{ConnectorConfig, ConnectorConfigError, require, require_port};
use crate::credentials::ClientCredentials;
use crate::egress::Egress;
use crate::lenient;

/// The configuration of an MQTT node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MqttConfig {
    /// Pattern of the topic.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Topic", extend("x-editor" = "template"))]
    pub topic_pattern: String,
    /// The host of the broker.
    #[serde(deserialize_with = "lenient::string")]
    pub host: String,
    /// The port of the broker.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// How long a connection may take to come about, in seconds.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(title = "Connect timeout", extend("x-unit" = "s"), range(min = 1))]
    pub connect_timeout_sec: u32,
    /// The client identifier; one is made up if it is empty.
    #[serde(deserialize_with = "lenient::string")]
    pub client_id: String,
    /// Whether the name of the platform's node is appended to the client identifier.
    #[serde(deserialize_with = "lenient::boolean")]
    pub append_client_id_suffix: bool,
    /// Whether the broker keeps the message for later subscribers.
    #[serde(deserialize_with = "lenient::boolean")]
    pub retained_message: bool,
    /// Whether a connection begins without the session of the one before.
    #[serde(deserialize_with = "lenient::boolean")]
    pub clean_session: bool,
    /// Whether to connect over TLS.
    #[serde(deserialize_with = "lenient::boolean")]
    #[schemars(title = "TLS")]
    pub ssl: bool,
    /// Whether a body that is a JSON text is sent without its quotes.
    #[serde(deserialize_with = "lenient::boolean")]
    pub parse_to_plain_text: bool,
    /// The version of the protocol; nodes from before there was a choice speak 3.1.
    #[serde(default)]
    pub protocol_version: MqttVersion,
    /// How to prove who publishes.
    #[schemars(transform = ClientCredentials::for_servers)]
    pub credentials: ClientCredentials,
}

/// A version of MQTT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MqttVersion {
    /// MQTT 3.1.
    #[default]
    #[serde(rename = "MQTT_3_1")]
    V31,
    /// MQTT 3.1.1.
    #[serde(rename = "MQTT_3_1_1")]
    V311,
    /// MQTT 5.
    #[serde(rename = "MQTT_5")]
    V5,
}

impl MqttVersion {
    pub(crate) const fn codec(self) -> fieldline_codec::MqttProtocolVersion {
        match self {
            Self::V31 => fieldline_codec::MqttProtocolVersion::V31,
            Self::V311 => fieldline_codec::MqttProtocolVersion::V311,
            Self::V5 => fieldline_codec::MqttProtocolVersion::V5,
        }
    }

    const fn max_client_id(self) -> usize {
        match self {
            Self::V31 => 23,
            Self::V311 | Self::V5 => 256,
        }
    }
}

impl Default for MqttConfig {
    fn default() -> Self {
        Self {
            topic_pattern: "my-topic".to_owned(),
            host: String::new(),
            port: 1883,
            connect_timeout_sec: 10,
            client_id: String::new(),
            append_client_id_suffix: false,
            retained_message: false,
            clean_session: true,
            ssl: false,
            parse_to_plain_text: false,
            protocol_version: MqttVersion::V311,
            credentials: ClientCredentials::Anonymous,
        }
    }
}

impl ConnectorConfig for MqttConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("topicPattern", &self.topic_pattern)?;
        require("host", &self.host)?;
        require_port("port", self.port)?;
        if self.connect_timeout_sec == 0 {
            return Err(ConnectorConfigError::new(
                "connectTimeoutSec",
                "must be at least 1",
            ));
        }
        check_client_id(self.protocol_version, &self.client_id)?;
        self.credentials.tls().map(|_| ())
    }
}

pub(crate) fn check_client_id(version: MqttVersion, client_id: &str) -> Result<(), ConnectorConfigError> {
    let length = client_id.chars().count();
    let longest = version.max_client_id();
    if length > longest {
        let problem = format!("cannot be longer than {longest} characters, but has {length}");
        return Err(ConnectorConfigError::new("clientId", problem));
    }
    Ok(())
}

impl MqttConfig {
    /// Says how to connect. `suffix` is the name of the platform's node.
    pub(super) fn endpoint(
        &self,
        suffix: &str,
        egress: &Egress,
    ) -> Result<MqttEndpoint, ConnectorConfigError> {
        self.validate()?;
        let client_id = match (self.client_id.as_str(), self.append_client_id_suffix) {
            ("", _) => generate_client_id(),
            (id, true) => format!("{id}_{suffix}"),
            (id, false) => id.to_owned(),
        };
        check_client_id(self.protocol_version, &client_id)?;
        let (username, password) = match &self.credentials {
            ClientCredentials::Basic(basic) => {
                let username = (!basic.username.is_empty()).then(|| basic.username.clone());
                let password = if basic.password.is_empty() {
                    BrokerPassword::None
                } else {
                    BrokerPassword::Fixed(basic.password.clone())
                };
                (username, password)
            }
            _ => (None, BrokerPassword::None),
        };
        let connect_timeout = std::time::Duration::from_secs(self.connect_timeout_sec.into());
        let tls = self.ssl.then_some(&self.credentials);
        Ok(MqttEndpoint {
            dialer: MqttDialer::new((self.host.trim(), self.port), connect_timeout, tls, egress)?,
            version: self.protocol_version.codec(),
            client_id,
            clean_session: self.clean_session,
            username,
            password,
        })
    }
}

/// A client identifier that fits into 23 characters.
pub(crate) fn generate_client_id() -> String {
    use rand::Rng;
    let tail: String = rand::rng()
        .sample_iter(rand::distr::Alphanumeric)
        .take(8)
        .map(char::from)
        .collect();
    format!("fieldline{tail}")
}
