//! Types of settings: sizes and durations in human-readable form.
//!
//! Each crate owns a plain `Options` struct with `#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]`;
//! the field docs become the reference manual through the JSON schema.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes, written as `65536`, `"64KiB"`, `"16MiB"` or `"2GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// The size as a length in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Creates a size of `count` KiB.
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// Creates a size of `count` MiB.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// Creates a size of `count` GiB.
    pub const fn gib(count: u64) -> Self {
        Self(count << 30)
    }
}

const SIZE_UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, shift) = SIZE_UNITS
            .iter()
            .find_map(|(unit, shift)| text.strip_suffix(unit).map(|number| (number.trim_end(), *shift)))
            .unwrap_or((text, 0));
        let number: u64 = number
            .parse()
            .map_err(|_| format!("`{text}` is not a size: write bytes as 65536, 64KiB, 16MiB or 2GiB"))?;
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is too large"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |shift: &u32| self.0 != 0 && self.0.trailing_zeros() >= *shift;
        let (unit, shift) = SIZE_UNITS
            .iter()
            .find(|(_, shift)| fits(shift))
            .unwrap_or(&("B", 0));
        write!(f, "{}{unit}", self.0 >> shift)
    }
}

/// A duration, written as `"250ms"`, `"10s"`, `"5m"`, `"2h"` or `"7d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(pub Duration);

impl HumanDuration {
    /// Creates a duration of `count` milliseconds.
    pub const fn millis(count: u64) -> Self {
        Self(Duration::from_millis(count))
    }

    /// Creates a duration of `count` seconds.
    pub const fn secs(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }
}

const DURATION_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let parsed = DURATION_UNITS.iter().find_map(|(unit, millis)| {
            text.strip_suffix(unit)?
                .trim_end()
                .parse::<u64>()
                .ok()?
                .checked_mul(*millis)
        });
        parsed
            .map(Self::millis)
            .ok_or_else(|| format!("`{text}` is not a duration: write it as 250ms, 10s, 5m, 2h or 7d"))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis() as u64;
        let (unit, size) = DURATION_UNITS
            .iter()
            .rev()
            .find(|(_, size)| millis > 0 && millis.is_multiple_of(*size))
            .unwrap_or(&("ms", 1));
        write!(f, "{}{unit}", millis / size)
    }
}

macro_rules! written_as_text {
    ($($name:ident $title:literal;)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(untagged)]
                enum NumberOrText {
                    Number(u64),
                    Text(String),
                }
                let text = match NumberOrText::deserialize(deserializer)? {
                    NumberOrText::Number(number) => number.to_string(),
                    NumberOrText::Text(text) => text,
                };
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $title.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    )*};
}

written_as_text! {
    ByteSize "size";
    HumanDuration "duration";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_read_back_as_they_are_written() {
        for text in ["0B", "65537B", "64KiB", "3MiB", "2GiB"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
        for text in ["0ms", "250ms", "10s", "5m", "2h", "7d"] {
            assert_eq!(text.parse::<HumanDuration>().unwrap().to_string(), text);
        }
        assert_eq!("4096".parse(), Ok(ByteSize(4096)));
        assert!("12".parse::<HumanDuration>().is_err() && "1TB".parse::<ByteSize>().is_err());
    }
}
