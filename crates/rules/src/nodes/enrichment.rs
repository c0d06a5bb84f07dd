//! Nodes that add to messages.

pub(crate) mod attributes;
pub(crate) mod credentials;
pub(crate) mod delta;
pub(crate) mod details;
pub(crate) mod fields;
pub(crate) mod mapped;
pub(crate) mod telemetry;
