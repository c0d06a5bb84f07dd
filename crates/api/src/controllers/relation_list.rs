//! Lists of relations, and graph searches. Relations are left out if the caller may not see one of their ends.

use axum::Json;
use axum::extract::Path;
use fieldline_core::ports::RelationEnds;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{EntityRelation, EntityRelationInfo, RelationsQuery};
use serde::Deserialize;
use utoipa_axum::routes;

use super::relation::{entity, group, required};
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC};
use crate::error::ApiResult;
use crate::extract::{JsonBody, QueryParams};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(find)))
        .add(STC.reads(routes!(infos)))
        .add(STC.reads(routes!(from)))
        .add(STC.reads(routes!(from_of_type)))
        .add(STC.reads(routes!(to)))
        .add(STC.reads(routes!(to_of_type)))
        .add(STC.reads(routes!(infos_from)))
        .add(STC.reads(routes!(infos_to)))
        .add(STC.asks(routes!(search)))
        .add(STC.asks(routes!(search_infos)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct RelationEndsParams {
    /// Bare id of the source entity.
    from_id: Option<String>,
    /// Kind of the source entity.
    from_type: Option<String>,
    /// Bare id of the target entity, if no source is given.
    to_id: Option<String>,
    /// Kind of the target entity.
    to_type: Option<String>,
    /// Only relations of this type.
    relation_type: Option<String>,
    /// Group of the relations; `COMMON` by default.
    relation_type_group: Option<String>,
}

impl RelationEndsParams {
    fn ends(self) -> ApiResult<RelationEnds> {
        let ends = if self.to_id.is_some() && self.from_id.is_none() {
            RelationEnds::to(required("toType", &self.to_type, "toId", &self.to_id)?)
        } else {
            RelationEnds::from(required("fromType", &self.from_type, "fromId", &self.from_id)?)
        };
        Ok(RelationEnds {
            relation_type: self.relation_type.filter(|text| !text.is_empty()),
            group: group(self.relation_type_group.as_deref()),
            ..ends
        })
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct RelationGroupParams {
    /// Group of the relations; `COMMON` by default.
    relation_type_group: Option<String>,
}

impl RelationGroupParams {
    fn narrow(&self, ends: RelationEnds) -> RelationEnds {
        RelationEnds {
            group: group(self.relation_type_group.as_deref()),
            ..ends
        }
    }
}

/// Returns the relations with both ends visible to the caller.
async fn readable(
    api: &ApiState,
    caller: &Principal,
    mut relations: Vec<EntityRelation>,
) -> ApiResult<Vec<EntityRelation>> {
    let ends = relations.iter().flat_map(|relation| [relation.from, relation.to]);
    let seen = api.readable(caller, ends).await?;
    relations.retain(|relation| seen.contains(&relation.from) && seen.contains(&relation.to));
    Ok(relations)
}

/// Returns the relations with these ends; the caller must be allowed to see the given end.
async fn found(api: &ApiState, caller: &Principal, ends: RelationEnds) -> ApiResult<Vec<EntityRelation>> {
    for end in [ends.from, ends.to].into_iter().flatten() {
        api.check(caller, end, AccessOperation::Read).await?;
    }
    let relations = api.entities.relations.find(caller.tenant, &ends).await?;
    readable(api, caller, relations).await
}

async fn named(
    api: &ApiState,
    caller: &Principal,
    relations: Vec<EntityRelation>,
) -> ApiResult<Vec<EntityRelationInfo>> {
    Ok(api
        .entities
        .relations
        .with_names(caller.tenant, relations)
        .await?)
}

/// Returns the relations that start or end at an entity.
#[utoipa::path(get, path = "/api/relations", tag = "entity-relation", operation_id = "findByFromOrTo",
    params(RelationEndsParams), responses((status = 200, body = Vec<EntityRelation>)))]
async fn find(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<RelationEndsParams>,
) -> ApiResult<Json<Vec<EntityRelation>>> {
    found(&api, &caller, params.ends()?).await.map(Json)
}

/// Returns the relations that start or end at an entity, with the names of their ends.
#[utoipa::path(get, path = "/api/relations/info", tag = "entity-relation", operation_id = "findInfoByFromOrTo",
    params(RelationEndsParams), responses((status = 200, body = Vec<EntityRelationInfo>)))]
async fn infos(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<RelationEndsParams>,
) -> ApiResult<Json<Vec<EntityRelationInfo>>> {
    let relations = found(&api, &caller, params.ends()?).await?;
    named(&api, &caller, relations).await.map(Json)
}

/// Returns the relations that start at an entity.
#[utoipa::path(get, path = "/api/relations/from/{fromType}/{fromId}", tag = "entity-relation",
    operation_id = "findEntityRelationsByFrom",
    params(("fromType" = String, Path), ("fromId" = Uuid, Path), RelationGroupParams),
    responses((status = 200, body = Vec<EntityRelation>)))]
async fn from(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(params): QueryParams<RelationGroupParams>,
) -> ApiResult<Json<Vec<EntityRelation>>> {
    let ends = params.narrow(RelationEnds::from(entity(&kind, &id)?));
    found(&api, &caller, ends).await.map(Json)
}

