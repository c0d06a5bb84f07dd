//! Query parameters of the telemetry controller.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use fieldline_core::ports::SeriesDeletion;
use fieldline_model::kv::MAX_KEY_BYTES;
use fieldline_model::timeseries::{Aggregation, AggregationBucket, PointOrder};

use super::buckets::{BucketError, BucketInterval, CalendarUnit, buckets};
use super::render::ValueTyping;
use super::source::TimeWindow;
use super::zone::CalendarZone;
use crate::extract::{QueryPairs, parse_flag};

/// Raw points per series if the request names no limit.
const DEFAULT_LIMIT: usize = 100;

/// An invalid request; the text is shown to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadInput(pub(super) String);

impl BadInput {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<BucketError> for BadInput {
    fn from(error: BucketError) -> Self {
        Self(error.to_string())
    }
}

/// The query string as pairs, because a name may be repeated.
#[derive(Debug, Default)]
pub(crate) struct TelemetryParams(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for TelemetryParams {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        QueryPairs::from_request_parts(parts, state)
            .await
            .map(|QueryPairs(pairs)| Self(pairs))
    }
}

impl TelemetryParams {
    /// Whether a parameter is given, even if empty.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }

    /// Returns the value of a parameter; an empty one counts as absent.
    fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// Parses an integer.
    fn number(&self, name: &str) -> Result<Option<i64>, BadInput> {
        self.text(name)
            .map(|text| text.parse().map_err(|_| invalid(name, text)))
            .transpose()
    }

    /// Parses a required timestamp, milliseconds.
    fn time(&self, name: &str) -> Result<i64, BadInput> {
        self.number(name)?
            .ok_or_else(|| BadInput(format!("Required parameter '{name}' is missing")))
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, BadInput> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => parse_flag(text)
                .map(|flag| flag.unwrap_or(default))
                .map_err(|_| invalid(name, text)),
        }
    }

    /// Returns whether values keep their types; they are strings by default.
    pub(super) fn typing(&self) -> Result<ValueTyping, BadInput> {
        self.typing_or(ValueTyping::Strings)
    }

    /// The same with another default.
    pub(super) fn typing_or(&self, default: ValueTyping) -> Result<ValueTyping, BadInput> {
        let is_strict = default == ValueTyping::Strict;
        Ok(match self.flag("useStrictDataTypes", is_strict)? {
            true => ValueTyping::Strict,
            false => ValueTyping::Strings,
        })
    }

    /// Returns the names in `key`, or if there are none, in the comma-separated `keys`, without duplicates. Both may be
    /// repeated.
    pub(super) fn keys(&self) -> Result<Vec<String>, BadInput> {
        let mut keys: Vec<&str> = self
            .0
            .iter()
            .filter(|(name, _)| name == "key")
            .map(|(_, key)| key.as_str())
            .collect();
        if keys.is_empty() {
            keys = self
                .0
                .iter()
                .filter(|(name, _)| name == "keys")
                .map(|(_, list)| list.trim_end_matches(','))
                .filter(|list| !list.is_empty())
                .flat_map(|list| list.split(','))
                .collect();
        }
        let mut seen = HashSet::new();
        keys.retain(|key| seen.insert(*key));
        if keys.iter().any(|key| key.trim().is_empty()) {
            return Err(BadInput::new("Key cannot be blank"));
        }
        if keys.iter().any(|key| key.len() > MAX_KEY_BYTES) {
            return Err(BadInput::new("Key is too long"));
        }
        Ok(keys.into_iter().map(str::to_owned).collect())
    }

    /// Returns the same names; there must be some.
    pub(super) fn some_keys(&self) -> Result<Vec<String>, BadInput> {
        let keys = self.keys()?;
        if keys.is_empty() {
            return Err(BadInput::new("Empty keys: either 'keys' or 'key' must be given"));
        }
        Ok(keys)
    }
}

fn invalid(name: &str, text: &str) -> BadInput {
    BadInput(format!("Invalid value '{text}' of parameter '{name}'"))
}

/// The points that a range query returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RangeRead {
    /// Points as they were saved, with `start <= ts < end`.
    Raw {
        start: i64,
        end: i64,
        limit: usize,
        order: PointOrder,
    },
    /// One point per bucket.
    Aggregated {
        aggregation: Aggregation,
        buckets: Vec<AggregationBucket>,
    },
}

