//! Queues of the rule engine.

use axum::Json;
use axum::extract::Path;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::{EntityDraft, Queue};
use fieldline_model::page::PageData;
use serde::Deserialize;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S, ST};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, missing};

/// The service type that has queues.
const RULE_ENGINE: &str = "TB_RULE_ENGINE";
/// Service types without queues.
const OTHER_SERVICES: [&str; 5] = [
    "TB_CORE",
    "TB_TRANSPORT",
    "JS_EXECUTOR",
    "TB_VC_EXECUTOR",
    "TB_EDQS",
];

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST.reads(routes!(get)))
        .add(ST.reads(routes!(by_name)))
        .add(ST.reads(routes!(list)))
        .add(S.changes(routes!(save), AuditRule::Nothing))
        .add(S.changes(routes!(delete), AuditRule::Nothing))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct QueueServiceParams {
    /// `TB_RULE_ENGINE`.
    #[param(required = true)]
    service_type: Option<String>,
}

impl QueueServiceParams {
    /// Whether the parameter names the rule engine.
    fn is_rule_engine(&self) -> ApiResult<bool> {
        let name = self.service_type.as_deref().filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| missing("serviceType"))?
            .replace('-', "_")
            .to_uppercase();
        match name.as_str() {
            RULE_ENGINE => Ok(true),
            other if OTHER_SERVICES.contains(&other) => Ok(false),
            other => Err(ApiError::bad_request(format!("Unknown service type '{other}'"))),
        }
    }
}

/// Returns the queue with this id.
#[utoipa::path(get, path = "/api/queues/{queueId}", tag = "queue", operation_id = "getQueueById",
    params(("queueId" = Uuid, Path)), responses((status = 200, body = Queue)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<Queue>> {
    Ok(Json(api.load::<Queue>(&caller, id, AccessOperation::Read).await?))
}

/// Returns the queue with this name.
#[utoipa::path(get, path = "/api/queues/name/{queueName}", tag = "queue", operation_id = "getQueueByName",
    params(("queueName" = String, Path)), responses((status = 200, body = Queue)))]
async fn by_name(ApiCall { api, caller }: ApiCall, Path(name): Path<String>) -> ApiResult<Json<Queue>> {
    let owner = api.services.queues.owner(caller.tenant).await?;
    let found = api.entities.queues.by_name(owner, &name).await?;
    found.map(Json).ok_or_else(ApiError::item_not_found)
}

/// Returns a page of the queues that process the tenant's messages.
#[utoipa::path(get, path = "/api/queues", tag = "queue", operation_id = "getTenantQueuesByServiceType",
    params(PageParams, QueueServiceParams), responses((status = 200, body = PageData<Queue>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(service): QueryParams<QueueServiceParams>,
) -> ApiResult<Json<PageData<Queue>>> {
    let link = page.link()?;
    if !service.is_rule_engine()? {
        return Ok(Json(PageData::new(Vec::new(), 0, &link)));
    }
    let owner = api.services.queues.owner(caller.tenant).await?;
    Ok(Json(api.entities.queues.list(owner, &link).await?))
}

/// Creates a queue that all tenants share, or updates it if it has an id.
#[utoipa::path(post, path = "/api/queues", tag = "queue", operation_id = "saveQueue", params(QueueServiceParams),
    request_body = Queue, responses((status = 200, body = Queue)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    QueryParams(service): QueryParams<QueueServiceParams>,
    JsonBody(queue): JsonBody<EntityDraft<Queue>>,
) -> ApiResult<Json<Option<Queue>>> {
    if !service.is_rule_engine()? {
        return Ok(Json(None));
    }
    if let Some(id) = queue.id {
        api.load::<Queue>(&caller, id.0, AccessOperation::Write).await?;
    }
    Ok(Json(Some(api.services.queues.save(queue).await?)))
}

/// Deletes a queue that all tenants share.
#[utoipa::path(delete, path = "/api/queues/{queueId}", tag = "queue", operation_id = "deleteQueue",
    params(("queueId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let queue = api.load::<Queue>(&caller, id, AccessOperation::Delete).await?;
    Ok(api.services.queues.delete(&queue).await?)
}
