//! Lists of calculated fields.

use axum::Json;
use axum::extract::Path;
use fieldline_core::ports::CalculatedFieldFilter;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::calculated_field::CALCULATED_FIELD_ENTITIES;
use fieldline_model::entity::{CalculatedField, CalculatedFieldInfo, CalculatedFieldType};
use fieldline_model::page::PageData;
use fieldline_model::{EntityId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, QueryPairs, QueryParams, missing, parse_uuid, parse_uuids};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(of_entity)))
        .add(T.reads(routes!(of_entity_legacy)))
        .add(T.reads(routes!(list)))
        .add(T.reads(routes!(names)))
}

/// Most names in the filter of a list.
const MAX_NAMES: usize = 1_000;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct FieldTypeParams {
    /// Type of the fields; all but alarm rules by default.
    #[serde(rename = "type")]
    #[param(value_type = Option<CalculatedFieldType>)]
    kind: Option<String>,
}

/// Returns a page of the calculated fields of an entity or profile.
#[utoipa::path(get, path = "/api/calculatedField/{entityType}/{entityId}", tag = "calculated-field",
    operation_id = "getCalculatedFieldsByEntityId",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), FieldTypeParams, PageParams),
    responses((status = 200, body = PageData<CalculatedField>)))]
async fn of_entity(
    ApiCall { api, caller }: ApiCall,
    Path((entity_type, id)): Path<(String, String)>,
    QueryParams(kind): QueryParams<FieldTypeParams>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<CalculatedField>>> {
    fields_of(&api, &caller, &entity_type, &id, kind.kind.as_deref(), page).await
}

/// Returns the same under its older path.
#[utoipa::path(get, path = "/api/{entityType}/{entityId}/calculatedFields", tag = "calculated-field",
    operation_id = "getCalculatedFieldsByEntityIdV1",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), FieldTypeParams, PageParams),
    responses((status = 200, body = PageData<CalculatedField>)))]
