//! Entity views, and whose they are.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation, Principal};
use fieldline_model::entity::{Authority, EntityView, EntityViewInfo};
use fieldline_model::message::MsgType;
use fieldline_model::{CustomerId, EntityViewId};
use utoipa_axum::routes;
use uuid::Uuid;

use super::conflict::ConflictParams;
use super::customer;
use crate::caller::Caller;
use crate::endpoint::{Routes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{Body, Ids, Query};
use crate::state::{Api, ApiState};

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(TC, routes!(get))
        .add(TC, routes!(info))
        .add(TC, routes!(save))
        .add(T, routes!(delete))
        .add(T, routes!(assign))
        .add(T, routes!(assign_to_public))
        .add(T, routes!(unassign))
}

pub(super) async fn load(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: Operation,
) -> ApiResult<EntityView> {
    match api.check(caller, EntityViewId(id), operation).await? {
        Entity::EntityView(view) => Ok(view),
        _ => Err(ApiError::not_found("Entity view not found")),
    }
}

/// The entity view of an id.
#[utoipa::path(get, path = "/api/entityView/{entityViewId}", tag = "entity-view", operation_id = "getEntityViewById",
    params(("entityViewId" = Uuid, Path)), responses((status = 200, body = EntityView)))]
async fn get(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<EntityView>> {
    Ok(Json(load(&api, &caller, id, Operation::Read).await?))
}

/// The entity view of an id with what lists show beside it.
#[utoipa::path(get, path = "/api/entityView/info/{entityViewId}", tag = "entity-view",
    operation_id = "getEntityViewInfoById",
    params(("entityViewId" = Uuid, Path)), responses((status = 200, body = EntityViewInfo)))]
async fn info(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<EntityViewInfo>> {
    load(&api, &caller, id, Operation::Read).await?;
    let info = api
        .entities
        .entity_views
        .info(caller.tenant, EntityViewId(id))
        .await?;
    info.map(Json)
        .ok_or_else(|| ApiError::not_found(format!("Entity view with id [{id}] is not found")))
}

/// Whether the caller may save this entity view; customer users may change theirs, but not hand them over.
async fn check_save(api: &ApiState, caller: &Principal, view: &mut EntityView) -> ApiResult<()> {
    match view.id {
        Some(id) => {
            let stored = load(api, caller, id.0, Operation::Write).await?;
            if caller.authority == Authority::CustomerUser {
                // Else a view would show them what they may not see.
                if view.entity_id != stored.entity_id {
                    return Err(ApiError::denied());
                }
                view.customer_id = stored.customer_id;
                view.keys = stored.keys;
                view.start_time_ms = stored.start_time_ms;
                view.end_time_ms = stored.end_time_ms;
            }
            Ok(())
        }
        None if caller.authority == Authority::CustomerUser => Err(ApiError::denied()),
        None => Ok(()),
    }
}

/// Creates an entity view, or updates it where it has an id.
#[utoipa::path(post, path = "/api/entityView", tag = "entity-view",
    operation_id = "saveEntityView", params(ConflictParams),
    request_body = EntityView, responses((status = 200, body = EntityView)))]
async fn save(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(names): Query<ConflictParams>,
    Body(mut view): Body<EntityView>,
) -> ApiResult<Json<EntityView>> {
    check_save(&api, &caller, &mut view).await?;
    let created = view.id.is_none();
    let names = names.policy()?;
    let saved = api
        .services
        .entity_views
        .save(caller.tenant, view, &names)
        .await?;
    let entity = Entity::EntityView(saved.clone());
    api.services.actions.saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes an entity view with its relations and alarms.
#[utoipa::path(delete, path = "/api/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "deleteEntityView",
    params(("entityViewId" = Uuid, Path)), responses((status = 200)))]
async fn delete(State(api): State<Api>, Caller(caller): Caller, Ids([id]): Ids<1>) -> ApiResult<()> {
    let view = load(&api, &caller, id, Operation::Delete).await?;
    api.services
        .entity_views
        .delete(caller.tenant, EntityViewId(id))
        .await?;
    let entity = Entity::EntityView(view);
    api.services
        .actions
        .entity(&caller, MsgType::EntityDeleted, &entity)
        .await;
    Ok(())
}

/// Assigns an entity view to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "assignEntityViewToCustomer", params(("customerId" = Uuid, Path), ("entityViewId" = Uuid, Path)),
    responses((status = 200, body = EntityView)))]
async fn assign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([customer, view]): Ids<2>,
) -> ApiResult<Json<EntityView>> {
    let customer = customer::load(&api, &caller, customer, Operation::Read).await?;
    load(&api, &caller, view, Operation::AssignToCustomer).await?;
    let views = &api.services.entity_views;
    let assigned = views
        .assign(caller.tenant, EntityViewId(view), customer.id.unwrap_or_default())
        .await?;
    let entity = Entity::EntityView(assigned.clone());
    api.services.actions.assigned(&caller, &entity, &customer).await;
    Ok(Json(assigned))
}

/// Assigns an entity view to the public customer.
#[utoipa::path(post, path = "/api/customer/public/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "assignEntityViewToPublicCustomer", params(("entityViewId" = Uuid, Path)),
    responses((status = 200, body = EntityView)))]
async fn assign_to_public(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([view]): Ids<1>,
) -> ApiResult<Json<EntityView>> {
    load(&api, &caller, view, Operation::AssignToCustomer).await?;
    let public = api.services.customers.public(caller.tenant).await?;
    let views = &api.services.entity_views;
    let assigned = views
        .assign(caller.tenant, EntityViewId(view), public.id.unwrap_or_default())
        .await?;
    let entity = Entity::EntityView(assigned.clone());
    api.services.actions.assigned(&caller, &entity, &public).await;
    Ok(Json(assigned))
}

/// Takes an entity view back from its customer.
#[utoipa::path(delete, path = "/api/customer/entityView/{entityViewId}", tag = "entity-view",
    operation_id = "unassignEntityViewFromCustomer", params(("entityViewId" = Uuid, Path)),
    responses((status = 200, body = EntityView)))]
async fn unassign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([view]): Ids<1>,
) -> ApiResult<Json<EntityView>> {
    let stored = load(&api, &caller, view, Operation::UnassignFromCustomer).await?;
    if stored.customer_id.is_null() {
        return Err(ApiError::bad_request(
            "Entity view isn't assigned to any customer!",
        ));
    }
    let customer = customer::load(&api, &caller, stored.customer_id.0, Operation::Read).await?;
    let views = &api.services.entity_views;
    let taken = views
        .assign(caller.tenant, EntityViewId(view), CustomerId::NULL)
        .await?;
    let entity = Entity::EntityView(taken.clone());
    api.services.actions.unassigned(&caller, &entity, &customer).await;
    Ok(Json(taken))
}
