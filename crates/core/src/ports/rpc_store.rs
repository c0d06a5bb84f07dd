//! Calls to devices that outlive the program.

use async_trait::async_trait;
use fieldline_model::entity::{Rpc, RpcStatus};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DeviceId, EntityKey, RpcId, TenantId};
use serde_json::Value;

use super::StoreResult;

/// Persistent calls; those of a device go with it.
///
/// A call is *open* while its status is one of [`RpcStatus::OPEN`], save one that needs no answer and was delivered; what is not open does not change any more.
#[async_trait]
pub trait RpcStore: Send + Sync {
    /// Stores a new call; a conflict where its id is taken, invalid where there is no such device.
    async fn insert(&self, call: &Rpc) -> StoreResult<()>;

    /// Moves an open call to another status, with what was answered where that is given. Returns it as it is stored now;
    /// `None` where it is not open, or not there.
    async fn set_status(
        &self,
        tenant: TenantId,
        id: RpcId,
        status: RpcStatus,
        response: Option<&Value>,
    ) -> StoreResult<Option<Rpc>>;

    /// The call, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: RpcId) -> StoreResult<Option<Rpc>>;

    /// Deletes a call; returns whether the tenant had it.
    async fn delete(&self, tenant: TenantId, id: RpcId) -> StoreResult<bool>;

    /// A page of a device's calls, of one status or of all. Sorts by createdTime, expirationTime, status.
    async fn list(
        &self,
        tenant: TenantId,
        device: DeviceId,
        status: Option<RpcStatus>,
        page: &PageLink,
    ) -> StoreResult<PageData<Rpc>>;

    /// The oldest open calls of a device, at most `limit`.
    async fn open_of(&self, tenant: TenantId, device: DeviceId, limit: u32) -> StoreResult<Vec<Rpc>>;

    /// Open calls whose time is over, at most `limit`.
    async fn due(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<Rpc>>;

    /// Devices that have open calls, those after `after` in the order of their ids, at most `limit`.
    async fn waiting_devices(&self, after: Option<DeviceId>, limit: u32) -> StoreResult<Vec<EntityKey>>;

    /// Deletes calls of a tenant that were made before; returns how many.
    async fn delete_before(&self, tenant: TenantId, created_ms: i64) -> StoreResult<u64>;
}
