//! Asset profiles.

use fieldline_model::entity::{AssetProfile, EntityDraft};
use fieldline_model::{AssetProfileId, EntityType, RuleChainId, TenantId};

use super::profiles::{self, ProfileRules};
use super::{ServiceContext, ServiceError, ServiceResult, resources, validate};

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

    async fn prepare(context: &ServiceContext, profile: &mut EntityDraft<Self>) -> ServiceResult<()> {
        let tenant = profile.tenant_id;
        validate::required("Asset profile name", &profile.name)?;
        validate::lengths(&[
            ("name", Some(&profile.name)),
            ("queueName", profile.default_queue_name.as_deref()),
        ])?;
        profiles::check_queue::<AssetProfile>(context, tenant, profile.default_queue_name.as_deref()).await?;
        profiles::check_dashboard(context, tenant, profile.default_dashboard_id).await?;
        if let Some(chain) = profile.default_rule_chain_id {
            let chains = &context.stores.rule_chains;
            let known = chain.entity_type == EntityType::RuleChain
                && chains.get(tenant, RuleChainId(chain.id)).await?.is_some();
            if !known {
                return Err(ServiceError::invalid(
                    "Can't assign rule chain from different tenant!",
                ));
            }
        }
        let title = format!("\"{}\" asset profile image", profile.name);
        resources::keep_image(context, tenant, &title, &mut profile.image).await
    }
}
