//! Settings of single users, and the dashboards they have visited.

use axum::Json;
use axum::extract::Path;
use fieldline_entities::access::AccessOperation;
use fieldline_entities::services::DashboardAction;
use fieldline_model::DashboardId;
use fieldline_model::entity::{DashboardInfo, UserDashboards, UserSettingsType};
use serde_json::Value;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, parse_uuid};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(get)))
        .add(STC.changes(routes!(save), AuditRule::Nothing))
        .add(STC.changes(routes!(update), AuditRule::Nothing))
        .add(STC.reads(routes!(get_general)))
        .add(STC.changes(routes!(update_general), AuditRule::Nothing))
        .add(STC.reads(routes!(get_typed)))
        .add(STC.changes(routes!(update_typed), AuditRule::Nothing))
        .add(STC.changes(routes!(delete), AuditRule::Nothing))
        .add(STC.changes(routes!(delete_typed), AuditRule::Nothing))
        .add(TC.reads(routes!(dashboards)))
        .add(TC.reads(routes!(last_visited)))
        .add(TC.reads(routes!(note)))
}

/// Parses a type of settings that users may read and write.
fn settings_type(name: &str) -> ApiResult<UserSettingsType> {
    match UserSettingsType::from_name(name) {
        Some(kind) if kind.is_reserved() => Err(ApiError::bad_request(format!(
            "Settings with type: {name} are reserved for internal use!"
        ))),
        Some(kind) => Ok(kind),
        None => Err(ApiError::bad_request(format!(
            "Settings type \"{name}\" is not supported!"
        ))),
    }
}

/// Returns the general settings of the caller.
#[utoipa::path(get, path = "/api/user/settings", tag = "user", operation_id = "getUserSettings",
    responses((status = 200, body = Value)))]
async fn get(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<Value>> {
    let settings = &api.services.user_settings;
    Ok(Json(settings.get(caller.user, UserSettingsType::General).await?))
}

/// Replaces the general settings of the caller.
#[utoipa::path(post, path = "/api/user/settings", tag = "user", operation_id = "saveUserSettings",
    request_body = Value, responses((status = 200, body = Value)))]
async fn save(ApiCall { api, caller }: ApiCall, JsonBody(body): JsonBody<Value>) -> ApiResult<Json<Value>> {
    let settings = &api.services.user_settings;
    Ok(Json(
        settings
            .save(caller.user, UserSettingsType::General, body)
            .await?,
    ))
}

/// Changes general settings of the caller; field names are dotted paths.
#[utoipa::path(put, path = "/api/user/settings", tag = "user", operation_id = "putUserSettings",
    request_body = Value, responses((status = 200)))]
async fn update(ApiCall { api, caller }: ApiCall, JsonBody(body): JsonBody<Value>) -> ApiResult<()> {
    let settings = &api.services.user_settings;
    Ok(settings
        .update(caller.user, UserSettingsType::General, body)
        .await?)
}

/// Returns the general settings of the caller.
#[utoipa::path(get, path = "/api/user/settings/general", tag = "user", operation_id = "getGeneralUserSettings",
    responses((status = 200, body = Value)))]
async fn get_general(call: ApiCall) -> ApiResult<Json<Value>> {
    get(call).await
}

/// Changes general settings of the caller; field names are dotted paths.
#[utoipa::path(put, path = "/api/user/settings/general", tag = "user", operation_id = "putGeneralUserSettings",
    request_body = Value, responses((status = 200)))]
async fn update_general(call: ApiCall, body: JsonBody<Value>) -> ApiResult<()> {
    update(call, body).await
}

/// Returns the caller's settings of a type.
#[utoipa::path(get, path = "/api/user/settings/{type}", tag = "user", operation_id = "getUserSettingsByType",
    params(("type" = String, Path)), responses((status = 200, body = Value)))]
async fn get_typed(ApiCall { api, caller }: ApiCall, Path(kind): Path<String>) -> ApiResult<Json<Value>> {
    let settings = &api.services.user_settings;
    Ok(Json(settings.get(caller.user, settings_type(&kind)?).await?))
}

