//! Leftovers of deleted entities: their values and events, which are removed later.

use async_trait::async_trait;
use fieldline_model::EntityKey;

use super::StoreResult;

/// The passes in which the data of a deleted entity is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanupPass {
    /// Right after the deletion.
    First,
    /// After all data in transit at the deletion has arrived.
    Last,
}

/// Notes of deleted entities that may have left data; a tenant stands for all of its entities.
///
/// The deletion of an entity with values or events adds the note in the same transaction, see
/// [`super::TenantStore::delete`].
#[async_trait]
pub trait HousekeeperStore: Send + Sync {
    /// Notes subjects for the first pass.
    async fn note(&self, subjects: &[EntityKey]) -> StoreResult<()>;
    /// Returns some subjects that are due for a pass, the earliest first.
    async fn due(&self, pass: CleanupPass, now_ms: i64, limit: u32) -> StoreResult<Vec<EntityKey>>;
    /// Schedules a pass over subjects for a later time, milliseconds.
    async fn put_off(&self, subjects: &[EntityKey], pass: CleanupPass, until_ms: i64) -> StoreResult<()>;
    /// Deletes the notes of subjects.
    async fn forget(&self, subjects: &[EntityKey]) -> StoreResult<()>;
    /// Counts the subjects that wait for the first pass.
    async fn waiting(&self) -> StoreResult<u64>;
}
