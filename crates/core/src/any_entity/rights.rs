//! What the table of roles needs to know about an entity and its kind.

use fieldline_model::entity::Authority;
use fieldline_model::{CustomerId, EntityId, TenantId};

/// What the table needs to know about an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessResource {
    /// The entity.
    pub entity: EntityId,
    /// The tenant it belongs to; a tenant belongs to itself, what the system owns to the null id.
    pub tenant: TenantId,
    /// The customer it is assigned to; the null id for none. A customer belongs to itself.
    pub customer: CustomerId,
    /// The authority of a user, `None` for everything else.
    pub user_authority: Option<Authority>,
}

impl AccessResource {
    /// An entity that is no user.
    pub fn new(entity: impl Into<EntityId>, tenant: TenantId, customer: CustomerId) -> Self {
        Self {
            entity: entity.into(),
            tenant,
            customer,
            user_authority: None,
        }
    }
}

/// What each role may do with the entities of a kind. Nobody but system administrators reaches beyond the own tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRights {
    /// System administrators.
    pub system: AccessGrant,
    /// Administrators of the tenant.
    pub tenant: AccessGrant,
    /// Users of the tenant's customers.
    pub customer: AccessGrant,
}

/// What somebody may do with entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessGrant {
    /// Nothing.
    Nothing,
    /// Everything.
    Anything,
    /// Everything with what belongs to no tenant.
    Shared,
    /// Reading them, but not their values.
    Read,
    /// Reading them and their values.
    ReadValues,
    /// Reading them and their values, and deleting them.
    ReadValuesOrDelete,
    /// Reading what is the customer's own, and its values.
    ReadOwn,
    /// Using what is the customer's own, and claiming what is nobody's.
    UseOwn,
    /// Everything with what is the customer's own.
    AnythingOwn,
    /// What users may do with users of no higher authority.
    Users,
}
