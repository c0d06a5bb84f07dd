//! The payloads of the devices.

use std::ops::RangeInclusive;
use std::str::FromStr;

use rand::Rng as _;
use rand::rngs::SmallRng;

/// Largest payload that may be requested, bytes.
const MAX_SIZE: usize = 1 << 20;

/// Smallest payload with text, bytes: a message with an empty text, and a margin.
const MIN_BYTES: usize = 64;

/// Most keys of a message: their names have four digits.
const MAX_KEYS: usize = 10_000;

/// Battery level that the profiles' alarm rule counts as low.
const LOW_BATTERY: u32 = 10;

/// A kind of payload: telemetry with a timestamp, `{"ts":…,"values":{…}}`, or attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadKind {
    /// Pulse counter, leakage flag, battery level.
    SmartMeter,
    /// Latitude, longitude, speed, fuel, battery level.
    SmartTracker,
    /// That many lines of a controller, each a decimal number.
    IndustrialPlc(usize),
    /// A mix of messages with 1, 20, 100 and 1,000 values.
    Random,
    /// Energy, voltage and power: three numbers as meters report them.
    Energy,
    /// That many integers.
    Keys(usize),
    /// One number and one text that fills the payload up to that many bytes.
    Bytes(usize),
}

impl PayloadKind {
    /// Default number of lines of a controller.
    pub const LINES: usize = 60;
    /// Most lines of a controller: their names have three digits.
    pub const MAX_LINES: usize = 999;

    /// Data points per message; the mean for mixed messages.
    pub fn points(self) -> usize {
        match self {
            Self::SmartMeter | Self::Energy => 3,
            Self::SmartTracker => 5,
            Self::IndustrialPlc(lines) => lines,
            Self::Random => 56,
            Self::Keys(keys) => keys,
            Self::Bytes(_) => 2,
        }
    }

    /// A key that every message has, by which stored messages are counted; `None` for mixed messages.
    pub fn key(self) -> Option<&'static str> {
        match self {
            Self::SmartMeter => Some("pulseCounter"),
            Self::SmartTracker => Some("latitude"),
            Self::IndustrialPlc(_) => Some("line000"),
            Self::Random => None,
            Self::Energy => Some("energy"),
            Self::Keys(_) => Some("k0000"),
            Self::Bytes(_) => Some("n"),
        }
    }

    /// Name of the device profile that suits the payload.
    pub fn profile(self) -> &'static str {
        match self {
            Self::SmartTracker => "SMART_TRACKER",
            Self::IndustrialPlc(_) => "INDUSTRIAL_PLC",
            _ => "SMART_METER",
        }
    }

    /// Appends a message with the timestamp `ts` in milliseconds, or without one as attributes.
    pub fn write(self, ts: Option<i64>, alarm: bool, random: &mut SmallRng, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(ts) = ts {
            out.extend_from_slice(b"{\"ts\":");
            put_int(ts, out);
            out.extend_from_slice(b",\"values\":");
        }
        out.push(b'{');
        self.write_values(alarm, random, out, start, ts.is_some());
        out.push(b'}');
        if ts.is_some() {
            out.push(b'}');
        }
    }

    fn write_values(
        self,
        alarm: bool,
        random: &mut SmallRng,
        out: &mut Vec<u8>,
        start: usize,
        wrapped: bool,
    ) {
        let battery = |random: &mut SmallRng| {
            if alarm {
                LOW_BATTERY
            } else {
                random.random_range(50..100)
            }
        };
        match self {
            Self::SmartMeter => {
                out.extend_from_slice(b"\"pulseCounter\":");
                put_int(random.random_range(0..1_000_000), out);
                out.extend_from_slice(if random.random_range(0..100) == 0 {
                    b",\"leakage\":true,\"batteryLevel\":".as_slice()
                } else {
                    b",\"leakage\":false,\"batteryLevel\":".as_slice()
                });
                put_int(battery(random).into(), out);
            }
            Self::SmartTracker => {
                out.extend_from_slice(b"\"latitude\":");
                put_decimal(random.random_range(0..100_000_000), 1_000_000, out);
                out.extend_from_slice(b",\"longitude\":");
                put_decimal(random.random_range(0..100_000_000), 1_000_000, out);
                out.extend_from_slice(b",\"speed\":");
                put_decimal(random.random_range(0..1_000), 10, out);
                out.extend_from_slice(b",\"fuel\":");
                put_int(random.random_range(0..100), out);
                out.extend_from_slice(b",\"batteryLevel\":");
                put_int(battery(random).into(), out);
            }
            Self::IndustrialPlc(lines) => {
                put_list(lines, b"line", 3, out, |out| {
                    put_float(random.random::<f64>() * 100.0, out);
                });
            }
            Self::Random => {
                let (prefix, count): (&[u8], _) = match random.random_range(0..1_000) {
                    0..290 => (b"t1_", 1),
                    290..590 => (b"t2_", 20),
                    590..990 => (b"t3_", 100),
                    _ => (b"t4_", 1_000),
                };
                put_list(count, prefix, 3, out, |out| {
                    put_int(random.random_range(0..100), out);
                });
            }
            Self::Energy => {
                out.extend_from_slice(b"\"energy\":");
                put_int(random.random_range(100_000..1_000_000), out);
                out.extend_from_slice(b",\"voltage\":");
                put_decimal(random.random_range(2_200..2_400), 10, out);
                out.extend_from_slice(b",\"power\":");
                put_decimal(random.random_range(0..100_000), 100, out);
            }
            Self::Keys(keys) => {
                put_list(keys, b"k", 4, out, |out| {
                    put_int(random.random_range(0..1_000_000), out);
                });
            }
            Self::Bytes(bytes) => {
                out.extend_from_slice(b"\"n\":");
                put_int(random.random_range(0..1_000_000), out);
                out.extend_from_slice(b",\"text\":\"");
                let closing = if wrapped { 3 } else { 2 };
                let fill = bytes.saturating_sub(out.len() - start + closing);
                out.resize(out.len() + fill, b'x');
                out.push(b'"');
            }
        }
    }
}

