//! Entity views.

use async_trait::async_trait;
use fieldline_model::entity::{EntityView, EntityViewInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, EntityId, EntityViewId, TenantId};

use super::StoreResult;

/// Which views a list holds; absent conditions hold for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityViewFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Of this type.
    pub view_type: Option<String>,
    /// Of this device or asset.
    pub entity: Option<EntityId>,
}

/// Entity views.
#[async_trait]
pub trait EntityViewStore: Send + Sync {
    /// See [`super::TenantStore::save`]; a name taken in the tenant is a conflict. The entity must be set.
    async fn save(&self, view: EntityView, create: bool) -> StoreResult<EntityView>;
    /// The view, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: EntityViewId) -> StoreResult<Option<EntityView>>;
    /// The view with what lists show beside it.
    async fn info(&self, tenant: TenantId, id: EntityViewId) -> StoreResult<Option<EntityViewInfo>>;
    /// The view of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<EntityView>>;
    /// Those of the views that the tenant has.
    async fn by_ids(&self, tenant: TenantId, ids: &[EntityViewId]) -> StoreResult<Vec<EntityView>>;
    /// A page of views; text search in name, type and customer title. Sorts by createdTime, name, type, customerTitle.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &EntityViewFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityViewInfo>>;
    /// The types that the tenant's views have, in order; at most 1,000.
    async fn types(&self, tenant: TenantId) -> StoreResult<Vec<String>>;
    /// Deletes a view; returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: EntityViewId) -> StoreResult<bool>;
}
