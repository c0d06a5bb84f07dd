//! OTA packages, their data, and which devices have been told of which.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::entity::{OtaKind, OtaPackageInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DeviceId, DeviceProfileId, OtaPackageId, TenantId};
use uuid::Uuid;

use super::{StoreResult, TenantEntityStore};

/// Bytes of each piece of a package's data but the last one. A multiple of three, so that pieces can be written as base64
/// one after the other.
pub const OTA_PIECE: usize = 192 << 10;

/// Which packages a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtaPackageFilter {
    /// All of the tenant.
    All,
    /// Those of a profile and a kind that have data or a URL.
    Ready(DeviceProfileId, OtaKind),
}

/// OTA packages. Their data comes as an upload of numbered pieces, which becomes the data of a package once it is whole. Titles
/// are unique together with versions, which have nothing to do with those of other entities. An update leaves the data as it is.
/// A package that a device or a profile has cannot be deleted; the conflict is in words for people.
#[async_trait]
pub trait OtaPackageStore: TenantEntityStore<OtaPackageInfo> {
    /// A page of packages; text search in the title. Sorts by createdTime, title, name, type, version, tag, url, fileName,
    /// dataSize.
    async fn list(
        &self,
        tenant: TenantId,
        filter: OtaPackageFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<OtaPackageInfo>>;
    /// Bytes of all data of the tenant's packages, and of uploads under way, these rounded up to pieces.
    async fn data_bytes(&self, tenant: TenantId) -> StoreResult<u64>;
    /// Tenants that have packages, or devices that were told of one.
    async fn tenants(&self) -> StoreResult<Vec<TenantId>>;

    /// Begins an upload, which nobody sees.
    async fn begin_upload(&self, tenant: TenantId, upload: Uuid, now_ms: i64) -> StoreResult<()>;
    /// Stores the next piece of an upload: all but the last one have [`OTA_PIECE`] bytes.
    async fn append(&self, upload: Uuid, number: u32, piece: Bytes) -> StoreResult<()>;
    /// Saves a package and makes an upload its data, both or neither; a conflict where it has data already. `None` where the
    /// tenant's packages would have more bytes together than `limit`, however many are saved at a time.
    async fn attach(
        &self,
        package: OtaPackageInfo,
        upload: Uuid,
        limit: Option<u64>,
    ) -> StoreResult<Option<OtaPackageInfo>>;
    /// Deletes an upload that is no package's data.
    async fn discard(&self, upload: Uuid) -> StoreResult<()>;
    /// Deletes all such uploads that were begun before a time, milliseconds; returns how many.
    async fn discard_before(&self, begun_ms: i64) -> StoreResult<u64>;
    /// A piece of a package's data, if there is so much of it.
    async fn piece(&self, tenant: TenantId, id: OtaPackageId, number: u32) -> StoreResult<Option<Bytes>>;
}

/// Which devices somebody asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtaScope {
    /// All of the tenant.
    All,
    /// Those of a profile.
    Profile(DeviceProfileId),
    /// These, at most 500.
    Devices(Vec<DeviceId>),
}

/// What a device shall have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtaTarget {
    /// The device.
    pub device: DeviceId,
    /// Its profile.
    pub profile: DeviceProfileId,
    /// The package; `None` for none any more.
    pub package: Option<OtaPackageId>,
    /// Whether it is assigned to the device itself, not to its profile.
    pub is_own: bool,
}

/// A device that waits for being told of its package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtaUpdate {
    /// Tenant of the device.
    pub tenant: TenantId,
    /// The device.
    pub device: DeviceId,
    /// Its package.
    pub package: OtaPackageId,
    /// What the package is.
    pub kind: OtaKind,
    /// When it was assigned, milliseconds.
    pub ts: i64,
}

/// Which package each device shall have, and which it has been told of.
#[async_trait]
pub trait OtaUpdateStore: Send + Sync {
    /// The package that a device shall have: its own, or else that of its profile.
    async fn assigned(
        &self,
        tenant: TenantId,
        device: DeviceId,
        kind: OtaKind,
    ) -> StoreResult<Option<OtaPackageId>>;
    /// The first devices after one, by id, whose package is another than the one that was noted for them last.
    async fn differing(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        scope: &OtaScope,
        after: Option<DeviceId>,
        limit: u32,
    ) -> StoreResult<Vec<OtaTarget>>;
    /// Notes what devices shall have: those with a package wait for being told of it from now on. Devices that are gone
    /// are passed over.
    async fn note(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        targets: &[OtaTarget],
        now_ms: i64,
    ) -> StoreResult<()>;
    /// The device that is to be told next, of the first tenant after one in the order of ids that has any; behind the last
    /// tenant comes the first. Of a tenant, those with a package of their own come first, then by time; those that were put
    /// off come once it is later than that.
    async fn next(&self, after: TenantId, now_ms: i64) -> StoreResult<Option<OtaUpdate>>;
    /// Puts a device off until a time, milliseconds, unless another package has been noted for it since.
    async fn put_off(&self, update: &OtaUpdate, until_ms: i64) -> StoreResult<()>;
    /// The earliest time until which somebody who waits was put off, milliseconds.
    async fn put_off_until(&self) -> StoreResult<Option<i64>>;
    /// A device has been told of its package.
    async fn mark_notified(&self, update: &OtaUpdate) -> StoreResult<()>;
    /// How many devices of a profile have no package of their own.
    async fn count_following(
        &self,
        tenant: TenantId,
        profile: DeviceProfileId,
        kind: OtaKind,
    ) -> StoreResult<u64>;
}
