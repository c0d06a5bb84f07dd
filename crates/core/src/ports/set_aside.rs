//! Records that were taken out of their queue, and the way back.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::entity::SetAsideInfo;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityKey, SetAsideId, TenantId};

use super::StoreResult;

/// A record that is set aside, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAsideRawRecord {
    /// What is known of it.
    pub info: SetAsideInfo,
    /// Its bytes as they were in the journal.
    pub bytes: Bytes,
}

/// How much may be kept; see [`SetAsideStore::keep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetAsideQuota {
    /// Bytes of one tenant.
    pub of_tenant: u64,
    /// Bytes of all tenants.
    pub in_total: u64,
}

impl SetAsideQuota {
    /// What a record counts besides its own bytes, so that many small ones are bounded as well.
    pub const OVERHEAD: u64 = 512;
}

/// What has become of a record that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAsideOutcome {
    /// It was not there already.
    pub is_new: bool,
    /// Older records that went for it.
    pub dropped: u64,
}

/// Records that were set aside. They go with their tenant.
#[async_trait]
pub trait SetAsideStore: Send + Sync {
    /// Keeps a record; durable when it returns. One of that id that is there already stays as it is. Where there is no
    /// room, the oldest records of its tenant go, then the oldest of the tenant that has the most; the record itself is
    /// kept however large it is. A tenant that does not exist is not found.
    async fn keep(&self, record: &SetAsideRawRecord, room: SetAsideQuota) -> StoreResult<SetAsideOutcome>;
    /// A record, if the tenant has it; of any tenant where none is given.
    async fn get(&self, tenant: Option<TenantId>, id: SetAsideId) -> StoreResult<Option<SetAsideRawRecord>>;
    /// A page of the records of a tenant, or of all. Text search in the queue's name and the details. Sorts by createdTime,
    /// receivedTime, reason, size.
    async fn list(&self, tenant: Option<TenantId>, page: &PageLink) -> StoreResult<PageData<SetAsideInfo>>;
    /// Deletes a record under the same conditions; returns whether it existed.
    async fn delete(&self, tenant: Option<TenantId>, id: SetAsideId) -> StoreResult<bool>;
}

/// The way of a record back into a queue.
#[async_trait]
pub trait RecordQueue: Send + Sync {
    /// Appends a record to the queue of that stored name, to the main one where there is none of that name any more; what was
    /// in a slow lane goes to the lane of its tenant. Durable when it returns.
    ///
    /// # Errors
    /// The queue takes nothing, or has no room for more of the tenant.
    async fn put_back(&self, queue: &str, subject: EntityKey, record: &[u8]) -> StoreResult<()>;
}

/// A queue that takes nothing, for programs without a journal.
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
