//! The counts of a load.

use std::time::Duration;

use crate::report::LatencySummary;

/// The counts of one device.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceTally {
    /// Messages sent, whether they arrived or not.
    pub sent: u32,
    /// Messages that the server must have: those it acknowledged or, as QoS 0 promises nothing beyond a connection,
    /// those written since the connection was last lost.
    pub acknowledged: u32,
    /// Its position in the order of sending.
    pub(super) turn: u32,
    /// Timestamp of its last message.
    pub(super) last_ts: i64,
}

/// The totals of a load.
#[derive(Debug, Clone, Default)]
pub struct LoadTotals {
    /// Messages sent: acknowledged, failed, or (while the load runs) in flight.
    pub sent: u64,
    /// Messages acknowledged, those after the end included; with QoS 0, those that the system has accepted.
    pub acknowledged: u64,
    /// Messages acknowledged during the load.
    pub acknowledged_in_time: u64,
    /// Messages refused, lost with their connection, or never answered.
    pub failed: u64,
    /// Messages without a reply.
    pub unanswered: u64,
    /// Messages of the schedule that no connection could send.
    pub unsent: u64,
    /// Connections that were lost.
    pub lost: u64,
    /// The reason why the first one was lost.
    pub first_loss: Option<String>,
    /// Replies that match no message.
    pub unexpected: u64,
    /// Bytes of the payloads sent.
    pub payload_bytes: u64,
    /// The reason why the first message was refused.
    pub first_failure: Option<String>,
    /// Duration of sending, in seconds.
    pub seconds: f64,
    /// Milliseconds by which message timestamps are ahead of the clock, since each message of a device has its own
    /// timestamp.
    pub ahead_ms: i64,
    /// Times from the sending of a message to its acknowledgement.
    pub latency: LatencySummary,
}

/// The counts of an interval of about a second.
#[derive(Debug, Clone, Copy)]
pub struct LoadInterval {
    /// Its end, since the beginning of the load.
    pub at: Duration,
    /// Its length.
    pub length: Duration,
    /// Messages sent in it.
    pub sent: u64,
    /// Messages acknowledged in it.
    pub acknowledged: u64,
    /// Messages refused or lost in it.
    pub failed: u64,
    /// Times of the messages acknowledged in it.
    pub latency: LatencySummary,
}