async fn of_entity_legacy(
    ApiCall { api, caller }: ApiCall,
    Path((entity_type, id)): Path<(String, String)>,
    QueryParams(kind): QueryParams<FieldTypeParams>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<CalculatedField>>> {
    fields_of(&api, &caller, &entity_type, &id, kind.kind.as_deref(), page).await
}

pub(super) async fn fields_of(
    api: &ApiState,
    caller: &Principal,
    entity_type: &str,
    id: &str,
    kind: Option<&str>,
    page: PageParams,
) -> ApiResult<Json<PageData<CalculatedField>>> {
    let entity = EntityId::new(entity_type_of(entity_type)?, parse_uuid(id)?);
    let kind = match kind.filter(|name| !name.is_empty()) {
        Some(name) => Some(type_of(name)?),
        None => None,
    };
    let link = page.link()?;
    api.check(caller, entity, AccessOperation::Read).await?;
    let fields = &api.services.calculated_fields;
    fields.check_entity(caller.tenant, entity, kind).await?;
    let filter = CalculatedFieldFilter {
        types: Some(kind.map_or_else(all_but_alarms, |kind| vec![kind])),
        entity_types: Some(vec![entity.entity_type]),
        entities: Some(vec![entity.id]),
        names: None,
    };
    let store = &api.entities.calculated_fields;
    let found = store.list(caller.tenant, &filter, &link).await?;
    Ok(Json(found.map(|info| info.field)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct FieldFilterParams {
    /// Comma-joined types; all but alarm rules by default.
    types: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(super) struct FieldEntityParams {
    /// Type of the entities that have the fields.
    #[param(value_type = Option<String>)]
    entity_type: Option<String>,
    /// Comma-joined ids of these entities.
    entities: Option<String>,
}

/// The entity types and entities to filter by.
type FieldEntities = (Option<Vec<EntityType>>, Option<Vec<Uuid>>);

impl FieldEntityParams {
    pub(super) fn parse(self) -> ApiResult<FieldEntities> {
        let types = match present(self.entity_type) {
            Some(name) => Some(vec![entity_type_of(&name)?]),
            None => None,
        };
        let entities = match present(self.entities) {
            Some(ids) => Some(parse_uuids("entities", &ids, |id| id)?),
            None => None,
        };
        Ok((types, entities))
    }
}

fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Returns a page of the calculated fields of the tenant.
#[utoipa::path(get, path = "/api/calculatedFields", tag = "calculated-field", operation_id = "getCalculatedFields",
    params(FieldFilterParams, FieldEntityParams, PageParams, ("name" = Option<Vec<String>>, Query, description = "Names; may be repeated.")),
    responses((status = 200, body = PageData<CalculatedFieldInfo>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(filter): QueryParams<FieldFilterParams>,
    QueryParams(entities): QueryParams<FieldEntityParams>,
    QueryParams(page): QueryParams<PageParams>,
    QueryPairs(pairs): QueryPairs,
) -> ApiResult<Json<PageData<CalculatedFieldInfo>>> {
    let filter = filter.filter(entities, pairs)?;
    let link = page.link()?;
    let store = &api.entities.calculated_fields;
    Ok(Json(store.list(caller.tenant, &filter, &link).await?))
}

impl FieldFilterParams {
    fn filter(
        self,
        entities: FieldEntityParams,
        pairs: Vec<(String, String)>,
    ) -> ApiResult<CalculatedFieldFilter> {
        let types = match present(self.types) {
            Some(types) => types
                .split(',')
                .map(|name| type_of(name.trim()))
                .collect::<ApiResult<_>>()?,
            None => all_but_alarms(),
        };
        let (entity_types, entities) = entities.parse()?;
        Ok(CalculatedFieldFilter {
            types: Some(types),
            entity_types: Some(entity_types.unwrap_or_else(|| CALCULATED_FIELD_ENTITIES.to_vec())),
            entities,
            names: names_of(pairs)?,
        })
    }
}

/// Returns the values of the parameter `name`, which may be repeated.
fn names_of(pairs: Vec<(String, String)>) -> ApiResult<Option<Vec<String>>> {
    let names: Vec<String> = pairs
        .into_iter()
        .filter(|(key, _)| key == "name")
        .map(|(_, value)| value)
        .collect();
    if names.len() > MAX_NAMES {
        return Err(ApiError::bad_request(format!(
            "Parameter 'name' is given more than {MAX_NAMES} times!"
        )));
    }
    Ok(Some(names).filter(|names| !names.is_empty()))
}

/// Returns a page of the names of the calculated fields of a type.
#[utoipa::path(get, path = "/api/calculatedFields/names", tag = "calculated-field",
    operation_id = "getCalculatedFieldNames", params(FieldTypeParams, PageParams),
    responses((status = 200, body = PageData<String>)))]
async fn names(
    ApiCall { api, caller }: ApiCall,
    QueryParams(kind): QueryParams<FieldTypeParams>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<String>>> {
    let kind = type_of(&kind.kind.ok_or_else(|| missing("type"))?)?;
    let store = &api.entities.calculated_fields;
    let link = page.sorted_by("name").link()?;
    Ok(Json(store.names(caller.tenant, kind, &link).await?))
}

fn all_but_alarms() -> Vec<CalculatedFieldType> {
    CalculatedFieldType::ALL
        .into_iter()
        .filter(|kind| *kind != CalculatedFieldType::Alarm)
        .collect()
}

fn type_of(name: &str) -> ApiResult<CalculatedFieldType> {
    CalculatedFieldType::from_name(name)
        .ok_or_else(|| ApiError::bad_request(format!("Unknown type of calculated field '{name}'!")))
}

fn entity_type_of(name: &str) -> ApiResult<EntityType> {
    name.parse()
        .map_err(|error| ApiError::bad_request(format!("{error}")))
}
