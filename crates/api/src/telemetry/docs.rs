//! Parameters and answers as the OpenAPI description shows them. The handlers read parameters by themselves, because a
//! name may stand several times and errors are plain text; these types are never made.

use std::collections::BTreeMap;

use utoipa::{IntoParams, IntoResponses, ToSchema};
use uuid::Uuid;

/// The entity of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct EntityPath {
    /// Kind of the entity, such as `DEVICE`.
    entity_type: String,
    /// Bare id of the entity.
    entity_id: Uuid,
}

/// The device of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct DevicePath {
    /// Bare id of the device.
    device_id: Uuid,
}

/// The attribute scope of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct ScopePath {
    /// `CLIENT_SCOPE`, `SHARED_SCOPE` or `SERVER_SCOPE`; clients' attributes cannot be saved.
    scope: String,
}

/// Names of series or attributes.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct TelemetryKeyParams {
    /// Names separated by commas.
    keys: Option<String>,
    /// One name; may be repeated, and then `keys` is ignored.
    #[param(style = Form, explode)]
    key: Option<Vec<String>>,
}

/// How values of series are shown.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct ValueTypeParams {
    /// Whether values keep their JSON type; they are strings by default.
    use_strict_data_types: Option<bool>,
}

/// Which points of a range, and how they are aggregated.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct RangeParams {
    /// First time included, milliseconds.
    start_ts: i64,
    /// First time no longer included, milliseconds.
    end_ts: i64,
    /// `MILLISECONDS` (default), `WEEK` (from Sunday), `WEEK_ISO` (from Monday), `MONTH` or `QUARTER`.
    interval_type: Option<String>,
    /// Width of a bucket in milliseconds, where the interval type is `MILLISECONDS`; 0 aggregates nothing.
    interval: Option<i64>,
    /// Time zone of calendar intervals, such as `Europe/Kyiv`; UTC by default.
    time_zone: Option<String>,
    /// Points of each series at most, where nothing is aggregated; 100 by default.
    limit: Option<i32>,
    /// `NONE` (default), `MIN`, `MAX`, `AVG`, `SUM` or `COUNT`.
    agg: Option<String>,
    /// `DESC` (default) or `ASC`, where nothing is aggregated.
    order_by: Option<String>,
}

/// Which points are deleted.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
pub(super) struct DeleteSeriesParams {
    /// Whether all points go; else `startTs` and `endTs` are required.
    delete_all_data_for_keys: Option<bool>,
    /// First time deleted, milliseconds.
    start_ts: Option<i64>,
    /// First time no longer deleted, milliseconds.
    end_ts: Option<i64>,
    /// Whether the latest value goes too, if its time is in the range; so by default.
    delete_latest: Option<bool>,
    /// Whether the newest point that is left takes the place of a deleted latest value.
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

/// A value at a time.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer")]
pub(super) struct TsData {
    /// Time of the value, milliseconds.
    ts: i64,
    /// Value: a string, or in its own JSON type.
    value: serde_json::Value,
}

/// Points by the name of their series.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer")]
pub(super) struct SeriesData(BTreeMap<String, Vec<TsData>>);

/// Errors, as plain text.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes answers")]
pub(super) enum TelemetryErrors {
    /// The parameters or the body make no sense.
    #[response(status = 400, content_type = "text/plain")]
    BadRequest(String),
    /// The caller may not do that with the entity.
    #[response(status = 403, content_type = "text/plain")]
    Denied(String),
    /// There is no such entity.
    #[response(status = 404, content_type = "text/plain")]
    NotFound(String),
}
