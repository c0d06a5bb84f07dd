//! Publishing to RabbitMQ brokers of the tenant's own.

use std::net::IpAddr;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::backoff::Backoff;
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfig, ConnectorConfigError, require, require_port};
use crate::egress::Egress;
use crate::lenient;
use crate::outcome::{ConnectorError, ConnectorOutcome};
use crate::secret::Secret;

/// The configuration of `TbRabbitMqNode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RabbitMqConfig {
    /// Pattern of the exchange; the default exchange if it is empty.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Exchange", extend("x-editor" = "template"))]
    pub exchange_name_pattern: String,
    /// Pattern of the routing key.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Routing key", extend("x-editor" = "template"))]
    pub routing_key_pattern: String,
    /// Name of a set of message properties, as `PERSISTENT_TEXT_PLAIN`; none if it is empty.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("enum" = PROPERTY_SETS))]
    pub message_properties: String,
    /// The host of the broker.
    #[serde(deserialize_with = "lenient::string")]
    pub host: String,
    /// The port of the broker.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// The virtual host.
    #[serde(deserialize_with = "lenient::string")]
    pub virtual_host: String,
    /// The user name.
    #[serde(deserialize_with = "lenient::string")]
    pub username: String,
    /// The password.
    pub password: Secret,
    /// Read for compatibility; a lost connection always comes back.
    #[serde(deserialize_with = "lenient::boolean")]
    pub automatic_recovery_enabled: bool,
    /// How long a connection may take to come about, in milliseconds; 0 means a minute.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "ms"))]
    pub connection_timeout: u32,
    /// How long the handshake may take after that, in milliseconds; 0 means a minute.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "ms"))]
    pub handshake_timeout: u32,
    /// What the client tells about itself.
    #[serde(deserialize_with = "lenient::pairs")]
    #[schemars(schema_with = "lenient::pairs_schema")]
    pub client_properties: Vec<(String, String)>,
}

impl Default for RabbitMqConfig {
    fn default() -> Self {
        Self {
            exchange_name_pattern: String::new(),
            routing_key_pattern: String::new(),
            message_properties: String::new(),
            host: String::new(),
            port: 5672,
            virtual_host: "/".to_owned(),
            username: "guest".to_owned(),
            password: Secret::new("guest"),
            automatic_recovery_enabled: false,
            connection_timeout: 60_000,
            handshake_timeout: 10_000,
            client_properties: Vec::new(),
        }
    }
}

impl ConnectorConfig for RabbitMqConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("host", &self.host)?;
        require_port("port", self.port)?;
        properties(&self.message_properties)?;
        if let Some((name, _)) = self.client_properties.iter().find(|(name, _)| name.len() > 128) {
            return Err(ConnectorConfigError::new(
                "clientProperties",
                format!("the name '{name}' is too long"),
            ));
        }
        Ok(())
    }
}

/// Names of sets of properties, and none.
const PROPERTY_SETS: [&str; 7] = [
    "",
    "BASIC",
    "TEXT_PLAIN",
    "MINIMAL_BASIC",
    "MINIMAL_PERSISTENT_BASIC",
    "PERSISTENT_BASIC",
    "PERSISTENT_TEXT_PLAIN",
];

/// The sets of properties that the Java client has names for.
fn properties(name: &str) -> Result<BasicProperties, ConnectorConfigError> {
    const TRANSIENT: u8 = 1;
    const PERSISTENT: u8 = 2;
    let none = BasicProperties::default();
    let typed = |content_type: &str, mode| {
        BasicProperties::default()
            .with_content_type(content_type.into())
            .with_delivery_mode(mode)
            .with_priority(0)
    };
    Ok(match name {
        "" | "MINIMAL_BASIC" => none,
        "BASIC" => typed("application/octet-stream", TRANSIENT),
        "TEXT_PLAIN" => typed("text/plain", TRANSIENT),
        "MINIMAL_PERSISTENT_BASIC" => none.with_delivery_mode(PERSISTENT),
        "PERSISTENT_BASIC" => typed("application/octet-stream", PERSISTENT),
        "PERSISTENT_TEXT_PLAIN" => typed("text/plain", PERSISTENT),
        _ => {
            let problem = "must be BASIC, TEXT_PLAIN, MINIMAL_BASIC, MINIMAL_PERSISTENT_BASIC, PERSISTENT_BASIC \
                           or PERSISTENT_TEXT_PLAIN";
            return Err(ConnectorConfigError::new("messageProperties", problem));
        }
    })
}

/// How many messages may be unconfirmed, and how many more may wait.
const MAX_UNCONFIRMED: usize = 256;
const MAX_WAITING: usize = 10_000;
/// How long the broker may take to confirm a message.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(60);

/// Publishes over one channel, which is opened with the first message and again when it is lost.
#[derive(Debug)]
pub struct RabbitMqClient {
    config: RabbitMqConfig,
    egress: Egress,
    properties: BasicProperties,
    gate: ConcurrencyLimiter,
    connection: Mutex<RabbitMqConnection>,
}

