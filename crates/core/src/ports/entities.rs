//! Entities: tenants, customers, users, credentials of devices, and all stores together.
//!
//! Every call about something that belongs to a tenant carries the tenant, and answers as if nothing of another tenant
//! existed. Saving is the same everywhere: see [`EntityStore`]. Lists sort texts regardless of case and absent values
//! first; a sort property that a list does not know is an invalid argument.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_model::entity::{
    Asset, AssetProfile, CredentialsType, Customer, Device, DeviceCredentials, StoredEntity, Tenant,
    TenantProfile, User, UserCredentials,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DeviceId, TenantId, TenantProfileId, UserId};

use super::{
    AlarmStore, ApiKeyStore, AssignableStore, AuditStore, CalculatedFieldStore, DashboardStore,
    DeviceProfileStore, DeviceStore, DeviceTransferStore, EntityViewStore, EventStore, HousekeeperStore,
    OtaPackageStore, OtaUpdateStore, ProfileStore, QueueStore, RelationStore, RpcStore, RuleChainStore,
    SetAsideStore, SettingsStore, SignInStore, StoreResult,
};

/// All entity stores of one database.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct EntityStores {
    pub tenants: Arc<dyn TenantStore>,
    pub tenant_profiles: Arc<dyn TenantProfileStore>,
    pub customers: Arc<dyn CustomerStore>,
    pub calculated_fields: Arc<dyn CalculatedFieldStore>,
    pub users: Arc<dyn UserStore>,
    pub devices: Arc<dyn DeviceStore>,
    pub device_transfers: Arc<dyn DeviceTransferStore>,
    pub device_profiles: Arc<dyn DeviceProfileStore>,
    pub device_credentials: Arc<dyn DeviceCredentialsStore>,
    pub rule_chains: Arc<dyn RuleChainStore>,
    pub queues: Arc<dyn QueueStore>,
    pub events: Arc<dyn EventStore>,
    pub housekeeper: Arc<dyn HousekeeperStore>,
    pub assets: Arc<dyn AssignableStore<Asset>>,
    pub asset_profiles: Arc<dyn ProfileStore<AssetProfile>>,
    pub entity_views: Arc<dyn EntityViewStore>,
    pub relations: Arc<dyn RelationStore>,
    pub alarms: Arc<dyn AlarmStore>,
    pub rpcs: Arc<dyn RpcStore>,
    pub dashboards: Arc<dyn DashboardStore>,
    pub set_aside: Arc<dyn SetAsideStore>,
    pub settings: Arc<dyn SettingsStore>,
    pub audit: Arc<dyn AuditStore>,
    pub api_keys: Arc<dyn ApiKeyStore>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub ota_packages: Arc<dyn OtaPackageStore>,
    pub ota_updates: Arc<dyn OtaUpdateStore>,
}

impl EntityStores {
    /// The profile of a tenant, the default one where it names none; `None` where there is no such tenant.
    ///
    /// # Errors
    /// The store failed.
    pub async fn profile_of(&self, tenant: TenantId) -> StoreResult<Option<TenantProfile>> {
        let Some(tenant) = self.tenants.get(tenant).await? else {
            return Ok(None);
        };
        match tenant.tenant_profile_id {
            Some(profile) => self.tenant_profiles.get(profile).await,
            None => self.tenant_profiles.default_profile().await,
        }
    }

    /// Whose queues the messages of a tenant go through: its own, or the system's.
    ///
    /// # Errors
    /// The store failed.
    pub async fn queue_owner(&self, tenant: TenantId) -> StoreResult<TenantId> {
        if tenant.is_null() {
            return Ok(tenant);
        }
        let profile = self.profile_of(tenant).await?;
        let isolated = profile.is_some_and(|profile| profile.isolated_tb_rule_engine);
        Ok(if isolated { tenant } else { TenantId::NULL })
    }

    /// Seconds that points of a tenant are kept where neither the message nor the device profile says otherwise; 0 for ever.
    ///
    /// # Errors
    /// The store failed.
    pub async fn storage_ttl(&self, tenant: TenantId) -> StoreResult<u32> {
        let profile = self.profile_of(tenant).await?;
        Ok(profile.map_or(0, |profile| profile.storage_ttl_seconds()))
    }
}

/// Entities of a kind, as all stores save them. Both ways return what is stored. A reference to what the tenant does not have
/// is invalid, and a name that is taken is a conflict.
#[async_trait]
pub trait EntityStore<E: StoredEntity>: Send + Sync {
    /// Inserts a new entity under the id that it has. The stored version counts up from 1.
    async fn insert(&self, entity: E) -> StoreResult<E>;
    /// Updates an entity. A `version` other than the stored one is a version conflict; with none, the last writer wins. Id,
    /// tenant and creation time stay as they were inserted.
    async fn update(&self, entity: E) -> StoreResult<E>;
}

/// Entities of a kind, each of which belongs to a tenant.
#[async_trait]
pub trait TenantEntityStore<E: StoredEntity>: EntityStore<E> {
    /// The entity, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E>>;
    /// Those of the entities that the tenant has, in no particular order.
    async fn by_ids(&self, tenant: TenantId, ids: &[E::Id]) -> StoreResult<Vec<E>>;
    /// Deletes an entity with what cannot be without it; a conflict where others refer to it. Returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: E::Id) -> StoreResult<bool>;
    /// How many entities of the kind the tenant has.
    async fn count(&self, tenant: TenantId) -> StoreResult<u64>;
}

