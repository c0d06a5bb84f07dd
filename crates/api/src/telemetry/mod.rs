//! The telemetry controller: reads, saves and deletes time series and attributes of any entity.
//!
//! All paths are below `/api/plugins/telemetry`. Each handler parses its parameters, checks the caller's access to the
//! entity, and calls the stores; the modules beside the handlers define parameters, bodies and responses. Errors are
//! plain text.

mod buckets;
mod by_subject;
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

pub(crate) use by_subject::{SeriesRead, SeriesRemoval};
pub(crate) use context::SaveContext;
pub(crate) use docs::{RangeParams, TelemetryKeyParams};
pub(crate) use error::{TelemetryError, TelemetryResult};
pub(crate) use params::TelemetryParams;
pub(crate) use points::{PointReader, PointsError, PointsQuery, read_points, read_value};
pub(crate) use source::{SeriesSource, TimeWindow};

use fieldline_model::entity::ActionType;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::endpoint::{ApiRoutes, ErrorShape, STC};

const ATTRIBUTES_SAVED: AuditRule = AuditRule::Data(ActionType::AttributesUpdated);
const ATTRIBUTES_DELETED: AuditRule = AuditRule::Data(ActionType::AttributesDeleted);
const SERIES_SAVED: AuditRule = AuditRule::Data(ActionType::TimeseriesUpdated);
const SERIES_DELETED: AuditRule = AuditRule::Data(ActionType::TimeseriesDeleted);

/// Returns the endpoints of the controller.
pub(crate) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(read::series_keys)))
        .add(STC.reads(routes!(read::attribute_keys)))
        .add(STC.reads(routes!(read::attribute_keys_of_scope)))
        .add(STC.reads(routes!(read::attributes)))
        .add(STC.reads(routes!(read::attributes_of_scope)))
        .add(STC.reads(routes!(read::series)))
        .add(STC.reads(routes!(read::history)))
        .add(STC.changes(routes!(save::device_attributes), ATTRIBUTES_SAVED))
        .add(STC.changes(routes!(save::entity_attributes), ATTRIBUTES_SAVED))
        .add(STC.changes(routes!(save::entity_attributes_v2), ATTRIBUTES_SAVED))
        .add(STC.changes(routes!(save::series), SERIES_SAVED))
        .add(STC.changes(routes!(save::series_of_scope_delete), SERIES_SAVED))
        .add(STC.changes(routes!(save::series_with_ttl), SERIES_SAVED))
        .add(STC.changes(routes!(delete::series), SERIES_DELETED))
        .add(STC.changes(routes!(delete::device_attributes), ATTRIBUTES_DELETED))
        .add(STC.changes(routes!(delete::entity_attributes), ATTRIBUTES_DELETED))
        .errors(ErrorShape::Text)
}
