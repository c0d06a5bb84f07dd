//! Statistics of queues; their counters are read as telemetry of these entities.

use std::cmp::Reverse;

use axum::Json;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::queue_stats;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::QueueStatsId;
use fieldline_model::entity::QueueStats;
use fieldline_model::page::{PageData, PageLink, SortOrder};
use serde::Deserialize;
use utoipa_axum::routes;

use super::Either;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, PathIds, QueryParams, parse_uuids};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST.reads(routes!(list)))
        .add(ST.reads(routes!(by_ids)))
        .add(ST.reads(routes!(get)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct QueueStatsIds {
    /// Comma-joined ids.
    queue_stats_ids: Option<String>,
}

/// Returns a page of the tenant's queue statistics, or with `queueStatsIds` those of them with these ids.
#[utoipa::path(get, path = "/api/queueStats", tag = "queue-stats", operation_id = "getTenantQueueStats",
    params(PageParams, QueueStatsIds), responses((status = 200, body = inline(Either<PageData<QueueStats>, Vec<QueueStats>>))))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(ids): QueryParams<QueueStatsIds>,
) -> ApiResult<Json<Either<PageData<QueueStats>, Vec<QueueStats>>>> {
    if ids.queue_stats_ids.is_some() {
        return Ok(Json(Either::Right(of_ids(&api, &caller, ids).await?)));
    }
    let link = page.link()?;
    let stats = queue_stats::of_tenant(&api.entities, caller.tenant).await?;
    Ok(Json(Either::Left(page_of(stats, &link)?)))
}

/// Returns those of the queue statistics that the tenant has.
#[utoipa::path(get, path = "/api/queueStats/list", tag = "queue-stats", operation_id = "getQueueStatsByIds",
    params(QueueStatsIds), responses((status = 200, body = Vec<QueueStats>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(ids): QueryParams<QueueStatsIds>,
) -> ApiResult<Json<Vec<QueueStats>>> {
    Ok(Json(of_ids(&api, &caller, ids).await?))
}

/// Returns the queue statistics with this id.
#[utoipa::path(get, path = "/api/queueStats/{queueStatsId}", tag = "queue-stats",
    operation_id = "getQueueStatsById", params(("queueStatsId" = Uuid, Path)),
    responses((status = 200, body = QueueStats)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<QueueStats>> {
    match api
        .check(&caller, QueueStatsId(id), AccessOperation::Read)
        .await?
    {
        AnyEntity::QueueStats(stats) => Ok(Json(stats)),
        _ => Err(ApiError::not_found("Queue stats not found")),
    }
}

async fn of_ids(api: &ApiState, caller: &Principal, ids: QueueStatsIds) -> ApiResult<Vec<QueueStats>> {
    let ids = ids.queue_stats_ids.unwrap_or_default();
    let ids = parse_uuids("queueStatsIds", &ids, QueueStatsId)?;
    let mut stats = queue_stats::of_tenant(&api.entities, caller.tenant).await?;
    stats.retain(|stats| ids.contains(&stats.id));
    Ok(stats)
}

/// Cuts one page from all statistics of a tenant: there are only as many as queues.
fn page_of(mut stats: Vec<QueueStats>, link: &PageLink) -> ApiResult<PageData<QueueStats>> {
    if let Some(text) = &link.text_search {
        let text = text.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&text);
        stats.retain(|stats| has(&stats.queue_name) || has(&stats.service_id));
    }
    match link.sort_property.as_deref() {
        None => stats.sort_by_key(|stats| Reverse(stats.created_time)),
        Some("createdTime") => stats.sort_by_key(|stats| stats.created_time),
        // They come sorted by queue name, and all belong to one server.
        Some("queueName" | "serviceId") => {}
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "Unsupported sort property '{other}'!"
            )));
        }
    }
    if link.sort_order == Some(SortOrder::Desc) {
        stats.reverse();
    }
    let total = stats.len() as u64;
    let skipped = usize::try_from(link.offset()).unwrap_or(usize::MAX);
    let size = link.page_size as usize;
    let data = stats.into_iter().skip(skipped).take(size).collect();
    Ok(PageData::new(data, total, link))
}