/// Changes the caller's settings of a type; field names are dotted paths.
#[utoipa::path(put, path = "/api/user/settings/{type}", tag = "user", operation_id = "putUserSettingsByType",
    params(("type" = String, Path)), request_body = Value, responses((status = 200)))]
async fn update_typed(
    ApiCall { api, caller }: ApiCall,
    Path(kind): Path<String>,
    JsonBody(body): JsonBody<Value>,
) -> ApiResult<()> {
    let settings = &api.services.user_settings;
    Ok(settings.update(caller.user, settings_type(&kind)?, body).await?)
}

/// Deletes general settings of the caller, named by comma-joined dotted paths.
#[utoipa::path(delete, path = "/api/user/settings/{type}", tag = "user", operation_id = "deleteGeneralUserSettings",
    params(("type" = String, Path, description = "The paths")), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, Path(paths): Path<String>) -> ApiResult<()> {
    let paths: Vec<&str> = paths.split(',').collect();
    let settings = &api.services.user_settings;
    Ok(settings
        .delete(caller.user, UserSettingsType::General, &paths)
        .await?)
}

/// Deletes the caller's settings of a type, named by comma-joined dotted paths.
#[utoipa::path(delete, path = "/api/user/settings/{type}/{paths}", tag = "user",
    operation_id = "deleteUserSettingsByType", params(("type" = String, Path), ("paths" = String, Path)),
    responses((status = 200)))]
async fn delete_typed(
    ApiCall { api, caller }: ApiCall,
    Path((kind, paths)): Path<(String, String)>,
) -> ApiResult<()> {
    let paths: Vec<&str> = paths.split(',').collect();
    let settings = &api.services.user_settings;
    Ok(settings
        .delete(caller.user, settings_type(&kind)?, &paths)
        .await?)
}

/// Returns the dashboards that the caller has visited or starred.
#[utoipa::path(get, path = "/api/user/dashboards", tag = "user", operation_id = "getUserDashboardsInfo",
    responses((status = 200, body = UserDashboards)))]
async fn dashboards(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<UserDashboards>> {
    let settings = &api.services.user_settings;
    let found = settings.dashboards(caller.tenant, caller.user).await?;
    Ok(Json(found))
}

/// Returns the same under another path.
#[utoipa::path(get, path = "/api/user/lastVisitedDashboards", tag = "user",
    operation_id = "getLastVisitedDashboards", responses((status = 200, body = UserDashboards)))]
async fn last_visited(call: ApiCall) -> ApiResult<Json<UserDashboards>> {
    dashboards(call).await
}

/// Records that the caller has visited, starred or unstarred a dashboard: `visit`, `star`, `unstar`.
#[utoipa::path(get, path = "/api/user/dashboards/{dashboardId}/{action}", tag = "user",
    operation_id = "reportUserDashboardAction",
    params(("dashboardId" = Uuid, Path), ("action" = String, Path)),
    responses((status = 200, body = UserDashboards)))]
async fn note(
    ApiCall { api, caller }: ApiCall,
    Path((id, action)): Path<(String, String)>,
) -> ApiResult<Json<UserDashboards>> {
    // This writes although it is a `GET`.
    if caller.is_public() {
        return Err(ApiError::denied());
    }
    let action = match action.to_lowercase().as_str() {
        "visit" => DashboardAction::Visit,
        "star" => DashboardAction::Star,
        "unstar" => DashboardAction::Unstar,
        other => {
            return Err(ApiError::bad_request(format!(
                "Action \"{other}\" is not supported!"
            )));
        }
    };
    let id = parse_uuid(&id)?;
    api.load::<DashboardInfo>(&caller, id, AccessOperation::Read)
        .await?;
    let settings = &api.services.user_settings;
    let noted = settings
        .note(caller.tenant, caller.user, DashboardId(id), action)
        .await?;
    Ok(Json(noted))
}
