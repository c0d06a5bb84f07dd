//! Settings of the broker.

use std::net::SocketAddr;
use std::path::PathBuf;

use fieldline_core::options::{ByteSize, HumanDuration};
use fieldline_core::rate_limits::RateLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BrokerAccess {
    /// Devices of the platform, with their MQTT credentials or certificates.
    #[default]
    Devices,
    /// Clients with credentials for the broker, which also say on which topics each may publish and subscribe.
    Credentials,
    /// Everyone, whatever they send as user name and password.
    Anyone,
}

/// Settings of the publish/subscribe broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Address that clients of the broker connect to without TLS. Not set: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Address that clients of the broker connect to with TLS. Not set: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_listen: Option<SocketAddr>,
    /// Address that clients of the broker connect to over WebSocket, on the path `/mqtt`. Not set: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websocket_listen: Option<SocketAddr>,
    /// Address that clients of the broker connect to over WebSocket with TLS, on the path `/mqtt`. Not set: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websocket_tls_listen: Option<SocketAddr>,
    /// File of a Unix socket that clients of this machine connect to, without TLS; for this user and its group. Not set: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_listen: Option<PathBuf>,
    /// Whether the proxies of `http.trusted-proxies` send a PROXY protocol header, version 1 or 2, that names the client. A
    /// connection of such a proxy without the header is closed; connections of other addresses are accepted as they are.
    pub proxy_protocol: bool,
    /// File with the certificate chain of the addresses with TLS in PEM, leaf first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// File with the key of the certificate in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PathBuf>,
    /// Who may connect: `devices` of the platform with their credentials, clients with `credentials` for the broker, or
    /// `anyone`.
    pub access: BrokerAccess,
    /// File with the certificates of the authorities, in PEM, that have issued those of clients with credentials for the
    /// broker. Not set: certificates let nobody in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_authorities: Option<PathBuf>,
    /// Threads that carry connections; 0 for two thirds of the processors, at least one.
    pub event_loops: usize,
    /// Most connections at a time; further ones wait to be accepted.
    pub max_connections: usize,
    /// Largest packet of a client, without the fixed header.
    pub max_packet: ByteSize,
    /// Time for a client to log in, TLS handshake included.
    pub connect_timeout: HumanDuration,
    /// Longest keep-alive that a client of MQTT 5 may ask for; a longer one is reduced to it.
    pub max_keep_alive: HumanDuration,
    /// Longest time for which a session outlives its connection. Sessions of MQTT 3 without clean session live as long.
    pub max_session_expiry: HumanDuration,
    /// Most messages of QoS 1 and 2 that a client may send without waiting for acknowledgements.
    pub receive_maximum: u16,
    /// Most messages of QoS 1 and 2 on their way to a client that it has not acknowledged.
    pub max_in_flight: u16,
    /// Most topic aliases of each direction of a connection.
    pub max_topic_aliases: u16,
    /// Most levels of a topic or filter.
    pub max_topic_levels: usize,
    /// Filters that nobody may subscribe to, for example `["#"]`. Those that match less are not concerned.
    pub refused_filters: Vec<String>,
    /// Most messages of QoS 1 and 2 that wait for one client of the type DEVICE; beyond it the oldest are dropped.
    pub queue_messages: u64,
    /// The same for a client of the type APPLICATION.
    pub application_queue_messages: u64,
    /// Memory of the messages of QoS 1 and 2 on their way to one client: beyond it no further ones are sent before it acknowledges
    /// some. As much may wait for a client whose session is not kept; beyond it the oldest are dropped. Those of other sessions
    /// wait on disk.
    pub queue_memory: ByteSize,
    /// Longest time for which a message of QoS 1 or 2 waits with its publisher while the queues of all its subscribers are half
    /// full. A subscriber that does not take a quarter of its queue within that time is not waited for; then, or with 0, the oldest
    /// messages of a full queue are dropped.
    pub publisher_wait: HumanDuration,
    /// How many messages all clients together may publish, such as `1000:1,50000:60`: 1,000 a second and 50,000 a minute. A
    /// message beyond it is refused with 0x97; before MQTT 5 its connection ends. Empty: any number.
    pub total_rate_limit: String,
    /// The same for each client.
    pub incoming_rate_limit: String,
    /// How many messages of QoS 0 each client gets; further ones are dropped. Empty: any number.
    pub outgoing_rate_limit: String,
    /// How many messages are kept for all persistent clients of the type DEVICE together; a client does not get further ones.
    /// Empty: any number.
    pub kept_rate_limit: String,
    /// Most sessions, connected or not; further clients are refused with 0x97. 0 for any number.
    pub max_sessions: usize,
    /// Most messages of QoS 0 that wait for a client that reads slowly; beyond it further ones are dropped.
    pub direct_messages: usize,
    /// Memory of the messages of QoS 0 that wait for a client that reads slowly.
    pub direct_memory: ByteSize,
    /// Most subscriptions of one client.
    pub max_subscriptions: usize,
    /// Most retained messages; beyond it those of further topics are refused.
    pub max_retained: usize,
    /// Memory for packets of which only a part has arrived, over all connections; a connection that would exceed it is
    /// closed.
    pub partial_memory: ByteSize,
    /// What clients of MQTT 5 are told that ask for response information: by convention, what the topics begin with on which they
    /// take answers. Empty: nothing.
    pub response_information: String,
    /// Interval between the messages of `$SYS` topics; 0 for none.
    pub sys_interval: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: None,
            tls_listen: None,
            websocket_listen: None,
            websocket_tls_listen: None,
            unix_listen: None,
            proxy_protocol: false,
            certificate: None,
            private_key: None,
            access: BrokerAccess::default(),
            client_authorities: None,
            event_loops: 0,
            max_connections: 1_000_000,
            max_packet: ByteSize::mib(1),
            connect_timeout: HumanDuration::secs(10),
            max_keep_alive: HumanDuration::secs(600),
            max_session_expiry: HumanDuration::secs(604_800),
            receive_maximum: 1_000,
            max_in_flight: 1_000,
            max_topic_aliases: 10,
            max_topic_levels: 500,
            refused_filters: Vec::new(),
            queue_messages: 10_000,
            application_queue_messages: 10_000_000,
            queue_memory: ByteSize::mib(16),
            publisher_wait: HumanDuration::secs(1),
            total_rate_limit: String::new(),
            incoming_rate_limit: String::new(),
            outgoing_rate_limit: String::new(),
            kept_rate_limit: String::new(),
            max_sessions: 0,
            direct_messages: 1_000,
            direct_memory: ByteSize::mib(1),
            max_subscriptions: 100_000,
            max_retained: 2_000_000,
            partial_memory: ByteSize::mib(256),
            response_information: String::new(),
            sys_interval: HumanDuration::secs(10),
        }
    }
}

