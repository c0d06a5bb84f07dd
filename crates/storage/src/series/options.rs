//! Settings of the time-series store.

use fieldline_core::options::{ByteSize, HumanDuration};
use serde::{Deserialize, Serialize};

/// Where time series, latest values and attributes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeriesKind {
    /// In the data directory, in an engine of the program's own.
    Embedded,
    /// In the PostgreSQL database that `sql.url` names.
    Sql,
}

/// Settings of the time-series store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Where time series, latest values and attributes are kept.
    pub kind: SeriesKind,
    /// Connections to the PostgreSQL database at most, 2 to 1,000, where `kind` is `sql`.
    pub connections: u32,
    /// Memory for blocks that were read from disk.
    pub block_cache: ByteSize,
    /// Memory that one table of recent writes may take before it is written to disk. There are five tables, and up to
    /// three of each may be on their way to disk.
    pub memtable: ByteSize,
    /// Memory for latest values, and the same for attributes. What does not fit is read from disk when it is needed.
    pub cells_cache: ByteSize,
    /// Recent rows are packed into compressed chunks once they take this much.
    pub pack_bytes: ByteSize,
    /// Recent rows are packed at the latest after this time.
    pub pack_age: HumanDuration,
    /// How often a slice of the stored data is searched for points past their time-to-live.
    pub sweep_interval: HumanDuration,
    /// How long the machine's clock must have stood, since the start or since it was set forward, before what has expired
    /// by it is deleted. Until then it is only hidden, so that a clock that ran ahead costs nothing once it is put right.
    pub clock_grace: HumanDuration,
    /// Files that are kept open for reading.
    pub open_files: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: SeriesKind::Embedded,
            connections: 8,
            block_cache: ByteSize::mib(16),
            memtable: ByteSize::mib(8),
            cells_cache: ByteSize::mib(96),
            pack_bytes: ByteSize::mib(64),
            pack_age: HumanDuration::secs(86_400),
            sweep_interval: HumanDuration::secs(10),
            clock_grace: HumanDuration::secs(3_600),
            open_files: 256,
        }
    }
}

impl Options {
    /// What is wrong with the settings, `None` where nothing is.
    pub fn problem(&self) -> Option<String> {
        if !(2..=1_000).contains(&self.connections) {
            return Some("connections must be 2 to 1000".to_owned());
        }
        if self.memtable < ByteSize::mib(1) {
            return Some("memtable must be at least 1MiB".to_owned());
        }
        if self.memtable > ByteSize::mib(1024) {
            return Some("memtable must be at most 1GiB".to_owned());
        }
        if self.pack_bytes < ByteSize::kib(64) {
            return Some("pack-bytes must be at least 64KiB".to_owned());
        }
        if self.sweep_interval.0.is_zero() {
            return Some("sweep-interval must be more than 0".to_owned());
        }
        if self.open_files < 16 {
            return Some("open-files must be at least 16".to_owned());
        }
        None
    }
}

/// Where the tables of the time-series store are in PostgreSQL.
#[cfg(feature = "sql")]
#[derive(Clone, PartialEq, Eq)]
pub struct SqlSeriesOptions {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// Connections at most, two at least: one that writes and one that reads.
    pub connections: u32,
}

#[cfg(feature = "sql")]
impl std::fmt::Debug for SqlSeriesOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may carry a password.
        f.debug_struct("SqlSeriesOptions")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
