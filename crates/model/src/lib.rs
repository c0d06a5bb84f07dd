//! The words of Fieldline: identifiers, entities, key-values and journal records.
//!
//! No I/O and no async. What two or more crates share lives here; what one crate needs stays there.

pub mod entity;
mod id;
pub mod json;
pub mod kv;
pub mod page;
pub mod record;
pub mod timeseries;

pub use id::{
    CustomerId, DeviceCredentialsId, DeviceId, DeviceProfileId, EntityId, EntityType, NULL_UUID, Subject,
    TenantId, TenantProfileId, UnknownEntityType, UserId, new_uuid,
};
