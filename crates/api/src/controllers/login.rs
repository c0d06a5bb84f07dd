//! Login and token refresh.

use std::net::IpAddr;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{LoginAttemptResult, SignInOrigin, StoreResult};
use fieldline_entities::services::{ServiceErrorKind, check_password, is_expired};
use fieldline_model::entity::{ActionType, Authority, SecuritySettings, User, UserCredentials};
use fieldline_model::{CustomerId, UserId};
use serde::Deserialize;
use tokio::time::Instant;
use tracing::warn;
use utoipa_axum::routes;

use crate::audit;
use crate::audit::AuditRule;
use crate::auth::{
    MAX_PROVEN_ADDRESSES, RefreshOutcome, TokenPair, TokenTimes, network, outdated, source_of,
};
use crate::caller::{PeerAddress, RequestOrigin};
use crate::endpoint::{ANYBODY, ApiRoutes};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::extract::{JsonBody, parse_uuid};
use crate::mails;
use crate::state::{ApiState, SharedApi};

static NOTE_GATE: LogGate = LogGate::new(2);

/// Longest login name, in bytes; wrong ones are remembered and must not take much memory.
const MAX_LOGIN: usize = 1_024;
/// Responses to failed logins are delayed to a multiple of this time, so that it does not reveal whether the user
/// exists.
const REPLY_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ANYBODY.changes(routes!(login), AuditRule::Nothing))
        .add(ANYBODY.changes(routes!(login_public), AuditRule::Nothing))
        .add(ANYBODY.changes(routes!(refresh), AuditRule::Nothing))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(default)]
#[derive(Default)]
struct LoginRequest {
    /// E-mail address of the user.
    username: String,
    /// Password.
    password: String,
}

fn wrong() -> ApiError {
    ApiError::new(ErrorCode::Authentication, "Invalid username or password")
}

/// Logs in a user.
#[utoipa::path(post, path = "/api/auth/login", tag = "login", request_body = LoginRequest,
    responses((status = 200, body = TokenPair), (status = 401, body = crate::error::ErrorBody)))]
async fn login(
    State(api): State<SharedApi>,
    PeerAddress(peer): PeerAddress,
    RequestOrigin(origin): RequestOrigin,
    headers: HeaderMap,
    JsonBody(request): JsonBody<LoginRequest>,
) -> ApiResult<Json<TokenPair>> {
    let begun = Instant::now();
    let answer = log_in(&api, peer, origin, &headers, &request).await;
    if answer.is_err() {
        let beats = begun.elapsed().as_millis() / REPLY_INTERVAL.as_millis() + 1;
        let whole = REPLY_INTERVAL * u32::try_from(beats).unwrap_or(u32::MAX);
        tokio::time::sleep_until(begun + whole).await;
    }
    answer.map(Json)
}

