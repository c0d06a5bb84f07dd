//! Kinds of entities, so that what works the same way with each of them is written once.

use std::fmt;

use fieldline_model::entity::{
    Alarm, Asset, AssetProfile, CalculatedField, Customer, DashboardInfo, Device, DeviceProfile, EntityView,
    OtaPackageInfo, Queue, RuleChain, StoredEntity, Tenant, TenantProfile, User,
};
use fieldline_model::{EntityId, EntityType};
use uuid::Uuid;

use super::AnyEntity;

/// A kind of entities with ids of their own.
pub trait EntityKind:
    StoredEntity<Id: fmt::Display + From<Uuid> + Into<EntityId>> + Clone + Send + Sync + 'static
{
    /// What ids name it.
    const TYPE: EntityType;
    /// The typed form of a bare id.
    fn typed(id: Uuid) -> Self::Id {
        id.into()
    }
    /// It as one of all entities.
    fn into_entity(self) -> AnyEntity;
    /// One of all entities, where it is of this kind.
    fn of(entity: AnyEntity) -> Option<Self>;
}

macro_rules! kinds {
    ($($kind:ident $name:ident;)*) => {$(
        impl EntityKind for $kind {
            const TYPE: EntityType = EntityType::$name;

            fn into_entity(self) -> AnyEntity {
                AnyEntity::$name(self)
            }

            fn of(entity: AnyEntity) -> Option<Self> {
                match entity {
                    AnyEntity::$name(found) => Some(found),
                    _ => None,
                }
            }
        }
    )*};
}

kinds! {
    Alarm Alarm;
    Asset Asset;
    AssetProfile AssetProfile;
    CalculatedField CalculatedField;
    Customer Customer;
    DashboardInfo Dashboard;
    Device Device;
    DeviceProfile DeviceProfile;
    EntityView EntityView;
    OtaPackageInfo OtaPackage;
    Queue Queue;
    RuleChain RuleChain;
    Tenant Tenant;
    TenantProfile TenantProfile;
    User User;
}
