//! Kinds of entities, so that what works the same way with each of them is written once.

use std::fmt;

use fieldline_model::entity::{
    Alarm, Asset, AssetProfile, CalculatedField, Customer, DashboardInfo, Device, DeviceProfile, EntityView,
    OtaPackageInfo, Queue, RuleChain, Tenant, TenantProfile, User,
};
use fieldline_model::{
    AlarmId, AssetId, AssetProfileId, CalculatedFieldId, CustomerId, DashboardId, DeviceId, DeviceProfileId,
    EntityId, EntityType, EntityViewId, OtaPackageId, QueueId, RuleChainId, TenantId, TenantProfileId,
    UserId,
};
use uuid::Uuid;

use super::AnyEntity;

/// A kind of entities with ids of their own.
pub trait EntityKind: Clone + Send + Sync + 'static {
    /// Its typed id.
    type Id: Copy + Default + PartialEq + fmt::Display + Into<EntityId> + Send + Sync + 'static;
    /// What ids name it.
    const TYPE: EntityType;
    /// The typed form of a bare id.
    fn typed(id: Uuid) -> Self::Id;
    /// Its id, where it is set.
    fn id(&self) -> Option<Self::Id>;
    /// It as one of all entities.
    fn into_entity(self) -> AnyEntity;
    /// One of all entities, where it is of this kind.
    fn of(entity: AnyEntity) -> Option<Self>;
}

macro_rules! kinds {
    ($($kind:ident $name:ident $id:ident;)*) => {$(
        impl EntityKind for $kind {
            type Id = $id;
            const TYPE: EntityType = EntityType::$name;

            fn typed(id: Uuid) -> $id {
                $id(id)
            }

            fn id(&self) -> Option<$id> {
                self.id
            }

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
    Alarm Alarm AlarmId;
    Asset Asset AssetId;
    AssetProfile AssetProfile AssetProfileId;
    CalculatedField CalculatedField CalculatedFieldId;
    Customer Customer CustomerId;
    DashboardInfo Dashboard DashboardId;
    Device Device DeviceId;
    DeviceProfile DeviceProfile DeviceProfileId;
    EntityView EntityView EntityViewId;
    OtaPackageInfo OtaPackage OtaPackageId;
    Queue Queue QueueId;
    RuleChain RuleChain RuleChainId;
    Tenant Tenant TenantId;
    TenantProfile TenantProfile TenantProfileId;
    User User UserId;
}
