//! The MQTT device server: 3.1, 3.1.1 and 5.0 on the topics of the device API.
//!
//! One task a connection. It reads into a buffer that all connections of a thread share and keeps only a partial packet;
//! everything that one read brought is appended to the journal at once, and acknowledged with one write when it is
//! durable. While it waits it does not read, so a device that is faster than the disk is slowed down by TCP.

mod cold_state;
mod connection;
mod downlink;
mod firmware;
mod gateway;
mod keepalive;
mod large_memory;
mod listener;
mod login;
mod packet_handler;
mod partial_budget;
mod provisioning;
mod stream;
mod topics;

use std::net::SocketAddr;

use fieldline_core::options::{ByteSize, HumanDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::listener::MqttServer;

/// Settings of the MQTT device server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Address that devices connect to without TLS.
    pub listen: SocketAddr,
    /// Connections at a time, TLS included; further ones wait to be accepted.
    pub max_connections: usize,
    /// Largest packet a device may send, without the fixed header; a larger one ends its connection.
    pub max_packet: ByteSize,
    /// Memory that packets may take of which only a part has arrived, over all connections; one that would take more is
    /// closed.
    pub partial_memory: ByteSize,
    /// Memory for chunks of packages that are larger than 64 KiB and on their way to devices. A tenant's devices may hold
    /// a part, three eighths where it is alone; who finds none for ten seconds is closed. At least 96 MiB.
    pub chunk_memory: ByteSize,
    /// How long a device may take to read a chunk of a package that is larger than 64 KiB, besides what `chunk-pace` gives it.
    pub chunk_grace: HumanDuration,
    /// Bytes a second at which such a chunk has to be read at least.
    pub chunk_pace: ByteSize,
    /// Whether the proxies of `http.trusted-proxies` say with the PROXY protocol, version 1 or 2, who is behind them, for
    /// MQTT with TLS, too. A connection of theirs without its header is closed; that of others is taken as it is.
    pub proxy_protocol: bool,
    /// A device that has not logged in by then is cut off, TLS handshake included.
    pub connect_timeout: HumanDuration,
    /// A device that asked for no keep-alive is cut off when it was silent for this long.
    pub inactivity_timeout: HumanDuration,
    /// Sessions of one device at a time; a further one ends the oldest.
    pub sessions_per_device: usize,
    /// How often it is reported as telemetry of a gateway how long messages take through it, where the gateway says so.
    pub gateway_metrics_interval: HumanDuration,
    /// Whether text that reads as a number is stored as one; for HTTP too.
    pub json_type_cast: bool,
    /// Longest text value, in UTF-16 units, for HTTP too; 0 for no limit.
    pub json_max_text: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 1883)),
            max_connections: 1_000_000,
            max_packet: ByteSize(65_536),
            partial_memory: ByteSize::mib(256),
            chunk_memory: ByteSize::mib(128),
            chunk_grace: HumanDuration::secs(30),
            chunk_pace: ByteSize(32 << 10),
            proxy_protocol: false,
            connect_timeout: HumanDuration::secs(10),
            inactivity_timeout: HumanDuration::secs(600),
            sessions_per_device: 1,
            gateway_metrics_interval: HumanDuration::secs(60),
            json_type_cast: true,
            json_max_text: 0,
        }
    }
}
