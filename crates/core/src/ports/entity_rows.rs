//! Bulk reads of entities of any kind, for in-memory copies.

use async_trait::async_trait;
use fieldline_model::{EntityType, TenantId};
use uuid::Uuid;

use super::StoreResult;
use crate::any_entity::AnyEntity;

/// Reads all entities of a kind.
#[async_trait]
pub trait EntityRowStore: Send + Sync {
    /// Returns the first `limit` entities of a kind that a tenant has after the given one, in the order of creation
    /// time and id. The null id stands for entities of no tenant. The page is empty for kinds that are not stored. It
    /// may be shorter than `limit` if the entities are large; an empty page means that there are no more.
    async fn page(
        &self,
        tenant: TenantId,
        kind: EntityType,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> StoreResult<Vec<AnyEntity>>;

    /// Counts the entities of a kind over all tenants, including those of no tenant; 0 for kinds that are not stored.
    async fn count_everywhere(&self, kind: EntityType) -> StoreResult<u64>;

    /// The entities with these ids that the tenant has.
    async fn by_ids(&self, tenant: TenantId, kind: EntityType, ids: &[Uuid]) -> StoreResult<Vec<AnyEntity>>;
}
