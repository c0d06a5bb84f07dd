//! Device servers: MQTT, HTTP and CoAP. They authenticate devices, turn payloads into journal records, and acknowledge
//! a message when its records are durable.

pub mod broker_access;
pub mod coap;
pub mod http;
mod intake;
mod metrics;
pub mod mqtt;
pub mod mqtts;
mod payload;
mod x509;

use std::sync::Arc;

use fieldline_core::address_guard::AddressGuard;
use fieldline_core::clock::SharedClock;
use fieldline_core::ingest::QueueProducer;
use fieldline_core::overload::OverloadMonitor;
use fieldline_core::ports::AttributeStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::directory::DeviceDirectory;
use fieldline_devices::ota::OtaDownloads;
use fieldline_devices::rpc::DeviceRpcService;
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::services::DeviceOnboarding;
use fieldline_model::json::JsonRules;

pub use self::metrics::describe as describe_metrics;

/// State shared by all device servers of a node.
pub struct TransportServices {
    /// Looks up devices by their credentials.
    pub directory: Arc<DeviceDirectory>,
    /// Turns away addresses that keep sending wrong credentials.
    pub guard: Arc<AddressGuard>,
    /// The sessions of connected devices.
    pub sessions: Arc<SessionRegistry>,
    /// RPC calls to devices and by devices.
    pub rpc: Arc<DeviceRpcService>,
    /// Claiming and provisioning: how devices join the platform by themselves.
    pub onboarding: Arc<DeviceOnboarding>,
    /// The OTA packages that devices download.
    pub downloads: Arc<OtaDownloads>,
    /// Asks the pools of memory what they have refused.
    pub overload: Arc<OverloadMonitor>,
    /// Appends device messages to the journal.
    pub producer: QueueProducer,
    /// The stored attributes, for attribute requests.
    pub attributes: Arc<dyn AttributeStore>,
    /// Receives a notice each time a device shows activity.
    pub activity: Arc<ActivityTracker>,
    /// The time.
    pub clock: SharedClock,
    /// The rules by which JSON values get their types.
    pub json: JsonRules,
}
