//! Nodes that let messages through, or send them different ways.

pub(crate) mod checks;
pub(crate) mod geofencing;
pub(crate) mod scripts;
pub(crate) mod types;
