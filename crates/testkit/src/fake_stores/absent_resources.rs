//! Resources, which no test asks for.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ports::{ResourceFilter, ResourceStore, StoreResult};
use fieldline_model::entity::{ResourceReference, ResourceType, TbResourceInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityType, TbResourceId, TenantId};
use uuid::Uuid;

use super::absent;
use super::absent::Absent;

#[async_trait]
impl ResourceStore for Absent {
    async fn list(&self, _: &ResourceFilter, _: &PageLink) -> StoreResult<PageData<TbResourceInfo>> {
        absent()
    }
    async fn by_key(&self, _: TenantId, _: ResourceType, _: &str) -> StoreResult<Option<TbResourceInfo>> {
        absent()
    }
    async fn keys(&self, _: TenantId, _: ResourceType, _: &str, _: u32) -> StoreResult<Vec<String>> {
        absent()
    }
    async fn by_etag(&self, _: TenantId, _: ResourceType, _: &str) -> StoreResult<Option<TbResourceInfo>> {
        absent()
    }
    async fn visible(&self, _: TenantId, _: &[TbResourceId]) -> StoreResult<Vec<TbResourceInfo>> {
        absent()
    }
    async fn public_image(&self, _: &str) -> StoreResult<Option<TbResourceInfo>> {
        absent()
    }
    async fn has_public_key(&self, _: &str) -> StoreResult<bool> {
        absent()
    }
    async fn references(
        &self,
        _: TenantId,
        _: &[EntityType],
        _: &str,
        _: u32,
    ) -> StoreResult<Vec<ResourceReference>> {
        absent()
    }
    async fn data_bytes(&self, _: TenantId) -> StoreResult<u64> {
        absent()
    }
    async fn begin_file(&self, _: TenantId, _: Uuid, _: i64) -> StoreResult<()> {
        absent()
    }
    async fn append(&self, _: Uuid, _: u32, _: Bytes) -> StoreResult<()> {
        absent()
    }
    async fn save_with_file(
        &self,
        _: TbResourceInfo,
        _: bool,
        _: Option<u64>,
    ) -> StoreResult<Option<TbResourceInfo>> {
        absent()
    }
    async fn discard_file(&self, _: Uuid) -> StoreResult<()> {
        absent()
    }
    async fn discard_files_before(&self, _: i64) -> StoreResult<u64> {
        absent()
    }
    async fn piece(&self, _: TenantId, _: Uuid, _: u32) -> StoreResult<Option<Bytes>> {
        absent()
    }
}
