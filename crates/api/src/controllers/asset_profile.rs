//! Asset profiles.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation, Principal};
use fieldline_core::ports::AssetFilter;
use fieldline_model::entity::{AssetProfile, AssetProfileInfo};
use fieldline_model::message::MsgType;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AssetProfileId, TenantId};
use serde::Deserialize;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Either, EntityInfo};
use crate::caller::Caller;
use crate::endpoint::{Routes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{Body, Ids, PageParams, Query, parse_uuids};
use crate::state::{Api, ApiState};

/// Profiles read at once.
const PAGE: u32 = 1_000;

pub(super) fn routes() -> Routes {
    Routes::default()
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

async fn load(api: &ApiState, caller: &Principal, id: Uuid, operation: Operation) -> ApiResult<AssetProfile> {
    match api.check(caller, AssetProfileId(id), operation).await? {
        Entity::AssetProfile(profile) => Ok(profile),
        _ => Err(ApiError::not_found("Asset profile not found")),
    }
}

/// All asset profiles of a tenant.
pub(super) async fn all(api: &ApiState, tenant: TenantId) -> ApiResult<Vec<AssetProfile>> {
    let mut profiles = Vec::new();
    let mut link = PageLink::first(PAGE);
    loop {
        let page = api.entities.asset_profiles.list(tenant, &link).await?;
        profiles.extend(page.data);
        if !page.has_next {
            return Ok(profiles);
        }
        link.page += 1;
    }
}

/// Whether an asset has the profile.
async fn has_assets(api: &ApiState, tenant: TenantId, profile: AssetProfileId) -> ApiResult<bool> {
    let filter = AssetFilter {
        profile: Some(profile),
        ..AssetFilter::default()
    };
    let assets = api
        .entities
        .assets
        .list(tenant, &filter, &PageLink::first(1))
        .await?;
    Ok(assets.total_elements > 0)
}

/// The asset profile of an id.
#[utoipa::path(get, path = "/api/assetProfile/{assetProfileId}", tag = "asset-profile",
    operation_id = "getAssetProfileById", params(("assetProfileId" = Uuid, Path)),
    responses((status = 200, body = AssetProfile)))]
async fn get(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<AssetProfile>> {
    Ok(Json(load(&api, &caller, id, Operation::Read).await?))
}

/// Creates an asset profile, or updates it where it has an id.
#[utoipa::path(post, path = "/api/assetProfile", tag = "asset-profile", operation_id = "saveAssetProfile",
    request_body = AssetProfile, responses((status = 200, body = AssetProfile)))]
async fn save(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(profile): Body<AssetProfile>,
) -> ApiResult<Json<AssetProfile>> {
    if let Some(id) = profile.id {
        load(&api, &caller, id.0, Operation::Write).await?;
    }
    let created = profile.id.is_none();
    let saved = api.services.asset_profiles.save(caller.tenant, profile).await?;
    let entity = Entity::AssetProfile(saved.clone());
    api.services.actions.saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes an asset profile that no asset has.
#[utoipa::path(delete, path = "/api/assetProfile/{assetProfileId}", tag = "asset-profile",
    operation_id = "deleteAssetProfile", params(("assetProfileId" = Uuid, Path)), responses((status = 200)))]
async fn delete(State(api): State<Api>, Caller(caller): Caller, Ids([id]): Ids<1>) -> ApiResult<()> {
    let profile = load(&api, &caller, id, Operation::Delete).await?;
    api.services
        .asset_profiles
        .delete(caller.tenant, &profile)
        .await?;
    let entity = Entity::AssetProfile(profile);
    api.services
        .actions
        .entity(&caller, MsgType::EntityDeleted, &entity)
        .await;
    Ok(())
}

/// Makes an asset profile the default one.
#[utoipa::path(post, path = "/api/assetProfile/{assetProfileId}/default", tag = "asset-profile",
    operation_id = "setDefaultAssetProfile", params(("assetProfileId" = Uuid, Path)),
    responses((status = 200, body = AssetProfile)))]
