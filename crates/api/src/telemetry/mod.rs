//! The telemetry controller: reads, saves and deletes time series and attributes of any entity.
//!
//! Everything lies below `/api/plugins/telemetry`. Each handler reads its parameters, asks for the entity on the caller's
//! behalf, and talks to the stores; what parameters, bodies and answers mean is said by the modules beside the handlers.
//! Errors are plain text.

mod buckets;
mod context;
mod delete;
mod docs;
mod error;
mod history;
mod params;
mod payload;
mod points;
mod read;
mod render;
mod save;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod zone;

pub(crate) use context::SaveContext;
pub(crate) use error::{TelemetryError, TelemetryResult};
pub(crate) use points::{PointReader, PointsError, PointsQuery, read_points, read_value};
pub(crate) use source::SeriesSource;

use utoipa_axum::routes;

use crate::endpoint::{ApiRoutes, STC};

/// The endpoints of the controller.
pub(crate) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC, routes!(read::series_keys))
        .add(STC, routes!(read::attribute_keys))
        .add(STC, routes!(read::attribute_keys_of_scope))
        .add(STC, routes!(read::attributes))
        .add(STC, routes!(read::attributes_of_scope))
        .add(STC, routes!(read::series))
        .add(STC, routes!(read::history))
        .add(STC, routes!(save::device_attributes))
        .add(STC, routes!(save::entity_attributes))
        .add(STC, routes!(save::entity_attributes_v2))
        .add(STC, routes!(save::series))
        .add(STC, routes!(save::series_of_scope_delete))
        .add(STC, routes!(save::series_with_ttl))
        .add(STC, routes!(delete::series))
        .add(STC, routes!(delete::device_attributes))
        .add(STC, routes!(delete::entity_attributes))
}
