//! What a load has counted.

use std::time::Duration;

use crate::report::LatencySummary;

/// What one device has sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceTally {
    /// Messages sent, whether they arrived or not.
    pub sent: u32,
    /// Messages that the server has to have: those it acknowledged or, as QoS 0 promises nothing beyond a connection, those
    /// written since the last loss of the connection.
    pub acknowledged: u32,
    /// Its place in the order of sending.
    pub(super) turn: u32,
    /// Time of its last message.
    pub(super) last_ts: i64,
}

/// What a load came to.
#[derive(Debug, Clone, Default)]
pub struct LoadTotals {
    /// Messages sent: acknowledged, failed, or (while the load runs) in flight.
    pub sent: u64,
    /// Messages acknowledged, those after the end included; of QoS 0 those that the system has taken.
    pub acknowledged: u64,
    /// Messages acknowledged while the load lasted.
    pub acknowledged_in_time: u64,
    /// Messages refused, lost with their connection, or never answered.
    pub failed: u64,
    /// Messages that were never answered.
    pub unanswered: u64,
    /// Messages of the schedule that no connection could take.
    pub unsent: u64,
    /// Connections that were lost.
    pub lost: u64,
    /// Why the first one was lost.
    pub first_loss: Option<String>,
    /// Answers to nothing that was asked.
    pub unexpected: u64,
    /// Bytes of the payloads sent.
    pub payload_bytes: u64,
    /// Why the first message was refused.
    pub first_failure: Option<String>,
    /// Seconds that messages were sent for.
    pub seconds: f64,
    /// Milliseconds by which the times of the messages are ahead of the clock: each message of a device has a time of its own.
    pub ahead_ms: i64,
    /// Times until the acknowledgement.
    pub latency: LatencySummary,
}

/// What happened in an interval of about a second.
#[derive(Debug, Clone, Copy)]
pub struct LoadInterval {
    /// Its end, from the beginning of the load.
    pub at: Duration,
    /// How long it was.
    pub length: Duration,
    /// Messages sent in it.
    pub sent: u64,
    /// Messages acknowledged in it.
    pub acknowledged: u64,
    /// Messages refused or lost in it.
    pub failed: u64,
    /// Times until the acknowledgements of the interval.
    pub latency: LatencySummary,
}
