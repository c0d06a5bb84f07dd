//! The business rules about entities: what may be saved, what comes with it, and who is told.
//!
//! Services do not ask who is calling: that is [`crate::access`]'s business and is done before. They do keep everything
//! inside the tenant they are given.

mod credentials;
mod customers;
mod device_profiles;
mod devices;
mod error;
mod limits;
mod names;
pub mod seed;
mod tenant_profiles;
mod tenants;
mod users;
mod validate;

use std::sync::Arc;

pub use customers::Customers;
pub use device_profiles::DeviceProfiles;
pub use devices::{Devices, NewCredentials};
pub use error::{ServiceError, ServiceErrorKind, ServiceResult};
pub use names::{NameConflict, Suffix};
pub use tenant_profiles::TenantProfiles;
pub use tenants::Tenants;
pub use users::{ACTIVATION_TTL_MS, Activation, Users};
pub use validate::check_password;

use crate::clock::SharedClock;
use crate::events::{EntityChange, EntityEvents};
use crate::password::Passwords;
use crate::ports::{AttributeStore, EntityStores, StoreErrorKind, StoreResult, TimeSeriesStore};
use fieldline_model::Subject;
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
}

impl Context {
    fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    fn tell(&self, change: EntityChange) {
        self.events.publish(change);
    }

    /// Deletes every series and attribute of something that is about to go, or gone.
    async fn forget_data(&self, subject: Subject) -> StoreResult<()> {
        self.series.delete_subject(subject).await?;
        self.attributes.delete_subject(subject).await
    }
}

/// All services.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct Services {
    pub tenants: Tenants,
    pub tenant_profiles: TenantProfiles,
    pub customers: Customers,
    pub users: Users,
    pub devices: Devices,
    pub device_profiles: DeviceProfiles,
}

impl Services {
    /// Services over one context.
    pub fn new(context: Context) -> Self {
        let context = Arc::new(context);
        Self {
            tenants: Tenants::new(&context),
            tenant_profiles: TenantProfiles::new(&context),
            customers: Customers::new(&context),
            users: Users::new(&context),
            devices: Devices::new(&context),
            device_profiles: DeviceProfiles::new(&context),
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

/// Words a store's conflict for the client.
fn conflict<T>(result: StoreResult<T>, message: &str) -> ServiceResult<T> {
    result.map_err(|error| {
        let taken = error.kind() == StoreErrorKind::Conflict;
        let error = ServiceError::from(error);
        if taken { error.with_message(message) } else { error }
    })
}
