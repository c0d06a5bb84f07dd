//! Entities that may be assigned to customers: devices, assets, entity views.

use async_trait::async_trait;
use fieldline_model::entity::{
    Asset, AssetInfo, Device, DeviceCredentials, DeviceInfo, EntityView, EntityViewInfo,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{
    AssetProfileId, CustomerId, DeviceId, DeviceProfileId, EntityId, EntityType, TenantId,
};

use super::{EntityStores, StoreResult, TenantEntityStore};
use crate::any_entity::{AnyEntity, EntityKind};

/// A kind of entities with a name of their own in the tenant, each of which may be assigned to a customer.
pub trait AssignableEntity: EntityKind {
    /// It with what lists show beside it.
    type AssignableInfo: Send + 'static;
    /// Which of them a list holds.
    type AssignableFilter: Default + Send + Sync + 'static;
    /// What is imported along with it; a device's credentials from now on, where those it has do not stay.
    type ImportExtra: Clone + Default + PartialEq + Send + Sync + 'static;
    /// What it shares with the other kinds.
    fn fields(&self) -> AssignableFields<'_>;
    /// The same, to be changed.
    fn fields_mut(&mut self) -> AssignableFieldsMut<'_>;
    /// It without what lists show beside it.
    fn of_info(info: Self::AssignableInfo) -> Self;
    /// Where they are kept.
    fn store(stores: &EntityStores) -> &dyn AssignableStore<Self>;
}

/// What kinds that may be assigned share.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct AssignableFields<'e> {
    pub created_time: i64,
    pub tenant: TenantId,
    pub customer: CustomerId,
    pub name: &'e str,
    pub entity_type: &'e str,
}

/// What kinds that may be assigned share, to be changed.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct AssignableFieldsMut<'e> {
    pub tenant: &'e mut TenantId,
    pub customer: &'e mut CustomerId,
    pub name: &'e mut String,
}

macro_rules! assignable {
    ($($kind:ident $info:ident $field:ident $entity_type:ident $filter:ident $along:ty, $store:ident;)*) => {
        /// The entity, if the tenant has it and its kind may be assigned.
        ///
        /// # Errors
        /// The store failed.
        pub async fn find_assignable(
            stores: &EntityStores,
            tenant: TenantId,
            entity: EntityId,
        ) -> StoreResult<Option<AnyEntity>> {
            Ok(match entity.entity_type {
                $(EntityType::$kind => stores.$store.get(tenant, entity.id.into()).await?.map(AnyEntity::$kind),)*
                _ => None,
            })
        }

        /// The entity of a name, if the tenant has it and its kind may be assigned.
        ///
        /// # Errors
        /// The store failed.
        pub async fn find_assignable_by_name(
            stores: &EntityStores,
            tenant: TenantId,
            entity_type: EntityType,
            name: &str,
        ) -> StoreResult<Option<AnyEntity>> {
            Ok(match entity_type {
                $(EntityType::$kind => stores.$store.by_name(tenant, name).await?.map(AnyEntity::$kind),)*
                _ => None,
            })
        }

        /// Whether entities of a type may be assigned to customers, one at a time.
        pub const fn is_assignable(entity_type: EntityType) -> bool {
            matches!(entity_type, $(EntityType::$kind)|*)
        }

        $(
        impl AssignableEntity for $kind {
            type AssignableInfo = $info;
            type AssignableFilter = $filter;
            type ImportExtra = $along;

            fn fields(&self) -> AssignableFields<'_> {
                AssignableFields {
                    created_time: self.created_time,
                    tenant: self.tenant_id,
                    customer: self.customer_id,
                    name: &self.name,
                    entity_type: &self.$entity_type,
                }
            }

            fn fields_mut(&mut self) -> AssignableFieldsMut<'_> {
                AssignableFieldsMut {
                    tenant: &mut self.tenant_id,
                    customer: &mut self.customer_id,
                    name: &mut self.name,
                }
            }

            fn of_info(info: $info) -> Self {
                info.$field
            }

            fn store(stores: &EntityStores) -> &dyn AssignableStore<Self> {
                &*stores.$store
            }
        }
        )*
    };
}

