//! Replays of stored telemetry through rule chains.

use async_trait::async_trait;
use fieldline_model::replay::{ReplayReport, ReplayRequest};
use fieldline_model::{RuleChainId, TenantId};

use crate::services::{ServiceError, ServiceErrorKind, ServiceResult};

/// Says what a rule chain would have done.
#[async_trait]
pub trait RuleReplay: Send + Sync {
    /// Runs stored telemetry of a tenant through one of its chains. Nothing is stored, and nothing leaves the platform.
    /// Dropping the future ends the replay.
    ///
    /// # Errors
    /// The request makes no sense or asks for too much, there is no such chain, too many replays run already, or a store
    /// failed.
    async fn replay(
        &self,
        tenant: TenantId,
        chain: RuleChainId,
        request: ReplayRequest,
    ) -> ServiceResult<ReplayReport>;
}

/// Of a program without a rule engine.
pub struct NoRuleReplay;

#[async_trait]
impl RuleReplay for NoRuleReplay {
    async fn replay(&self, _: TenantId, _: RuleChainId, _: ReplayRequest) -> ServiceResult<ReplayReport> {
        let text = "There is no rule engine to replay messages with!";
        Err(ServiceError::new(ServiceErrorKind::Unavailable, text))
    }
}
