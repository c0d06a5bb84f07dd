//! How long tenants keep what goes by its age.

use std::sync::Arc;

use fieldline_model::TenantId;
use fieldline_model::page::PageLink;

use super::{ServiceContext, ServiceResult};

const DAY_MS: i64 = 86_400_000;

/// The tenants whose profile sets so many days, each with the time (milliseconds) before which things are to be deleted.
///
/// # Errors
/// The store failed.
pub(super) async fn ages(context: &ServiceContext, setting: &str) -> ServiceResult<Vec<(TenantId, i64)>> {
    let (stores, now) = (&context.stores, context.now());
    let mut ages = Vec::new();
    let mut link = PageLink {
        sort_property: Some("createdTime".to_owned()),
        ..PageLink::first(1_000)
    };
    loop {
        let page = stores.tenants.list(&link).await?;
        for tenant in page.data {
            let Some(profile) = tenant.tenant_profile_id else {
                continue;
            };
            let profile = stores.tenant_profiles.get(profile).await?;
            let days = profile.map_or(0, |profile| profile.limit(setting));
            let age = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
            if age > 0 {
                ages.push((tenant.id, now.saturating_sub(age)));
            }
        }
        if !page.has_next {
            return Ok(ages);
        }
        link.page += 1;
    }
}

/// Persistent calls by their age.
#[derive(Clone)]
pub struct RpcCleanupService(Arc<ServiceContext>);

impl RpcCleanupService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Deletes the calls of all tenants that are older than their tenant profile (`rpcTtlDays`) keeps them; returns how many.
    ///
    /// # Errors
    /// The store failed; calling again goes on.
    pub async fn expire(&self) -> ServiceResult<u64> {
        let mut count = 0;
        for (tenant, before) in ages(&self.0, "rpcTtlDays").await? {
            count += self.0.stores.rpcs.delete_before(tenant, before).await?;
        }
        Ok(count)
    }
}
