//! Entities of any kind, many at a time, for what is kept of them in memory.

use async_trait::async_trait;
use fieldline_model::{EntityType, TenantId};
use uuid::Uuid;

use super::StoreResult;
use crate::any_entity::AnyEntity;

/// Reads whole kinds of entities.
#[async_trait]
pub trait EntityRowStore: Send + Sync {
    /// The first `limit` entities of a kind that a tenant has, in the order of creation time and id, after the given
    /// ones. The null id means what belongs to no tenant. Nothing for kinds that are not stored. There may be fewer where
    /// they are long: none means that there are no more.
    async fn page(
        &self,
        tenant: TenantId,
        kind: EntityType,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> StoreResult<Vec<AnyEntity>>;

    /// How many entities of a kind all tenants have, together with what belongs to none; 0 for kinds that are not stored.
    async fn count_everywhere(&self, kind: EntityType) -> StoreResult<u64>;

    /// Those of the entities that the tenant has.
    async fn by_ids(&self, tenant: TenantId, kind: EntityType, ids: &[Uuid]) -> StoreResult<Vec<AnyEntity>>;
}
