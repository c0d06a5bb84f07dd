//! Client calls into rule chains, which answer through the node *rest call reply*.

use std::time::Duration;

use axum::extract::{Path, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use serde::de::IgnoredAny;
use utoipa_axum::routes;

use super::relation::entity;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::body_bytes;
use crate::state::SharedApi;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that a client can wait.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.changes(routes!(call_as_user), AuditRule::RuleEngine))
        .add(STC.changes(routes!(call), AuditRule::RuleEngine))
        .add(STC.changes(routes!(call_within), AuditRule::RuleEngine))
        .add(STC.changes(routes!(call_in_queue), AuditRule::RuleEngine))
}

/// Sends the body through the rule chains as a message of the calling user, and waits 10 s for the response.
#[utoipa::path(post, path = "/api/rule-engine/", tag = "rule-engine",
    operation_id = "handleRuleEngineRequestForUser", request_body = Value,
    responses((status = 200, description = "What a node *rest call reply* answers", body = Value),
        (status = 408, description = "No answer in time")))]
async fn call_as_user(ApiCall { api, caller }: ApiCall, request: Request) -> ApiResult<Response> {
    let user = api.check(&caller, caller.user, AccessOperation::Write).await?;
    send_request(&api, &caller, &user, None, DEFAULT_TIMEOUT, request).await
}

/// Sends the body through the rule chains as a message of an entity, and waits 10 s for the response.
#[utoipa::path(post, path = "/api/rule-engine/{entityType}/{entityId}", tag = "rule-engine",
    operation_id = "handleRuleEngineRequestForEntity",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path)), request_body = Value,
    responses((status = 200, description = "What a node *rest call reply* answers", body = Value),
        (status = 408, description = "No answer in time")))]
async fn call(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let entity = writable(&api, &caller, &kind, &id).await?;
    send_request(&api, &caller, &entity, None, DEFAULT_TIMEOUT, request).await
}

/// Sends the body through the rule chains as a message of an entity, and waits at most `timeout` for the response.
#[utoipa::path(post, path = "/api/rule-engine/{entityType}/{entityId}/{timeout}", tag = "rule-engine",
    operation_id = "handleRuleEngineRequestForEntityWithTimeout",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path),
        ("timeout" = u32, Path, description = "Milliseconds, 3600000 at most")),
    request_body = Value,
    responses((status = 200, description = "What a node *rest call reply* answers", body = Value),
        (status = 408, description = "No answer in time")))]
async fn call_within(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, patience)): Path<(String, String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let entity = writable(&api, &caller, &kind, &id).await?;
    send_request(&api, &caller, &entity, None, timeout(&patience)?, request).await
}

/// Sends the body through the rule chains as a message of an entity, in a queue other than that of its profile, and
/// waits at most `timeout` for the response.
#[utoipa::path(post, path = "/api/rule-engine/{entityType}/{entityId}/{queueName}/{timeout}", tag = "rule-engine",
    operation_id = "handleRuleEngineRequestForEntityWithQueueAndTimeout",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), ("queueName" = String, Path),
        ("timeout" = u32, Path, description = "Milliseconds, 3600000 at most")),
    request_body = Value,
    responses((status = 200, description = "What a node *rest call reply* answers", body = Value),
        (status = 408, description = "No answer in time")))]
async fn call_in_queue(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, queue, patience)): Path<(String, String, String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let entity = writable(&api, &caller, &kind, &id).await?;
    send_request(&api, &caller, &entity, Some(queue), timeout(&patience)?, request).await
}

async fn writable(api: &SharedApi, caller: &Principal, kind: &str, id: &str) -> ApiResult<AnyEntity> {
    Ok(api
        .check(caller, entity(kind, id)?, AccessOperation::Write)
        .await?)
}

fn timeout(text: &str) -> ApiResult<Duration> {
    text.parse()
        .map(Duration::from_millis)
        .ok()
        .filter(|timeout| *timeout <= MAX_TIMEOUT)
        .ok_or_else(|| {
            ApiError::bad_request(format!(
                "Parameter 'timeout' must be milliseconds, {} at most, not '{text}'",
                MAX_TIMEOUT.as_millis()
            ))
        })
}

async fn send_request(
    api: &SharedApi,
    caller: &Principal,
    entity: &AnyEntity,
    queue: Option<String>,
    patience: Duration,
    request: Request,
) -> ApiResult<Response> {
    let subject = entity.subject();
    if subject.tenant.is_null() {
        return Err(ApiError::bad_request(
            "Rule chains belong to tenants, and this to none",
        ));
    }
    let body = body_bytes(request, api).await?;
    let body = std::str::from_utf8(&body)
        .ok()
        .filter(|body| is_json(body))
        .ok_or_else(|| ApiError::bad_request("Invalid request body"))?
        .to_owned();
    let message = QueueMessage {
        customer: Some(caller.customer).filter(|customer| !customer.is_null()),
        queue,
        ..QueueMessage::new(
            MsgType::RestApiRequest,
            subject.entity,
            api.clock.now_ms(),
            MetadataMap::new(),
            body,
        )
    };
    let engine = &*api.rule_engine;
    let answer = api
        .rest_requests
        .call(engine, subject.tenant, message, patience)
        .await?;
    Ok(match answer {
        None => StatusCode::REQUEST_TIMEOUT.into_response(),
        Some(message) if message.data.is_empty() => StatusCode::OK.into_response(),
        Some(message) if is_json(&message.data) => {
            ([(header::CONTENT_TYPE, "application/json")], message.data).into_response()
        }
        Some(_) => StatusCode::NOT_ACCEPTABLE.into_response(),
    })
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
