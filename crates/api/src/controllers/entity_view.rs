//! Entity views, and whose they are.

use axum::Json;
use axum::extract::State;
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{Authority, EntityDraft, EntityView, EntityViewInfo};
use utoipa_axum::routes;

use super::assignable;
use super::conflict::ConflictParams;
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds, QueryParams};
use crate::state::{ApiState, SharedApi};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC, routes!(get))
        .add(TC, routes!(info))
        .add(TC, routes!(save))
        .add(T, routes!(delete))
        .add(T, routes!(assign))
        .add(T, routes!(assign_to_public))
        .add(T, routes!(unassign))
}

/// The entity view of an id.
#[utoipa::path(get, path = "/api/entityView/{entityViewId}", tag = "entity-view", operation_id = "getEntityViewById",
    params(("entityViewId" = Uuid, Path)), responses((status = 200, body = EntityView)))]
async fn get(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<EntityView>> {
    Ok(Json(
        api.load::<EntityView>(&caller, id, AccessOperation::Read).await?,
    ))
}

/// The entity view of an id with what lists show beside it.
#[utoipa::path(get, path = "/api/entityView/info/{entityViewId}", tag = "entity-view",
    operation_id = "getEntityViewInfoById",
    params(("entityViewId" = Uuid, Path)), responses((status = 200, body = EntityViewInfo)))]
async fn info(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<EntityViewInfo>> {
    assignable::info::<EntityView>(&api, &caller, id).await
}

/// Whether the caller may save this entity view; customer users may rename theirs, but not let them show anything else.
async fn check_save(api: &ApiState, caller: &Principal, view: &mut EntityDraft<EntityView>) -> ApiResult<()> {
    let stored = assignable::check_save(api, caller, view).await?;
    if let Some(stored) = stored.filter(|_| caller.authority == Authority::CustomerUser) {
        if view.entity_id != stored.entity_id {
            return Err(ApiError::denied());
        }
        view.keys = stored.keys;
        view.start_time_ms = stored.start_time_ms;
        view.end_time_ms = stored.end_time_ms;
    }
    Ok(())
}

/// Creates an entity view, or updates it where it has an id.
#[utoipa::path(post, path = "/api/entityView", tag = "entity-view",
    operation_id = "saveEntityView", params(ConflictParams),
    request_body = EntityView, responses((status = 200, body = EntityView)))]
async fn save(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(names): QueryParams<ConflictParams>,
    JsonBody(mut view): JsonBody<EntityDraft<EntityView>>,
) -> ApiResult<Json<EntityView>> {
    check_save(&api, &caller, &mut view).await?;
    let created = view.id.is_none();
    let names = names.policy()?;
    let saved = api
        .services
        .entity_views
        .save(caller.tenant, view, &names)
        .await?;
    let entity = AnyEntity::EntityView(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes an entity view with its relations and alarms.
#[utoipa::path(delete, path = "/api/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "deleteEntityView",
    params(("entityViewId" = Uuid, Path)), responses((status = 200)))]
async fn delete(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<()> {
    assignable::delete::<EntityView>(&api, &caller, id).await
}

/// Assigns an entity view to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "assignEntityViewToCustomer", params(("customerId" = Uuid, Path), ("entityViewId" = Uuid, Path)),
    responses((status = 200, body = EntityView)))]
async fn assign(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds(ids): PathIds<2>,
) -> ApiResult<Json<EntityView>> {
    assignable::assign(&api, &caller, ids).await
}

/// Assigns an entity view to the public customer.
#[utoipa::path(post, path = "/api/customer/public/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "assignEntityViewToPublicCustomer", params(("entityViewId" = Uuid, Path)),
    responses((status = 200, body = EntityView)))]
async fn assign_to_public(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<EntityView>> {
    assignable::assign_to_public(&api, &caller, id).await
}

/// Takes an entity view back from its customer.
#[utoipa::path(delete, path = "/api/customer/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "unassignEntityViewFromCustomer", params(("entityViewId" = Uuid, Path)),
    responses((status = 200, body = EntityView)))]
async fn unassign(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<EntityView>> {
    assignable::unassign(&api, &caller, id).await
}
