//! Who may do what: the one table of roles, by what is declared of each kind of entities.

use fieldline_core::any_entity::{AccessGrant, AccessResource, kind_policy};
use fieldline_model::entity::Authority;
use fieldline_model::{EntityType, TenantId};

use super::{AccessOperation, Principal};

/// Whether a principal may do something with an entity.
pub fn allows(who: &Principal, operation: AccessOperation, what: &AccessResource) -> bool {
    use AccessOperation as Op;
    if who.is_public() && !matches!(operation, Op::Read | Op::ReadAttributes | Op::ReadTelemetry) {
        return false;
    }
    let policy = kind_policy(what.entity.entity_type);
    let rights = policy.rights;
    let grant = match who.authority {
        Authority::SysAdmin => return covers(rights.system, who, operation, what),
        role if what.tenant.is_null() && policy.shared_readers.contains(&role) => {
            return operation == Op::Read;
        }
        Authority::TenantAdmin => rights.tenant,
        Authority::CustomerUser => rights.customer,
    };
    who.tenant == what.tenant && covers(grant, who, operation, what)
}

/// Whether [`allows`] permits a tenant administrator any operation on all entities of a kind that belong to `tenant`, so that
/// rows need not be checked one by one.
pub fn allows_all(who: &Principal, kind: EntityType, tenant: TenantId) -> bool {
    who.authority == Authority::TenantAdmin
        && !who.is_public()
        && !tenant.is_null()
        && who.tenant == tenant
        && kind_policy(kind).rights.tenant == AccessGrant::Anything
}

/// Whether somebody who has been granted that much may do something.
fn covers(grant: AccessGrant, who: &Principal, operation: AccessOperation, what: &AccessResource) -> bool {
    use AccessGrant as Grant;
    use AccessOperation as Op;
    let own = !who.customer.is_null() && who.customer == what.customer;
    let reads = matches!(operation, Op::Read | Op::ReadAttributes | Op::ReadTelemetry);
    match grant {
        Grant::Nothing => false,
        Grant::Anything => true,
        Grant::Shared => what.tenant.is_null(),
        Grant::Read => operation == Op::Read,
        Grant::ReadValues => reads,
        Grant::ReadValuesOrDelete => reads || operation == Op::Delete,
        Grant::ReadOwn => own && reads,
        Grant::UseOwn => match operation {
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
        Grant::AnythingOwn => own,
        Grant::Users => match who.authority {
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
