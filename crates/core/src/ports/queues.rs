//! Queues of the rule engine.

use async_trait::async_trait;
use fieldline_model::TenantId;
use fieldline_model::entity::Queue;
use fieldline_model::page::{PageData, PageLink};

use super::{StoreResult, TenantEntityStore};

/// Queues. Queues of the null tenant are shared by all tenants without queues of their own. Names and topics are unique
/// in the tenant; there are no versions.
#[async_trait]
pub trait QueueStore: TenantEntityStore<Queue> {
    /// The queue of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<Queue>>;
    /// All queues of the tenant, by name.
    async fn all(&self, tenant: TenantId) -> StoreResult<Vec<Queue>>;
    /// All queues of all tenants, by tenant and name, for the engine that consumes them.
    async fn of_all_tenants(&self) -> StoreResult<Vec<Queue>>;
    /// A page of queues; text search in the name. Sorts by createdTime, name, topic, partitions.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Queue>>;
}
