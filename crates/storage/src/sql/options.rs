//! Settings of the embedded entity database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fieldline_core::options::{ByteSize, HumanDuration};

/// Settings of the embedded entity database (SQLite).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// How many reads run at the same time, 1 to 64; writes go one after the other whatever this says.
    pub readers: u32,
    /// How many lists, counts and searches of people run at the same time, beside those reads, 1 to 64; half of them, at
    /// least one, for a single tenant. Further ones wait as long as a statement may run, and are then refused.
    pub list_readers: u32,
    /// How long a list, count or search of people may run.
    pub list_timeout: HumanDuration,
    /// Pages that each connection keeps in memory, 64KiB to 1GiB; the operating system caches the file beyond that.
    pub page_cache: ByteSize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            readers: 4,
            list_readers: 4,
            list_timeout: HumanDuration::secs(10),
            page_cache: ByteSize::kib(512),
        }
    }
}
