//! The entities that carry the statistics of queues. They are not stored: a tenant has one for each queue that its
//! messages use, and the id is derived from tenant, queue and server.

use fieldline_model::entity::QueueStats;
use fieldline_model::{QueueStatsId, TenantId, fnv};
use uuid::Uuid;

use crate::ports::{EntityStores, StoreResult};

/// Name of this server in keys and metadata.
pub const SERVICE_ID: &str = "fieldline";

/// Derives the id of the entity that carries the statistics of a tenant in a queue on a server: always the same.
pub fn stats_id(tenant: TenantId, queue: &str, service: &str) -> QueueStatsId {
    let named = queue.bytes().chain([0]).chain(service.bytes());
    let hash = fnv::hash_128(tenant.0.into_bytes().into_iter().chain(named));
    QueueStatsId(uuid::Builder::from_custom_bytes(Uuid::from_u128(hash).into_bytes()).into_uuid())
}

/// Returns the statistics of a tenant, one per queue. The system tenant sends no messages and has none.
///
/// # Errors
/// The store failed.
pub async fn of_tenant(stores: &EntityStores, tenant: TenantId) -> StoreResult<Vec<QueueStats>> {
    if tenant.is_null() {
        return Ok(Vec::new());
    }
    let owner = stores.queue_owner(tenant).await?;
    let queues = stores.queues.all(owner).await?;
    let stats = queues.into_iter().map(|queue| QueueStats {
        id: stats_id(tenant, &queue.name, SERVICE_ID),
        created_time: queue.created_time,
        tenant_id: tenant,
        queue_name: queue.name,
        service_id: SERVICE_ID.to_owned(),
    });
    Ok(stats.collect())
}

/// Returns the statistics with this id, if the tenant has them.
///
/// # Errors
/// The store failed.
pub async fn get(
    stores: &EntityStores,
    tenant: TenantId,
    id: QueueStatsId,
) -> StoreResult<Option<QueueStats>> {
    let stats = of_tenant(stores, tenant).await?;
    Ok(stats.into_iter().find(|stats| stats.id == id))
}
