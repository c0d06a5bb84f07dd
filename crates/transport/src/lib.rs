//! Device servers: MQTT, HTTP and CoAP. They authenticate a device, turn its payload into journal records, and acknowledge when
//! these are durable.

pub mod coap;
pub mod http;
mod intake;
mod metrics;
pub mod mqtt;
pub mod mqtts;
mod payload;
pub mod proxies;
mod x509;

use std::sync::Arc;

use fieldline_core::address_guard::AddressGuard;
use fieldline_core::clock::SharedClock;
use fieldline_core::ingest::QueueProducer;
use fieldline_core::ports::AttributeStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::directory::DeviceDirectory;
use fieldline_devices::ota::OtaDownloads;
use fieldline_devices::rpc::DeviceRpcService;
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::services::DeviceOnboarding;
use fieldline_model::json::JsonRules;

pub use self::metrics::describe as describe_metrics;

/// What all device servers of a node share.
pub struct TransportServices {
    /// Who the devices are.
    pub directory: Arc<DeviceDirectory>,
    /// Which addresses are turned away.
    pub guard: Arc<AddressGuard>,
    /// Who is connected.
    pub sessions: Arc<SessionRegistry>,
    /// Calls to devices and by devices.
    pub rpc: Arc<DeviceRpcService>,
    /// How devices come to the platform by themselves.
    pub onboarding: Arc<DeviceOnboarding>,
    /// What devices download.
    pub downloads: Arc<OtaDownloads>,
    /// Where messages go.
    pub producer: QueueProducer,
    /// Where attribute requests are answered from.
    pub attributes: Arc<dyn AttributeStore>,
    /// Who hears that devices are alive.
    pub activity: Arc<ActivityTracker>,
    /// The time.
    pub clock: SharedClock,
    /// How JSON values become typed.
    pub json: JsonRules,
}
