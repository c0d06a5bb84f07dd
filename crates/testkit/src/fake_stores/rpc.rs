//! Persistent calls in memory.

use async_trait::async_trait;
use fieldline_core::ports::{RpcStore, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::{Rpc, RpcStatus};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DeviceId, EntityKey, RpcId, TenantId};
use parking_lot::Mutex;
use serde_json::Value;

/// See the module.
#[derive(Default)]
pub struct FakeCalls(Mutex<Vec<Rpc>>);

impl FakeCalls {
    fn select(&self, wanted: impl Fn(&Rpc) -> bool) -> Vec<Rpc> {
        self.0
            .lock()
            .iter()
            .filter(|call| wanted(call))
            .cloned()
            .collect()
    }
}

fn is_open(call: &Rpc) -> bool {
    let has_ended = call.request.oneway && call.status == RpcStatus::Delivered;
    RpcStatus::OPEN.contains(&call.status) && !has_ended
}

#[async_trait]
impl RpcStore for FakeCalls {
    async fn insert(&self, call: &Rpc) -> StoreResult<()> {
        let mut calls = self.0.lock();
        if calls.iter().any(|known| known.id == call.id) {
            return Err(StoreError::new(StoreErrorKind::Conflict, "taken"));
        }
        calls.push(call.clone());
        Ok(())
    }
    async fn set_status(
        &self,
        tenant: TenantId,
        id: RpcId,
        status: RpcStatus,
        response: Option<&Value>,
    ) -> StoreResult<Option<Rpc>> {
        let mut calls = self.0.lock();
        let found = calls
            .iter_mut()
            .find(|call| call.tenant_id == tenant && call.id == id && is_open(call));
        Ok(found.map(|call| {
            call.status = status;
            if let Some(response) = response {
                call.response = Some(response.clone());
            }
            call.clone()
        }))
    }
    async fn get(&self, tenant: TenantId, id: RpcId) -> StoreResult<Option<Rpc>> {
        Ok(self
            .select(|call| call.tenant_id == tenant && call.id == id)
            .pop())
    }
    async fn delete(&self, tenant: TenantId, id: RpcId) -> StoreResult<bool> {
        let mut calls = self.0.lock();
        let before = calls.len();
        calls.retain(|call| !(call.tenant_id == tenant && call.id == id));
        Ok(calls.len() < before)
    }
    async fn list(
        &self,
        tenant: TenantId,
        device: DeviceId,
        status: Option<RpcStatus>,
        page: &PageLink,
    ) -> StoreResult<PageData<Rpc>> {
        let found = self.select(|call| {
            call.tenant_id == tenant
                && call.device_id == device
                && status.is_none_or(|status| call.status == status)
        });
        let total = found.len() as u64;
        Ok(PageData::new(found, total, page))
    }
    async fn open_of(&self, tenant: TenantId, device: DeviceId, limit: u32) -> StoreResult<Vec<Rpc>> {
        let mut found =
            self.select(|call| call.tenant_id == tenant && call.device_id == device && is_open(call));
        found.truncate(limit as usize);
        Ok(found)
    }
    async fn due(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<Rpc>> {
        let mut found = self.select(|call| call.expiration_time <= now_ms && is_open(call));
        found.truncate(limit as usize);
        Ok(found)
    }
    async fn waiting_devices(&self, after: Option<DeviceId>, limit: u32) -> StoreResult<Vec<EntityKey>> {
        let mut found: Vec<EntityKey> = self
            .select(is_open)
            .iter()
            .filter(|call| after.is_none_or(|after| call.device_id > after))
            .map(|call| EntityKey::device(call.tenant_id, call.device_id))
            .collect();
        found.sort_unstable();
        found.dedup();
        found.truncate(limit as usize);
        Ok(found)
    }
    async fn delete_before(&self, tenant: TenantId, created_ms: i64) -> StoreResult<u64> {
        let mut calls = self.0.lock();
        let before = calls.len();
        calls.retain(|call| !(call.tenant_id == tenant && call.created_time < created_ms));
        Ok((before - calls.len()) as u64)
    }
}
