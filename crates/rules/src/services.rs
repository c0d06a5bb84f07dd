//! What nodes work with.

use std::sync::Arc;

use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{
    AttributeStore, DeviceRpc, EntityStores, RestApiResponder, RuleEngine, TimeSeriesStore,
};
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::downlink::DeviceLink;
use fieldline_entities::services::Services as Rules;
use tokio::runtime::Handle;

use crate::external::ExternalNodeSettings;
use crate::originators::OriginatorCache;
use crate::script_pool::ScriptPool;

/// Everything that is the same for all nodes of the program.
#[derive(Clone)]
pub struct NodeServices {
    /// Entities as they are stored.
    pub stores: EntityStores,
    /// The business rules about entities, for nodes that change them.
    pub rules: Rules,
    /// Time series and latest values.
    pub series: Arc<dyn TimeSeriesStore>,
    /// Attributes.
    pub attributes: Arc<dyn AttributeStore>,
    /// Queues messages.
    pub engine: Arc<dyn RuleEngine>,
    /// The way to the sessions of devices.
    pub devices: Arc<dyn DeviceLink>,
    /// Calls devices.
    pub rpc: Arc<dyn DeviceRpc>,
    /// Answers clients of the REST API that wait for a rule chain.
    pub rest_calls: Arc<dyn RestApiResponder>,
    /// Whether devices are alive.
    pub activity: Arc<ActivityTracker>,
    /// How much tenants use, and may use.
    pub usage: Arc<UsageStore>,
    /// What nodes need that send messages out.
    pub external: ExternalNodeSettings,
    /// Runs scripts.
    pub scripts: Arc<ScriptPool>,
    /// Names, profiles and customers of originators.
    pub originators: Arc<OriginatorCache>,
    /// The time.
    pub clock: SharedClock,
    /// Where what waits is run.
    pub runtime: Handle,
    /// Name of this server, for keys and metadata that carry it.
    pub service_id: Arc<str>,
}

impl NodeServices {
    /// Now, milliseconds.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}
