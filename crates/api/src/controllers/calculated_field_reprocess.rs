//! Reprocessing of stored values by calculated fields.

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

/// Lets a calculated field make the results of a time that has passed, from the values that are stored of it. The work goes
/// on after the answer.
#[utoipa::path(post, path = "/api/calculatedField/{calculatedFieldId}/reprocess", tag = "calculated-field",
    operation_id = "reprocessCalculatedField", params(("calculatedFieldId" = Uuid, Path)),
    request_body = ReprocessRequest, responses((status = 200, body = ReprocessReport)))]
async fn begin(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    JsonBody(request): JsonBody<Value>,
) -> ApiResult<Json<ReprocessReport>> {
    let field = load(&api, &caller, id, AccessOperation::Write).await?;
    // Whose field it is matters before what is wrong with the request.
    let request: ReprocessRequest =
        serde_json::from_value(request).map_err(|error| ApiError::bad_request(error.to_string()))?;
    Ok(Json(api.reprocess.begin(&field, request).await?))
}

/// How far the last reprocessing of a calculated field is, or what has come of it.
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

/// Ends the reprocessing of a calculated field; what has been stored until then stays.
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
