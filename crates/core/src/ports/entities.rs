//! Entities: tenants, customers, users, credentials of devices, and all stores together.
//!
//! Every call about data of a tenant takes the tenant, and behaves as if no other tenant's data existed. Saving is the
//! same everywhere: see [`EntityStore`]. Lists sort texts case-insensitively and absent values first; an unknown sort
//! property is an invalid argument.

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
    MqttClientStore, OtaPackageStore, OtaUpdateStore, ProfileStore, QueueStore, RelationStore, ResourceStore,
    RpcStore, RuleChainStore, SetAsideStore, SettingsStore, SharedSubscriptionStore, SignInStore,
    StoreResult, VersionStore, WidgetTypeStore, WidgetsBundleStore,
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
    pub versions: Arc<dyn VersionStore>,
    pub set_aside: Arc<dyn SetAsideStore>,
    pub settings: Arc<dyn SettingsStore>,
    pub audit: Arc<dyn AuditStore>,
    pub api_keys: Arc<dyn ApiKeyStore>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub mqtt_clients: Arc<dyn MqttClientStore>,
    pub shared_subscriptions: Arc<dyn SharedSubscriptionStore>,
    pub ota_packages: Arc<dyn OtaPackageStore>,
    pub ota_updates: Arc<dyn OtaUpdateStore>,
    pub resources: Arc<dyn ResourceStore>,
    pub widget_types: Arc<dyn WidgetTypeStore>,
    pub widgets_bundles: Arc<dyn WidgetsBundleStore>,
}

impl EntityStores {
    /// Returns the profile of a tenant, or the default profile if it names none; `None` if there is no such tenant.
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

    /// Returns the owner of the queues that the messages of a tenant use: the tenant itself, or the system.
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

    /// Returns the seconds for which a tenant's points are kept if neither the message nor the device profile says
    /// otherwise; 0 for ever.
    ///
    /// # Errors
    /// The store failed.
    pub async fn storage_ttl(&self, tenant: TenantId) -> StoreResult<u32> {
        let profile = self.profile_of(tenant).await?;
        Ok(profile.map_or(0, |profile| profile.storage_ttl_seconds()))
    }
}

/// The saving of a kind of entities. Both methods return the stored entity. A reference to an entity that the tenant
/// does not have is invalid, and a name that is taken is a conflict.
#[async_trait]
pub trait EntityStore<E: StoredEntity>: Send + Sync {
    /// Inserts a new entity under its id. The stored version starts at 1.
    async fn insert(&self, entity: E) -> StoreResult<E>;
    /// Updates an entity. A `version` other than the stored one is a version conflict; without a version, the last
    /// writer wins. Id, tenant and creation time keep their original values.
    async fn update(&self, entity: E) -> StoreResult<E>;
}

/// A store of a kind whose entities each belong to a tenant.
#[async_trait]
pub trait TenantEntityStore<E: StoredEntity>: EntityStore<E> {
    /// The entity, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E>>;
    /// The entities with these ids that the tenant has, in no particular order.
    async fn by_ids(&self, tenant: TenantId, ids: &[E::Id]) -> StoreResult<Vec<E>>;
    /// Deletes an entity with its dependent data; a conflict if others refer to it. Returns whether it existed.
    async fn delete(&self, tenant: TenantId, id: E::Id) -> StoreResult<bool>;
    /// Counts the entities of the kind that the tenant has.
    async fn count(&self, tenant: TenantId) -> StoreResult<u64>;
}

/// Tenants. Titles are unique. Deleting a tenant deletes all of its entities.
#[async_trait]
pub trait TenantStore: EntityStore<Tenant> {
    /// The tenant, if it exists.
    async fn get(&self, id: TenantId) -> StoreResult<Option<Tenant>>;
    /// A page of tenants; text search in the title. Sorts by createdTime, title, name, email, region, country, city,
    /// tenantProfileName.
    async fn list(&self, page: &PageLink) -> StoreResult<PageData<Tenant>>;
    /// The tenants with these ids that exist.
    async fn by_ids(&self, ids: &[TenantId]) -> StoreResult<Vec<Tenant>>;
    /// Deletes the tenant with all of its data; returns whether it existed. The tenant is first noted in
    /// [`HousekeeperStore`]. Then its rows are deleted in batches, so that others can write in between, starting with
    /// the rows that grant access. After an interruption, the caller repeats the call.
    ///
    /// All other stores whose entities may have values or events also note what they delete, in the same transaction.
    async fn delete(&self, id: TenantId) -> StoreResult<bool>;
}

