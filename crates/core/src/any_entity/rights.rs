//! The properties of entities and kinds that the role table needs.

use fieldline_model::entity::Authority;
use fieldline_model::{CustomerId, EntityId, TenantId};

/// The properties of an entity that the role table needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessResource {
    /// The entity.
    pub entity: EntityId,
    /// The tenant it belongs to; a tenant belongs to itself, system entities to the null id.
    pub tenant: TenantId,
    /// The customer it is assigned to; the null id for none. A customer belongs to itself.
    pub customer: CustomerId,
    /// The authority of a user, `None` for all other entities.
    pub user_authority: Option<Authority>,
}

impl AccessResource {
    /// Creates the properties of an entity other than a user.
    pub fn new(entity: impl Into<EntityId>, tenant: TenantId, customer: CustomerId) -> Self {
        Self {
            entity: entity.into(),
            tenant,
            customer,
            user_authority: None,
        }
    }
}

/// The rights of each role on the entities of a kind. Only system administrators reach beyond their own tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRights {
    /// System administrators.
    pub system: AccessGrant,
    /// Administrators of the tenant.
    pub tenant: AccessGrant,
    /// Users of the tenant's customers.
    pub customer: AccessGrant,
}

/// The operations that a role may do with entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessGrant {
    /// Nothing.
    Nothing,
    /// Everything.
    Anything,
    /// Everything, on entities that belong to no tenant.
    Shared,
    /// Reading the entities, but not their values.
    Read,
    /// Reading the entities and their values.
    ReadValues,
    /// Reading the entities and their values, and deleting the entities.
    ReadValuesOrDelete,
    /// Reading the customer's own entities and their values.
    ReadOwn,
    /// Using the customer's own entities, and claiming those of nobody.
    UseOwn,
    /// Everything, on the customer's own entities.
    AnythingOwn,
    /// The rights of users on users of no higher authority.
    Users,
}
