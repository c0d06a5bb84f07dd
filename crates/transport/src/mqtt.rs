//! The MQTT device server: 3.1, 3.1.1 and 5.0 on the topics of the device API.
//!
//! A client logs in on a task of its own. After that its connection belongs to one of a few event loops. It is read
//! into a buffer shared by all connections of the loop, and keeps only a partial packet. The records of one read are
//! appended to the journal together, and acknowledged with one write when they are durable. The connection is not read
//! while it waits, so TCP slows down a device that is faster than the disk. What has to wait for a store goes to a task
//! and comes back.

mod cold_state;
mod connection;
mod downlink;
mod driver;
mod firmware;
mod gateway;
mod keepalive;
mod large_memory;
mod listener;
mod login;
mod packet_handler;
mod provisioning;
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
    /// Threads that carry the connections of devices; 0 for two thirds of the processors, at least one.
    pub event_loops: usize,
    /// Most connections at a time, TLS included; further ones wait to be accepted.
    pub max_connections: usize,
    /// Largest packet a device may send, without the fixed header; a larger one ends the connection.
    pub max_packet: ByteSize,
    /// Memory for packets of which only a part has arrived, over all connections; a connection that would exceed it is
    /// closed.
    pub partial_memory: ByteSize,
    /// Memory for package chunks larger than 64 KiB on their way to devices. The devices of one tenant may hold a part
    /// of it, three eighths if the tenant is alone; a device that gets no memory within ten seconds is closed. At least
    /// 96 MiB.
    pub chunk_memory: ByteSize,
    /// Time that a device has to read a package chunk larger than 64 KiB, in addition to the time given by
    /// `chunk-pace`.
    pub chunk_grace: HumanDuration,
    /// Slowest rate at which a device may read such a chunk, bytes a second.
    pub chunk_pace: ByteSize,
    /// Whether the proxies of `http.trusted-proxies` send a PROXY protocol header, version 1 or 2, that names the
    /// client; also for MQTT with TLS. A connection of such a proxy without the header is closed; connections of other
    /// addresses are accepted as they are.
    pub proxy_protocol: bool,
    /// Time for a device to log in, TLS handshake included; a device that takes longer is disconnected.
    pub connect_timeout: HumanDuration,
    /// Longest silence of a device that asked for no keep-alive; then it is disconnected.
    pub inactivity_timeout: HumanDuration,
    /// Sessions of one device at a time; a further one ends the oldest.
    pub sessions_per_device: usize,
    /// Interval at which the latency of messages through a gateway is reported as telemetry of the gateway, if the
    /// gateway sends timestamps.
    pub gateway_metrics_interval: HumanDuration,
    /// Whether text that reads as a number is stored as a number; applies to HTTP too.
    pub json_type_cast: bool,
    /// Longest text value, in UTF-16 units; applies to HTTP too; 0 for no limit.
    pub json_max_text: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 1883)),
            event_loops: 0,
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
