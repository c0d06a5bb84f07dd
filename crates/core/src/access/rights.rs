//! Who may do what: the one table of roles, by what is declared of each kind of entities.

use fieldline_model::entity::Authority;
use fieldline_model::{CustomerId, EntityId, EntityType, TenantId};

use super::{AccessOperation, Principal, kind_policy};

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

impl AccessGrant {
    fn covers(self, who: &Principal, operation: AccessOperation, what: &AccessResource) -> bool {
        use AccessOperation as Op;
        let own = !who.customer.is_null() && who.customer == what.customer;
        let reads = matches!(operation, Op::Read | Op::ReadAttributes | Op::ReadTelemetry);
        match self {
            Self::Nothing => false,
            Self::Anything => true,
            Self::Shared => what.tenant.is_null(),
            Self::Read => operation == Op::Read,
            Self::ReadValues => reads,
            Self::ReadValuesOrDelete => reads || operation == Op::Delete,
            Self::ReadOwn => own && reads,
            Self::UseOwn => match operation {
                Op::ClaimDevices => true,
                Op::Read
                | Op::Write
                | Op::ReadCredentials
                | Op::ReadAttributes
                | Op::WriteAttributes
                | Op::ReadTelemetry
                | Op::WriteTelemetry
                | Op::RpcCall => own,
                Op::Create
                | Op::Delete
                | Op::AssignToCustomer
                | Op::UnassignFromCustomer
                | Op::AssignToTenant
                | Op::WriteCredentials => false,
            },
            Self::AnythingOwn => own,
            Self::Users => match who.authority {
                Authority::SysAdmin => what.user_authority != Some(Authority::CustomerUser),
                Authority::TenantAdmin => what.user_authority != Some(Authority::SysAdmin),
                Authority::CustomerUser => {
                    what.user_authority == Some(Authority::CustomerUser)
                        && own
                        && (operation == Op::Read || what.entity.id == who.user.0)
                }
            },
        }
    }
}

/// Whether a principal may do something with an entity.
pub fn allows(who: &Principal, operation: AccessOperation, what: &AccessResource) -> bool {
    use AccessOperation as Op;
    if who.is_public() && !matches!(operation, Op::Read | Op::ReadAttributes | Op::ReadTelemetry) {
        return false;
    }
    let rights = kind_policy(what.entity.entity_type).rights;
    let grant = match who.authority {
        Authority::SysAdmin => return rights.system.covers(who, operation, what),
        Authority::TenantAdmin if is_shared_queue(what) => return operation == Op::Read,
        Authority::TenantAdmin => rights.tenant,
        Authority::CustomerUser => rights.customer,
    };
    who.tenant == what.tenant && grant.covers(who, operation, what)
}

/// Tenants without queues of their own use those of the system.
fn is_shared_queue(what: &AccessResource) -> bool {
    what.entity.entity_type == EntityType::Queue && what.tenant.is_null()
}
