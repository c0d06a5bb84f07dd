//! The usage limits of a tenant profile.

use fieldline_model::entity::TenantProfile;
use serde_json::Value;

use super::key::{UsageKey, UsageState};

/// Fraction of a limit from which it counts as near, if the profile sets none.
const WARN_THRESHOLD: f64 = 0.8;

/// The monthly limits of a tenant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageLimits {
    limits: [u64; UsageKey::ALL.len()],
    /// Fraction of a limit from which it counts as near.
    warn_threshold: f64,
    sms_enabled: bool,
}

impl Default for UsageLimits {
    fn default() -> Self {
        Self {
            limits: [0; UsageKey::ALL.len()],
            warn_threshold: WARN_THRESHOLD,
            sms_enabled: true,
        }
    }
}

impl UsageLimits {
    /// The limits of a tenant profile.
    pub fn of(profile: &TenantProfile) -> Self {
        let mut limits = Self::default();
        for (key, limit) in UsageKey::ALL.into_iter().zip(&mut limits.limits) {
            *limit = key.profile_setting().map_or(0, |name| profile.limit(name));
        }
        let threshold = profile.setting("warnThreshold").and_then(Value::as_f64);
        if let Some(threshold) = threshold.filter(|threshold| *threshold > 0.0) {
            limits.warn_threshold = threshold;
        }
        limits.sms_enabled = profile.setting("smsEnabled").and_then(Value::as_bool) != Some(false);
        limits
    }

    /// The monthly limit; 0 for unlimited.
    pub fn limit(&self, key: UsageKey) -> u64 {
        self.limits.get(key.index()).copied().unwrap_or(0)
    }

    /// The state of a feature after this much use.
    pub(super) fn state(&self, key: UsageKey, used: u64) -> UsageState {
        if key == UsageKey::Sms && !self.sms_enabled {
            return UsageState::Disabled;
        }
        let limit = self.limit(key);
        let near = (limit as f64 * self.warn_threshold) as u64;
        if limit == 0 || used == 0 || used < near {
            UsageState::Enabled
        } else if used < limit {
            UsageState::Warning
        } else {
            UsageState::Disabled
        }
    }
}
