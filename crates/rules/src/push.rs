//! Messages from inside the platform into the queues.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::ingest::Uplink;
use fieldline_core::ports::{AppendError, RuleEngine, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::message::Message;
use fieldline_model::record::RecordBatch;
use fieldline_model::{Subject, TenantId};

use crate::originators::Originators;

/// Queues messages: in the queue they name, or in that of their originator's profile.
pub struct Pusher {
    uplink: Uplink,
    originators: Arc<Originators>,
}

impl Pusher {
    /// A pusher to the journal.
    pub fn new(uplink: Uplink, originators: Arc<Originators>) -> Self {
        Self { uplink, originators }
    }
}

#[async_trait]
impl RuleEngine for Pusher {
    async fn push(&self, tenant: TenantId, message: Message) -> StoreResult<()> {
        let subject = Subject {
            tenant,
            entity: message.originator,
        };
        let originator = match message.queue {
            Some(_) => None,
            None => self.originators.get(subject).await?,
        };
        let of_profile = originator.as_ref().and_then(|found| found.profile.as_ref()?.queue.as_deref());
        let queue = message.queue.as_deref().or(of_profile);
        let mut batch = RecordBatch::new();
        batch.message(tenant, &message);
        let uplink = self.uplink.to(tenant, queue);
        let append = uplink.append(subject, &batch).await.map_err(refused)?;
        append.await.map_err(refused)
    }
}

fn refused(error: AppendError) -> StoreError {
    let kind = match error {
        AppendError::TooLarge { .. } => StoreErrorKind::Invalid,
        AppendError::Busy | AppendError::DiskFull | AppendError::Failed(_) | AppendError::Closed => {
            StoreErrorKind::Unavailable
        }
    };
    StoreError::new(kind, error.to_string())
}
