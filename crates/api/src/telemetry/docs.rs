//! Parameters and responses for the OpenAPI description only. The handlers parse parameters themselves, because a name
//! may be repeated and errors are plain text; these types are never constructed.

use std::collections::BTreeMap;

use utoipa::{IntoParams, IntoResponses, ToSchema};
use uuid::Uuid;

/// The entity in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct EntityPath {
    /// Kind of the entity, such as `DEVICE`.
    entity_type: String,
    /// Bare id of the entity.
    entity_id: Uuid,
}

/// The device in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct DevicePath {
    /// Bare id of the device.
    device_id: Uuid,
}

/// The attribute scope in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct ScopePath {
    /// `CLIENT_SCOPE`, `SHARED_SCOPE` or `SERVER_SCOPE`; attributes of the client scope cannot be saved.
    scope: String,
}

/// Names of series or attributes.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes parameters")]
pub(crate) struct TelemetryKeyParams {
    /// Comma-separated names.
    keys: Option<String>,
    /// One name; may be repeated, and then `keys` is ignored.
    #[param(style = Form, explode)]
    key: Option<Vec<String>>,
}

/// Format of series values.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct ValueTypeParams {
    /// Whether values keep their JSON type; they are strings by default.
    use_strict_data_types: Option<bool>,
}

/// The time range of a query, and its aggregation.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(crate) struct RangeParams {
    /// Start of the range, inclusive, milliseconds.
    start_ts: i64,
    /// End of the range, exclusive, milliseconds.
    end_ts: i64,
    /// `MILLISECONDS` (default), `WEEK` (from Sunday), `WEEK_ISO` (from Monday), `MONTH` or `QUARTER`.
    interval_type: Option<String>,
    /// Width of a bucket in milliseconds for the interval type `MILLISECONDS`; 0 for no aggregation.
    interval: Option<i64>,
    /// Time zone of calendar intervals, such as `Europe/Kyiv`; UTC by default.
    time_zone: Option<String>,
    /// Most points per series without aggregation; 100 by default.
    limit: Option<i32>,
    /// `NONE` (default), `MIN`, `MAX`, `AVG`, `SUM` or `COUNT`.
    agg: Option<String>,
    /// `DESC` (default) or `ASC`, without aggregation.
    order_by: Option<String>,
}

/// The points to delete.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct DeleteSeriesParams {
    /// Whether to delete all points; otherwise `startTs` and `endTs` are required.
    delete_all_data_for_keys: Option<bool>,
    /// Start of the range, inclusive, milliseconds.
    start_ts: Option<i64>,
    /// End of the range, exclusive, milliseconds.
    end_ts: Option<i64>,
    /// Whether to delete the latest value, too, if its time is in the range; `true` by default.
    delete_latest: Option<bool>,
    /// Whether the newest remaining point becomes the latest value if that was deleted.
    rewrite_latest_if_deleted: Option<bool>,
}

/// An attribute.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes an answer")]
pub(super) struct AttributeData {
    /// Time of the last change, milliseconds.
    last_update_ts: i64,
    /// Name.
    key: String,
    /// Value, in its own JSON type.
    value: serde_json::Value,
}

/// A value with its timestamp.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer")]
pub(super) struct TsData {
    /// Timestamp of the value, milliseconds.
    ts: i64,
    /// Value: a string, or in its own JSON type.
    value: serde_json::Value,
}

/// Points by series name.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer")]
pub(super) struct SeriesData(BTreeMap<String, Vec<TsData>>);

/// Errors, as plain text.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes answers")]
pub(super) enum TelemetryErrors {
    /// The parameters or the body are invalid.
    #[response(status = 400, content_type = "text/plain")]
    BadRequest(String),
    /// The caller may not perform the operation on the entity.
    #[response(status = 403, content_type = "text/plain")]
    Denied(String),
    /// The entity does not exist.
    #[response(status = 404, content_type = "text/plain")]
    NotFound(String),
}
