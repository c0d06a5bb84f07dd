//! The home dashboard: set for the user, the customer, or the whole tenant; the first one set wins.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use fieldline_entities::access::{AccessError, AccessOperation, Principal};
use fieldline_model::entity::{Authority, DashboardInfo, HomeDashboard, HomeDashboardInfo, Tenant};
use fieldline_model::{DashboardId, TenantId};
use serde_json::{Map, Value, json};
use utoipa_axum::routes;

use super::dashboard::whole;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, parse_uuid};
use crate::state::ApiState;

const ID: &str = "homeDashboardId";
const DEFAULT_ID: &str = "defaultDashboardId";
const HIDE_TOOLBAR: &str = "homeDashboardHideToolbar";

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(home)))
        .add(STC.reads(routes!(home_info)))
        .add(T.reads(routes!(of_tenant)))
        .add(T.changes(routes!(set_of_tenant), AuditRule::Nothing))
}

/// Reads the home dashboard from free-form JSON.
fn named(info: Option<&Value>) -> Option<HomeDashboardInfo> {
    let info = info?;
    let id = parse_uuid(info.get(ID)?.as_str()?).ok()?;
    Some(HomeDashboardInfo {
        dashboard_id: Some(DashboardId(id)),
        hide_dashboard_toolbar: info.get(HIDE_TOOLBAR).and_then(Value::as_bool).unwrap_or(true),
    })
}

/// Takes the default and the home dashboard out of free-form JSON of somebody, if they are gone. Clients would open them.
pub(super) async fn forget_gone_dashboards(
    api: &ApiState,
    tenant: TenantId,
    info: &mut Option<Value>,
) -> ApiResult<()> {
    let Some(fields) = info.as_mut().and_then(Value::as_object_mut) else {
        return Ok(());
    };
    for name in [DEFAULT_ID, ID] {
        let Some(id) = fields
            .get(name)
            .and_then(Value::as_str)
            .and_then(|id| parse_uuid(id).ok())
        else {
            continue;
        };
        if api
            .entities
            .dashboards
            .info(tenant, DashboardId(id))
            .await?
            .is_none()
        {
            fields.remove(name);
        }
    }
    Ok(())
}

/// Returns the first home dashboard, from the user to the tenant, that the caller may see.
async fn find(api: &ApiState, caller: &Principal) -> ApiResult<Option<HomeDashboardInfo>> {
    if caller.authority == Authority::SysAdmin {
        return Ok(None);
    }
    let stores = &api.entities;
    let user = stores.users.get(caller.tenant, caller.user).await?;
    if let Some(home) = visible(api, caller, user.and_then(|user| user.additional_info)).await? {
        return Ok(Some(home));
    }
    if caller.authority == Authority::CustomerUser {
        let customer = stores.customers.get(caller.tenant, caller.customer).await?;
        let info = customer.and_then(|customer| customer.additional_info);
        if let Some(home) = visible(api, caller, info).await? {
            return Ok(Some(home));
        }
    }
    let tenant = stores.tenants.get(caller.tenant).await?;
    visible(api, caller, tenant.and_then(|tenant| tenant.additional_info)).await
}

async fn visible(
    api: &ApiState,
    caller: &Principal,
    info: Option<Value>,
) -> ApiResult<Option<HomeDashboardInfo>> {
    let Some(home) = named(info.as_ref()) else {
        return Ok(None);
    };
    let id = home.dashboard_id.unwrap_or_default();
    match api
        .load::<DashboardInfo>(caller, id.0, AccessOperation::Read)
        .await
    {
        Ok(_) => Ok(Some(home)),
        Err(AccessError::Store(error)) => Err(error.into()),
        // The dashboard was deleted, or is not assigned to the customer.
        Err(_) => Ok(None),
    }
}

/// Returns the caller's home dashboard; an empty body if none is set.
#[utoipa::path(get, path = "/api/dashboard/home", tag = "dashboard", operation_id = "getHomeDashboard",
    responses((status = 200, body = HomeDashboard)))]
async fn home(ApiCall { api, caller }: ApiCall) -> ApiResult<Response> {
    let Some(home) = find(&api, &caller).await? else {
        return Ok(().into_response());
    };
    let mut dashboard = whole(&api, &caller, home.dashboard_id.unwrap_or_default()).await?;
    dashboard.resources = None;
    Ok(Json(HomeDashboard {
        dashboard,
        hide_dashboard_toolbar: home.hide_dashboard_toolbar,
    })
    .into_response())
}

/// Returns which dashboard is the caller's home dashboard; an empty body if none is set.
#[utoipa::path(get, path = "/api/dashboard/home/info", tag = "dashboard", operation_id = "getHomeDashboardInfo",
    responses((status = 200, body = HomeDashboardInfo)))]
async fn home_info(ApiCall { api, caller }: ApiCall) -> ApiResult<Response> {
    Ok(match find(&api, &caller).await? {
        Some(home) => Json(home).into_response(),
        None => ().into_response(),
    })
}

async fn tenant_of(api: &ApiState, id: TenantId) -> ApiResult<Tenant> {
    let found = api.entities.tenants.get(id).await?;
    found.ok_or_else(|| ApiError::not_found("Tenant is not found"))
}

/// Returns the home dashboard of the tenant, used where nothing else is set.
#[utoipa::path(get, path = "/api/tenant/dashboard/home/info", tag = "dashboard",
    operation_id = "getTenantHomeDashboardInfo", responses((status = 200, body = HomeDashboardInfo)))]
async fn of_tenant(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<HomeDashboardInfo>> {
    let tenant = tenant_of(&api, caller.tenant).await?;
    Ok(Json(named(tenant.additional_info.as_ref()).unwrap_or_default()))
}

/// Sets the home dashboard of the tenant.
#[utoipa::path(post, path = "/api/tenant/dashboard/home/info", tag = "dashboard",
    operation_id = "setTenantHomeDashboardInfo", request_body = HomeDashboardInfo, responses((status = 200)))]
async fn set_of_tenant(
    ApiCall { api, caller }: ApiCall,
    JsonBody(home): JsonBody<HomeDashboardInfo>,
) -> ApiResult<()> {
    if let Some(id) = home.dashboard_id {
        api.load::<DashboardInfo>(&caller, id.0, AccessOperation::Read)
            .await?;
    }
    let mut tenant = tenant_of(&api, caller.tenant).await?;
    let mut fields: Map<String, Value> = match tenant.additional_info {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    match home.dashboard_id {
        Some(id) => {
            fields.insert(ID.to_owned(), json!(id.to_string()));
            fields.insert(HIDE_TOOLBAR.to_owned(), home.hide_dashboard_toolbar.into());
        }
        None => {
            fields.shift_remove(ID);
            fields.shift_remove(HIDE_TOOLBAR);
        }
    }
    tenant.additional_info = Some(fields.into());
    api.services.tenants.save(tenant.into()).await?;
    Ok(())
}
