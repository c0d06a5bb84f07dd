//! Many devices or assets at once.

use async_trait::async_trait;
use fieldline_model::TenantId;
use fieldline_model::entity::{Asset, Device, DeviceCredentials};

use super::StoreResult;

/// A device among many that are stored at once. It holds secrets, hence no `Debug`.
#[derive(Clone, PartialEq)]
pub struct DeviceImportRow {
    /// The device; the `id` must be set.
    pub device: Device,
    /// Whether it is new.
    pub create: bool,
    /// Its credentials from now on; those it has stay where absent.
    pub credentials: Option<DeviceCredentials>,
}

/// An asset among many that are stored at once.
#[derive(Debug, Clone, PartialEq)]
pub struct AssetImportRow {
    /// The asset; the `id` must be set.
    pub asset: Asset,
    /// Whether it is new.
    pub create: bool,
}

/// Many devices or assets at once. Where they are stored, it is in as few transactions as possible, with an answer for
/// each, in their order; one that cannot be stored changes nothing about the others. That fails as a whole only where the
/// store itself does.
#[async_trait]
pub trait ImportStore: Send + Sync {
    /// Those of the devices of these names that the tenant has, in no particular order.
    async fn devices_named(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<Device>>;
    /// Those of the assets of these names that the tenant has, in no particular order.
    async fn assets_named(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<Asset>>;
    /// Creates and updates devices; see the trait.
    async fn devices(&self, rows: Vec<DeviceImportRow>) -> StoreResult<Vec<StoreResult<Device>>>;
    /// Creates and updates assets; see the trait.
    async fn assets(&self, rows: Vec<AssetImportRow>) -> StoreResult<Vec<StoreResult<Asset>>>;
}
