//! Reprocessing of stored values with calculated fields.

use axum::Json;
use fieldline_entities::access::AccessOperation;
use fieldline_entities::services::ServiceError;
use fieldline_model::CalculatedFieldId;
use fieldline_model::reprocess::{ReprocessReport, ReprocessRequest};
use serde_json::Value;
use utoipa_axum::routes;
use uuid::Uuid;

use super::calculated_field::load;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.changes(routes!(begin), AuditRule::Nothing))
        .add(T.reads(routes!(progress)))
        .add(T.changes(routes!(cancel), AuditRule::Nothing))
}

/// Starts to compute the results of a calculated field for a past period from stored values. The work goes on after the
/// response.
#[utoipa::path(post, path = "/api/calculatedField/{calculatedFieldId}/reprocess", tag = "calculated-field",
    operation_id = "reprocessCalculatedField", params(("calculatedFieldId" = Uuid, Path)),
    request_body = ReprocessRequest, responses((status = 200, body = ReprocessReport)))]
async fn begin(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    JsonBody(request): JsonBody<Value>,
) -> ApiResult<Json<ReprocessReport>> {
    let field = load(&api, &caller, id, AccessOperation::Write).await?;
    // Access to the field is checked before the request is validated.
    let request: ReprocessRequest =
        serde_json::from_value(request).map_err(|error| ApiError::bad_request(error.to_string()))?;
    Ok(Json(api.reprocess.begin(&field, request).await?))
}

/// Returns the progress or the result of the last reprocessing of a calculated field.
#[utoipa::path(get, path = "/api/calculatedField/{calculatedFieldId}/reprocess", tag = "calculated-field",
    operation_id = "getCalculatedFieldReprocessing", params(("calculatedFieldId" = Uuid, Path)),
    responses((status = 200, body = ReprocessReport)))]
async fn progress(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<ReprocessReport>> {
    load(&api, &caller, id, AccessOperation::Read).await?;
    let found = api.reprocess.progress(caller.tenant, CalculatedFieldId(id));
    found.map(Json).ok_or_else(|| none(id).into())
}

/// Cancels the reprocessing of a calculated field; results stored so far stay.
#[utoipa::path(delete, path = "/api/calculatedField/{calculatedFieldId}/reprocess", tag = "calculated-field",
    operation_id = "cancelCalculatedFieldReprocessing", params(("calculatedFieldId" = Uuid, Path)),
    responses((status = 200, body = ReprocessReport)))]
async fn cancel(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<ReprocessReport>> {
    load(&api, &caller, id, AccessOperation::Write).await?;
    let found = api.reprocess.cancel(caller.tenant, CalculatedFieldId(id));
    found.map(Json).ok_or_else(|| none(id).into())
}

fn none(id: Uuid) -> ServiceError {
    ServiceError::not_found(format!("Calculated field [{id}] has not been reprocessed"))
}