/// Tenant profiles. Names are unique.
#[async_trait]
pub trait TenantProfileStore: EntityStore<TenantProfile> {
    /// The profile, if it exists.
    async fn get(&self, id: TenantProfileId) -> StoreResult<Option<TenantProfile>>;
    /// The default profile.
    async fn default_profile(&self) -> StoreResult<Option<TenantProfile>>;
    /// Makes a profile the only default; returns whether it exists.
    async fn set_default(&self, id: TenantProfileId) -> StoreResult<bool>;
    /// A page of profiles; text search in the name. Sorts by createdTime, id, name, description, isDefault.
    async fn list(&self, page: &PageLink) -> StoreResult<PageData<TenantProfile>>;
    /// Deletes a profile; a conflict while a tenant uses it. Returns whether it existed.
    async fn delete(&self, id: TenantProfileId) -> StoreResult<bool>;
}

/// Customers. Titles are unique in the tenant. A deletion first unassigns the customer's entities, in batches, so that
/// others can write in between; its users are deleted with it, and also noted for the housekeeper.
#[async_trait]
pub trait CustomerStore: TenantEntityStore<Customer> {
    /// The customer with this title.
    async fn by_title(&self, tenant: TenantId, title: &str) -> StoreResult<Option<Customer>>;
    /// The public customer with this id in any tenant, for anonymous access.
    async fn public(&self, id: CustomerId) -> StoreResult<Option<Customer>>;
    /// A page of customers; text search in the title. Sorts by createdTime, title, name, email, country, city.
    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Customer>>;
}

/// The users that a list covers.
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

/// Users and their credentials. System administrators belong to the null tenant. E-mail addresses are unique, ignoring
/// case. Credentials are deleted with their user.
#[async_trait]
pub trait UserStore: TenantEntityStore<User> {
    /// The user with this id in any tenant, for tokens: nothing else in a token is sure to be current.
    async fn by_id(&self, id: UserId) -> StoreResult<Option<User>>;
    /// The user with this e-mail address in any tenant, ignoring case, for logins.
    async fn by_email(&self, email: &str) -> StoreResult<Option<User>>;
    /// A page of users; text search in e-mail and names. Sorts by createdTime, email, name, firstName, lastName.
    async fn list(&self, filter: UserFilter, page: &PageLink) -> StoreResult<PageData<User>>;
    /// The credentials of a user.
    async fn credentials(&self, id: UserId) -> StoreResult<Option<UserCredentials>>;
    /// The credentials with this activation token.
    async fn credentials_by_activate_token(&self, token: &str) -> StoreResult<Option<UserCredentials>>;
    /// The credentials with this token for a password reset.
    async fn credentials_by_reset_token(&self, token: &str) -> StoreResult<Option<UserCredentials>>;
    /// Records a login attempt of a user; returns the number of wrong passwords in a row.
    async fn note_login(&self, id: UserId, login: LoginAttemptResult) -> StoreResult<u32>;
    /// Inserts or replaces the credentials of a user. If they carry a version and the stored one differs, that is a
    /// version conflict.
    async fn save_credentials(&self, credentials: UserCredentials) -> StoreResult<()>;
}

/// The result of a login attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginAttemptResult {
    /// The password was right, at this time in milliseconds; the count of wrong ones is reset.
    Right(i64),
    /// The password was wrong.
    Wrong,
    /// An administrator unlocked the user; the count of wrong passwords is reset.
    Forgiven,
}

/// Device credentials.
#[async_trait]
pub trait DeviceCredentialsStore: Send + Sync {
    /// Replaces the credentials of a device of the tenant; a credentials id in use in any tenant is a conflict.
    /// Versions as in [`EntityStore::update`].
    async fn save(&self, tenant: TenantId, credentials: DeviceCredentials) -> StoreResult<DeviceCredentials>;
    /// The credentials of a device of the tenant.
    async fn get(&self, tenant: TenantId, device: DeviceId) -> StoreResult<Option<DeviceCredentials>>;
    /// The device with these credentials, in any tenant, for devices that connect.
    async fn find(
        &self,
        kind: CredentialsType,
        credentials_id: &str,
    ) -> StoreResult<Option<(Device, DeviceCredentials)>>;
}
