//! Nodes that send messages to services outside of the platform.

pub(crate) mod ai;
pub(crate) mod aws;
mod client_cache;
mod external_node;
pub(crate) mod kafka;
pub(crate) mod mail;
pub(crate) mod mqtt;
pub(crate) mod notification;
mod pairs;
pub(crate) mod pubsub;
pub(crate) mod rabbitmq;
pub(crate) mod rest;
pub(crate) mod sms;
#[cfg(test)]
mod tests;
