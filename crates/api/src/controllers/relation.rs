//! Saving, reading and deleting single relations.

use axum::Json;
use fieldline_core::ports::RelationKey;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_entities::services::EntityAction;
use fieldline_model::entity::{Authority, EntityRelation, RelationTypeGroup};
use fieldline_model::{EntityId, EntityType};
use serde::Deserialize;
use serde_json::Value;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, QueryParams, missing, must_not_be_null, parse_uuid};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.changes(routes!(save), AuditRule::SaveRelation))
        .add(STC.changes(routes!(save_v2), AuditRule::SaveRelation))
        .add(STC.reads(routes!(get)))
        .add(STC.changes(routes!(delete), AuditRule::DeleteRelation))
        .add(STC.changes(routes!(delete_v2), AuditRule::DeleteRelation))
        .add(STC.changes(routes!(delete_all), AuditRule::DeleteRelations))
}

/// Parses an entity id from its type and its id.
pub(super) fn entity(kind: &str, id: &str) -> ApiResult<EntityId> {
    let kind: EntityType = kind
        .parse()
        .map_err(|_| ApiError::bad_request(format!("Invalid entity type '{kind}'")))?;
    Ok(EntityId::new(kind, parse_uuid(id)?))
}

/// Parses the entity id of two required parameters.
pub(super) fn required(
    kind_name: &str,
    kind: &Option<String>,
    id_name: &str,
    id: &Option<String>,
) -> ApiResult<EntityId> {
    fn present<'a>(name: &str, value: &'a Option<String>) -> ApiResult<&'a str> {
        let value = value.as_deref().filter(|text| !text.is_empty());
        value.ok_or_else(|| missing(name))
    }
    entity(present(kind_name, kind)?, present(id_name, id)?)
}

/// Returns the group with that name; `COMMON` for any other name.
pub(super) fn group(name: Option<&str>) -> RelationTypeGroup {
    name.and_then(RelationTypeGroup::from_name).unwrap_or_default()
}

/// Checks that the caller may change relations of an entity. A tenant administrator may also change relations of the
/// tenant.
async fn check_change(api: &ApiState, caller: &Principal, end: EntityId) -> ApiResult<()> {
    let own_tenant = caller.authority == Authority::TenantAdmin && end == caller.tenant.into();
    if !own_tenant {
        api.check(caller, end, AccessOperation::Write).await?;
    }
    Ok(())
}

async fn store(api: &ApiState, caller: &Principal, relation: EntityRelation) -> ApiResult<EntityRelation> {
    check_change(api, caller, relation.from).await?;
    check_change(api, caller, relation.to).await?;
    let saved = api.services.relations.save(caller.tenant, relation).await?;
    api.services
        .actions
        .push_relation(caller, EntityAction::RelationSaved, &saved)
        .await;
    Ok(saved)
}

/// A relation as clients send it; errors name the missing fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RelationRequest {
    from: Option<EntityId>,
    to: Option<EntityId>,
    #[serde(rename = "type")]
    relation_type: Option<String>,
    type_group: Option<RelationTypeGroup>,
    version: Option<i64>,
    additional_info: Option<Value>,
}

impl RelationRequest {
    fn relation(self) -> ApiResult<EntityRelation> {
        let relation_type = self.relation_type.unwrap_or_default();
        if relation_type.trim().is_empty() {
            return Err(ApiError::bad_request("Validation error: type must not be blank"));
        }
        Ok(EntityRelation {
            from: self.from.ok_or_else(|| must_not_be_null("from"))?,
            to: self.to.ok_or_else(|| must_not_be_null("to"))?,
            relation_type,
            type_group: self.type_group.unwrap_or_default(),
            version: self.version,
            additional_info: self.additional_info,
        })
    }
}

/// Creates or replaces a relation.
#[utoipa::path(post, path = "/api/relation", tag = "entity-relation", operation_id = "saveRelationV1",
    request_body = EntityRelation, responses((status = 200)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(relation): JsonBody<RelationRequest>,
) -> ApiResult<()> {
    store(&api, &caller, relation.relation()?).await.map(drop)
}

