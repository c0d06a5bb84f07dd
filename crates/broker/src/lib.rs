//! The general publish/subscribe MQTT broker: 3.1, 3.1.1 and 5.0, any topic, between any clients.
//!
//! A PUBLISH of QoS 1 or 2 is acknowledged when every persistent session that it concerns has it durably, and so has the
//! retained message of its topic: one record in the broker's journal says who gets it. Sessions that are connected get it
//! from memory once the record is durable. A checkpoint stores each second what still waits then, and the journal
//! forgets what lies before. After a crash the store is read, and the journal behind it is applied again.

mod admin;
mod authentication;
mod broker;
mod checkpoint;
mod client;
mod congestion;
mod connection;
mod delivery;
mod driver;
mod hold;
mod lifecycle;
mod limits;
mod listener;
mod log;
mod login;
mod message;
mod options;
mod packets;
mod paging;
mod queue;
mod replay;
mod retained;
mod server;
mod session;
mod stats;
mod subscriptions;
mod sys;
#[cfg(test)]
mod testing;
mod wire;

pub use checkpoint::BrokerStartError;
pub use listener::ListenerLayers;
pub use login::BRIDGE_PREFIX;
pub use options::{BrokerAccess, Options};
pub use server::{BrokerPorts, BrokerServer};
