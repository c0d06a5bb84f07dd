//! No calculated fields.

use async_trait::async_trait;
use fieldline_core::ports::{
    CalculatedFieldFilter, CalculatedFieldStore, EntityStore, StoreResult, TenantEntityStore,
};
use fieldline_model::entity::{CalculatedField, CalculatedFieldInfo, CalculatedFieldType};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CalculatedFieldId, EntityId, TenantId};

use super::absent;

/// A store without fields.
pub(super) struct NoFields;

#[async_trait]
impl EntityStore<CalculatedField> for NoFields {
    async fn insert(&self, _: CalculatedField) -> StoreResult<CalculatedField> {
        absent()
    }
    async fn update(&self, _: CalculatedField) -> StoreResult<CalculatedField> {
        absent()
    }
}

#[async_trait]
impl TenantEntityStore<CalculatedField> for NoFields {
    async fn get(&self, _: TenantId, _: CalculatedFieldId) -> StoreResult<Option<CalculatedField>> {
        Ok(None)
    }
    async fn by_ids(&self, _: TenantId, _: &[CalculatedFieldId]) -> StoreResult<Vec<CalculatedField>> {
        Ok(Vec::new())
    }
    async fn delete(&self, _: TenantId, _: CalculatedFieldId) -> StoreResult<bool> {
        Ok(false)
    }
    async fn count(&self, _: TenantId) -> StoreResult<u64> {
        Ok(0)
    }
}

#[async_trait]
impl CalculatedFieldStore for NoFields {
    async fn list(
        &self,
        _: TenantId,
        _: &CalculatedFieldFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<CalculatedFieldInfo>> {
        Ok(PageData::new(Vec::new(), 0, page))
    }
    async fn names(
        &self,
        _: TenantId,
        _: CalculatedFieldType,
        page: &PageLink,
    ) -> StoreResult<PageData<String>> {
        Ok(PageData::new(Vec::new(), 0, page))
    }
    async fn of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<Vec<CalculatedField>> {
        Ok(Vec::new())
    }
    async fn count_of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<u64> {
        Ok(0)
    }
    async fn is_referenced(&self, _: TenantId, _: EntityId) -> StoreResult<bool> {
        Ok(false)
    }
    async fn delete_of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<Vec<CalculatedFieldId>> {
        Ok(Vec::new())
    }
}
