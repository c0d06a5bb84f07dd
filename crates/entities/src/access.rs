//! Who may do what with entities, and the one way to look an entity up on somebody's behalf.
//!
//! Every lookup carries the tenant of the one who asks, so that what belongs to another tenant is not found; and every
//! entity that is found passes [`allows`] before it is handed out.

mod permitted;
mod rights;

use fieldline_core::any_entity::{self, AnyEntity, kind_policy};
use fieldline_core::ports::{EntityStores, StoreError};
use fieldline_model::entity::{Authority, Tenant, User};
use fieldline_model::{CustomerId, EntityId, EntityType, TenantId, UserId};

pub use permitted::filter_permitted;
pub use rights::{allows, allows_all};

/// Somebody who has proved who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Principal {
    /// The user; the public customer's id in the place of a user's for a public session.
    pub user: UserId,
    /// What the user may do.
    pub authority: Authority,
    /// The tenant; null id for system administrators.
    pub tenant: TenantId,
    /// The customer; null id for all but customer users.
    pub customer: CustomerId,
}

impl Principal {
    /// A stored user.
    pub fn of(user: &User) -> Self {
        Self {
            user: user.id,
            authority: user.authority,
            tenant: user.tenant_id,
            customer: user.customer_id,
        }
    }

    /// Whether it stands for a public session: anybody who knows the id of the public customer. Such a one only reads.
    pub fn is_public(&self) -> bool {
        !self.customer.is_null() && self.user.0 == self.customer.0
    }
}

/// What is done with an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum AccessOperation {
    Create,
    Read,
    Write,
    Delete,
    AssignToCustomer,
    UnassignFromCustomer,
    AssignToTenant,
    ReadCredentials,
    WriteCredentials,
    ReadAttributes,
    WriteAttributes,
    ReadTelemetry,
    WriteTelemetry,
    RpcCall,
    ClaimDevices,
}

/// Why a lookup handed nothing out.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// There is no such entity, as far as the one who asks can know.
    #[error("{} with id [{}] is not found", title(&.0.entity_type), .0.id)]
    NotFound(EntityId),
    /// There is one, and the one who asks may not do this with it.
    #[error("You don't have permission to perform this operation!")]
    Denied,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The entity, if the principal may do that with it.
///
/// # Errors
/// See [`AccessError`].
pub async fn lookup(
    stores: &EntityStores,
    who: &Principal,
    id: EntityId,
    operation: AccessOperation,
) -> Result<AnyEntity, AccessError> {
    // A system administrator has no tenant to look into.
    if who.authority == Authority::SysAdmin && !kind_policy(id.entity_type).beyond_tenants {
        return Err(AccessError::Denied);
    }
    if is_system_tenant(who, id, operation) {
        return Ok(AnyEntity::Tenant(Tenant::default()));
    }
    let found = any_entity::find(stores, who.tenant, who.authority, id).await?;
    let entity = found.ok_or(AccessError::NotFound(id))?;
    if allows(who, operation, &entity.resource_for(who.customer)) {
        Ok(entity)
    } else {
        Err(AccessError::Denied)
    }
}

/// Whether it is a system administrator who reads values of the system tenant, such as the load of the machine. That tenant is no
/// stored entity.
fn is_system_tenant(who: &Principal, id: EntityId, operation: AccessOperation) -> bool {
    let reads = matches!(
        operation,
        AccessOperation::ReadAttributes | AccessOperation::ReadTelemetry
    );
    reads && who.authority == Authority::SysAdmin && id == TenantId::NULL.into()
}

/// How a kind of entity is called within a message: `device profile`.
pub fn noun(entity_type: EntityType) -> String {
    entity_type.name().replace('_', " ").to_lowercase()
}

