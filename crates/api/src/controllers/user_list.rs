//! Lists of users.

use axum::Json;
use axum::extract::State;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::UserFilter;
use fieldline_entities::access::{AccessOperation, Principal, allows};
use fieldline_model::entity::{Alarm, Authority, User};
use fieldline_model::page::PageData;
use fieldline_model::{CustomerId, TenantId, UserId};
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::Either;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S, T, TC};
use crate::error::ApiResult;
use crate::extract::{PageParams, PathIds, QueryParams, parse_uuids};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.reads(routes!(list)))
        .add(TC.reads(routes!(by_ids)))
        .add(TC.reads(routes!(infos)))
        .add(TC.reads(routes!(assignable)))
        .add(S.reads(routes!(tenant_admins)))
        .add(T.reads(routes!(customer_users)))
}

/// Returns the filter for the users that the caller may see: those of the tenant, or of the customer.
fn visible_to(caller: &Principal) -> UserFilter {
    match caller.authority {
        Authority::CustomerUser => UserFilter::CustomerUsers(caller.tenant, caller.customer),
        _ => UserFilter::OfTenant(caller.tenant),
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct UserIds {
    /// Comma-joined ids.
    user_ids: Option<String>,
}

/// Returns a page of the users that the caller may see, or with `userIds` those of them with these ids.
#[utoipa::path(get, path = "/api/users", tag = "user", operation_id = "getUsers", params(PageParams, UserIds),
    responses((status = 200, body = inline(Either<PageData<User>, Vec<User>>))))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(ids): QueryParams<UserIds>,
) -> ApiResult<Json<Either<PageData<User>, Vec<User>>>> {
    if ids.user_ids.is_some() {
        let Json(users) = by_ids(ApiCall { api, caller }, QueryParams(ids)).await?;
        return Ok(Json(Either::Right(users)));
    }
    let users = api
        .entities
        .users
        .list(visible_to(&caller), &page.link()?)
        .await?;
    Ok(Json(Either::Left(users)))
}

/// Returns those of the users that the caller may see.
#[utoipa::path(get, path = "/api/users/list", tag = "user", operation_id = "getUsersByIds", params(UserIds),
    responses((status = 200, body = Vec<User>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(ids): QueryParams<UserIds>,
) -> ApiResult<Json<Vec<User>>> {
    let mut users = Vec::new();
    for id in parse_uuids("userIds", &ids.user_ids.unwrap_or_default(), UserId)? {
        let Some(user) = api.entities.users.get(caller.tenant, id).await? else {
            continue;
        };
        if allows(
            &caller,
            AccessOperation::Read,
            &AnyEntity::User(user.clone()).resource(),
        ) {
            users.push(user);
        }
    }
    Ok(Json(users))
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct UserEmailInfo {
    /// Id with its entity type.
    id: UserId,
    /// E-mail address.
    email: String,
    /// First name.
    first_name: Option<String>,
    /// Last name.
    last_name: Option<String>,
}

impl From<User> for UserEmailInfo {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            email: user.email,
            first_name: user.first_name,
            last_name: user.last_name,
        }
    }
}

/// Returns a page of names and addresses of the users that the caller may see.
#[utoipa::path(get, path = "/api/users/info", tag = "user", operation_id = "findUsersByQuery", params(PageParams),
    responses((status = 200, body = PageData<UserEmailInfo>)))]
async fn infos(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<UserEmailInfo>>> {
    let users = api
        .entities
        .users
        .list(visible_to(&caller), &page.link()?)
        .await?;
    Ok(Json(users.map(UserEmailInfo::from)))
}

/// Returns a page of the users that an alarm can be assigned to: administrators, and users of the customer of its
/// originator; for customer users the users of their customer.
#[utoipa::path(get, path = "/api/users/assign/{alarmId}", tag = "user", operation_id = "getUsersForAssign",
    params(("alarmId" = Uuid, Path), PageParams), responses((status = 200, body = PageData<UserEmailInfo>)))]
async fn assignable(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<UserEmailInfo>>> {
    let alarm = api.load::<Alarm>(&caller, id, AccessOperation::Read).await?;
    let filter = match (caller.authority, alarm.customer_id) {
        (Authority::CustomerUser, _) => UserFilter::CustomerUsers(caller.tenant, caller.customer),
        (_, Some(customer)) => UserFilter::AdminsAndCustomerUsers(caller.tenant, customer),
        (_, None) => UserFilter::TenantAdmins(caller.tenant),
    };
    let users = api.entities.users.list(filter, &page.link()?).await?;
    Ok(Json(users.map(UserEmailInfo::from)))
}

/// Returns a page of the administrators of a tenant.
#[utoipa::path(get, path = "/api/tenant/{tenantId}/users", tag = "user", operation_id = "getTenantAdmins",
    params(("tenantId" = Uuid, Path), PageParams), responses((status = 200, body = PageData<User>)))]
async fn tenant_admins(
    State(api): State<SharedApi>,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<User>>> {
    let filter = UserFilter::TenantAdmins(TenantId(id));
    Ok(Json(api.entities.users.list(filter, &page.link()?).await?))
}

/// Returns a page of the users of a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/users", tag = "user", operation_id = "getCustomerUsers",
    params(("customerId" = Uuid, Path), PageParams), responses((status = 200, body = PageData<User>)))]
async fn customer_users(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<User>>> {
    api.check(&caller, CustomerId(id), AccessOperation::Read).await?;
    let filter = UserFilter::CustomerUsers(caller.tenant, CustomerId(id));
    Ok(Json(api.entities.users.list(filter, &page.link()?).await?))
}
