//! Settings of the embedded time-series store.

use fieldline_core::options::{ByteSize, HumanDuration};
use serde::{Deserialize, Serialize};

/// Settings of the embedded time-series store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
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
