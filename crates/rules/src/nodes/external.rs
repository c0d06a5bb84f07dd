//! Nodes that send messages to services outside of the platform.

pub(crate) mod ai;
pub(crate) mod aws;
pub(crate) mod kafka;
pub(crate) mod mail;
pub(crate) mod mqtt;
pub(crate) mod notification;
mod outside;
mod pairs;
pub(crate) mod pubsub;
pub(crate) mod rabbitmq;
pub(crate) mod rest;
mod shared;
pub(crate) mod sms;
#[cfg(test)]
mod tests;
