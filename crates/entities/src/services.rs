//! The business rules about entities: what may be saved, what comes with it, and who is told.
//!
//! Services do not ask who is calling: that is [`crate::access`]'s business and is done before. They do keep everything
//! inside the tenant they are given.

mod actions;
mod alarms;
mod api_keys;
mod asset_profiles;
mod assets;
mod assignable;
mod calculated_fields;
mod credentials;
mod customers;
mod dashboards;
mod debug;
mod device_profiles;
mod devices;
mod entity_views;
mod error;
mod gateway_notices;
mod housekeeper;
mod import;
mod names;
mod onboarding;
mod ota_packages;
mod profiles;
mod queues;
mod quota;
mod relations;
mod resources;
mod retention;
mod rule_chains;
mod saving;
mod security;
pub mod seed;
mod shared_subscriptions;
mod tenant_profiles;
mod tenant_transfer;
mod tenants;
mod user_settings;
mod users;
mod validate;
mod versions;
mod widgets;

use std::sync::Arc;

pub use self::debug::longest_debug_minutes;
pub use actions::{EntityAction, EntityActionService};
pub use alarms::{AlarmGate, AlarmService};
pub use api_keys::ApiKeyService;
pub use assignable::{AssignableRules, AssignableService};
pub use calculated_fields::CalculatedFieldService;
pub use customers::CustomerService;
pub use dashboards::DashboardService;
pub use devices::{DeviceService, NewCredentials};
pub use error::{ServiceError, ServiceErrorKind, ServiceResult};
pub use housekeeper::HousekeeperService;
pub(crate) use import::csv;
#[cfg(feature = "fuzzing")]
pub use import::fuzzing;
pub use import::{BulkImportService, ImportContext};
pub use names::{NameConflict, NameSuffix};
pub use onboarding::{
    ClaimDevicesService, ClaimOptions, ClaimOutcome, DeviceOnboarding, DeviceProvisionService,
    GatewayDeviceService, ProvisionRequest, ProvisionResponse, ProvisionStatus,
};
pub use ota_packages::{OtaPackageService, OtaUpload, UploadedFile};
pub use profiles::{ProfileRules, ProfileService};
pub use queues::{MAIN_QUEUE, QueueService};
pub use relations::RelationService;
pub use resources::{
    ImageFields, ImportedResource, PREVIEW_MEMORY, ResourceLinks, ResourceService, ResourceUpload,
    UploadedData, used_links,
};
pub use retention::RpcCleanupService;
pub use rule_chains::{INPUT_NODE, OUTPUT_NODE, RuleChainService};
pub use security::{SecuritySettingsService, check_password, is_expired};
pub use shared_subscriptions::SharedSubscriptionService;
pub use tenant_profiles::{ALLOWED_EGRESS, TenantProfileService};
pub use tenant_transfer::TenantTransfer;
pub use tenants::TenantService;
pub use user_settings::{DashboardAction, UserSettingsService};
pub use users::{ActivationToken, UserService};
pub use widgets::WidgetLibraryService;

use crate::access::Principal;
use crate::broker_access::BrokerAccessService;
use crate::password::PasswordHashPool;
use fieldline_core::clock::SharedClock;
use fieldline_core::events::{EntityChange, EntityEvents};
use fieldline_core::ports::{
    AttributeStore, EntityStores, RestEndpoints, RuleEngine, RuleNodeCatalog, SavedBy, StoreErrorKind,
    StoreResult, TimeSeriesStore,
};
use fieldline_model::EntityKey;
use rand::Rng as _;
use rand::distr::Alphanumeric;

/// What the services work with.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct ServiceContext {
    pub stores: EntityStores,
    pub series: Arc<dyn TimeSeriesStore>,
    pub attributes: Arc<dyn AttributeStore>,
    pub events: Arc<EntityEvents>,
    pub clock: SharedClock,
    pub passwords: PasswordHashPool,
    pub rule_engine: Arc<dyn RuleEngine>,
    pub rule_nodes: Arc<dyn RuleNodeCatalog>,
    pub rest_endpoints: Arc<dyn RestEndpoints>,
}

impl ServiceContext {
    fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    /// The platform itself saves something.
    fn saved_by_platform(&self) -> SavedBy {
        SavedBy {
            at_ms: self.now(),
            user: None,
        }
    }

    fn publish_change(&self, change: EntityChange) {
        self.events.publish(change);
    }

