//! The configuration: one TOML file, every key also by environment variable, each value with its source.
//!
//! Each part of the program owns its options; this module nests them, merges defaults, file, environment and command
//! line, and refuses invalid settings. The doc comments of the fields are the manual that `fieldline config` prints.

mod aliases;
mod checks;
mod layers;
mod print;
mod schema;

use std::net::SocketAddr;
use std::path::PathBuf;

use fieldline_core::options::{ByteSize, HumanDuration};
use fieldline_core::{address_guard, ingest};
use fieldline_devices::{activity, directory, ota, rpc};
use fieldline_entities::services::ClaimOptions;
use fieldline_event_loop::TrustedProxies;
use fieldline_rules::engine as rules;
use fieldline_transport::{coap, mqtt, mqtts};
use fieldline_web::UiSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::retention;

pub(crate) use layers::{ConfigSource, EffectiveConfig, ServerConfigError, load};
pub(crate) use print::print;

/// All settings of `fieldline serve`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// Directory of all data; created if it does not exist.
    pub data_dir: PathBuf,
    /// Log level: `error`, `warn`, `info`, `debug` or `trace`, or directives such as `info,fieldline_transport=debug`.
    pub log: String,
    /// Format of log lines.
    pub log_format: LogFormat,
    /// Password of the system administrator (sysadmin@thingsboard.org) that the first start creates. Generated and
    /// printed once if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_password: Option<String>,
    /// How long a stop may take, whatever hangs; work that is not stored by then is done after the next start.
    pub shutdown_timeout: HumanDuration,
    /// The HTTP server: REST, device API, health, metrics.
    pub http: HttpOptions,
    /// The MQTT device server.
    pub mqtt: mqtt::Options,
    /// The MQTT device server over TLS.
    pub mqtts: mqtts::Options,
    /// The CoAP device server.
    pub coap: coap::Options,
    /// The CoAP device server over DTLS.
    pub coaps: coap::SecureOptions,
    /// The cache of devices in memory.
    pub devices: directory::Options,
    /// Limits for addresses that keep sending wrong credentials.
    pub address_guard: address_guard::Options,
    /// RPC calls to devices and by devices.
    pub calls: rpc::Options,
    /// Claiming of devices by customers.
    pub claiming: ClaimOptions,
    /// Detection of active and inactive devices.
    pub activity: activity::Options,
    /// The durable journal: in files of the data directory, or on Kafka.
    pub journal: fieldline_journal::Options,
    /// Firmware and software updates.
    pub ota: ota::Options,
    /// Ingest: from the journal to the stores.
    pub ingest: ingest::Options,
    /// The rule engine.
    pub rules: rules::Options,
    /// Addresses that external nodes may connect to.
    pub egress: fieldline_rules::egress::Options,
    /// Records that are set aside because processing them crashed the program.
    pub set_aside: fieldline_core::set_aside::Options,
    /// How the usage of tenants is counted.
    pub usage: fieldline_core::usage::Options,
    /// Retention of events.
    pub events: retention::Options,
    /// Time series, latest values and attributes.
    pub series: fieldline_storage::series::Options,
    /// The publish/subscribe broker: any topic, between any clients. It is off unless it has an address.
    pub broker: fieldline_broker::Options,
    /// Bridges between the publish/subscribe broker and other brokers, or devices of the platform.
    pub bridges: fieldline_bridge::Options,
    /// The Cassandra cluster of the time series, where `series.kind` is `cassandra`.
    pub cassandra: fieldline_storage::series::CassandraOptions,
    /// The database of entities.
    pub sql: fieldline_storage::sql::Options,
    /// Logins, tokens and limits of the REST API.
    pub api: fieldline_api::Options,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("data"),
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            admin_password: None,
            shutdown_timeout: HumanDuration::secs(9),
            http: HttpOptions::default(),
            mqtt: mqtt::Options::default(),
            mqtts: mqtts::Options::default(),
            coap: coap::Options::default(),
            coaps: coap::SecureOptions::default(),
            devices: directory::Options::default(),
            address_guard: address_guard::Options::default(),
            calls: rpc::Options::default(),
            claiming: ClaimOptions::default(),
            activity: activity::Options::default(),
            journal: fieldline_journal::Options::default(),
            ota: ota::Options::default(),
            ingest: ingest::Options::default(),
            rules: rules::Options::default(),
            egress: fieldline_rules::egress::Options::default(),
            set_aside: fieldline_core::set_aside::Options::default(),
            usage: fieldline_core::usage::Options::default(),
            events: retention::Options::default(),
            series: fieldline_storage::series::Options::default(),
            broker: fieldline_broker::Options::default(),
            bridges: fieldline_bridge::Options::default(),
            cassandra: fieldline_storage::series::CassandraOptions::default(),
            sql: fieldline_storage::sql::Options::default(),
            api: fieldline_api::Options::default(),
        }
    }
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Settings of the HTTP server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct HttpOptions {
    /// Address of the REST API, the HTTP device API and the probes.
    pub listen: SocketAddr,
    /// Address that answers `/healthz`, `/readyz` and `/metrics` only, with connections of its own, so that it still
    /// answers when all connections of `listen` are taken. If not set, only `listen` answers them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_listen: Option<SocketAddr>,
    /// Addresses and ranges of the operator's own proxies, such as `10.0.0.5` or `10.0.0.0/24`. The server accepts
    /// `Forwarded`, `X-Forwarded-For` and PROXY headers only from them; the client address in these headers counts for
    /// lock-outs, limits and the audit log. Trusted proxies have no limit on connections per address.
    pub trusted_proxies: Vec<String>,
    /// Whether the trusted proxies begin each connection with a header of the PROXY protocol, version 1 or 2. If set,
    /// their connections without the header are closed; connections of other addresses need none.
    pub proxy_protocol: bool,
    /// Origins of web pages that may use the API from a browser, such as `https://shop.example`, separated by commas;
    /// `*` for all, empty for none.
    pub cors_origins: String,
    /// Most connections at a time; further ones wait to be accepted.
    pub max_connections: usize,
    /// Most connections of one address (an IPv6 /64) at a time; further ones are closed at once; 0 for no limit, as
    /// behind a proxy on another machine, where all come from one address. This machine's loopback addresses have no
    /// limit.
    pub max_connections_per_address: usize,
    /// Time within which a client must send the head of its request, or the connection is closed; also closes idle
    /// connections.
    pub header_timeout: HumanDuration,
    /// The connection is closed if the client sends no part of its request's body for this long.
    pub body_timeout: HumanDuration,
    /// Time within which a client must send the whole body of its request, however steadily it sends, or the connection
    /// is closed. The response may take longer. Raise it if large bodies come over slow links.
    pub request_timeout: HumanDuration,
    /// The connection is closed if the client reads no part of its response for this long.
    pub write_timeout: HumanDuration,
    /// Largest body of a device's telemetry or attributes post.
    pub max_device_body: ByteSize,
    /// Memory for all device posts being read, of which a tenant that is alone may use three eighths; beyond it posts
    /// get 503. At least 8/3 of `max-device-body`.
    pub device_body_memory: ByteSize,
    /// Whether pages of the web user interface are served beside the API.
    pub ui: bool,
    /// Folder of a built single-page application, with `index.html`, that is served instead of the packed user interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ui_dir: Option<PathBuf>,
    /// Map that dashboards draw without the internet: a PMTiles archive of vector tiles in Protomaps' schema. Whoever is
    /// logged in may read it, also by a public link of a dashboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_file: Option<PathBuf>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 8080)),
            probe_listen: None,
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            cors_origins: "*".to_owned(),
            max_connections: 4_096,
            max_connections_per_address: 1_024,
            header_timeout: HumanDuration::secs(15),
            body_timeout: HumanDuration::secs(30),
            request_timeout: HumanDuration::secs(60),
            write_timeout: HumanDuration::secs(30),
            max_device_body: ByteSize(52_428_800),
            device_body_memory: ByteSize::mib(256),
            ui: true,
            ui_dir: None,
            map_file: None,
        }
    }
}