/// Creates or replaces a relation, and returns it.
#[utoipa::path(post, path = "/api/v2/relation", tag = "entity-relation", operation_id = "saveRelation",
    request_body = EntityRelation, responses((status = 200, body = EntityRelation)))]
async fn save_v2(
    ApiCall { api, caller }: ApiCall,
    JsonBody(relation): JsonBody<RelationRequest>,
) -> ApiResult<Json<EntityRelation>> {
    store(&api, &caller, relation.relation()?).await.map(Json)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct RelationKeyParams {
    /// Bare id of the source entity.
    from_id: Option<String>,
    /// Kind of the source entity.
    from_type: Option<String>,
    /// Type of the relation.
    relation_type: Option<String>,
    /// Group of the relation; `COMMON` by default.
    relation_type_group: Option<String>,
    /// Bare id of the target entity.
    to_id: Option<String>,
    /// Kind of the target entity.
    to_type: Option<String>,
}

impl RelationKeyParams {
    fn key(self) -> ApiResult<RelationKey> {
        Ok(RelationKey {
            from: required("fromType", &self.from_type, "fromId", &self.from_id)?,
            to: required("toType", &self.to_type, "toId", &self.to_id)?,
            relation_type: self
                .relation_type
                .filter(|text| !text.is_empty())
                .ok_or_else(|| missing("relationType"))?,
            group: group(self.relation_type_group.as_deref()),
        })
    }
}

/// Returns the relation between two entities.
#[utoipa::path(get, path = "/api/relation", tag = "entity-relation", operation_id = "getRelation",
    params(RelationKeyParams), responses((status = 200, body = EntityRelation)))]
async fn get(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<RelationKeyParams>,
) -> ApiResult<Json<EntityRelation>> {
    let key = params.key()?;
    api.check(&caller, key.from, AccessOperation::Read).await?;
    api.check(&caller, key.to, AccessOperation::Read).await?;
    let found = api.entities.relations.get(caller.tenant, &key).await?;
    found.map(Json).ok_or_else(ApiError::item_not_found)
}

async fn remove(api: &ApiState, caller: &Principal, params: RelationKeyParams) -> ApiResult<EntityRelation> {
    let key = params.key()?;
    check_change(api, caller, key.from).await?;
    check_change(api, caller, key.to).await?;
    let deleted = api.services.relations.delete(caller.tenant, &key).await?;
    api.services
        .actions
        .push_relation(caller, EntityAction::RelationDeleted, &deleted)
        .await;
    Ok(deleted)
}

/// Deletes a relation.
#[utoipa::path(delete, path = "/api/relation", tag = "entity-relation", operation_id = "deleteRelationV1",
    params(RelationKeyParams), responses((status = 200)))]
async fn delete(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<RelationKeyParams>,
) -> ApiResult<()> {
    remove(&api, &caller, params).await.map(drop)
}

/// Deletes a relation, and returns it.
#[utoipa::path(delete, path = "/api/v2/relation", tag = "entity-relation", operation_id = "deleteRelation",
    params(RelationKeyParams), responses((status = 200, body = EntityRelation)))]
async fn delete_v2(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<RelationKeyParams>,
) -> ApiResult<Json<EntityRelation>> {
    remove(&api, &caller, params).await.map(Json)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct RelationEntityParams {
    /// Bare id of the entity.
    entity_id: Option<String>,
    /// Kind of the entity.
    entity_type: Option<String>,
}

/// Deletes all relations of an entity in the group `COMMON`.
#[utoipa::path(delete, path = "/api/relations", tag = "entity-relation", operation_id = "deleteRelations",
    params(RelationEntityParams), responses((status = 200)))]
async fn delete_all(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<RelationEntityParams>,
) -> ApiResult<()> {
    let entity = required("entityType", &params.entity_type, "entityId", &params.entity_id)?;
    api.check(&caller, entity, AccessOperation::Write).await?;
    api.services
        .relations
        .delete_common(caller.tenant, entity)
        .await?;
    api.services.actions.push_relations_deleted(&caller, entity).await;
    Ok(())
}
