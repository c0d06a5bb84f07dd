//! Settings of the journal.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use fieldline_core::options::ByteSize;

use crate::kafka::KafkaOptions;

/// When an append counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// `fsync`: after fdatasync. Survives a crash of the machine.
    Fsync,
    /// `interval:MS`: after the write; fdatasync follows at most MS milliseconds later. Survives a crash of the
    /// process; a crash of the machine may lose the last interval.
    Interval(Duration),
    /// `os`: after the write; the operating system decides when it reaches the disk. Survives a crash of the process.
    Os,
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fsync" => Ok(Self::Fsync),
            "os" => Ok(Self::Os),
            _ => text
                .strip_prefix("interval:")
                .and_then(|millis| millis.parse().ok())
                .filter(|millis| (1..=60_000).contains(millis))
                .map(|millis| Self::Interval(Duration::from_millis(millis)))
                .ok_or_else(|| {
                    format!("`{text}` is not a durability: write fsync, interval:MS with 1 to 60000, or os")
                }),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fsync => f.write_str("fsync"),
            Self::Interval(interval) => write!(f, "interval:{}", interval.as_millis()),
            Self::Os => f.write_str("os"),
        }
    }
}

impl Serialize for Durability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Durability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Durability {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "durability".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^(fsync|os|interval:[0-9]+)$" })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Where the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum JournalKind {
    /// In files of this node.
    #[default]
    Embedded,
    /// On servers of Kafka.
    Kafka,
}

/// The journal buffers data of devices until it is processed: in files on this node, or on Kafka.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Where it is: `embedded` in files of the data directory, or `kafka`, which takes `max-pending`, `max-append`,
    /// `max-bytes`, `internal-reserve`, `discard-damaged` and the settings of `kafka`, and no others.
    pub kind: JournalKind,
    /// When a message is acknowledged: `fsync` after it is on the disk, `interval:MS` after it is written, with an
    /// fdatasync at least every MS milliseconds (a power failure may lose that much), or `os` after it is written (a
    /// power failure may lose what the operating system had not flushed). A crash of the process loses nothing in any.
    pub durability: Durability,
    /// Size at which a file of the log is closed and the next one begun. Disk space is freed in whole files.
    pub segment_bytes: ByteSize,
    /// Most bytes of appends in memory that wait for the disk; beyond it, senders are slowed down.
    pub max_pending: ByteSize,
    /// Largest single append; at most half of `max-pending`.
    pub max_append: ByteSize,
    /// Free disk space below which appends of devices are refused; appends of the platform itself are refused below
    /// half of it. The rest keeps the stores working.
    pub min_free_disk: ByteSize,
    /// Bytes of records kept although all consumers have consumed them.
    pub retain_bytes: ByteSize,
    /// Size of the whole log at which senders are slowed down until consumers have caught up; at least twice
    /// `segment-bytes` plus `max-pending`.
    pub max_bytes: ByteSize,
    /// How far the log may grow beyond `max-bytes` through messages that rule chains, alarms and calculated fields put
    /// into queues: records of the log often cannot be consumed without them. A tenant gets at most three quarters of
    /// it. At least twice `max-append`. The default is four times `max-bytes`, because a message in a queue takes
    /// several times the bytes of the telemetry in it.
    pub internal_reserve: Option<ByteSize>,
    /// Discards damaged parts of the log at the start instead of refusing to start. Only for one start, after the
    /// journal was reported as corrupt and there is no copy of its files: the records in the damaged blocks are lost.
    pub discard_damaged: bool,
    /// The journal on Kafka.
    pub kafka: KafkaOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: JournalKind::Embedded,
            durability: Durability::Fsync,
            segment_bytes: ByteSize::mib(64),
            max_pending: ByteSize::mib(32),
            max_append: ByteSize::mib(8),
            min_free_disk: ByteSize::mib(128),
            retain_bytes: ByteSize(0),
            max_bytes: ByteSize::gib(16),
            internal_reserve: None,
            discard_damaged: false,
            kafka: KafkaOptions::default(),
        }
    }
}

/// A block holds at most the pending bytes, and its lengths are 32 bits wide.
const MAX_PENDING: ByteSize = ByteSize::gib(1);

impl Options {
    /// The number of bytes by which the log may exceed its largest size.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        let reserve = self.internal_reserve.map(|reserve| reserve.0);
        reserve.unwrap_or(self.max_bytes.0.saturating_mul(4))
    }

    /// Checks that the values are consistent; the error names the key and the allowed range.
    pub fn check(&self) -> Result<(), String> {
        if self.segment_bytes < ByteSize::kib(4) || self.segment_bytes > ByteSize::gib(64) {
            return Err("segment-bytes must be between 4KiB and 64GiB".to_owned());
        }
        if self.max_pending < ByteSize::kib(4) || self.max_pending > MAX_PENDING {
            return Err("max-pending must be between 4KiB and 1GiB".to_owned());
        }
        if self.max_append.0 == 0 || self.max_append.0 > self.max_pending.0 / 2 {
            return Err("max-append must be at most half of max-pending".to_owned());
        }
        if self.max_bytes.0 < 2 * self.segment_bytes.0 + self.max_pending.0 {
            return Err("max-bytes must be at least twice segment-bytes plus max-pending".to_owned());
        }
        if self.reserve_bytes() < 2 * self.max_append.0 {
            return Err("internal-reserve must be at least twice max-append".to_owned());
        }
        if self.kind == JournalKind::Kafka {
            self.kafka.check()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_reads_back_as_it_is_written() {
        for text in ["fsync", "os", "interval:250"] {
            assert_eq!(text.parse::<Durability>().unwrap().to_string(), text);
        }
        for text in ["", "interval", "interval:0", "interval:1h", "FSYNC"] {
            assert!(text.parse::<Durability>().is_err(), "{text}");
        }
        Options::default().check().unwrap();
    }
}
