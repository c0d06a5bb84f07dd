//! The entity and the attribute scope in a path.

use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityType};

use crate::extract::parse_uuid;
use crate::state::SharedApi;

use super::error::{TelemetryError, TelemetryResult};
use super::params::BadInput;

/// Returns the entity in a path, if the caller may perform the operation on it.
pub(super) async fn entity(
    api: &SharedApi,
    caller: &Principal,
    kind: &str,
    id: &str,
    operation: AccessOperation,
) -> TelemetryResult<AnyEntity> {
    let kind: EntityType = kind
        .parse()
        .map_err(|_| BadInput(format!("Invalid entity type '{kind}'")))?;
    let id = EntityId::new(kind, parse_uuid(id)?);
    api.check(caller, id, operation)
        .await
        .map_err(|error| TelemetryError::access(error, caller.authority))
}

/// Refuses entity views: they show series, but have none of their own.
pub(super) fn refuse_view(entity: &AnyEntity) -> Result<(), BadInput> {
    match entity {
        AnyEntity::EntityView(_) => Err(BadInput::new(
            "Telemetry can't be changed through an entity view, which is read only",
        )),
        _ => Ok(()),
    }
}

/// Parses the scope in a path.
pub(super) fn scope(name: &str) -> Result<AttributeScope, BadInput> {
    AttributeScope::from_name(name).ok_or_else(|| BadInput(format!("Invalid scope: {name}")))
}

/// Parses the scope in a path, if API clients may write to it.
pub(super) fn writable_scope(name: &str) -> Result<AttributeScope, BadInput> {
    match scope(name)? {
        AttributeScope::Client => Err(BadInput(format!("Invalid scope: {name}"))),
        writable => Ok(writable),
    }
}
