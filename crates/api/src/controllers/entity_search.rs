//! Devices, assets and entity views that are related to an entity.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation, Principal, allows};
use fieldline_model::entity::{
    Asset, Device, EntityView, RelationFilter, RelationsQuery, RelationsSearchParameters,
};
use fieldline_model::{AssetId, DeviceId, EntityType, EntityViewId};
use serde::Deserialize;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::{Routes, TC};
use crate::error::ApiResult;
use crate::extract::Body;
use crate::state::{Api, ApiState};

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(TC, routes!(devices))
        .add(TC, routes!(assets))
        .add(TC, routes!(entity_views))
}

/// Which related entities are asked for.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct EntitySearchQuery {
    /// Where the search starts and how far it goes.
    parameters: RelationsSearchParameters,
    /// Type of the relations; `Contains` where absent.
    relation_type: Option<String>,
    /// Types of devices.
    device_types: Option<Vec<String>>,
    /// Types of assets.
    asset_types: Option<Vec<String>>,
    /// Types of entity views.
    entity_view_types: Option<Vec<String>>,
}

/// The ids of the related entities of a type.
async fn related(
    api: &ApiState,
    caller: &Principal,
    query: EntitySearchQuery,
    entity_type: EntityType,
) -> ApiResult<Vec<Uuid>> {
    api.check(caller, query.parameters.root(), Operation::Read)
        .await?;
    let relation_type = query.relation_type.unwrap_or_else(|| "Contains".to_owned());
    let query = RelationsQuery {
        parameters: query.parameters,
        filters: vec![RelationFilter {
            relation_type: Some(relation_type),
            entity_types: vec![entity_type],
            negate: false,
        }],
    };
    let direction = query.parameters.direction;
    let relations = api.entities.relations.search(caller.tenant, &query).await?;
    let mut ids: Vec<Uuid> = relations
        .iter()
        .map(|relation| relation.found(direction).id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Whether an entity is of one of the types, and one that the caller may see.
fn fits(caller: &Principal, types: &[String], entity_type: &str, entity: &Entity) -> bool {
    types.iter().any(|name| name == entity_type) && allows(caller, Operation::Read, &entity.resource())
}

/// The devices of some types that are related to an entity.
#[utoipa::path(post, path = "/api/devices", tag = "device", operation_id = "findDevicesByQuery",
    request_body = EntitySearchQuery, responses((status = 200, body = Vec<Device>)))]
async fn devices(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(mut query): Body<EntitySearchQuery>,
) -> ApiResult<Json<Vec<Device>>> {
    let types = query.device_types.take().unwrap_or_default();
    let ids = related(&api, &caller, query, EntityType::Device).await?;
    let ids: Vec<DeviceId> = ids.into_iter().map(DeviceId).collect();
    let mut found = api.entities.devices.by_ids(caller.tenant, &ids).await?;
    found.retain(|device| {
        let entity = Entity::Device(device.clone());
        fits(&caller, &types, &device.device_type, &entity)
    });
    Ok(Json(found))
}

/// The assets of some types that are related to an entity.
#[utoipa::path(post, path = "/api/assets", tag = "asset", operation_id = "findAssetsByQuery",
    request_body = EntitySearchQuery, responses((status = 200, body = Vec<Asset>)))]
async fn assets(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(mut query): Body<EntitySearchQuery>,
) -> ApiResult<Json<Vec<Asset>>> {
    let types = query.asset_types.take().unwrap_or_default();
    let ids = related(&api, &caller, query, EntityType::Asset).await?;
    let ids: Vec<AssetId> = ids.into_iter().map(AssetId).collect();
    let mut found = api.entities.assets.by_ids(caller.tenant, &ids).await?;
    found.retain(|asset| {
        let entity = Entity::Asset(asset.clone());
        fits(&caller, &types, &asset.asset_type, &entity)
    });
    Ok(Json(found))
}

/// The entity views of some types that are related to an entity.
#[utoipa::path(post, path = "/api/entityViews", tag = "entity-view", operation_id = "findEntityViewsByQuery",
    request_body = EntitySearchQuery, responses((status = 200, body = Vec<EntityView>)))]
async fn entity_views(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(mut query): Body<EntitySearchQuery>,
) -> ApiResult<Json<Vec<EntityView>>> {
    let types = query.entity_view_types.take().unwrap_or_default();
    let ids = related(&api, &caller, query, EntityType::EntityView).await?;
    let ids: Vec<EntityViewId> = ids.into_iter().map(EntityViewId).collect();
    let mut found = api.entities.entity_views.by_ids(caller.tenant, &ids).await?;
    found.retain(|view| {
        let entity = Entity::EntityView(view.clone());
        fits(&caller, &types, &view.view_type, &entity)
    });
    Ok(Json(found))
}
