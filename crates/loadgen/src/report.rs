//! What a run measured. The JSON report is this structure as it is; text and HTML are made from it.

use serde::{Deserialize, Serialize};

mod axis;
mod charts;
mod figures;
mod files;
pub mod html;
mod plot;
#[cfg(test)]
mod tests;
pub mod text;
mod units;

pub use files::{check_writable, write_html, write_json};

/// Everything one run measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadReport {
    /// What was run, for example `scenario B, scale 0.1`.
    pub title: String,
    /// Version of the program.
    pub version: String,
    /// When the load began, in milliseconds since 1970.
    pub started_at: i64,
    /// The machine of the load generator.
    pub machine: MachineSpec,
    /// What was asked for.
    pub load: LoadSpec,
    /// Devices made through REST before the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<LoadProvisioning>,
    /// Opening of the connections.
    pub connecting: ConnectResult,
    /// What came of it.
    pub outcome: LoadOutcome,
    /// The same load against a server that only parses and acknowledges, in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitServerResult>,
    /// Time from the acknowledgement's receipt until a query shows the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queryable: Option<LatencySummary>,
    /// Whether everything acknowledged is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationResult>,
    /// One entry a second of the load.
    pub seconds: Vec<LoadSecond>,
    /// What a reader has to know about these figures, one sentence each.
    pub remarks: Vec<String>,
}

/// The machine that a run used.
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

/// The load that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSpec {
    /// `mqtt`, `mqtts` or `http`.
    pub protocol: String,
    /// Host and port.
    pub target: String,
    /// Devices that send.
    pub devices: usize,
    /// Connections, as many as devices for MQTT.
    pub connections: usize,
    /// Quality of service of MQTT.
    pub qos: u8,
    /// Name of the payload.
    pub payload: String,
    /// Bytes of a payload, on average.
    #[serde(deserialize_with = "files::number")]
    pub payload_bytes: f64,
    /// Data points of a message.
    pub points: usize,
    /// Messages a second in open loop; none in closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Messages in flight on a connection in closed loop, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u16>,
    /// Messages a second that are made to raise an alarm.
    #[serde(deserialize_with = "files::number")]
    pub alarms_per_second: f64,
    /// Seconds of load.
    #[serde(deserialize_with = "files::number")]
    pub duration_seconds: f64,
}

/// Devices made through REST.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadProvisioning {
    /// Devices that were made.
    pub created: usize,
    /// Devices that were there.
    pub found: usize,
    /// Seconds it took.
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
    /// Seconds from the first to the last answer.
    #[serde(deserialize_with = "files::number")]
    pub seconds: f64,
}

/// What the load achieved.
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
    /// From the scheduled time (open loop) or the sending (closed loop) to the acknowledgement.
    pub latency: LatencySummary,
    /// Processor time of the server a message, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_us_per_message: Option<f64>,
    /// Processor time of the load generator a message, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_us_per_message: Option<f64>,
    /// Resident memory of the server at most, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_memory_peak: Option<u64>,
    /// Messages that waited to be stored, at most.
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
    /// How many were taken.
    pub count: u64,
    /// Their mean.
    #[serde(deserialize_with = "files::number")]
    pub mean: f64,
    /// Half are at most this.
    pub p50: u64,
    /// 90 of 100.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// What the limit server reached under the same load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitServerResult {
    /// What it does: `parse and acknowledge`, or `append, group commit and acknowledge`.
    pub what: String,
    /// Acknowledged messages a second; in open loop about what was asked for.
    #[serde(deserialize_with = "files::number")]
    pub rate: f64,
    /// From the scheduled time (open loop) or the sending (closed loop) to the acknowledgement.
    pub latency: LatencySummary,
    /// Processor time of the limit server a message, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_us_per_message: Option<f64>,
    /// Connections accepted a second.
    #[serde(deserialize_with = "files::number")]
    pub connections_per_second: f64,
}

/// Whether what was acknowledged is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerificationResult {
    /// Devices that were looked at.
    pub devices: usize,
    /// Messages acknowledged to them; with QoS 0, those written since a connection was last lost.
    pub acknowledged: u64,
    /// Messages found stored.
    pub stored: u64,
    /// Acknowledged messages that are not stored.
    pub missing: u64,
    /// Stored messages that were never sent.
    pub surplus: u64,
    /// Names of devices that miss messages, a few.
    pub examples: Vec<String>,
    /// Seconds after the load until everything was found.
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
    /// Times of the acknowledgements of this interval.
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
    /// Messages that wait to be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
}
