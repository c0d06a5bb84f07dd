//! Names of the metrics of the ingest path.

use ::metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

pub(super) const RECORDS: &str = "fieldline_ingest_records_total";
pub(super) const POINTS: &str = "fieldline_ingest_points_total";
pub(super) const UNREADABLE: &str = "fieldline_ingest_unreadable_records_total";
pub(super) const REFUSED: &str = "fieldline_ingest_refused_records_total";
pub(super) const REFUSED_PUSHES: &str = "fieldline_ingest_refused_pushes_total";
pub(super) const FAILED_APPLIES: &str = "fieldline_ingest_failed_applies_total";
pub(super) const APPLY_SECONDS: &str = "fieldline_ingest_apply_seconds";
pub(super) const RELOCATED: &str = "fieldline_ingest_relocated_partitions_total";
pub(super) const LAG_RECORDS: &str = "fieldline_ingest_lag_records";
pub(super) const BEHIND_SECONDS: &str = "fieldline_ingest_behind_seconds";

/// Describes the metrics to the recorder; call once at start.
pub fn describe() {
    describe_counter!(RECORDS, "Journal records whose effects were stored");
    describe_counter!(POINTS, "Time-series rows stored");
    describe_counter!(
        UNREADABLE,
        "Journal records that could not be decoded and were skipped"
    );
    describe_counter!(
        REFUSED,
        "Journal records that the store refused for good and that were given up"
    );
    describe_counter!(
        REFUSED_PUSHES,
        "Messages of rule chains and other parts of the platform that the journal had no room for"
    );
    describe_counter!(
        FAILED_APPLIES,
        "Attempts to store a batch that failed and were tried again"
    );
    describe_counter!(
        RELOCATED,
        "How often a partition of the journal did not hold the position that comes next, because records had been removed or lost"
    );
    describe_histogram!(APPLY_SECONDS, Unit::Seconds, "Time to store one batch");
    describe_gauge!(
        LAG_RECORDS,
        "Records in the journal that are not stored yet, by partition"
    );
    describe_gauge!(
        BEHIND_SECONDS,
        Unit::Seconds,
        "For how long storing has been more than a moment behind what was received"
    );
}
