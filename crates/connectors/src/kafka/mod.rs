//! Publishing to Kafka clusters of the tenant's own.

mod client;
mod config;
mod partitioner;
mod properties;
mod relay;
mod worker;

pub use client::KafkaClient;
pub use config::KafkaConfig;
