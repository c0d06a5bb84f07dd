//! The caller's own sessions: each is opened by a log-in. Nobody sees or ends those of others.

use axum::Json;
use axum::extract::State;
use fieldline_core::ports::TokenFamily;
use serde::Serialize;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::audit::AuditRule;
use crate::caller::AuthenticatedCaller;
use crate::endpoint::{ApiRoutes, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathIds;
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(list)).open_to_public_sessions(false))
        .add(STC.changes(routes!(end), AuditRule::Logout))
        .add(STC.changes(routes!(end_others), AuditRule::Logout))
}

/// A session of a user.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct UserSession {
    /// Id of the session.
    session_id: Uuid,
    /// Time of the log-in, milliseconds; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_time: Option<i64>,
    /// Time of the last request with a token of the session, milliseconds. After a restart of the server it is the time
    /// at which the last token was issued, until the next request.
    last_used_time: i64,
    /// Address that the log-in came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_address: Option<String>,
    /// Browser or program, with its version; `Other` if it is not one of the usual ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    browser: Option<String>,
    /// Operating system; `Other` if it is not one of the usual ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    os: Option<String>,
    /// Whether it is the session of this request.
    current: bool,
}

impl UserSession {
    fn of(family: TokenFamily, current: Uuid) -> Self {
        Self {
            session_id: family.session,
            created_time: family.opened_at,
            last_used_time: family.used_at,
            client_address: family.origin.address,
            browser: family.origin.browser,
            os: family.origin.os,
            current: family.session == current,
        }
    }
}

/// Returns the caller's sessions that have not ended, last used first.
#[utoipa::path(get, path = "/api/user/sessions", tag = "user", operation_id = "getUserSessions",
    responses((status = 200, body = Vec<UserSession>)))]
async fn list(
    State(api): State<SharedApi>,
    caller: AuthenticatedCaller,
) -> ApiResult<Json<Vec<UserSession>>> {
    let own = api.sessions.own(caller.identity).await?;
    let current = caller.identity.session;
    let shown = own.into_iter().map(|family| UserSession::of(family, current));
    Ok(Json(shown.collect()))
}

/// Ends a session of the caller: none of its tokens is valid any more.
#[utoipa::path(delete, path = "/api/user/sessions/{sessionId}", tag = "user", operation_id = "endUserSession",
    params(("sessionId" = Uuid, Path)), responses((status = 200)))]
async fn end(
    State(api): State<SharedApi>,
    caller: AuthenticatedCaller,
    PathIds([session]): PathIds<1>,
) -> ApiResult<()> {
    let user = caller.identity.user;
    if api.sessions.end(&api.tokens, user, session).await? {
        return Ok(());
    }
    Err(ApiError::not_found(format!(
        "Session with id [{session}] is not found"
    )))
}

/// Ends all sessions of the caller but that of this request. With an API key, which has no session, all are ended.
#[utoipa::path(delete, path = "/api/user/sessions", tag = "user", operation_id = "endOtherUserSessions",
    responses((status = 200)))]
async fn end_others(State(api): State<SharedApi>, caller: AuthenticatedCaller) -> ApiResult<()> {
    api.sessions.end_others(&api.tokens, caller.identity).await
}
