//! Dashboards.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{Dashboard, DashboardInfo, EntityDraft, EntityVersion, ResourceExportData};
use fieldline_model::page::PageData;
use fieldline_model::{DashboardId, EntityType};
use serde::Deserialize;
use serde_json::Value;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, PathVersion, QueryParams, flag};
use crate::resources;
use crate::state::{ApiState, SharedApi};

/// Where former versions named scripts by their ids.
const SCRIPTS: &[&str] = &[
    "widgets",
    "*",
    "config",
    "actions",
    "*",
    "*",
    "customResources",
    "*",
    "url",
];

/// Most points a widget may request at once; user interfaces read this limit.
pub(super) const MAX_DATAPOINTS: u64 = 50_000;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.reads(routes!(get)))
        .add(TC.reads(routes!(info)))
        .add(T.reads(routes!(versions)))
        .add(T.reads(routes!(version)))
        .add(T.changes(routes!(save), AuditRule::Save(EntityType::Dashboard)))
        .add(T.changes(routes!(delete), AuditRule::Delete(EntityType::Dashboard)))
        .add(STC.reads(routes!(server_time)))
        .add(STC.reads(routes!(max_datapoints)))
}

/// Loads the whole dashboard; the caller must have checked access.
pub(super) async fn whole(api: &ApiState, caller: &Principal, id: DashboardId) -> ApiResult<Dashboard> {
    let found = api.entities.dashboards.get(caller.tenant, id).await?;
    found.ok_or_else(|| ApiError::not_found(format!("Dashboard with id [{id}] is not found")))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DashboardExportParams {
    /// Whether to return the images and other resources that it uses, as an export does.
    #[serde(default, deserialize_with = "flag")]
    include_resources: Option<bool>,
}

/// Returns the dashboard with this id.
#[utoipa::path(get, path = "/api/dashboard/{dashboardId}", tag = "dashboard", operation_id = "getDashboardById",
    params(("dashboardId" = Uuid, Path), DashboardExportParams), responses((status = 200, body = Dashboard)))]
async fn get(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(params): QueryParams<DashboardExportParams>,
) -> ApiResult<Response> {
    api.load::<DashboardInfo>(&caller, id, AccessOperation::Read)
        .await?;
    let mut dashboard = whole(&api, &caller, DashboardId(id)).await?;
    dashboard.resources = None;
    // Whoever comes by a public link looks, and exports nothing.
    if params.include_resources != Some(true) || caller.is_public() {
        return Ok(Json(dashboard).into_response());
    }
    let image = dashboard.info.image.as_deref();
    let shown: Vec<&Value> = dashboard.configuration.iter().collect();
    let (used, share) = resources::export(&api, &caller, image, &shown).await?;
    let used = serde_json::to_value(used).map_err(|error| ApiError::bad_request(error.to_string()))?;
    dashboard.resources = Some(used);
    let answer = Json(dashboard).into_response();
    drop(share);
    Ok(answer)
}

/// Returns the dashboard with this id, without its configuration.
#[utoipa::path(get, path = "/api/dashboard/info/{dashboardId}", tag = "dashboard",
    operation_id = "getDashboardInfoById", params(("dashboardId" = Uuid, Path)),
    responses((status = 200, body = DashboardInfo)))]
async fn info(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<DashboardInfo>> {
    Ok(Json(
        api.load::<DashboardInfo>(&caller, id, AccessOperation::Read)
            .await?,
    ))
}

/// Creates a dashboard, or updates it if it has an id. Exported dashboards are imported in the same way.
#[utoipa::path(post, path = "/api/dashboard", tag = "dashboard", operation_id = "saveDashboard",
    request_body = Dashboard, responses((status = 200, body = Dashboard)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(mut dashboard): JsonBody<EntityDraft<Dashboard>>,
) -> ApiResult<Json<Dashboard>> {
    if let Some(id) = dashboard.id {
        api.load::<DashboardInfo>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    let created = dashboard.id.is_none();
    if let Some(brought) = dashboard.resources.take() {
        let brought: Vec<ResourceExportData> = serde_json::from_value(brought)
            .map_err(|error| ApiError::bad_request(format!("resources cannot be read: {error}")))?;
        let links = resources::import(&api, &caller, brought).await?;
        if let Some(image) = &mut dashboard.info.image {
            links.rewrite(image);
        }
        if let Some(configuration) = &mut dashboard.configuration {
            links.rewrite_all(configuration);
        }
    }
    if let Some(configuration) = &mut dashboard.configuration {
        let service = &api.services.resources;
        service
            .link_scripts(caller.tenant, configuration, SCRIPTS)
            .await?;
    }
    let by = api.services.saved_by(&caller).await?;
    let dashboards = &api.services.dashboards;
    let saved = dashboards.save(caller.tenant, dashboard, &by).await?;
    let entity = AnyEntity::Dashboard(saved.info.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Returns a page of what was saved of a dashboard, the newest first. Not in ThingsBoard.
#[utoipa::path(get, path = "/api/dashboard/{dashboardId}/versions", tag = "dashboard",
    operation_id = "getDashboardVersions", params(("dashboardId" = Uuid, Path), PageParams),
    responses((status = 200, body = PageData<EntityVersion>)))]
async fn versions(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<EntityVersion>>> {
    let dashboard = api
        .load::<DashboardInfo>(&caller, id, AccessOperation::Read)
        .await?;
    let dashboards = &api.services.dashboards;
    Ok(Json(dashboards.versions(&dashboard, &page.link()?).await?))
}

/// Returns a dashboard as it was saved as a version. Not in ThingsBoard.
#[utoipa::path(get, path = "/api/dashboard/{dashboardId}/versions/{version}", tag = "dashboard",
    operation_id = "getDashboardVersion", params(("dashboardId" = Uuid, Path), ("version" = i64, Path)),
    responses((status = 200, body = Dashboard)))]
async fn version(
    ApiCall { api, caller }: ApiCall,
    PathVersion { id, version }: PathVersion,
) -> ApiResult<Json<Dashboard>> {
    let dashboard = api
        .load::<DashboardInfo>(&caller, id, AccessOperation::Read)
        .await?;
    let mut saved = api.services.dashboards.version(&dashboard, version).await?;
    saved.resources = None;
    Ok(Json(saved))
}

/// Deletes a dashboard.
#[utoipa::path(delete, path = "/api/dashboard/{dashboardId}", tag = "dashboard", operation_id = "deleteDashboard",
    params(("dashboardId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let dashboard = api
        .load::<DashboardInfo>(&caller, id, AccessOperation::Delete)
        .await?;
    api.services.dashboards.delete(&dashboard).await?;
    let entity = AnyEntity::Dashboard(dashboard);
    api.services.actions.push_deleted(&caller, &entity).await;
    Ok(())
}

/// Returns the time of the server, milliseconds.
#[utoipa::path(get, path = "/api/dashboard/serverTime", tag = "dashboard", operation_id = "getServerTime",
    responses((status = 200, body = i64, content_type = "application/json")))]
async fn server_time(State(api): State<SharedApi>) -> Json<i64> {
    Json(api.clock.now_ms())
}

/// Returns how many points a widget may request at once.
#[utoipa::path(get, path = "/api/dashboard/maxDatapointsLimit", tag = "dashboard",
    operation_id = "getMaxDatapointsLimit", responses((status = 200, body = u64, content_type = "application/json")))]
async fn max_datapoints() -> Json<u64> {
    Json(MAX_DATAPOINTS)
}
