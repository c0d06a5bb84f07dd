//! The business rules about entities: what may be saved, what comes with it, and who is told.
//!
//! Services do not ask who is calling: that is [`crate::access`]'s business and is done before. They do keep everything
//! inside the tenant they are given.

mod actions;
mod alarms;
mod api_keys;
mod asset_profiles;
mod assets;
mod assigned;
mod calculated_fields;
mod credentials;
mod customers;
mod dashboards;
mod debug;
mod device_moves;
mod device_profiles;
mod devices;
mod entity_views;
mod error;
mod gateway_notices;
mod import;
mod leftovers;
mod limits;
mod names;
mod onboarding;
mod ota_packages;
mod profiles;
mod queues;
mod relations;
mod retention;
mod rule_chains;
mod security;
pub mod seed;
mod tenant_profiles;
mod tenants;
mod user_settings;
mod users;
mod validate;

use std::sync::Arc;

pub use actions::Actions;
pub use alarms::{AlarmGate, Alarms};
pub use api_keys::ApiKeys;
pub use asset_profiles::AssetProfiles;
pub use assets::Assets;
pub use assigned::AssignedService;
pub use calculated_fields::CalculatedFields;
pub use customers::Customers;
pub use dashboards::Dashboards;
pub use device_moves::DeviceMoves;
pub use device_profiles::DeviceProfiles;
pub use devices::{Devices, NewCredentials};
pub use entity_views::EntityViews;
pub use error::{ServiceError, ServiceErrorKind, ServiceResult};
#[cfg(feature = "fuzzing")]
pub use import::fuzzing;
pub use import::{ImportLinks, Imports};
pub use leftovers::Leftovers;
pub use names::{NameConflict, Suffix};
pub use onboarding::{
    ClaimOptions, Claimed, Claims, Gateways, Onboarding, ProvisionRequest, ProvisionStatus, Provisioned,
    Provisioning,
};
pub use ota_packages::{OtaPackages, OtaUpload, UploadedFile};
pub use profiles::ProfileService;
pub(crate) use queues::owner_of;
pub use queues::{MAIN_QUEUE, Queues};
pub use relations::Relations;
pub use retention::StoredCalls;
pub use rule_chains::{INPUT_NODE, OUTPUT_NODE, RuleChains};
pub use security::{Security, check_password, is_expired};
pub use tenant_profiles::{ALLOWED_EGRESS, TenantProfiles};
pub use tenants::Tenants;
pub use user_settings::{DashboardAction, UserSettings};
pub use users::{Activation, Users};

use crate::clock::SharedClock;
use crate::events::{EntityChange, EntityEvents};
use crate::password::Passwords;
use crate::ports::{
    AttributeStore, EntityStores, RuleEngine, RuleNodeCatalog, StoreErrorKind, StoreResult, TimeSeriesStore,
};
use fieldline_model::{Subject, TenantId};
use rand::Rng as _;
use rand::distr::Alphanumeric;

/// What the services work with.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct Context {
    pub stores: EntityStores,
    pub series: Arc<dyn TimeSeriesStore>,
    pub attributes: Arc<dyn AttributeStore>,
    pub events: Arc<EntityEvents>,
    pub clock: SharedClock,
    pub passwords: Passwords,
    pub rule_engine: Arc<dyn RuleEngine>,
    pub rule_nodes: Arc<dyn RuleNodeCatalog>,
}

impl Context {
    fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    fn tell(&self, change: EntityChange) {
        self.events.publish(change);
    }

    /// Deletes the calculated fields, relations and alarms of something that is gone. Its values and events go later: it was
    /// noted with its deletion that they are left, see [`Leftovers`].
    async fn forget_links(&self, subject: Subject) -> StoreResult<()> {
        calculated_fields::forget(self, subject.tenant, subject.entity).await?;
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
    pub tenants: Tenants,
    pub tenant_profiles: TenantProfiles,
    pub customers: Customers,
    pub dashboards: Dashboards,
    pub calculated_fields: CalculatedFields,
    pub users: Users,
    pub api_keys: ApiKeys,
    pub security: Security,
    pub user_settings: UserSettings,
    pub ota_packages: OtaPackages,
    pub devices: Devices,
    pub device_profiles: DeviceProfiles,
    pub rule_chains: RuleChains,
    pub queues: Queues,
    pub assets: Assets,
    pub asset_profiles: AssetProfiles,
    pub entity_views: EntityViews,
    pub relations: Relations,
    pub alarms: Alarms,
    pub calls: StoredCalls,
    pub imports: Imports,
    pub actions: Actions,
}

impl Services {
    /// Services over one context.
    pub fn new(context: Context) -> Self {
        let context = Arc::new(context);
        let actions = Actions::new(&context);
        Self {
            tenants: Tenants::new(&context),
            tenant_profiles: TenantProfiles::new(&context),
            customers: Customers::new(&context),
            dashboards: Dashboards::new(&context),
            calculated_fields: CalculatedFields::new(&context),
            users: Users::new(&context),
            api_keys: ApiKeys::new(&context),
            security: Security::new(&context),
            user_settings: UserSettings::new(&context),
            ota_packages: OtaPackages::new(&context),
            devices: Devices::new(&context),
            device_profiles: DeviceProfiles::new(&context),
            rule_chains: RuleChains::new(&context),
            queues: Queues::new(&context),
            assets: Assets::new(&context),
            asset_profiles: AssetProfiles::new(&context),
            entity_views: EntityViews::new(&context),
            relations: Relations::new(&context),
            alarms: Alarms::new(&context, &actions),
            calls: StoredCalls::new(&context),
            imports: Imports::new(&context, &actions),
            actions,
        }
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

/// Seconds that points are kept where neither the message nor the device profile says otherwise; 0 for ever.
pub(crate) async fn tenant_ttl(stores: &EntityStores, tenant: TenantId) -> StoreResult<u32> {
    let profile = stores.profile_of(tenant).await?;
    Ok(profile.map_or(0, |profile| profile.storage_ttl_seconds()))
}

/// Words a store's conflict for the client.
fn conflict<T>(result: StoreResult<T>, message: &str) -> ServiceResult<T> {
    result.map_err(|error| {
        let taken = error.kind() == StoreErrorKind::Conflict;
        let error = ServiceError::from(error);
        if taken { error.with_message(message) } else { error }
    })
}
