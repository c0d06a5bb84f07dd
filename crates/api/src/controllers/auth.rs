//! Logging in and out, tokens, passwords, activation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use fieldline_core::services::check_password;
use fieldline_model::entity::User;
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;
use uuid::Uuid;

use crate::auth::TokenPair;
use crate::caller::{Authenticated, Caller, PeerAddress};
use crate::endpoint::{Access, Routes, STC};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::extract::{Body, Query};
use crate::state::Api;

/// Longest login name, in bytes; wrong ones are remembered, and must not take much room.
const MAX_LOGIN: usize = 1_024;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(Access::Public, routes!(login))
        .add(Access::Public, routes!(refresh))
        .add(STC, routes!(logout))
        .add(STC, routes!(current_user))
        .add(STC, routes!(change_password))
        .add(Access::Public, routes!(password_policy))
        .add(Access::Public, routes!(check_activation))
        .add(Access::Public, routes!(activate))
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

/// Logs a user in.
#[utoipa::path(post, path = "/api/auth/login", tag = "login", request_body = LoginRequest,
    responses((status = 200, body = TokenPair), (status = 401, body = crate::error::ErrorBody)))]
async fn login(
    State(api): State<Api>,
    PeerAddress(peer): PeerAddress,
    Body(request): Body<LoginRequest>,
) -> ApiResult<Json<TokenPair>> {
    let (login, now) = (request.username.trim(), api.clock.now_ms());
    let wrong = || ApiError::new(ErrorCode::Authentication, "Invalid username or password");
    if login.len() > MAX_LOGIN {
        api.logins.attempt(peer, "", now)?;
        return Err(wrong());
    }
    api.logins.attempt(peer, login, now)?;
    let user = api.entities.users.by_email(login).await?;
    let credentials = match user.as_ref().and_then(|user| user.id) {
        Some(id) => api.entities.users.credentials(id).await?,
        None => None,
    };
    // Verified even where there is no user, so that the time taken does not tell.
    let hash = credentials
        .as_ref()
        .and_then(|known| known.password_hash.as_deref());
    let right = api.passwords.verify(&request.password, hash).await?;
    let (Some(user), Some(credentials), true) = (user, credentials, right) else {
        api.logins.failed(login, now);
        return Err(wrong());
    };
    api.logins.succeeded(login);
    if !credentials.enabled {
        return Err(ApiError::new(
            ErrorCode::Authentication,
            "User account is not active",
        ));
    }
    let session = Uuid::new_v4();
    let pair = api
        .tokens
        .issue(&user, session, now, credentials.tokens_valid_from)?;
    Ok(Json(pair))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RefreshRequest {
    /// Refresh token of the last pair.
    #[serde(default)]
    refresh_token: String,
}

/// Buys a new pair of tokens.
#[utoipa::path(post, path = "/api/auth/token", tag = "login", request_body = RefreshRequest,
    responses((status = 200, body = TokenPair), (status = 401, body = crate::error::ErrorBody)))]
async fn refresh(State(api): State<Api>, Body(request): Body<RefreshRequest>) -> ApiResult<Json<TokenPair>> {
    if request.refresh_token.is_empty() {
        return Err(ApiError::unauthenticated());
    }
    let now = api.clock.now_ms();
    let ticket = api.tokens.read_refresh(&request.refresh_token, now)?;
    let known = api.sessions.redeem(ticket).await?;
    let pair = api
        .tokens
        .issue(&known.user, ticket.session, now, known.tokens_valid_from)?;
    Ok(Json(pair))
}

/// Ends the session: its tokens no longer count.
#[utoipa::path(post, path = "/api/auth/logout", tag = "auth", responses((status = 200)))]
async fn logout(State(api): State<Api>, caller: Authenticated) {
    api.sessions.log_out(caller.ticket);
}

/// The user who is logged in.
#[utoipa::path(get, path = "/api/auth/user", tag = "auth", responses((status = 200, body = User)))]
async fn current_user(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<User>> {
    let user = api.entities.users.get(caller.tenant, caller.user).await?;
    user.map(Json).ok_or_else(ApiError::unauthenticated)
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangePasswordRequest {
    /// The password so far.
    #[serde(default)]
    current_password: String,
    /// The password from now on.
    #[serde(default)]
    new_password: String,
}

/// Changes the password. Tokens issued so far no longer count.
#[utoipa::path(post, path = "/api/auth/changePassword", tag = "auth", request_body = ChangePasswordRequest,
    responses((status = 200, body = TokenPair), (status = 400, body = crate::error::ErrorBody)))]
