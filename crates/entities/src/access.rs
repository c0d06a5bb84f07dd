//! Who may do what: the one table of roles, and the one way to look an entity up on somebody's behalf.
//!
//! Every lookup carries the tenant of the one who asks, so that what belongs to another tenant is not found; and every
//! entity that is found passes [`allows`] before it is handed out.

mod permitted;

use fieldline_core::any_entity::{AccessResource, AnyEntity};
use fieldline_core::ports::{EntityStores, StoreError};
use fieldline_core::queue_stats;
use fieldline_core::usage::ApiUsageState;
use fieldline_model::entity::{Authority, Queue, User};
use fieldline_model::{
    AlarmId, AssetId, AssetProfileId, CalculatedFieldId, CustomerId, DashboardId, DeviceId, DeviceProfileId,
    EntityId, EntityType, EntityViewId, OtaPackageId, QueueId, QueueStatsId, RuleChainId, RuleNodeId,
    TenantId, TenantProfileId, UserId,
};
pub use permitted::filter_permitted;

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

/// Whether a principal may do something with an entity.
pub fn allows(who: &Principal, operation: AccessOperation, what: &AccessResource) -> bool {
    use AccessOperation as Op;
    if who.is_public() && !matches!(operation, Op::Read | Op::ReadAttributes | Op::ReadTelemetry) {
        return false;
    }
    match who.authority {
        Authority::SysAdmin => system_admin_may(what),
        Authority::TenantAdmin if is_shared_queue(what) => operation == AccessOperation::Read,
        Authority::TenantAdmin => who.tenant == what.tenant && tenant_admin_may(operation, what),
        Authority::CustomerUser => who.tenant == what.tenant && customer_user_may(who, operation, what),
    }
}

/// Tenants without queues of their own use those of the system.
fn is_shared_queue(what: &AccessResource) -> bool {
    what.entity.entity_type == EntityType::Queue && what.tenant.is_null()
}

fn system_admin_may(what: &AccessResource) -> bool {
    match what.entity.entity_type {
        EntityType::Tenant | EntityType::TenantProfile => true,
        EntityType::Queue => what.tenant.is_null(),
        EntityType::User => what.user_authority != Some(Authority::CustomerUser),
        _ => false,
    }
}

fn tenant_admin_may(operation: AccessOperation, what: &AccessResource) -> bool {
    use AccessOperation as Op;
    match what.entity.entity_type {
        EntityType::Tenant => matches!(
            operation,
            Op::Read | Op::ReadAttributes | Op::ReadTelemetry | Op::Delete
        ),
        EntityType::TenantProfile => false,
        EntityType::User => what.user_authority != Some(Authority::SysAdmin),
        // The platform writes them.
        EntityType::QueueStats | EntityType::ApiUsageState => {
            matches!(operation, Op::Read | Op::ReadAttributes | Op::ReadTelemetry)
        }
        _ => true,
    }
}