impl RangeRead {
    /// Parses `startTs`, `endTs`, `agg`, `intervalType`, `interval`, `timeZone`, `limit` and `orderBy`. The range is
    /// limited to the window.
    pub(super) fn from_params(params: &TelemetryParams, window: TimeWindow) -> Result<Self, BadInput> {
        let (asked_start, asked_end) = (params.time("startTs")?, params.time("endTs")?);
        let (start, end) = (asked_start.max(window.start), asked_end.min(window.end));
        if asked_start < asked_end && start >= end {
            return Ok(Self::Raw {
                start,
                end: start,
                limit: limit(params)?,
                order: order(params)?,
            });
        }
        let aggregation = aggregation(params)?;
        let interval = interval(params)?;
        let limit = limit(params)?;
        match (aggregation, interval) {
            (Some(aggregation), Some(interval)) => Ok(Self::Aggregated {
                aggregation,
                buckets: buckets(start, end, interval)?,
            }),
            _ => Ok(Self::Raw {
                start,
                end,
                limit,
                order: order(params)?,
            }),
        }
    }
}

fn aggregation(params: &TelemetryParams) -> Result<Option<Aggregation>, BadInput> {
    aggregation_of(params.text("agg"))
}

/// Parses the name of an aggregation; `None` if it is absent.
pub(super) fn aggregation_of(name: Option<&str>) -> Result<Option<Aggregation>, BadInput> {
    Ok(match name {
        None | Some("" | "NONE") => None,
        Some("MIN") => Some(Aggregation::Min),
        Some("MAX") => Some(Aggregation::Max),
        Some("AVG") => Some(Aggregation::Avg),
        Some("SUM") => Some(Aggregation::Sum),
        Some("COUNT") => Some(Aggregation::Count),
        Some(other) => return Err(invalid("agg", other)),
    })
}

/// Parses the interval; `None` without aggregation.
fn interval(params: &TelemetryParams) -> Result<Option<BucketInterval>, BadInput> {
    let milliseconds = params.number("interval")?.unwrap_or(0);
    let unit = match params.text("intervalType") {
        None | Some("MILLISECONDS") => {
            return Ok((milliseconds != 0).then_some(BucketInterval::Fixed(milliseconds)));
        }
        Some(name) => CalendarUnit::of(name).ok_or_else(|| invalid("intervalType", name))?,
    };
    Ok(Some(BucketInterval::Calendar(
        unit,
        CalendarZone::or_utc(params.text("timeZone")),
    )))
}

fn limit(params: &TelemetryParams) -> Result<usize, BadInput> {
    match params.number("limit")? {
        None => Ok(DEFAULT_LIMIT),
        Some(limit) if limit >= 1 => Ok(usize::try_from(limit).unwrap_or(usize::MAX)),
        Some(limit) => Err(invalid("limit", &limit.to_string())),
    }
}

fn order(params: &TelemetryParams) -> Result<PointOrder, BadInput> {
    match params.text("orderBy") {
        None => Ok(PointOrder::Descending),
        Some(text) if text.eq_ignore_ascii_case("desc") => Ok(PointOrder::Descending),
        Some(text) if text.eq_ignore_ascii_case("asc") => Ok(PointOrder::Ascending),
        Some(other) => Err(invalid("orderBy", other)),
    }
}

