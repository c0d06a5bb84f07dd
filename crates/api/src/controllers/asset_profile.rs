//! Asset profiles.

use axum::Json;
use fieldline_model::entity::{AssetProfile, AssetProfileInfo};
use fieldline_model::page::PageData;
use serde::Deserialize;
use utoipa_axum::routes;

use super::Either;
use super::profile::{self, profile_endpoints};
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, TC};
use crate::error::ApiResult;
use crate::extract::{PageParams, QueryParams};

pub(super) fn routes() -> ApiRoutes {
    common::routes().add(TC.reads(routes!(infos)))
}

profile_endpoints! {
    AssetProfile, AssetProfileInfo, params: AssetProfileIds, "asset-profile", path: "assetProfile",
    id: "assetProfileId", ids: "assetProfileIds", one: "asset profile", an: "an asset profile", user: "asset",
    active_only: "Only profiles that an asset has.",
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct AssetProfileIds {
    /// Comma-joined ids, instead of a page.
    #[serde(rename = "assetProfileIds")]
    ids: Option<String>,
}

/// Returns a page of asset profiles in their short form, or with `assetProfileIds` those of them that the tenant has.
#[utoipa::path(get, path = "/api/assetProfileInfos", tag = "asset-profile", operation_id = "getAssetProfileInfos",
    params(PageParams, AssetProfileIds), responses((status = 200, body = inline(Either<PageData<AssetProfileInfo>, Vec<AssetProfileInfo>>))))]
async fn infos(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AssetProfileIds>,
) -> ApiResult<Json<Either<PageData<AssetProfileInfo>, Vec<AssetProfileInfo>>>> {
    if params.ids.is_some() {
        let infos = profile::infos_by_ids::<AssetProfile>(&api, &caller, "assetProfileIds", params.ids);
        return Ok(Json(Either::Right(infos.await?)));
    }
    let profiles = profile::list::<AssetProfile>(&api, &caller, page).await?;
    Ok(Json(Either::Left(profiles.map(AssetProfileInfo::from))))
}
