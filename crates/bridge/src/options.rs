//! Settings of bridges.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use fieldline_codec::QoS;
use fieldline_codec::topic::TopicFilter;
use fieldline_core::options::HumanDuration;
use fieldline_core::web_url::is_web_url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sinks::kafka_topic;

/// Most bridges.
const MOST: usize = 100;
/// Stands for the topic of a message.
pub(crate) const TOPIC_PLACEHOLDER: &str = "${topic}";
/// How long a server may be silent, at least and at most.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of all bridges. They need the publish/subscribe broker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Bridges to other brokers.
    pub brokers: Vec<BrokerBridge>,
    /// Bridges to devices of the platform: topics that become their telemetry or attributes, and what is sent to them.
    pub devices: Vec<DeviceBridge>,
    /// HTTP servers that get messages.
    pub http: Vec<HttpSink>,
    /// Kafka clusters that get messages.
    pub kafka: Vec<KafkaSink>,
}

/// A bridge to another broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BrokerBridge {
    /// Name of the bridge, which nobody else has.
    pub name: String,
    /// Host and port of the other broker, such as `broker.example.com:1883`.
    pub address: String,
    /// Whether the connection uses TLS.
    pub tls: bool,
    /// File with the certificates of the authorities that are trusted, in PEM. Not set: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
    /// File with the certificate of the bridge, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// File with the key of the certificate, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PathBuf>,
    /// Version of MQTT there: 5 or 4, which is 3.1.1.
    pub version: u8,
    /// Client identifier there. Empty: the name of the bridge with `fieldline-` before it.
    pub client_id: String,
    /// User name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Password there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Seconds after which the bridge says that it is still there.
    pub keep_alive: u16,
    /// What is carried.
    pub topics: Vec<BridgeTopic>,
}

impl Default for BrokerBridge {
    fn default() -> Self {
        Self {
            name: String::new(),
            address: String::new(),
            tls: false,
            authorities: None,
            certificate: None,
            private_key: None,
            version: 5,
            client_id: String::new(),
            username: None,
            password: None,
            keep_alive: 60,
            topics: Vec::new(),
        }
    }
}

/// Which way messages are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BridgeDirection {
    /// From this broker to the other one.
    #[default]
    Out,
    /// From the other broker to this one.
    In,
    /// Both ways. The other broker has to speak MQTT 5, in which a client can ask not to get its own messages.
    Both,
}

/// Topics that are carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BridgeTopic {
    /// Filter of the topics, without the prefixes.
    pub filter: String,
    /// Which way.
    pub direction: BridgeDirection,
    /// Highest quality of service: 0 or 1. Messages of QoS 2 are carried with 1.
    pub qos: u8,
    /// What stands before the topic here.
    pub local_prefix: String,
    /// What stands before it there.
    pub remote_prefix: String,
}

impl Default for BridgeTopic {
    fn default() -> Self {
        Self {
            filter: "#".to_owned(),
            direction: BridgeDirection::Out,
            qos: 1,
            local_prefix: String::new(),
            remote_prefix: String::new(),
        }
    }
}

/// A bridge to devices of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceBridge {
    /// Name of the bridge, which nobody else has.
    pub name: String,
    /// Access token of a device of the tenant that is a gateway: the other devices are made under it.
    pub token: String,
    /// Filter of the topics.
    pub filter: String,
    /// Name of the device. `${1}` stands for the first level of the topic, `${2}` for the second one; `${topic}` for all of it.
    pub device: String,
    /// Name of the device's profile, which may have the same placeholders.
    pub profile: String,
    /// Key of a value that is no JSON object, which may have the same placeholders. Empty: the last level of the topic.
    pub key: String,
    /// Whether values become attributes of the device instead of telemetry.
    pub attributes: bool,
    /// Topic on which shared attributes and calls of the device are published; `${device}` stands for its name and `${method}`
    /// for the method of a call, `attributes` for attributes. Empty: nowhere.
    pub command_topic: String,
}

impl Default for DeviceBridge {
    fn default() -> Self {
        Self {
            name: String::new(),
            token: String::new(),
            filter: String::new(),
            device: "${topic}".to_owned(),
            profile: "default".to_owned(),
            key: String::new(),
            attributes: false,
            command_topic: String::new(),
        }
    }
}

/// How a payload is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SinkPayload {
    /// In Base64, whatever it is.
    #[default]
    Base64,
    /// As a text, which it has to be.
    Text,
    /// As JSON, which it has to be.
    Json,
}