impl FromStr for PayloadKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, size) = match text.split_once(':') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        let sized = |allowed: RangeInclusive<usize>| match size.map(str::parse) {
            Some(Ok(size)) if allowed.contains(&size) => Ok(size),
            _ => Err(format!(
                "`{text}` has no number from {} to {}",
                allowed.start(),
                allowed.end()
            )),
        };
        match (name.to_ascii_uppercase().as_str(), size) {
            ("SMART_METER" | "DEFAULT", None) => Ok(Self::SmartMeter),
            ("SMART_TRACKER", None) => Ok(Self::SmartTracker),
            ("INDUSTRIAL_PLC", None) => Ok(Self::IndustrialPlc(Self::LINES)),
            ("INDUSTRIAL_PLC", Some(_)) => sized(1..=Self::MAX_LINES).map(Self::IndustrialPlc),
            ("RANDOM", None) => Ok(Self::Random),
            ("ENERGY", None) => Ok(Self::Energy),
            ("KEYS", _) => sized(1..=MAX_KEYS).map(Self::Keys),
            ("BYTES", _) => sized(MIN_BYTES..=MAX_SIZE).map(Self::Bytes),
            _ => Err(format!(
                "`{text}` is none of SMART_METER, SMART_TRACKER, INDUSTRIAL_PLC[:LINES], RANDOM, ENERGY, KEYS:NUMBER, BYTES:NUMBER"
            )),
        }
    }
}

impl std::fmt::Display for PayloadKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SmartMeter => f.write_str("SMART_METER"),
            Self::SmartTracker => f.write_str("SMART_TRACKER"),
            Self::IndustrialPlc(lines) => write!(f, "INDUSTRIAL_PLC:{lines}"),
            Self::Random => f.write_str("RANDOM"),
            Self::Energy => f.write_str("ENERGY"),
            Self::Keys(keys) => write!(f, "KEYS:{keys}"),
            Self::Bytes(bytes) => write!(f, "BYTES:{bytes}"),
        }
    }
}

/// Appends `"PREFIXnnn":VALUE` that many times.
fn put_list(
    count: usize,
    prefix: &[u8],
    digits: u32,
    out: &mut Vec<u8>,
    mut value: impl FnMut(&mut Vec<u8>),
) {
    for index in 0..count {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(prefix);
        for place in (0..digits).rev() {
            out.push(b'0' + (index / 10_usize.pow(place) % 10) as u8);
        }
        out.extend_from_slice(b"\":");
        value(out);
    }
}

fn put_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn put_float(value: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
}

/// Appends `value / scale`; `scale` is a power of ten.
fn put_decimal(value: i64, scale: i64, out: &mut Vec<u8>) {
    put_int(value / scale, out);
    out.push(b'.');
    let mut place = scale / 10;
    while place > 0 {
        out.push(b'0' + (value / place % 10) as u8);
        place /= 10;
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use serde_json::Value;

    use super::*;

    fn sample(kind: &str, ts: Option<i64>, alarm: bool) -> (Value, usize) {
        let kind: PayloadKind = kind.parse().expect("a payload");
        let mut out = Vec::new();
        kind.write(ts, alarm, &mut SmallRng::seed_from_u64(1), &mut out);
        (serde_json::from_slice(&out).expect("JSON"), out.len())
    }

    #[test]
    fn every_kind_writes_its_points_with_their_time() {
        for (kind, points) in [
            ("SMART_METER", 3),
            ("SMART_TRACKER", 5),
            ("INDUSTRIAL_PLC:60", 60),
            ("ENERGY", 3),
            ("KEYS:1000", 1_000),
            ("BYTES:1024", 2),
        ] {
            let (message, _) = sample(kind, Some(1_700_000_000_123), false);
            assert_eq!(message["ts"], 1_700_000_000_123_i64, "{kind}");
            let values = message["values"].as_object().expect("values");
            assert_eq!(values.len(), points, "{kind}");
            let kind: PayloadKind = kind.parse().expect("a payload");
            assert_eq!(kind.points(), points);
            assert!(values.contains_key(kind.key().expect("a key")), "{kind}");
        }
    }

    #[test]
    fn attributes_have_no_time() {
        let (message, _) = sample("SMART_METER", None, false);
        assert!(message["pulseCounter"].is_number() && message.get("ts").is_none());
    }

    #[test]
    fn an_alarm_is_a_low_battery() {
        assert_eq!(
            sample("SMART_METER", Some(1), true).0["values"]["batteryLevel"],
            LOW_BATTERY
        );
        assert!(sample("SMART_METER", Some(1), false).0["values"]["batteryLevel"].as_u64() >= Some(50));
    }

    #[test]
    fn bytes_are_as_many_as_asked() {
        for ts in [None, Some(1_700_000_000_000)] {
            for bytes in [MIN_BYTES, 100, 270, 1_024, 65_000] {
                assert_eq!(sample(&format!("BYTES:{bytes}"), ts, false).1, bytes);
            }
        }
    }

    #[test]
    fn unknown_kinds_and_sizes_are_refused() {
        for text in [
            "SMART",
            "KEYS",
            "KEYS:0",
            "KEYS:10001",
            "INDUSTRIAL_PLC:1000",
            "BYTES:x",
            "BYTES:63",
            "BYTES:99999999",
            "SMART_METER:3",
        ] {
            let error = text.parse::<PayloadKind>().expect_err(text);
            assert!(error.contains('`'), "{error}");
        }
    }
}
