//! Profiles of devices and assets.

use async_trait::async_trait;
use fieldline_model::TenantId;
use fieldline_model::entity::{AssetProfile, AssetProfileInfo, DeviceProfile, DeviceProfileInfo};
use fieldline_model::page::{PageData, PageLink};

use super::{EntityStores, StoreResult, TenantEntityStore};
use crate::any_entity::EntityKind;

/// A kind of profiles: what entities of one type share. Its name is their type; one of them is the tenant's default.
pub trait EntityProfile: EntityKind {
    /// Its short form.
    type ProfileInfo: From<Self> + Send + 'static;
    /// What it is called: the type of the entities that have it.
    fn name(&self) -> &str;
    /// Whether entities without a type get it.
    fn is_default(&self) -> bool;
    /// What all kinds of profiles have, to be changed.
    fn fields_mut(&mut self) -> ProfileFieldsMut<'_>;
    /// Where they are kept.
    fn store(stores: &EntityStores) -> &dyn ProfileStore<Self>;
}

/// What all kinds of profiles have, to be changed.
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
    /// The profile with that provisioning key, in any tenant: for devices that introduce themselves.
    async fn by_provision_key(&self, key: &str) -> StoreResult<Option<DeviceProfile>>;
}

/// Profiles of a kind. Their names are unique in the tenant, provisioning keys everywhere. One that an entity has cannot be
/// deleted.
#[async_trait]
pub trait ProfileStore<P: EntityProfile>: TenantEntityStore<P> {
    /// The profile of that name.
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<P>>;
    /// The default profile of the tenant.
    async fn default_profile(&self, tenant: TenantId) -> StoreResult<Option<P>>;
    /// Makes a profile the only default one of its tenant; returns whether it exists.
    async fn set_default(&self, tenant: TenantId, id: P::Id) -> StoreResult<bool>;
    /// Ids and names of all profiles of the tenant, or of those that an entity has, in no particular order.
    async fn names(&self, tenant: TenantId, in_use_only: bool) -> StoreResult<Vec<(P::Id, String)>>;
    /// A page of profiles; text search in the name. Sorts by createdTime, name, description, isDefault; device profiles
    /// by type and transportType, too.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<P>>;
}
