//! What people did.

use async_trait::async_trait;
use fieldline_model::entity::{ActionType, AuditLog};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, EntityId, TenantId, UserId};

use super::StoreResult;

/// Whose actions a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditScope {
    /// All of the tenant.
    #[default]
    Tenant,
    /// Those that concern a customer.
    Customer(CustomerId),
    /// Those of a user.
    User(UserId),
    /// Those that were done with an entity.
    Entity(EntityId),
}

/// Which actions a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Whose.
    pub scope: AuditScope,
    /// Not before, milliseconds.
    pub start_time: Option<i64>,
    /// Not after, milliseconds.
    pub end_time: Option<i64>,
    /// Of these kinds; of all where there are none.
    pub actions: Vec<ActionType>,
}

/// The audit log.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Stores what people did, all or nothing; names that are absent are looked up. What was done in a tenant that is gone
    /// is left out.
    async fn append(&self, actions: Vec<AuditLog>) -> StoreResult<()>;
    /// A page of actions in a tenant; with the null id, of system administrators. Text search in names of entities and
    /// users, types and statuses. Sorts by createdTime, entityType, entityName, userName, actionType,
    /// actionStatus.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &AuditFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<AuditLog>>;
    /// Deletes what was done before a time, milliseconds; returns how much.
    async fn delete_before(&self, time_ms: i64) -> StoreResult<u64>;
}
