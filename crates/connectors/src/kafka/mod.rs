//! Publishing to Kafka clusters of the tenant's own.

mod client;
mod config;
mod partition_sender;
mod partitioner;
mod properties;
mod relay;

pub use client::KafkaClient;
pub use config::KafkaConfig;