async fn change_password(
    State(api): State<Api>,
    caller: Authenticated,
    PeerAddress(peer): PeerAddress,
    Body(request): Body<ChangePasswordRequest>,
) -> ApiResult<Json<TokenPair>> {
    let principal = caller.principal;
    let found = api.entities.users.get(principal.tenant, principal.user).await?;
    let user = found.ok_or_else(ApiError::unauthenticated)?;
    let now = api.clock.now_ms();
    // Somebody who has got hold of a token must not guess the password here either.
    api.logins.attempt(peer, &user.email, now)?;
    let credentials = api.services.users.credentials(principal.user).await?;
    let hash = credentials.password_hash.as_deref();
    if !api.passwords.verify(&request.current_password, hash).await? {
        api.logins.failed(&user.email, now);
        return Err(ApiError::bad_request("Current password doesn't match!"));
    }
    api.logins.succeeded(&user.email);
    check_password(&request.new_password, api.options.min_password_length)?;
    if request.new_password == request.current_password {
        return Err(ApiError::bad_request(
            "New password should be different from existing!",
        ));
    }
    let users = &api.services.users;
    let credentials = users
        .set_password(&user, credentials, &request.new_password)
        .await?;
    let pair = api
        .tokens
        .issue(&user, caller.ticket.session, now, credentials.tokens_valid_from)?;
    Ok(Json(pair))
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserPasswordPolicy)]
struct PasswordPolicy {
    minimum_length: usize,
    maximum_length: Option<u32>,
    minimum_uppercase_letters: Option<u32>,
    minimum_lowercase_letters: Option<u32>,
    minimum_digits: Option<u32>,
    minimum_special_characters: Option<u32>,
    allow_whitespaces: bool,
    force_user_to_reset_password_if_not_valid: bool,
    password_expiration_period_days: Option<u32>,
    password_reuse_frequency_days: Option<u32>,
}

/// What a password must be like.
#[utoipa::path(get, path = "/api/noauth/userPasswordPolicy", tag = "login",
    responses((status = 200, body = PasswordPolicy)))]
async fn password_policy(State(api): State<Api>) -> Json<PasswordPolicy> {
    Json(PasswordPolicy {
        minimum_length: api.options.min_password_length,
        maximum_length: None,
        minimum_uppercase_letters: None,
        minimum_lowercase_letters: None,
        minimum_digits: None,
        minimum_special_characters: None,
        allow_whitespaces: true,
        force_user_to_reset_password_if_not_valid: false,
        password_expiration_period_days: None,
        password_reuse_frequency_days: None,
    })
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ActivateParams {
    /// Secret part of the activation link.
    #[serde(default)]
    activate_token: String,
}

/// Follows an activation link to the page where the first password is chosen.
#[utoipa::path(get, path = "/api/noauth/activate", tag = "login", params(ActivateParams),
    responses((status = 303), (status = 409)))]
async fn check_activation(
    State(api): State<Api>,
    Query(params): Query<ActivateParams>,
) -> ApiResult<Response> {
    let token = &params.activate_token;
    Ok(match api.services.users.activation_state(token).await? {
        None => StatusCode::CONFLICT.into_response(),
        Some(false) => Redirect::to("/activationLinkExpired").into_response(),
        // Known tokens are letters and digits, so they go into the address as they are.
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

/// Activates a user with a first password, and logs in.
#[utoipa::path(post, path = "/api/noauth/activate", tag = "login", request_body = ActivateRequest,
    responses((status = 200, body = TokenPair), (status = 400, body = crate::error::ErrorBody)))]
async fn activate(
    State(api): State<Api>,
    PeerAddress(peer): PeerAddress,
    Body(request): Body<ActivateRequest>,
) -> ApiResult<Json<TokenPair>> {
    let now = api.clock.now_ms();
    api.logins.attempt(peer, &request.activate_token, now)?;
    let (user, credentials) = api
        .services
        .users
        .activate(
            &request.activate_token,
            &request.password,
            api.options.min_password_length,
        )
        .await?;
    let pair = api
        .tokens
        .issue(&user, Uuid::new_v4(), now, credentials.tokens_valid_from)?;
    Ok(Json(pair))
}
