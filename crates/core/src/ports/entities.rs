//! Entities: tenants, customers, users, credentials of devices, and all stores together.
//!
//! Every call about something that belongs to a tenant carries the tenant, and answers as if nothing of another tenant
//! existed. Saving is the same everywhere: see [`TenantStore::save`]. Lists sort texts regardless of case and absent values
//! first; a sort property that a list does not know is an invalid argument.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_model::entity::{
    Asset, AssetProfile, CredentialsType, Customer, Device, DeviceCredentials, Tenant, TenantProfile, User,
    UserCredentials,
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

/// Tenants. Deleting one deletes all entities that belong to it.
#[async_trait]
pub trait TenantStore: Send + Sync {
    /// Inserts (`create`) or updates, and returns what is stored. The `id` must be set. An update with a `version` other
    /// than the stored one is a version conflict; with none, the last writer wins. The stored version counts up from 1.
    /// Id, tenant and creation time stay as they were inserted. A reference to what the tenant does not have is invalid.
    /// A taken title is a conflict. All stores save by these rules.
    async fn save(&self, tenant: Tenant, create: bool) -> StoreResult<Tenant>;
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

/// Tenant profiles.
#[async_trait]
pub trait TenantProfileStore: Send + Sync {
    /// See [`TenantStore::save`]; a taken name is a conflict.
    async fn save(&self, profile: TenantProfile, create: bool) -> StoreResult<TenantProfile>;
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

/// Customers.
#[async_trait]
pub trait CustomerStore: Send + Sync {
    /// See [`TenantStore::save`]; a title taken in the tenant is a conflict.
    async fn save(&self, customer: Customer, create: bool) -> StoreResult<Customer>;
    /// The customer, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: CustomerId) -> StoreResult<Option<Customer>>;
    /// The customer of that title.
    async fn by_title(&self, tenant: TenantId, title: &str) -> StoreResult<Option<Customer>>;
    /// The public customer of that id in any tenant: for those who come without a name.
    async fn public(&self, id: CustomerId) -> StoreResult<Option<Customer>>;
    /// A page of customers; text search in the title. Sorts by createdTime, title, name, email, country, city.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Customer>>;
    /// Those of the customers that the tenant has.
    async fn by_ids(&self, tenant: TenantId, ids: &[CustomerId]) -> StoreResult<Vec<Customer>>;
    /// Unassigns what the customer has, so much at a time that others can write in between, and deletes it with its users, who
    /// are noted for the housekeeper, too; returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: CustomerId) -> StoreResult<bool>;
    /// How many customers the tenant has.
    async fn count(&self, tenant: TenantId) -> StoreResult<u64>;
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

/// Users and how they log in.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// See [`TenantStore::save`]; a taken e-mail address (regardless of case) is a conflict.
    async fn save(&self, user: User, create: bool) -> StoreResult<User>;
    /// The user, if the tenant (the null tenant for system administrators) has it.
    async fn get(&self, tenant: TenantId, id: UserId) -> StoreResult<Option<User>>;
    /// The user of an id in any tenant: for tokens, which carry nothing else that can be trusted to be current.
    async fn by_id(&self, id: UserId) -> StoreResult<Option<User>>;
    /// The user with that e-mail address in any tenant, regardless of case: for logging in.
    async fn by_email(&self, email: &str) -> StoreResult<Option<User>>;
    /// A page of users; text search in e-mail and names. Sorts by createdTime, email, name, firstName, lastName.
    async fn list(&self, filter: UserFilter, page: &PageLink) -> StoreResult<PageData<User>>;
    /// Deletes a user with its credentials; returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: UserId) -> StoreResult<bool>;
    /// How many users the tenant has.
    async fn count(&self, tenant: TenantId) -> StoreResult<u64>;
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
    /// [`TenantStore::save`].
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
