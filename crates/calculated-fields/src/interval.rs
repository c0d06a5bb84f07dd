//! Intervals of the calendar of a time zone.

use chrono::{
    DateTime, Datelike as _, Duration, LocalResult, Months, NaiveDate, NaiveDateTime, TimeZone as _,
    Timelike as _,
};
use chrono_tz::Tz;
use fieldline_model::entity::calculated_field::{AggregationInterval, FieldConfigError, IntervalType};

/// A kind of interval, ready to be computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IntervalCalendar {
    kind: IntervalType,
    zone: Tz,
    offset: Duration,
    duration_sec: i64,
}

impl IntervalCalendar {
    pub(super) fn new(interval: &AggregationInterval) -> Result<Self, FieldConfigError> {
        let zone = interval.tz.parse().map_err(|_| {
            FieldConfigError::new(
                "configuration.interval.tz",
                format!("Invalid timezone in interval: '{}'", interval.tz),
            )
        })?;
        Ok(Self {
            kind: interval.kind,
            zone,
            offset: Duration::seconds(interval.offset_sec.unwrap_or(0)),
            duration_sec: interval.duration_sec.unwrap_or(0).max(1),
        })
    }

    /// Start and end of the interval that holds a time, milliseconds; `None` outside of the calendar.
    pub(super) fn bounds(&self, ts: i64) -> Option<(i64, i64)> {
        let shifted = self.at(ts)?.checked_sub_signed(self.offset)?;
        let start = self.align(shifted)?;
        let end = self.next(start)?;
        let milliseconds =
            |time: DateTime<Tz>| Some(time.checked_add_signed(self.offset)?.timestamp_millis());
        Some((milliseconds(start)?, milliseconds(end)?))
    }

    /// End of the interval that starts at a time, milliseconds.
    pub(super) fn end_of(&self, start: i64) -> Option<i64> {
        let shifted = self.at(start)?.checked_sub_signed(self.offset)?;
        let end = self.next(shifted)?.checked_add_signed(self.offset)?;
        Some(end.timestamp_millis())
    }

    fn at(&self, ts: i64) -> Option<DateTime<Tz>> {
        Some(DateTime::from_timestamp_millis(ts)?.with_timezone(&self.zone))
    }

    /// The start of the interval that holds a time.
    fn align(&self, time: DateTime<Tz>) -> Option<DateTime<Tz>> {
        let date = time.date_naive();
        match self.kind {
            IntervalType::Hour => {
                let local = time.naive_local();
                let past = i64::from(local.minute()) * 60 + i64::from(local.second());
                let sub = Duration::nanoseconds(i64::from(local.nanosecond() % 1_000_000_000));
                time.checked_sub_signed(Duration::seconds(past))?
                    .checked_sub_signed(sub)
            }
            IntervalType::Day => self.midnight(date),
            IntervalType::Week => self.days_before(date, date.weekday().num_days_from_monday()),
            IntervalType::WeekSunSat => self.days_before(date, date.weekday().num_days_from_sunday()),
            IntervalType::Month => self.midnight(date.with_day(1)?),
            IntervalType::Quarter => self.midnight(NaiveDate::from_ymd_opt(
                date.year(),
                date.month0() / 3 * 3 + 1,
                1,
            )?),
            IntervalType::Year => self.midnight(NaiveDate::from_ymd_opt(date.year(), 1, 1)?),
            IntervalType::Custom => {
                let midnight = self.midnight(date)?;
                let past = time.signed_duration_since(midnight).num_seconds();
                let aligned = past / self.duration_sec * self.duration_sec;
                midnight.checked_add_signed(Duration::seconds(aligned))
            }
        }
    }

    /// The start of the interval behind the one that starts here.
    fn next(&self, start: DateTime<Tz>) -> Option<DateTime<Tz>> {
        let date = start.date_naive();
        let later = match self.kind {
            IntervalType::Hour => return start.checked_add_signed(Duration::hours(1)),
            IntervalType::Custom => {
                return start.checked_add_signed(Duration::try_seconds(self.duration_sec)?);
            }
            IntervalType::Day => date.checked_add_signed(Duration::days(1))?,
            IntervalType::Week | IntervalType::WeekSunSat => date.checked_add_signed(Duration::days(7))?,
            IntervalType::Month => date.checked_add_months(Months::new(1))?,
            IntervalType::Quarter => date.checked_add_months(Months::new(3))?,
            IntervalType::Year => date.checked_add_months(Months::new(12))?,
        };
        self.midnight(later)
    }

    fn days_before(&self, date: NaiveDate, days: u32) -> Option<DateTime<Tz>> {
        self.midnight(date.checked_sub_signed(Duration::days(i64::from(days)))?)
    }

    fn midnight(&self, date: NaiveDate) -> Option<DateTime<Tz>> {
        self.resolve(date.and_hms_opt(0, 0, 0)?)
    }

    /// The earlier of two moments that a clock shows; the first that exists behind one that no clock shows.
    fn resolve(&self, mut local: NaiveDateTime) -> Option<DateTime<Tz>> {
        for _ in 0..=24 * 4 {
            match self.zone.from_local_datetime(&local) {
                LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => return Some(time),
                LocalResult::None => local = local.checked_add_signed(Duration::minutes(15))?,
            }
        }
        None
    }
}
