//! Nodes that change messages.

pub(crate) mod copy;
pub(crate) mod deduplication;
pub(crate) mod email;
pub(crate) mod json_path;
mod keys;
pub(crate) mod originator;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod script;
pub(crate) mod split;
