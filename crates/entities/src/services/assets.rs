//! Assets.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::events::EntityChange;
use fieldline_model::entity::{Asset, AssetProfile, EntityDraft};
use fieldline_model::{AssetId, CustomerId, TenantId};

use super::assignable::{self, AssignableService};
use super::{NameConflict, ServiceContext, ServiceResult, conflict, profiles, validate};

/// Rules about assets.
#[derive(Clone)]
pub struct AssetService(Arc<ServiceContext>);

impl AssetService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the asset, or updates it where it has an id. Its type and profile are brought in line, and the profile of
    /// a new type is created.
    ///
    /// # Errors
    /// A rule is broken, the name is taken, or the tenant has as many assets as it may have.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut asset: EntityDraft<Asset>,
        names: &NameConflict,
    ) -> ServiceResult<Asset> {
        let old = assignable::prepare(&self.0, tenant, &mut asset, names).await?;
        self.check(&asset).await?;
        let named = (asset.asset_profile_id, asset.asset_type.as_str());
        let profile: AssetProfile = profiles::of_entity(&self.0, tenant, named.0, named.1).await?;
        asset.asset_profile_id = Some(profile.id);
        asset.asset_type = profile.name;
        let asset = assignable::complete(&self.0, asset, old.as_ref()).await?;
        let saved = self.0.stores.assets.save(asset, old.is_none()).await;
        let saved = conflict(saved, &assignable::name_taken::<Asset>())?;
        self.0.publish_change(EntityChange::saved(tenant, saved.id));
        Ok(saved)
    }

    async fn check(&self, asset: &Asset) -> ServiceResult<()> {
        check_fields(asset)?;
        assignable::check_customer(&self.0, asset).await
    }
}

#[async_trait]
impl AssignableService for AssetService {
    type ManagedEntity = Asset;

    async fn assign(&self, tenant: TenantId, id: AssetId, customer: CustomerId) -> ServiceResult<Asset> {
        match assignable::with_customer::<Asset>(&self.0, tenant, id, customer).await? {
            (asset, true) => self.save(tenant, asset.into(), &NameConflict::Fail).await,
            (asset, false) => Ok(asset),
        }
    }

    async fn delete(&self, tenant: TenantId, id: AssetId) -> ServiceResult<()> {
        assignable::delete_source::<Asset>(&self.0, tenant, id).await
    }
}

/// What can be said about an asset without asking the stores.
pub(super) fn check_fields(asset: &Asset) -> ServiceResult<()> {
    validate::required("Asset name", &asset.name)?;
    validate::lengths(&[
        ("name", Some(&asset.name)),
        ("type", Some(&asset.asset_type)),
        ("label", asset.label.as_deref()),
    ])?;
    validate::json_object("additionalInfo", asset.additional_info.as_ref())
}
