//! Nodes that do something in the platform.

pub(crate) mod alarm;
mod body;
pub(crate) mod copy_to_view;
pub(crate) mod customer;
pub(crate) mod delay;
mod derived;
pub(crate) mod device_state;
pub(crate) mod generator;
pub(crate) mod geofencing;
pub(crate) mod log;
pub(crate) mod math;
pub(crate) mod message_count;
mod processing;
pub(crate) mod relation;
pub(crate) mod rpc;
mod script_thread;
mod target;
pub(crate) mod telemetry;
#[cfg(test)]
mod tests;
pub(crate) mod unavailable;

use std::sync::Arc;

use crate::node::{Ctx, Source};

/// What a node needs to go on by itself, after it has handled a message.
fn source(ctx: &Ctx<'_>) -> Source {
    Source {
        services: Arc::clone(ctx.services),
        tenant: ctx.tenant,
        chain: ctx.chain,
        node: ctx.node,
        queue: None,
    }
}
