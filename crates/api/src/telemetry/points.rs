//! Points of a series for WebSocket commands, newest first.

use fieldline_core::memory_pool::{MemoryRefusal, MemoryShare};
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{StoreError, TimeSeriesStore};
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{Aggregation, AggregationBucket, DataPoint, PointOrder, RangeQuery};

use super::buckets::{BucketInterval, CalendarUnit, buckets};
use super::params::BadInput;
use super::source::TimeWindow;
use super::zone::CalendarZone;

/// Points per series if the command sets no limit.
const DEFAULT_LIMIT: usize = 100;
/// Most points per series.
const MAX_LIMIT: usize = 50_000;

/// Most points that a command reads.
pub(crate) const MAX_POINTS: usize = 500_000;
/// Most bytes of these points; numeric points need less.
const MAX_BYTES: usize = 24 << 20;
/// Bytes per read.
const PAGE_BYTES: usize = 256 << 10;
/// Memory of a command as a multiple of the bytes it has read: the points, their shown form, and its text.
const MEMORY_FACTOR: usize = 4;

/// Counts the points that a command has read; the memory is released when it is dropped.
pub(crate) struct PointReader {
    memory: MemoryShare,
    points: usize,
    bytes: usize,
}

impl PointReader {
    /// Creates a reader that has read nothing yet.
    pub(crate) const fn new(memory: MemoryShare) -> Self {
        Self {
            memory,
            points: 0,
            bytes: 0,
        }
    }

    /// Counts points, for which memory was reserved.
    fn count(&mut self, points: &[DataPoint], reserved: usize) -> Result<(), PointsError> {
        let bytes: usize = points.iter().map(DataPoint::bytes).sum();
        self.points += points.len();
        self.bytes += bytes;
        if self.points > MAX_POINTS {
            return Err(PointsError::Invalid(format!(
                "A command must not read more than {MAX_POINTS} points!"
            )));
        }
        if self.bytes > MAX_BYTES {
            return Err(self.too_long());
        }
        let held = self.memory.held();
        Ok(self.memory.resize(held + MEMORY_FACTOR * bytes - reserved)?)
    }

    fn too_long(&self) -> PointsError {
        PointsError::Invalid(format!(
            "A command must not read more than {} of values!",
            ByteSize(MAX_BYTES as u64)
        ))
    }

    /// Reads raw points of a series.
    async fn range(
        &mut self,
        store: &dyn TimeSeriesStore,
        subject: EntityKey,
        key: &str,
        mut query: RangeQuery,
    ) -> Result<Vec<DataPoint>, PointsError> {
        let mut found = Vec::new();
        // A number takes 32 bytes; larger values make the store ask for more.
        let mut page_bytes = PAGE_BYTES.min(query.limit.saturating_mul(256).max(4 << 10));
        loop {
            self.memory.grow(MEMORY_FACTOR * page_bytes)?;
            let page = store.page(subject, key, query, page_bytes).await?;
            self.count(&page.points, MEMORY_FACTOR * page_bytes)?;
            query.limit -= page.points.len().min(query.limit);
            found.extend(page.points);
            let Some((start, end)) = page.rest.filter(|_| query.limit > 0) else {
                return Ok(found);
            };
            (query.start, query.end) = (start, end);
            if page.needs > MAX_BYTES {
                return Err(self.too_long());
            }
            page_bytes = page_bytes.max(page.needs);
        }
    }

    /// Reads aggregates of the points up to a timestamp, inclusive, as if there were no later ones.
    async fn aggregate(
        &mut self,
        store: &dyn TimeSeriesStore,
        subject: EntityKey,
        key: &str,
        aggregation: Aggregation,
        mut buckets: Vec<AggregationBucket>,
        until: i64,
    ) -> Result<Vec<DataPoint>, PointsError> {
        buckets.retain(|bucket| bucket.start <= until);
        let last = buckets.last().copied();
        if let Some(open) = buckets.last_mut() {
            open.end = open.end.min(until.saturating_add(1));
        }
        let mut points = store.aggregate(subject, key, aggregation, &buckets).await?;
        if let Some(whole) = last
            && let Some(point) = points.last_mut().filter(|point| point.ts >= whole.start)
        {
            point.ts = whole.middle();
        }
        self.count(&points, 0)?;
        Ok(points)
    }
}