struct RabbitMqConnection {
    open: Option<(Connection, Channel)>,
    backoff: Backoff,
    failed: Option<(Instant, String)>,
}

impl std::fmt::Debug for RabbitMqConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RabbitMqConnection")
            .field("open", &self.open.is_some())
            .finish_non_exhaustive()
    }
}

impl RabbitMqClient {
    /// Makes a client.
    pub fn new(config: &RabbitMqConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        Ok(Self {
            properties: properties(&config.message_properties)?,
            config: config.clone(),
            egress: egress.clone(),
            gate: ConcurrencyLimiter::new(MAX_UNCONFIRMED, MAX_WAITING),
            connection: Mutex::new(RabbitMqConnection {
                open: None,
                backoff: Backoff::new(Duration::from_secs(1), LONGEST),
                failed: None,
            }),
        })
    }

    /// Publishes a message and waits until the broker has confirmed it.
    pub async fn send(
        &self,
        exchange: &str,
        routing_key: &str,
        body: &str,
    ) -> Result<ConnectorOutcome, ConnectorError> {
        self.publish(exchange, routing_key, body)
            .await
            .map(|()| ConnectorOutcome::default())
            .map_err(ConnectorError::with_error_metadata)
    }

    async fn publish(&self, exchange: &str, routing_key: &str, body: &str) -> Result<(), String> {
        for (what, name) in [("exchange", exchange), ("routing key", routing_key)] {
            if name.len() > 255 {
                return Err(format!("the {what} has more than 255 bytes"));
            }
        }
        let _permit = self
            .gate
            .acquire()
            .await
            .map_err(|_| "too many messages wait".to_owned())?;
        let channel = self.channel().await?;
        let published = channel.basic_publish(
            exchange.into(),
            routing_key.into(),
            BasicPublishOptions::default(),
            body.as_bytes(),
            self.properties.clone(),
        );
        let confirmed = async { published.await?.await };
        match timeout(CONFIRM_TIMEOUT, confirmed).await {
            Ok(Ok(Confirmation::Ack(_) | Confirmation::NotRequested)) => Ok(()),
            Ok(Ok(Confirmation::Nack(_))) => Err("broker refused the message".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("broker did not confirm the message in time".to_owned()),
        }
    }

    async fn channel(&self) -> Result<Channel, String> {
        let mut link = self.connection.lock().await;
        if let Some((connection, channel)) = &link.open {
            if channel.status().connected() {
                return Ok(channel.clone());
            }
            // A wrong exchange closes the channel, and leaves the connection as it is.
            if connection.status().connected()
                && let Ok(Ok(channel)) = timeout(CONFIRM_TIMEOUT, open_channel(connection)).await
            {
                if let Some((_, old)) = &mut link.open {
                    *old = channel.clone();
                }
                return Ok(channel);
            }
            link.open = None;
        }
        if let Some((until, reason)) = &link.failed
            && Instant::now() < *until
        {
            return Err(format!("not connected: {reason}"));
        }
        let opened = match timeout(self.connection_timeout(), self.connect()).await {
            Ok(result) => result,
            Err(_) => Err("no connection in time".to_owned()),
        };
        match opened {
            Ok((connection, channel)) => {
                link.backoff.reset();
                link.failed = None;
                link.open = Some((connection, channel.clone()));
                Ok(channel)
            }
            Err(error) => {
                link.failed = Some((Instant::now() + link.backoff.pause(), error.clone()));
                Err(format!("not connected: {error}"))
            }
        }
    }

    /// How long to wait for a connection with its handshake.
    fn connection_timeout(&self) -> Duration {
        let bounded = |millis: u32| match millis {
            0 => LONGEST,
            millis => LONGEST.min(Duration::from_millis(millis.into())),
        };
        bounded(self.config.connection_timeout) + bounded(self.config.handshake_timeout)
    }

    /// Connects to an address of the broker's host: the client is told no name that it could ask for again.
    async fn connect(&self) -> Result<(Connection, Channel), String> {
        let config = &self.config;
        let addresses = self.egress.addresses(&config.host, config.port).await;
        let mut last = String::new();
        for address in addresses.map_err(|error| error.to_string())? {
            match self.connect_to(address.ip()).await {
                Ok(opened) => return Ok(opened),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }

    async fn connect_to(&self, address: IpAddr) -> lapin::Result<(Connection, Channel)> {
        let config = &self.config;
        let uri = AMQPUri {
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: config.username.clone(),
                    password: config.password.expose().to_owned(),
                },
                host: address.to_string(),
                port: config.port,
            },
            vhost: config.virtual_host.clone(),
            query: AMQPQueryString::default(),
        };
        let mut properties = ConnectionProperties::default();
        for (name, value) in &config.client_properties {
            properties = properties.with_client_property(name.as_str().into(), value.as_str().into());
        }
        let connection = Connection::connect_uri(uri, properties).await?;
        let channel = open_channel(&connection).await?;
        Ok((connection, channel))
    }
}

async fn open_channel(connection: &Connection) -> lapin::Result<Channel> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok(channel)
}
