//! Bridges: carry messages between the publish/subscribe broker of this program and other brokers, or the devices of the platform,
//! and to HTTP servers and Kafka.
//!
//! A bridge is a client on both sides: of the broker over a stream inside the program, with a session that outlives it, and of the
//! other side over the network. A message is acknowledged where it comes from once the other side has acknowledged it, so
//! that none of QoS 1 is lost while either side is away; some may come twice.
//!
//! | module | job |
//! |---|---|
//! | `options` | settings |
//! | `runner` | keeps a bridge up |
//! | `carrier`, `leg` | one pair of connections, and one connection |
//! | `topics`, `devices` | what becomes of a message: another topic, or telemetry of a device |
//! | `feeder`, `sinks` | messages for HTTP servers and Kafka |
//! | `retries` | when a message that is not taken is sent again, and when it is given up |

mod carrier;
mod devices;
mod feeder;
mod leg;
mod options;
mod retries;
mod runner;
mod sinks;
mod topics;

pub use options::{
    BridgeDirection, BridgeTopic, BrokerBridge, DeviceBridge, HttpSink, KafkaSink, Options, SinkPayload,
};
pub use runner::{BridgeRunner, LocalBroker, reachable};
