//! Names of the journal's metrics and the handles that its hot path keeps.

use metrics::{Counter, Gauge, Histogram, Unit};

/// Appends that became durable.
pub const APPENDS: &str = "fieldline_journal_appends_total";
/// Bytes of records that became durable.
pub const BYTES: &str = "fieldline_journal_bytes_total";
/// Blocks written, each with the appends that waited for it.
pub const COMMITS: &str = "fieldline_journal_commits_total";
/// Time from taking the waiting appends to their acknowledgement.
pub const COMMIT_SECONDS: &str = "fieldline_journal_commit_seconds";
/// Time of the fdatasync calls alone.
pub const FSYNC_SECONDS: &str = "fieldline_journal_fsync_seconds";
/// Bytes of appends that wait for the disk.
pub const PENDING_BYTES: &str = "fieldline_journal_pending_bytes";
/// Size of all files of the log.
pub const LOG_BYTES: &str = "fieldline_journal_log_bytes";
/// 1 while appends are refused because the disk is full or has failed, else 0.
pub const REFUSING: &str = "fieldline_journal_refusing";
/// Bytes of an unfinished write that were cut off at start.
pub const TRUNCATED_BYTES: &str = "fieldline_journal_truncated_bytes_total";
/// Bytes of records delivered to consumers.
pub const DELIVERED_BYTES: &str = "fieldline_journal_delivered_bytes_total";

/// The handles, looked up once.
pub(crate) struct Meters {
    pub(crate) appends: Counter,
    pub(crate) bytes: Counter,
    pub(crate) commits: Counter,
    pub(crate) commit_seconds: Histogram,
    pub(crate) fsync_seconds: Histogram,
    pub(crate) pending_bytes: Gauge,
    pub(crate) log_bytes: Gauge,
    pub(crate) refusing: Gauge,
    pub(crate) truncated_bytes: Counter,
    pub(crate) delivered_bytes: Counter,
}

impl Meters {
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
            refusing: metrics::gauge!(REFUSING),
            truncated_bytes: metrics::counter!(TRUNCATED_BYTES),
            delivered_bytes: metrics::counter!(DELIVERED_BYTES),
        }
    }
}
