//! Time series and latest values.

use async_trait::async_trait;
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{Aggregation, AggregationBucket, DataPoint, LatestValue, RangeQuery};

use super::{StoreError, StoreErrorKind, StoreResult, TelemetryRow};
use crate::options::ByteSize;

/// A page of points of a series, bounded in bytes.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct PointsPage {
    /// The points, in the order of the query.
    pub points: Vec<DataPoint>,
    /// Start and end of the remaining range, `None` if all of it was read.
    pub rest: Option<(i64, i64)>,
    /// Bytes that the next point needs if it alone exceeds the limit; else 0.
    pub needs: usize,
}

/// The points of a series to delete, and the treatment of its latest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesDeletion {
    /// Deletes points with `start <= ts < end`; `None` deletes the whole series.
    pub range: Option<(i64, i64)>,
    /// Deletes the latest value if its time is in the range.
    pub delete_latest: bool,
    /// After the latest value was deleted, makes the newest remaining point the latest value.
    pub rewrite_latest: bool,
}

/// Points of named series of subjects, and the latest value of each.
///
/// # Promises
/// - Saving a point replaces an existing one at the same time. The latest value is the one with the greatest time, or
///   of two with the same time the one saved later.
/// - `save` and `delete` are durable when they return, and visible to every call made after that.
/// - Points past their time-to-live are not returned.
/// - Data of a subject is never visible through another tenant or entity.
#[async_trait]
pub trait TimeSeriesStore: Send + Sync {
    /// Saves rows on a person's behalf; device messages go through [`super::IngestStore`].
    async fn save(&self, rows: &[TelemetryRow<'_>]) -> StoreResult<()>;

    /// Names of all series of a subject, sorted.
    async fn keys(&self, subject: EntityKey) -> StoreResult<Vec<String>>;

    /// Latest values of the named series, or of all of them, sorted by name. Series without a value are left out.
    async fn latest(&self, subject: EntityKey, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>>;

    /// Raw points of one series, as many as fit into `max_bytes`: a point takes the size of [`DataPoint`] plus that of
    /// its text.
    async fn page(
        &self,
        subject: EntityKey,
        key: &str,
        query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<PointsPage>;

    /// Raw points of one series, whatever their size. For series that untrusted clients may have made large, use
    /// [`Self::page`].
    async fn range(&self, subject: EntityKey, key: &str, query: RangeQuery) -> StoreResult<Vec<DataPoint>> {
        Ok(self.page(subject, key, query, usize::MAX).await?.points)
    }

    /// Like [`Self::page`], but a point larger than the limit is returned alone, for callers that must make progress.
    async fn page_or_point(
        &self,
        subject: EntityKey,
        key: &str,
        query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<PointsPage> {
        let page = self.page(subject, key, query, max_bytes).await?;
        match page.rest {
            Some((start, end)) if page.needs > 0 => {
                let one = RangeQuery {
                    start,
                    end,
                    limit: 1,
                    ..query
                };
                self.page(subject, key, one, page.needs).await
            }
            _ => Ok(page),
        }
    }

    /// Raw points of one series that take at most `max_bytes`.
    ///
    /// # Errors
    /// [`StoreErrorKind::Invalid`] if they take more.
    async fn range_within(
        &self,
        subject: EntityKey,
        key: &str,
        mut query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<Vec<DataPoint>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        loop {
            let page = self.page(subject, key, query, max_bytes - bytes).await?;
            query.limit -= page.points.len().min(query.limit);
            bytes += page.points.iter().map(DataPoint::bytes).sum::<usize>();
            let is_stuck = page.points.is_empty() && page.needs > 0;
            found.extend(page.points);
            let Some((start, end)) = page.rest.filter(|_| query.limit > 0) else {
                return Ok(found);
            };
            if is_stuck || bytes >= max_bytes {
                let most = ByteSize(max_bytes as u64);
                return Err(StoreError::new(
                    StoreErrorKind::Invalid,
                    format!("the points of '{key}' take more than {most}"),
                ));
            }
            (query.start, query.end) = (start, end);
        }
    }

    /// One point per non-empty bucket; the buckets are ascending and do not overlap. `AVG` is a double, `SUM` is a long
    /// if all numbers are and the sum fits, `COUNT` is a long; buckets without a fitting value are left out.
    async fn aggregate(
        &self,
        subject: EntityKey,
        key: &str,
        aggregation: Aggregation,
        buckets: &[AggregationBucket],
    ) -> StoreResult<Vec<DataPoint>>;

    /// Deletes points of the named series.
    async fn delete(&self, subject: EntityKey, keys: &[String], what: SeriesDeletion) -> StoreResult<()>;
}
