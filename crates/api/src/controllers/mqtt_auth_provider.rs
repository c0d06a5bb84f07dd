//! The ways in which clients of the publish/subscribe broker show who they are, as TBMQ has them.

use axum::Json;
use axum::extract::{Path, State};
use fieldline_entities::broker_access::{AuthProvider, AuthProviderChange, AuthProviderType};
use fieldline_model::page::PageData;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::audit::AuditRule;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(list)))
        .add(S.changes(routes!(save), AuditRule::Nothing))
        .add(S.changes(routes!(check_http), AuditRule::Nothing))
        .add(S.reads(routes!(strategy)))
        .add(S.reads(routes!(by_type)))
        .add(S.reads(routes!(get)))
        .add(S.changes(routes!(enable), AuditRule::Nothing))
        .add(S.changes(routes!(disable), AuditRule::Nothing))
}

/// A way in which clients show who they are.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct MqttAuthProvider {
    /// Id, the same in every installation.
    #[serde(default)]
    id: Option<Uuid>,
    /// 0: it is there from the beginning.
    #[serde(default)]
    created_time: Option<i64>,
    /// Whether it is asked; where absent, that stays as it is.
    enabled: Option<bool>,
    /// `MQTT_BASIC`, `X_509`, `JWT`, `SCRAM` or `HTTP`.
    #[serde(rename = "type")]
    kind: String,
    /// How it works.
    configuration: Value,
    /// What else a user interface keeps with it.
    #[serde(default)]
    additional_info: Value,
}

impl From<AuthProvider> for MqttAuthProvider {
    fn from(provider: AuthProvider) -> Self {
        Self {
            id: Some(provider.kind.id()),
            created_time: Some(0),
            enabled: Some(provider.enabled),
            kind: provider.kind.name().to_owned(),
            configuration: provider.configuration,
            additional_info: provider.additional_info,
        }
    }
}

/// A provider as lists show it.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShortMqttAuthProvider {
    /// Id.
    id: Uuid,
    /// Whether it is asked.
    enabled: bool,
    /// `MQTT_BASIC`, `X_509`, `JWT`, `SCRAM` or `HTTP`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// 0: it is there from the beginning.
    created_time: i64,
    /// What it does.
    description: Option<String>,
}

impl From<AuthProvider> for ShortMqttAuthProvider {
    fn from(provider: AuthProvider) -> Self {
        Self {
            id: provider.kind.id(),
            enabled: provider.enabled,
            kind: provider.kind.name(),
            created_time: 0,
            description: provider.description().map(str::to_owned),
        }
    }
}

fn by_id(id: Uuid) -> ApiResult<AuthProviderType> {
    let mut all = AuthProviderType::ALL.into_iter();
    all.find(|kind| kind.id() == id)
        .ok_or_else(ApiError::item_not_found)
}

fn by_name(name: &str) -> ApiResult<AuthProviderType> {
    let unknown = || ApiError::bad_request("MQTT auth provider type should be specified!");
    AuthProviderType::named(name).ok_or_else(unknown)
}

/// Returns a page of the providers; sorted by `type`, `enabled`, `description` or `createdTime`.
#[utoipa::path(get, path = "/api/mqtt/auth/providers", tag = "mqtt-auth-provider", operation_id = "getMqttAuthProviders",
    params(PageParams), responses((status = 200, body = PageData<ShortMqttAuthProvider>)))]
async fn list(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<ShortMqttAuthProvider>>> {
    let found = api.services.broker_access.providers(&page.link()?).await?;
    Ok(Json(found.map(ShortMqttAuthProvider::from)))
}

/// Replaces the settings of a provider.
#[utoipa::path(post, path = "/api/mqtt/auth/provider", tag = "mqtt-auth-provider", operation_id = "saveMqttAuthProvider",
    request_body = MqttAuthProvider, responses((status = 200, body = MqttAuthProvider)))]
