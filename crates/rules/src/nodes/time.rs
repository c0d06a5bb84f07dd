//! Units of time that nodes are configured with.

use schemars::JsonSchema;
use serde::Deserialize;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum TimeUnit {
    /// Rounded down to milliseconds.
    Nanoseconds,
    /// Rounded down to milliseconds.
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Days,
}

impl TimeUnit {
    /// So many of it, milliseconds.
    pub(crate) const fn millis(self, count: i64) -> i64 {
        match self {
            Self::Nanoseconds => count / 1_000_000,
            Self::Microseconds => count / 1000,
            Self::Milliseconds => count,
            Self::Seconds => count.saturating_mul(1000),
            Self::Minutes => count.saturating_mul(60_000),
            Self::Hours => count.saturating_mul(3_600_000),
            Self::Days => count.saturating_mul(86_400_000),
        }
    }
}
