//! API keys of users.

use axum::Json;
use axum::extract::{Path, Request};
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::ApiKeyChange;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{ApiKey, ApiKeyInfo, EntityDraft, User};
use fieldline_model::page::PageData;
use fieldline_model::{ApiKeyId, UserId};
use utoipa_axum::routes;
use uuid::Uuid;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{
    JsonBody, PageParams, PathIds, QueryParams, body_bytes, missing, parse_flag, parse_uuid,
};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.changes(routes!(save), AuditRule::Nothing))
        .add(STC.reads(routes!(list)))
        .add(STC.changes(routes!(describe), AuditRule::Nothing))
        .add(STC.changes(routes!(enable), AuditRule::Nothing))
        .add(STC.changes(routes!(delete), AuditRule::Nothing))
}

async fn user(api: &ApiState, caller: &Principal, id: UserId, operation: AccessOperation) -> ApiResult<User> {
    match api.check(caller, id, operation).await? {
        AnyEntity::User(user) => Ok(user),
        _ => Err(ApiError::not_found("User not found")),
    }
}

/// Loads a key, if the caller may change the keys of its user. To other callers the key does not exist.
async fn load(api: &ApiState, caller: &Principal, id: Uuid) -> ApiResult<ApiKeyInfo> {
    let unknown = || ApiError::not_found(format!("Api key with id [{id}] is not found"));
    let key = api
        .entities
        .api_keys
        .get(ApiKeyId(id))
        .await?
        .ok_or_else(unknown)?;
    match user(api, caller, key.user_id, AccessOperation::Write).await {
        Ok(_) => Ok(key),
        Err(error) if error.status().is_client_error() => Err(unknown()),
        Err(error) => Err(error),
    }
}

/// Creates a key for a user and returns its value, which is not shown again; or updates the key with the given id.
#[utoipa::path(post, path = "/api/apiKey", tag = "api-key", operation_id = "saveApiKey", request_body = ApiKeyInfo,
    responses((status = 200, body = ApiKey)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(key): JsonBody<EntityDraft<ApiKeyInfo>>,
) -> ApiResult<Json<ApiKey>> {
    let keys = &api.services.api_keys;
    let Some(id) = key.id else {
        let user = user(&api, &caller, key.user_id, AccessOperation::Write).await?;
        return Ok(Json(keys.create(&user, key).await?));
    };
    let old = load(&api, &caller, id.0).await?;
    if old.user_id != key.user_id || old.expiration_time != key.expiration_time {
        return Err(ApiError::bad_request(
            "Cannot update API key user id or expiration time!",
        ));
    }
    let key = key.into_update(&old);
    let change = ApiKeyChange {
        description: Some(&key.description),
        enabled: Some(key.enabled),
    };
    let info = keys.update(old.id, change).await?;
    api.api_keys.forget();
    Ok(Json(ApiKey { info, value: None }))
}

/// Returns a page of the keys of a user, without their values.
#[utoipa::path(get, path = "/api/apiKeys/{userId}", tag = "api-key", operation_id = "getUserApiKeys",
    params(("userId" = Uuid, Path), PageParams), responses((status = 200, body = PageData<ApiKeyInfo>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<ApiKeyInfo>>> {
    user(&api, &caller, UserId(id), AccessOperation::Write).await?;
    let page = api.entities.api_keys.list(UserId(id), &page.link()?).await?;
    Ok(Json(page.map(|key| api.services.api_keys.shown(key))))
}

/// Sets the description of a key. The body is a JSON string.
#[utoipa::path(put, path = "/api/apiKey/{apiKeyId}/description", tag = "api-key",
    operation_id = "updateApiKeyDescription", params(("apiKeyId" = Uuid, Path)), request_body = String,
    responses((status = 200, body = ApiKeyInfo)))]
async fn describe(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    request: Request,
) -> ApiResult<Json<ApiKeyInfo>> {
    let text = String::from_utf8(body_bytes(request, &()).await?.into())
        .map_err(|_| ApiError::bad_request("The description is no text!"))?;
    let key = load(&api, &caller, id).await?;
    // Some clients send bare text, others a JSON string.
    let description: String = serde_json::from_str(&text).unwrap_or(text);
    let change = ApiKeyChange {
        description: Some(&description),
        ..ApiKeyChange::default()
    };
    let changed = api.services.api_keys.update(key.id, change).await?;
    api.api_keys.forget();
    Ok(Json(changed))
}

/// Enables or disables a key.
#[utoipa::path(put, path = "/api/apiKey/{apiKeyId}/enabled/{enabledValue}", tag = "api-key",
    operation_id = "enableApiKey", params(("apiKeyId" = Uuid, Path), ("enabledValue" = bool, Path)),
    responses((status = 200, body = ApiKeyInfo)))]
async fn enable(
    ApiCall { api, caller }: ApiCall,
    Path((id, enabled)): Path<(String, String)>,
) -> ApiResult<Json<ApiKeyInfo>> {
    let key = load(&api, &caller, parse_uuid(&id)?).await?;
    let enabled = parse_flag(&enabled)
        .map_err(ApiError::bad_request)?
        .ok_or_else(|| missing("enabledValue"))?;
    let change = ApiKeyChange {
        enabled: Some(enabled),
        ..ApiKeyChange::default()
    };
    let changed = api.services.api_keys.update(key.id, change).await?;
    api.api_keys.forget();
    Ok(Json(changed))
}

/// Deletes a key.
#[utoipa::path(delete, path = "/api/apiKey/{apiKeyId}", tag = "api-key", operation_id = "deleteApiKey",
    params(("apiKeyId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    load(&api, &caller, id).await?;
    api.entities.api_keys.delete(ApiKeyId(id)).await?;
    api.api_keys.forget();
    Ok(())
}
