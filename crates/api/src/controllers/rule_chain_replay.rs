//! Replay of stored telemetry through rule chains.

use axum::Json;
use fieldline_entities::access::AccessOperation;
use fieldline_model::RuleChainId;
use fieldline_model::replay::{ReplayReport, ReplayRequest};
use serde_json::Value;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(T.changes(routes!(replay), AuditRule::Nothing))
}

/// Replays stored telemetry through a rule chain, saved or as a draft, and reports what it would have done. Nothing is
/// stored, and nothing leaves the platform.
#[utoipa::path(post, path = "/api/ruleChain/{ruleChainId}/replay", tag = "rule-chain",
    operation_id = "replayRuleChain", params(("ruleChainId" = Uuid, Path)), request_body = ReplayRequest,
    responses((status = 200, body = ReplayReport)))]
async fn replay(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    JsonBody(request): JsonBody<Value>,
) -> ApiResult<Json<ReplayReport>> {
    let id = RuleChainId(id);
    api.check(&caller, id, AccessOperation::Read).await?;
    // Access to the chain is checked before the request is validated.
    let request: ReplayRequest =
        serde_json::from_value(request).map_err(|error| ApiError::bad_request(error.to_string()))?;
    Ok(Json(api.replays.replay(caller.tenant, id, request).await?))
}
