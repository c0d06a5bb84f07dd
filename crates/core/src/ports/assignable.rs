//! Entities that can be assigned to customers: devices, assets, entity views.

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

/// A kind of entities that can be assigned to a customer and whose names are unique in the tenant.
pub trait AssignableEntity: EntityKind {
    /// The entity with the additional fields of lists.
    type AssignableInfo: Send + 'static;
    /// The filter of lists.
    type AssignableFilter: Default + Send + Sync + 'static;
    /// Data imported with the entity; for a device, its new credentials, unless it keeps the present ones.
    type ImportExtra: Clone + Default + PartialEq + Send + Sync + 'static;
    /// The fields that all assignable kinds share.
    fn fields(&self) -> AssignableFields<'_>;
    /// The same fields, mutable.
    fn fields_mut(&mut self) -> AssignableFieldsMut<'_>;
    /// Extracts the entity from the form of lists.
    fn of_info(info: Self::AssignableInfo) -> Self;
    /// The store of the kind.
    fn store(stores: &EntityStores) -> &dyn AssignableStore<Self>;
}

/// The fields that all assignable kinds share.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct AssignableFields<'e> {
    pub created_time: i64,
    pub tenant: TenantId,
    pub customer: CustomerId,
    pub name: &'e str,
    pub entity_type: &'e str,
}

/// The fields that all assignable kinds share, mutable.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct AssignableFieldsMut<'e> {
    pub tenant: &'e mut TenantId,
    pub customer: &'e mut CustomerId,
    pub name: &'e mut String,
}

macro_rules! assignable {
    ($($kind:ident $info:ident $field:ident $entity_type:ident $filter:ident $along:ty, $store:ident;)*) => {
        /// The entity, if the tenant has it and its kind is assignable.
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

        /// The entity with this name, if the tenant has it and its kind is assignable.
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

        /// Returns whether entities of a type can be assigned to customers, one at a time.
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

/// The conditions of a list of devices; absent conditions match all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// With this type (name of the profile).
    pub device_type: Option<String>,
    /// With this profile.
    pub profile: Option<DeviceProfileId>,
    /// Active, or inactive.
    pub active: Option<bool>,
}

/// The conditions of a list of assets; absent conditions match all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AssetFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// With this type (name of the profile).
    pub asset_type: Option<String>,
    /// With this profile.
    pub profile: Option<AssetProfileId>,
}

/// The conditions of a list of entity views; absent conditions match all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityViewFilter {
    /// Assigned to this customer.
    pub customer: Option<CustomerId>,
    /// With this type.
    pub view_type: Option<String>,
    /// Showing this device or asset.
    pub entity: Option<EntityId>,
}

/// An entity of a bulk import. The extra data may be secret, hence no `Debug`.
#[derive(Clone, PartialEq)]
pub struct ImportRow<E: AssignableEntity> {
    /// The entity.
    pub entity: E,
    /// Whether it is new.
    pub create: bool,
    /// See [`AssignableEntity::ImportExtra`].
    pub along: E::ImportExtra,
}

/// Saves values of imported entities that are kept outside the entity store.
#[async_trait]
pub trait ImportValueStore: Send + Sync {
    /// Saves the values of these entities, durable when it returns. Repeating it is harmless.
    async fn save(&self, entities: &[EntityId]) -> StoreResult<()>;
}

/// For imports without values.
#[async_trait]
impl ImportValueStore for () {
    async fn save(&self, _: &[EntityId]) -> StoreResult<()> {
        Ok(())
    }
}

/// A store of an assignable kind. Names are unique in the tenant. The profile of a device or an asset must be set, and
/// its returned type is always the name of the profile; the entity that a view shows must be set, too. The credentials
/// of a device are deleted with it.
#[async_trait]
pub trait AssignableStore<E: AssignableEntity>: TenantEntityStore<E> {
    /// The entity with the additional fields of lists.
    async fn info(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E::AssignableInfo>>;
    /// The entity with this name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<E>>;
    /// The entities with these names that the tenant has.
    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<E>>;
    /// Creates and updates many entities in as few transactions as possible; returns a result for each, in order. An
    /// entity that cannot be stored does not affect the others. The values of new entities that can be stored are saved
    /// before the entities become visible; those of updated entities are left to the caller. If the store or the value
    /// store fails, the entities not stored by then get that error; the call as a whole fails only if nothing was
    /// stored.
    async fn import(
        &self,
        rows: Vec<ImportRow<E>>,
        values: &dyn ImportValueStore,
    ) -> StoreResult<Vec<StoreResult<E>>>;
    /// A page of entities; text search in name, type, customer title and, if there is one, label. Sorts by createdTime,
    /// name, type, customerTitle; devices and assets also by label and by deviceProfileName or assetProfileName;
    /// devices also by active.
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
    /// Stores the changed activity states of devices.
    async fn set_active(&self, changes: &[(DeviceId, bool)]) -> StoreResult<()>;
    /// The first `limit` active devices of a tenant after the given one, in the order of creation time and id.
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
    /// The types of the tenant's views, in order; at most 1,000.
    async fn types(&self, tenant: TenantId) -> StoreResult<Vec<String>>;
}
