//! Asset profiles.

use std::sync::Arc;

use fieldline_model::entity::AssetProfile;
use fieldline_model::page::PageLink;
use fieldline_model::{AssetProfileId, EntityType, RuleChainId, TenantId};

use super::{Context, ServiceError, ServiceResult, conflict, queues, validate};
use crate::events::EntityChange;
use crate::ports::{AssetFilter, StoreErrorKind};

const NAME_TAKEN: &str = "Asset profile with such name already exists!";

/// Rules about asset profiles.
#[derive(Clone)]
pub struct AssetProfiles(Arc<Context>);

impl AssetProfiles {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the profile, or updates it where it has an id. Assets of a renamed profile change their type with it.
    ///
    /// # Errors
    /// A rule is broken, or the name is taken.
    pub async fn save(&self, tenant: TenantId, mut profile: AssetProfile) -> ServiceResult<AssetProfile> {
        let stores = &self.0.stores.asset_profiles;
        profile.tenant_id = tenant;
        self.check(&profile).await?;
        let default = stores.default_profile(tenant).await?;
        let default_id = default.and_then(|default| default.id);
        if profile.is_default && default_id.is_some() && default_id != profile.id {
            return Err(ServiceError::invalid(
                "Another default asset profile is present in scope of current tenant!",
            ));
        }
        let saved = match profile.id {
            Some(id) => {
                let old = stores
                    .get(tenant, id)
                    .await?
                    .ok_or_else(|| ServiceError::invalid("Can't update non existing asset profile!"))?;
                profile.created_time = old.created_time;
                // There is always a default profile: it stops being one only when another takes its place.
                profile.is_default |= old.is_default;
                let saved = conflict(stores.save(profile, false).await, NAME_TAKEN)?;
                if saved.name != old.name {
                    self.tell_assets(tenant, id).await?;
                }
                saved
            }
            None => {
                profile.id = Some(AssetProfileId::new());
                profile.created_time = self.0.now();
                conflict(stores.save(profile, true).await, NAME_TAKEN)?
            }
        };
        self.0.tell(EntityChange::AssetProfileChanged(
            tenant,
            saved.id.unwrap_or_default(),
        ));
        Ok(saved)
    }

    async fn check(&self, profile: &AssetProfile) -> ServiceResult<()> {
        validate::required("Asset profile name", &profile.name)?;
        validate::lengths(&[
            ("name", Some(&profile.name)),
            ("queueName", profile.default_queue_name.as_deref()),
        ])?;
        let queue = profile.default_queue_name.as_deref();
        if let Some(name) = queue.filter(|name| !name.is_empty())
            && !queues::exists(&self.0, profile.tenant_id, name).await?
        {
            return Err(ServiceError::invalid(
                "Asset profile is referencing to non-existent queue!",
            ));
        }
        if let Some(chain) = profile.default_rule_chain_id {
            let chains = &self.0.stores.rule_chains;
            let known = chain.entity_type == EntityType::RuleChain
                && chains
                    .get(profile.tenant_id, RuleChainId(chain.id))
                    .await?
                    .is_some();
            if !known {
                return Err(ServiceError::invalid(
                    "Can't assign rule chain from different tenant!",
                ));
            }
        }
        Ok(())
    }

    /// The type of an asset is the name of its profile: whoever keeps assets is told that theirs has changed.
    async fn tell_assets(&self, tenant: TenantId, id: AssetProfileId) -> ServiceResult<()> {
        let filter = AssetFilter {
            profile: Some(id),
            ..AssetFilter::default()
        };
        let mut link = PageLink::first(1_000);
        loop {
            let page = self.0.stores.assets.list(tenant, &filter, &link).await?;
            for asset in page.data.iter().filter_map(|info| info.asset.id) {
                self.0.tell(EntityChange::AssetSaved(tenant, asset));
            }
            if !page.has_next {
                return Ok(());
            }
            link.page += 1;
        }
    }

    /// Makes the profile the only default one of its tenant.
    ///
    /// # Errors
    /// There is no such profile.
    pub async fn set_default(&self, tenant: TenantId, id: AssetProfileId) -> ServiceResult<AssetProfile> {
        let stores = &self.0.stores.asset_profiles;
        let gone = || ServiceError::not_found(format!("Asset profile with id [{id}] is not found"));
        if !stores.set_default(tenant, id).await? {
            return Err(gone());
        }
        self.0.tell(EntityChange::AssetProfileChanged(tenant, id));
        stores.get(tenant, id).await?.ok_or_else(gone)
    }

    /// Deletes the profile with its relations.
    ///
    /// # Errors
    /// It is the default one, or an asset has it.
    pub async fn delete(&self, tenant: TenantId, profile: &AssetProfile) -> ServiceResult<()> {
        if profile.is_default {
            return Err(ServiceError::invalid(
                "Deletion of Default Asset Profile is prohibited!",
            ));
        }
        let id = profile.id.unwrap_or_default();
        conflict(
            self.0.stores.asset_profiles.delete(tenant, id).await,
            "The asset profile referenced by the assets cannot be deleted!",
        )?;
        self.0.tell(EntityChange::AssetProfileChanged(tenant, id));
        let subject = fieldline_model::Subject {
            tenant,
            entity: id.into(),
        };
        self.0.forget_links(subject).await?;
        self.0.forget_data(subject).await?;
        Ok(())
    }
}

/// The default profile of the tenant; created where there is none yet.
pub(super) async fn ensure_default(context: &Context, tenant: TenantId) -> ServiceResult<AssetProfile> {
    if let Some(profile) = context.stores.asset_profiles.default_profile(tenant).await? {
        return Ok(profile);
    }
    create(context, tenant, "default", true).await
}

/// The profile of that name; created where there is none yet.
pub(super) async fn find_or_create(
    context: &Context,
    tenant: TenantId,
    name: &str,
) -> ServiceResult<AssetProfile> {
    let stores = &context.stores.asset_profiles;
    if let Some(profile) = stores.by_name(tenant, name).await? {
        return Ok(profile);
    }
    let is_default = name == "default" && stores.default_profile(tenant).await?.is_none();
    create(context, tenant, name, is_default).await
}

async fn create(
    context: &Context,
    tenant: TenantId,
    name: &str,
    is_default: bool,
) -> ServiceResult<AssetProfile> {
    let stores = &context.stores.asset_profiles;
    let profile = AssetProfile {
        id: Some(AssetProfileId::new()),
        created_time: context.now(),
        tenant_id: tenant,
        name: name.to_owned(),
        description: Some("Default asset profile".to_owned()),
        is_default,
        ..AssetProfile::default()
    };
    let saved = match stores.save(profile, true).await {
        // Somebody else was faster.
        Err(error) if error.kind() == StoreErrorKind::Conflict => {
            let found = stores.by_name(tenant, name).await?;
            return found.ok_or_else(|| error.into());
        }
        saved => saved?,
    };
    context.tell(EntityChange::AssetProfileChanged(
        tenant,
        saved.id.unwrap_or_default(),
    ));
    Ok(saved)
}
