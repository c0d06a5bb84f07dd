//! Lists of assets.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation, allows};
use fieldline_core::ports::AssetFilter;
use fieldline_model::entity::{Asset, AssetInfo};
use fieldline_model::page::PageData;
use fieldline_model::{AssetId, AssetProfileId, CustomerId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;

use super::{Either, EntitySubtype};
use crate::caller::Caller;
use crate::endpoint::{Routes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{Ids, PageParams, Query, missing, parse_uuid, parse_uuids};
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

impl FilterParams {
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<AssetFilter> {
        let present = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
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
    caller: Caller,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
    Query(name): Query<NameParams>,
) -> ApiResult<Json<Either<PageData<Asset>, Asset>>> {
    if name.asset_name.is_some() {
        let Json(asset) = by_name(State(api), caller, Query(name)).await?;
        return Ok(Json(Either::Right(asset)));
    }
    let filter = params.filter(None)?;
    let assets = api
        .entities
        .assets
        .list(caller.0.tenant, &filter, &page.link()?)
        .await?;
    Ok(Json(Either::Left(assets.map(|info| info.asset))))
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
    let filter = params.filter(None)?;
    let assets = api
        .entities
        .assets
        .list(caller.tenant, &filter, &page.link()?)
        .await?;
    Ok(Json(assets))
}

/// The asset of a name.
#[utoipa::path(get, path = "/api/tenant/asset", tag = "asset", operation_id = "getTenantAssetByName",
    params(NameParams), responses((status = 200, body = Asset)))]
async fn by_name(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(name): Query<NameParams>,
) -> ApiResult<Json<Asset>> {
    let name = name.asset_name.ok_or_else(|| missing("assetName"))?;
    let found = api.entities.assets.by_name(caller.tenant, &name).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))
}

/// A page of assets of a customer with what lists show beside them.
#[utoipa::path(get, path = "/api/customer/{customerId}/assetInfos", tag = "asset",
    operation_id = "getCustomerAssetInfos", params(("customerId" = Uuid, Path), PageParams, FilterParams),
    responses((status = 200, body = PageData<AssetInfo>)))]
async fn infos_of_customer(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
) -> ApiResult<Json<PageData<AssetInfo>>> {
    let customer = CustomerId(id);
    api.check(&caller, customer, Operation::Read).await?;
    let filter = params.filter(Some(customer))?;
    let assets = api
        .entities
        .assets
        .list(caller.tenant, &filter, &page.link()?)
        .await?;
    Ok(Json(assets))
}

/// A page of assets of a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/assets", tag = "asset",
    operation_id = "getCustomerAssets", params(("customerId" = Uuid, Path), PageParams, FilterParams),
    responses((status = 200, body = PageData<Asset>)))]
async fn of_customer(
    api: State<Api>,
    caller: Caller,
    id: Ids<1>,
    page: Query<PageParams>,
    params: Query<FilterParams>,
) -> ApiResult<Json<PageData<Asset>>> {
    let Json(infos) = infos_of_customer(api, caller, id, page, params).await?;
    Ok(Json(infos.map(|info| info.asset)))
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
    let ids = parse_uuids("assetIds", &ids.asset_ids.unwrap_or_default(), AssetId)?;
    let assets = api.entities.assets.by_ids(caller.tenant, &ids).await?;
    let readable = assets
        .into_iter()
        .filter(|asset| allows(&caller, Operation::Read, &Entity::Asset(asset.clone()).resource()))
        .collect();
    Ok(Json(readable))
}

/// The asset types of the tenant: the names of its asset profiles.
#[utoipa::path(get, path = "/api/asset/types", tag = "asset", operation_id = "getAssetTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<Vec<EntitySubtype>>> {
    let profiles = super::asset_profile::all(&api, caller.tenant).await?;
    let mut types: Vec<EntitySubtype> = profiles
        .into_iter()
        .map(|profile| EntitySubtype {
            tenant_id: caller.tenant,
            entity_type: EntityType::Asset,
            subtype: profile.name,
        })
        .collect();
    types.sort_by(|a, b| a.subtype.cmp(&b.subtype));
    Ok(Json(types))
}
