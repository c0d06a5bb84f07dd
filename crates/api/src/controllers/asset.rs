//! Assets, and whose they are.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation, Principal};
use fieldline_model::entity::{Asset, AssetInfo, Authority};
use fieldline_model::message::MsgType;
use fieldline_model::{AssetId, CustomerId};
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
) -> ApiResult<Asset> {
    match api.check(caller, AssetId(id), operation).await? {
        Entity::Asset(asset) => Ok(asset),
        _ => Err(ApiError::not_found("Asset not found")),
    }
}

/// The asset of an id.
#[utoipa::path(get, path = "/api/asset/{assetId}", tag = "asset", operation_id = "getAssetById",
    params(("assetId" = Uuid, Path)), responses((status = 200, body = Asset)))]
async fn get(State(api): State<Api>, Caller(caller): Caller, Ids([id]): Ids<1>) -> ApiResult<Json<Asset>> {
    Ok(Json(load(&api, &caller, id, Operation::Read).await?))
}

/// The asset of an id with what lists show beside it.
#[utoipa::path(get, path = "/api/asset/info/{assetId}", tag = "asset", operation_id = "getAssetInfoById",
    params(("assetId" = Uuid, Path)), responses((status = 200, body = AssetInfo)))]
async fn info(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<AssetInfo>> {
    load(&api, &caller, id, Operation::Read).await?;
    let info = api.entities.assets.info(caller.tenant, AssetId(id)).await?;
    info.map(Json)
        .ok_or_else(|| ApiError::not_found(format!("Asset with id [{id}] is not found")))
}

/// Whether the caller may save this asset; customer users may change theirs, but not hand them over.
async fn check_save(api: &ApiState, caller: &Principal, asset: &mut Asset) -> ApiResult<()> {
    match asset.id {
        Some(id) => {
            let stored = load(api, caller, id.0, Operation::Write).await?;
            if caller.authority == Authority::CustomerUser {
                asset.customer_id = stored.customer_id;
            }
            Ok(())
        }
        None if caller.authority == Authority::CustomerUser => Err(ApiError::denied()),
        None => Ok(()),
    }
}

/// Creates an asset, or updates it where it has an id.
#[utoipa::path(post, path = "/api/asset", tag = "asset", operation_id = "saveAsset", params(ConflictParams),
    request_body = Asset, responses((status = 200, body = Asset)))]
async fn save(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(names): Query<ConflictParams>,
    Body(mut asset): Body<Asset>,
) -> ApiResult<Json<Asset>> {
    check_save(&api, &caller, &mut asset).await?;
    let created = asset.id.is_none();
    let names = names.policy()?;
    let saved = api.services.assets.save(caller.tenant, asset, &names).await?;
    let entity = Entity::Asset(saved.clone());
    api.services.actions.saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes an asset with its data, relations and alarms.
#[utoipa::path(delete, path = "/api/asset/{assetId}", tag = "asset", operation_id = "deleteAsset",
    params(("assetId" = Uuid, Path)), responses((status = 200)))]
async fn delete(State(api): State<Api>, Caller(caller): Caller, Ids([id]): Ids<1>) -> ApiResult<()> {
    let asset = load(&api, &caller, id, Operation::Delete).await?;
    api.services.assets.delete(caller.tenant, AssetId(id)).await?;
    let entity = Entity::Asset(asset);
    api.services
        .actions
        .entity(&caller, MsgType::EntityDeleted, &entity)
        .await;
    Ok(())
}

/// Assigns an asset to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/asset/{assetId}", tag = "asset",
    operation_id = "assignAssetToCustomer", params(("customerId" = Uuid, Path), ("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn assign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([customer, asset]): Ids<2>,
) -> ApiResult<Json<Asset>> {
    let customer = customer::load(&api, &caller, customer, Operation::Read).await?;
    load(&api, &caller, asset, Operation::AssignToCustomer).await?;
    let assets = &api.services.assets;
    let assigned = assets
        .assign(caller.tenant, AssetId(asset), customer.id.unwrap_or_default())
        .await?;
    let entity = Entity::Asset(assigned.clone());
    api.services.actions.assigned(&caller, &entity, &customer).await;
    Ok(Json(assigned))
}

/// Assigns an asset to the public customer.
#[utoipa::path(post, path = "/api/customer/public/asset/{assetId}", tag = "asset",
    operation_id = "assignAssetToPublicCustomer", params(("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn assign_to_public(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([asset]): Ids<1>,
) -> ApiResult<Json<Asset>> {
    load(&api, &caller, asset, Operation::AssignToCustomer).await?;
    let public = api.services.customers.public(caller.tenant).await?;
    let assets = &api.services.assets;
    let assigned = assets
        .assign(caller.tenant, AssetId(asset), public.id.unwrap_or_default())
        .await?;
    let entity = Entity::Asset(assigned.clone());
    api.services.actions.assigned(&caller, &entity, &public).await;
    Ok(Json(assigned))
}

/// Takes an asset back from its customer.
#[utoipa::path(delete, path = "/api/customer/asset/{assetId}", tag = "asset",
    operation_id = "unassignAssetFromCustomer", params(("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn unassign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([asset]): Ids<1>,
) -> ApiResult<Json<Asset>> {
    let stored = load(&api, &caller, asset, Operation::UnassignFromCustomer).await?;
    if stored.customer_id.is_null() {
        return Err(ApiError::bad_request("Asset isn't assigned to any customer!"));
    }
    let customer = customer::load(&api, &caller, stored.customer_id.0, Operation::Read).await?;
    let assets = &api.services.assets;
    let taken = assets
        .assign(caller.tenant, AssetId(asset), CustomerId::NULL)
        .await?;
    let entity = Entity::Asset(taken.clone());
    api.services.actions.unassigned(&caller, &entity, &customer).await;
    Ok(Json(taken))
}
