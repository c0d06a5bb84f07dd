//! The rule engine as the rest of the platform sees it.

use async_trait::async_trait;
use fieldline_model::TenantId;
use fieldline_model::message::QueueMessage;

use super::StoreResult;

/// Takes messages for the rule chains.
#[async_trait]
pub trait RuleEngine: Send + Sync {
    /// Queues a message about an entity of the tenant; durable when it returns.
    async fn push(&self, tenant: TenantId, message: QueueMessage) -> StoreResult<()>;

    /// Returns whether messages are no longer accepted because the program stops.
    fn is_closed(&self) -> bool {
        false
    }

    /// The number of the log that it queues into; see [`Journal::log_number`](super::Journal::log_number).
    fn log_number(&self) -> u64 {
        0
    }

    /// Queues many messages in order, each about an entity of its tenant; durable when it returns. A message that
    /// cannot be queued does not stop the others; the first error is returned.
    async fn push_all(&self, messages: Vec<(TenantId, QueueMessage)>) -> StoreResult<()> {
        let mut result = Ok(());
        for (tenant, message) in messages {
            let pushed = self.push(tenant, message).await;
            result = result.and(pushed);
        }
        result
    }
}

/// A rule engine that ignores all messages, for programs without one.
pub struct NoRuleEngine;

#[async_trait]
impl RuleEngine for NoRuleEngine {
    async fn push(&self, _: TenantId, _: QueueMessage) -> StoreResult<()> {
        Ok(())
    }
}
