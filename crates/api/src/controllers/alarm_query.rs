//! Alarm queries by an entity filter.

use axum::Json;
use fieldline_model::page::PageData;
use utoipa_axum::routes;

use crate::alarm_data::{self, AlarmCountQuery, AlarmData, AlarmDataQuery};
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, TC};
use crate::error::ApiResult;
use crate::extract::JsonBody;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.asks(routes!(find)))
        .add(TC.asks(routes!(count)))
}

/// Returns a page of the alarms of the entities that a filter selects.
#[utoipa::path(post, path = "/api/alarmsQuery/find", tag = "entity-query", operation_id = "findAlarmDataByQuery",
    request_body = AlarmDataQuery, responses((status = 200, body = PageData<AlarmData>)))]
async fn find(
    ApiCall { api, caller }: ApiCall,
    JsonBody(query): JsonBody<AlarmDataQuery>,
) -> ApiResult<Json<PageData<AlarmData>>> {
    Ok(Json(alarm_data::find(&api, &caller, &query).await?))
}

/// Counts the alarms of the entities that a filter selects.
#[utoipa::path(post, path = "/api/alarmsQuery/count", tag = "entity-query", operation_id = "countAlarmsByQuery",
    request_body = AlarmCountQuery, responses((status = 200, body = u64, content_type = "application/json")))]
async fn count(
    ApiCall { api, caller }: ApiCall,
    JsonBody(query): JsonBody<AlarmCountQuery>,
) -> ApiResult<Json<u64>> {
    Ok(Json(alarm_data::count(&api, &caller, &query).await?))
}