/// The points to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointsQuery<'a> {
    /// Start of the range, inclusive, milliseconds.
    pub(crate) start: i64,
    /// End of the range, exclusive, milliseconds.
    pub(crate) end: i64,
    /// `NONE`, `MIN`, `MAX`, `AVG`, `SUM` or `COUNT`; no aggregation if absent.
    pub(crate) agg: Option<&'a str>,
    /// Width of a bucket, milliseconds.
    pub(crate) interval: i64,
    /// `MILLISECONDS`, or a calendar period.
    pub(crate) interval_type: Option<&'a str>,
    /// Time zone of calendar periods.
    pub(crate) zone: Option<&'a str>,
    /// Most raw points; 0 for the default.
    pub(crate) limit: i64,
    /// The last timestamp that aggregates contain, within the range.
    pub(crate) until: i64,
}

impl Default for PointsQuery<'_> {
    fn default() -> Self {
        Self {
            start: 0,
            end: 0,
            agg: None,
            interval: 0,
            interval_type: None,
            zone: None,
            limit: 0,
            until: i64::MAX,
        }
    }
}

/// Why points could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PointsError {
    /// The command is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is not enough memory for the points.
    #[error(transparent)]
    Memory(#[from] MemoryRefusal),
}

impl From<BadInput> for PointsError {
    fn from(bad: BadInput) -> Self {
        Self::Invalid(bad.0)
    }
}

/// Returns the points of a series.
pub(crate) async fn read_points(
    reading: &mut PointReader,
    store: &dyn TimeSeriesStore,
    subject: EntityKey,
    key: &str,
    query: PointsQuery<'_>,
) -> Result<Vec<DataPoint>, PointsError> {
    if query.start >= query.end {
        return Ok(Vec::new());
    }
    let aggregation = aggregation(query.agg)?;
    if let (Some(aggregation), Some(interval)) = (aggregation, interval(&query)?) {
        let buckets = buckets(query.start, query.end, interval).map_err(BadInput::from)?;
        let mut points = reading
            .aggregate(store, subject, key, aggregation, buckets, query.until)
            .await?;
        points.reverse();
        return Ok(points);
    }
    let limit = match usize::try_from(query.limit) {
        Ok(0) => DEFAULT_LIMIT,
        Ok(limit) => limit.min(MAX_LIMIT),
        Err(_) => return Err(PointsError::Invalid(format!("Invalid limit {}", query.limit))),
    };
    let range = RangeQuery {
        start: query.start,
        end: query.end,
        limit,
        order: PointOrder::Descending,
    };
    reading.range(store, subject, key, range).await
}

/// Returns one value for the whole range: an aggregate of the points up to a timestamp, or the newest point.
pub(crate) async fn read_value(
    reading: &mut PointReader,
    store: &dyn TimeSeriesStore,
    subject: EntityKey,
    key: &str,
    agg: Option<&str>,
    TimeWindow { start, end }: TimeWindow,
    until: i64,
) -> Result<Option<DataPoint>, PointsError> {
    if start >= end {
        return Ok(None);
    }
    let found = match aggregation(agg)? {
        Some(aggregation) => {
            let bucket = vec![AggregationBucket { start, end }];
            reading
                .aggregate(store, subject, key, aggregation, bucket, until)
                .await?
        }
        None => {
            let range = RangeQuery {
                start,
                end,
                limit: 1,
                order: PointOrder::Descending,
            };
            reading.range(store, subject, key, range).await?
        }
    };
    Ok(found.into_iter().next())
}

fn aggregation(name: Option<&str>) -> Result<Option<Aggregation>, PointsError> {
    super::params::aggregation_of(name).map_err(PointsError::from)
}

fn interval(query: &PointsQuery<'_>) -> Result<Option<BucketInterval>, PointsError> {
    let unit = match query.interval_type {
        None | Some("" | "MILLISECONDS") => {
            return Ok((query.interval != 0).then_some(BucketInterval::Fixed(query.interval)));
        }
        Some(name) => CalendarUnit::of(name)
            .ok_or_else(|| PointsError::Invalid(format!("Invalid interval type '{name}'")))?,
    };
    Ok(Some(BucketInterval::Calendar(
        unit,
        CalendarZone::or_utc(query.zone),
    )))
}
