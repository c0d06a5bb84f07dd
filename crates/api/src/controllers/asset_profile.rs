//! Asset profiles.

use axum::Json;
use axum::extract::State;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::{AssetProfile, AssetProfileInfo, EntityDraft};
use fieldline_model::page::PageData;
use serde::Deserialize;
use utoipa_axum::routes;

use super::{Either, EntityInfo, profile};
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::ApiResult;
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T, routes!(get))
        .add(T, routes!(save))
        .add(T, routes!(delete))
        .add(T, routes!(set_default))
        .add(T, routes!(list))
        .add(TC, routes!(info))
        .add(TC, routes!(default_info))
        .add(TC, routes!(infos))
        .add(T, routes!(infos_by_ids))
        .add(TC, routes!(names))
}

/// The asset profile of an id.
#[utoipa::path(get, path = "/api/assetProfile/{assetProfileId}", tag = "asset-profile",
    operation_id = "getAssetProfileById", params(("assetProfileId" = Uuid, Path)),
    responses((status = 200, body = AssetProfile)))]
async fn get(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<AssetProfile>> {
    Ok(Json(
        api.load::<AssetProfile>(&caller, id, AccessOperation::Read)
            .await?,
    ))
}

/// Creates an asset profile, or updates it where it has an id.
#[utoipa::path(post, path = "/api/assetProfile", tag = "asset-profile", operation_id = "saveAssetProfile",
    request_body = AssetProfile, responses((status = 200, body = AssetProfile)))]
async fn save(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    JsonBody(profile): JsonBody<EntityDraft<AssetProfile>>,
) -> ApiResult<Json<AssetProfile>> {
    profile::save(&api, &caller, profile).await
}

/// Deletes an asset profile that no asset has.
#[utoipa::path(delete, path = "/api/assetProfile/{assetProfileId}", tag = "asset-profile",
    operation_id = "deleteAssetProfile", params(("assetProfileId" = Uuid, Path)), responses((status = 200)))]
async fn delete(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<()> {
    profile::delete::<AssetProfile>(&api, &caller, id).await
}

/// Makes an asset profile the default one.
#[utoipa::path(post, path = "/api/assetProfile/{assetProfileId}/default", tag = "asset-profile",
    operation_id = "setDefaultAssetProfile", params(("assetProfileId" = Uuid, Path)),
    responses((status = 200, body = AssetProfile)))]
async fn set_default(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<AssetProfile>> {
    profile::set_default(&api, &caller, id).await
}

/// A page of asset profiles.
#[utoipa::path(get, path = "/api/assetProfiles", tag = "asset-profile", operation_id = "getAssetProfiles",
    params(PageParams), responses((status = 200, body = PageData<AssetProfile>)))]
async fn list(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<AssetProfile>>> {
    profile::list(&api, &caller, page).await.map(Json)
}

/// The short form of an asset profile.
#[utoipa::path(get, path = "/api/assetProfileInfo/{assetProfileId}", tag = "asset-profile",
    operation_id = "getAssetProfileInfoById", params(("assetProfileId" = Uuid, Path)),
    responses((status = 200, body = AssetProfileInfo)))]
async fn info(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<AssetProfileInfo>> {
    profile::info::<AssetProfile>(&api, &caller, id).await
}

/// The short form of the default asset profile.
#[utoipa::path(get, path = "/api/assetProfileInfo/default", tag = "asset-profile",
    operation_id = "getDefaultAssetProfileInfo", responses((status = 200, body = AssetProfileInfo)))]
async fn default_info(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
) -> ApiResult<Json<AssetProfileInfo>> {
    profile::default_info::<AssetProfile>(&api, &caller).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AssetProfileIds {
    /// Comma-joined ids, in the place of a page.
    asset_profile_ids: Option<String>,
}

/// A page of asset profiles in their short form, or with `assetProfileIds` those that the tenant has.
#[utoipa::path(get, path = "/api/assetProfileInfos", tag = "asset-profile", operation_id = "getAssetProfileInfos",
    params(PageParams, AssetProfileIds), responses((status = 200, body = inline(Either<PageData<AssetProfileInfo>, Vec<AssetProfileInfo>>))))]
async fn infos(
    State(api): State<SharedApi>,
    caller: CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AssetProfileIds>,
) -> ApiResult<Json<Either<PageData<AssetProfileInfo>, Vec<AssetProfileInfo>>>> {
    if params.asset_profile_ids.is_some() {
        let Json(infos) = infos_by_ids(State(api), caller, QueryParams(params)).await?;
        return Ok(Json(Either::Right(infos)));
    }
    let profiles = profile::list::<AssetProfile>(&api, &caller.0, page).await?;
    Ok(Json(Either::Left(profiles.map(AssetProfileInfo::from))))
}

/// Those of the asset profiles that the tenant has, in their short form.
#[utoipa::path(get, path = "/api/assetProfileInfos/list", tag = "asset-profile",
    operation_id = "getAssetProfileInfosByIds", params(AssetProfileIds),
    responses((status = 200, body = Vec<AssetProfileInfo>)))]
async fn infos_by_ids(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(params): QueryParams<AssetProfileIds>,
) -> ApiResult<Json<Vec<AssetProfileInfo>>> {
    let ids = ("assetProfileIds", params.asset_profile_ids);
    profile::infos_by_ids::<AssetProfile>(&api, &caller, ids)
        .await
        .map(Json)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AssetProfileNames {
    /// Only profiles that an asset has.
    #[param(value_type = Option<bool>)]
    active_only: Option<String>,
}

/// Ids and names of the asset profiles, by name.
#[utoipa::path(get, path = "/api/assetProfile/names", tag = "asset-profile", operation_id = "getAssetProfileNames",
    params(AssetProfileNames), responses((status = 200, body = Vec<EntityInfo>)))]
async fn names(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(params): QueryParams<AssetProfileNames>,
) -> ApiResult<Json<Vec<EntityInfo>>> {
    profile::names::<AssetProfile>(&api, &caller, params.active_only).await
}
