//! Asset profiles.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_model::entity::{AssetProfile, EntityDraft};
use fieldline_model::{AssetProfileId, EntityType, RuleChainId, TenantId};

use super::profiles::{self, ProfileRules, ProfileService};
use super::{ServiceContext, ServiceError, ServiceResult, conflict, validate};

const NAME_TAKEN: &str = "Asset profile with such name already exists!";

/// Rules about asset profiles.
#[derive(Clone)]
pub struct AssetProfileService(Arc<ServiceContext>);

impl ProfileRules for AssetProfile {
    const MEMBERS: &'static str = "assets";

    fn fresh(id: AssetProfileId, created_time: i64, tenant: TenantId, name: &str, is_default: bool) -> Self {
        Self {
            id,
            created_time,
            tenant_id: tenant,
            name: name.to_owned(),
            description: Some("Default asset profile".to_owned()),
            is_default,
            ..Self::default()
        }
    }
}

impl AssetProfileService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    async fn check(&self, profile: &AssetProfile) -> ServiceResult<()> {
        let tenant = profile.tenant_id;
        validate::required("Asset profile name", &profile.name)?;
        validate::lengths(&[
            ("name", Some(&profile.name)),
            ("queueName", profile.default_queue_name.as_deref()),
        ])?;
        profiles::check_queue::<AssetProfile>(&self.0, tenant, profile.default_queue_name.as_deref()).await?;
        profiles::check_dashboard(&self.0, tenant, profile.default_dashboard_id).await?;
        if let Some(chain) = profile.default_rule_chain_id {
            let chains = &self.0.stores.rule_chains;
            let known = chain.entity_type == EntityType::RuleChain
                && chains.get(tenant, RuleChainId(chain.id)).await?.is_some();
            if !known {
                return Err(ServiceError::invalid(
                    "Can't assign rule chain from different tenant!",
                ));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl ProfileService for AssetProfileService {
    type ManagedProfile = AssetProfile;

    async fn save(
        &self,
        tenant: TenantId,
        mut profile: EntityDraft<AssetProfile>,
    ) -> ServiceResult<AssetProfile> {
        let stores = &self.0.stores.asset_profiles;
        profile.tenant_id = tenant;
        self.check(&profile).await?;
        profiles::check_default(&self.0, tenant, &profile).await?;
        let create = profile.id.is_none();
        let profile = match profile.id {
            Some(id) => {
                let old: AssetProfile = profiles::stored(&self.0, tenant, id).await?;
                // There is always a default profile: it stops being one only when another takes its place.
                profile.is_default |= old.is_default;
                profile.into_update(&old)
            }
            None => profile.into_new(AssetProfileId::new(), self.0.now()),
        };
        let saved = conflict(stores.save(profile, create).await, NAME_TAKEN)?;
        profiles::publish_profile_change::<AssetProfile>(&self.0, tenant, saved.id);
        Ok(saved)
    }

    async fn set_default(&self, tenant: TenantId, id: AssetProfileId) -> ServiceResult<AssetProfile> {
        profiles::set_default(&self.0, tenant, id).await
    }

    async fn delete(&self, tenant: TenantId, profile: &AssetProfile) -> ServiceResult<()> {
        profiles::delete(&self.0, tenant, profile).await
    }
}
