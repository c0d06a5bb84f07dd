//! Assets: lists, and assignment to customers.

use axum::Json;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::AssetFilter;
use fieldline_model::entity::{Asset, AssetInfo, AssetProfile, EntityDraft};
use fieldline_model::{AssetProfileId, CustomerId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;

use super::assignable::{self, ListFilterParams, assignable_endpoints, present};
use super::conflict::ConflictParams;
use super::{EntitySubtype, profile};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, TC};
use crate::error::ApiResult;
use crate::extract::{JsonBody, QueryParams, parse_uuid};

pub(super) fn routes() -> ApiRoutes {
    common::routes()
        .add(TC.changes(routes!(save), AuditRule::Save(EntityType::Asset)))
        .add(TC.reads(routes!(types)))
}

assignable_endpoints! {
    Asset, AssetInfo, AssetFilterParams, "asset", path: "asset", id: "assetId",
    name: "assetName" "Name of the asset.", ids: "assetIds" "getAssetsByIds", one: "asset", an: "an asset",
    delete: "Deletes an asset with its data, relations and alarms.",
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AssetFilterParams {
    /// Only assets of this type.
    #[serde(rename = "type")]
    asset_type: Option<String>,
    /// Only assets of this profile; ignored if a type is given.
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

/// Creates an asset, or updates it if it has an id.
#[utoipa::path(post, path = "/api/asset", tag = "asset", operation_id = "saveAsset", params(ConflictParams),
    request_body = Asset, responses((status = 200, body = Asset)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    QueryParams(names): QueryParams<ConflictParams>,
    JsonBody(mut asset): JsonBody<EntityDraft<Asset>>,
) -> ApiResult<Json<Asset>> {
    assignable::check_save(&api, &caller, &mut asset).await?;
    let created = asset.id.is_none();
    let names = names.policy()?;
    let assets = api.services.assignables::<Asset>();
    let saved = assets.save(caller.tenant, asset, &names).await?;
    let entity = AnyEntity::Asset(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Returns the asset types of the tenant: the names of its asset profiles.
#[utoipa::path(get, path = "/api/asset/types", tag = "asset", operation_id = "getAssetTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<Vec<EntitySubtype>>> {
    profile::types::<AssetProfile>(&api, &caller, EntityType::Asset).await
}
