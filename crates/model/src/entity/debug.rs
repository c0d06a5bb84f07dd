//! What is kept about the work of a rule node or a calculated field, for people who look for mistakes.

use serde::{Deserialize, Serialize};

/// Which debug events of a node or field are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DebugSettings {
    /// Store failures, for as long as this is set.
    #[serde(deserialize_with = "super::null_as_default")]
    pub failures_enabled: bool,
    /// Store everything, in a request: the platform turns it into [`DebugSettings::all_enabled_until`].
    #[serde(deserialize_with = "super::null_as_default")]
    pub all_enabled: bool,
    /// Store everything until then, milliseconds; 0 for not at all.
    #[serde(deserialize_with = "super::null_as_default")]
    pub all_enabled_until: i64,
}

impl DebugSettings {
    /// Whether everything is stored at that time, milliseconds.
    pub fn stores_all(&self, now_ms: i64) -> bool {
        self.all_enabled || now_ms < self.all_enabled_until
    }

    /// Whether failures are stored at that time, milliseconds.
    pub fn stores_failures(&self, now_ms: i64) -> bool {
        self.failures_enabled || self.stores_all(now_ms)
    }

    /// What is stored: a request for everything ends at `latest_end` (milliseconds), as does one for a longer time.
    #[must_use]
    pub fn with_latest_end(&self, latest_end: i64) -> Self {
        Self {
            failures_enabled: self.failures_enabled,
            all_enabled: false,
            all_enabled_until: if self.all_enabled {
                latest_end
            } else {
                self.all_enabled_until.min(latest_end)
            },
        }
    }
}