/// Returns the relations of a type that start at an entity.
#[utoipa::path(get, path = "/api/relations/from/{fromType}/{fromId}/{relationType}", tag = "entity-relation",
    operation_id = "findEntityRelationsByFromAndRelationType",
    params(("fromType" = String, Path), ("fromId" = Uuid, Path), ("relationType" = String, Path), RelationGroupParams),
    responses((status = 200, body = Vec<EntityRelation>)))]
async fn from_of_type(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, relation_type)): Path<(String, String, String)>,
    QueryParams(params): QueryParams<RelationGroupParams>,
) -> ApiResult<Json<Vec<EntityRelation>>> {
    let ends = params.narrow(RelationEnds::from(entity(&kind, &id)?).of_type(relation_type));
    found(&api, &caller, ends).await.map(Json)
}

/// Returns the relations that end at an entity.
#[utoipa::path(get, path = "/api/relations/to/{toType}/{toId}", tag = "entity-relation",
    operation_id = "findEntityRelationsByTo",
    params(("toType" = String, Path), ("toId" = Uuid, Path), RelationGroupParams),
    responses((status = 200, body = Vec<EntityRelation>)))]
async fn to(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(params): QueryParams<RelationGroupParams>,
) -> ApiResult<Json<Vec<EntityRelation>>> {
    let ends = params.narrow(RelationEnds::to(entity(&kind, &id)?));
    found(&api, &caller, ends).await.map(Json)
}

/// Returns the relations of a type that end at an entity.
#[utoipa::path(get, path = "/api/relations/to/{toType}/{toId}/{relationType}", tag = "entity-relation",
    operation_id = "findEntityRelationsByToAndRelationType",
    params(("toType" = String, Path), ("toId" = Uuid, Path), ("relationType" = String, Path), RelationGroupParams),
    responses((status = 200, body = Vec<EntityRelation>)))]
async fn to_of_type(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, relation_type)): Path<(String, String, String)>,
    QueryParams(params): QueryParams<RelationGroupParams>,
) -> ApiResult<Json<Vec<EntityRelation>>> {
    let ends = params.narrow(RelationEnds::to(entity(&kind, &id)?).of_type(relation_type));
    found(&api, &caller, ends).await.map(Json)
}

/// Returns the relations that start at an entity, with the names of their ends.
#[utoipa::path(get, path = "/api/relations/info/from/{fromType}/{fromId}", tag = "entity-relation",
    operation_id = "findEntityRelationInfosByFrom",
    params(("fromType" = String, Path), ("fromId" = Uuid, Path), RelationGroupParams),
    responses((status = 200, body = Vec<EntityRelationInfo>)))]
async fn infos_from(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(params): QueryParams<RelationGroupParams>,
) -> ApiResult<Json<Vec<EntityRelationInfo>>> {
    let ends = params.narrow(RelationEnds::from(entity(&kind, &id)?));
    let relations = found(&api, &caller, ends).await?;
    named(&api, &caller, relations).await.map(Json)
}

/// Returns the relations that end at an entity, with the names of their ends.
#[utoipa::path(get, path = "/api/relations/info/to/{toType}/{toId}", tag = "entity-relation",
    operation_id = "findEntityRelationInfosByTo",
    params(("toType" = String, Path), ("toId" = Uuid, Path), RelationGroupParams),
    responses((status = 200, body = Vec<EntityRelationInfo>)))]
async fn infos_to(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(params): QueryParams<RelationGroupParams>,
) -> ApiResult<Json<Vec<EntityRelationInfo>>> {
    let ends = params.narrow(RelationEnds::to(entity(&kind, &id)?));
    let relations = found(&api, &caller, ends).await?;
    named(&api, &caller, relations).await.map(Json)
}

async fn walked(
    api: &ApiState,
    caller: &Principal,
    query: &RelationsQuery,
) -> ApiResult<Vec<EntityRelation>> {
    api.check(caller, query.parameters.root(), AccessOperation::Read)
        .await?;
    let relations = api.entities.relations.search(caller.tenant, query).await?;
    readable(api, caller, relations).await
}

/// Returns the relations found by a graph search from an entity.
#[utoipa::path(post, path = "/api/relations", tag = "entity-relation", operation_id = "findEntityRelationsByQuery",
    request_body = RelationsQuery, responses((status = 200, body = Vec<EntityRelation>)))]
async fn search(
    ApiCall { api, caller }: ApiCall,
    JsonBody(query): JsonBody<RelationsQuery>,
) -> ApiResult<Json<Vec<EntityRelation>>> {
    walked(&api, &caller, &query).await.map(Json)
}

/// Returns the relations found by a graph search from an entity, with the names of their ends.
#[utoipa::path(post, path = "/api/relations/info", tag = "entity-relation",
    operation_id = "findEntityRelationInfosByQuery", request_body = RelationsQuery,
    responses((status = 200, body = Vec<EntityRelationInfo>)))]
async fn search_infos(
    ApiCall { api, caller }: ApiCall,
    JsonBody(query): JsonBody<RelationsQuery>,
) -> ApiResult<Json<Vec<EntityRelationInfo>>> {
    let relations = walked(&api, &caller, &query).await?;
    named(&api, &caller, relations).await.map(Json)
}
