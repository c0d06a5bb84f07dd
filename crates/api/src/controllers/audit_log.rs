//! The audit log: actions of users.

use axum::Json;
use axum::extract::Path;
use fieldline_core::ports::{AuditFilter, AuditScope};
use fieldline_entities::access::Principal;
use fieldline_model::entity::{ActionType, AuditLog};
use fieldline_model::page::PageData;
use fieldline_model::{CustomerId, UserId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::relation::entity;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, PathIds, QueryParams};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST.reads(routes!(all)))
        .add(T.reads(routes!(of_customer)))
        .add(ST.reads(routes!(of_user)))
        .add(ST.reads(routes!(of_entity)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AuditParams {
    /// Only actions at or after this time, milliseconds.
    #[param(value_type = Option<i64>)]
    start_time: Option<String>,
    /// Only actions at or before this time, milliseconds.
    #[param(value_type = Option<i64>)]
    end_time: Option<String>,
    /// Comma-joined kinds of actions, such as `ADDED,LOGIN`.
    action_types: Option<String>,
}

impl AuditParams {
    fn filter(self, scope: AuditScope) -> ApiResult<AuditFilter> {
        let time = |name: &str, text: Option<String>| match text.filter(|text| !text.is_empty()) {
            Some(text) => text.parse().map(Some).map_err(|_| {
                ApiError::bad_request(format!("Parameter '{name}' must be a number, not '{text}'"))
            }),
            None => Ok(None),
        };
        let actions = self.action_types.unwrap_or_default();
        let actions: ApiResult<Vec<ActionType>> = actions
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| {
                ActionType::from_name(&name.to_uppercase())
                    .ok_or_else(|| ApiError::bad_request(format!("Action type \"{name}\" is not supported!")))
            })
            .collect();
        Ok(AuditFilter {
            scope,
            start_time: time("startTime", self.start_time)?,
            end_time: time("endTime", self.end_time)?,
            actions: actions?,
        })
    }
}

/// Returns a page of the actions in the caller's tenant; for a system administrator, of the actions outside any tenant.
async fn page(
    api: &ApiState,
    caller: &Principal,
    scope: AuditScope,
    page: PageParams,
    params: AuditParams,
) -> ApiResult<Json<PageData<AuditLog>>> {
    let (link, filter) = (page.link()?, params.filter(scope)?);
    Ok(Json(
        api.entities.audit.list(caller.tenant, &filter, &link).await?,
    ))
}

/// Returns a page of the actions of users.
#[utoipa::path(get, path = "/api/audit/logs", tag = "audit-log", operation_id = "getAuditLogs",
    params(PageParams, AuditParams), responses((status = 200, body = PageData<AuditLog>)))]
async fn all(
    ApiCall { api, caller }: ApiCall,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AuditParams>,
) -> ApiResult<Json<PageData<AuditLog>>> {
    page(&api, &caller, AuditScope::Tenant, link, params).await
}

/// Returns a page of the actions that concern a customer.
#[utoipa::path(get, path = "/api/audit/logs/customer/{customerId}", tag = "audit-log",
    operation_id = "getAuditLogsByCustomerId", params(("customerId" = Uuid, Path), PageParams, AuditParams),
    responses((status = 200, body = PageData<AuditLog>)))]
async fn of_customer(
    ApiCall { api, caller }: ApiCall,
    PathIds([customer]): PathIds<1>,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AuditParams>,
) -> ApiResult<Json<PageData<AuditLog>>> {
    let scope = AuditScope::Customer(CustomerId(customer));
    page(&api, &caller, scope, link, params).await
}

/// Returns a page of the actions of a user.
#[utoipa::path(get, path = "/api/audit/logs/user/{userId}", tag = "audit-log", operation_id = "getAuditLogsByUserId",
    params(("userId" = Uuid, Path), PageParams, AuditParams),
    responses((status = 200, body = PageData<AuditLog>)))]
async fn of_user(
    ApiCall { api, caller }: ApiCall,
    PathIds([user]): PathIds<1>,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AuditParams>,
) -> ApiResult<Json<PageData<AuditLog>>> {
    page(&api, &caller, AuditScope::User(UserId(user)), link, params).await
}

/// Returns a page of the actions on an entity, which may have been deleted.
#[utoipa::path(get, path = "/api/audit/logs/entity/{entityType}/{entityId}", tag = "audit-log",
    operation_id = "getAuditLogsByEntityId",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), PageParams, AuditParams),
    responses((status = 200, body = PageData<AuditLog>)))]
async fn of_entity(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AuditParams>,
) -> ApiResult<Json<PageData<AuditLog>>> {
    let scope = AuditScope::Entity(entity(&kind, &id)?);
    page(&api, &caller, scope, link, params).await
}
