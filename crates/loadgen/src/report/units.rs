//! Figures formatted for people: grouped digits, three significant digits, units, dates.

/// Stands for a figure that is not a number.
pub(crate) const MISSING_FIGURE: &str = "–";

const MS_PER_DAY: i64 = 86_400_000;
const BYTE_UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// The unit of a value, which decides its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FigureUnit {
    /// Messages a second.
    PerSecond,
    /// Microseconds.
    Micros,
    /// Processor time per elapsed time.
    Cores,
    /// Bytes.
    Bytes,
    /// Messages.
    Messages,
}

impl FigureUnit {
    /// The unit of which the ticks of an axis up to `top` are round multiples.
    pub(crate) fn base(self, top: f64) -> f64 {
        match self {
            Self::Bytes => 1_024_f64.powi(byte_power(top) as i32),
            Self::PerSecond | Self::Micros | Self::Cores | Self::Messages => 1.0,
        }
    }

    /// Smallest step of an axis: closer ticks would have the same label.
    pub(crate) const fn smallest_step(self) -> f64 {
        match self {
            Self::Bytes | Self::Messages | Self::Micros => 1.0,
            Self::PerSecond | Self::Cores => 0.0,
        }
    }

    /// Formats a round value, briefly enough for an axis.
    pub(crate) fn tick(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::Messages => short(value),
            Self::Cores => trimmed(value),
            Self::Micros if value < 1e3 => format!("{} µs", trimmed(value)),
            Self::Micros if value < 1e6 => format!("{} ms", trimmed(value / 1e3)),
            Self::Micros => format!("{} s", trimmed(value / 1e6)),
            Self::Bytes if value <= 0.0 => "0".to_owned(),
            Self::Bytes => {
                let power = byte_power(value);
                let unit = BYTE_UNITS.get(power).copied().unwrap_or_default();
                format!("{} {unit}", trimmed(value / 1_024_f64.powi(power as i32)))
            }
        }
    }

    /// Formats a measured value.
    pub(crate) fn value(self, value: f64) -> String {
        match self {
            Self::PerSecond => rate(value),
            Self::Micros => ms(value),
            Self::Cores => format!("{} cores", figure(value)),
            Self::Bytes => bytes(value),
            Self::Messages => figure(value),
        }
    }
}

/// The largest unit of bytes that the value fills, as a power of 1,024.
fn byte_power(value: f64) -> usize {
    let mut power = 0;
    let mut rest = value;
    while rest >= 1_024.0 && power + 1 < BYTE_UNITS.len() {
        rest /= 1_024.0;
        power += 1;
    }
    power
}

/// `1,234,567`
pub(crate) fn count(value: impl TryInto<u64>) -> String {
    let digits = value.try_into().unwrap_or(u64::MAX).to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats three significant digits, and all digits before the point: `0.123`, `1.23`, `12.3`, `12,345`. Integers have
/// no fraction.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return MISSING_FIGURE.to_owned();
    }
    if value < 0.0 {
        return format!("-{}", figure(-value));
    }
    if value.fract() == 0.0 || value >= 99.95 {
        return count(value.round() as u64);
    }
    if value >= 9.995 {
        format!("{value:.1}")
    } else if value >= 0.9995 {
        format!("{value:.2}")
    } else if value >= 0.0005 {
        format!("{value:.3}")
    } else {
        "<0.001".to_owned()
    }
}

/// `12,345/s`
pub(crate) fn rate(value: f64) -> String {
    with_unit(value, "/s")
}

/// Microseconds as `45.2 ms`.
pub(crate) fn ms(us: f64) -> String {
    with_unit(us / 1e3, " ms")
}

/// Microseconds as `12.3 µs`.
pub(crate) fn us(us: f64) -> String {
    with_unit(us, " µs")
}

/// A ratio as `0.84`, always with two decimals so that a column of them is easy to compare.
pub(crate) fn ratio(value: f64) -> String {
    fixed(value, 2)
}

/// Formats a number with that many decimals.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        format!("{value:.decimals$}")
    } else {
        MISSING_FIGURE.to_owned()
    }
}

/// `175 MiB`
pub(crate) fn bytes(value: f64) -> String {
    let power = byte_power(value);
    let unit = BYTE_UNITS.get(power).copied().unwrap_or_default();
    with_unit(value / 1_024_f64.powi(power as i32), &format!(" {unit}"))
}

