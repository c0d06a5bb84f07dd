//! Assets and their profiles.

use async_trait::async_trait;
use fieldline_model::entity::{Asset, AssetInfo, AssetProfile};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AssetId, AssetProfileId, CustomerId, TenantId};

use super::StoreResult;

/// Which assets a list holds; absent conditions hold for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AssetFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Of this type (name of the profile).
    pub asset_type: Option<String>,
    /// Of this profile.
    pub profile: Option<AssetProfileId>,
}

/// An asset among many that are stored at once.
#[derive(Debug, Clone, PartialEq)]
pub struct AssetImportRow {
    /// The asset; the `id` must be set.
    pub asset: Asset,
    /// Whether it is new.
    pub create: bool,
}

/// Assets.
#[async_trait]
pub trait AssetStore: Send + Sync {
    /// See [`super::TenantStore::save`]; a name taken in the tenant is a conflict. The profile must be set; the type that
    /// is returned is always its name.
    async fn save(&self, asset: Asset, create: bool) -> StoreResult<Asset>;
    /// The asset, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: AssetId) -> StoreResult<Option<Asset>>;
    /// The asset with what lists show beside it.
    async fn info(&self, tenant: TenantId, id: AssetId) -> StoreResult<Option<AssetInfo>>;
    /// The asset of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<Asset>>;
    /// Those of the assets that the tenant has.
    async fn by_ids(&self, tenant: TenantId, ids: &[AssetId]) -> StoreResult<Vec<Asset>>;
    /// Those of the assets of these names that the tenant has.
    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<Asset>>;
    /// See [`super::DeviceStore::import`].
    async fn import(&self, rows: Vec<AssetImportRow>) -> StoreResult<Vec<StoreResult<Asset>>>;
    /// A page of assets; text search in name, label, type and customer title. Sorts by createdTime, name, type, label,
    /// assetProfileName, customerTitle.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &AssetFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<AssetInfo>>;
    /// Deletes an asset; returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: AssetId) -> StoreResult<bool>;
    /// How many assets the tenant has.
    async fn count(&self, tenant: TenantId) -> StoreResult<u64>;
}

/// Asset profiles.
#[async_trait]
pub trait AssetProfileStore: Send + Sync {
    /// See [`super::TenantStore::save`]; a name taken in the tenant is a conflict.
    async fn save(&self, profile: AssetProfile, create: bool) -> StoreResult<AssetProfile>;
    /// The profile, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: AssetProfileId) -> StoreResult<Option<AssetProfile>>;
    /// The profile of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<AssetProfile>>;
    /// The default profile of the tenant.
    async fn default_profile(&self, tenant: TenantId) -> StoreResult<Option<AssetProfile>>;
    /// Makes a profile the only default one of its tenant; returns whether it exists.
    async fn set_default(&self, tenant: TenantId, id: AssetProfileId) -> StoreResult<bool>;
    /// Those of the profiles that the tenant has.
    async fn by_ids(&self, tenant: TenantId, ids: &[AssetProfileId]) -> StoreResult<Vec<AssetProfile>>;
    /// A page of profiles; text search in the name. Sorts by createdTime, name, description, isDefault.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<AssetProfile>>;
    /// Deletes a profile; a conflict while an asset has it. Returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: AssetProfileId) -> StoreResult<bool>;
}
