//! Resources: files that people upload. What belongs to the null tenant is the system's, and all tenants read it.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::entity::{ResourceReference, ResourceSubType, ResourceType, TbResourceInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityType, TbResourceId, TenantId};
use uuid::Uuid;

use super::{StoreResult, TenantEntityStore};

/// Bytes of each piece of a file except the last. A multiple of three, so that pieces can be base64-encoded one after the
/// other.
pub const RESOURCE_PIECE: usize = 192 << 10;

/// The conditions of a list of resources; absent conditions match all.
#[derive(Debug, Clone, Default)]
pub struct ResourceFilter {
    /// Who looks.
    pub tenant: TenantId,
    /// Whether the system's are listed, too, but those whose type and key one of the tenant's has.
    pub with_system: bool,
    /// Their types; any if empty.
    pub kinds: Vec<ResourceType>,
    /// Their subtypes; any if empty.
    pub sub_types: Vec<ResourceSubType>,
    /// Their keys; any if empty.
    pub keys: Vec<String>,
}

/// Resources. Keys are unique in the tenant for each type, and among the system's; public keys are unique. The data of a
/// resource is a file, which is stored in numbered pieces before a resource is saved that has it.
#[async_trait]
pub trait ResourceStore: TenantEntityStore<TbResourceInfo> {
    /// A page of resources; text search in the title. Sorts by createdTime, title, name, resourceType, tenantId.
    async fn list(&self, filter: &ResourceFilter, page: &PageLink) -> StoreResult<PageData<TbResourceInfo>>;
    /// The tenant's resource of that type and key.
    async fn by_key(
        &self,
        tenant: TenantId,
        kind: ResourceType,
        key: &str,
    ) -> StoreResult<Option<TbResourceInfo>>;
    /// Keys of the tenant's resources of that type that begin with a text, at most so many.
    async fn keys(
        &self,
        tenant: TenantId,
        kind: ResourceType,
        prefix: &str,
        limit: u32,
    ) -> StoreResult<Vec<String>>;
    /// The first resource with such data that a tenant sees: its own, or one of the system's.
    async fn by_etag(
        &self,
        tenant: TenantId,
        kind: ResourceType,
        etag: &str,
    ) -> StoreResult<Option<TbResourceInfo>>;
    /// Those of the resources with these ids that a tenant sees, in no particular order.
    async fn visible(&self, tenant: TenantId, ids: &[TbResourceId]) -> StoreResult<Vec<TbResourceInfo>>;
    /// The image of any tenant that is public under this key.
    async fn public_image(&self, key: &str) -> StoreResult<Option<TbResourceInfo>>;
    /// Whether a resource of any tenant has this public key.
    async fn has_public_key(&self, key: &str) -> StoreResult<bool>;
    /// The first entities, at most so many of each type, whose documents have a text within quotes, as it is or with
    /// `/preview` behind it: those of the tenant, or with the null tenant those of all. For rule chains the text may be
    /// anywhere in a node.
    async fn references(
        &self,
        tenant: TenantId,
        kinds: &[EntityType],
        text: &str,
        limit: u32,
    ) -> StoreResult<Vec<ResourceReference>>;

    /// Bytes of the tenant's resources and of its uploads in progress, the latter rounded up to pieces.
    async fn data_bytes(&self, tenant: TenantId) -> StoreResult<u64>;
    /// Begins a file, which nobody sees.
    async fn begin_file(&self, tenant: TenantId, file: Uuid, now_ms: i64) -> StoreResult<()>;
    /// Stores the next piece of a file: all pieces except the last have [`RESOURCE_PIECE`] bytes.
    async fn append(&self, file: Uuid, number: u32, piece: Bytes) -> StoreResult<()>;
    /// Saves a resource with the files that it names, both or neither, and deletes those that it had. Returns `None` if the
    /// tenant's resources would together exceed `limit` bytes, even with concurrent saves.
    async fn save_with_file(
        &self,
        resource: TbResourceInfo,
        is_new: bool,
        limit: Option<u64>,
    ) -> StoreResult<Option<TbResourceInfo>>;
    /// Deletes a file that is of no resource.
    async fn discard_file(&self, file: Uuid) -> StoreResult<()>;
    /// Deletes all such files begun before a time, milliseconds; returns their number.
    async fn discard_files_before(&self, begun_ms: i64) -> StoreResult<u64>;
    /// A piece of a file of the tenant; `None` past its end.
    async fn piece(&self, tenant: TenantId, file: Uuid, number: u32) -> StoreResult<Option<Bytes>>;
}
