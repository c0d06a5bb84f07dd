//! Persistent RPC calls to devices.

use async_trait::async_trait;
use fieldline_model::entity::{Rpc, RpcStatus};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DeviceId, EntityKey, RpcId, TenantId};
use serde_json::Value;

use super::StoreResult;

/// Persistent calls, deleted with their device.
///
/// A call is *open* while its status is one of [`RpcStatus::OPEN`], except a delivered one-way call. A call that is not
/// open no longer changes.
#[async_trait]
pub trait RpcStore: Send + Sync {
    /// Stores a new call; a conflict if its id is taken, invalid if there is no such device.
    async fn insert(&self, call: &Rpc) -> StoreResult<()>;

    /// Moves an open call to another status, and stores the response if one is given. Returns the call as stored now;
    /// `None` if it does not exist or is not open.
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

    /// Open calls that have expired, at most `limit`.
    async fn due(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<Rpc>>;

    /// Devices with open calls after `after`, in the order of their ids, at most `limit`.
    async fn waiting_devices(&self, after: Option<DeviceId>, limit: u32) -> StoreResult<Vec<EntityKey>>;

    /// Deletes calls of a tenant made before a time; returns their number.
    async fn delete_before(&self, tenant: TenantId, created_ms: i64) -> StoreResult<u64>;
}