async fn save(
    State(api): State<SharedApi>,
    JsonBody(provider): JsonBody<MqttAuthProvider>,
) -> ApiResult<Json<MqttAuthProvider>> {
    let change = change_of(provider)?;
    let saved = api.services.broker_access.save_provider(change);
    Ok(Json(saved.await?.into()))
}

fn change_of(provider: MqttAuthProvider) -> ApiResult<AuthProviderChange> {
    let kind = by_name(&provider.kind)?;
    if provider.id.is_some_and(|id| id != kind.id()) {
        return Err(ApiError::bad_request(
            "Unable to update non-existent MQTT auth provider!",
        ));
    }
    Ok(AuthProviderChange {
        kind,
        enabled: provider.enabled,
        configuration: provider.configuration,
        additional_info: provider.additional_info,
    })
}

/// Asks the server in the request, which need not be saved yet, for the head of its answer.
#[utoipa::path(post, path = "/api/mqtt/auth/provider/http/check", tag = "mqtt-auth-provider",
    operation_id = "checkHttpAuthProvider", request_body = MqttAuthProvider, responses((status = 200)))]
async fn check_http(
    State(api): State<SharedApi>,
    JsonBody(provider): JsonBody<MqttAuthProvider>,
) -> ApiResult<()> {
    let change = change_of(provider)?;
    Ok(api.services.broker_access.probe_http(&change).await?)
}

/// Returns by what `MQTT_BASIC` credentials are looked up, as a JSON string.
#[utoipa::path(get, path = "/api/mqtt/auth/provider/basic/strategy", tag = "mqtt-auth-provider",
    operation_id = "getMqttBasicAuthStrategy",
    responses((status = 200, body = String, content_type = "application/json")))]
async fn strategy(State(api): State<SharedApi>) -> ApiResult<Json<Value>> {
    let strategy = api.services.broker_access.basic_strategy().await?;
    Ok(Json(serde_json::json!(strategy)))
}

/// Returns the provider of a type.
#[utoipa::path(get, path = "/api/mqtt/auth/provider/type/{authProviderType}", tag = "mqtt-auth-provider",
    operation_id = "getMqttAuthProviderByType", params(("authProviderType" = String, Path)),
    responses((status = 200, body = MqttAuthProvider)))]
async fn by_type(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
) -> ApiResult<Json<MqttAuthProvider>> {
    let provider = api.services.broker_access.provider(by_name(&name)?).await?;
    Ok(Json(provider.into()))
}

/// Returns a provider.
#[utoipa::path(get, path = "/api/mqtt/auth/provider/{authProviderId}", tag = "mqtt-auth-provider",
    operation_id = "getMqttAuthProviderById", params(("authProviderId" = Uuid, Path)),
    responses((status = 200, body = MqttAuthProvider)))]
async fn get(State(api): State<SharedApi>, PathIds([id]): PathIds<1>) -> ApiResult<Json<MqttAuthProvider>> {
    let provider = api.services.broker_access.provider(by_id(id)?).await?;
    Ok(Json(provider.into()))
}

/// Has a provider asked from now on.
#[utoipa::path(post, path = "/api/mqtt/auth/provider/{authProviderId}/enable", tag = "mqtt-auth-provider",
    operation_id = "enableMqttAuthProvider", params(("authProviderId" = Uuid, Path)), responses((status = 200)))]
async fn enable(State(api): State<SharedApi>, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let access = &api.services.broker_access;
    Ok(access.enable_provider(by_id(id)?, true).await?)
}

/// Has a provider not asked any more. If no provider is asked, every client may connect.
#[utoipa::path(post, path = "/api/mqtt/auth/provider/{authProviderId}/disable", tag = "mqtt-auth-provider",
    operation_id = "disableMqttAuthProvider", params(("authProviderId" = Uuid, Path)), responses((status = 200)))]
async fn disable(State(api): State<SharedApi>, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let access = &api.services.broker_access;
    Ok(access.enable_provider(by_id(id)?, false).await?)
}
