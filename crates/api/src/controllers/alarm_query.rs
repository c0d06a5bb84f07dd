//! Queries of alarms by a filter of entities.

use axum::Json;
use axum::extract::State;
use fieldline_model::page::PageData;
use utoipa_axum::routes;

use crate::alarm_data::{self, AlarmCountQuery, AlarmData, AlarmDataQuery};
use crate::caller::Caller;
use crate::endpoint::{Routes, TC};
use crate::error::ApiResult;
use crate::extract::Body;
use crate::state::Api;

pub(super) fn routes() -> Routes {
    Routes::default().add(TC, routes!(find)).add(TC, routes!(count))
}

/// A page of the alarms of the entities that a filter stands for.
#[utoipa::path(post, path = "/api/alarmsQuery/find", tag = "entity-query", operation_id = "findAlarmDataByQuery",
    request_body = AlarmDataQuery, responses((status = 200, body = PageData<AlarmData>)))]
async fn find(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(query): Body<AlarmDataQuery>,
) -> ApiResult<Json<PageData<AlarmData>>> {
    Ok(Json(alarm_data::find(&api, &caller, &query).await?))
}

/// How many alarms the entities have that a filter stands for.
#[utoipa::path(post, path = "/api/alarmsQuery/count", tag = "entity-query", operation_id = "countAlarmsByQuery",
    request_body = AlarmCountQuery, responses((status = 200, body = u64, content_type = "application/json")))]
async fn count(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(query): Body<AlarmCountQuery>,
) -> ApiResult<Json<u64>> {
    Ok(Json(alarm_data::count(&api, &caller, &query).await?))
}
