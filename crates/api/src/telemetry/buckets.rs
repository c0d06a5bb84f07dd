//! Divides a time range into the buckets of an aggregation.
//!
//! Buckets cover the range from its start without gaps: a fixed interval repeats from there; a calendar interval ends
//! at the next calendar boundary, so that the first bucket is usually a part of a week, month or quarter. The last
//! bucket is cut off at the end of the range. An empty or reversed range is one millisecond long.

use std::fmt;

use chrono::{Datelike, Days, Months, NaiveDate};
use fieldline_model::timeseries::AggregationBucket;

use super::zone::CalendarZone;

/// Most intervals in one query.
pub(super) const MAX_INTERVALS: i64 = 700;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A calendar period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CalendarUnit {
    /// Sunday to Saturday.
    Week,
    /// Monday to Sunday.
    WeekIso,
    /// A month.
    Month,
    /// Three months from January, April, July or October.
    Quarter,
}

/// Width of the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BucketInterval {
    /// This many milliseconds each, from the start of the range.
    Fixed(i64),
    /// Up to the next calendar boundary in a time zone.
    Calendar(CalendarUnit, CalendarZone),
}

/// Why a range cannot be divided into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BucketError {
    /// The interval is shorter than a millisecond.
    NoInterval(i64),
    /// There would be too many buckets.
    TooMany(i64),
    /// The range is too long, or outside the calendar.
    BadRange,
}

impl fmt::Display for BucketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterval(interval) => write!(f, "Invalid interval {interval}: it must be at least 1 ms"),
            Self::TooMany(count) => write!(
                f,
                "Too many intervals: {count}, at most {MAX_INTERVALS} are allowed. Increase the interval or shorten the \
                 time range"
            ),
            Self::BadRange => f.write_str("Invalid time range"),
        }
    }
}

impl CalendarUnit {
    /// Returns the unit with that name in the API.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "WEEK" => Self::Week,
            "WEEK_ISO" => Self::WeekIso,
            "MONTH" => Self::Month,
            "QUARTER" => Self::Quarter,
            _ => return None,
        })
    }

    /// The nominal length, used to count intervals.
    const fn nominal_ms(self) -> i64 {
        match self {
            Self::Week | Self::WeekIso => 7 * DAY_MS,
            Self::Month => 30 * DAY_MS,
            Self::Quarter => 90 * DAY_MS,
        }
    }

    /// Returns the first day of the next period after the one that contains `day`.
    fn next(self, day: NaiveDate) -> Option<NaiveDate> {
        let weekday = day.weekday();
        match self {
            Self::Week => day.checked_add_days(Days::new(7 - u64::from(weekday.num_days_from_sunday()))),
            Self::WeekIso => day.checked_add_days(Days::new(7 - u64::from(weekday.num_days_from_monday()))),
            Self::Month => day.with_day(1)?.checked_add_months(Months::new(1)),
            Self::Quarter => {
                let months_into = day.month0() % 3;
                day.with_day(1)?.checked_add_months(Months::new(3 - months_into))
            }
        }
    }
}

impl BucketInterval {
    const fn nominal_ms(self) -> i64 {
        match self {
            Self::Fixed(ms) => ms,
            Self::Calendar(unit, _) => unit.nominal_ms(),
        }
    }

    /// Returns the end of the bucket that begins at `start`.
    fn end_of(self, start: i64) -> Option<i64> {
        match self {
            Self::Fixed(ms) => Some(start.saturating_add(ms)),
            Self::Calendar(unit, zone) => zone.start_of_day(unit.next(zone.day_of(start)?)?),
        }
    }
}

