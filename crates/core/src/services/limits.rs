//! How many entities a tenant may have, by its profile.

use fieldline_model::{EntityType, TenantId};

use super::{Context, ServiceError, ServiceErrorKind, ServiceResult};
use crate::access::title;

/// Refuses one more entity where the tenant has as many as its profile allows. Two creations at the same moment may
/// both pass: the limit is a plan, not an invariant.
pub(super) async fn check(context: &Context, tenant: TenantId, entity_type: EntityType) -> ServiceResult<()> {
    let stores = &context.stores;
    let setting = match entity_type {
        EntityType::Device => "maxDevices",
        EntityType::Customer => "maxCustomers",
        EntityType::User => "maxUsers",
        EntityType::RuleChain => "maxRuleChains",
        EntityType::Asset => "maxAssets",
        EntityType::Dashboard => "maxDashboards",
        _ => return Ok(()),
    };
    let Some(profile_id) = stores
        .tenants
        .get(tenant)
        .await?
        .and_then(|t| t.tenant_profile_id)
    else {
        return Ok(());
    };
    let limit = match stores.tenant_profiles.get(profile_id).await? {
        Some(profile) => profile.limit(setting),
        None => 0,
    };
    if limit == 0 {
        return Ok(());
    }
    let count = match entity_type {
        EntityType::Device => stores.devices.count(tenant).await?,
        EntityType::Customer => stores.customers.count(tenant).await?,
        EntityType::RuleChain => stores.rule_chains.count(tenant).await?,
        EntityType::Asset => stores.assets.count(tenant).await?,
        EntityType::Dashboard => stores.dashboards.count(tenant).await?,
        _ => stores.users.count(tenant).await?,
    };
    if count < limit {
        return Ok(());
    }
    Err(ServiceError::new(
        ServiceErrorKind::LimitExceeded { entity_type, limit },
        format!("{}s limit reached", title(&entity_type)),
    ))
}