/// `0.24 s`, `90 s`, `2 min 30 s`, `2 h 46 min`
pub(crate) fn seconds(value: f64) -> String {
    if !value.is_finite() || value < 120.0 {
        let short = figure(value);
        return if short.contains('.') {
            short.trim_end_matches('0').trim_end_matches('.').to_owned() + " s"
        } else {
            with_unit(value, " s")
        };
    }
    let whole = value.round() as u64;
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    match (hours, minutes, rest) {
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{} h", count(hours)),
        (hours, minutes, _) => format!("{} h {minutes} min", count(hours)),
    }
}

/// Formats milliseconds since 1970 as `2026-03-01 12:00:00 UTC`.
pub(crate) fn date(ms: i64) -> String {
    let seconds = ms.rem_euclid(MS_PER_DAY) / 1_000;
    // Counts from 1 March of the year 0, so that the leap day is the last of its year, in eras of 400 years, which all
    // have the same number of days. From March on, every five months have 153 days.
    let days = ms.div_euclid(MS_PER_DAY) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// `1 device`, `5,000 devices`
pub(crate) fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

/// Replaces the characters that a terminal would interpret or XML forbids.
pub(crate) fn printable(text: &str) -> String {
    let replaced = |c: char| c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    text.chars()
        .map(|c| if replaced(c) { '\u{FFFD}' } else { c })
        .collect()
}

/// Formats a figure and its unit; no unit if there is no figure.
fn with_unit(value: f64, unit: &str) -> String {
    if value.is_finite() {
        figure(value) + unit
    } else {
        MISSING_FIGURE.to_owned()
    }
}

/// `0`, `500`, `2.5k`, `100k`, `1M`
fn short(value: f64) -> String {
    match value {
        v if v >= 1e9 => trimmed(v / 1e9) + "G",
        v if v >= 1e6 => trimmed(v / 1e6) + "M",
        v if v >= 1e3 => trimmed(v / 1e3) + "k",
        v => trimmed(v),
    }
}

/// Formats a value without trailing zeros, and without the noise of binary fractions.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits_and_grouped_thousands() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_2, "<0.001"),
            (0.0454, "0.045"),
            (0.9996, "1.00"),
            (1.234, "1.23"),
            (9.996, "10.0"),
            (45.23, "45.2"),
            (99.97, "100"),
            (52.0, "52"),
            (1_234_567.8, "1,234,568"),
            (-12.34, "-12.3"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(figure(value), text, "{value}");
        }
        assert_eq!((count(999_u64), count(1_000_u64)), ("999".into(), "1,000".into()));
        assert_eq!(
            (plural(1_u64, "device"), plural(0_u64, "device")),
            ("1 device".into(), "0 devices".into())
        );
    }

    #[test]
    fn measures_carry_their_unit_unless_there_is_nothing_to_measure() {
        assert_eq!(rate(99_800.4), "99,800/s");
        assert_eq!(rate(f64::NAN), "–");
        assert_eq!((ms(45_230.0), ms(385.0)), ("45.2 ms".into(), "0.385 ms".into()));
        assert_eq!((bytes(0.0), bytes(1_023.0)), ("0 B".into(), "1,023 B".into()));
        assert_eq!(
            (bytes(183_500_800.0), bytes(2.5e9)),
            ("175 MiB".into(), "2.33 GiB".into())
        );
        assert_eq!((seconds(0.24), seconds(90.0)), ("0.24 s".into(), "90 s".into()));
        assert_eq!(
            (seconds(150.2), seconds(10_000.0)),
            ("2 min 30 s".into(), "2 h 46 min".into())
        );
    }

    #[test]
    fn ticks_are_short() {
        let ticks =
            |unit: FigureUnit, values: &[f64]| values.iter().map(|v| unit.tick(*v)).collect::<Vec<_>>();
        assert_eq!(
            ticks(FigureUnit::PerSecond, &[0.0, 500.0, 2_500.0, 1e5, 2e6]),
            ["0", "500", "2.5k", "100k", "2M"]
        );
        assert_eq!(
            ticks(FigureUnit::Micros, &[20.0, 5e3, 2e6]),
            ["20 µs", "5 ms", "2 s"]
        );
        assert_eq!(ticks(FigureUnit::Bytes, &[0.0, 104_857_600.0]), ["0", "100 MiB"]);
        assert_eq!(ticks(FigureUnit::Cores, &[0.1 + 0.2]), ["0.3"]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_772_366_399_999, "2026-03-01 11:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(ms), text);
        }
        // No content of a file may end the program.
        date(i64::MIN);
        date(i64::MAX);
    }
}
