//! Assets, and whose they are.

use axum::Json;
use axum::extract::State;
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::{Asset, AssetInfo, EntityDraft};
use utoipa_axum::routes;

use super::assignable;
use super::conflict::ConflictParams;
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::ApiResult;
use crate::extract::{JsonBody, PathIds, QueryParams};
use crate::state::SharedApi;

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

/// The asset of an id.
#[utoipa::path(get, path = "/api/asset/{assetId}", tag = "asset", operation_id = "getAssetById",
    params(("assetId" = Uuid, Path)), responses((status = 200, body = Asset)))]
async fn get(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Asset>> {
    Ok(Json(api.load::<Asset>(&caller, id, AccessOperation::Read).await?))
}

/// The asset of an id with what lists show beside it.
#[utoipa::path(get, path = "/api/asset/info/{assetId}", tag = "asset", operation_id = "getAssetInfoById",
    params(("assetId" = Uuid, Path)), responses((status = 200, body = AssetInfo)))]
async fn info(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<AssetInfo>> {
    assignable::info::<Asset>(&api, &caller, id).await
}

/// Creates an asset, or updates it where it has an id.
#[utoipa::path(post, path = "/api/asset", tag = "asset", operation_id = "saveAsset", params(ConflictParams),
    request_body = Asset, responses((status = 200, body = Asset)))]
async fn save(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(names): QueryParams<ConflictParams>,
    JsonBody(mut asset): JsonBody<EntityDraft<Asset>>,
) -> ApiResult<Json<Asset>> {
    assignable::check_save(&api, &caller, &mut asset).await?;
    let created = asset.id.is_none();
    let names = names.policy()?;
    let saved = api.services.assets.save(caller.tenant, asset, &names).await?;
    let entity = AnyEntity::Asset(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes an asset with its data, relations and alarms.
#[utoipa::path(delete, path = "/api/asset/{assetId}", tag = "asset", operation_id = "deleteAsset",
    params(("assetId" = Uuid, Path)), responses((status = 200)))]
async fn delete(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<()> {
    assignable::delete::<Asset>(&api, &caller, id).await
}

/// Assigns an asset to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/asset/{assetId}", tag = "asset",
    operation_id = "assignAssetToCustomer", params(("customerId" = Uuid, Path), ("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn assign(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds(ids): PathIds<2>,
) -> ApiResult<Json<Asset>> {
    assignable::assign(&api, &caller, ids).await
}

/// Assigns an asset to the public customer.
#[utoipa::path(post, path = "/api/customer/public/asset/{assetId}", tag = "asset",
    operation_id = "assignAssetToPublicCustomer", params(("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn assign_to_public(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Asset>> {
    assignable::assign_to_public(&api, &caller, id).await
}

/// Takes an asset back from its customer.
#[utoipa::path(delete, path = "/api/customer/asset/{assetId}", tag = "asset",
    operation_id = "unassignAssetFromCustomer", params(("assetId" = Uuid, Path)),
    responses((status = 200, body = Asset)))]
async fn unassign(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Asset>> {
    assignable::unassign(&api, &caller, id).await
}
