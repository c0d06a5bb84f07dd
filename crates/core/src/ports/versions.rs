//! What dashboards and rule chains were at each save.

use async_trait::async_trait;
use fieldline_model::entity::EntityVersion;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, TenantId, UserId};
use serde_json::Value;

use super::StoreResult;

/// Who saves something, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedBy {
    /// When, milliseconds.
    pub at_ms: i64,
    /// The user and their e-mail address; `None` for the platform itself.
    pub user: Option<(UserId, String)>,
}

/// What was saved of dashboards and rule chains. The stores of both keep it in the transaction that saves: a save that
/// leaves everything but the version as it was keeps nothing, and the first save of something that was saved before there
/// were versions keeps what it was, too. Of each thing the newest [`MAX_VERSIONS`](Self::MAX_VERSIONS) are kept, and no more
/// than [`MAX_VERSION_BYTES`](Self::MAX_VERSION_BYTES) of them. They go with what they are of.
#[async_trait]
pub trait VersionStore: Send + Sync {
    /// A page of the versions of a dashboard or rule chain, the newest first.
    async fn list(
        &self,
        tenant: TenantId,
        entity: EntityId,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityVersion>>;
    /// What was saved as a version: a dashboard, or a rule chain with its nodes, as JSON without its version.
    async fn get(&self, tenant: TenantId, entity: EntityId, version: i64) -> StoreResult<Option<Value>>;
}

impl dyn VersionStore {
    /// Most versions of one thing.
    pub const MAX_VERSIONS: i64 = 30;
    /// Most bytes that they take, as they are stored.
    pub const MAX_VERSION_BYTES: i64 = 16 << 20;
}
