//! Devices that go from one tenant to another.

use async_trait::async_trait;
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, TenantId};

use super::StoreResult;

/// A device that went to another tenant. What still comes for it where it was has to follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceTransfer {
    /// The device.
    pub device: DeviceId,
    /// The tenant that had it.
    pub from: TenantId,
    /// The tenant that has it now, which may be a third one; `None` where it was deleted.
    pub to: Option<TenantId>,
    /// When it went, milliseconds.
    pub at_ms: i64,
}

/// Moves of devices between tenants.
#[async_trait]
pub trait DeviceTransferStore: Send + Sync {
    /// Makes a device that one tenant has that of the tenant, customer and profile that it names now, and notes the move, both
    /// or neither. Its credentials stay, its calls are deleted; so is the note that it has left the tenant it goes to.
    /// A name taken there is a conflict.
    async fn transfer(&self, from: TenantId, device: Device, now_ms: i64) -> StoreResult<Device>;
    /// The first moves after one, oldest first.
    async fn list(&self, after: Option<&DeviceTransfer>, limit: u32) -> StoreResult<Vec<DeviceTransfer>>;
    /// Forgets a move, unless the device has gone the same way again since.
    async fn forget(&self, done: &DeviceTransfer) -> StoreResult<()>;
}
