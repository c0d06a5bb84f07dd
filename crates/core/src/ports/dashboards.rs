//! Dashboards, and the customers they are assigned to.

use async_trait::async_trait;
use fieldline_model::entity::{Dashboard, DashboardInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DashboardId, TenantId};

use super::{StoreResult, TenantEntityStore};

/// Which dashboards a list holds; absent conditions hold for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DashboardFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Only those that mobile applications show.
    pub mobile: bool,
}

/// Dashboards. What is read has the customers it is assigned to; what is saved keeps them as they are stored. Several may have
/// the same title.
#[async_trait]
pub trait DashboardStore: TenantEntityStore<Dashboard> {
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
}
