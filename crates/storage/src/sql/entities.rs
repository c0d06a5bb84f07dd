//! The stores of entities of any kind: what each does alike. Its own methods are beside its record.

use std::marker::PhantomData;

use async_trait::async_trait;
use fieldline_core::ports::{EntityStore, StoreResult, TenantEntityStore};
use fieldline_model::TenantId;

use super::database::EntityDatabase;
use super::query::RowOwner;
use super::record::{self, EntityRecord, bare};

/// A kind of entities that belong to tenants.
pub(super) trait TenantRecord: EntityRecord {
    /// The answer where others refer to one that is deleted.
    const IN_USE: &'static str;

    /// Fills in what is kept in other tables.
    fn complete(
        _database: &EntityDatabase,
        _tenant: TenantId,
        _found: &mut [Self],
    ) -> impl Future<Output = StoreResult<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Deletes one; returns whether the tenant had it. Kinds without values and events need not be noted.
    fn delete(
        database: &EntityDatabase,
        tenant: TenantId,
        id: Self::Id,
    ) -> impl Future<Output = StoreResult<bool>> + Send {
        let (owner, subject) = (RowOwner::of(tenant), record::subject(tenant, id));
        record::delete_leaving::<Self>(database, owner, subject, Self::IN_USE)
    }
}

/// The entities of a kind in a database.
pub(super) struct SqlEntities<R> {
    pub(super) database: EntityDatabase,
    kind: PhantomData<fn() -> R>,
}

impl<R> SqlEntities<R> {
    pub(super) fn new(database: &EntityDatabase) -> Self {
        Self {
            database: database.clone(),
            kind: PhantomData,
        }
    }
}

#[async_trait]
impl<R: EntityRecord> EntityStore<R> for SqlEntities<R> {
    async fn insert(&self, entity: R) -> StoreResult<R> {
        entity.insert(&self.database).await
    }

    async fn update(&self, entity: R) -> StoreResult<R> {
        entity.update(&self.database).await
    }
}

#[async_trait]
impl<R: TenantRecord> TenantEntityStore<R> for SqlEntities<R> {
    async fn get(&self, tenant: TenantId, id: R::Id) -> StoreResult<Option<R>> {
        let mut found = record::get(&self.database, RowOwner::of(tenant), bare(id)).await?;
        R::complete(&self.database, tenant, found.as_mut_slice()).await?;
        Ok(found)
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[R::Id]) -> StoreResult<Vec<R>> {
        let ids = ids.iter().map(|id| bare(*id));
        let mut found = record::by_ids(&self.database, RowOwner::of(tenant), ids).await?;
        R::complete(&self.database, tenant, &mut found).await?;
        Ok(found)
    }

    async fn delete(&self, tenant: TenantId, id: R::Id) -> StoreResult<bool> {
        R::delete(&self.database, tenant, id).await
    }

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        record::count::<R>(&self.database, RowOwner::of(tenant)).await
    }
}
