//! Time zones as clients name them: `Europe/Kyiv`, `+02:00`, `GMT+3`.

use chrono::{
    DateTime, FixedOffset, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone,
};
use chrono_tz::Tz;

/// Short names that JVM clients expect to mean a place with its daylight saving time.
const SHORT_ZONE_NAMES: [(&str, Tz); 3] = [
    ("EST", Tz::America__New_York),
    ("HST", Tz::US__Hawaii),
    ("MST", Tz::America__Phoenix),
];

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CalendarZone {
    /// A zone of the IANA database, with its history of offsets.
    Named(Tz),
    /// A fixed offset from UTC.
    Offset(FixedOffset),
}

impl CalendarZone {
    /// Parses the time zone of a client. An absent or unknown name means UTC, because clients rely on a zone never
    /// being an error.
    pub(super) fn or_utc(name: Option<&str>) -> Self {
        name.and_then(Self::parse).unwrap_or(Self::Named(Tz::UTC))
    }

    fn parse(name: &str) -> Option<Self> {
        if let Some((_, place)) = SHORT_ZONE_NAMES.iter().find(|(short, _)| *short == name) {
            return Some(Self::Named(*place));
        }
        if let Ok(zone) = name.parse() {
            return Some(Self::Named(zone));
        }
        let offset = ["UTC", "GMT", "UT"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        parse_offset(offset).map(Self::Offset)
    }

    /// Returns the calendar day of an instant; `None` outside the supported years.
    pub(super) fn day_of(self, ms: i64) -> Option<NaiveDate> {
        let utc = DateTime::from_timestamp_millis(ms)?.naive_utc();
        let local = utc.checked_add_offset(self.offset_at(utc))?;
        Some(local.date())
    }

    /// Returns the instant at which a calendar day begins.
    pub(super) fn start_of_day(self, day: NaiveDate) -> Option<i64> {
        let midnight = day.and_time(NaiveTime::MIN);
        let utc = match self.local_offsets(midnight) {
            LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => {
                midnight.checked_sub_offset(offset)?
            }
            // The clocks skip midnight: the day begins at the end of the jump, which is midnight by the offset before
            // it.
            LocalResult::None => {
                let before = midnight.checked_sub_signed(TimeDelta::days(1))?;
                midnight.checked_sub_offset(self.offset_at(before))?
            }
        };
        Some(utc.and_utc().timestamp_millis())
    }

    fn offset_at(self, utc: NaiveDateTime) -> FixedOffset {
        match self {
            Self::Named(zone) => zone.offset_from_utc_datetime(&utc).fix(),
            Self::Offset(offset) => offset,
        }
    }

    fn local_offsets(self, local: NaiveDateTime) -> LocalResult<FixedOffset> {
        match self {
            Self::Named(zone) => zone.offset_from_local_datetime(&local).map(|offset| offset.fix()),
            Self::Offset(offset) => LocalResult::Single(offset),
        }
    }
}

/// Parses `Z`, `+h`, `+hh`, `+hhmm`, `+hh:mm`, and with seconds; at most 18 hours.
fn parse_offset(text: &str) -> Option<FixedOffset> {
    if text == "Z" {
        return FixedOffset::east_opt(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let digits = rest.replace(':', "");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = match digits.len() {
        1 => format!("0{digits}"),
        2 | 4 | 6 => digits,
        _ => return None,
    };
    let part = |at: usize| {
        digits
            .get(at..at + 2)
            .map_or(Some(0), |part| part.parse::<i32>().ok())
    };
    let (hours, minutes, seconds) = (part(0)?, part(2)?, part(4)?);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let total = hours * 3600 + minutes * 60 + seconds;
    (total <= 18 * 3600).then(|| FixedOffset::east_opt(sign * total))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_place_and_by_offset_and_else_are_utc() {
        for (name, zone) in [
            ("Europe/Kyiv", CalendarZone::Named(Tz::Europe__Kyiv)),
            ("EST", CalendarZone::Named(Tz::America__New_York)),
            ("UTC", CalendarZone::Named(Tz::UTC)),
            ("Nowhere/Else", CalendarZone::Named(Tz::UTC)),
            ("", CalendarZone::Named(Tz::UTC)),
            ("+25:00", CalendarZone::Named(Tz::UTC)),
            ("Z", CalendarZone::Offset(FixedOffset::east_opt(0).unwrap())),
            (
                "+02:00",
                CalendarZone::Offset(FixedOffset::east_opt(7200).unwrap()),
            ),
            (
                "GMT+2",
                CalendarZone::Offset(FixedOffset::east_opt(7200).unwrap()),
            ),
            (
                "UTC-0330",
                CalendarZone::Offset(FixedOffset::east_opt(-12_600).unwrap()),
            ),
        ] {
            assert_eq!(CalendarZone::or_utc(Some(name)), zone, "{name}");
        }
        assert_eq!(CalendarZone::or_utc(None), CalendarZone::Named(Tz::UTC));
    }

    #[test]
    fn a_day_whose_midnight_is_skipped_begins_after_the_jump() {
        // Lebanon put its clocks forward from 00:00 to 01:00 on 31 March 2024.
        let zone = CalendarZone::or_utc(Some("Asia/Beirut"));
        let day = NaiveDate::from_ymd_opt(2024, 3, 31).unwrap();
        assert_eq!(zone.start_of_day(day), Some(1_711_836_000_000));
        assert_eq!(zone.day_of(1_711_836_000_000), Some(day));
        assert_eq!(zone.day_of(1_711_835_999_999), day.pred_opt());
    }
}
