//! Points of a series as commands ask for them, newest first.

use fieldline_core::ports::{StoreError, TimeSeriesStore};
use fieldline_model::Subject;
use fieldline_model::timeseries::{Aggregation, Bucket, Order, Point, RangeQuery};

use super::buckets::{CalendarUnit, Interval, buckets};
use super::params::BadInput;
use super::zone::Zone;

/// Points a series where the command does not say.
const DEFAULT_LIMIT: usize = 100;
/// Points a series at most.
const MAX_LIMIT: usize = 50_000;

/// Which points are asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PointsQuery<'a> {
    /// First time included, milliseconds.
    pub(crate) start: i64,
    /// First time no longer included, milliseconds.
    pub(crate) end: i64,
    /// `NONE`, `MIN`, `MAX`, `AVG`, `SUM` or `COUNT`; none where absent.
    pub(crate) agg: Option<&'a str>,
    /// Width of a bucket, milliseconds.
    pub(crate) interval: i64,
    /// `MILLISECONDS`, or a stretch of the calendar.
    pub(crate) interval_type: Option<&'a str>,
    /// Time zone of the calendar.
    pub(crate) zone: Option<&'a str>,
    /// Raw points at most; 0 for the default.
    pub(crate) limit: i64,
}

/// Why points were not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PointsError {
    /// The command makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<BadInput> for PointsError {
    fn from(bad: BadInput) -> Self {
        Self::Invalid(bad.0)
    }
}

/// The points of a series.
pub(crate) async fn points(
    store: &dyn TimeSeriesStore,
    subject: Subject,
    key: &str,
    query: PointsQuery<'_>,
) -> Result<Vec<Point>, PointsError> {
    if query.start >= query.end {
        return Ok(Vec::new());
    }
    let aggregation = aggregation(query.agg)?;
    if let (Some(aggregation), Some(interval)) = (aggregation, interval(&query)?) {
        let buckets = buckets(query.start, query.end, interval).map_err(BadInput::from)?;
        let mut points = store.aggregate(subject, key, aggregation, &buckets).await?;
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
        order: Order::Descending,
    };
    Ok(store.range(subject, key, range).await?)
}

/// One value over the whole time; the newest where there is no aggregation.
pub(crate) async fn one(
    store: &dyn TimeSeriesStore,
    subject: Subject,
    key: &str,
    agg: Option<&str>,
    (start, end): (i64, i64),
) -> Result<Option<Point>, PointsError> {
    if start >= end {
        return Ok(None);
    }
    let found = match aggregation(agg)? {
        Some(aggregation) => {
            let bucket = [Bucket { start, end }];
            store.aggregate(subject, key, aggregation, &bucket).await?
        }
        None => {
            let range = RangeQuery {
                start,
                end,
                limit: 1,
                order: Order::Descending,
            };
            store.range(subject, key, range).await?
        }
    };
    Ok(found.into_iter().next())
}

fn aggregation(name: Option<&str>) -> Result<Option<Aggregation>, PointsError> {
    super::params::aggregation_of(name).map_err(PointsError::from)
}

fn interval(query: &PointsQuery<'_>) -> Result<Option<Interval>, PointsError> {
    let unit = match query.interval_type {
        None | Some("" | "MILLISECONDS") => {
            return Ok((query.interval != 0).then_some(Interval::Fixed(query.interval)));
        }
        Some(name) => CalendarUnit::of(name)
            .ok_or_else(|| PointsError::Invalid(format!("Invalid interval type '{name}'")))?,
    };
    Ok(Some(Interval::Calendar(unit, Zone::or_utc(query.zone))))
}
