//! The configuration: one TOML file, every key also by environment variable, each value with its source.
//!
//! Each part of the program owns its options; this module nests them, lays defaults, file, environment and command line
//! over each other, and refuses what makes no sense. The docs of the fields are the manual that `fieldline config` prints.

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
use fieldline_rules::engine as rules;
use fieldline_transport::proxies::TrustedProxies;
use fieldline_transport::{coap, mqtt, mqtts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::retention;

pub(crate) use layers::{ConfigSource, EffectiveConfig, load};
pub(crate) use print::print;

/// All settings of `fieldline serve`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// Directory that everything is kept in; created if it does not exist.
    pub data_dir: PathBuf,
    /// What is logged: `error`, `warn`, `info`, `debug` or `trace`, or directives such as `info,fieldline_transport=debug`.
    pub log: String,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Password of the system administrator (sysadmin@thingsboard.org) that the first start creates. Generated and printed
    /// once if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_password: Option<String>,
    /// How long a stop may take, whatever hangs; what is not stored by then is left to the next start.
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
    /// Which devices are kept in memory.
    pub devices: directory::Options,
    /// Addresses from which wrong credentials keep coming.
    pub address_guard: address_guard::Options,
    /// Calls to devices and by devices.
    pub calls: rpc::Options,
    /// Devices that customers claim.
    pub claiming: ClaimOptions,
    /// Whether devices are active.
    pub activity: activity::Options,
    /// The durable log.
    pub journal: fieldline_journal::Options,
    /// Firmware and software updates.
    pub ota: ota::Options,
    /// From the log to the stores.
    pub ingest: ingest::Options,
    /// The rule engine.
    pub rules: rules::Options,
    /// What external nodes may connect to.
    pub egress: fieldline_rules::egress::Options,
    /// Records that are set aside because the process died of them.
    pub set_aside: fieldline_core::set_aside::Options,
    /// How the use of tenants is counted.
    pub usage: fieldline_core::usage::Options,
    /// How long events are kept.
    pub events: retention::Options,
    /// Time series, latest values and attributes.
    pub series: fieldline_storage::series::Options,
    /// Entities.
    pub sql: fieldline_storage::sql::Options,
    /// Log-ins, tokens and limits of the REST API.
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
            sql: fieldline_storage::sql::Options::default(),
            api: fieldline_api::Options::default(),
        }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Settings of the HTTP server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct HttpOptions {
    /// Address of the REST API, the HTTP device API and the probes.
    pub listen: SocketAddr,
    /// Address that answers `/healthz`, `/readyz` and `/metrics` only, with connections of its own, so that it answers
    /// while all connections of `listen` are taken. Not set: only `listen` answers them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_listen: Option<SocketAddr>,
    /// Addresses and ranges of the operator's own proxies, such as `10.0.0.5` or `10.0.0.0/24`. Only their `Forwarded`,
    /// `X-Forwarded-For` and PROXY headers say who is behind them, for lock-outs, limits and the audit log; the connections of
    /// those whose headers count have no limit per address.
    pub trusted_proxies: Vec<String>,
    /// Whether the trusted proxies begin each connection with a header of the PROXY protocol, version 1 or 2. Without it
    /// their connections are closed; those of others are taken as they are.
    pub proxy_protocol: bool,
    /// Origins of web pages that may use the API from a browser, such as `https://shop.example`, separated by commas; `*`
    /// for all, empty for none.
    pub cors_origins: String,
    /// Connections at a time; further ones wait to be accepted.
    pub max_connections: usize,
    /// Connections of one address (an IPv6 /64) at a time, further ones are closed at once; 0 for no limit, as behind a
    /// proxy on another machine, where all come from one address. This machine's loopback addresses have no limit.
    pub max_connections_per_address: usize,
    /// A client that has not sent the head of its request by then is cut off; idle connections too.
    pub header_timeout: HumanDuration,
    /// A client that sends nothing of its request's body for this long is cut off.
    pub body_timeout: HumanDuration,
    /// A client that has not sent the whole body of its request by then is cut off, however steadily it sends. The answer
    /// may take as long as it takes. Raise it where large bodies come over slow links.
    pub request_timeout: HumanDuration,
    /// A client that takes nothing of its answer for this long is cut off.
    pub write_timeout: HumanDuration,
    /// Largest body of a telemetry or attributes post of a device.
    pub max_device_body: ByteSize,
    /// Memory that all device posts being read may take together, three eighths of it those of one tenant that is alone;
    /// beyond it posts are answered with 503. At least 8/3 of `max-device-body`.
    pub device_body_memory: ByteSize,
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
        }
    }
}

impl HttpOptions {
    /// The proxies that are trusted; nobody where that cannot be read, which [`Self::problem`] says.
    pub(crate) fn proxies(&self) -> TrustedProxies {
        TrustedProxies::parse(&self.trusted_proxies).unwrap_or_default()
    }

    /// What is wrong with the proxies.
    fn problem(&self) -> Option<String> {
        match TrustedProxies::parse(&self.trusted_proxies) {
            Err(problem) => Some(format!("`trusted-proxies`: {problem}")),
            Ok(proxies) if self.proxy_protocol && proxies.is_empty() => {
                Some("`proxy-protocol` needs `trusted-proxies`, nobody else is believed".to_owned())
            }
            Ok(_) => None,
        }
    }
}

/// Keys whose values are never printed.
pub(crate) const SECRETS: [&str; 1] = ["admin-password"];
