//! Transfers of devices from one tenant to another.

use async_trait::async_trait;
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, TenantId};

use super::StoreResult;

/// A device that moved to another tenant. Data that still arrives under the old tenant must follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceTransfer {
    /// The device.
    pub device: DeviceId,
    /// The former tenant.
    pub from: TenantId,
    /// The present tenant, which may be a third one; `None` if the device was deleted.
    pub to: Option<TenantId>,
    /// Time of the move, milliseconds.
    pub at_ms: i64,
}

/// Transfers of devices between tenants.
#[async_trait]
pub trait DeviceTransferStore: Send + Sync {
    /// Moves a device to the tenant, customer and profile that `device` names, and notes the move, both or neither. Its
    /// credentials stay; its RPC calls are deleted, and so is a note that it once left the new tenant. A name that is
    /// taken there is a conflict.
    async fn transfer(&self, from: TenantId, device: Device, now_ms: i64) -> StoreResult<Device>;
    /// Returns the first `limit` moves after the given one, oldest first.
    async fn list(&self, after: Option<&DeviceTransfer>, limit: u32) -> StoreResult<Vec<DeviceTransfer>>;
    /// Deletes the note of a move, unless the device has made the same move again since.
    async fn forget(&self, done: &DeviceTransfer) -> StoreResult<()>;
}
