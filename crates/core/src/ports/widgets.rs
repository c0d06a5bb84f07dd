//! The widget library. What belongs to the null tenant is the system's, and all tenants read it.

use async_trait::async_trait;
use fieldline_model::entity::{WidgetTypeDetails, WidgetTypeInfo, WidgetsBundle, WidgetsBundleName};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{TenantId, WidgetTypeId, WidgetsBundleId};

use super::{StoreResult, TenantEntityStore};

/// Which part of the library a list shows.
#[derive(Debug, Clone, Default)]
pub struct WidgetLibraryView {
    /// Who looks: a tenant sees its own and the system's, the null tenant the system's alone.
    pub tenant: TenantId,
    /// Only the tenant's own.
    pub own_only: bool,
    /// Whether a text is looked for in descriptions and tags, too.
    pub full_search: bool,
    /// Whether those of SCADA drawings come first.
    pub scada_first: bool,
}

/// The conditions of a list of widget types; absent conditions match all.
#[derive(Debug, Clone, Default)]
pub struct WidgetTypeFilter {
    /// Which part of the library.
    pub view: WidgetLibraryView,
    /// Whether they are deprecated.
    pub deprecated: Option<bool>,
    /// What their data is, such as `latest`; any if empty.
    pub data_types: Vec<String>,
    /// The bundle that has them.
    pub bundle: Option<WidgetsBundleId>,
}

/// Widget types. Fully qualified names are unique in the tenant, and among the system's.
#[async_trait]
pub trait WidgetTypeStore: TenantEntityStore<WidgetTypeDetails> {
    /// The type without what it looks like.
    async fn info(&self, tenant: TenantId, id: WidgetTypeId) -> StoreResult<Option<WidgetTypeInfo>>;
    /// The tenant's type of that fully qualified name, without a prefix for its scope.
    async fn by_fqn(&self, tenant: TenantId, fqn: &str) -> StoreResult<Option<WidgetTypeDetails>>;
    /// The id of the tenant's type of that name.
    async fn id_of(&self, tenant: TenantId, fqn: &str) -> StoreResult<Option<WidgetTypeId>>;
    /// The ids of these types that a tenant sees: its own and the system's.
    async fn visible(&self, tenant: TenantId, ids: &[WidgetTypeId]) -> StoreResult<Vec<WidgetTypeId>>;
    /// A page with the bundles of each; text search in the name. Sorts by createdTime, name, deprecated, tenantId.
    async fn list(&self, filter: &WidgetTypeFilter, page: &PageLink)
    -> StoreResult<PageData<WidgetTypeInfo>>;
    /// The types of a bundle, in its order; invalid if they are too large to be read at once.
    async fn of_bundle(&self, bundle: WidgetsBundleId) -> StoreResult<Vec<WidgetTypeDetails>>;
    /// The owner and fully qualified name of the types of a bundle, in its order.
    async fn fqns_of_bundle(&self, bundle: WidgetsBundleId) -> StoreResult<Vec<(TenantId, String)>>;
}

/// Bundles of widget types. Aliases are unique in the tenant, and among the system's.
#[async_trait]
pub trait WidgetsBundleStore: TenantEntityStore<WidgetsBundle> {
    /// The tenant's bundle of that alias.
    async fn by_alias(&self, tenant: TenantId, alias: &str) -> StoreResult<Option<WidgetsBundle>>;
    /// A page of bundles; text search in the title. Sorts by createdTime, title, tenantId.
    async fn list(&self, view: &WidgetLibraryView, page: &PageLink) -> StoreResult<PageData<WidgetsBundle>>;
    /// Replaces the types of a bundle by these, in this order; invalid if one of them is not there.
    async fn set_types(&self, bundle: WidgetsBundleId, types: &[WidgetTypeId]) -> StoreResult<()>;
    /// The bundles that have each of these types, by title.
    async fn of_types(&self, types: &[WidgetTypeId]) -> StoreResult<Vec<(WidgetTypeId, WidgetsBundleName)>>;
}
