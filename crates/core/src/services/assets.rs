//! Assets.

use std::sync::Arc;

use fieldline_model::entity::{Asset, AssetProfile};
use fieldline_model::{AssetId, CustomerId, EntityType, Subject, TenantId};

use super::names::no_free_name;
use super::{Context, NameConflict, ServiceError, ServiceResult, asset_profiles, conflict, limits, validate};
use crate::events::EntityChange;

const NAME_TAKEN: &str = "Asset with such name already exists!";

/// Rules about assets.
#[derive(Clone)]
pub struct Assets(Arc<Context>);

impl Assets {
    pub(super) fn new(context: &Arc<Context>) -> Self {
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
        mut asset: Asset,
        names: &NameConflict,
    ) -> ServiceResult<Asset> {
        let stores = &self.0.stores.assets;
        let old = match asset.id {
            Some(id) => Some(
                stores
                    .get(tenant, id)
                    .await?
                    .ok_or_else(|| ServiceError::invalid("Can't update non existing asset!"))?,
            ),
            None => None,
        };
        asset.tenant_id = tenant;
        let renamed = old.as_ref().is_none_or(|old| old.name != asset.name);
        if names.uniquifies() && renamed {
            asset.name = self.free_name(tenant, asset.name, names).await?;
        }
        self.check(&asset).await?;
        let profile = self.profile_of(&asset).await?;
        asset.asset_profile_id = profile.id;
        asset.asset_type.clone_from(&profile.name);
        let create = old.is_none();
        match old {
            Some(old) => asset.created_time = old.created_time,
            None => {
                limits::check(&self.0, tenant, EntityType::Asset).await?;
                asset.id = Some(AssetId::new());
                asset.created_time = self.0.now();
            }
        }
        let saved = conflict(stores.save(asset, create).await, NAME_TAKEN)?;
        self.0
            .tell(EntityChange::AssetSaved(tenant, saved.id.unwrap_or_default()));
        Ok(saved)
    }

    async fn free_name(&self, tenant: TenantId, name: String, names: &NameConflict) -> ServiceResult<String> {
        let stores = &self.0.stores.assets;
        if stores.by_name(tenant, &name).await?.is_none() {
            return Ok(name);
        }
        for candidate in names.alternatives(&name) {
            if stores.by_name(tenant, &candidate).await?.is_none() {
                return Ok(candidate);
            }
        }
        no_free_name(&name)
    }

    async fn check(&self, asset: &Asset) -> ServiceResult<()> {
        check_fields(asset)?;
        let customers = &self.0.stores.customers;
        if !asset.customer_id.is_null() && customers.get(asset.tenant_id, asset.customer_id).await?.is_none()
        {
            return Err(ServiceError::invalid(
                "Can't assign asset to non-existent customer!",
            ));
        }
        Ok(())
    }

    async fn profile_of(&self, asset: &Asset) -> ServiceResult<AssetProfile> {
        let tenant = asset.tenant_id;
        if let Some(id) = asset.asset_profile_id {
            let found = self.0.stores.asset_profiles.get(tenant, id).await?;
            return found
                .ok_or_else(|| ServiceError::invalid("Asset is referencing non existing asset profile!"));
        }
        if asset.asset_type.is_empty() {
            return asset_profiles::ensure_default(&self.0, tenant).await;
        }
        asset_profiles::find_or_create(&self.0, tenant, &asset.asset_type).await
    }

    /// Assigns the asset to a customer of the tenant, or with the null id to none.
    ///
    /// # Errors
    /// There is no such asset or customer.
    pub async fn assign(&self, tenant: TenantId, id: AssetId, customer: CustomerId) -> ServiceResult<Asset> {
        let mut asset = self
            .0
            .stores
            .assets
            .get(tenant, id)
            .await?
            .ok_or_else(|| ServiceError::not_found(format!("Asset with id [{id}] is not found")))?;
        if asset.customer_id == customer {
            return Ok(asset);
        }
        asset.customer_id = customer;
        self.save(tenant, asset, &NameConflict::Fail).await
    }

    /// Deletes an asset with its data, relations and alarms.
    ///
    /// # Errors
    /// Entity views show it, calculated fields name it, or the store failed; asking again goes on where it stopped.
    pub async fn delete(&self, tenant: TenantId, id: AssetId) -> ServiceResult<()> {
        super::entity_views::refuse_viewed(&self.0, tenant, id.into(), "asset").await?;
        super::calculated_fields::refuse_referenced(&self.0, tenant, id.into(), "asset").await?;
        let subject = Subject {
            tenant,
            entity: id.into(),
        };
        self.0.forget_data(subject).await?;
        self.0.stores.assets.delete(tenant, id).await?;
        self.0.tell(EntityChange::AssetDeleted(tenant, id));
        self.0.forget_links(subject).await?;
        // Once more, for what was saved in between.
        self.0.forget_data(subject).await?;
        Ok(())
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
