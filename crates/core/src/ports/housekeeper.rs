//! What deleted entities leave behind: their values and events, which are taken away afterwards.

use async_trait::async_trait;
use fieldline_model::EntityKey;

use super::StoreResult;

/// Which time it is that a leftover is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanupPass {
    /// As soon as its entity is gone.
    First,
    /// When what was still on its way at that time has come in.
    Last,
}

/// Notes of entities that are gone and may have left something; a tenant stands for all that belonged to it.
///
/// Whoever deletes an entity with values or events notes it here in the same transaction, see [`super::TenantStore::delete`].
#[async_trait]
pub trait HousekeeperStore: Send + Sync {
    /// Notes these for the first pass.
    async fn note(&self, subjects: &[EntityKey]) -> StoreResult<()>;
    /// Some of those whose time for a pass has come, the earliest first.
    async fn due(&self, pass: CleanupPass, now_ms: i64, limit: u32) -> StoreResult<Vec<EntityKey>>;
    /// Has these wait for a pass until a time, milliseconds.
    async fn put_off(&self, subjects: &[EntityKey], pass: CleanupPass, until_ms: i64) -> StoreResult<()>;
    /// Forgets these.
    async fn forget(&self, subjects: &[EntityKey]) -> StoreResult<()>;
    /// How many wait for their first pass.
    async fn waiting(&self) -> StoreResult<u64>;
}
