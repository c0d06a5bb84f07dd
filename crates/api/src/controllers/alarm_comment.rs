//! Comments under alarms.

use axum::Json;
use fieldline_entities::access::AccessOperation;
use fieldline_model::AlarmId;
use fieldline_model::entity::{
    Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, Authority, EntityDraft,
};
use fieldline_model::page::PageData;
use utoipa_axum::routes;

use super::alarm::load_info;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC, TC};
use crate::error::ApiResult;
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.changes(routes!(save), AuditRule::Nothing))
        .add(STC.reads(routes!(list)))
        .add(TC.changes(routes!(delete), AuditRule::Nothing))
}

/// Adds a comment to an alarm, or changes one of the caller's own if it has an id.
#[utoipa::path(post, path = "/api/alarm/{alarmId}/comment", tag = "alarm-comment", operation_id = "saveAlarmComment",
    params(("alarmId" = Uuid, Path)), request_body = AlarmComment, responses((status = 200, body = AlarmComment)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    JsonBody(comment): JsonBody<EntityDraft<AlarmComment>>,
) -> ApiResult<Json<AlarmComment>> {
    let alarm = load_info(&api, &caller, id, AccessOperation::Write).await?;
    Ok(Json(api.services.alarms.comment(&caller, &alarm, comment).await?))
}

/// Returns a page of the comments of an alarm.
#[utoipa::path(get, path = "/api/alarm/{alarmId}/comment", tag = "alarm-comment", operation_id = "getAlarmComments",
    params(("alarmId" = Uuid, Path), PageParams), responses((status = 200, body = PageData<AlarmCommentInfo>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<AlarmCommentInfo>>> {
    api.load::<Alarm>(&caller, id, AccessOperation::Read).await?;
    let comments = api
        .entities
        .alarms
        .comments(caller.tenant, AlarmId(id), &page.link()?)
        .await?;
    Ok(Json(comments))
}

/// Replaces a comment with a note that it was deleted.
#[utoipa::path(delete, path = "/api/alarm/{alarmId}/comment/{commentId}", tag = "alarm-comment",
    operation_id = "deleteAlarmComment", params(("alarmId" = Uuid, Path), ("commentId" = Uuid, Path)),
    responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id, comment]): PathIds<2>) -> ApiResult<()> {
    let alarm = load_info(&api, &caller, id, AccessOperation::Write).await?;
    let comment = AlarmCommentId { id: comment };
    let of_others = caller.authority == Authority::TenantAdmin;
    Ok(api
        .services
        .alarms
        .delete_comment(&caller, &alarm, comment, of_others)
        .await?)
}
