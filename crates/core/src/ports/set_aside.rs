//! Records removed from their queue, and their replay.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::entity::SetAsideInfo;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityKey, SetAsideId, TenantId};

use super::StoreResult;

/// A complete record that is set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAsideRawRecord {
    /// Its metadata.
    pub info: SetAsideInfo,
    /// Its bytes as they were in the journal.
    pub bytes: Bytes,
}

/// The space for kept records; see [`SetAsideStore::keep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetAsideQuota {
    /// Bytes of one tenant.
    pub of_tenant: u64,
    /// Bytes of all tenants.
    pub in_total: u64,
}

impl SetAsideQuota {
    /// Bytes that each record counts in addition to its size, so that the number of small records is bounded as well.
    pub const OVERHEAD: u64 = 512;
}

/// The result of keeping a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAsideOutcome {
    /// Whether the record was not kept already.
    pub is_new: bool,
    /// Number of older records dropped to make room.
    pub dropped: u64,
}

/// Records that were set aside, deleted with their tenant.
#[async_trait]
pub trait SetAsideStore: Send + Sync {
    /// Keeps a record; durable when it returns. A record with the same id that is already there stays unchanged. If
    /// there is no room, the oldest records of its tenant are dropped, then the oldest of the tenant that uses the
    /// most; the record itself is kept whatever its size. A tenant that does not exist is reported as not found.
    async fn keep(&self, record: &SetAsideRawRecord, room: SetAsideQuota) -> StoreResult<SetAsideOutcome>;
    /// A record, if the tenant (any tenant, if `None`) has it.
    async fn get(&self, tenant: Option<TenantId>, id: SetAsideId) -> StoreResult<Option<SetAsideRawRecord>>;
    /// A page of the records of a tenant, or of all. Text search in the queue's name and the details. Sorts by
    /// createdTime, receivedTime, reason, size.
    async fn list(&self, tenant: Option<TenantId>, page: &PageLink) -> StoreResult<PageData<SetAsideInfo>>;
    /// Deletes a record, if the tenant (any tenant, if `None`) has it; returns whether it existed.
    async fn delete(&self, tenant: Option<TenantId>, id: SetAsideId) -> StoreResult<bool>;
}

/// Puts records back into a queue.
#[async_trait]
pub trait RecordQueue: Send + Sync {
    /// Appends a record to the queue with that stored name, or to the main queue if it no longer exists; a record from
    /// a slow lane goes to the lane of its tenant. Durable when it returns.
    ///
    /// # Errors
    /// The queue accepts no appends, or has no more room for the tenant.
    async fn put_back(&self, queue: &str, subject: EntityKey, record: &[u8]) -> StoreResult<()>;
}

/// A queue that accepts no records, for programs without a journal.
pub struct NoRecordQueue;

#[async_trait]
impl RecordQueue for NoRecordQueue {
    async fn put_back(&self, _: &str, _: EntityKey, _: &[u8]) -> StoreResult<()> {
        Err(super::StoreError::new(
            super::StoreErrorKind::Unavailable,
            "There is no queue to put the record into",
        ))
    }
}
