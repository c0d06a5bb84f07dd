//! Entities of any kind, many at a time.

use async_trait::async_trait;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{EntityRowStore, StoreResult};
use fieldline_model::{EntityType, TenantId};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::kinds::{EntitySelection, kind_table};

/// Entities of any kind in a database.
pub(super) struct SqlEntityRows(pub(super) EntityDatabase);

#[async_trait]
impl EntityRowStore for SqlEntityRows {
    async fn page(
        &self,
        tenant: TenantId,
        kind: EntityType,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> StoreResult<Vec<AnyEntity>> {
        self.read(tenant, kind, EntitySelection::Page(after, limit)).await
    }

    async fn count_everywhere(&self, kind: EntityType) -> StoreResult<u64> {
        match kind_table(kind).and_then(|table| table.count) {
            Some(count) => count(&self.0).await,
            None => Ok(0),
        }
    }

    async fn by_ids(&self, tenant: TenantId, kind: EntityType, ids: &[Uuid]) -> StoreResult<Vec<AnyEntity>> {
        self.read(tenant, kind, EntitySelection::Ids(ids)).await
    }
}

impl SqlEntityRows {
    async fn read(
        &self,
        tenant: TenantId,
        kind: EntityType,
        which: EntitySelection<'_>,
    ) -> StoreResult<Vec<AnyEntity>> {
        match kind_table(kind).and_then(|table| table.rows) {
            Some(rows) => rows(&self.0, tenant, which).await,
            None => Ok(Vec::new()),
        }
    }
}
