//! Lists of assets.

use axum::Json;
use axum::extract::State;
use fieldline_core::ports::AssetFilter;
use fieldline_model::entity::{Asset, AssetInfo, AssetProfile};
use fieldline_model::page::PageData;
use fieldline_model::{AssetProfileId, CustomerId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;

use super::assigned::{self, Narrow, present};
use super::{Either, EntitySubtype, profile};
use crate::caller::Caller;
use crate::endpoint::{Routes, T, TC};
use crate::error::ApiResult;
use crate::extract::{Ids, PageParams, Query, parse_uuid};
use crate::state::Api;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(T, routes!(of_tenant))
        .add(T, routes!(infos_of_tenant))
        .add(T, routes!(by_name))
        .add(TC, routes!(of_customer))
        .add(TC, routes!(infos_of_customer))
        .add(TC, routes!(by_ids))
        .add(TC, routes!(types))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct FilterParams {
    /// Only assets of this type.
    #[serde(rename = "type")]
    asset_type: Option<String>,
    /// Only assets of this profile, where no type is given.
    #[param(value_type = Option<Uuid>)]
    asset_profile_id: Option<String>,
}

impl Narrow<Asset> for FilterParams {
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<AssetFilter> {
        let asset_type = present(self.asset_type);
        let profile = match present(self.asset_profile_id).filter(|_| asset_type.is_none()) {
            Some(id) => Some(AssetProfileId(parse_uuid(&id)?)),
            None => None,
        };
        Ok(AssetFilter {
            customer,
            asset_type,
            profile,
        })
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct NameParams {
    /// Name of the asset.
    asset_name: Option<String>,
}

/// A page of assets of the tenant, or with `assetName` the asset of that name.
#[utoipa::path(get, path = "/api/tenant/assets", tag = "asset", operation_id = "getTenantAssets",
    params(PageParams, FilterParams, NameParams), responses((status = 200, body = PageData<Asset>)))]
async fn of_tenant(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
    Query(name): Query<NameParams>,
) -> ApiResult<Json<Either<PageData<Asset>, Asset>>> {
    let name = ("assetName", name.asset_name);
    assigned::of_tenant(&api, &caller, params, page, name).await
}

/// A page of assets of the tenant with what lists show beside them.
#[utoipa::path(get, path = "/api/tenant/assetInfos", tag = "asset", operation_id = "getTenantAssetInfos",
    params(PageParams, FilterParams), responses((status = 200, body = PageData<AssetInfo>)))]
async fn infos_of_tenant(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
) -> ApiResult<Json<PageData<AssetInfo>>> {
    assigned::infos_of_tenant::<Asset>(&api, &caller, params, page).await
}

/// The asset of a name.
#[utoipa::path(get, path = "/api/tenant/asset", tag = "asset", operation_id = "getTenantAssetByName",
    params(NameParams), responses((status = 200, body = Asset)))]
async fn by_name(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(name): Query<NameParams>,
) -> ApiResult<Json<Asset>> {
    assigned::by_name(&api, &caller, ("assetName", name.asset_name)).await
}

/// A page of assets of a customer with what lists show beside them.
#[utoipa::path(get, path = "/api/customer/{customerId}/assetInfos", tag = "asset",
    operation_id = "getCustomerAssetInfos", params(("customerId" = Uuid, Path), PageParams, FilterParams),
    responses((status = 200, body = PageData<AssetInfo>)))]
async fn infos_of_customer(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([customer]): Ids<1>,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
) -> ApiResult<Json<PageData<AssetInfo>>> {
    assigned::infos_of_customer::<Asset>(&api, &caller, customer, params, page).await
}

/// A page of assets of a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/assets", tag = "asset",
    operation_id = "getCustomerAssets", params(("customerId" = Uuid, Path), PageParams, FilterParams),
    responses((status = 200, body = PageData<Asset>)))]
async fn of_customer(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([customer]): Ids<1>,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
) -> ApiResult<Json<PageData<Asset>>> {
    assigned::of_customer(&api, &caller, customer, params, page).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AssetIds {
    /// Comma-joined ids.
    asset_ids: Option<String>,
}

/// Those of the assets that the caller may see.
#[utoipa::path(get, path = "/api/assets", tag = "asset", operation_id = "getAssetsByIds", params(AssetIds),
    responses((status = 200, body = Vec<Asset>)))]
async fn by_ids(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(ids): Query<AssetIds>,
) -> ApiResult<Json<Vec<Asset>>> {
    assigned::by_ids(&api, &caller, ("assetIds", ids.asset_ids)).await
}

/// The asset types of the tenant: the names of its asset profiles.
#[utoipa::path(get, path = "/api/asset/types", tag = "asset", operation_id = "getAssetTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<Vec<EntitySubtype>>> {
    profile::types::<AssetProfile>(&api, &caller, EntityType::Asset).await
}
