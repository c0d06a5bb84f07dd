//! Clients of the publish/subscribe broker that may not connect, and those that were refused, as TBMQ has them.

use axum::Json;
use axum::extract::State;
use fieldline_entities::broker_access::{BLOCKED_KEPT_MINUTES, BlockedClientStatus};
use fieldline_model::entity::{BlockedClient, BlockedClientType, RegexMatchTarget, UnauthorizedClient};
use fieldline_model::page::PageData;
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::Either;
use super::mqtt_credentials::named;
use crate::audit::AuditRule;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, QueryParams, missing, parse_flag};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.changes(routes!(block), AuditRule::Nothing))
        .add(S.reads(routes!(blocked)))
        .add(S.reads(routes!(blocked_filtered)))
        .add(S.reads(routes!(time_to_live)))
        .add(S.changes(routes!(unblock), AuditRule::Nothing))
        .add(S.reads(routes!(unauthorized)))
        .add(S.reads(routes!(unauthorized_filtered)))
        .add(S.changes(routes!(forget), AuditRule::Nothing))
}

/// Clients to block.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct BlockRequest {
    /// By what they are blocked.
    #[serde(rename = "type")]
    kind: BlockedClientType,
    /// What clients are compared with; one of the four fields below does as well.
    value: Option<String>,
    /// The client identifier.
    client_id: Option<String>,
    /// The user name.
    username: Option<String>,
    /// The address.
    ip_address: Option<String>,
    /// The regular expression, which has to match as a whole.
    pattern: Option<String>,
    /// What the expression looks at.
    regex_match_target: Option<RegexMatchTarget>,
    /// Until when, milliseconds; 0 for ever.
    expiration_time: Option<i64>,
    /// Why.
    description: Option<String>,
}

/// A block.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct BlockedClientInfo {
    /// By what clients are blocked.
    #[serde(rename = "type")]
    kind: BlockedClientType,
    /// Until when, milliseconds; 0 for ever.
    expiration_time: i64,
    /// `ACTIVE`, `EXPIRED` or `DELETING_SOON`.
    status: &'static str,
    /// Why.
    description: Option<String>,
    /// What clients are compared with.
    value: String,
    /// What a regular expression looks at.
    regex_match_target: Option<RegexMatchTarget>,
}

impl From<(BlockedClient, BlockedClientStatus)> for BlockedClientInfo {
    fn from((client, status): (BlockedClient, BlockedClientStatus)) -> Self {
        Self {
            kind: client.kind,
            expiration_time: client.expiration_time,
            status: status.name(),
            description: client.description,
            value: client.value,
            regex_match_target: client.target,
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct BlockedQuery {
    /// Earliest time of expiry, milliseconds.
    start_time: Option<i64>,
    /// Latest time of expiry, milliseconds.
    end_time: Option<i64>,
    /// Comma-joined types: `CLIENT_ID`, `USERNAME`, `IP_ADDRESS`, `REGEX`.
    type_list: Option<String>,
    /// Text that the value contains.
    value: Option<String>,
    /// Comma-joined targets: `BY_CLIENT_ID`, `BY_USERNAME`, `BY_IP_ADDRESS`.
    regex_match_target_list: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct UnblockQuery {
    /// The type of the block.
    #[serde(rename = "type")]
    #[param(required = true, value_type = String)]
    kind: Option<String>,
    /// Its value.
    #[param(required = true, value_type = String)]
    value: Option<String>,
    /// What its regular expression looks at.
    regex_match_target: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct RefusedClient {
    /// Identifier of a client.
    client_id: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct UnauthorizedQuery {
    /// Earliest time of the refusal, milliseconds.
    start_time: Option<i64>,
    /// Latest time of the refusal, milliseconds.
    end_time: Option<i64>,
    /// Text that the client identifier contains.
    client_id: Option<String>,
    /// Text that the address contains.
    ip_address: Option<String>,
    /// Text that the user name contains.
    username: Option<String>,
    /// Text that the reason contains.
    reason: Option<String>,
    /// Comma-joined flags: whether a password was given.
    password_provided_list: Option<String>,
    /// Comma-joined flags: whether TLS was used.
    tls_used_list: Option<String>,
}

/// Whether a text contains what a filter asks for, whatever the case.
fn contains(text: Option<&str>, part: Option<&String>) -> bool {
    let Some(part) = part.filter(|part| !part.is_empty()) else {
        return true;
    };
    text.is_some_and(|text| text.to_lowercase().contains(&part.to_lowercase()))
}

/// Whether a time lies between two others, as far as they are given.
fn lies_in(time: i64, start: Option<i64>, end: Option<i64>) -> bool {
    start.is_none_or(|start| time >= start) && end.is_none_or(|end| time <= end)
}

/// Blocks clients: they may not connect from now on. Those that are connected stay.
#[utoipa::path(post, path = "/api/blockedClient", tag = "blocked-client", operation_id = "saveBlockedClient",
    request_body = BlockRequest, responses((status = 200, body = BlockedClientInfo)))]
async fn block(
    State(api): State<SharedApi>,
    JsonBody(request): JsonBody<BlockRequest>,
) -> ApiResult<Json<BlockedClientInfo>> {
    let own = match request.kind {
        BlockedClientType::ClientId => request.client_id,
        BlockedClientType::Username => request.username,
        BlockedClientType::IpAddress => request.ip_address,
        BlockedClientType::Regex => request.pattern,
    };
    let is_regex = request.kind == BlockedClientType::Regex;
    let access = &api.services.broker_access;
    let client = access
        .block(BlockedClient {
            kind: request.kind,
            value: own.or(request.value).unwrap_or_default(),
            target: request.regex_match_target.filter(|_| is_regex),
            expiration_time: request.expiration_time.unwrap_or_default(),
            description: request.description,
        })
        .await?;
    let status = access.status_of(&client);
    Ok(Json((client, status).into()))
}

/// Returns a page of the blocks.
#[utoipa::path(get, path = "/api/blockedClient", tag = "blocked-client", operation_id = "getBlockedClients",
    params(PageParams), responses((status = 200, body = PageData<BlockedClientInfo>)))]
async fn blocked(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<BlockedClientInfo>>> {
    let found = api
        .services
        .broker_access
        .blocked(&page.link()?, |_| true)
        .await?;
    Ok(Json(found.map(BlockedClientInfo::from)))
}

/// Returns a page of the blocks that the filters choose.
#[utoipa::path(get, path = "/api/blockedClient/v2", tag = "blocked-client", operation_id = "getBlockedClientsV2",
    params(PageParams, BlockedQuery), responses((status = 200, body = PageData<BlockedClientInfo>)))]
async fn blocked_filtered(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(query): QueryParams<BlockedQuery>,
) -> ApiResult<Json<PageData<BlockedClientInfo>>> {
    let types = named("typeList", query.type_list.as_deref(), BlockedClientType::named)?;
    let targets = named(
        "regexMatchTargetList",
        query.regex_match_target_list.as_deref(),
        RegexMatchTarget::named,
    )?;
    let chosen = |client: &BlockedClient| {
        (types.is_empty() || types.contains(&client.kind))
            && (targets.is_empty() || client.target.is_some_and(|target| targets.contains(&target)))
            && contains(Some(&client.value), query.value.as_ref())
            && lies_in(client.expiration_time, query.start_time, query.end_time)
    };
    let found = api.services.broker_access.blocked(&page.link()?, chosen).await?;
    Ok(Json(found.map(BlockedClientInfo::from)))
}

/// Returns how long a block that has expired is kept, minutes.
#[utoipa::path(get, path = "/api/blockedClient/ttl", tag = "blocked-client", operation_id = "getBlockedClientTtl",
    responses((status = 200, body = i64, content_type = "application/json")))]
