//! Dashboards.

use axum::Json;
use axum::extract::State;
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{Dashboard, DashboardInfo, EntityDraft};
use fieldline_model::{DashboardId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds, QueryParams, flag};
use crate::state::{ApiState, SharedApi};

/// Most points a widget may request at once; user interfaces read this limit.
pub(super) const MAX_DATAPOINTS: u64 = 50_000;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.reads(routes!(get)))
        .add(TC.reads(routes!(info)))
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
    /// Whether to return the resources that came with an import, as an export does.
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
) -> ApiResult<Json<Dashboard>> {
    api.load::<DashboardInfo>(&caller, id, AccessOperation::Read)
        .await?;
    let mut dashboard = whole(&api, &caller, DashboardId(id)).await?;
    if params.include_resources != Some(true) {
        dashboard.resources = None;
    }
    Ok(Json(dashboard))
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
    JsonBody(dashboard): JsonBody<EntityDraft<Dashboard>>,
) -> ApiResult<Json<Dashboard>> {
    if let Some(id) = dashboard.id {
        api.load::<DashboardInfo>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    let created = dashboard.id.is_none();
    let saved = api.services.dashboards.save(caller.tenant, dashboard).await?;
    let entity = AnyEntity::Dashboard(saved.info.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
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