assignable! {
    Device DeviceInfo device device_type DeviceFilter Option<DeviceCredentials>, devices;
    Asset AssetInfo asset asset_type AssetFilter (), assets;
    EntityView EntityViewInfo view view_type EntityViewFilter (), entity_views;
}

/// Which devices a list holds; absent conditions hold for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Of this type (name of the profile).
    pub device_type: Option<String>,
    /// Of this profile.
    pub profile: Option<DeviceProfileId>,
    /// Active, or inactive.
    pub active: Option<bool>,
}

/// Which assets a list holds; absent conditions hold for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AssetFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Of this type (name of the profile).
    pub asset_type: Option<String>,
    /// Of this profile.
    pub profile: Option<AssetProfileId>,
}

/// Which views a list holds; absent conditions hold for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityViewFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// Of this type.
    pub view_type: Option<String>,
    /// Of this device or asset.
    pub entity: Option<EntityId>,
}

/// An entity among many that are stored at once. What goes along with it may be secret, hence no `Debug`.
#[derive(Clone, PartialEq)]
pub struct ImportRow<E: AssignableEntity> {
    /// The entity.
    pub entity: E,
    /// Whether it is new.
    pub create: bool,
    /// See [`AssignableEntity::ImportExtra`].
    pub along: E::ImportExtra,
}

/// What belongs to imported entities and is kept elsewhere.
#[async_trait]
pub trait ImportValueStore: Send + Sync {
    /// Saves what belongs to these: durable once this returns. Repeating it is harmless.
    async fn save(&self, entities: &[EntityId]) -> StoreResult<()>;
}

/// Nothing belongs to them.
#[async_trait]
impl ImportValueStore for () {
    async fn save(&self, _: &[EntityId]) -> StoreResult<()> {
        Ok(())
    }
}

/// Entities of a kind that may be assigned to customers. Their names are unique in the tenant. The profile of a device or an
/// asset must be set, and the type that is returned is always its name; so must the entity that a view shows. The credentials
/// of a device go with it.
#[async_trait]
pub trait AssignableStore<E: AssignableEntity>: TenantEntityStore<E> {
    /// The entity with what lists show beside it.
    async fn info(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E::AssignableInfo>>;
    /// The entity of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<E>>;
    /// Those of the entities of these names that the tenant has.
    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<E>>;
    /// Creates and updates many entities, in as few transactions as possible; an answer for each, in their order. One that
    /// cannot be stored changes nothing about the others. The values of new ones that can are saved before anybody sees them;
    /// those of the others are left to the caller. Where the store itself fails, or that of the values, those that are not
    /// stored by then are answered with it; it fails as a whole only where nothing is stored.
    async fn import(
        &self,
        rows: Vec<ImportRow<E>>,
        values: &dyn ImportValueStore,
    ) -> StoreResult<Vec<StoreResult<E>>>;
    /// A page of entities; text search in name, type, customer title and, where there is one, label. Sorts by
    /// createdTime, name, type, customerTitle; devices and assets by label and by deviceProfileName or assetProfileName,
    /// too; devices by active.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &E::AssignableFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<E::AssignableInfo>>;
}

/// Devices.
#[async_trait]
pub trait DeviceStore: AssignableStore<Device> {
    /// Inserts a new device and its credentials, both or neither.
    async fn create(&self, device: Device, credentials: DeviceCredentials) -> StoreResult<Device>;
    /// Records which devices have become active or inactive.
    async fn set_active(&self, changes: &[(DeviceId, bool)]) -> StoreResult<()>;
    /// The first `limit` active devices of a tenant, in the order of creation time and id, after the given one.
    async fn active_after(
        &self,
        tenant: TenantId,
        after: Option<(i64, DeviceId)>,
        limit: u32,
    ) -> StoreResult<Vec<(i64, DeviceId)>>;
}

/// Entity views.
#[async_trait]
pub trait EntityViewStore: AssignableStore<EntityView> {
    /// The types that the tenant's views have, in order; at most 1,000.
    async fn types(&self, tenant: TenantId) -> StoreResult<Vec<String>>;
}
