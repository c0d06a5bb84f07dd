//! Queues of the rule engine.

use async_trait::async_trait;
use fieldline_model::entity::Queue;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{QueueId, TenantId};

use super::StoreResult;

/// Queues. Those of the null tenant are shared by all tenants that have none of their own.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// See [`TenantStore::save`](super::TenantStore::save), without versions; a name or topic taken in the tenant is a
    /// conflict.
    async fn save(&self, queue: Queue, create: bool) -> StoreResult<Queue>;
    /// The queue, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: QueueId) -> StoreResult<Option<Queue>>;
    /// The queue of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<Queue>>;
    /// All queues of the tenant, by name.
    async fn all(&self, tenant: TenantId) -> StoreResult<Vec<Queue>>;
    /// All queues of all tenants, by tenant and name: for the engine that consumes them.
    async fn of_all_tenants(&self) -> StoreResult<Vec<Queue>>;
    /// A page of queues; text search in the name. Sorts by createdTime, name, topic, partitions.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Queue>>;
    /// Deletes a queue; returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: QueueId) -> StoreResult<bool>;
}