impl HttpOptions {
    /// Returns the trusted proxies; none if the list cannot be parsed, which [`Self::problem`] reports.
    pub(crate) fn proxies(&self) -> TrustedProxies {
        TrustedProxies::parse(&self.trusted_proxies).unwrap_or_default()
    }

    /// Returns where the user interface comes from; none if only the API is served.
    pub(crate) fn ui_source(&self) -> Option<UiSource> {
        let source = self.ui_dir.clone().map_or(UiSource::Packed, UiSource::Folder);
        self.ui.then_some(source)
    }

    /// Describes the problem of the proxy settings, of the folder of the user interface or of the map, if any.
    fn problem(&self) -> Option<String> {
        let page = self
            .ui_dir
            .as_ref()
            .filter(|_| self.ui)
            .map(|folder| folder.join("index.html"));
        if let Some(page) = page.filter(|page| !page.is_file()) {
            return Some(format!("`ui-dir`: there is no file {}", page.display()));
        }
        let map = self.map_file.as_deref();
        if let Some(problem) = map.and_then(fieldline_api::map_file_problem) {
            return Some(format!("`map-file`: {problem}"));
        }
        match TrustedProxies::parse(&self.trusted_proxies) {
            Err(problem) => Some(format!("`trusted-proxies`: {problem}")),
            Ok(proxies) if self.proxy_protocol && proxies.is_empty() => {
                Some("`proxy-protocol` needs `trusted-proxies`, nobody else is believed".to_owned())
            }
            Ok(_) => None,
        }
    }
}

/// Keys whose values are never printed; those of bridges are lists with passwords and tokens in them.
pub(crate) const SECRETS: [&str; 8] = [
    "admin-password",
    "bridges.brokers",
    "bridges.devices",
    "bridges.http",
    "bridges.kafka",
    "cassandra.password",
    "journal.kafka.password",
    "sql.url",
];

/// Whether a value must not be quoted: it is a secret, or a part of a list that may have some.
pub(crate) fn is_secret(path: &str) -> bool {
    SECRETS.iter().any(|secret| {
        path.strip_prefix(secret)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}
