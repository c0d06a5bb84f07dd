//! Reprocessing of stored values by calculated fields.

use async_trait::async_trait;
use fieldline_model::entity::CalculatedField;
use fieldline_model::reprocess::{ReprocessReport, ReprocessRequest};
use fieldline_model::{CalculatedFieldId, TenantId};

use crate::services::{ServiceError, ServiceErrorKind, ServiceResult};

/// Makes calculated fields work on what is stored already. What it knows of its work ends with the program; what has been
/// stored until then stays, and the same work may be done once more.
#[async_trait]
pub trait FieldReprocess: Send + Sync {
    /// Begins to reprocess a time by a field, which goes on after this has returned.
    ///
    /// # Errors
    /// The request makes no sense, the field has no results that have a history, the tenant's or too many others' work is
    /// going on, or a store failed.
    async fn begin(
        &self,
        field: &CalculatedField,
        request: ReprocessRequest,
    ) -> ServiceResult<ReprocessReport>;

    /// The last work of a field; `None` where there is none.
    fn progress(&self, tenant: TenantId, field: CalculatedFieldId) -> Option<ReprocessReport>;

    /// Ends the work of a field soon; what has been stored stays. `None` where there is none.
    fn cancel(&self, tenant: TenantId, field: CalculatedFieldId) -> Option<ReprocessReport>;
}

/// Of a program without a rule engine.
pub struct NoFieldReprocess;

#[async_trait]
impl FieldReprocess for NoFieldReprocess {
    async fn begin(&self, _: &CalculatedField, _: ReprocessRequest) -> ServiceResult<ReprocessReport> {
        let text = "There is no rule engine to reprocess values with!";
        Err(ServiceError::new(ServiceErrorKind::Unavailable, text))
    }

    fn progress(&self, _: TenantId, _: CalculatedFieldId) -> Option<ReprocessReport> {
        None
    }

    fn cancel(&self, _: TenantId, _: CalculatedFieldId) -> Option<ReprocessReport> {
        None
    }
}
