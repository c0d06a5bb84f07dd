//! Nodes that do something in the platform.

pub(crate) mod alarm;
mod body;
pub(crate) mod copy_to_view;
pub(crate) mod customer;
pub(crate) mod delay;
pub(crate) mod device_state;
pub(crate) mod generator;
pub(crate) mod geofencing;
pub(crate) mod log;
pub(crate) mod math;
pub(crate) mod message_count;
mod processing;
pub(crate) mod relation;
pub(crate) mod rpc;
mod target;
pub(crate) mod telemetry;
#[cfg(test)]
mod tests;
pub(crate) mod unavailable;

use super::derived;
