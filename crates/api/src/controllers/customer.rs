//! Customers.

use axum::Json;
use axum::http::header;
use axum::response::IntoResponse;
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::{Customer, EntityDraft};
use fieldline_model::page::PageData;
use fieldline_model::{CustomerId, EntityType};
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::Either;
use super::conflict::ConflictParams;
use super::dashboard_home::forget_gone_dashboards;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, missing, parse_uuids};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.reads(routes!(get)))
        .add(TC.reads(routes!(short_info)))
        .add(TC.reads(routes!(title)))
        .add(T.changes(routes!(save), AuditRule::Save(EntityType::Customer)))
        .add(T.changes(routes!(delete), AuditRule::Delete(EntityType::Customer)))
        .add(T.reads(routes!(list)))
        .add(T.reads(routes!(by_ids)))
        .add(T.reads(routes!(by_title)))
}

/// Returns the customer with this id.
#[utoipa::path(get, path = "/api/customer/{customerId}", tag = "customer", operation_id = "getCustomerById",
    params(("customerId" = Uuid, Path)), responses((status = 200, body = Customer)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<Customer>> {
    let mut customer = api.load::<Customer>(&caller, id, AccessOperation::Read).await?;
    forget_gone_dashboards(&api, customer.tenant_id, &mut customer.additional_info).await?;
    Ok(Json(customer))
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShortCustomerInfo {
    /// Title.
    title: String,
    /// Whether it is the public customer.
    is_public: bool,
}

/// Returns the title of a customer, and whether it is the public one.
#[utoipa::path(get, path = "/api/customer/{customerId}/shortInfo", tag = "customer",
    operation_id = "getShortCustomerInfoById", params(("customerId" = Uuid, Path)),
    responses((status = 200, body = ShortCustomerInfo)))]
async fn short_info(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<ShortCustomerInfo>> {
    let customer = api.load::<Customer>(&caller, id, AccessOperation::Read).await?;
    Ok(Json(ShortCustomerInfo {
        is_public: customer.is_public(),
        title: customer.title,
    }))
}

/// Returns the title of a customer as plain text.
#[utoipa::path(get, path = "/api/customer/{customerId}/title", tag = "customer",
    operation_id = "getCustomerTitleById", params(("customerId" = Uuid, Path)),
    responses((status = 200, body = String, content_type = "application/text")))]
async fn title(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<impl IntoResponse> {
    let customer = api.load::<Customer>(&caller, id, AccessOperation::Read).await?;
    Ok(([(header::CONTENT_TYPE, "application/text")], customer.title))
}

/// Creates a customer, or updates it if it has an id.
#[utoipa::path(post, path = "/api/customer", tag = "customer", operation_id = "saveCustomer",
    params(ConflictParams), request_body = Customer, responses((status = 200, body = Customer)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    QueryParams(names): QueryParams<ConflictParams>,
    JsonBody(customer): JsonBody<EntityDraft<Customer>>,
) -> ApiResult<Json<Customer>> {
    if let Some(id) = customer.id {
        api.load::<Customer>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    let created = customer.id.is_none();
    let names = names.policy()?;
    let saved = api
        .services
        .customers
        .save(caller.tenant, customer, &names)
        .await?;
    let entity = AnyEntity::Customer(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a customer with its users, and unassigns its devices.
#[utoipa::path(delete, path = "/api/customer/{customerId}", tag = "customer", operation_id = "deleteCustomer",
    params(("customerId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let customer = api.load::<Customer>(&caller, id, AccessOperation::Delete).await?;
    api.services
        .customers
        .delete(caller.tenant, CustomerId(id))
        .await?;
    let entity = AnyEntity::Customer(customer);
    api.services.actions.push_deleted(&caller, &entity).await;
    Ok(())
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct CustomerIds {
    /// Comma-joined ids.
    customer_ids: Option<String>,
}

/// Returns a page of customers, or with `customerIds` those of them that the tenant has.
#[utoipa::path(get, path = "/api/customers", tag = "customer", operation_id = "getCustomers",
    params(PageParams, CustomerIds), responses((status = 200, body = inline(Either<PageData<Customer>, Vec<Customer>>))))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(ids): QueryParams<CustomerIds>,
) -> ApiResult<Json<Either<PageData<Customer>, Vec<Customer>>>> {
    if ids.customer_ids.is_some() {
        let Json(customers) = by_ids(ApiCall { api, caller }, QueryParams(ids)).await?;
        return Ok(Json(Either::Right(customers)));
    }
    let customers = api.entities.customers.list(caller.tenant, &page.link()?).await?;
    Ok(Json(Either::Left(customers)))
}

/// Returns those of the customers that the tenant has.
#[utoipa::path(get, path = "/api/customers/list", tag = "customer", operation_id = "getCustomersByIds",
    params(CustomerIds), responses((status = 200, body = Vec<Customer>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(ids): QueryParams<CustomerIds>,
) -> ApiResult<Json<Vec<Customer>>> {
    let ids = parse_uuids("customerIds", &ids.customer_ids.unwrap_or_default(), CustomerId)?;
    Ok(Json(api.entities.customers.by_ids(caller.tenant, &ids).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct CustomerTitleParams {
    /// Title of the customer.
    customer_title: Option<String>,
}

/// Returns the customer with this title.
#[utoipa::path(get, path = "/api/tenant/customers", tag = "customer", operation_id = "getTenantCustomer",
    params(CustomerTitleParams), responses((status = 200, body = Customer)))]
async fn by_title(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<CustomerTitleParams>,
) -> ApiResult<Json<Customer>> {
    let title = params.customer_title.ok_or_else(|| missing("customerTitle"))?;
    let found = api.entities.customers.by_title(caller.tenant, &title).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found(format!("Customer with title [{title}] is not found")))
}