impl Options {
    /// Whether anything listens.
    pub const fn is_enabled(&self) -> bool {
        self.listen.is_some()
            || self.websocket_listen.is_some()
            || self.unix_listen.is_some()
            || self.has_tls()
    }

    /// Whether something listens with TLS.
    pub const fn has_tls(&self) -> bool {
        self.tls_listen.is_some() || self.websocket_tls_listen.is_some()
    }

    /// Describes a setting that cannot work, if there is one.
    pub fn problem(&self) -> Option<String> {
        let checks = [
            (
                !self.has_tls() || (self.certificate.is_some() && self.private_key.is_some()),
                "`tls-listen` and `websocket-tls-listen` need `certificate` and `private-key`",
            ),
            (self.event_loops <= 1_024, "`event-loops` must be 1024 or less"),
            (
                (1_024..=32 << 20).contains(&self.max_packet.0),
                "`max-packet` must be between 1024 bytes and 32 MiB",
            ),
            (
                (1..=65_535).contains(&self.max_keep_alive.0.as_secs()),
                "`max-keep-alive` must be between 1 and 65535 seconds",
            ),
            (
                self.max_session_expiry.0.as_secs() < u64::from(u32::MAX),
                "`max-session-expiry` must be less than 4294967295 seconds",
            ),
            (self.receive_maximum > 0, "`receive-maximum` must be 1 or more"),
            (self.max_in_flight > 0, "`max-in-flight` must be 1 or more"),
            (
                (1..=1_000).contains(&self.max_topic_levels),
                "`max-topic-levels` must be between 1 and 1000",
            ),
            (self.queue_messages > 0, "`queue-messages` must be 1 or more"),
            (
                self.application_queue_messages > 0,
                "`application-queue-messages` must be 1 or more",
            ),
            (
                self.queue_memory.0 >= 1_024,
                "`queue-memory` must be 1024 bytes or more",
            ),
            (
                self.publisher_wait.0.as_secs() <= 10,
                "`publisher-wait` must be 10 seconds or less",
            ),
            (
                self.response_information.len() <= 256
                    && !self.response_information.contains(char::is_control),
                "`response-information` must be 256 bytes or less without control characters",
            ),
            (self.direct_messages > 0, "`direct-messages` must be 1 or more"),
        ];
        let limits = [
            ("total-rate-limit", &self.total_rate_limit),
            ("incoming-rate-limit", &self.incoming_rate_limit),
            ("outgoing-rate-limit", &self.outgoing_rate_limit),
            ("kept-rate-limit", &self.kept_rate_limit),
        ];
        let broken = checks.into_iter().find(|(holds, _)| !holds);
        let wrong = || {
            let mut limits = limits.into_iter();
            limits.find_map(|(name, text)| Some(format!("`{name}`: {}", RateLimit::parse(text).err()?)))
        };
        broken.map(|(_, text)| text.to_owned()).or_else(wrong)
    }
}
