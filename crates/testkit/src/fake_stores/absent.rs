//! Stores that no unit test asks for: every call is refused.

use async_trait::async_trait;
use fieldline_core::ports::{
    AlarmChange, AlarmDraft, AlarmEndUpdate, AlarmQuery, AlarmStore, AlarmUpdate, AssignableEntity,
    AssignableStore, CleanupPass, DeviceTransfer, DeviceTransferStore, EntityStore, EntityViewStore,
    HousekeeperStore, ImportRow, ImportValueStore, ProfileStore, RelationEnds, RelationKey, RelationStore,
    SetAsideOutcome, SetAsideQuota, SetAsideRawRecord, SetAsideStore, StoreResult, TenantEntityStore,
};
use fieldline_model::entity::{
    Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmInfo, AlarmSeverity, AssetProfile, Device,
    EntityRelation, EntityRelationInfo, RelationTypeGroup, RelationsQuery, SetAsideInfo, StoredEntity,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AlarmId, AssetProfileId, EntityId, EntityKey, SetAsideId, TenantId, UserId};
use serde_json::Value;

use super::absent;

/// See the module.
pub(super) struct Absent;

#[async_trait]
impl<E: StoredEntity> EntityStore<E> for Absent {
    async fn insert(&self, _: E) -> StoreResult<E> {
        absent()
    }
    async fn update(&self, _: E) -> StoreResult<E> {
        absent()
    }
}

#[async_trait]
impl<E: StoredEntity> TenantEntityStore<E> for Absent {
    async fn get(&self, _: TenantId, _: E::Id) -> StoreResult<Option<E>> {
        absent()
    }
    async fn by_ids(&self, _: TenantId, _: &[E::Id]) -> StoreResult<Vec<E>> {
        absent()
    }
    async fn delete(&self, _: TenantId, _: E::Id) -> StoreResult<bool> {
        absent()
    }
    async fn count(&self, _: TenantId) -> StoreResult<u64> {
        absent()
    }
}

#[async_trait]
impl<E: AssignableEntity> AssignableStore<E> for Absent {
    async fn by_names(&self, _: TenantId, _: &[&str]) -> StoreResult<Vec<E>> {
        absent()
    }
    async fn import(
        &self,
        _: Vec<ImportRow<E>>,
        _: &dyn ImportValueStore,
    ) -> StoreResult<Vec<StoreResult<E>>> {
        absent()
    }
    async fn info(&self, _: TenantId, _: E::Id) -> StoreResult<Option<E::AssignableInfo>> {
        absent()
    }
    async fn by_name(&self, _: TenantId, _: &str) -> StoreResult<Option<E>> {
        absent()
    }
    async fn list(
        &self,
        _: TenantId,
        _: &E::AssignableFilter,
        _: &PageLink,
    ) -> StoreResult<PageData<E::AssignableInfo>> {
        absent()
    }
}

#[async_trait]
impl EntityViewStore for Absent {
    async fn types(&self, _: TenantId) -> StoreResult<Vec<String>> {
        absent()
    }
}

#[async_trait]
impl ProfileStore<AssetProfile> for Absent {
    async fn by_name(&self, _: TenantId, _: &str) -> StoreResult<Option<AssetProfile>> {
        absent()
    }
    async fn default_profile(&self, _: TenantId) -> StoreResult<Option<AssetProfile>> {
        absent()
    }
    async fn set_default(&self, _: TenantId, _: AssetProfileId) -> StoreResult<bool> {
        absent()
    }
    async fn names(&self, _: TenantId, _: bool) -> StoreResult<Vec<(AssetProfileId, String)>> {
        absent()
    }
    async fn list(&self, _: TenantId, _: &PageLink) -> StoreResult<PageData<AssetProfile>> {
        absent()
    }
}

#[async_trait]
impl RelationStore for Absent {
    async fn save(&self, _: TenantId, _: EntityRelation) -> StoreResult<EntityRelation> {
        absent()
    }
    async fn get(&self, _: TenantId, _: &RelationKey) -> StoreResult<Option<EntityRelation>> {
        absent()
    }
    async fn delete(&self, _: TenantId, _: &RelationKey) -> StoreResult<Option<EntityRelation>> {
        absent()
    }
    async fn find(&self, _: TenantId, _: &RelationEnds) -> StoreResult<Vec<EntityRelation>> {
        absent()
    }
    async fn with_names(&self, _: TenantId, _: Vec<EntityRelation>) -> StoreResult<Vec<EntityRelationInfo>> {
        absent()
    }
    async fn delete_of(&self, _: TenantId, _: EntityId, _: Option<RelationTypeGroup>) -> StoreResult<u64> {
        absent()
    }
    async fn search(&self, _: TenantId, _: &RelationsQuery) -> StoreResult<Vec<EntityRelation>> {
        absent()
    }
}

