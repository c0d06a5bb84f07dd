//! Lists of assets.

use axum::Json;
use axum::extract::State;
use fieldline_core::ports::AssetFilter;
use fieldline_model::entity::{Asset, AssetInfo, AssetProfile};
use fieldline_model::page::PageData;
use fieldline_model::{AssetProfileId, CustomerId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;

use super::assignable::{self, ListFilterParams, present};
use super::{Either, EntitySubtype, profile};
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::ApiResult;
use crate::extract::{PageParams, PathIds, QueryParams, parse_uuid};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(of_tenant)))
        .add(T.reads(routes!(infos_of_tenant)))
        .add(T.reads(routes!(by_name)))
        .add(TC.reads(routes!(of_customer)))
        .add(TC.reads(routes!(infos_of_customer)))
        .add(TC.reads(routes!(by_ids)))
        .add(TC.reads(routes!(types)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AssetFilterParams {
    /// Only assets of this type.
    #[serde(rename = "type")]
    asset_type: Option<String>,
    /// Only assets of this profile, where no type is given.
    #[param(value_type = Option<Uuid>)]
    asset_profile_id: Option<String>,
}

impl ListFilterParams<Asset> for AssetFilterParams {
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
struct AssetNameParams {
    /// Name of the asset.
    asset_name: Option<String>,
}

/// A page of assets of the tenant, or with `assetName` the asset of that name.
#[utoipa::path(get, path = "/api/tenant/assets", tag = "asset", operation_id = "getTenantAssets",
    params(PageParams, AssetFilterParams, AssetNameParams), responses((status = 200, body = PageData<Asset>)))]
async fn of_tenant(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AssetFilterParams>,
    QueryParams(name): QueryParams<AssetNameParams>,
) -> ApiResult<Json<Either<PageData<Asset>, Asset>>> {
    let name = ("assetName", name.asset_name);
    assignable::of_tenant(&api, &caller, params, page, name).await
}

/// A page of assets of the tenant with what lists show beside them.
#[utoipa::path(get, path = "/api/tenant/assetInfos", tag = "asset", operation_id = "getTenantAssetInfos",
    params(PageParams, AssetFilterParams), responses((status = 200, body = PageData<AssetInfo>)))]
async fn infos_of_tenant(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AssetFilterParams>,
) -> ApiResult<Json<PageData<AssetInfo>>> {
    assignable::infos_of_tenant::<Asset>(&api, &caller, params, page).await
}

/// The asset of a name.
#[utoipa::path(get, path = "/api/tenant/asset", tag = "asset", operation_id = "getTenantAssetByName",
    params(AssetNameParams), responses((status = 200, body = Asset)))]
async fn by_name(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(name): QueryParams<AssetNameParams>,
) -> ApiResult<Json<Asset>> {
    assignable::by_name(&api, &caller, ("assetName", name.asset_name)).await
}

/// A page of assets of a customer with what lists show beside them.
#[utoipa::path(get, path = "/api/customer/{customerId}/assetInfos", tag = "asset",
    operation_id = "getCustomerAssetInfos", params(("customerId" = Uuid, Path), PageParams, AssetFilterParams),
    responses((status = 200, body = PageData<AssetInfo>)))]
async fn infos_of_customer(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([customer]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AssetFilterParams>,
) -> ApiResult<Json<PageData<AssetInfo>>> {
    assignable::infos_of_customer::<Asset>(&api, &caller, customer, params, page).await
}

/// A page of assets of a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/assets", tag = "asset",
    operation_id = "getCustomerAssets", params(("customerId" = Uuid, Path), PageParams, AssetFilterParams),
    responses((status = 200, body = PageData<Asset>)))]
async fn of_customer(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([customer]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<AssetFilterParams>,
) -> ApiResult<Json<PageData<Asset>>> {
    assignable::of_customer(&api, &caller, customer, params, page).await
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
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(ids): QueryParams<AssetIds>,
) -> ApiResult<Json<Vec<Asset>>> {
    assignable::by_ids(&api, &caller, ("assetIds", ids.asset_ids)).await
}

/// The asset types of the tenant: the names of its asset profiles.
#[utoipa::path(get, path = "/api/asset/types", tag = "asset", operation_id = "getAssetTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
) -> ApiResult<Json<Vec<EntitySubtype>>> {
    profile::types::<AssetProfile>(&api, &caller, EntityType::Asset).await
}
