//! Lists of entity views.

use axum::Json;
use axum::extract::State;
use fieldline_core::ports::EntityViewFilter;
use fieldline_model::entity::{EntityView, EntityViewInfo};
use fieldline_model::page::PageData;
use fieldline_model::{CustomerId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;

use super::assignable::{self, ListFilterParams, present};
use super::{Either, EntitySubtype};
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::ApiResult;
use crate::extract::{PageParams, PathIds, QueryParams};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(of_tenant)))
        .add(T.reads(routes!(infos_of_tenant)))
        .add(T.reads(routes!(by_name)))
        .add(TC.reads(routes!(of_customer)))
        .add(TC.reads(routes!(infos_of_customer)))
        .add(TC.reads(routes!(by_ids)))
        .add(TC.reads(routes!(by_ids_listed)))
        .add(TC.reads(routes!(types)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ViewFilterParams {
    /// Only entity views of this type.
    #[serde(rename = "type")]
    view_type: Option<String>,
}

impl ListFilterParams<EntityView> for ViewFilterParams {
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<EntityViewFilter> {
        let view_type = present(self.view_type);
        Ok(EntityViewFilter {
            customer,
            view_type,
            entity: None,
        })
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ViewNameParams {
    /// Name of the entity view.
    entity_view_name: Option<String>,
}

/// A page of entity views of the tenant, or with `entityViewName` the entity view of that name.
#[utoipa::path(get, path = "/api/tenant/entityViews", tag = "entity-view", operation_id = "getTenantEntityViews",
    params(PageParams, ViewFilterParams, ViewNameParams), responses((status = 200, body = PageData<EntityView>)))]
async fn of_tenant(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ViewFilterParams>,
    QueryParams(name): QueryParams<ViewNameParams>,
) -> ApiResult<Json<Either<PageData<EntityView>, EntityView>>> {
    let name = ("entityViewName", name.entity_view_name);
    assignable::of_tenant(&api, &caller, params, page, name).await
}

/// A page of entity views of the tenant with what lists show beside them.
#[utoipa::path(get, path = "/api/tenant/entityViewInfos", tag = "entity-view",
    operation_id = "getTenantEntityViewInfos",
    params(PageParams, ViewFilterParams), responses((status = 200, body = PageData<EntityViewInfo>)))]
async fn infos_of_tenant(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ViewFilterParams>,
) -> ApiResult<Json<PageData<EntityViewInfo>>> {
    assignable::infos_of_tenant::<EntityView>(&api, &caller, params, page).await
}

/// The entity view of a name.
#[utoipa::path(get, path = "/api/tenant/entityView", tag = "entity-view", operation_id = "getTenantEntityViewByName",
    params(ViewNameParams), responses((status = 200, body = EntityView)))]
async fn by_name(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(name): QueryParams<ViewNameParams>,
) -> ApiResult<Json<EntityView>> {
    assignable::by_name(&api, &caller, ("entityViewName", name.entity_view_name)).await
}

/// A page of entity views of a customer with what lists show beside them.
#[utoipa::path(get, path = "/api/customer/{customerId}/entityViewInfos", tag = "entity-view",
    operation_id = "getCustomerEntityViewInfos", params(("customerId" = Uuid, Path), PageParams, ViewFilterParams),
    responses((status = 200, body = PageData<EntityViewInfo>)))]
async fn infos_of_customer(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([customer]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ViewFilterParams>,
) -> ApiResult<Json<PageData<EntityViewInfo>>> {
    assignable::infos_of_customer::<EntityView>(&api, &caller, customer, params, page).await
}

/// A page of entity views of a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/entityViews", tag = "entity-view",
    operation_id = "getCustomerEntityViews", params(("customerId" = Uuid, Path), PageParams, ViewFilterParams),
    responses((status = 200, body = PageData<EntityView>)))]
async fn of_customer(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([customer]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ViewFilterParams>,
) -> ApiResult<Json<PageData<EntityView>>> {
    assignable::of_customer(&api, &caller, customer, params, page).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct EntityViewIds {
    /// Comma-joined ids.
    entity_view_ids: Option<String>,
}

/// Those of the entity views that the caller may see.
#[utoipa::path(get, path = "/api/entityViews", tag = "entity-view",
    operation_id = "getEntityViewsByIdsV1", params(EntityViewIds),
    responses((status = 200, body = Vec<EntityView>)))]
async fn by_ids(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(ids): QueryParams<EntityViewIds>,
) -> ApiResult<Json<Vec<EntityView>>> {
    assignable::by_ids(&api, &caller, ("entityViewIds", ids.entity_view_ids)).await
}

/// Those of the entity views that the caller may see.
#[utoipa::path(get, path = "/api/entityViews/list", tag = "entity-view",
    operation_id = "getEntityViewsByIds", params(EntityViewIds),
    responses((status = 200, body = Vec<EntityView>)))]
async fn by_ids_listed(
    state: State<SharedApi>,
    caller: CallerPrincipal,
    ids: QueryParams<EntityViewIds>,
) -> ApiResult<Json<Vec<EntityView>>> {
    by_ids(state, caller, ids).await
}

/// The types that the tenant's entity views have.
#[utoipa::path(get, path = "/api/entityView/types", tag = "entity-view", operation_id = "getEntityViewTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
) -> ApiResult<Json<Vec<EntitySubtype>>> {
    let types = api.entities.entity_views.types(caller.tenant).await?;
    let types = types.into_iter().map(|subtype| EntitySubtype {
        tenant_id: caller.tenant,
        entity_type: EntityType::EntityView,
        subtype,
    });
    Ok(Json(types.collect()))
}
