//! The caller's own account: logout, passwords, activation.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use fieldline_model::entity::{PasswordPolicy, User};
use serde::Deserialize;
use utoipa_axum::routes;

use super::dashboard_home::forget_gone_dashboards;
use super::user::base_url;
use crate::audit::AuditRule;
use crate::auth::{TokenPair, TokenTimes, network};
use crate::caller::{ApiCall, AuthenticatedCaller, PeerAddress, RequestOrigin};
use crate::endpoint::{ANYBODY, ApiRoutes, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, QueryParams, flag};
use crate::mails;
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(
            STC.changes(routes!(logout), AuditRule::Logout)
                .open_to_public_sessions(true),
        )
        .add(STC.reads(routes!(current_user)))
        .add(STC.changes(routes!(change_password), AuditRule::Nothing))
        .add(ANYBODY.reads(routes!(password_policy)))
        .add(ANYBODY.reads(routes!(check_activation)))
        .add(ANYBODY.changes(routes!(activate), AuditRule::Nothing))
}

/// Logs out: ends the session and invalidates its tokens.
#[utoipa::path(post, path = "/api/auth/logout", tag = "auth", responses((status = 200)))]
async fn logout(State(api): State<SharedApi>, caller: AuthenticatedCaller) -> ApiResult<()> {
    api.sessions.log_out(&api.tokens, caller.identity).await
}

/// Returns the user who is logged in.
#[utoipa::path(get, path = "/api/auth/user", tag = "auth", responses((status = 200, body = User)))]
async fn current_user(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<User>> {
    let user = api.entities.users.get(caller.tenant, caller.user).await?;
    let mut user = user.ok_or_else(ApiError::unauthenticated)?;
    forget_gone_dashboards(&api, user.tenant_id, &mut user.additional_info).await?;
    Ok(Json(user))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangePasswordRequest {
    /// The current password.
    #[serde(default)]
    current_password: String,
    /// The new password.
    #[serde(default)]
    new_password: String,
}

/// Changes the password. Tokens issued so far are no longer valid.
#[utoipa::path(post, path = "/api/auth/changePassword", tag = "auth", request_body = ChangePasswordRequest,
    responses((status = 200, body = TokenPair), (status = 400, body = crate::error::ErrorBody)))]
async fn change_password(
    State(api): State<SharedApi>,
    caller: AuthenticatedCaller,
    PeerAddress(peer): PeerAddress,
    RequestOrigin(origin): RequestOrigin,
    JsonBody(request): JsonBody<ChangePasswordRequest>,
) -> ApiResult<Json<TokenPair>> {
    let principal = caller.principal;
    let found = api.entities.users.get(principal.tenant, principal.user).await?;
    let user = found.ok_or_else(ApiError::unauthenticated)?;
    let now = api.clock.now_ms();
    // A stolen token must not allow password guessing here either.
    api.login_guard.count_and_check(peer, &user.email, now)?;
    let credentials = api.services.users.credentials(principal.user).await?;
    let hash = credentials.password_hash.as_deref();
    let right = api
        .passwords
        .verify_from(peer.map(network), &request.current_password, hash)
        .await?;
    if !right {
        api.login_guard.record_failure(peer, &user.email, now);
        return Err(ApiError::bad_request("Current password doesn't match!"));
    }
    api.login_guard.record_success(peer, &user.email, now)?;
    api.services
        .security
        .check_new(&request.new_password, &credentials)
        .await?;
    if request.new_password == request.current_password {
        return Err(ApiError::bad_request(
            "New password should be different from existing!",
        ));
    }
    let users = &api.services.users;
    let credentials = users
        .set_password(&user, credentials, &request.new_password)
        .await?;
    let times = TokenTimes {
        now_ms: now,
        valid_from_ms: credentials.tokens_valid_from,
    };
    let session = Some(caller.identity.session);
    let pair = api
        .sessions
        .open(&api.tokens, &user, session, times, origin)
        .await?;
    Ok(Json(pair))
}

/// Returns the password policy.
#[utoipa::path(get, path = "/api/noauth/userPasswordPolicy", tag = "login",
    responses((status = 200, body = PasswordPolicy)))]
async fn password_policy(State(api): State<SharedApi>) -> ApiResult<Json<PasswordPolicy>> {
    Ok(Json(api.services.security.settings().await?.password_policy))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ActivateParams {
    /// Secret part of the activation link.
    #[serde(default)]
    activate_token: String,
}

/// Redirects from an activation link to the page where the first password is chosen.
#[utoipa::path(get, path = "/api/noauth/activate", tag = "login", params(ActivateParams),
    responses((status = 303), (status = 409)))]
async fn check_activation(
    State(api): State<SharedApi>,
    QueryParams(params): QueryParams<ActivateParams>,
) -> ApiResult<Response> {
    let token = &params.activate_token;
    Ok(match api.services.users.activation_state(token).await? {
        None => StatusCode::CONFLICT.into_response(),
        Some(false) => Redirect::to("/activationLinkExpired").into_response(),
        // Known tokens consist of letters and digits, so they need no URL encoding.
        Some(true) => Redirect::to(&format!("/login/createPassword?activateToken={token}")).into_response(),
    })
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActivateRequest {
    /// Secret part of the activation link.
    #[serde(default)]
    activate_token: String,
    /// The first password.
    #[serde(default)]
    password: String,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ActivationMailParams {
    /// Whether the user is notified by mail; `true` by default.
    #[serde(default, deserialize_with = "flag")]
    send_activation_mail: Option<bool>,
}

/// Activates a user with a first password, and logs in.
#[utoipa::path(post, path = "/api/noauth/activate", tag = "login", params(ActivationMailParams),
    request_body = ActivateRequest,
    responses((status = 200, body = TokenPair), (status = 400, body = crate::error::ErrorBody)))]
async fn activate(
    State(api): State<SharedApi>,
    PeerAddress(peer): PeerAddress,
    RequestOrigin(origin): RequestOrigin,
    headers: HeaderMap,
    QueryParams(params): QueryParams<ActivationMailParams>,
    JsonBody(request): JsonBody<ActivateRequest>,
) -> ApiResult<Json<TokenPair>> {
    let now = api.clock.now_ms();
    api.login_guard
        .count_and_check(peer, &request.activate_token, now)?;
    let (user, credentials) = api
        .services
        .users
        .activate(&request.activate_token, &request.password, &api.services.security)
        .await?;
    if params.send_activation_mail != Some(false) {
        let login = format!("{}/login", base_url(&api, &headers).await?);
        api.mails
            .send_later(mails::activation_notice(&user.email, &login));
    }
    let times = TokenTimes {
        now_ms: now,
        valid_from_ms: credentials.tokens_valid_from,
    };
    let pair = api.sessions.open(&api.tokens, &user, None, times, origin).await?;
    Ok(Json(pair))
}
