//! For whom something is read: people who ask for lists are told apart from devices, and tenants from each other, so that
//! a store can give each its turn.

use std::future::Future;

use fieldline_model::TenantId;

tokio::task_local! {
    static READER: TenantId;
}

/// Does work for a person of a tenant.
pub async fn with_reader<F: Future>(tenant: TenantId, work: F) -> F::Output {
    READER.scope(tenant, work).await
}

/// The tenant of the person that the present work is done for; `None` where it is done for devices or the platform itself.
pub fn current_reader() -> Option<TenantId> {
    READER.try_with(|tenant| *tenant).ok()
}
