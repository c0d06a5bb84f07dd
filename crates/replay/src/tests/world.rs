//! Stores with a tenant and its devices, and the parts of an engine over them, as tests of nodes have them.

use std::sync::Arc;

use fieldline_model::{CustomerId, DeviceProfileId, TenantId};
use fieldline_rules::engine::EngineShared;
use fieldline_rules::services::NodeServices;
use fieldline_storage::series::SeriesStore;
use serde_json::json;
use tempfile::TempDir;

#[allow(dead_code, reason = "tests of nodes use all of it")]
#[path = "../../../rules/src/nodes/tests/entities.rs"]
mod entities;
#[allow(dead_code, reason = "tests of nodes use all of it")]
#[path = "../../../rules/src/nodes/tests/platform.rs"]
mod platform;
#[allow(dead_code, reason = "tests of nodes use all of it")]
#[path = "../../../rules/src/nodes/tests/ports.rs"]
mod ports;

pub(crate) use self::platform::{NOW, configuration};
use self::platform::{TestPlatform, packed};
use self::ports::Queue;

/// Stores, and a tenant with a customer.
pub(crate) struct World {
    pub(crate) services: Arc<NodeServices>,
    pub(crate) store: Arc<SeriesStore>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) tenant: TenantId,
    pub(crate) customer: CustomerId,
    pub(crate) profile: DeviceProfileId,
    pub(crate) common: Arc<EngineShared>,
    _dir: TempDir,
}

impl World {
    /// A tenant with a customer and a device profile `default`.
    pub(crate) async fn new() -> Self {
        let platform = TestPlatform::open().await;
        let mut world = Self {
            services: platform.services,
            store: platform.store,
            queue: platform.queue,
            tenant: platform.tenant,
            customer: platform.customer,
            profile: DeviceProfileId::NULL,
            common: platform.shared,
            _dir: platform.dir,
        };
        world.profile = world.device_profile("default", json!(null)).await;
        world
    }
}