/// How a kind of entity is called in messages: `Device profile`.
pub fn title(entity_type: &EntityType) -> String {
    let name = noun(*entity_type);
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use fieldline_core::any_entity::AccessResource;
    use fieldline_model::DeviceId;
    use uuid::Uuid;

    use super::*;

    fn who(authority: Authority) -> Principal {
        Principal {
            user: UserId(Uuid::from_u128(1)),
            authority,
            tenant: TenantId(Uuid::from_u128(10)),
            customer: CustomerId(Uuid::from_u128(20)),
        }
    }

    fn device(tenant: u128, customer: CustomerId) -> AccessResource {
        AccessResource {
            entity: DeviceId(Uuid::from_u128(5)).into(),
            tenant: TenantId(Uuid::from_u128(tenant)),
            customer,
            user_authority: None,
        }
    }

    #[test]
    fn nobody_touches_a_device_of_another_tenant() {
        let foreign = device(11, CustomerId(Uuid::from_u128(20)));
        for authority in [
            Authority::SysAdmin,
            Authority::TenantAdmin,
            Authority::CustomerUser,
        ] {
            for operation in [
                AccessOperation::Read,
                AccessOperation::Delete,
                AccessOperation::ClaimDevices,
            ] {
                assert!(!allows(&who(authority), operation, &foreign));
            }
        }
    }

    #[test]
    fn customer_users_use_their_devices_but_neither_delete_nor_reassign_them() {
        let customer = who(Authority::CustomerUser);
        let own = device(10, customer.customer);
        for operation in [
            AccessOperation::Read,
            AccessOperation::WriteTelemetry,
            AccessOperation::RpcCall,
        ] {
            assert!(allows(&customer, operation, &own));
            assert!(!allows(&customer, operation, &device(10, CustomerId::NULL)));
        }
        for operation in [
            AccessOperation::Delete,
            AccessOperation::WriteCredentials,
            AccessOperation::AssignToCustomer,
        ] {
            assert!(!allows(&customer, operation, &own));
        }
    }

    #[test]
    fn whoever_comes_for_what_is_public_only_reads() {
        let public = Principal {
            user: UserId(Uuid::from_u128(20)),
            ..who(Authority::CustomerUser)
        };
        let own = device(10, public.customer);
        assert!(allows(&public, AccessOperation::Read, &own));
        for operation in [
            AccessOperation::Write,
            AccessOperation::ReadCredentials,
            AccessOperation::WriteTelemetry,
            AccessOperation::RpcCall,
            AccessOperation::ClaimDevices,
        ] {
            assert!(!allows(&public, operation, &own), "{operation:?}");
        }
    }

    #[test]
    fn an_unassigned_device_belongs_to_no_customer_not_even_the_null_one() {
        let nobody = Principal {
            customer: CustomerId::NULL,
            ..who(Authority::CustomerUser)
        };
        assert!(!allows(
            &nobody,
            AccessOperation::Read,
            &device(10, CustomerId::NULL)
        ));
    }

    /// The shortcut permits nothing that the check of one entity forbids.
    #[test]
    fn whoever_may_do_all_with_a_kind_may_do_each_thing_with_each_entity_of_it() {
        let operations = [
            AccessOperation::Create,
            AccessOperation::Read,
            AccessOperation::Write,
            AccessOperation::Delete,
            AccessOperation::AssignToTenant,
            AccessOperation::WriteCredentials,
        ];
        let mut kinds = 0;
        for authority in [
            Authority::SysAdmin,
            Authority::TenantAdmin,
            Authority::CustomerUser,
        ] {
            let who = who(authority);
            for kind in EntityType::ALL.iter().copied() {
                for tenant in [who.tenant, TenantId(Uuid::from_u128(11)), TenantId::NULL] {
                    if !allows_all(&who, kind, tenant) {
                        continue;
                    }
                    kinds += 1;
                    let what = AccessResource {
                        entity: EntityId {
                            entity_type: kind,
                            id: Uuid::from_u128(5),
                        },
                        tenant,
                        customer: CustomerId::NULL,
                        user_authority: None,
                    };
                    assert!(
                        operations.iter().all(|operation| allows(&who, *operation, &what)),
                        "{kind:?}"
                    );
                }
            }
        }
        assert!(
            kinds > 3,
            "the shortcut is of use for the administrator of a tenant"
        );
        let public = Principal {
            user: UserId(Uuid::from_u128(20)),
            ..who(Authority::TenantAdmin)
        };
        assert!(public.is_public());
        assert!(!allows_all(&public, EntityType::Device, public.tenant));
    }
}