async fn log_in(
    api: &SharedApi,
    peer: Option<IpAddr>,
    origin: SignInOrigin,
    headers: &HeaderMap,
    request: &LoginRequest,
) -> ApiResult<TokenPair> {
    let (login, now) = (request.username.trim(), api.clock.now_ms());
    if login.len() > MAX_LOGIN {
        api.login_guard.count_and_check(peer, "", now)?;
        return Err(wrong());
    }
    api.login_guard.count(peer, now)?;
    let user = api.entities.users.by_email(login).await?;
    if let Some(id) = user.as_ref().map(|user| user.id) {
        learn_sources(api, id, login).await?;
    }
    api.login_guard.check(peer, login, now)?;
    let credentials = match user.as_ref().map(|user| user.id) {
        Some(id) => api.entities.users.credentials(id).await?,
        None => None,
    };
    // Verified even if there is no such user, so that the response time does not reveal it.
    let hash = credentials
        .as_ref()
        .and_then(|known| known.password_hash.as_deref());
    let from = peer.map(network);
    let right = api.passwords.verify_from(from, &request.password, hash).await?;
    let (Some(user), Some(credentials)) = (user, credentials) else {
        api.login_guard.record_failure(peer, login, now);
        return Err(wrong());
    };
    let settings = api.services.security.settings().await?;
    if !right {
        api.login_guard.record_failure(peer, login, now);
        let failed = after_wrong_password(api, peer, &user, &credentials, &settings).await?;
        audit::record_login_action(api, &user, failed.action, headers, peer, Some(failed.failure)).await;
        return Err(wrong());
    }
    let admitted = match api.login_guard.record_success(peer, login, now) {
        Ok(()) => check_sign_in(api, credentials.clone(), &settings, &request.password).await,
        Err(locked) => Err(locked),
    };
    let failure = admitted.as_ref().err().map(ApiError::message);
    audit::record_login_action(api, &user, ActionType::Login, headers, peer, failure).await;
    admitted?;
    if let Some(source) = source_of(peer) {
        let sign_ins = &api.entities.sign_ins;
        let noted = sign_ins
            .note_source(credentials.user_id, &source, now, MAX_PROVEN_ADDRESSES)
            .await;
        if let Err(error) = noted
            && let Some(suppressed) = NOTE_GATE.open()
        {
            warn!(user = %credentials.user_id, %error, suppressed, "cannot note from where a user has logged in");
        }
    }
    let times = TokenTimes {
        now_ms: now,
        valid_from_ms: credentials.tokens_valid_from,
    };
    api.sessions.open(&api.tokens, &user, None, times, origin).await
}

/// Loads the addresses of a user's earlier logins into the login guard, before it decides who may try.
async fn learn_sources(api: &ApiState, user: UserId, login: &str) -> StoreResult<()> {
    if !api.login_guard.knows(login) {
        let sources = api.entities.sign_ins.sources(user).await?;
        api.login_guard.learn(login, &sources);
    }
    Ok(())
}

/// The audit log entry of a failed login.
struct FailedLogin {
    action: ActionType,
    failure: &'static str,
}

impl FailedLogin {
    const WRONG: Self = Self {
        action: ActionType::Login,
        failure: "Invalid username or password",
    };
}

/// Counts a wrong password and returns its audit log entry. Too many in a row disable the user, if that is configured.
/// System administrators are never disabled, because nobody could enable them again: they are only locked out for a
/// while, like everyone. Wrong passwords from unknown addresses disable nobody either, so that strangers cannot lock a
/// user out. The response is the same as to any wrong password, so that it does not reveal whether the user exists.
async fn after_wrong_password(
    api: &ApiState,
    peer: Option<IpAddr>,
    user: &User,
    credentials: &UserCredentials,
    settings: &SecuritySettings,
) -> ApiResult<FailedLogin> {
    if api.login_guard.is_stranger(peer, &user.email) {
        return Ok(FailedLogin::WRONG);
    }
    let failures = record_login(api, credentials, LoginAttemptResult::Wrong).await;
    let most = settings.max_failed_login_attempts.unwrap_or(0);
    let may_lock = most > 0 && credentials.enabled && user.authority != Authority::SysAdmin;
    if !may_lock || failures <= most {
        return Ok(FailedLogin::WRONG);
    }
    match api.services.users.set_enabled(user, false).await {
        // Another attempt has just disabled the user.
        Err(error) if error.kind() == ServiceErrorKind::VersionConflict => {
            return Ok(FailedLogin::WRONG);
        }
        done => done?,
    }
    let told = settings.user_lockout_notification_email.as_deref();
    if let Some(to) = told.filter(|to| !to.trim().is_empty()) {
        api.mails.send_later(mails::lockout_notice(to, &user.email, most));
    }
    Ok(FailedLogin {
        action: ActionType::Lockout,
        failure: "User account is locked due to security policy",
    })
}

