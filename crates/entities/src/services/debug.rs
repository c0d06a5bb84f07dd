//! How long everything about a node or field is stored for people who look for mistakes.

use fieldline_model::TenantId;
use fieldline_model::entity::{DebugSettings, TenantProfile};

use super::{ServiceContext, ServiceResult};

/// Minutes, where the tenant profile says nothing.
const DEFAULT_MINUTES: u64 = 15;
const MS_A_MINUTE: i64 = 60_000;

/// Settings as they are stored: `given`, or what the older `debug_mode` stands for, with everything stored no longer than
/// the tenant profile allows.
pub(super) fn stored(
    given: Option<DebugSettings>,
    debug_mode: bool,
    latest_end: i64,
) -> Option<DebugSettings> {
    let older = DebugSettings {
        failures_enabled: true,
        all_enabled: true,
        all_enabled_until: 0,
    };
    given
        .or(debug_mode.then_some(older))
        .map(|settings| settings.with_latest_end(latest_end))
}

/// How many minutes everything may be stored at most in tenants of a profile.
pub fn longest_debug_minutes(profile: Option<&TenantProfile>) -> u64 {
    match profile.map_or(0, |profile| profile.limit("maxDebugModeDurationMinutes")) {
        0 => DEFAULT_MINUTES,
        minutes => minutes,
    }
}

/// When storing everything ends, if it begins now; milliseconds.
pub(super) async fn latest_end(context: &ServiceContext, tenant: TenantId) -> ServiceResult<i64> {
    let profile = context.stores.profile_of(tenant).await?;
    let length = i64::try_from(longest_debug_minutes(profile.as_ref()))
        .unwrap_or(i64::MAX)
        .saturating_mul(MS_A_MINUTE);
    Ok(context.now().saturating_add(length))
}
