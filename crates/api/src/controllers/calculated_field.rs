//! Calculated fields.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{EventFilter, FieldScriptTest};
use fieldline_entities::access::{AccessError, AccessOperation, Principal};
use fieldline_model::entity::calculated_field::CalculatedFieldConfiguration;
use fieldline_model::entity::{CalculatedField, EntityDraft, EventKind};
use fieldline_model::page::PageLink;
use fieldline_model::{CalculatedFieldId, EntityType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa_axum::routes;
use uuid::Uuid;

use super::rule_node::own_fault;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds, missing};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(get)))
        .add(T.changes(routes!(save), AuditRule::Save(EntityType::CalculatedField)))
        .add(T.changes(routes!(delete), AuditRule::Delete(EntityType::CalculatedField)))
        .add(T.reads(routes!(debug_event)))
        .add(T.computes(routes!(test_script)))
}

/// Loads a field, if the caller may perform the operation on the entity that has it.
pub(super) async fn load(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: AccessOperation,
) -> ApiResult<CalculatedField> {
    let AnyEntity::CalculatedField(field) = api
        .check(caller, CalculatedFieldId(id), AccessOperation::Read)
        .await?
    else {
        return Err(AccessError::NotFound(CalculatedFieldId(id).into()).into());
    };
    if let Some(entity) = field.entity_id {
        api.check(caller, entity, operation).await?;
    }
    Ok(field)
}

/// Returns the calculated field with this id.
#[utoipa::path(get, path = "/api/calculatedField/{calculatedFieldId}", tag = "calculated-field",
    operation_id = "getCalculatedFieldById", params(("calculatedFieldId" = Uuid, Path)),
    responses((status = 200, body = CalculatedField)))]
async fn get(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<CalculatedField>> {
    Ok(Json(load(&api, &caller, id, AccessOperation::Read).await?))
}

/// Creates a calculated field, or updates it if it has an id.
#[utoipa::path(post, path = "/api/calculatedField", tag = "calculated-field", operation_id = "saveCalculatedField",
    request_body = CalculatedField, responses((status = 200, body = CalculatedField)))]
pub(super) async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(field): JsonBody<EntityDraft<CalculatedField>>,
) -> ApiResult<Json<CalculatedField>> {
    let entity = field.entity_id.ok_or_else(|| missing("entityId"))?;
    if let Some(id) = field.id {
        load(&api, &caller, id.0, AccessOperation::Write).await?;
    }
    api.check(&caller, entity, AccessOperation::Write).await?;
    // An invalid configuration is reported by the service.
    if let Ok(configuration) = CalculatedFieldConfiguration::parse(field.field_type, &field.configuration) {
        for referenced in configuration.referenced_entities() {
            api.check(&caller, referenced, AccessOperation::Read).await?;
        }
    }
    let fields = &api.services.calculated_fields;
    Ok(Json(fields.save(caller.tenant, field).await?))
}

/// Deletes a calculated field; the values that it has computed stay.
#[utoipa::path(delete, path = "/api/calculatedField/{calculatedFieldId}", tag = "calculated-field",
    operation_id = "deleteCalculatedField", params(("calculatedFieldId" = Uuid, Path)),
    responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let field = load(&api, &caller, id, AccessOperation::Write).await?;
    Ok(api.services.calculated_fields.delete(&field).await?)
}

/// Returns the body of the newest debug event of a calculated field; empty if there is none.
#[utoipa::path(get, path = "/api/calculatedField/{calculatedFieldId}/debug", tag = "calculated-field",
    operation_id = "getLatestCalculatedFieldDebugEvent", params(("calculatedFieldId" = Uuid, Path)),
    responses((status = 200, body = Value)))]
pub(super) async fn debug_event(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Response> {
    load(&api, &caller, id, AccessOperation::Read).await?;
    let filter = EventFilter::of(EventKind::DebugCalculatedField);
    let id = CalculatedFieldId(id).into();
    let page = api
        .entities
        .events
        .list(caller.tenant, id, &filter, &PageLink::first(1))
        .await?;
    Ok(match page.data.first() {
        Some(event) => Json(event.body_json()).into_response(),
        None => ().into_response(),
    })
}

/// A script and the arguments to test it with.
#[derive(Deserialize, utoipa::ToSchema)]
pub(super) struct TestScriptRequest {
    /// Body of the script.
    expression: Option<String>,
    /// `{"name": {"type": "SINGLE_VALUE", "ts", "value"}}` or
    /// `{"name": {"type": "TS_ROLLING", "timeWindow": {"startTs", "endTs"}, "values": [{"ts", "value"}]}}`.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
}

/// Result of a script.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct TestScriptResult {
    /// The result as JSON text; empty after an error.
    output: String,
    /// The error message; empty otherwise.
    error: String,
}

/// Runs a script of a calculated field once.
#[utoipa::path(post, path = "/api/calculatedField/testScript", tag = "calculated-field",
    operation_id = "testCalculatedFieldScript", request_body = TestScriptRequest,
    responses((status = 200, body = TestScriptResult)))]
pub(super) async fn test_script(
    ApiCall { api, caller }: ApiCall,
    JsonBody(request): JsonBody<TestScriptRequest>,
) -> ApiResult<Json<TestScriptResult>> {
    let expression = request.expression.filter(|text| !text.is_empty());
    let expression = expression.ok_or_else(|| missing("expression"))?;
    let arguments = request.arguments.unwrap_or_default();
    if arguments.len() > MAX_ARGUMENTS {
        return Err(ApiError::bad_request(format!(
            "A script takes {MAX_ARGUMENTS} arguments at most!"
        )));
    }
    let test = FieldScriptTest {
        tenant: caller.tenant,
        expression,
        latest_ts: latest_ts(&arguments).unwrap_or_else(|| api.clock.now_ms()),
        arguments,
    };
    let (output, error) = match api.scripts.test_field(test).await {
        Ok(value) => (value.to_string(), String::new()),
        Err(error) => (String::new(), own_fault(error)?),
    };
    Ok(Json(TestScriptResult { output, error }))
}

/// Most arguments of a script test.
const MAX_ARGUMENTS: usize = 100;

/// Returns the latest timestamp among the arguments.
fn latest_ts(arguments: &Map<String, Value>) -> Option<i64> {
    let ts = |value: &Value| value.get("ts").and_then(Value::as_i64);
    arguments
        .values()
        .filter_map(
            |argument| match argument.get("values").and_then(Value::as_array) {
                Some(points) => points.iter().filter_map(ts).max(),
                None => ts(argument),
            },
        )
        .max()
        .filter(|ts| *ts != -1)
}
