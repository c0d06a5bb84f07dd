//! Names of the metrics of the embedded time-series store.

/// Rows written, counter.
pub const ROWS: &str = "fieldline_series_rows_total";
/// Checkpoints made, counter.
pub const CHECKPOINTS: &str = "fieldline_series_checkpoints_total";
/// Time of a checkpoint, histogram in seconds.
pub const CHECKPOINT_SECONDS: &str = "fieldline_series_checkpoint_seconds";
/// Points packed into chunks, counter.
pub const PACKED_POINTS: &str = "fieldline_series_packed_points_total";
/// Chunks written by compaction, counter.
pub const CHUNKS_WRITTEN: &str = "fieldline_series_chunks_written_total";
/// Bytes of the chunks written by compaction, counter.
pub const CHUNK_BYTES: &str = "fieldline_series_chunk_bytes_total";
/// Sets of recent rows that wait to be packed, gauge.
pub const SEALED_EPOCHS: &str = "fieldline_series_sealed_epochs";
/// Memory taken by cached latest values and attributes, gauge in bytes.
pub const CELLS_BYTES: &str = "fieldline_series_cells_bytes";
/// Stored bytes that did not pass their checks, counter.
pub const CORRUPT: &str = "fieldline_series_corrupt_total";
/// Times the engine was reopened after the disk had been full, counter.
pub const REOPENED: &str = "fieldline_series_reopened_total";

/// Points that PostgreSQL refused as plain rows, counter.
pub const PLAIN_ROWS_LEFT_OUT: &str = "fieldline_series_plain_rows_left_out_total";

/// Tells the recorder what the metrics mean.
pub fn describe() {
    metrics::describe_counter!(ROWS, "time-series rows written");
    metrics::describe_counter!(CHECKPOINTS, "checkpoints of the time-series store");
    metrics::describe_histogram!(CHECKPOINT_SECONDS, metrics::Unit::Seconds, "time of a checkpoint");
    metrics::describe_counter!(PACKED_POINTS, "points packed into chunks");
    metrics::describe_counter!(CHUNKS_WRITTEN, "chunks written by packing");
    metrics::describe_counter!(
        CHUNK_BYTES,
        metrics::Unit::Bytes,
        "bytes of the chunks written by packing"
    );
    metrics::describe_gauge!(SEALED_EPOCHS, "sets of recent rows that wait to be packed");
    metrics::describe_gauge!(
        CELLS_BYTES,
        metrics::Unit::Bytes,
        "memory of cached latest values and attributes"
    );
    metrics::describe_counter!(CORRUPT, "stored bytes that did not pass their checks");
    metrics::describe_counter!(
        PLAIN_ROWS_LEFT_OUT,
        "points that are no rows of the table telemetry"
    );
    metrics::describe_counter!(REOPENED, "times the engine was reopened after a full disk");
}
