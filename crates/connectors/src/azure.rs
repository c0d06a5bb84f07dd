//! Publishing to an Azure IoT Hub, which speaks MQTT.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::credentials::{ClientCredentials, SasCredentials};
use crate::egress::Egress;
use crate::lenient;
use crate::mqtt::{BrokerPassword, MqttClient, MqttDialer, MqttEndpoint, MqttVersion};
use crate::outcome::{ConnectorError, ConnectorOutcome};
use crate::percent;
use crate::secret::Secret;

/// The configuration of `TbAzureIotHubNode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureIotHubConfig {
    /// Pattern of the topic.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Topic", extend("x-editor" = "template"))]
    pub topic_pattern: String,
    /// The host of the hub.
    #[serde(deserialize_with = "lenient::string")]
    pub host: String,
    /// How long a connection may take to come about, in seconds.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(title = "Connect timeout", extend("x-unit" = "s"), range(min = 1))]
    pub connect_timeout_sec: u32,
    /// The identifier of the device at the hub.
    #[serde(deserialize_with = "lenient::string")]
    pub client_id: String,
    /// Whether the name of the platform's node is appended to the client identifier.
    #[serde(deserialize_with = "lenient::boolean")]
    pub append_client_id_suffix: bool,
    /// Whether the message is sent as a retained one.
    #[serde(deserialize_with = "lenient::boolean")]
    pub retained_message: bool,
    /// Whether a body that is a JSON text is sent without its quotes.
    #[serde(deserialize_with = "lenient::boolean")]
    pub parse_to_plain_text: bool,
    /// The version of the protocol.
    pub protocol_version: MqttVersion,
    /// A shared access key or a certificate.
    #[schemars(transform = ClientCredentials::for_azure)]
    pub credentials: ClientCredentials,
}

impl Default for AzureIotHubConfig {
    fn default() -> Self {
        Self {
            topic_pattern: "devices/<device_id>/messages/events/".to_owned(),
            host: "<iot-hub-name>.azure-devices.net".to_owned(),
            connect_timeout_sec: 10,
            client_id: String::new(),
            append_client_id_suffix: false,
            retained_message: false,
            parse_to_plain_text: false,
            protocol_version: MqttVersion::V311,
            credentials: ClientCredentials::Sas(SasCredentials::default()),
        }
    }
}

/// The port of all hubs.
const PORT: u16 = 8883;

impl ConnectorConfig for AzureIotHubConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("topicPattern", &self.topic_pattern)?;
        require("host", &self.host)?;
        require("clientId", &self.client_id)?;
        if self.connect_timeout_sec == 0 {
            return Err(ConnectorConfigError::new(
                "connectTimeoutSec",
                "must be at least 1",
            ));
        }
        match &self.credentials {
            ClientCredentials::Sas(sas) => {
                signing_key(&sas.sas_key)?;
            }
            ClientCredentials::CertPem(_) => {}
            ClientCredentials::Anonymous | ClientCredentials::Basic(_) => {
                return Err(ConnectorConfigError::new(
                    "credentials.type",
                    "must be sas or cert.PEM",
                ));
            }
        }
        self.credentials.tls().map(|_| ())
    }
}

/// Publishes to a hub with QoS 1.
#[derive(Debug)]
pub struct AzureIotHubClient {
    client: MqttClient,
}

impl AzureIotHubClient {
    /// Makes a client and begins to connect; see [`MqttClient::open`].
    pub fn open(
        config: &AzureIotHubConfig,
        service_id: &str,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        Self::open_at_port(config, service_id, PORT, egress)
    }

    /// Like [`Self::open`], for a hub at another port than all hubs have.
    pub fn open_at_port(
        config: &AzureIotHubConfig,
        service_id: &str,
        port: u16,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        let client_id = if config.append_client_id_suffix {
            format!("{}_{service_id}", config.client_id)
        } else {
            config.client_id.clone()
        };
        let host = config.host.trim();
        let connect_timeout = std::time::Duration::from_secs(config.connect_timeout_sec.into());
        let link = MqttEndpoint {
            username: Some(format!("{host}/{client_id}/?api-version=2018-06-30")),
            password: match &config.credentials {
                ClientCredentials::Sas(sas) => BrokerPassword::Sas(sas.sas_key.clone()),
                _ => BrokerPassword::None,
            },
            dialer: MqttDialer::new((host, port), connect_timeout, Some(&config.credentials), egress)?,
            version: config.protocol_version.codec(),
            client_id,
            clean_session: true,
        };
        let client = MqttClient::from_endpoint(link, config.retained_message, config.parse_to_plain_text);
        Ok(Self { client })
    }

    /// Publishes a message and waits until the hub has acknowledged it.
    pub async fn send(&self, topic: &str, body: &str) -> Result<ConnectorOutcome, ConnectorError> {
        self.client.send(topic, body).await
    }
}

/// How long a token is valid: a year.
const TOKEN_SECS: i64 = 365 * 24 * 60 * 60;

fn signing_key(key: &Secret) -> Result<Vec<u8>, ConnectorConfigError> {
    const FIELD: &str = "credentials.sasKey";
    require(FIELD, key.expose())?;
    STANDARD
        .decode(key.expose().trim())
        .map_err(|_| ConnectorConfigError::new(FIELD, "is not Base64"))
}

/// Makes a shared access signature for a host, valid for a year from `now`, in seconds since 1970.
pub(crate) fn sas_token(host: &str, key: &Secret, now: i64) -> Result<Secret, ConnectorConfigError> {
    let resource = percent::encode(&host.to_lowercase());
    let expiry = now + TOKEN_SECS;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &signing_key(key)?);
    let signature = hmac::sign(&key, format!("{resource}\n{expiry}").as_bytes());
    let signature = percent::encode(&STANDARD.encode(signature));
    Ok(Secret::new(format!(
        "SharedAccessSignature sr={resource}&sig={signature}&se={expiry}"
    )))
}