#[async_trait]
impl AlarmStore for Absent {
    async fn create_or_update_active(&self, _: AlarmDraft) -> AlarmChange {
        absent()
    }
    async fn update(&self, _: AlarmUpdate) -> AlarmChange {
        absent()
    }
    async fn acknowledge(&self, _: TenantId, _: AlarmId, _: i64) -> AlarmChange {
        absent()
    }
    async fn clear(&self, _: TenantId, _: AlarmId, _: i64, _: Option<&Value>) -> AlarmChange {
        absent()
    }
    async fn assign(&self, _: TenantId, _: AlarmId, _: Option<UserId>, _: i64) -> AlarmChange {
        absent()
    }
    async fn extend(&self, _: &[AlarmEndUpdate]) -> StoreResult<()> {
        absent()
    }
    async fn propagate(&self, _: TenantId, _: AlarmId, _: &[EntityId]) -> StoreResult<()> {
        absent()
    }
    async fn propagated(&self, _: TenantId, _: &[AlarmId]) -> StoreResult<Vec<(AlarmId, EntityId)>> {
        absent()
    }
    async fn delete(&self, _: TenantId, _: AlarmId) -> StoreResult<Option<Alarm>> {
        absent()
    }
    async fn delete_of(&self, _: TenantId, _: EntityId) -> StoreResult<u64> {
        absent()
    }
    async fn delete_before(&self, _: TenantId, _: i64, _: u32) -> StoreResult<Vec<Alarm>> {
        absent()
    }
    async fn get(&self, _: TenantId, _: AlarmId) -> StoreResult<Option<Alarm>> {
        absent()
    }
    async fn info(&self, _: TenantId, _: AlarmId) -> StoreResult<Option<AlarmInfo>> {
        absent()
    }
    async fn latest_active(&self, _: TenantId, _: EntityId, _: &str) -> StoreResult<Option<Alarm>> {
        absent()
    }
    async fn active_of(&self, _: TenantId, _: EntityId) -> StoreResult<Vec<Alarm>> {
        absent()
    }
    async fn list(&self, _: TenantId, _: &AlarmQuery, _: &PageLink) -> StoreResult<PageData<AlarmInfo>> {
        absent()
    }
    async fn count(&self, _: TenantId, _: &AlarmQuery) -> StoreResult<u64> {
        absent()
    }
    async fn highest_severity(&self, _: TenantId, _: &AlarmQuery) -> StoreResult<Option<AlarmSeverity>> {
        absent()
    }
    async fn types(&self, _: TenantId, _: &PageLink) -> StoreResult<PageData<String>> {
        absent()
    }
    async fn assigned_to(&self, _: TenantId, _: UserId, _: u32) -> StoreResult<Vec<AlarmId>> {
        absent()
    }
    async fn save_comment(&self, _: TenantId, _: AlarmComment) -> StoreResult<AlarmComment> {
        absent()
    }
    async fn comment(&self, _: TenantId, _: AlarmId, _: AlarmCommentId) -> StoreResult<Option<AlarmComment>> {
        absent()
    }
    async fn comments(
        &self,
        _: TenantId,
        _: AlarmId,
        _: &PageLink,
    ) -> StoreResult<PageData<AlarmCommentInfo>> {
        absent()
    }
}

#[async_trait]
impl DeviceTransferStore for Absent {
    async fn transfer(&self, _: TenantId, _: Device, _: i64) -> StoreResult<Device> {
        absent()
    }
    async fn list(&self, _: Option<&DeviceTransfer>, _: u32) -> StoreResult<Vec<DeviceTransfer>> {
        absent()
    }
    async fn forget(&self, _: &DeviceTransfer) -> StoreResult<()> {
        absent()
    }
}

#[async_trait]
impl HousekeeperStore for Absent {
    async fn note(&self, _: &[EntityKey]) -> StoreResult<()> {
        absent()
    }
    async fn due(&self, _: CleanupPass, _: i64, _: u32) -> StoreResult<Vec<EntityKey>> {
        absent()
    }
    async fn put_off(&self, _: &[EntityKey], _: CleanupPass, _: i64) -> StoreResult<()> {
        absent()
    }
    async fn forget(&self, _: &[EntityKey]) -> StoreResult<()> {
        absent()
    }
    async fn waiting(&self) -> StoreResult<u64> {
        absent()
    }
}

#[async_trait]
impl SetAsideStore for Absent {
    async fn keep(&self, _: &SetAsideRawRecord, _: SetAsideQuota) -> StoreResult<SetAsideOutcome> {
        absent()
    }
    async fn get(&self, _: Option<TenantId>, _: SetAsideId) -> StoreResult<Option<SetAsideRawRecord>> {
        absent()
    }
    async fn list(&self, _: Option<TenantId>, _: &PageLink) -> StoreResult<PageData<SetAsideInfo>> {
        absent()
    }
    async fn delete(&self, _: Option<TenantId>, _: SetAsideId) -> StoreResult<bool> {
        absent()
    }
}
