//! What is throttled or behind, live.

use std::collections::HashMap;

use axum::Json;
use fieldline_core::overload::{OverloadEpisode, OverloadScope};
use fieldline_model::TenantId;
use serde::Serialize;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST};
use crate::error::ApiResult;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(ST.reads(routes!(overload)))
}

/// What is throttled or behind at present, and what was in the last hour.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct OverloadReport {
    /// The time of the server, milliseconds.
    now: i64,
    /// Since when it looks, milliseconds: the start of the program.
    since: i64,
    /// What goes on comes first, then what was seen last.
    entries: Vec<OverloadEntry>,
}

/// Something that is or was throttled or behind.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct OverloadEntry {
    /// `QUEUE_LAG`, `JOURNAL`, `DISK`, `RATE_LIMIT`, `COUNT_LIMIT`, `API_LIMIT`, `SLOW_LANE`, `SCRIPTS` or `MEMORY`.
    kind: &'static str,
    /// The tenant that it concerns; null if it concerns all.
    #[schema(value_type = Option<Object>)]
    tenant_id: Option<TenantId>,
    /// The title of that tenant.
    tenant_name: Option<String>,
    /// The queue, limit, setting or pool that is concerned.
    subject: String,
    /// When it began, milliseconds.
    since: i64,
    /// When it was last seen, milliseconds.
    last: i64,
    /// Whether it goes on.
    active: bool,
    /// How often something was refused since it began; null if it is measured by `value`.
    count: Option<u64>,
    /// The amount when it was last seen, such as of waiting messages; null if it is counted.
    value: Option<u64>,
    /// The unit of `count` or `value`.
    unit: &'static str,
    /// The limit that was reached, in the form of its setting.
    limit: Option<String>,
    /// What has happened and why.
    reason: String,
}

/// Returns what is throttled or behind at present, for whom, since when and why, and what was in the last hour. Tenants see
/// their own and what concerns all; system administrators see everything.
#[utoipa::path(get, path = "/api/overload", tag = "system-info", operation_id = "getOverload",
    responses((status = 200, body = OverloadReport)))]
async fn overload(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<OverloadReport>> {
    let tenant = (!caller.tenant.is_null()).then_some(caller.tenant);
    let episodes = api.overload.episodes(tenant);
    let mut titles: HashMap<TenantId, Option<String>> = HashMap::new();
    let mut entries = Vec::with_capacity(episodes.len());
    for episode in episodes {
        let of = match episode.scope {
            OverloadScope::Tenant(tenant) => Some(tenant),
            OverloadScope::All => None,
        };
        if let Some(tenant) = of
            && !titles.contains_key(&tenant)
        {
            let found = api.entities.tenants.get(tenant).await?;
            titles.insert(tenant, found.map(|tenant| tenant.title));
        }
        let title = of.and_then(|tenant| titles.get(&tenant).cloned().flatten());
        entries.push(entry(episode, of, title));
    }
    Ok(Json(OverloadReport {
        now: api.clock.now_ms(),
        since: api.overload.started_ms(),
        entries,
    }))
}

fn entry(episode: OverloadEpisode, of: Option<TenantId>, title: Option<String>) -> OverloadEntry {
    OverloadEntry {
        kind: episode.kind.name(),
        tenant_id: of,
        tenant_name: title,
        subject: episode.subject.into_owned(),
        since: episode.since_ms,
        last: episode.last_ms,
        active: episode.is_active,
        count: episode.level.is_none().then_some(episode.count),
        value: episode.level,
        unit: episode.kind.unit(),
        limit: episode.limit,
        reason: episode.reason.into_owned(),
    }
}
