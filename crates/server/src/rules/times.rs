//! Times in the formats that people write.

use chrono::{DateTime, NaiveDate, NaiveTime};

/// Parses a time to milliseconds since 1970: such a number, RFC 3339, a date in UTC, `now`, or a time span before `now`
/// (`7d`, `12h`, `30m`, `45s`).
pub(super) fn parse(text: &str, now: i64) -> Option<i64> {
    if text == "now" {
        return Some(now);
    }
    if let Ok(ms) = text.parse() {
        return Some(ms);
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_millis());
    }
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Some(date.and_time(NaiveTime::MIN).and_utc().timestamp_millis());
    }
    let unit = match text.chars().last()? {
        's' => 1000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return None,
    };
    let count: i64 = text.get(..text.len() - 1)?.parse().ok()?;
    now.checked_sub(count.checked_mul(unit)?)
}

/// Formats a time for people, in UTC.
pub(super) fn show(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms).map_or_else(
        || ms.to_string(),
        |time| time.format("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form() {
        let now = 1_760_000_000_000;
        assert_eq!(parse("now", now), Some(now));
        assert_eq!(parse("1759999999999", now), Some(1_759_999_999_999));
        assert_eq!(parse("2025-10-09T08:53:20Z", now), Some(now));
        assert_eq!(parse("2025-10-09", now), Some(1_759_968_000_000));
        assert_eq!(parse("7d", now), Some(now - 7 * 86_400_000));
        assert_eq!(
            (parse("soon", now), parse("", now), parse("7ü", now)),
            (None, None, None)
        );
        assert_eq!(show(now), "2025-10-09 08:53:20");
    }
}
