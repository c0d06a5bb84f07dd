//! OTA packages as far as rollouts look at them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ports::{
    EntityStore, OtaPackageFilter, OtaPackageStore, OtaScope, OtaTarget, OtaUpdate, OtaUpdateStore,
    StoreResult, TenantEntityStore,
};
use fieldline_model::entity::{OtaKind, OtaPackageInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DeviceId, DeviceProfileId, OtaPackageId, TenantId};
use parking_lot::Mutex;
use uuid::Uuid;

use super::absent;
use super::absent::Absent;

/// Packages of one tenant.
#[derive(Default)]
pub struct FakePackages {
    tenant: TenantId,
    packages: Mutex<BTreeMap<OtaPackageId, OtaPackageInfo>>,
}

impl FakePackages {
    /// No packages of a tenant yet.
    pub fn new(tenant: TenantId) -> Arc<Self> {
        Arc::new(Self {
            tenant,
            ..Self::default()
        })
    }

    /// Adds a package.
    pub fn add(&self, package: OtaPackageInfo) -> OtaPackageId {
        let id = OtaPackageId::new();
        let package = OtaPackageInfo { id, ..package };
        self.packages.lock().insert(id, package);
        id
    }
}

#[async_trait]
impl EntityStore<OtaPackageInfo> for FakePackages {
    async fn insert(&self, _: OtaPackageInfo) -> StoreResult<OtaPackageInfo> {
        absent()
    }
    async fn update(&self, _: OtaPackageInfo) -> StoreResult<OtaPackageInfo> {
        absent()
    }
}

#[async_trait]
impl TenantEntityStore<OtaPackageInfo> for FakePackages {
    async fn get(&self, _: TenantId, id: OtaPackageId) -> StoreResult<Option<OtaPackageInfo>> {
        Ok(self.packages.lock().get(&id).cloned())
    }
    async fn by_ids(&self, _: TenantId, _: &[OtaPackageId]) -> StoreResult<Vec<OtaPackageInfo>> {
        absent()
    }
    async fn delete(&self, _: TenantId, _: OtaPackageId) -> StoreResult<bool> {
        absent()
    }
    async fn count(&self, _: TenantId) -> StoreResult<u64> {
        absent()
    }
}

#[async_trait]
impl OtaPackageStore for FakePackages {
    async fn list(
        &self,
        _: TenantId,
        _: OtaPackageFilter,
        _: &PageLink,
    ) -> StoreResult<PageData<OtaPackageInfo>> {
        absent()
    }
    async fn data_bytes(&self, _: TenantId) -> StoreResult<u64> {
        absent()
    }
    async fn tenants(&self) -> StoreResult<Vec<TenantId>> {
        Ok(vec![self.tenant])
    }
    async fn begin_upload(&self, _: TenantId, _: Uuid, _: i64) -> StoreResult<()> {
        absent()
    }
    async fn append(&self, _: Uuid, _: u32, _: Bytes) -> StoreResult<()> {
        absent()
    }
    async fn attach(
        &self,
        _: OtaPackageInfo,
        _: Uuid,
        _: Option<u64>,
    ) -> StoreResult<Option<OtaPackageInfo>> {
        absent()
    }
    async fn discard(&self, _: Uuid) -> StoreResult<()> {
        absent()
    }
    async fn discard_before(&self, _: i64) -> StoreResult<u64> {
        absent()
    }
    async fn piece(&self, _: TenantId, _: OtaPackageId, _: u32) -> StoreResult<Option<Bytes>> {
        absent()
    }
}

#[async_trait]
impl OtaUpdateStore for Absent {
    async fn assigned(&self, _: TenantId, _: DeviceId, _: OtaKind) -> StoreResult<Option<OtaPackageId>> {
        absent()
    }
    async fn differing(
        &self,
        _: TenantId,
        _: OtaKind,
        _: &OtaScope,
        _: Option<DeviceId>,
        _: u32,
    ) -> StoreResult<Vec<OtaTarget>> {
        absent()
    }
    async fn note(&self, _: TenantId, _: OtaKind, _: &[OtaTarget], _: i64) -> StoreResult<()> {
        absent()
    }
    async fn next(&self, _: TenantId, _: i64) -> StoreResult<Option<OtaUpdate>> {
        absent()
    }
    async fn put_off(&self, _: &OtaUpdate, _: i64) -> StoreResult<()> {
        absent()
    }
    async fn put_off_until(&self) -> StoreResult<Option<i64>> {
        absent()
    }
    async fn mark_notified(&self, _: &OtaUpdate) -> StoreResult<()> {
        absent()
    }
    async fn count_following(&self, _: TenantId, _: DeviceProfileId, _: OtaKind) -> StoreResult<u64> {
        absent()
    }
}
