//! When a rule is in force: always, at given hours of given days, or at hours of its own each day.

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, TimeDelta, TimeZone as _};
use chrono_tz::Tz;
use serde_json::Value as Json;

use super::parse::{ConfigCursor, ConfigResult};

const DAY_MS: i64 = 86_400_000;
/// Some 100,000 years: calendars are not computed for times farther away, which devices may claim as any other.
const MAX_CALENDAR_MS: u64 = 3_000_000_000_000_000;

/// Where a schedule comes from.
#[derive(Debug)]
pub(super) enum ScheduleSource {
    Fixed(AlarmSchedule),
    /// JSON in the first attribute of the chain that exists; the fallback where none does or it cannot be read.
    Attribute {
        chain: Box<[u16]>,
        fallback: AlarmSchedule,
    },
    /// JSON in an argument.
    Argument(u16),
}

/// Days and hours, in a time zone.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AlarmSchedule {
    AnyTime,
    Specific {
        zone: ScheduleTimeZone,
        days: u8,
        hours: DailyHours,
    },
    /// Monday first; days without hours are off.
    Custom {
        zone: ScheduleTimeZone,
        days: Box<[Option<DailyHours>; 7]>,
    },
}

/// Milliseconds from the start of the day; a start after the end wraps around midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DailyHours {
    starts: i64,
    ends: i64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ScheduleTimeZone {
    /// Milliseconds east of UTC.
    Offset(i64),
    Named(Tz),
}

/// The type of a schedule, where it does not say it itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScheduleType {
    AnyTime,
    Specific,
    Custom,
}

impl ScheduleType {
    pub(super) fn parse(at: &ConfigCursor<'_>) -> ConfigResult<Self> {
        at.field("type").one_of(&[
            ("ANY_TIME", Self::AnyTime),
            ("SPECIFIC_TIME", Self::Specific),
            ("CUSTOM", Self::Custom),
        ])
    }
}

impl AlarmSchedule {
    pub(super) fn parse(at: &ConfigCursor<'_>, kind: ScheduleType) -> ConfigResult<Self> {
        match kind {
            ScheduleType::AnyTime => Ok(Self::AnyTime),
            ScheduleType::Specific => {
                let mut days = 0;
                let list = at.field("daysOfWeek").required()?;
                for day in list.list(64)? {
                    days |= 1 << weekday(&day)?;
                }
                Ok(Self::Specific {
                    zone: ScheduleTimeZone::parse(&at.field("timezone"))?,
                    days,
                    hours: DailyHours::parse(at)?,
                })
            }
            ScheduleType::Custom => {
                let mut days = [None; 7];
                let mut seen = 0u8;
                for item in at.field("items").required()?.list(64)? {
                    let day = weekday(&item.field("dayOfWeek"))?;
                    let hours = DailyHours::parse(&item)?;
                    // The first of several items of a day counts, also where it is off.
                    if seen & (1 << day) == 0
                        && item.field("enabled").flag()?
                        && let Some(slot) = days.get_mut(day)
                    {
                        *slot = Some(hours);
                    }
                    seen |= 1 << day;
                }
                Ok(Self::Custom {
                    zone: ScheduleTimeZone::parse(&at.field("timezone"))?,
                    days: Box::new(days),
                })
            }
        }
    }

    /// A schedule from the text of a value, whose type may have to be guessed from its fields.
    pub(super) fn from_text(text: &str, kind: Option<ScheduleType>) -> Result<Self, String> {
        let json: Json =
            serde_json::from_str(text).map_err(|error| format!("schedule is not JSON: {error}"))?;
        let at = ConfigCursor::root(&json, "schedule");
        let Some(object) = json.as_object() else {
            return Err("schedule must be a JSON object".to_owned());
        };
        let kind = match kind {
            Some(kind) => kind,
            None if object.is_empty() => ScheduleType::AnyTime,
            None if !at.field("type").is_null() => {
                ScheduleType::parse(&at).map_err(|error| error.to_string())?
            }
            None if !at.field("daysOfWeek").is_null() => ScheduleType::Specific,
            None if !at.field("items").is_null() => ScheduleType::Custom,
            None => return Err("schedule has neither type, daysOfWeek nor items".to_owned()),
        };
        Self::parse(&at, kind).map_err(|error| error.to_string())
    }

    pub(super) const fn kind(&self) -> ScheduleType {
        match self {
            Self::AnyTime => ScheduleType::AnyTime,
            Self::Specific { .. } => ScheduleType::Specific,
            Self::Custom { .. } => ScheduleType::Custom,
        }
    }

