//! The widget library, which no test asks for.

use async_trait::async_trait;
use fieldline_core::ports::{
    StoreResult, WidgetLibraryView, WidgetTypeFilter, WidgetTypeStore, WidgetsBundleStore,
};
use fieldline_model::entity::{WidgetTypeDetails, WidgetTypeInfo, WidgetsBundle, WidgetsBundleName};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{TenantId, WidgetTypeId, WidgetsBundleId};

use super::absent;
use super::absent::Absent;

#[async_trait]
impl WidgetTypeStore for Absent {
    async fn info(&self, _: TenantId, _: WidgetTypeId) -> StoreResult<Option<WidgetTypeInfo>> {
        absent()
    }
    async fn by_fqn(&self, _: TenantId, _: &str) -> StoreResult<Option<WidgetTypeDetails>> {
        absent()
    }
    async fn id_of(&self, _: TenantId, _: &str) -> StoreResult<Option<WidgetTypeId>> {
        absent()
    }
    async fn visible(&self, _: TenantId, _: &[WidgetTypeId]) -> StoreResult<Vec<WidgetTypeId>> {
        absent()
    }
    async fn list(&self, _: &WidgetTypeFilter, _: &PageLink) -> StoreResult<PageData<WidgetTypeInfo>> {
        absent()
    }
    async fn of_bundle(&self, _: WidgetsBundleId) -> StoreResult<Vec<WidgetTypeDetails>> {
        absent()
    }
    async fn fqns_of_bundle(&self, _: WidgetsBundleId) -> StoreResult<Vec<(TenantId, String)>> {
        absent()
    }
}

#[async_trait]
impl WidgetsBundleStore for Absent {
    async fn by_alias(&self, _: TenantId, _: &str) -> StoreResult<Option<WidgetsBundle>> {
        absent()
    }
    async fn list(&self, _: &WidgetLibraryView, _: &PageLink) -> StoreResult<PageData<WidgetsBundle>> {
        absent()
    }
    async fn set_types(&self, _: WidgetsBundleId, _: &[WidgetTypeId]) -> StoreResult<()> {
        absent()
    }
    async fn of_types(&self, _: &[WidgetTypeId]) -> StoreResult<Vec<(WidgetTypeId, WidgetsBundleName)>> {
        absent()
    }
}
