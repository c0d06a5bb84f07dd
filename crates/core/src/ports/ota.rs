//! OTA packages, their data, and the notifications of devices about them.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::entity::{OtaKind, OtaPackageInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DeviceId, DeviceProfileId, OtaPackageId, TenantId};
use uuid::Uuid;

use super::{StoreResult, TenantEntityStore};

/// Bytes of each piece of a package's data except the last. A multiple of three, so that pieces can be base64-encoded
/// one after the other.
pub const OTA_PIECE: usize = 192 << 10;

/// The packages that a list covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtaPackageFilter {
    /// All of the tenant.
    All,
    /// Packages of a profile and a kind that have data or a URL.
    Ready(DeviceProfileId, OtaKind),
}

/// OTA packages. The data is uploaded in numbered pieces, and becomes the data of a package once complete. The pair of
/// title and version is unique; this version is not the entity version. An update leaves the data unchanged. A package
/// assigned to a device or a profile cannot be deleted; the conflict has a human-readable message.
#[async_trait]
pub trait OtaPackageStore: TenantEntityStore<OtaPackageInfo> {
    /// A page of packages; text search in the title. Sorts by createdTime, title, name, type, version, tag, url,
    /// fileName, dataSize.
    async fn list(
        &self,
        tenant: TenantId,
        filter: OtaPackageFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<OtaPackageInfo>>;
    /// Bytes of the data of the tenant's packages and of its uploads in progress, the latter rounded up to pieces.
    async fn data_bytes(&self, tenant: TenantId) -> StoreResult<u64>;
    /// Tenants that have packages, or devices that were notified of one.
    async fn tenants(&self) -> StoreResult<Vec<TenantId>>;

    /// Begins an upload, which stays invisible.
    async fn begin_upload(&self, tenant: TenantId, upload: Uuid, now_ms: i64) -> StoreResult<()>;
    /// Stores the next piece of an upload: all pieces except the last have [`OTA_PIECE`] bytes.
    async fn append(&self, upload: Uuid, number: u32, piece: Bytes) -> StoreResult<()>;
    /// Saves a package and makes an upload its data, both or neither; a conflict if it already has data. Returns `None`
    /// if the tenant's packages would together exceed `limit` bytes, even with concurrent saves.
    async fn attach(
        &self,
        package: OtaPackageInfo,
        upload: Uuid,
        limit: Option<u64>,
    ) -> StoreResult<Option<OtaPackageInfo>>;
    /// Deletes an upload that is not attached to a package.
    async fn discard(&self, upload: Uuid) -> StoreResult<()>;
    /// Deletes all such uploads begun before a time, milliseconds; returns their number.
    async fn discard_before(&self, begun_ms: i64) -> StoreResult<u64>;
    /// A piece of a package's data; `None` past its end.
    async fn piece(&self, tenant: TenantId, id: OtaPackageId, number: u32) -> StoreResult<Option<Bytes>>;
}

/// The devices that a request covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtaScope {
    /// All of the tenant.
    All,
    /// Devices of a profile.
    Profile(DeviceProfileId),
    /// These devices, at most 500.
    Devices(Vec<DeviceId>),
}

/// The package that a device should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtaTarget {
    /// The device.
    pub device: DeviceId,
    /// Its profile.
    pub profile: DeviceProfileId,
    /// The package; `None` to have none any more.
    pub package: Option<OtaPackageId>,
    /// Whether the package is assigned to the device itself, not through its profile.
    pub is_own: bool,
}

/// A pending notification of a device about its package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtaUpdate {
    /// Tenant of the device.
    pub tenant: TenantId,
    /// The device.
    pub device: DeviceId,
    /// Its package.
    pub package: OtaPackageId,
    /// The kind of the package.
    pub kind: OtaKind,
    /// Time of the assignment, milliseconds.
    pub ts: i64,
}

/// The package that each device should have, and the one it was notified of.
#[async_trait]
pub trait OtaUpdateStore: Send + Sync {
    /// The package that a device should have: its own, else that of its profile.
    async fn assigned(
        &self,
        tenant: TenantId,
        device: DeviceId,
        kind: OtaKind,
    ) -> StoreResult<Option<OtaPackageId>>;
    /// The first devices after one, by id, whose package differs from the one last noted for them.
    async fn differing(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        scope: &OtaScope,
        after: Option<DeviceId>,
        limit: u32,
    ) -> StoreResult<Vec<OtaTarget>>;
    /// Notes the packages that devices should have; those with a package now wait for a notification. Deleted devices
    /// are skipped.
    async fn note(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        targets: &[OtaTarget],
        now_ms: i64,
    ) -> StoreResult<()>;
    /// Returns the next notification, of the first tenant after `after` in the order of ids that has any, wrapping
    /// around at the end. Within a tenant, devices with a package of their own come first, then the order is by time; a
    /// notification that was put off is due once that time has passed.
    async fn next(&self, after: TenantId, now_ms: i64) -> StoreResult<Option<OtaUpdate>>;
    /// Puts a notification off until a time, milliseconds, unless another package has been noted for the device since.
    async fn put_off(&self, update: &OtaUpdate, until_ms: i64) -> StoreResult<()>;
    /// The earliest time until which a pending notification was put off, milliseconds.
    async fn put_off_until(&self) -> StoreResult<Option<i64>>;
    /// Marks a device as notified of its package.
    async fn mark_notified(&self, update: &OtaUpdate) -> StoreResult<()>;
    /// Counts the devices of a profile that have no package of their own.
    async fn count_following(
        &self,
        tenant: TenantId,
        profile: DeviceProfileId,
        kind: OtaKind,
    ) -> StoreResult<u64>;
}
