//! The tenant on whose behalf data is read. A store can tell people's list requests from device reads, and tenants from
//! each other, to schedule them fairly.

use std::future::Future;

use fieldline_model::TenantId;

tokio::task_local! {
    static READER: TenantId;
}

/// Runs work on behalf of a person of a tenant.
pub async fn with_reader<F: Future>(tenant: TenantId, work: F) -> F::Output {
    READER.scope(tenant, work).await
}

/// The tenant of the person that the current task works for; `None` if it works for devices or the platform itself.
pub fn current_reader() -> Option<TenantId> {
    READER.try_with(|tenant| *tenant).ok()
}