/// Tenants. Their titles are unique. Deleting one deletes all entities that belong to it.
#[async_trait]
pub trait TenantStore: EntityStore<Tenant> {
    /// The tenant, if it exists.
    async fn get(&self, id: TenantId) -> StoreResult<Option<Tenant>>;
    /// A page of tenants; text search in the title. Sorts by createdTime, title, name, email, region, country, city,
    /// tenantProfileName.
    async fn list(&self, page: &PageLink) -> StoreResult<PageData<Tenant>>;
    /// Those of the tenants that exist.
    async fn by_ids(&self, ids: &[TenantId]) -> StoreResult<Vec<Tenant>>;
    /// Deletes the tenant with everything that belongs to it; returns whether it existed. The tenant is noted in
    /// [`HousekeeperStore`] first; then its rows go, so many at a time that others can write in between, those by which somebody
    /// could get in before all others. Who was cut off asks again.
    ///
    /// All other stores whose entities may have values or events note what they delete as well, both or neither.
    async fn delete(&self, id: TenantId) -> StoreResult<bool>;
}

/// Tenant profiles. Their names are unique.
#[async_trait]
pub trait TenantProfileStore: EntityStore<TenantProfile> {
    /// The profile, if it exists.
    async fn get(&self, id: TenantProfileId) -> StoreResult<Option<TenantProfile>>;
    /// The default profile.
    async fn default_profile(&self) -> StoreResult<Option<TenantProfile>>;
    /// Makes a profile the only default one; returns whether it exists.
    async fn set_default(&self, id: TenantProfileId) -> StoreResult<bool>;
    /// A page of profiles; text search in the name. Sorts by createdTime, id, name, description, isDefault.
    async fn list(&self, page: &PageLink) -> StoreResult<PageData<TenantProfile>>;
    /// Deletes a profile; a conflict while a tenant has it. Returns whether it existed.
    async fn delete(&self, id: TenantProfileId) -> StoreResult<bool>;
}

/// Customers. Their titles are unique in the tenant. Deleting one first unassigns what it has, so much at a time that others can
/// write in between; its users go with it, and are noted for the housekeeper, too.
#[async_trait]
pub trait CustomerStore: TenantEntityStore<Customer> {
    /// The customer of that title.
    async fn by_title(&self, tenant: TenantId, title: &str) -> StoreResult<Option<Customer>>;
    /// The public customer of that id in any tenant: for those who come without a name.
    async fn public(&self, id: CustomerId) -> StoreResult<Option<Customer>>;
    /// A page of customers; text search in the title. Sorts by createdTime, title, name, email, country, city.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Customer>>;
}

/// Which users a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserFilter {
    /// The administrators of a tenant.
    TenantAdmins(TenantId),
    /// The users of a customer.
    CustomerUsers(TenantId, CustomerId),
    /// The administrators of a tenant, and the users of a customer.
    AdminsAndCustomerUsers(TenantId, CustomerId),
    /// All users of a tenant.
    OfTenant(TenantId),
    /// The system administrators.
    SysAdmins,
}

/// Users and how they log in. System administrators are those of the null tenant. E-mail addresses are unique, regardless of
/// case. Credentials go with their user.
#[async_trait]
pub trait UserStore: TenantEntityStore<User> {
    /// The user of an id in any tenant: for tokens, which carry nothing else that can be trusted to be current.
    async fn by_id(&self, id: UserId) -> StoreResult<Option<User>>;
    /// The user with that e-mail address in any tenant, regardless of case: for logging in.
    async fn by_email(&self, email: &str) -> StoreResult<Option<User>>;
    /// A page of users; text search in e-mail and names. Sorts by createdTime, email, name, firstName, lastName.
    async fn list(&self, filter: UserFilter, page: &PageLink) -> StoreResult<PageData<User>>;
    /// How a user logs in.
    async fn credentials(&self, id: UserId) -> StoreResult<Option<UserCredentials>>;
    /// The credentials that wait for an activation token.
    async fn credentials_by_activate_token(&self, token: &str) -> StoreResult<Option<UserCredentials>>;
    /// The credentials that wait for a token to reset the password.
    async fn credentials_by_reset_token(&self, token: &str) -> StoreResult<Option<UserCredentials>>;
    /// Notes that a user has come, or has tried to; returns how many wrong passwords there were in a row.
    async fn note_login(&self, id: UserId, login: LoginAttemptResult) -> StoreResult<u32>;
    /// Inserts or replaces how a user logs in, unless it carries a version and the stored one is another: that is a
    /// version conflict.
    async fn save_credentials(&self, credentials: UserCredentials) -> StoreResult<()>;
}

/// What came of somebody's coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginAttemptResult {
    /// The password was right, at this time in milliseconds: wrong ones are forgotten.
    Right(i64),
    /// The password was wrong.
    Wrong,
    /// An administrator lets the user in again: wrong passwords are forgotten.
    Forgiven,
}

/// Device credentials.
#[async_trait]
pub trait DeviceCredentialsStore: Send + Sync {
    /// Replaces the credentials of a device of the tenant; a credentials id taken anywhere is a conflict. Versions as in
    /// [`EntityStore::update`].
    async fn save(&self, tenant: TenantId, credentials: DeviceCredentials) -> StoreResult<DeviceCredentials>;
    /// The credentials of a device of the tenant.
    async fn get(&self, tenant: TenantId, device: DeviceId) -> StoreResult<Option<DeviceCredentials>>;
    /// The device that has these credentials, in any tenant: for devices that connect.
    async fn find(
        &self,
        kind: CredentialsType,
        credentials_id: &str,
    ) -> StoreResult<Option<(Device, DeviceCredentials)>>;
}
