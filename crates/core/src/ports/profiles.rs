//! Profiles of devices and assets.

use async_trait::async_trait;
use fieldline_model::TenantId;
use fieldline_model::entity::{AssetProfile, AssetProfileInfo, DeviceProfile, DeviceProfileInfo};
use fieldline_model::page::{PageData, PageLink};

use super::{EntityStores, StoreResult, TenantEntityStore};
use crate::any_entity::EntityKind;

/// A kind of profiles: settings shared by entities of one type. The name of the profile is that type; one profile is
/// the tenant's default.
pub trait EntityProfile: EntityKind {
    /// The short form.
    type ProfileInfo: From<Self> + Send + 'static;
    /// The name: the type of the entities with this profile.
    fn name(&self) -> &str;
    /// Returns whether entities without a type get this profile.
    fn is_default(&self) -> bool;
    /// The fields that all kinds of profiles share, mutable.
    fn fields_mut(&mut self) -> ProfileFieldsMut<'_>;
    /// The store of the kind.
    fn store(stores: &EntityStores) -> &dyn ProfileStore<Self>;
}

/// The fields that all kinds of profiles share, mutable.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct ProfileFieldsMut<'p> {
    pub tenant: &'p mut TenantId,
    pub is_default: &'p mut bool,
}

macro_rules! profiles {
    ($($kind:ident $info:ident $store:ident;)*) => {$(
        impl EntityProfile for $kind {
            type ProfileInfo = $info;

            fn name(&self) -> &str {
                &self.name
            }

            fn is_default(&self) -> bool {
                self.is_default
            }

            fn fields_mut(&mut self) -> ProfileFieldsMut<'_> {
                ProfileFieldsMut {
                    tenant: &mut self.tenant_id,
                    is_default: &mut self.is_default,
                }
            }

            fn store(stores: &EntityStores) -> &dyn ProfileStore<Self> {
                &*stores.$store
            }
        }
    )*};
}

profiles! {
    DeviceProfile DeviceProfileInfo device_profiles;
    AssetProfile AssetProfileInfo asset_profiles;
}

/// Device profiles.
#[async_trait]
pub trait DeviceProfileStore: ProfileStore<DeviceProfile> {
    /// The profile with that provisioning key, in any tenant, for devices that provision themselves.
    async fn by_provision_key(&self, key: &str) -> StoreResult<Option<DeviceProfile>>;
}

/// A store of a kind of profiles. Names are unique in the tenant, provisioning keys globally. A profile used by an
/// entity cannot be deleted.
#[async_trait]
pub trait ProfileStore<P: EntityProfile>: TenantEntityStore<P> {
    /// The profile of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<P>>;
    /// The default profile of the tenant.
    async fn default_profile(&self, tenant: TenantId) -> StoreResult<Option<P>>;
    /// Makes a profile the only default of its tenant; returns whether it exists.
    async fn set_default(&self, tenant: TenantId, id: P::Id) -> StoreResult<bool>;
    /// Ids and names of all profiles of the tenant, or only of those in use by an entity, in no particular order.
    async fn names(&self, tenant: TenantId, in_use_only: bool) -> StoreResult<Vec<(P::Id, String)>>;
    /// A page of profiles; text search in the name. Sorts by createdTime, name, description, isDefault; device profiles
    /// by type and transportType, too.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<P>>;
}
