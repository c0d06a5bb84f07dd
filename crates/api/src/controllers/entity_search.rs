//! Devices, assets and entity views that are related to an entity.

use axum::Json;
use fieldline_core::ports::AssignableEntity;
use fieldline_entities::access::{AccessOperation, Principal, allows};
use fieldline_model::entity::{
    Asset, Device, EntityView, RelationFilter, RelationsQuery, RelationsSearchParameters,
};
use serde::Deserialize;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, TC};
use crate::error::ApiResult;
use crate::extract::JsonBody;
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.asks(routes!(devices)))
        .add(TC.asks(routes!(assets)))
        .add(TC.asks(routes!(entity_views)))
}

/// The related entities to find.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct EntitySearchQuery {
    /// Where the search starts and how far it goes.
    parameters: RelationsSearchParameters,
    /// Type of the relations; `Contains` by default.
    relation_type: Option<String>,
    /// Types of devices.
    device_types: Option<Vec<String>>,
    /// Types of assets.
    asset_types: Option<Vec<String>>,
    /// Types of entity views.
    entity_view_types: Option<Vec<String>>,
}

/// Returns the related entities of a kind and some types that the caller may see.
async fn related<E: AssignableEntity>(
    api: &ApiState,
    caller: &Principal,
    query: EntitySearchQuery,
    types: Option<Vec<String>>,
) -> ApiResult<Json<Vec<E>>> {
    api.check(caller, query.parameters.root(), AccessOperation::Read)
        .await?;
    let relation_type = query.relation_type.unwrap_or_else(|| "Contains".to_owned());
    let query = RelationsQuery {
        parameters: query.parameters,
        filters: vec![RelationFilter {
            relation_type: Some(relation_type),
            entity_types: vec![E::TYPE],
            negate: false,
        }],
    };
    let direction = query.parameters.direction;
    let relations = api.entities.relations.search(caller.tenant, &query).await?;
    let ids: Vec<E::Id> = relations
        .iter()
        .map(|relation| E::typed(relation.endpoint(direction).id))
        .collect();
    let mut found = E::store(&api.entities).by_ids(caller.tenant, &ids).await?;
    let types = types.unwrap_or_default();
    found.retain(|entity| {
        types.iter().any(|name| name == entity.fields().entity_type)
            && allows(caller, AccessOperation::Read, &entity.resource())
    });
    Ok(Json(found))
}

/// Returns the devices of some types that are related to an entity.
#[utoipa::path(post, path = "/api/devices", tag = "device", operation_id = "findDevicesByQuery",
    request_body = EntitySearchQuery, responses((status = 200, body = Vec<Device>)))]
async fn devices(
    ApiCall { api, caller }: ApiCall,
    JsonBody(mut query): JsonBody<EntitySearchQuery>,
) -> ApiResult<Json<Vec<Device>>> {
    let types = query.device_types.take();
    related(&api, &caller, query, types).await
}

/// Returns the assets of some types that are related to an entity.
#[utoipa::path(post, path = "/api/assets", tag = "asset", operation_id = "findAssetsByQuery",
    request_body = EntitySearchQuery, responses((status = 200, body = Vec<Asset>)))]
async fn assets(
    ApiCall { api, caller }: ApiCall,
    JsonBody(mut query): JsonBody<EntitySearchQuery>,
) -> ApiResult<Json<Vec<Asset>>> {
    let types = query.asset_types.take();
    related(&api, &caller, query, types).await
}

/// Returns the entity views of some types that are related to an entity.
#[utoipa::path(post, path = "/api/entityViews", tag = "entity-view", operation_id = "findEntityViewsByQuery",
    request_body = EntitySearchQuery, responses((status = 200, body = Vec<EntityView>)))]
async fn entity_views(
    ApiCall { api, caller }: ApiCall,
    JsonBody(mut query): JsonBody<EntitySearchQuery>,
) -> ApiResult<Json<Vec<EntityView>>> {
    let types = query.entity_view_types.take();
    related(&api, &caller, query, types).await
}