/// Parses what a request deletes, from `deleteAllDataForKeys`, `startTs`, `endTs`, `deleteLatest` and
/// `rewriteLatestIfDeleted`.
pub(super) fn deletion(params: &TelemetryParams) -> Result<SeriesDeletion, BadInput> {
    let range = match params.flag("deleteAllDataForKeys", false)? {
        true => None,
        false => match (params.number("startTs")?, params.number("endTs")?) {
            (Some(start), Some(end)) => Some((start, end)),
            _ => {
                return Err(BadInput::new(
                    "Either deleteAllDataForKeys or both of startTs and endTs must be given",
                ));
            }
        },
    };
    Ok(SeriesDeletion {
        range,
        delete_latest: params.flag("deleteLatest", true)?,
        rewrite_latest: params.flag("rewriteLatestIfDeleted", false)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> TelemetryParams {
        TelemetryParams(QueryPairs::of(query).0)
    }

    #[test]
    fn keys_come_from_repeated_key_or_else_from_the_comma_list() {
        for (query, keys) in [
            ("", vec![]),
            ("keys=", vec![]),
            ("keys=a", vec!["a"]),
            ("keys=a,b,a,", vec!["a", "b"]),
            ("keys=a,b&keys=&keys=c,", vec!["a", "b", "c"]),
            ("keys=a,b&key=c,d&key=e", vec!["c,d", "e"]),
            ("keys=%D1%82+%2C", vec!["т "]),
        ] {
            assert_eq!(params(query).keys().unwrap(), keys, "{query}");
        }
        for query in ["key=", "keys=a,,b", "keys=a,%20"] {
            assert_eq!(params(query).keys().unwrap_err().0, "Key cannot be blank");
        }
        assert!(
            params(&format!("key={}", "k".repeat(MAX_KEY_BYTES + 1)))
                .keys()
                .is_err()
        );
    }

    #[test]
    fn without_aggregation_or_interval_points_are_raw() {
        let raw = |limit, order| RangeRead::Raw {
            start: 1,
            end: 9,
            limit,
            order,
        };
        for (query, read) in [
            ("startTs=1&endTs=9", raw(100, PointOrder::Descending)),
            (
                "startTs=1&endTs=9&limit=7&orderBy=asc",
                raw(7, PointOrder::Ascending),
            ),
            ("startTs=1&endTs=9&agg=AVG", raw(100, PointOrder::Descending)),
            (
                "startTs=1&endTs=9&agg=AVG&interval=0",
                raw(100, PointOrder::Descending),
            ),
            (
                "startTs=1&endTs=9&agg=NONE&interval=1000",
                raw(100, PointOrder::Descending),
            ),
            (
                "startTs=1&endTs=9&agg=NONE&intervalType=WEEK",
                raw(100, PointOrder::Descending),
            ),
        ] {
            assert_eq!(
                RangeRead::from_params(&params(query), TimeWindow::ALL).unwrap(),
                read,
                "{query}"
            );
        }
        assert!(matches!(
            RangeRead::from_params(&params("startTs=0&endTs=25&agg=MAX&interval=10&orderBy=nonsense"), TimeWindow::ALL).unwrap(),
            RangeRead::Aggregated { aggregation: Aggregation::Max, buckets } if buckets.len() == 3
        ));
    }

    #[test]
    fn senseless_parameters_are_named() {
        for (query, name) in [
            ("endTs=9", "startTs"),
            ("startTs=1&endTs=", "endTs"),
            ("startTs=x&endTs=9", "startTs"),
            ("startTs=1&endTs=9&agg=MEDIAN", "agg"),
            ("startTs=1&endTs=9&intervalType=DAY", "intervalType"),
            ("startTs=1&endTs=9&interval=1h", "interval"),
            ("startTs=1&endTs=9&interval=-5&agg=AVG", "interval"),
            ("startTs=1&endTs=9&limit=0", "limit"),
            ("startTs=1&endTs=9&orderBy=UP", "orderBy"),
        ] {
            let error = RangeRead::from_params(&params(query), TimeWindow::ALL).unwrap_err();
            assert!(error.0.contains(name), "{query}: {error}");
        }
        assert!(params("useStrictDataTypes=maybe").typing().is_err());
        assert!(params("keys=").some_keys().is_err());
    }

    #[test]
    fn values_are_typed_as_asked_or_by_default() {
        for (query, default, typing) in [
            ("", ValueTyping::Strings, ValueTyping::Strings),
            ("", ValueTyping::Strict, ValueTyping::Strict),
            ("useStrictDataTypes=", ValueTyping::Strict, ValueTyping::Strict),
            (
                "useStrictDataTypes=false",
                ValueTyping::Strict,
                ValueTyping::Strings,
            ),
            (
                "useStrictDataTypes=true",
                ValueTyping::Strings,
                ValueTyping::Strict,
            ),
        ] {
            assert_eq!(params(query).typing_or(default).unwrap(), typing, "{query}");
        }
    }

    #[test]
    fn a_deletion_is_of_everything_or_of_a_whole_range() {
        let all = deletion(&params("deleteAllDataForKeys=true&startTs=1")).unwrap();
        assert_eq!(
            (all.range, all.delete_latest, all.rewrite_latest),
            (None, true, false)
        );
        let some = params("startTs=1&endTs=2&deleteLatest=false&rewriteLatestIfDeleted=true");
        let some = deletion(&some).unwrap();
        assert_eq!(
            (some.range, some.delete_latest, some.rewrite_latest),
            (Some((1, 2)), false, true)
        );
        for query in ["", "startTs=1", "endTs=2", "deleteAllDataForKeys=false"] {
            assert!(deletion(&params(query)).is_err(), "{query}");
        }
    }
}
