//! Users.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use fieldline_core::any_entity::{AccessResource, AnyEntity};
use fieldline_entities::access::{AccessOperation, Principal, allows};
use fieldline_model::entity::{AdminSettings, Authority, EntityDraft, User};
use fieldline_model::{EntityId, EntityType, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa_axum::routes;
use uuid::Uuid;

use super::dashboard_home::forget_gone_dashboards;
use crate::audit::AuditRule;
use crate::auth::{TokenPair, TokenTimes};
use crate::caller::{ApiCall, RequestOrigin};
use crate::endpoint::{ApiRoutes, ST, STC};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::extract::{JsonBody, PathIds, QueryParams, flag, missing, parse_flag};
use crate::mails;
use crate::state::{ApiState, SharedApi};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(get)))
        .add(STC.changes(routes!(save), AuditRule::Save(EntityType::User)))
        .add(ST.changes(routes!(delete), AuditRule::Delete(EntityType::User)))
        .add(ST.changes(routes!(send_activation_mail), AuditRule::Nothing))
        .add(ST.reads(routes!(activation_link)))
        .add(ST.reads(routes!(activation_link_info)))
        .add(ST.reads(routes!(token_access_enabled)))
        .add(ST.reads(routes!(token)))
        .add(ST.changes(routes!(set_enabled), AuditRule::SetEnabled))
}

/// Returns the user with this id.
#[utoipa::path(get, path = "/api/user/{userId}", tag = "user", operation_id = "getUserById",
    params(("userId" = Uuid, Path)), responses((status = 200, body = User)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<User>> {
    let mut user = api.load::<User>(&caller, id, AccessOperation::Read).await?;
    forget_gone_dashboards(&api, user.tenant_id, &mut user.additional_info).await?;
    let credentials = api.services.users.credentials(UserId(id)).await?;
    let info = user.additional_info.get_or_insert_with(|| json!({}));
    if let Some(fields) = info.as_object_mut() {
        let last = Some(credentials.last_login).filter(|last| *last > 0);
        let shown: [Value; 4] = [
            credentials.enabled.into(),
            credentials.activate_token.is_none().into(),
            last.into(),
            credentials.failed_logins.into(),
        ];
        fields.extend(SHOWN.map(str::to_owned).into_iter().zip(shown));
    }
    Ok(Json(user))
}

/// Fields that are returned with a user, but not stored in it.
const SHOWN: [&str; 4] = [
    "userCredentialsEnabled",
    "userActivated",
    "lastLoginTs",
    "failedLoginAttempts",
];

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct UserMailParams {
    /// Whether to mail a new user the activation link; `true` by default. Without a mail server no mail is sent.
    #[serde(default, deserialize_with = "flag")]
    send_activation_mail: Option<bool>,
}

/// Mails a user the activation link.
async fn mail_activation(api: &ApiState, user: &User, server: &Value, headers: &HeaderMap) -> ApiResult<()> {
    let link = link_of(api, user.id, headers).await?;
    let mail = mails::activation(&user.email, &link.value, link.ttl_ms);
    api.mails.send(server, &mail).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct EmailParams {
    /// E-mail address of the user.
    email: Option<String>,
}

/// Mails a user the activation link again.
#[utoipa::path(post, path = "/api/user/sendActivationMail", tag = "user", operation_id = "sendActivationEmail",
    params(EmailParams), responses((status = 200)))]
async fn send_activation_mail(
    ApiCall { api, caller }: ApiCall,
    headers: HeaderMap,
    QueryParams(params): QueryParams<EmailParams>,
) -> ApiResult<()> {
    let email = params.email.ok_or_else(|| missing("email"))?;
    let found = api.entities.users.by_email(&email).await?;
    let unknown = ApiError::item_not_found;
    let user = found.ok_or_else(unknown)?;
    // The caller must not learn whether other tenants have such a user.
    let allowed = allows(
        &caller,
        AccessOperation::Read,
        &AnyEntity::User(user.clone()).resource(),
    );
    if !allowed {
        return Err(unknown());
    }
    let server = api.mails.server().await?;
    let server = server.ok_or_else(|| ApiError::bad_request("No mail server is set up to send it with"))?;
    mail_activation(&api, &user, &server, &headers).await
}

