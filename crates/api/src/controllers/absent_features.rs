//! What ThingsBoard's user interface asks for on ordinary screens about features that are not here: there is none of it, so
//! lists are empty and counts are zero. What would change something is not served.

use axum::Json;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::Customer;
use fieldline_model::page::PageData;
use serde_json::Value;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ANYBODY, ApiRoutes, STC, T, TC};
use crate::error::ApiResult;
use crate::extract::{PageParams, PathIds, QueryParams};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ANYBODY.asks(routes!(sign_in_providers)))
        .add(STC.reads(routes!(second_factors)))
        .add(STC.reads(routes!(notifications)))
        .add(STC.reads(routes!(unread_notifications)))
        .add(TC.reads(routes!(edge_types)))
        .add(T.reads(routes!(edges)))
        .add(TC.reads(routes!(edges_of_customer)))
}

/// Returns the providers of single sign-on that the log-in page shows: none.
#[utoipa::path(post, path = "/api/noauth/oauth2Clients", tag = "o-auth-2", operation_id = "getOAuth2Clients",
    responses((status = 200, body = Vec<Value>)))]
async fn sign_in_providers() -> Json<[Value; 0]> {
    Json([])
}

/// Returns the kinds of second factors that users may set up: none.
#[utoipa::path(get, path = "/api/2fa/providers", tag = "two-factor-auth-config",
    operation_id = "getAvailableTwoFaProviders", responses((status = 200, body = Vec<Value>)))]
async fn second_factors() -> Json<[Value; 0]> {
    Json([])
}

fn nothing(page: PageParams) -> ApiResult<Json<PageData<Value>>> {
    Ok(Json(PageData::new(Vec::new(), 0, &page.link()?)))
}

/// Returns a page of the caller's notifications: an empty one.
#[utoipa::path(get, path = "/api/notifications", tag = "notification", operation_id = "getNotifications",
    params(PageParams), responses((status = 200, body = PageData<Value>)))]
async fn notifications(QueryParams(page): QueryParams<PageParams>) -> ApiResult<Json<PageData<Value>>> {
    nothing(page)
}

/// Returns how many of the caller's notifications are unread: zero.
#[utoipa::path(get, path = "/api/notifications/unread/count", tag = "notification",
    operation_id = "getUnreadNotificationsCount", responses((status = 200, body = u32, content_type = "application/json")))]
async fn unread_notifications() -> Json<u32> {
    Json(0)
}

/// Returns the types of edges: none.
#[utoipa::path(get, path = "/api/edge/types", tag = "edge", operation_id = "getEdgeTypes",
    responses((status = 200, body = Vec<Value>)))]
async fn edge_types() -> Json<[Value; 0]> {
    Json([])
}

/// Returns a page of the tenant's edges: an empty one.
#[utoipa::path(get, path = "/api/tenant/edgeInfos", tag = "edge", operation_id = "getTenantEdgeInfos",
    params(PageParams), responses((status = 200, body = PageData<Value>)))]
async fn edges(QueryParams(page): QueryParams<PageParams>) -> ApiResult<Json<PageData<Value>>> {
    nothing(page)
}

/// Returns a page of a customer's edges: an empty one.
#[utoipa::path(get, path = "/api/customer/{customerId}/edgeInfos", tag = "edge", operation_id = "getCustomerEdgeInfos",
    params(("customerId" = Uuid, Path), PageParams), responses((status = 200, body = PageData<Value>)))]
async fn edges_of_customer(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<Value>>> {
    api.load::<Customer>(&caller, id, AccessOperation::Read).await?;
    nothing(page)
}
