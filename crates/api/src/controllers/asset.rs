//! Assets, and whose they are.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation};
use fieldline_model::entity::{Asset, AssetInfo};
use utoipa_axum::routes;

use super::assigned;
use super::conflict::ConflictParams;
use crate::caller::Caller;
use crate::endpoint::{Routes, T, TC};
use crate::error::ApiResult;
use crate::extract::{Body, Ids, Query};
use crate::state::Api;

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

/// The asset of an id.
#[utoipa::path(get, path = "/api/asset/{assetId}", tag = "asset", operation_id = "getAssetById",
    params(("assetId" = Uuid, Path)), responses((status = 200, body = Asset)))]
async fn get(State(api): State<Api>, Caller(caller): Caller, Ids([id]): Ids<1>) -> ApiResult<Json<Asset>> {
    Ok(Json(api.load::<Asset>(&caller, id, Operation::Read).await?))
}

/// The asset of an id with what lists show beside it.
#[utoipa::path(get, path = "/api/asset/info/{assetId}", tag = "asset", operation_id = "getAssetInfoById",
    params(("assetId" = Uuid, Path)), responses((status = 200, body = AssetInfo)))]
async fn info(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<AssetInfo>> {
    assigned::info::<Asset>(&api, &caller, id).await
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
    assigned::check_save(&api, &caller, &mut asset).await?;
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
    assigned::delete::<Asset>(&api, &caller, id).await
}

/// Assigns an asset to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/asset/{assetId}", tag = "asset",
    operation_id = "assignAssetToCustomer", params(("customerId" = Uuid, Path), ("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn assign(State(api): State<Api>, Caller(caller): Caller, Ids(ids): Ids<2>) -> ApiResult<Json<Asset>> {
    assigned::assign(&api, &caller, ids).await
}

/// Assigns an asset to the public customer.
#[utoipa::path(post, path = "/api/customer/public/asset/{assetId}", tag = "asset",
    operation_id = "assignAssetToPublicCustomer", params(("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn assign_to_public(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<Asset>> {
    assigned::assign_to_public(&api, &caller, id).await
}

/// Takes an asset back from its customer.
#[utoipa::path(delete, path = "/api/customer/asset/{assetId}", tag = "asset",
    operation_id = "unassignAssetFromCustomer", params(("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn unassign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<Asset>> {
    assigned::unassign(&api, &caller, id).await
}