/// Creates a user, or updates it if it has an id.
#[utoipa::path(post, path = "/api/user", tag = "user", operation_id = "saveUser", request_body = User,
    params(UserMailParams), responses((status = 200, body = User)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    headers: HeaderMap,
    QueryParams(params): QueryParams<UserMailParams>,
    JsonBody(mut user): JsonBody<EntityDraft<User>>,
) -> ApiResult<Json<User>> {
    if caller.authority != Authority::SysAdmin {
        user.tenant_id = caller.tenant;
    }
    match user.id {
        Some(id) => {
            api.load::<User>(&caller, id.0, AccessOperation::Write).await?;
        }
        None => {
            let resource = AccessResource {
                entity: EntityId::new(EntityType::User, fieldline_model::NULL_UUID),
                tenant: user.tenant_id,
                customer: user.customer_id,
                user_authority: Some(user.authority),
            };
            if !allows(&caller, AccessOperation::Create, &resource) {
                return Err(ApiError::denied());
            }
        }
    }
    if let Some(fields) = user.additional_info.as_mut().and_then(Value::as_object_mut) {
        fields.retain(|name, _| !SHOWN.contains(&name.as_str()));
    }
    let created = user.id.is_none();
    let saved = api.services.users.save(user).await?;
    if created
        && params.send_activation_mail != Some(false)
        && let Some(server) = api.mails.server().await?
    {
        let sent = mail_activation(&api, &saved, &server, &headers).await;
        if let Err(error) = sent {
            // Without the mail nobody could activate the account, and the e-mail address would be taken.
            let id = saved.id;
            api.entities.users.delete(saved.tenant_id, id).await?;
            return Err(error);
        }
    }
    let entity = AnyEntity::User(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a user.
#[utoipa::path(delete, path = "/api/user/{userId}", tag = "user", operation_id = "deleteUser",
    params(("userId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let user = api.load::<User>(&caller, id, AccessOperation::Delete).await?;
    if user.authority == Authority::SysAdmin && user.id == caller.user {
        return Err(ApiError::new(
            ErrorCode::PermissionDenied,
            "Sysadmin is not allowed to delete himself",
        ));
    }
    api.services.users.delete(&user).await?;
    let entity = AnyEntity::User(user);
    api.services.actions.push_deleted(&caller, &entity).await;
    Ok(())
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserActivationLink)]
struct ActivationLink {
    /// The link.
    value: String,
    /// Remaining validity, milliseconds.
    ttl_ms: i64,
}

async fn link(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    headers: &HeaderMap,
) -> ApiResult<ActivationLink> {
    api.load::<User>(caller, id, AccessOperation::Read).await?;
    link_of(api, UserId(id), headers).await
}

async fn link_of(api: &ApiState, id: UserId, headers: &HeaderMap) -> ApiResult<ActivationLink> {
    let activation = api.services.users.activation(id).await?;
    let base = base_url(api, headers).await?;
    Ok(ActivationLink {
        value: format!("{base}/api/noauth/activate?activateToken={}", activation.token),
        ttl_ms: activation.ttl_ms,
    })
}

/// Returns the public address of the platform, if it is configured.
pub(super) async fn trusted_url(api: &ApiState) -> ApiResult<Option<String>> {
    let configured = api.options.public_url.trim_end_matches('/');
    if !configured.is_empty() {
        return Ok(Some(configured.to_owned()));
    }
    let general = api.entities.settings.admin("general").await?;
    Ok(general.as_ref().and_then(base_of).map(str::to_owned))
}

fn base_of(general: &AdminSettings) -> Option<&str> {
    let url = general.json_value.get("baseUrl")?.as_str()?.trim_end_matches('/');
    Some(url).filter(|url| url.starts_with("http"))
}

/// Returns the public address of the platform: the configured one, or the one of this request, unless the general
/// settings prohibit other addresses than theirs.
pub(super) async fn base_url(api: &ApiState, headers: &HeaderMap) -> ApiResult<String> {
    let configured = api.options.public_url.trim_end_matches('/');
    if !configured.is_empty() {
        return Ok(configured.to_owned());
    }
    if let Some(general) = api.entities.settings.admin("general").await?
        && general.json_value.get("prohibitDifferentUrl") == Some(&Value::Bool(true))
        && let Some(url) = base_of(&general)
    {
        return Ok(url.to_owned());
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST.as_str()).unwrap_or("localhost:8080");
    let scheme = match text("x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    Ok(format!("{scheme}://{host}"))
}

/// Returns the activation link of a new user as plain text.
#[utoipa::path(get, path = "/api/user/{userId}/activationLink", tag = "user", operation_id = "getActivationLink",
    params(("userId" = Uuid, Path)), responses((status = 200, body = String, content_type = "text/plain")))]
async fn activation_link(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    headers: HeaderMap,
) -> ApiResult<String> {
    Ok(link(&api, &caller, id, &headers).await?.value)
}

/// Returns the activation link of a new user, and how long it is valid.
#[utoipa::path(get, path = "/api/user/{userId}/activationLinkInfo", tag = "user",
    operation_id = "getActivationLinkInfo", params(("userId" = Uuid, Path)),
    responses((status = 200, body = ActivationLink)))]