/// An HTTP server that gets messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HttpSink {
    /// Name of the bridge, which nobody else has.
    pub name: String,
    /// Filters of the topics.
    pub filters: Vec<String>,
    /// Where messages are sent.
    pub url: String,
    /// `POST` or `PUT`.
    pub method: String,
    /// Headers of the requests.
    pub headers: BTreeMap<String, String>,
    /// User name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Password there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// How long the server may be silent.
    pub timeout: HumanDuration,
    /// How the payload is sent.
    pub payload: SinkPayload,
    /// Whether the payload alone is sent, instead of JSON with topic, quality of service and user properties.
    pub payload_only: bool,
}

impl Default for HttpSink {
    fn default() -> Self {
        Self {
            name: String::new(),
            filters: Vec::new(),
            url: String::new(),
            method: "POST".to_owned(),
            headers: BTreeMap::new(),
            username: None,
            password: None,
            timeout: HumanDuration::secs(10),
            payload: SinkPayload::default(),
            payload_only: false,
        }
    }
}

/// A Kafka cluster that gets messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct KafkaSink {
    /// Name of the bridge, which nobody else has.
    pub name: String,
    /// Filters of the topics.
    pub filters: Vec<String>,
    /// Hosts and ports of brokers, separated by commas.
    pub servers: String,
    /// Topic there. `${topic}` stands for that of the message, with `.` in the place of `/`.
    pub topic: String,
    /// Key of the records. `${topic}` stands for the topic of the message. Empty: none.
    pub key: String,
    /// Properties of the producer, by their names.
    pub properties: BTreeMap<String, String>,
    /// How the payload is sent.
    pub payload: SinkPayload,
    /// Whether the payload alone is sent, instead of JSON with topic, quality of service and user properties.
    pub payload_only: bool,
}

impl Default for KafkaSink {
    fn default() -> Self {
        Self {
            name: String::new(),
            filters: Vec::new(),
            servers: String::new(),
            topic: "mqtt".to_owned(),
            key: "${topic}".to_owned(),
            properties: BTreeMap::new(),
            payload: SinkPayload::default(),
            payload_only: false,
        }
    }
}

/// Whether a text is a filter that a bridge may subscribe to.
fn is_filter(filter: &str) -> bool {
    TopicFilter::parse(filter).is_ok_and(|parsed| parsed.share_name.is_none()) && !filter.starts_with('$')
}

fn filters_problem(filters: &[String]) -> Option<String> {
    if filters.is_empty() {
        return Some("`filters` must name what is sent".to_owned());
    }
    let wrong = filters.iter().find(|filter| !is_filter(filter))?;
    Some(format!("`filters`: `{wrong}` is no filter of topics"))
}

impl HttpSink {
    fn problem(&self) -> Option<String> {
        if !is_web_url(&self.url) {
            return Some(
                "`url` must begin with `http://` or `https://` and a host, without a user's name, which has a setting of its own"
                    .to_owned(),
            );
        }
        if !(SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&self.timeout.0) {
            return Some("`timeout` must be 1s to 120s".to_owned());
        }
        if !["POST", "PUT"].contains(&self.method.as_str()) {
            return Some("`method` must be `POST` or `PUT`".to_owned());
        }
        filters_problem(&self.filters)
    }
}

impl KafkaSink {
    fn problem(&self) -> Option<String> {
        if self.servers.trim().is_empty() || self.topic.is_empty() {
            return Some("`servers` and `topic` must not be empty".to_owned());
        }
        if let Err(problem) = kafka_topic(&self.topic, "a") {
            return Some(format!("`topic`: {problem} as `{}`", self.topic));
        }
        filters_problem(&self.filters)
    }
}

impl BrokerBridge {
    /// Host and port of the address.
    pub(crate) fn host_and_port(&self) -> Option<(&str, u16)> {
        let (host, port) = self.address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then_some((host, port))
    }

