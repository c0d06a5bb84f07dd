//! Time zones by name.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{OffsetName, Tz};

fn utc(ms: f64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_millis(ms as i64).map(|time| time.naive_utc())
}

/// What local time is ahead of UTC at an instant, milliseconds; `None` if there is no such zone.
pub(crate) fn offset(zone: &str, ms: f64) -> Option<f64> {
    let zone: Tz = zone.parse().ok()?;
    let offset = zone.offset_from_utc_datetime(&utc(ms)?);
    Some(f64::from(offset.fix().local_minus_utc()) * 1000.0)
}

/// What a local time is ahead of UTC, milliseconds. Of two it is the earlier instant's; a time that the clocks
/// leave out counts with the offset before.
pub(crate) fn local_offset(zone: &str, ms: f64) -> Option<f64> {
    let known: Tz = zone.parse().ok()?;
    let seconds = match known.offset_from_local_datetime(&utc(ms)?) {
        LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => offset.fix().local_minus_utc(),
        LocalResult::None => return offset(zone, ms - 86_400_000.0),
    };
    Some(f64::from(seconds) * 1000.0)
}

/// The short name of a zone at an instant, such as CEST.
pub(crate) fn abbreviation(zone: &str, ms: f64) -> Option<String> {
    let zone: Tz = zone.parse().ok()?;
    let offset = zone.offset_from_utc_datetime(&utc(ms)?);
    Some(
        offset
            .abbreviation()
            .map_or_else(|| offset.fix().to_string(), str::to_owned),
    )
}