async fn time_to_live() -> Json<i64> {
    Json(BLOCKED_KEPT_MINUTES)
}

/// Ends a block.
#[utoipa::path(delete, path = "/api/blockedClient", tag = "blocked-client", operation_id = "deleteBlockedClient",
    params(UnblockQuery), responses((status = 200)))]
async fn unblock(
    State(api): State<SharedApi>,
    QueryParams(query): QueryParams<UnblockQuery>,
) -> ApiResult<()> {
    let kind = named("type", query.kind.as_deref(), BlockedClientType::named)?;
    let target = named(
        "regexMatchTarget",
        query.regex_match_target.as_deref(),
        RegexMatchTarget::named,
    )?;
    let [kind] = kind[..] else {
        return Err(missing("type"));
    };
    let value = query.value.ok_or_else(|| missing("value"))?;
    let access = &api.services.broker_access;
    Ok(access.unblock(kind, &value, target.first().copied()).await?)
}

/// Returns a page of the clients that were refused last, or with `clientId` one of them.
#[utoipa::path(get, path = "/api/unauthorized/client", tag = "unauthorized-client",
    operation_id = "getUnauthorizedClients", params(PageParams, RefusedClient),
    responses((status = 200, body = inline(Either<PageData<UnauthorizedClient>, UnauthorizedClient>))))]
async fn unauthorized(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<RefusedClient>,
) -> ApiResult<Json<Either<PageData<UnauthorizedClient>, UnauthorizedClient>>> {
    let access = &api.services.broker_access;
    if let Some(id) = params.client_id {
        return Ok(Json(Either::Right(access.unauthorized_client(&id)?)));
    }
    let found = access.unauthorized(&page.link()?, |_| true)?;
    Ok(Json(Either::Left(found)))
}

/// Returns a page of the clients that were refused last, of those that the filters choose.
#[utoipa::path(get, path = "/api/unauthorized/client/v2", tag = "unauthorized-client",
    operation_id = "getUnauthorizedClientsV2", params(PageParams, UnauthorizedQuery),
    responses((status = 200, body = PageData<UnauthorizedClient>)))]
async fn unauthorized_filtered(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(query): QueryParams<UnauthorizedQuery>,
) -> ApiResult<Json<PageData<UnauthorizedClient>>> {
    let passwords = flags("passwordProvidedList", query.password_provided_list.as_deref())?;
    let tls = flags("tlsUsedList", query.tls_used_list.as_deref())?;
    let found = api.services.broker_access.unauthorized(&page.link()?, |client| {
        contains(Some(&client.client_id), query.client_id.as_ref())
            && contains(Some(&client.ip_address), query.ip_address.as_ref())
            && contains(client.username.as_deref(), query.username.as_ref())
            && contains(Some(&client.reason), query.reason.as_ref())
            && lies_in(client.ts, query.start_time, query.end_time)
            && (passwords.is_empty() || passwords.contains(&client.password_provided))
            && (tls.is_empty() || tls.contains(&client.tls_used))
    })?;
    Ok(Json(found))
}

/// Forgets a client that was refused, or all of them.
#[utoipa::path(delete, path = "/api/unauthorized/client", tag = "unauthorized-client",
    operation_id = "deleteUnauthorizedClients", params(RefusedClient), responses((status = 200)))]
async fn forget(
    State(api): State<SharedApi>,
    QueryParams(params): QueryParams<RefusedClient>,
) -> ApiResult<()> {
    let access = &api.services.broker_access;
    Ok(access.forget_unauthorized(params.client_id.as_deref())?)
}

/// Reads a comma-joined list of flags.
fn flags(parameter: &str, list: Option<&str>) -> Result<Vec<bool>, ApiError> {
    named(parameter, list, |text| parse_flag(text).ok().flatten())
}