/// Stores the result of a login attempt; returns the number of wrong passwords in a row. If the store cannot write, for
/// example on a full disk, the login goes on: the user who frees space has to log in first.
async fn record_login(api: &ApiState, credentials: &UserCredentials, login: LoginAttemptResult) -> u32 {
    let noted = api.entities.users.note_login(credentials.user_id, login).await;
    noted.unwrap_or_else(|error| {
        if let Some(suppressed) = NOTE_GATE.open() {
            warn!(user = %credentials.user_id, %error, suppressed, "cannot note a log-in");
        }
        0
    })
}

/// Checks whether a user with the right password may log in.
async fn check_sign_in(
    api: &ApiState,
    credentials: UserCredentials,
    settings: &SecuritySettings,
    password: &str,
) -> ApiResult<()> {
    if !credentials.enabled {
        return Err(ApiError::new(
            ErrorCode::Authentication,
            "User account is not active",
        ));
    }
    let policy = &settings.password_policy;
    if policy.force_user_to_reset_password_if_not_valid == Some(true)
        && check_password(password, policy).is_err()
    {
        return Err(ApiError::new(
            ErrorCode::PasswordViolation,
            "The entered password violates our policies. If this is your real password, please reset it.",
        ));
    }
    let now = api.clock.now_ms();
    record_login(api, &credentials, LoginAttemptResult::Right(now)).await;
    if is_expired(policy, credentials.password_time, now) {
        let token = api.services.users.expired_reset(credentials).await?;
        return Err(token.map_or_else(wrong, ApiError::credentials_expired));
    }
    Ok(())
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct PublicLoginRequest {
    /// Id of the public customer.
    #[serde(default)]
    public_id: String,
}

/// Opens a session with the rights of a public customer, without a password.
#[utoipa::path(post, path = "/api/auth/login/public", tag = "login", request_body = PublicLoginRequest,
    responses((status = 200, body = TokenPair), (status = 401, body = crate::error::ErrorBody)))]
async fn login_public(
    State(api): State<SharedApi>,
    PeerAddress(peer): PeerAddress,
    JsonBody(request): JsonBody<PublicLoginRequest>,
) -> ApiResult<Json<TokenPair>> {
    let now = api.clock.now_ms();
    api.login_guard.count_and_check(peer, "", now)?;
    let found = match parse_uuid(&request.public_id) {
        Ok(id) => api.sessions.public(CustomerId(id)).await?,
        Err(_) => None,
    };
    let known = found.ok_or_else(wrong)?;
    let times = TokenTimes {
        now_ms: now,
        valid_from_ms: 0,
    };
    // Nobody's sessions: they are not listed.
    let origin = SignInOrigin::default();
    let pair = api
        .sessions
        .open(&api.tokens, &known.user, None, times, origin)
        .await?;
    Ok(Json(pair))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RefreshRequest {
    /// Refresh token of the latest pair.
    #[serde(default)]
    refresh_token: String,
}

/// Exchanges a refresh token for a new pair. A refresh token can be used once; for 30 seconds after that it still gets
/// its replacement. Using it later ends the session.
#[utoipa::path(post, path = "/api/auth/token", tag = "login", request_body = RefreshRequest,
    responses((status = 200, body = TokenPair), (status = 401, body = crate::error::ErrorBody)))]
async fn refresh(
    State(api): State<SharedApi>,
    PeerAddress(peer): PeerAddress,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RefreshRequest>,
) -> ApiResult<Json<TokenPair>> {
    if request.refresh_token.is_empty() {
        return Err(ApiError::unauthenticated());
    }
    let shown = api
        .tokens
        .read_refresh(&request.refresh_token, api.clock.now_ms())?;
    match api.sessions.refresh(&api.tokens, shown).await? {
        RefreshOutcome::Bought(pair) => Ok(Json(pair)),
        RefreshOutcome::Reused(known) => {
            let failure = "A refresh token was used again: its session has ended";
            audit::record_login_action(
                &api,
                &known.user,
                ActionType::Logout,
                &headers,
                peer,
                Some(failure),
            )
            .await;
            Err(outdated())
        }
    }
}
