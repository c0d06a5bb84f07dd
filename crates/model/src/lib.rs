//! The words of Fieldline: identifiers, entities, key-values and journal records.
//!
//! No I/O and no async. What two or more crates share lives here; what one crate needs stays there.

pub mod budget;
pub mod configuration_size;
pub mod entity;
pub mod expression;
pub mod fnv;
mod id;
pub mod json;
pub mod kv;
pub mod message;
pub mod page;
pub mod query;
pub mod record;
pub mod replay;
pub mod reprocess;
pub mod timeseries;

pub use id::*;
