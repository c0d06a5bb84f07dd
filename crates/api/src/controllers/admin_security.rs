//! Security settings: password policy, lockout, and tokens.

use axum::Json;
use axum::extract::State;
use fieldline_model::entity::{AdminSettings, SecuritySettings};
use fieldline_model::{AdminSettingsId, TenantId, new_uuid};
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::auth::{JWT, TokenPair, TokenSettings, TokenTimes};
use crate::caller::{AuthenticatedCaller, RequestOrigin};
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::JsonBody;
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(security)))
        .add(S.changes(routes!(save_security), AuditRule::Nothing))
        .add(S.reads(routes!(jwt)))
        .add(S.changes(routes!(save_jwt), AuditRule::Nothing))
}

/// Returns the password policy and the lockout settings.
#[utoipa::path(get, path = "/api/admin/securitySettings", tag = "admin", operation_id = "getSecuritySettings",
    responses((status = 200, body = SecuritySettings)))]
async fn security(State(api): State<SharedApi>) -> ApiResult<Json<SecuritySettings>> {
    Ok(Json(api.services.security.settings().await?))
}

/// Saves the password policy and the lockout settings. Current passwords stay valid unless the policy says otherwise.
#[utoipa::path(post, path = "/api/admin/securitySettings", tag = "admin", operation_id = "saveSecuritySettings",
    request_body = SecuritySettings, responses((status = 200, body = SecuritySettings)))]
async fn save_security(
    State(api): State<SharedApi>,
    JsonBody(settings): JsonBody<SecuritySettings>,
) -> ApiResult<Json<SecuritySettings>> {
    Ok(Json(api.services.security.save(settings).await?))
}

/// Returns lifetimes and issuer of tokens. The signing key is not returned.
#[utoipa::path(get, path = "/api/admin/jwtSettings", tag = "admin", operation_id = "getJwtSettings",
    responses((status = 200, body = TokenSettings)))]
async fn jwt(State(api): State<SharedApi>) -> Json<TokenSettings> {
    Json(api.tokens.settings())
}

/// Saves the token settings. A new key invalidates all tokens issued so far; if no key is given, the current one stays.
/// Returns a new pair for the caller.
#[utoipa::path(post, path = "/api/admin/jwtSettings", tag = "admin", operation_id = "saveJwtSettings",
    request_body = TokenSettings, responses((status = 200, body = TokenPair)))]
async fn save_jwt(
    State(api): State<SharedApi>,
    caller: AuthenticatedCaller,
    RequestOrigin(origin): RequestOrigin,
    JsonBody(settings): JsonBody<TokenSettings>,
) -> ApiResult<Json<TokenPair>> {
    let prepared = api.tokens.prepare(settings)?;
    let json_value = serde_json::to_value(prepared.settings.with_key())
        .map_err(|_| ApiError::bad_request("The settings cannot be stored"))?;
    let stored = AdminSettings {
        id: AdminSettingsId(new_uuid()),
        created_time: api.clock.now_ms(),
        tenant_id: TenantId::NULL,
        key: JWT.to_owned(),
        json_value,
    };
    api.entities.settings.save_admin(stored).await?;
    api.tokens.replace(prepared.signer);
    let known = api.sessions.authenticate(caller.identity).await?;
    let times = TokenTimes {
        now_ms: api.clock.now_ms(),
        valid_from_ms: known.tokens_valid_from,
    };
    let session = Some(caller.identity.session);
    let pair = api
        .sessions
        .open(&api.tokens, &known.user, session, times, origin)
        .await?;
    Ok(Json(pair))
}