async fn activation_link_info(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    headers: HeaderMap,
) -> ApiResult<Json<ActivationLink>> {
    Ok(Json(link(&api, &caller, id, &headers).await?))
}

/// Returns whether administrators may get tokens of their users.
#[utoipa::path(get, path = "/api/user/tokenAccessEnabled", tag = "user",
    operation_id = "isUserTokenAccessEnabled",
    responses((status = 200, body = bool, content_type = "application/json")))]
async fn token_access_enabled(State(api): State<SharedApi>) -> Json<bool> {
    Json(api.options.user_token_access)
}

/// Returns a pair of tokens of a user, for administrators who want to see what the user sees.
#[utoipa::path(get, path = "/api/user/{userId}/token", tag = "user", operation_id = "getUserToken",
    params(("userId" = Uuid, Path)), responses((status = 200, body = TokenPair)))]
async fn token(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    RequestOrigin(origin): RequestOrigin,
) -> ApiResult<Json<TokenPair>> {
    if !api.options.user_token_access {
        return Err(ApiError::denied());
    }
    let user = api.load::<User>(&caller, id, AccessOperation::Read).await?;
    let credentials = api.services.users.credentials(UserId(id)).await?;
    if !credentials.enabled {
        return Err(ApiError::bad_request("User is not active"));
    }
    let times = TokenTimes {
        now_ms: api.clock.now_ms(),
        valid_from_ms: credentials.tokens_valid_from,
    };
    let pair = api.sessions.open(&api.tokens, &user, None, times, origin).await?;
    Ok(Json(pair))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct UserEnabledParams {
    /// Whether the user may log in.
    #[param(value_type = bool)]
    user_credentials_enabled: Option<String>,
}

/// Enables or disables the login of a user.
#[utoipa::path(post, path = "/api/user/{userId}/userCredentialsEnabled", tag = "user",
    operation_id = "setUserCredentialsEnabled", params(("userId" = Uuid, Path), UserEnabledParams),
    responses((status = 200)))]
async fn set_enabled(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(params): QueryParams<UserEnabledParams>,
) -> ApiResult<()> {
    let enabled = parse_flag(&params.user_credentials_enabled.unwrap_or_default())
        .map_err(|_| missing("userCredentialsEnabled"))?
        .unwrap_or(true);
    let user = api.load::<User>(&caller, id, AccessOperation::Write).await?;
    if user.id == caller.user && !enabled {
        return Err(ApiError::bad_request("Users can't disable themselves!"));
    }
    Ok(api.services.users.set_enabled(&user, enabled).await?)
}
