//! The results of a run. The JSON report is this structure as it is; text and HTML are derived from it.

use serde::{Deserialize, Serialize};

pub(crate) mod axis;
mod charts;
mod figures;
mod files;
pub mod html;
pub(crate) mod plot;
#[cfg(test)]
mod tests;
pub mod text;
pub(crate) mod units;

pub(crate) use files::write_page;
pub use files::{check_writable, write_html, write_json};

/// All results of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadReport {
    /// The name of the run, for example `scenario B, scale 0.1`.
    pub title: String,
    /// Version of the program.
    pub version: String,
    /// Start of the load, in milliseconds since 1970.
    pub started_at: i64,
    /// The machine of the load generator.
    pub machine: MachineSpec,
    /// The requested load.
    pub load: LoadSpec,
    /// Devices created through REST before the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<LoadProvisioning>,
    /// Opening of the connections.
    pub connecting: ConnectResult,
    /// The results of the load.
    pub outcome: LoadOutcome,
    /// The same load on a limit server, in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitServerResult>,
    /// Time from the receipt of an acknowledgement until a query returns the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queryable: Option<LatencySummary>,
    /// Whether every acknowledged message is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationResult>,
    /// One entry per second of the load.
    pub seconds: Vec<LoadSecond>,
    /// Remarks that a reader needs to judge these figures, one sentence each.
    pub remarks: Vec<String>,
}

/// The machine of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Cores that the process may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Name of the processor.
    pub processor: String,
    /// Name and release of the operating system.
    pub system: String,
}

/// The requested load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSpec {
    /// `mqtt`, `mqtts` or `http`.
    pub protocol: String,
    /// Host and port.
    pub target: String,
    /// Devices that send.
    pub devices: usize,
    /// Connections; over MQTT one per device.
    pub connections: usize,
    /// MQTT quality of service.
    pub qos: u8,
    /// Name of the payload.
    pub payload: String,
    /// Bytes of a payload, on average.
    #[serde(deserialize_with = "files::number")]
    pub payload_bytes: f64,
    /// Data points per message.
    pub points: usize,
    /// Messages a second in open loop; `None` in closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Most messages in flight on a connection in closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u16>,
    /// Messages a second that raise an alarm.
    #[serde(deserialize_with = "files::number")]
    pub alarms_per_second: f64,
    /// Seconds of load.
    #[serde(deserialize_with = "files::number")]
    pub duration_seconds: f64,
}

/// Devices created through REST.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadProvisioning {
    /// Devices that were created.
    pub created: usize,
    /// Devices that existed already.
    pub found: usize,
    /// Duration in seconds.
    #[serde(deserialize_with = "files::number")]
    pub seconds: f64,
}

/// Opening of connections, log-in included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectResult {
    /// Connections that were accepted.
    pub connected: usize,
    /// Connections that were refused or lost.
    pub failed: usize,
    /// Seconds from the first to the last reply.
    #[serde(deserialize_with = "files::number")]
    pub seconds: f64,
}

/// The results of the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadOutcome {
    /// Messages sent: acknowledged or failed.
    pub sent: u64,
    /// Messages acknowledged (or, with QoS 0, written).
    pub acknowledged: u64,
    /// Messages refused, never answered, or in flight on connections that were lost.
    pub failed: u64,
    /// Messages of the schedule that were never sent because the server did not keep up.
    pub unsent: u64,
    /// Connections lost during the load.
    pub lost_connections: u64,
    /// Acknowledged messages a second.
    #[serde(deserialize_with = "files::number")]
    pub rate: f64,
    /// Times from the scheduled time (open loop) or the sending (closed loop) to the acknowledgement.
    pub latency: LatencySummary,
    /// Processor time of the server per message, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_us_per_message: Option<f64>,
    /// Processor time of the load generator per message, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_us_per_message: Option<f64>,
    /// Highest resident memory of the server, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_memory_peak: Option<u64>,
    /// Highest number of messages that waited to be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_peak: Option<u64>,
    /// Messages that waited to be stored when the load ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_end: Option<u64>,
}

/// A distribution of times in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LatencySummary {
    /// Number of recorded times.
    pub count: u64,
    /// Their mean.
    #[serde(deserialize_with = "files::number")]
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// The longest time.
    pub max: u64,
}

/// The results of a limit server under the same load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitServerResult {
    /// The server's work: `parse and acknowledge`, `append, group commit and acknowledge`, or
    /// `bare HTTP handler that appends to the journal`.
    pub what: String,
    /// Acknowledged messages a second; in open loop about the requested rate.
    #[serde(deserialize_with = "files::number")]
    pub rate: f64,
    /// Times from the scheduled time (open loop) or the sending (closed loop) to the acknowledgement.
    pub latency: LatencySummary,
    /// Processor time of the limit server per message, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_us_per_message: Option<f64>,
    /// Connections accepted a second.
    #[serde(deserialize_with = "files::number")]
    pub connections_per_second: f64,
}

/// Whether every acknowledged message is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerificationResult {
    /// Devices that were checked.
    pub devices: usize,
    /// Messages acknowledged to them; with QoS 0, those written since a connection was last lost.
    pub acknowledged: u64,
    /// Messages found stored.
    pub stored: u64,
    /// Acknowledged messages that are not stored.
    pub missing: u64,
    /// Stored messages that were never sent.
    pub surplus: u64,
    /// Names of a few devices with missing messages.
    pub examples: Vec<String>,
    /// Seconds until the check was complete.
    #[serde(deserialize_with = "files::number")]
    pub seconds: f64,
}

/// One second of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSecond {
    /// Seconds since the load began, at the end of the interval.
    #[serde(deserialize_with = "files::number")]
    pub at: f64,
    /// Messages sent a second.
    #[serde(deserialize_with = "files::number")]
    pub sent: f64,
    /// Messages acknowledged a second.
    #[serde(deserialize_with = "files::number")]
    pub acknowledged: f64,
    /// Messages refused or lost a second.
    #[serde(deserialize_with = "files::number")]
    pub failed: f64,
    /// Times of the messages acknowledged in this interval.
    pub latency: LatencySummary,
    /// Processor time of the server, in cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cores: Option<f64>,
    /// Processor time of the load generator, in cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_cores: Option<f64>,
    /// Resident memory of the server in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_memory: Option<u64>,
    /// Messages that waited to be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
}
