//! Comments under alarms.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::Operation;
use fieldline_model::AlarmId;
use fieldline_model::entity::{Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, Authority};
use fieldline_model::page::PageData;
use utoipa_axum::routes;

use super::alarm::load_info;
use crate::caller::Caller;
use crate::endpoint::{Routes, STC, TC};
use crate::error::ApiResult;
use crate::extract::{Body, Ids, PageParams, Query};
use crate::state::Api;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(TC, routes!(save))
        .add(STC, routes!(list))
        .add(TC, routes!(delete))
}

/// Writes a comment under an alarm, or changes one of one's own where it has an id.
#[utoipa::path(post, path = "/api/alarm/{alarmId}/comment", tag = "alarm-comment", operation_id = "saveAlarmComment",
    params(("alarmId" = Uuid, Path)), request_body = AlarmComment, responses((status = 200, body = AlarmComment)))]
async fn save(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
    Body(comment): Body<AlarmComment>,
) -> ApiResult<Json<AlarmComment>> {
    let alarm = load_info(&api, &caller, id, Operation::Write).await?;
    Ok(Json(api.services.alarms.comment(&caller, &alarm, comment).await?))
}

/// A page of the comments under an alarm.
#[utoipa::path(get, path = "/api/alarm/{alarmId}/comment", tag = "alarm-comment", operation_id = "getAlarmComments",
    params(("alarmId" = Uuid, Path), PageParams), responses((status = 200, body = PageData<AlarmCommentInfo>)))]
async fn list(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
    Query(page): Query<PageParams>,
) -> ApiResult<Json<PageData<AlarmCommentInfo>>> {
    api.load::<Alarm>(&caller, id, Operation::Read).await?;
    let comments = api
        .entities
        .alarms
        .comments(caller.tenant, AlarmId(id), &page.link()?)
        .await?;
    Ok(Json(comments))
}

/// Replaces a comment by the note that it was deleted.
#[utoipa::path(delete, path = "/api/alarm/{alarmId}/comment/{commentId}", tag = "alarm-comment",
    operation_id = "deleteAlarmComment", params(("alarmId" = Uuid, Path), ("commentId" = Uuid, Path)),
    responses((status = 200)))]
async fn delete(State(api): State<Api>, Caller(caller): Caller, Ids([id, comment]): Ids<2>) -> ApiResult<()> {
    let alarm = load_info(&api, &caller, id, Operation::Write).await?;
    let comment = AlarmCommentId { id: comment };
    let of_others = caller.authority == Authority::TenantAdmin;
    Ok(api
        .services
        .alarms
        .delete_comment(&caller, &alarm, comment, of_others)
        .await?)
}