    /// The client identifier at the other broker.
    pub(crate) fn remote_client_id(&self) -> String {
        match self.client_id.as_str() {
            "" => format!("fieldline-{}", self.name),
            own => own.to_owned(),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.host_and_port().is_none() {
            return Some("`address` must be a host and a port, such as `broker.example.com:1883`".to_owned());
        }
        if ![4, 5].contains(&self.version) {
            return Some("`version` must be 5 or 4".to_owned());
        }
        if self.certificate.is_some() != self.private_key.is_some() {
            return Some("`certificate` and `private-key` belong together".to_owned());
        }
        if self.password.is_some() && self.username.is_none() && self.version == 4 {
            return Some("`password` needs a `username`".to_owned());
        }
        if self.keep_alive == 0 {
            return Some(
                "`keep-alive` must be at least 1: a broker that has gone would not be noticed".to_owned(),
            );
        }
        if self.topics.is_empty() {
            return Some("`topics` must name what is carried".to_owned());
        }
        self.topics.iter().find_map(|topic| topic.problem(self.version))
    }
}

impl BridgeTopic {
    /// The filter here.
    pub(crate) fn local_filter(&self) -> String {
        format!("{}{}", self.local_prefix, self.filter)
    }

    /// The filter there.
    pub(crate) fn remote_filter(&self) -> String {
        format!("{}{}", self.remote_prefix, self.filter)
    }

    /// The highest quality of service.
    pub(crate) fn qos(&self) -> QoS {
        QoS::from_u8(self.qos.min(1)).unwrap_or(QoS::AtLeastOnce)
    }

    pub(crate) fn goes_out(&self) -> bool {
        self.direction != BridgeDirection::In
    }

    pub(crate) fn comes_in(&self) -> bool {
        self.direction != BridgeDirection::Out
    }

    fn problem(&self, version: u8) -> Option<String> {
        if self.qos > 1 {
            return Some("`topics.qos` must be 0 or 1".to_owned());
        }
        if self.direction == BridgeDirection::Both && version != 5 {
            return Some(
                "`topics.direction` can be `both` only with version 5: messages would come back".to_owned(),
            );
        }
        let is_prefix = |prefix: &str| !prefix.contains(['+', '#', '\0']);
        if !is_prefix(&self.local_prefix) || !is_prefix(&self.remote_prefix) {
            return Some("prefixes of `topics` must not have wildcards".to_owned());
        }
        if !is_filter(&self.local_filter()) || !is_filter(&self.remote_filter()) {
            return Some(format!(
                "`topics.filter` `{}` is no filter of topics",
                self.filter
            ));
        }
        None
    }
}

impl DeviceBridge {
    fn problem(&self) -> Option<String> {
        if self.token.is_empty() {
            return Some("`token` must be the access token of a gateway".to_owned());
        }
        if !is_filter(&self.filter) {
            return Some(format!("`filter` `{}` is no filter of topics", self.filter));
        }
        if self.device.is_empty() || self.profile.is_empty() {
            return Some("`device` and `profile` must not be empty".to_owned());
        }
        if self.command_topic.contains(['+', '#', '\0']) || self.command_topic.starts_with('$') {
            return Some("`command-topic` must be a topic".to_owned());
        }
        None
    }
}

impl Options {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count() == 0
    }

    const fn count(&self) -> usize {
        self.brokers.len() + self.devices.len() + self.http.len() + self.kafka.len()
    }

    /// Describes a setting that cannot work, if there is one.
    pub fn problem(&self) -> Option<String> {
        if self.count() > MOST {
            return Some(format!("there can be {MOST} bridges at most"));
        }
        let brokers = self.brokers.iter().map(|bridge| (&bridge.name, bridge.problem()));
        let devices = self.devices.iter().map(|bridge| (&bridge.name, bridge.problem()));
        let mut names = HashSet::new();
        let http = self.http.iter().map(|sink| (&sink.name, sink.problem()));
        let kafka = self.kafka.iter().map(|sink| (&sink.name, sink.problem()));
        for (name, problem) in brokers.chain(devices).chain(http).chain(kafka) {
            let is_name = |name: &str| {
                (1..=64).contains(&name.len())
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            };
            if !is_name(name) {
                return Some(format!(
                    "`name` `{name}` must be 1 to 64 letters, digits, `-`, `_` or `.`"
                ));
            }
            if !names.insert(name) {
                return Some(format!("there are two bridges with the name `{name}`"));
            }
            if let Some(problem) = problem {
                return Some(format!("`{name}`: {problem}"));
            }
        }
        let mut tokens = HashSet::new();
        if let Some(second) = self.devices.iter().find(|bridge| !tokens.insert(&bridge.token)) {
            return Some(format!(
                "`{}`: another bridge has the same `token`; each needs a gateway of its own",
                second.name
            ));
        }
        None
    }
}