    /// Whether the schedule is in force at a time. Hours count from the start of the local day, so that they shift on the
    /// day of a clock change.
    pub(super) fn is_active(&self, ts: i64) -> bool {
        match self {
            Self::AnyTime => true,
            Self::Specific { zone, days, hours } => {
                let (day, passed) = zone.day_and_time(ts);
                days & (1 << day) != 0 && hours.contain(passed)
            }
            Self::Custom { zone, days } => {
                let (day, passed) = zone.day_and_time(ts);
                days.get(day)
                    .copied()
                    .flatten()
                    .is_some_and(|hours| hours.contain(passed))
            }
        }
    }
}

impl DailyHours {
    fn parse(at: &ConfigCursor<'_>) -> ConfigResult<Self> {
        let millis = |name| -> ConfigResult<i64> {
            let field = at.field(name);
            if field.is_null() { Ok(0) } else { field.integer() }
        };
        let ends = millis("endsOn")?;
        Ok(Self {
            starts: millis("startsOn")?,
            ends: if ends == 0 { DAY_MS } else { ends },
        })
    }

    const fn contain(self, passed: i64) -> bool {
        if self.starts <= self.ends {
            self.starts <= passed && passed < self.ends
        } else {
            self.starts < passed || (0 < passed && passed < self.ends)
        }
    }
}

impl ScheduleTimeZone {
    fn parse(at: &ConfigCursor<'_>) -> ConfigResult<Self> {
        let name = at.optional_text()?.unwrap_or_default();
        match Self::from_name(&name) {
            Some(zone) => Ok(zone),
            None => at.error(format_args!(
                "`{}` is no time zone",
                super::parse::shortened(&name)
            )),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        if name.is_empty() || name == "Z" {
            return Some(Self::Offset(0));
        }
        let bare = ["UTC", "GMT", "UT"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        if bare.is_empty() {
            return Some(Self::Offset(0));
        }
        if let Some(digits) = bare.strip_prefix(['+', '-']) {
            let sign = if bare.starts_with('-') { -1 } else { 1 };
            return Some(Self::Offset(sign * offset_ms(digits)?));
        }
        name.parse().ok().map(Self::Named)
    }

    /// Day of the week, Monday 0, and milliseconds since the local day began.
    fn day_and_time(self, ts: i64) -> (usize, i64) {
        match self {
            Self::Offset(offset) => {
                let local = ts.saturating_add(offset);
                // 1970-01-01 was a Thursday.
                (
                    (local.div_euclid(DAY_MS) + 3).rem_euclid(7) as usize,
                    local.rem_euclid(DAY_MS),
                )
            }
            Self::Named(zone) => {
                let Some(utc) =
                    DateTime::from_timestamp_millis(ts).filter(|_| ts.unsigned_abs() < MAX_CALENDAR_MS)
                else {
                    return Self::Offset(0).day_and_time(ts);
                };
                let date = utc.with_timezone(&zone).date_naive();
                (
                    date.weekday().num_days_from_monday() as usize,
                    ts - start_of_day(zone, date),
                )
            }
        }
    }
}

/// The first instant of a local date; where clocks skip midnight, it is when they went on.
fn start_of_day(zone: Tz, date: NaiveDate) -> i64 {
    let midnight = date.and_time(NaiveTime::MIN);
    for minute in 0..180 {
        if let Some(start) = zone
            .from_local_datetime(&(midnight + TimeDelta::minutes(minute)))
            .earliest()
        {
            return start.timestamp_millis();
        }
    }
    midnight.and_utc().timestamp_millis()
}

/// `h`, `hh`, `hhmm`, `hh:mm`, with seconds or without.
fn offset_ms(digits: &str) -> Option<i64> {
    let plain: String = digits.chars().filter(|c| *c != ':').collect();
    if !plain.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| {
        plain
            .get(from..to)
            .map_or(Some(0), |text| text.parse::<i64>().ok())
    };
    let (hours, minutes, seconds) = match plain.len() {
        1 => (part(0, 1)?, 0, 0),
        2 => (part(0, 2)?, 0, 0),
        4 => (part(0, 2)?, part(2, 4)?, 0),
        6 => (part(0, 2)?, part(2, 4)?, part(4, 6)?),
        _ => return None,
    };
    let valid = hours <= 18 && minutes < 60 && seconds < 60;
    valid.then_some(((hours * 60 + minutes) * 60 + seconds) * 1000)
}

/// A day of the week from 1 for Monday, as a position from 0.
fn weekday(at: &ConfigCursor<'_>) -> ConfigResult<usize> {
    match at.integer()? {
        day @ 1..=7 => Ok(day as usize - 1),
        _ => at.error("must be from 1 (Monday) to 7 (Sunday)"),
    }
}
