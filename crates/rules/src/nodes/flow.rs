//! Nodes that lead to other chains and queues.

pub(crate) mod chains;
pub(crate) mod queues;
