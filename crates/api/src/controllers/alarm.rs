//! Single alarms.

use axum::Json;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{ActionType, Alarm, AlarmInfo, EntityDraft};
use fieldline_model::{AlarmId, EntityType, UserId};
use utoipa_axum::routes;
use uuid::Uuid;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.reads(routes!(get)))
        .add(TC.reads(routes!(info)))
        .add(TC.changes(routes!(save), AuditRule::Save(EntityType::Alarm)))
        .add(TC.changes(routes!(delete), AuditRule::Delete(EntityType::Alarm)))
        .add(TC.changes(routes!(acknowledge), AuditRule::Alarm(ActionType::AlarmAck)))
        .add(TC.changes(routes!(clear), AuditRule::Alarm(ActionType::AlarmClear)))
        .add(TC.changes(routes!(assign), AuditRule::Alarm(ActionType::AlarmAssigned)))
        .add(TC.changes(routes!(unassign), AuditRule::Alarm(ActionType::AlarmUnassigned)))
}

/// Loads an alarm with its extended fields, if the caller may perform the operation on it.
pub(super) async fn load_info(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: AccessOperation,
) -> ApiResult<AlarmInfo> {
    api.load::<Alarm>(caller, id, operation).await?;
    let info = api.entities.alarms.info(caller.tenant, AlarmId(id)).await?;
    info.ok_or_else(|| ApiError::not_found(format!("Alarm with id [{id}] is not found")))
}

/// Returns the alarm with this id.
#[utoipa::path(get, path = "/api/alarm/{alarmId}", tag = "alarm", operation_id = "getAlarmById",
    params(("alarmId" = Uuid, Path)), responses((status = 200, body = Alarm)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<Alarm>> {
    Ok(Json(api.load::<Alarm>(&caller, id, AccessOperation::Read).await?))
}

/// Returns the alarm with this id, with its extended fields.
#[utoipa::path(get, path = "/api/alarm/info/{alarmId}", tag = "alarm", operation_id = "getAlarmInfoById",
    params(("alarmId" = Uuid, Path)), responses((status = 200, body = AlarmInfo)))]
async fn info(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<AlarmInfo>> {
    Ok(Json(load_info(&api, &caller, id, AccessOperation::Read).await?))
}

/// Raises an alarm or updates the active one of its originator and type; if an id is given, updates that one.
#[utoipa::path(post, path = "/api/alarm", tag = "alarm", operation_id = "saveAlarm", request_body = Alarm,
    responses((status = 200, body = Alarm)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(alarm): JsonBody<EntityDraft<Alarm>>,
) -> ApiResult<Json<Alarm>> {
    let originator = alarm
        .originator
        .ok_or_else(|| ApiError::bad_request("Alarm originator should be specified!"))?;
    if let Some(id) = alarm.id {
        api.load::<Alarm>(&caller, id.0, AccessOperation::Write).await?;
    }
    api.check(&caller, originator, AccessOperation::Read).await?;
    if let Some(assignee) = alarm.assignee_id {
        api.check(&caller, assignee, AccessOperation::Read).await?;
    }
    Ok(Json(api.services.alarms.save(&caller, alarm).await?))
}

/// Deletes an alarm with its comments; returns whether it existed.
#[utoipa::path(delete, path = "/api/alarm/{alarmId}", tag = "alarm", operation_id = "deleteAlarm",
    params(("alarmId" = Uuid, Path)), responses((status = 200, body = bool, content_type = "application/json")))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<bool>> {
    let alarm = api.load::<Alarm>(&caller, id, AccessOperation::Delete).await?;
    Ok(Json(api.services.alarms.delete_by(&caller, alarm).await?))
}

/// Acknowledges an alarm.
#[utoipa::path(post, path = "/api/alarm/{alarmId}/ack", tag = "alarm", operation_id = "ackAlarm",
    params(("alarmId" = Uuid, Path)), responses((status = 200, body = AlarmInfo)))]
async fn acknowledge(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<AlarmInfo>> {
    api.load::<Alarm>(&caller, id, AccessOperation::Write).await?;
    let alarms = &api.services.alarms;
    Ok(Json(alarms.acknowledge_by(&caller, AlarmId(id), 0).await?))
}

/// Clears an alarm.
#[utoipa::path(post, path = "/api/alarm/{alarmId}/clear", tag = "alarm", operation_id = "clearAlarm",
    params(("alarmId" = Uuid, Path)), responses((status = 200, body = AlarmInfo)))]
async fn clear(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<AlarmInfo>> {
    api.load::<Alarm>(&caller, id, AccessOperation::Write).await?;
    let alarms = &api.services.alarms;
    Ok(Json(alarms.clear_by(&caller, AlarmId(id), 0).await?))
}

/// Assigns an alarm to a user.
#[utoipa::path(post, path = "/api/alarm/{alarmId}/assign/{assigneeId}", tag = "alarm", operation_id = "assignAlarm",
    params(("alarmId" = Uuid, Path), ("assigneeId" = Uuid, Path)), responses((status = 200, body = AlarmInfo)))]
async fn assign(
    ApiCall { api, caller }: ApiCall,
    PathIds([id, user]): PathIds<2>,
) -> ApiResult<Json<AlarmInfo>> {
    api.load::<Alarm>(&caller, id, AccessOperation::Write).await?;
    api.check(&caller, UserId(user), AccessOperation::Read).await?;
    let alarms = &api.services.alarms;
    Ok(Json(
        alarms.assign_by(&caller, AlarmId(id), UserId(user), 0).await?,
    ))
}

/// Unassigns an alarm from its user.
#[utoipa::path(delete, path = "/api/alarm/{alarmId}/assign", tag = "alarm", operation_id = "unassignAlarm",
    params(("alarmId" = Uuid, Path)), responses((status = 200, body = AlarmInfo)))]
async fn unassign(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<AlarmInfo>> {
    api.load::<Alarm>(&caller, id, AccessOperation::Write).await?;
    let alarms = &api.services.alarms;
    Ok(Json(alarms.unassign_by(&caller, AlarmId(id), 0).await?))
}
