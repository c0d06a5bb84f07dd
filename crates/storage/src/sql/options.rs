//! Settings of the entity database.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fieldline_core::options::{ByteSize, HumanDuration};

/// Settings of the entity database: SQLite in the data directory, or PostgreSQL.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Address of a PostgreSQL database that keeps the entities, `postgres://user:password@host:port/database`. If not set,
    /// SQLite keeps them in the data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Connections to that PostgreSQL database at most, 1 to 1,000, beside `list-readers` further ones; SQLite does not use it.
    pub connections: u32,
    /// How many reads of SQLite run at the same time, 1 to 64; writes go one after the other whatever this says.
    pub readers: u32,
    /// How many lists, counts and searches of people run at the same time, beside those reads, 1 to 64; half of them, at
    /// least one, for a single tenant. Further ones wait as long as a statement may run, and are then refused.
    pub list_readers: u32,
    /// How long a list, count or search of people may run.
    pub list_timeout: HumanDuration,
    /// Pages that each connection to SQLite keeps in memory, 64KiB to 1GiB; the operating system caches the file beyond that.
    pub page_cache: ByteSize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: None,
            connections: 16,
            readers: 4,
            list_readers: 4,
            list_timeout: HumanDuration::secs(10),
            page_cache: ByteSize::kib(512),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may carry a password.
        f.debug_struct("Options")
            .field("url", &self.url.as_ref().map(|_| "********"))
            .field("connections", &self.connections)
            .field("readers", &self.readers)
            .field("list_readers", &self.list_readers)
            .field("list_timeout", &self.list_timeout)
            .field("page_cache", &self.page_cache)
            .finish()
    }
}