async fn set_default(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<AssetProfile>> {
    load(&api, &caller, id, Operation::Write).await?;
    let profiles = &api.services.asset_profiles;
    Ok(Json(
        profiles.set_default(caller.tenant, AssetProfileId(id)).await?,
    ))
}

/// A page of asset profiles.
#[utoipa::path(get, path = "/api/assetProfiles", tag = "asset-profile", operation_id = "getAssetProfiles",
    params(PageParams), responses((status = 200, body = PageData<AssetProfile>)))]
async fn list(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(page): Query<PageParams>,
) -> ApiResult<Json<PageData<AssetProfile>>> {
    let profiles = &api.entities.asset_profiles;
    Ok(Json(profiles.list(caller.tenant, &page.link()?).await?))
}

/// The short form of an asset profile.
#[utoipa::path(get, path = "/api/assetProfileInfo/{assetProfileId}", tag = "asset-profile",
    operation_id = "getAssetProfileInfoById", params(("assetProfileId" = Uuid, Path)),
    responses((status = 200, body = AssetProfileInfo)))]
async fn info(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<AssetProfileInfo>> {
    Ok(Json(load(&api, &caller, id, Operation::Read).await?.into()))
}

/// The short form of the default asset profile.
#[utoipa::path(get, path = "/api/assetProfileInfo/default", tag = "asset-profile",
    operation_id = "getDefaultAssetProfileInfo", responses((status = 200, body = AssetProfileInfo)))]
async fn default_info(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<AssetProfileInfo>> {
    let profile = api.entities.asset_profiles.default_profile(caller.tenant).await?;
    let profile = profile.ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))?;
    Ok(Json(profile.into()))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct InfoParams {
    /// Comma-joined ids, in the place of a page.
    asset_profile_ids: Option<String>,
}

/// A page of asset profiles in their short form, or with `assetProfileIds` those that the tenant has.
#[utoipa::path(get, path = "/api/assetProfileInfos", tag = "asset-profile", operation_id = "getAssetProfileInfos",
    params(PageParams, InfoParams), responses((status = 200, body = PageData<AssetProfileInfo>)))]
async fn infos(
    State(api): State<Api>,
    caller: Caller,
    Query(page): Query<PageParams>,
    Query(params): Query<InfoParams>,
) -> ApiResult<Json<Either<PageData<AssetProfileInfo>, Vec<AssetProfileInfo>>>> {
    if params.asset_profile_ids.is_some() {
        let Json(infos) = infos_by_ids(State(api), caller, Query(params)).await?;
        return Ok(Json(Either::Right(infos)));
    }
    let infos = api
        .entities
        .asset_profiles
        .list(caller.0.tenant, &page.link()?)
        .await?;
    Ok(Json(Either::Left(infos.map(AssetProfileInfo::from))))
}

/// Those of the asset profiles that the tenant has, in their short form.
#[utoipa::path(get, path = "/api/assetProfileInfos/list", tag = "asset-profile",
    operation_id = "getAssetProfileInfosByIds", params(InfoParams),
    responses((status = 200, body = Vec<AssetProfileInfo>)))]
async fn infos_by_ids(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(params): Query<InfoParams>,
) -> ApiResult<Json<Vec<AssetProfileInfo>>> {
    let ids = params.asset_profile_ids.unwrap_or_default();
    let ids = parse_uuids("assetProfileIds", &ids, AssetProfileId)?;
    let profiles = api.entities.asset_profiles.by_ids(caller.tenant, &ids).await?;
    Ok(Json(profiles.into_iter().map(AssetProfileInfo::from).collect()))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct NamesParams {
    /// Only profiles that an asset has.
    #[param(value_type = Option<bool>)]
    active_only: Option<String>,
}

/// Ids and names of the asset profiles, by name.
#[utoipa::path(get, path = "/api/assetProfile/names", tag = "asset-profile", operation_id = "getAssetProfileNames",
    params(NamesParams), responses((status = 200, body = Vec<EntityInfo>)))]
async fn names(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(params): Query<NamesParams>,
) -> ApiResult<Json<Vec<EntityInfo>>> {
    let active_only = params.active_only.as_deref() == Some("true");
    let mut infos = Vec::new();
    for profile in all(&api, caller.tenant).await? {
        let id = profile.id.unwrap_or_default();
        if active_only && !has_assets(&api, caller.tenant, id).await? {
            continue;
        }
        infos.push(EntityInfo {
            id: id.into(),
            name: profile.name,
        });
    }
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(infos))
}
