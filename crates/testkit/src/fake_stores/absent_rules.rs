//! Rule chains, queues and events, which no test asks for.

use async_trait::async_trait;
use fieldline_core::ports::{EventFilter, EventStore, QueueStore, RuleChainStore, SavedBy, StoreResult};
use fieldline_model::entity::{
    EntityEvent, EventKind, Queue, RuleChain, RuleChainMetaData, RuleChainType, RuleNode,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, EntityKey, RuleChainId, RuleNodeId, TenantId};

use super::absent;
use super::absent::Absent;

#[async_trait]
impl RuleChainStore for Absent {
    async fn by_name(&self, _: TenantId, _: RuleChainType, _: &str) -> StoreResult<Option<RuleChain>> {
        absent()
    }
    async fn root(&self, _: TenantId, _: RuleChainType) -> StoreResult<Option<RuleChain>> {
        absent()
    }
    async fn set_root(&self, _: TenantId, _: RuleChainId) -> StoreResult<bool> {
        absent()
    }
    async fn list(
        &self,
        _: TenantId,
        _: Option<RuleChainType>,
        _: &PageLink,
    ) -> StoreResult<PageData<RuleChain>> {
        absent()
    }
    async fn metadata(&self, _: TenantId, _: RuleChainId) -> StoreResult<Option<RuleChainMetaData>> {
        absent()
    }
    async fn save_metadata(
        &self,
        _: TenantId,
        _: RuleChainMetaData,
        _: &SavedBy,
    ) -> StoreResult<RuleChainMetaData> {
        absent()
    }
    async fn node(&self, _: TenantId, _: RuleNodeId) -> StoreResult<Option<RuleNode>> {
        absent()
    }
    async fn nodes_of_type(&self, _: TenantId, _: &str) -> StoreResult<Vec<RuleNode>> {
        absent()
    }
}

#[async_trait]
impl QueueStore for Absent {
    async fn by_name(&self, _: TenantId, _: &str) -> StoreResult<Option<Queue>> {
        absent()
    }
    async fn all(&self, _: TenantId) -> StoreResult<Vec<Queue>> {
        absent()
    }
    async fn of_all_tenants(&self) -> StoreResult<Vec<Queue>> {
        absent()
    }
    async fn list(&self, _: TenantId, _: &PageLink) -> StoreResult<PageData<Queue>> {
        absent()
    }
}

#[async_trait]
impl EventStore for Absent {
    async fn append(&self, _: &[EntityEvent]) -> StoreResult<()> {
        absent()
    }
    async fn list(
        &self,
        _: TenantId,
        _: EntityId,
        _: &EventFilter,
        _: &PageLink,
    ) -> StoreResult<PageData<EntityEvent>> {
        absent()
    }
    async fn delete(&self, _: TenantId, _: EntityId, _: &EventFilter) -> StoreResult<u64> {
        absent()
    }
    async fn delete_subject(&self, _: EntityKey) -> StoreResult<()> {
        absent()
    }
    async fn delete_before(&self, _: EventKind, _: i64) -> StoreResult<u64> {
        absent()
    }
}
