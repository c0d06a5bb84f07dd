//! Names of the journal's metrics, and the handles for its hot path.

use fieldline_core::ports::HoldBackCause;
use metrics::{Counter, Gauge, Histogram, Unit};

/// Appends that became durable.
pub const APPENDS: &str = "fieldline_journal_appends_total";
/// Bytes of records that became durable.
pub const BYTES: &str = "fieldline_journal_bytes_total";
/// Blocks written, each with the appends that waited for it.
pub const COMMITS: &str = "fieldline_journal_commits_total";
/// Time from taking the pending appends to their acknowledgement.
pub const COMMIT_SECONDS: &str = "fieldline_journal_commit_seconds";
/// Time of the fdatasync calls alone.
pub const FSYNC_SECONDS: &str = "fieldline_journal_fsync_seconds";
/// Bytes of appends waiting for the disk.
pub const PENDING_BYTES: &str = "fieldline_journal_pending_bytes";
/// Size of all files of the log.
pub const LOG_BYTES: &str = "fieldline_journal_log_bytes";
/// Bytes appended from the reserve, beyond the limit for devices.
pub const RESERVE_BYTES: &str = "fieldline_journal_reserve_bytes";
/// Senders (connections and requests) waiting until the journal accepts their records.
pub const WAITING_SENDERS: &str = "fieldline_journal_waiting_senders";
/// Time in which senders had to wait, milliseconds; the label `setting` names the limit that was reached.
pub const HELD_BACK: &str = "fieldline_journal_held_back_milliseconds_total";
/// Age of the block being written: how long its appends have waited for the disk.
pub const COMMIT_AGE: &str = "fieldline_journal_commit_age_seconds";
/// 1 while appends are refused because the disk is full or has failed, else 0.
pub const REFUSING: &str = "fieldline_journal_refusing";
/// Bytes of an unfinished write that were truncated at the start.
pub const TRUNCATED_BYTES: &str = "fieldline_journal_truncated_bytes_total";
/// Bytes of records delivered to consumers.
pub const DELIVERED_BYTES: &str = "fieldline_journal_delivered_bytes_total";

/// The metric handles, looked up once.
pub(crate) struct JournalMetrics {
    pub(crate) appends: Counter,
    pub(crate) bytes: Counter,
    pub(crate) commits: Counter,
    pub(crate) commit_seconds: Histogram,
    pub(crate) fsync_seconds: Histogram,
    pub(crate) pending_bytes: Gauge,
    pub(crate) log_bytes: Gauge,
    pub(crate) reserve_bytes: Gauge,
    pub(crate) waiting_senders: Gauge,
    /// In the order of [`HoldBackCause::ALL`].
    pub(crate) held_back: [Counter; HoldBackCause::ALL.len()],
    pub(crate) commit_age: Gauge,
    pub(crate) refusing: Gauge,
    pub(crate) truncated_bytes: Counter,
    pub(crate) delivered_bytes: Counter,
}

impl JournalMetrics {
    pub(crate) fn describe() -> Self {
        metrics::describe_counter!(APPENDS, "Appends that became durable");
        metrics::describe_counter!(BYTES, Unit::Bytes, "Bytes of records that became durable");
        metrics::describe_counter!(
            COMMITS,
            "Blocks written, each with the appends that waited for it"
        );
        metrics::describe_histogram!(
            COMMIT_SECONDS,
            Unit::Seconds,
            "Time to write a block and make it durable"
        );
        metrics::describe_histogram!(FSYNC_SECONDS, Unit::Seconds, "Time of the fdatasync calls");
        metrics::describe_gauge!(PENDING_BYTES, Unit::Bytes, "Appends that wait for the disk");
        metrics::describe_gauge!(LOG_BYTES, Unit::Bytes, "Size of all files of the log");
        metrics::describe_gauge!(
            RESERVE_BYTES,
            Unit::Bytes,
            "Messages of the platform beyond what devices may fill"
        );
        metrics::describe_gauge!(
            WAITING_SENDERS,
            "Senders that wait until the journal takes their records"
        );
        metrics::describe_counter!(
            HELD_BACK,
            "Milliseconds in which senders had to wait, by the setting whose limit was reached"
        );
        metrics::describe_gauge!(
            COMMIT_AGE,
            Unit::Seconds,
            "For how long the appends that are being written have waited for the disk"
        );
        metrics::describe_gauge!(
            REFUSING,
            "1 while appends are refused because the disk is full or failed"
        );
        metrics::describe_counter!(
            TRUNCATED_BYTES,
            Unit::Bytes,
            "Bytes of an unfinished write cut off at start"
        );
        metrics::describe_counter!(
            DELIVERED_BYTES,
            Unit::Bytes,
            "Bytes of records delivered to consumers"
        );
        Self {
            appends: metrics::counter!(APPENDS),
            bytes: metrics::counter!(BYTES),
            commits: metrics::counter!(COMMITS),
            commit_seconds: metrics::histogram!(COMMIT_SECONDS),
            fsync_seconds: metrics::histogram!(FSYNC_SECONDS),
            pending_bytes: metrics::gauge!(PENDING_BYTES),
            log_bytes: metrics::gauge!(LOG_BYTES),
            reserve_bytes: metrics::gauge!(RESERVE_BYTES),
            waiting_senders: metrics::gauge!(WAITING_SENDERS),
            held_back: HoldBackCause::ALL
                .map(|cause| metrics::counter!(HELD_BACK, "setting" => cause.setting())),
            commit_age: metrics::gauge!(COMMIT_AGE),
            refusing: metrics::gauge!(REFUSING),
            truncated_bytes: metrics::counter!(TRUNCATED_BYTES),
            delivered_bytes: metrics::counter!(DELIVERED_BYTES),
        }
    }
}