fn customer_user_may(who: &Principal, operation: AccessOperation, what: &AccessResource) -> bool {
    use AccessOperation as Op;
    let own = !who.customer.is_null() && who.customer == what.customer;
    match what.entity.entity_type {
        EntityType::Device | EntityType::Asset | EntityType::EntityView => match operation {
            Op::ClaimDevices => true,
            Op::Read
            | Op::Write
            | Op::ReadCredentials
            | Op::ReadAttributes
            | Op::WriteAttributes
            | Op::ReadTelemetry
            | Op::WriteTelemetry
            | Op::RpcCall => own,
            _ => false,
        },
        EntityType::Customer | EntityType::Dashboard => {
            own && matches!(operation, Op::Read | Op::ReadAttributes | Op::ReadTelemetry)
        }
        EntityType::User => {
            what.user_authority == Some(Authority::CustomerUser)
                && own
                && (operation == Op::Read || what.entity.id == who.user.0)
        }
        EntityType::DeviceProfile | EntityType::AssetProfile => operation == Op::Read,
        EntityType::Alarm => own,
        _ => false,
    }
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
    let found = match id.entity_type {
        EntityType::Tenant => stores.tenants.get(TenantId(id.id)).await?.map(AnyEntity::Tenant),
        EntityType::TenantProfile => stores
            .tenant_profiles
            .get(TenantProfileId(id.id))
            .await?
            .map(AnyEntity::TenantProfile),
        EntityType::User => stores.users.by_id(UserId(id.id)).await?.map(AnyEntity::User),
        EntityType::Queue => queue(stores, who, QueueId(id.id)).await?.map(AnyEntity::Queue),
        EntityType::QueueStats => queue_stats::get(stores, who.tenant, QueueStatsId(id.id))
            .await?
            .map(AnyEntity::QueueStats),
        // A system administrator has no tenant to look into.
        _ if who.authority == Authority::SysAdmin => return Err(AccessError::Denied),
        EntityType::ApiUsageState => Some(ApiUsageState::of(who.tenant))
            .filter(|usage| usage.id.0 == id.id)
            .map(AnyEntity::ApiUsageState),
        EntityType::Customer => stores
            .customers
            .get(who.tenant, CustomerId(id.id))
            .await?
            .map(AnyEntity::Customer),
        EntityType::Device => stores
            .devices
            .get(who.tenant, DeviceId(id.id))
            .await?
            .map(AnyEntity::Device),
        EntityType::Asset => stores
            .assets
            .get(who.tenant, AssetId(id.id))
            .await?
            .map(AnyEntity::Asset),
        EntityType::AssetProfile => stores
            .asset_profiles
            .get(who.tenant, AssetProfileId(id.id))
            .await?
            .map(AnyEntity::AssetProfile),
        EntityType::EntityView => stores
            .entity_views
            .get(who.tenant, EntityViewId(id.id))
            .await?
            .map(AnyEntity::EntityView),
        EntityType::Alarm => stores
            .alarms
            .get(who.tenant, AlarmId(id.id))
            .await?
            .map(AnyEntity::Alarm),
        EntityType::CalculatedField => stores
            .calculated_fields
            .get(who.tenant, CalculatedFieldId(id.id))
            .await?
            .map(AnyEntity::CalculatedField),
        EntityType::Dashboard => stores
            .dashboards
            .info(who.tenant, DashboardId(id.id))
            .await?
            .map(AnyEntity::Dashboard),
        EntityType::OtaPackage => stores
            .ota_packages
            .get(who.tenant, OtaPackageId(id.id))
            .await?
            .map(AnyEntity::OtaPackage),
        EntityType::RuleChain => stores
            .rule_chains
            .get(who.tenant, RuleChainId(id.id))
            .await?
            .map(AnyEntity::RuleChain),
        EntityType::RuleNode => stores
            .rule_chains
            .node(who.tenant, RuleNodeId(id.id))
            .await?
            .map(|node| AnyEntity::RuleNode(who.tenant, node)),
        EntityType::DeviceProfile => stores
            .device_profiles
            .get(who.tenant, DeviceProfileId(id.id))
            .await?
            .map(AnyEntity::DeviceProfile),
        _ => None,
    };
    let entity = found.ok_or(AccessError::NotFound(id))?;
    if allows(who, operation, &entity.resource_for(who.customer)) {
        Ok(entity)
    } else {
        Err(AccessError::Denied)
    }
}

/// The queue, where it is one that the messages of the principal's tenant go through.
async fn queue(stores: &EntityStores, who: &Principal, id: QueueId) -> Result<Option<Queue>, StoreError> {
    if let Some(queue) = stores.queues.get(who.tenant, id).await? {
        return Ok(Some(queue));
    }
    if who.authority != Authority::TenantAdmin {
        return Ok(None);
    }
    let owner = stores.queue_owner(who.tenant).await?;
    if !owner.is_null() {
        return Ok(None);
    }
    stores.queues.get(TenantId::NULL, id).await
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
    use super::*;
    use uuid::Uuid;

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
}
