//! Firmware and software updates of devices.
//!
//! A device shall have the package that is assigned to it, or else to its profile. [`OtaRollouts`] notices when that has
//! changed, notes it in the store, and tells devices one after the other, by shared attributes, at a pace that keeps a whole
//! fleet from downloading at once. [`OtaDownloads`] hands devices the data, a chunk at a time. What people do with packages is
//! in `fieldline_entities::services::OtaPackageService`.

mod checksum;
mod download;
mod rollout;
#[cfg(test)]
mod tests;

use fieldline_core::options::{ByteSize, HumanDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use checksum::ChecksumHasher;
pub use download::{OtaDownloads, OtaImage, OtaOffer};
pub use rollout::{OtaRollouts, RolloutServices};

/// Settings of firmware and software updates.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Memory for those parts of packages that devices download at the moment.
    pub cache: ByteSize,
    /// How many devices are told of a new package in each `rollout-interval`; they are told evenly over it.
    pub rollout_devices: u32,
    /// See `rollout-devices`.
    pub rollout_interval: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache: ByteSize::mib(32),
            rollout_devices: 100,
            rollout_interval: HumanDuration::secs(60),
        }
    }
}
