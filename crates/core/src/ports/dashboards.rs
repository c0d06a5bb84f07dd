//! Dashboards, and the customers they are assigned to.

use async_trait::async_trait;
use fieldline_model::entity::{Dashboard, DashboardInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DashboardId, TenantId};

use super::{SavedBy, StoreResult, TenantEntityStore};

/// The conditions of a list of dashboards; absent conditions match all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DashboardFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Only dashboards shown in mobile applications.
    pub mobile: bool,
}

/// Dashboards. A read dashboard includes its customers; a save leaves the stored assignments unchanged. Titles need not
/// be unique.
#[async_trait]
pub trait DashboardStore: TenantEntityStore<Dashboard> {
    /// Inserts a dashboard as [`EntityStore::insert`](super::EntityStore::insert) does, and keeps what is saved as its first
    /// version (see [`VersionStore`](super::VersionStore)).
    async fn insert_by(&self, dashboard: Dashboard, by: &SavedBy) -> StoreResult<Dashboard>;
    /// Updates a dashboard as [`EntityStore::update`](super::EntityStore::update) does, and keeps what is saved as a version.
    async fn update_by(&self, dashboard: Dashboard, by: &SavedBy) -> StoreResult<Dashboard>;
    /// The dashboard without its configuration.
    async fn info(&self, tenant: TenantId, id: DashboardId) -> StoreResult<Option<DashboardInfo>>;
    /// The dashboards with these ids that the tenant has.
    async fn infos(&self, tenant: TenantId, ids: &[DashboardId]) -> StoreResult<Vec<DashboardInfo>>;
    /// A page of dashboards; text search in the title. Sorts by createdTime, title, name, mobileOrder.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &DashboardFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<DashboardInfo>>;
    /// Assigns a dashboard to a customer of the same tenant; returns whether it was not assigned yet.
    async fn assign(&self, tenant: TenantId, id: DashboardId, customer: CustomerId) -> StoreResult<bool>;
    /// Removes a customer's assignment of a dashboard; returns whether it was assigned.
    async fn unassign(&self, tenant: TenantId, id: DashboardId, customer: CustomerId) -> StoreResult<bool>;
}
