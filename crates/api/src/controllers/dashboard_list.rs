//! Lists of dashboards.

use axum::Json;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::DashboardFilter;
use fieldline_entities::access::{AccessOperation, Principal, allows};
use fieldline_model::entity::DashboardInfo;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DashboardId, TenantId};
use serde::Deserialize;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S, T, TC};
use crate::error::ApiResult;
use crate::extract::{PageParams, PathIds, QueryParams, flag, parse_uuids};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(of_tenant)))
        .add(S.reads(routes!(of_any_tenant)))
        .add(TC.reads(routes!(of_customer)))
        .add(TC.reads(routes!(by_ids)))
        .add(TC.reads(routes!(by_ids_of_old)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DashboardListParams {
    /// Only dashboards shown in mobile applications, in their mobile order.
    #[serde(default, deserialize_with = "flag")]
    mobile: Option<bool>,
}

impl DashboardListParams {
    /// Returns a page of the dashboards of the caller's tenant, or of a customer.
    async fn list(
        &self,
        api: &ApiState,
        caller: &Principal,
        customer: Option<CustomerId>,
        page: PageParams,
    ) -> ApiResult<Json<PageData<DashboardInfo>>> {
        let filter = DashboardFilter {
            customer,
            mobile: self.mobile == Some(true),
        };
        let (dashboards, link) = (&api.entities.dashboards, self.link(page)?);
        Ok(Json(dashboards.list(caller.tenant, &filter, &link).await?))
    }

    /// Uses the mobile order unless the request asks for another one.
    fn link(&self, page: PageParams) -> ApiResult<PageLink> {
        let link = page.link()?;
        if self.mobile != Some(true) || link.sort_property.is_some() {
            return Ok(link);
        }
        Ok(PageLink {
            sort_property: Some("mobileOrder".to_owned()),
            ..link
        })
    }
}

/// Returns a page of dashboards of the tenant.
#[utoipa::path(get, path = "/api/tenant/dashboards", tag = "dashboard", operation_id = "getTenantDashboards",
    params(PageParams, DashboardListParams), responses((status = 200, body = PageData<DashboardInfo>)))]
async fn of_tenant(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DashboardListParams>,
) -> ApiResult<Json<PageData<DashboardInfo>>> {
    params.list(&api, &caller, None, page).await
}

/// Returns a page of dashboards of a tenant, for the system administrator.
#[utoipa::path(get, path = "/api/tenant/{tenantId}/dashboards", tag = "dashboard",
    operation_id = "getTenantDashboardsByTenantId", params(("tenantId" = Uuid, Path), PageParams),
    responses((status = 200, body = PageData<DashboardInfo>)))]
async fn of_any_tenant(
    ApiCall { api, caller }: ApiCall,
    PathIds([tenant]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<DashboardInfo>>> {
    let tenant = TenantId(tenant);
    api.check(&caller, tenant, AccessOperation::Read).await?;
    let filter = DashboardFilter::default();
    Ok(Json(
        api.entities
            .dashboards
            .list(tenant, &filter, &page.link()?)
            .await?,
    ))
}

/// Returns a page of the dashboards that are assigned to a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/dashboards", tag = "dashboard",
    operation_id = "getCustomerDashboards", params(("customerId" = Uuid, Path), PageParams, DashboardListParams),
    responses((status = 200, body = PageData<DashboardInfo>)))]
async fn of_customer(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DashboardListParams>,
) -> ApiResult<Json<PageData<DashboardInfo>>> {
    let customer = CustomerId(id);
    api.check(&caller, customer, AccessOperation::Read).await?;
    params.list(&api, &caller, Some(customer), page).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DashboardIds {
    /// Comma-joined ids.
    dashboard_ids: Option<String>,
}

/// Returns those of the dashboards that the caller may see.
#[utoipa::path(get, path = "/api/dashboards/list", tag = "dashboard", operation_id = "getDashboardsByIds",
    params(DashboardIds), responses((status = 200, body = Vec<DashboardInfo>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(ids): QueryParams<DashboardIds>,
) -> ApiResult<Json<Vec<DashboardInfo>>> {
    let ids = parse_uuids(
        "dashboardIds",
        &ids.dashboard_ids.unwrap_or_default(),
        DashboardId,
    )?;
    let found = api.entities.dashboards.infos(caller.tenant, &ids).await?;
    let readable = found
        .into_iter()
        .map(AnyEntity::Dashboard)
        .filter(|dashboard| {
            allows(
                &caller,
                AccessOperation::Read,
                &dashboard.resource_for(caller.customer),
            )
        })
        .filter_map(|dashboard| match dashboard {
            AnyEntity::Dashboard(info) => Some(info),
            _ => None,
        })
        .collect();
    Ok(Json(readable))
}

/// Returns the same under the older path.
#[utoipa::path(get, path = "/api/dashboards", tag = "dashboard", operation_id = "getDashboardsByIdsV1",
    params(DashboardIds), responses((status = 200, body = Vec<DashboardInfo>)))]
async fn by_ids_of_old(call: ApiCall, ids: QueryParams<DashboardIds>) -> ApiResult<Json<Vec<DashboardInfo>>> {
    by_ids(call, ids).await
}
