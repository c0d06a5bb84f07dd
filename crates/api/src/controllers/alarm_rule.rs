//! Alarm rules: calculated fields of type ALARM with paths of their own, and without `type` in their JSON.

use axum::Json;
use axum::extract::Path;
use axum::response::Response;
use fieldline_core::ports::CalculatedFieldFilter;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::calculated_field::CALCULATED_FIELD_ENTITIES;
use fieldline_model::entity::{CalculatedField, CalculatedFieldInfo, CalculatedFieldType, EntityDraft};
use fieldline_model::page::PageData;
use serde::Serialize;
use serde_json::Value;
use utoipa_axum::routes;
use uuid::Uuid;

use super::calculated_field::{self, TestScriptRequest, TestScriptResult};
use super::calculated_field_list::{self as field_list, FieldEntityParams};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams};
use crate::state::ApiState;

const ALARM: CalculatedFieldType = CalculatedFieldType::Alarm;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(get)))
        .add(T.changes(routes!(save), AuditRule::Nothing))
        .add(T.changes(routes!(delete), AuditRule::Nothing))
        .add(T.reads(routes!(debug_event)))
        .add(T.computes(routes!(test_script)))
        .add(T.reads(routes!(of_entity)))
        .add(T.reads(routes!(list)))
        .add(T.reads(routes!(names)))
}

/// Converts a field into the JSON of an alarm rule.
fn rule<F: Serialize>(field: F) -> ApiResult<Value> {
    let mut rule =
        serde_json::to_value(field).map_err(|_| ApiError::bad_request("The alarm rule cannot be shown"))?;
    if let Value::Object(fields) = &mut rule {
        fields.remove("type");
    }
    Ok(rule)
}

fn rules<F: Serialize>(page: PageData<F>) -> ApiResult<Json<PageData<Value>>> {
    let data = page.data.into_iter().map(rule).collect::<ApiResult<_>>()?;
    Ok(Json(PageData {
        data,
        total_pages: page.total_pages,
        total_elements: page.total_elements,
        has_next: page.has_next,
    }))
}

/// Loads a field; fields of other types are not found.
async fn load(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: AccessOperation,
) -> ApiResult<CalculatedField> {
    let field = calculated_field::load(api, caller, id, operation).await?;
    if field.field_type == ALARM {
        return Ok(field);
    }
    Err(ApiError::not_found(format!(
        "Alarm rule with id [{id}] is not found"
    )))
}

/// Returns the alarm rule with this id.
#[utoipa::path(get, path = "/api/alarm/rule/{alarmRuleId}", tag = "alarm-rule", operation_id = "getAlarmRuleById",
    params(("alarmRuleId" = Uuid, Path)), responses((status = 200, body = CalculatedField)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<Value>> {
    Ok(Json(rule(load(&api, &caller, id, AccessOperation::Read).await?)?))
}

/// Creates an alarm rule, or updates it if it has an id.
#[utoipa::path(post, path = "/api/alarm/rule", tag = "alarm-rule", operation_id = "saveAlarmRule",
    request_body = CalculatedField, responses((status = 200, body = CalculatedField)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(mut definition): JsonBody<Value>,
) -> ApiResult<Json<Value>> {
    if let Value::Object(fields) = &mut definition {
        fields.insert("type".to_owned(), ALARM.name().into());
    }
    let field: EntityDraft<CalculatedField> = serde_json::from_value(definition)
        .map_err(|error| ApiError::bad_request(format!("JSON parse error: {error}")))?;
    if let Some(id) = field.id {
        load(&api, &caller, id.0, AccessOperation::Write).await?;
    }
    let Json(saved) = calculated_field::save(ApiCall { api, caller }, JsonBody(field)).await?;
    Ok(Json(rule(saved)?))
}

/// Deletes an alarm rule; its alarms stay.
#[utoipa::path(delete, path = "/api/alarm/rule/{alarmRuleId}", tag = "alarm-rule", operation_id = "deleteAlarmRule",
    params(("alarmRuleId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let field = load(&api, &caller, id, AccessOperation::Write).await?;
    Ok(api.services.calculated_fields.delete(&field).await?)
}

/// Returns the body of the newest debug event of an alarm rule; empty if there is none.
#[utoipa::path(get, path = "/api/alarm/rule/{alarmRuleId}/debug", tag = "alarm-rule",
    operation_id = "getLatestAlarmRuleDebugEvent", params(("alarmRuleId" = Uuid, Path)),
    responses((status = 200, body = Value)))]
async fn debug_event(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Response> {
    load(&api, &caller, id, AccessOperation::Read).await?;
    calculated_field::debug_event(ApiCall { api, caller }, PathIds([id])).await
}

/// Runs the script of a condition once.
#[utoipa::path(post, path = "/api/alarm/rule/testScript", tag = "alarm-rule", operation_id = "testAlarmRuleScript",
    request_body = TestScriptRequest, responses((status = 200, body = TestScriptResult)))]
async fn test_script(
    call: ApiCall,
    request: JsonBody<TestScriptRequest>,
) -> ApiResult<Json<TestScriptResult>> {
    calculated_field::test_script(call, request).await
}

/// Returns a page of the alarm rules of an entity or profile.
#[utoipa::path(get, path = "/api/alarm/rules/{entityType}/{entityId}", tag = "alarm-rule",
    operation_id = "getAlarmRulesByEntityId", params(("entityType" = String, Path), ("entityId" = Uuid, Path), PageParams),
    responses((status = 200, body = PageData<CalculatedField>)))]
async fn of_entity(
    ApiCall { api, caller }: ApiCall,
    Path((entity_type, id)): Path<(String, String)>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<Value>>> {
    let Json(page) =
        field_list::fields_of(&api, &caller, &entity_type, &id, Some(ALARM.name()), page).await?;
    rules(page)
}

/// Returns a page of the alarm rules of the tenant.
#[utoipa::path(get, path = "/api/alarm/rules", tag = "alarm-rule", operation_id = "getAlarmRules",
    params(FieldEntityParams, PageParams), responses((status = 200, body = PageData<CalculatedFieldInfo>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(entities): QueryParams<FieldEntityParams>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<Value>>> {
    let (entity_types, entities) = entities.parse()?;
    let filter = CalculatedFieldFilter {
        types: Some(vec![ALARM]),
        entity_types: Some(entity_types.unwrap_or_else(|| CALCULATED_FIELD_ENTITIES.to_vec())),
        entities,
        names: None,
    };
    let store = &api.entities.calculated_fields;
    rules(store.list(caller.tenant, &filter, &page.link()?).await?)
}

/// Returns a page of the names of alarm rules, which are alarm types.
#[utoipa::path(get, path = "/api/alarm/rules/names", tag = "alarm-rule", operation_id = "getAlarmRuleNames",
    params(PageParams), responses((status = 200, body = PageData<String>)))]
async fn names(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<String>>> {
    let link = page.sorted_by("name").link()?;
    let store = &api.entities.calculated_fields;
    Ok(Json(store.names(caller.tenant, ALARM, &link).await?))
}
