//! Password reset by a mailed link.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use fieldline_core::logging::LogGate;
use fieldline_model::entity::User;
use serde::Deserialize;
use utoipa_axum::routes;

use super::user::{base_url, trusted_url};
use crate::audit::AuditRule;
use crate::caller::PeerAddress;
use crate::endpoint::{ANYBODY, ApiRoutes};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, QueryParams};
use crate::mails;
use crate::state::{ApiState, SharedApi};

/// Limits the log lines, because anyone can request a link.
static FAILURES: LogGate = LogGate::new(2);

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ANYBODY.changes(routes!(request), AuditRule::Nothing))
        .add(ANYBODY.reads(routes!(check)))
        .add(ANYBODY.changes(routes!(reset), AuditRule::Nothing))
}

#[derive(Deserialize, utoipa::ToSchema)]
struct ResetPasswordEmailRequest {
    /// Address of the user.
    #[serde(default)]
    email: String,
}

/// Mails a link for setting a new password. The response is the same whether the user exists or not.
#[utoipa::path(post, path = "/api/noauth/resetPasswordByEmail", tag = "login",
    operation_id = "requestResetPasswordByEmail", request_body = ResetPasswordEmailRequest,
    responses((status = 200)))]
async fn request(
    State(api): State<SharedApi>,
    PeerAddress(peer): PeerAddress,
    JsonBody(request): JsonBody<ResetPasswordEmailRequest>,
) -> ApiResult<()> {
    api.login_guard.count_and_check(peer, "", api.clock.now_ms())?;
    // The request does not wait for it, so that the response time does not reveal whether the user exists.
    tokio::spawn(async move {
        if let Err(error) = mail_link(&api, request.email.trim()).await
            && let Some(suppressed) = FAILURES.open()
        {
            let error = error.message();
            tracing::warn!(error, suppressed, "no link to reset a password was mailed");
        }
    });
    Ok(())
}

async fn mail_link(api: &ApiState, email: &str) -> ApiResult<()> {
    let Some(user) = api.entities.users.by_email(email).await? else {
        return Ok(());
    };
    if api.mails.server().await?.is_none() {
        return Err(ApiError::bad_request("no mail server is configured"));
    }
    // Anyone can send this request with any `Host`, and the link goes to another person.
    let base = trusted_url(api).await?.ok_or_else(|| {
        ApiError::bad_request("neither api.public-url nor baseUrl of the general settings is set")
    })?;
    let Some(reset) = api.services.users.request_reset(user.id).await? else {
        return Ok(());
    };
    let link = format!("{base}/api/noauth/resetPassword?resetToken={}", reset.token);
    api.mails
        .send_later(mails::reset(&user.email, &link, reset.ttl_ms));
    Ok(())
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct PasswordResetParams {
    /// Secret part of the link.
    #[serde(default)]
    reset_token: String,
}

/// Redirects from the link to the page where the new password is chosen.
#[utoipa::path(get, path = "/api/noauth/resetPassword", tag = "login", operation_id = "checkResetToken",
    params(PasswordResetParams), responses((status = 303), (status = 409)))]
async fn check(
    State(api): State<SharedApi>,
    QueryParams(params): QueryParams<PasswordResetParams>,
) -> ApiResult<Response> {
    let token = &params.reset_token;
    Ok(match api.services.users.reset_state(token).await? {
        None => StatusCode::CONFLICT.into_response(),
        Some(false) => Redirect::to("/passwordResetLinkExpired").into_response(),
        // Known tokens consist of letters and digits, so they need no URL encoding.
        Some(true) => Redirect::to(&format!("/login/resetPassword?resetToken={token}")).into_response(),
    })
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ResetPasswordRequest {
    /// Secret part of the link.
    #[serde(default)]
    reset_token: String,
    /// The new password.
    #[serde(default)]
    password: String,
}

/// Sets a new password. Tokens issued so far are no longer valid.
#[utoipa::path(post, path = "/api/noauth/resetPassword", tag = "login", operation_id = "resetPassword",
    request_body = ResetPasswordRequest,
    responses((status = 200), (status = 400, body = crate::error::ErrorBody)))]
async fn reset(
    State(api): State<SharedApi>,
    PeerAddress(peer): PeerAddress,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ResetPasswordRequest>,
) -> ApiResult<()> {
    api.login_guard.count_and_check(peer, "", api.clock.now_ms())?;
    let services = &api.services;
    let user: User = services
        .users
        .reset(&request.reset_token, &request.password, &services.security)
        .await?;
    api.login_guard.forget(peer, &user.email);
    let id = user.id;
    api.entities.sign_ins.forget_sources(id).await?;
    let login = format!("{}/login", base_url(&api, &headers).await?);
    api.mails.send_later(mails::reset_notice(&user.email, &login));
    Ok(())
}