/// Divides `start <= ts < end` into buckets of an interval.
pub(super) fn buckets(
    start: i64,
    end: i64,
    interval: BucketInterval,
) -> Result<Vec<AggregationBucket>, BucketError> {
    let nominal = interval.nominal_ms();
    if nominal < 1 {
        return Err(BucketError::NoInterval(nominal));
    }
    let length = end.checked_sub(start).ok_or(BucketError::BadRange)?;
    let count = length / nominal;
    if count < 0 {
        return Err(BucketError::BadRange);
    }
    if count > MAX_INTERVALS {
        return Err(BucketError::TooMany(count));
    }
    let end = end.max(start.checked_add(1).ok_or(BucketError::BadRange)?);
    let mut buckets = Vec::with_capacity(usize::try_from(count).unwrap_or(0) + 2);
    let mut from = start;
    while from < end {
        let to = interval.end_of(from).ok_or(BucketError::BadRange)?.min(end);
        // Every bucket must make progress, whatever the history of a time zone contains.
        if to <= from {
            return Err(BucketError::BadRange);
        }
        buckets.push(AggregationBucket { start: from, end: to });
        from = to;
    }
    Ok(buckets)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::CalendarUnit::{Month, Quarter, Week, WeekIso};
    use super::*;

    fn calendar(unit: CalendarUnit, zone: &str) -> BucketInterval {
        BucketInterval::Calendar(unit, CalendarZone::or_utc(Some(zone)))
    }

    #[test]
    fn calendar_buckets_end_at_the_local_boundary() {
        let wednesday = 1_704_899_727_000; // 10 January 2024, 15:15:27 UTC
        for (unit, zone, end) in [
            (Week, "Europe/Kyiv", 1_705_183_200_000),
            (WeekIso, "Europe/Kyiv", 1_705_269_600_000),
            (Week, "Europe/Amsterdam", 1_705_186_800_000),
            (WeekIso, "Europe/Amsterdam", 1_705_273_200_000),
            (Month, "Europe/Kyiv", 1_706_738_400_000),
            (Month, "+02:00", 1_706_738_400_000),
            (Quarter, "Europe/Kyiv", 1_711_918_800_000), // by summer time
            (Quarter, "UTC", 1_711_929_600_000),
        ] {
            assert_eq!(
                calendar(unit, zone).end_of(wednesday),
                Some(end),
                "{unit:?} {zone}"
            );
        }
        // From a boundary, the bucket is a whole period.
        let sunday = 1_705_183_200_000;
        assert_eq!(
            calendar(Week, "Europe/Kyiv").end_of(sunday),
            Some(sunday + 7 * DAY_MS)
        );
        assert_eq!(
            calendar(WeekIso, "Europe/Kyiv").end_of(sunday),
            Some(sunday + DAY_MS)
        );
    }

    #[test]
    fn a_week_of_changing_clocks_is_an_hour_shorter_or_longer() {
        let zone = "Europe/Amsterdam";
        let before_spring = 1_711_321_200_000; // Monday, 25 March 2024
        let hour = DAY_MS / 24;
        assert_eq!(
            calendar(WeekIso, zone).end_of(before_spring),
            Some(before_spring + 7 * DAY_MS - hour)
        );
        let before_autumn = 1_729_461_600_000; // Monday, 21 October 2024
        assert_eq!(
            calendar(WeekIso, zone).end_of(before_autumn),
            Some(before_autumn + 7 * DAY_MS + hour)
        );
    }

    #[test]
    fn the_last_bucket_is_cut_and_an_empty_range_is_a_millisecond_long() {
        let cut = |start, end, ms| {
            buckets(start, end, BucketInterval::Fixed(ms)).map(|all| {
                all.iter()
                    .map(|bucket| (bucket.start, bucket.end))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(cut(0, 25, 10), Ok(vec![(0, 10), (10, 20), (20, 25)]));
        assert_eq!(cut(5, 5, 10), Ok(vec![(5, 6)]));
        assert_eq!(cut(5, 4, 10), Ok(vec![(5, 6)]));
        assert_eq!(cut(0, i64::MAX, i64::MAX), Ok(vec![(0, i64::MAX)]));
    }

    #[test]
    fn what_is_too_fine_or_impossible_is_refused() {
        let cut = |start, end, interval| buckets(start, end, interval).map(|all| all.len());
        assert_eq!(cut(0, 700, BucketInterval::Fixed(1)), Ok(700));
        assert_eq!(
            cut(0, 701, BucketInterval::Fixed(1)),
            Err(BucketError::TooMany(701))
        );
        assert_eq!(
            cut(0, 700_998, BucketInterval::Fixed(1)),
            Err(BucketError::TooMany(700_998))
        );
        assert_eq!(cut(0, 7_009, BucketInterval::Fixed(10)), Ok(701));
        assert_eq!(
            cut(0, 7_010_000, BucketInterval::Fixed(10_000)),
            Err(BucketError::TooMany(701))
        );
        assert_eq!(
            cut(0, 10, BucketInterval::Fixed(-1)),
            Err(BucketError::NoInterval(-1))
        );
        assert_eq!(
            cut(10_000, 0, BucketInterval::Fixed(10)),
            Err(BucketError::BadRange)
        );
        assert_eq!(
            cut(i64::MIN, i64::MAX, BucketInterval::Fixed(10)),
            Err(BucketError::BadRange)
        );
        assert_eq!(
            cut(i64::MAX, i64::MAX, BucketInterval::Fixed(10)),
            Err(BucketError::BadRange)
        );
        assert_eq!(
            cut(i64::MAX - 1, i64::MAX, calendar(Month, "UTC")),
            Err(BucketError::BadRange)
        );
        assert_eq!(
            cut(0, 701 * 90 * DAY_MS, calendar(Quarter, "UTC")),
            Err(BucketError::TooMany(701))
        );
    }

    fn intervals() -> impl Strategy<Value = BucketInterval> {
        let zones = prop::sample::select(vec![
            "UTC",
            "Europe/Kyiv",
            "America/New_York",
            "Asia/Beirut",
            "America/Sao_Paulo",
            "Pacific/Apia",
            "Australia/Lord_Howe",
            "America/Havana",
            "Africa/Casablanca",
            "-09:30",
            "GMT+14",
        ]);
        let units = prop::sample::select(vec![Week, WeekIso, Month, Quarter]);
        prop_oneof![
            (1i64..100_000_000).prop_map(BucketInterval::Fixed),
            (units, zones).prop_map(|(unit, zone)| calendar(unit, zone)),
        ]
    }

    proptest! {
        #[test]
        fn buckets_tile_the_range_in_order(
            start in -2_000_000_000_000i64..4_000_000_000_000,
            length in 0i64..200_000_000_000,
            interval in intervals(),
        ) {
            let Ok(all) = buckets(start, start + length, interval) else {
                prop_assert!(length / interval.nominal_ms() > MAX_INTERVALS);
                return Ok(());
            };
            prop_assert_eq!(all.first().map(|bucket| bucket.start), Some(start));
            prop_assert_eq!(all.last().map(|bucket| bucket.end), Some(start + length.max(1)));
            prop_assert!(all.iter().all(|bucket| bucket.start < bucket.end));
            prop_assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            for inner in all.iter().rev().skip(1) {
                match interval {
                    BucketInterval::Fixed(ms) => prop_assert_eq!(inner.end - inner.start, ms),
                    BucketInterval::Calendar(_, zone) => {
                        let day = zone.day_of(inner.end).unwrap();
                        prop_assert_eq!(zone.start_of_day(day), Some(inner.end), "begins a local day");
                        prop_assert!(inner.end - inner.start <= 93 * DAY_MS);
                    }
                }
            }
        }
    }
}
