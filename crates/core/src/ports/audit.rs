//! The audit log of user actions.

use async_trait::async_trait;
use fieldline_model::entity::{ActionType, AuditLog};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, EntityId, TenantId, UserId};

use super::StoreResult;

/// The actions that a list covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditScope {
    /// All of the tenant.
    #[default]
    Tenant,
    /// Actions that concern a customer.
    Customer(CustomerId),
    /// Actions of a user.
    User(UserId),
    /// Actions on an entity.
    Entity(EntityId),
}

/// The conditions of a list of actions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// The actions that the list covers.
    pub scope: AuditScope,
    /// At or after this time, milliseconds.
    pub start_time: Option<i64>,
    /// At or before this time, milliseconds.
    pub end_time: Option<i64>,
    /// Of these kinds; of all kinds if empty.
    pub actions: Vec<ActionType>,
}

/// The audit log.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Stores actions, all or nothing; absent names are looked up. Actions in a deleted tenant are skipped.
    async fn append(&self, actions: Vec<AuditLog>) -> StoreResult<()>;
    /// A page of the actions in a tenant, or of system administrators with the null id. Text search in names of
    /// entities and users, types and statuses. Sorts by createdTime, entityType, entityName, userName, actionType,
    /// actionStatus.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &AuditFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<AuditLog>>;
    /// Deletes actions before a time, milliseconds; returns their number.
    async fn delete_before(&self, time_ms: i64) -> StoreResult<u64>;
}