    /// Deletes the calculated fields, relations and alarms of something that is gone. Its values and events go later: it was
    /// noted with its deletion that they are left, see [`HousekeeperService`].
    async fn delete_links(&self, subject: EntityKey) -> StoreResult<()> {
        calculated_fields::delete_of_entity(self, subject.tenant, subject.entity).await?;
        let stores = &self.stores;
        stores
            .relations
            .delete_of(subject.tenant, subject.entity, None)
            .await?;
        stores.alarms.delete_of(subject.tenant, subject.entity).await?;
        Ok(())
    }
}

/// All services.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct Services {
    pub context: Arc<ServiceContext>,
    pub tenants: TenantService,
    pub tenant_profiles: TenantProfileService,
    pub customers: CustomerService,
    pub dashboards: DashboardService,
    pub calculated_fields: CalculatedFieldService,
    pub users: UserService,
    pub api_keys: ApiKeyService,
    pub security: SecuritySettingsService,
    pub user_settings: UserSettingsService,
    pub ota_packages: OtaPackageService,
    pub devices: DeviceService,
    pub rule_chains: RuleChainService,
    pub queues: QueueService,
    pub widgets: WidgetLibraryService,
    pub relations: RelationService,
    pub resources: ResourceService,
    pub alarms: AlarmService,
    pub rpc_cleanup: RpcCleanupService,
    pub imports: BulkImportService,
    pub actions: EntityActionService,
    pub broker_access: BrokerAccessService,
    pub shared_subscriptions: SharedSubscriptionService,
}

impl Services {
    /// Who saves something now, for what keeps versions.
    ///
    /// # Errors
    /// The store failed.
    pub async fn saved_by(&self, who: &Principal) -> ServiceResult<SavedBy> {
        let user = self.context.stores.users.by_id(who.user).await?;
        Ok(SavedBy {
            at_ms: self.context.now(),
            user: user.map(|user| (user.id, user.email)),
        })
    }

    /// Services over one context.
    pub fn new(context: ServiceContext) -> Self {
        let context = Arc::new(context);
        let actions = EntityActionService::new(&context);
        Self {
            tenants: TenantService::new(&context),
            tenant_profiles: TenantProfileService::new(&context),
            customers: CustomerService::new(&context),
            dashboards: DashboardService::new(&context),
            calculated_fields: CalculatedFieldService::new(&context),
            users: UserService::new(&context),
            api_keys: ApiKeyService::new(&context),
            security: SecuritySettingsService::new(&context),
            user_settings: UserSettingsService::new(&context),
            ota_packages: OtaPackageService::new(&context),
            devices: DeviceService::new(&context),
            rule_chains: RuleChainService::new(&context),
            queues: QueueService::new(&context),
            widgets: WidgetLibraryService::new(&context),
            relations: RelationService::new(&context),
            resources: ResourceService::new(&context),
            alarms: AlarmService::new(&context, &actions),
            rpc_cleanup: RpcCleanupService::new(&context),
            imports: BulkImportService::new(&context, &actions),
            broker_access: BrokerAccessService::new(&context),
            shared_subscriptions: SharedSubscriptionService::new(&context),
            actions,
            context,
        }
    }

    /// Rules about a kind of profiles.
    pub fn profiles<P: ProfileRules>(&self) -> ProfileService<P> {
        ProfileService::new(&self.context)
    }

    /// Rules about a kind of entities that customers may have.
    pub fn assignables<E: AssignableRules>(&self) -> AssignableService<E> {
        AssignableService::new(&self.context)
    }

    /// The same where somebody says which tenant may raise alarms.
    #[must_use]
    pub fn with_alarm_gate(mut self, gate: Arc<dyn AlarmGate>) -> Self {
        self.alarms = self.alarms.with_gate(gate);
        self
    }
}

/// Random letters and digits, for tokens and secrets.
fn random_text(length: usize) -> String {
    rand::rng()
        .sample_iter(Alphanumeric)
        .take(length)
        .map(char::from)
        .collect()
}

/// Words a store's conflict for the client.
fn conflict<T>(result: StoreResult<T>, message: &str) -> ServiceResult<T> {
    result.map_err(|error| {
        let taken = error.kind() == StoreErrorKind::Conflict;
        let error = ServiceError::from(error);
        if taken { error.with_message(message) } else { error }
    })
}
