//! Time series and latest values.

use async_trait::async_trait;
use fieldline_model::Subject;
use fieldline_model::timeseries::{Aggregation, Bucket, LatestValue, Point, RangeQuery};

use super::{StoreResult, TelemetryRow};

/// Which points of a series to delete, and what becomes of its latest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteSeries {
    /// Points with `start <= ts < end` go; `None` deletes the series whole.
    pub range: Option<(i64, i64)>,
    /// Delete the latest value if its time is in the range.
    pub delete_latest: bool,
    /// Where the latest value was deleted, the newest point that is left becomes the latest value.
    pub rewrite_latest: bool,
}

/// Points of named series of subjects, and the latest value of each.
///
/// # Promises
/// - Saving a point at a time that has one replaces it. The latest value is the one with the greatest time; of two with
///   the same time the one saved later.
/// - `save` and `delete` are durable when they return, and seen by every call made after that.
/// - Points past their time-to-live are not returned.
/// - Nothing of a subject is ever seen through another tenant or entity.
#[async_trait]
pub trait TimeSeriesStore: Send + Sync {
    /// Saves rows on a person's behalf; device messages go through [`super::IngestStore`].
    async fn save(&self, rows: &[TelemetryRow<'_>]) -> StoreResult<()>;

    /// Names of all series of a subject, sorted.
    async fn keys(&self, subject: Subject) -> StoreResult<Vec<String>>;

    /// Latest values of the named series, or of all of them, sorted by name. Series without a value are left out.
    async fn latest(&self, subject: Subject, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>>;

    /// Raw points of one series.
    async fn range(&self, subject: Subject, key: &str, query: RangeQuery) -> StoreResult<Vec<Point>>;

    /// One point a bucket that holds anything; the buckets are ascending and do not overlap. `AVG` is a double, `SUM` is
    /// a long where all numbers are and the sum fits, `COUNT` is a long; buckets without a fitting value are left out.
    async fn aggregate(
        &self,
        subject: Subject,
        key: &str,
        aggregation: Aggregation,
        buckets: &[Bucket],
    ) -> StoreResult<Vec<Point>>;

    /// Deletes points of the named series.
    async fn delete(&self, subject: Subject, keys: &[String], what: DeleteSeries) -> StoreResult<()>;

    /// Deletes every series and latest value of a subject that is no more.
    async fn delete_subject(&self, subject: Subject) -> StoreResult<()>;
}
