//! Dashboards, and the customers they are assigned to.

use async_trait::async_trait;
use fieldline_model::entity::{Dashboard, DashboardInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DashboardId, TenantId};

use super::StoreResult;

/// Which dashboards a list holds; absent conditions hold for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DashboardFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Only those that mobile applications show.
    pub mobile: bool,
}

/// Dashboards. What is read has the customers it is assigned to; what is saved keeps them as they are stored.
#[async_trait]
pub trait DashboardStore: Send + Sync {
    /// See [`super::TenantStore::save`]; several dashboards may have the same title.
    async fn save(&self, dashboard: Dashboard, create: bool) -> StoreResult<Dashboard>;
    /// The dashboard, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: DashboardId) -> StoreResult<Option<Dashboard>>;
    /// The dashboard without what it shows.
    async fn info(&self, tenant: TenantId, id: DashboardId) -> StoreResult<Option<DashboardInfo>>;
    /// Those of the dashboards that the tenant has.
    async fn infos(&self, tenant: TenantId, ids: &[DashboardId]) -> StoreResult<Vec<DashboardInfo>>;
    /// A page of dashboards; text search in the title. Sorts by createdTime, title, name, mobileOrder.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &DashboardFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<DashboardInfo>>;
    /// Assigns a dashboard to a customer of the same tenant; returns whether it was not yet.
    async fn assign(&self, tenant: TenantId, id: DashboardId, customer: CustomerId) -> StoreResult<bool>;
    /// Takes a dashboard back from a customer; returns whether it was assigned.
    async fn unassign(&self, tenant: TenantId, id: DashboardId, customer: CustomerId) -> StoreResult<bool>;
    /// Deletes a dashboard; returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: DashboardId) -> StoreResult<bool>;
    /// How many dashboards the tenant has.
    async fn count(&self, tenant: TenantId) -> StoreResult<u64>;
}
