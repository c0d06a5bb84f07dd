//! Publishing to MQTT brokers of the tenant's own.

mod client;
mod config;
mod connection;
mod endpoint;

pub use client::MqttClient;
pub use config::{MqttConfig, MqttVersion};
pub(crate) use endpoint::{BrokerPassword, MqttEndpoint};
pub use endpoint::{BrokerStream, MqttDialer};
