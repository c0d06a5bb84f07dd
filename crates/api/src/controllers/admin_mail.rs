//! Access to the installation's mail account by OAuth 2: an administrator is redirected to the provider, and the
//! provider redirects back with a code, which the server exchanges for a refresh token.

use axum::Json;
use axum::extract::State;
use axum::response::Redirect;
use fieldline_model::entity::AdminSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa_axum::routes;

use crate::endpoint::{ANYBODY, ApiRoutes, S, ST};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::extract::QueryParams;
use crate::mails::MAIL;
use crate::state::{ApiState, SharedApi};

const CODE_PATH: &str = "/api/admin/mail/oauth2/code";
/// Page of the web UI with the settings of the mail server.
const SETTINGS_PAGE: &str = "/settings/outgoing-mail";
const OFFICE_365: &str = "OFFICE_365";
/// Lifetime of a refresh token of Microsoft, milliseconds.
const OFFICE_365_TTL_MS: i64 = 90 * 86_400_000;
/// Fields that a refresh token depends on: if one of them changes, the token is useless.
const TOKEN_FIELDS: [&str; 6] = [
    "providerId",
    "providerTenantId",
    "clientId",
    "clientSecret",
    "redirectUri",
    "tokenUri",
];
const REFRESH_TOKEN: &str = "refreshToken";
const GENERATED: &str = "tokenGenerated";
const EXPIRES: &str = "refreshTokenExpires";

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(processing_url)))
        .add(S.reads(routes!(authorize)))
        .add(ANYBODY.reads(routes!(code)))
        .add(ST.reads(routes!(templates)))
}

/// Removes the refresh token if the settings name another account than the stored ones, and if OAuth 2 is on, sets
/// `tokenGenerated` to whether there is a token.
pub(super) fn sync_token(new: &mut Value, old: Option<&Value>) {
    let is_in_use = is_on(given(new, "enableOauth2"));
    let is_other = |old: &Value| {
        TOKEN_FIELDS
            .iter()
            .any(|name| given(new, name) != given(old, name))
    };
    let is_other = old.is_some_and(is_other);
    let expires = old.and_then(|old| given(old, EXPIRES)).cloned();
    let Some(fields) = new.as_object_mut() else {
        return;
    };
    if is_other {
        fields.remove(REFRESH_TOKEN);
    }
    if !is_in_use {
        return;
    }
    match expires {
        Some(expires) if !is_other => fields.insert(EXPIRES.to_owned(), expires),
        _ => None,
    };
    let has_token = fields.get(REFRESH_TOKEN).is_some_and(Value::is_string);
    fields.insert(GENERATED.to_owned(), has_token.into());
    if !has_token {
        fields.remove(EXPIRES);
    }
}

fn given<'v>(settings: &'v Value, name: &str) -> Option<&'v Value> {
    settings.get(name).filter(|value| !value.is_null())
}

/// Whether a flag is set, as a JSON boolean or as text.
fn is_on(flag: Option<&Value>) -> bool {
    match flag {
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        flag => flag == Some(&Value::Bool(true)),
    }
}

/// Returns the redirect path that administrators enter at the provider.
#[utoipa::path(get, path = "/api/admin/mail/oauth2/loginProcessingUrl", tag = "admin",
    operation_id = "getMailProcessingUrl",
    responses((status = 200, body = String, content_type = "application/json")))]
async fn processing_url() -> Json<&'static str> {
    Json(CODE_PATH)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct MailAuthorizeParams {
    /// Page of this installation to return to, such as `/settings/outgoing-mail`.
    #[serde(default)]
    prev_uri: String,
}

/// Returns the address at the provider where the caller allows the platform to send mails. It can be used once, within
/// ten minutes.
#[utoipa::path(get, path = "/api/admin/mail/oauth2/authorize", tag = "admin",
    operation_id = "getMailOAuth2AuthorizationUrl", params(MailAuthorizeParams),
    responses((status = 200, body = String, content_type = "application/json"),
        (status = 400, body = crate::error::ErrorBody), (status = 404, body = crate::error::ErrorBody)))]
async fn authorize(
    State(api): State<SharedApi>,
    QueryParams(params): QueryParams<MailAuthorizeParams>,
) -> ApiResult<Json<String>> {
    let stored = stored(&api).await?;
    let back_to = match params.prev_uri {
        page if is_page(&page) => page,
        _ => SETTINGS_PAGE.to_owned(),
    };
    let state = api.consents.begin(back_to, api.clock.now_ms());
    let url = api.mails.consent_url(&stored.json_value, &state)?;
    Ok(Json(url))
}

/// Whether a text is the address of a page of this installation.
fn is_page(text: &str) -> bool {
    text.starts_with('/')
        && !text.starts_with("//")
        && text.len() <= 1_024
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

async fn stored(api: &ApiState) -> ApiResult<AdminSettings> {
    let stored = api.entities.settings.admin(MAIL).await?;
    stored.ok_or_else(|| ApiError::not_found("No Administration mail settings found"))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct MailCodeParams {
    /// The authorization code of the provider.
    #[serde(default)]
    code: String,
    /// The `state` that the redirect to the provider contained.
    #[serde(default)]
    state: String,
    /// Why the provider sent no code.
    #[serde(default)]
    error: String,
}

/// Receives the redirect from the provider, and exchanges the code for a refresh token.
#[utoipa::path(get, path = CODE_PATH, tag = "admin", operation_id = "processMailOAuth2Code", params(MailCodeParams),
    responses((status = 303), (status = 400, body = crate::error::ErrorBody)))]
async fn code(
    State(api): State<SharedApi>,
    QueryParams(params): QueryParams<MailCodeParams>,
) -> ApiResult<Redirect> {
    let now = api.clock.now_ms();
    let back_to = api.consents.end(&params.state, now);
    let back_to = back_to.ok_or_else(|| not_generated("invalid state param"))?;
    if params.code.is_empty() {
        let reason: String = params.error.chars().take(100).collect();
        return Err(not_generated(&format!("the provider answered '{reason}'")));
    }
    // A code works only once, so the exchange is completed even if the browser disconnects.
    let redeemed = tokio::spawn(async move { store_refresh_token(&api, &params.code, now).await });
    redeemed
        .await
        .map_err(|_| ApiError::new(ErrorCode::General, "The server is stopping"))??;
    Ok(Redirect::to(&back_to))
}

fn not_generated(reason: &str) -> ApiError {
    ApiError::bad_request(format!("Refresh token was not generated, {reason}"))
}

/// Exchanges a code for a refresh token, and stores it in the settings.
async fn store_refresh_token(api: &ApiState, code: &str, now: i64) -> ApiResult<()> {
    let used = stored(api).await?.json_value;
    let token = api.mails.exchange_code(&used, code).await?;
    loop {
        let mut stored = stored(api).await?;
        let read = stored.json_value.clone();
        // The settings may have been saved during the request to the provider.
        if TOKEN_FIELDS
            .iter()
            .any(|name| given(&read, name) != given(&used, name))
        {
            return Err(not_generated("the settings have changed meanwhile"));
        }
        if let Some(fields) = stored.json_value.as_object_mut() {
            fields.insert(REFRESH_TOKEN.to_owned(), token.clone().into());
            fields.insert(GENERATED.to_owned(), true.into());
            if fields.get("providerId").and_then(Value::as_str) == Some(OFFICE_365) {
                fields.insert(EXPIRES.to_owned(), (now + OFFICE_365_TTL_MS).into());
            }
        }
        let replaced = api.entities.settings.replace_admin(stored, &read).await?;
        if replaced.is_some() {
            return Ok(());
        }
    }
}

/// Defaults for the settings of one mail provider.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct MailConfigTemplate {
    provider_id: &'static str,
    name: &'static str,
    smtp_protocol: &'static str,
    smtp_host: &'static str,
    smtp_port: u16,
    /// Timeout for sending a mail, milliseconds.
    timeout: u32,
    enable_tls: bool,
    tls_version: &'static str,
    /// Address where access is granted; `%s` stands for the tenant at the provider.
    authorization_uri: Option<&'static str>,
    /// Address where tokens are issued.
    access_token_uri: Option<&'static str>,
    scope: Vec<&'static str>,
    /// Documentation of the provider.
    help_link: Option<&'static str>,
}

const TEMPLATE: MailConfigTemplate = MailConfigTemplate {
    provider_id: "",
    name: "",
    smtp_protocol: "SMTPS",
    smtp_host: "",
    smtp_port: 465,
    timeout: 10_000,
    enable_tls: true,
    tls_version: "TLSv1.2",
    authorization_uri: None,
    access_token_uri: None,
    scope: Vec::new(),
    help_link: None,
};

/// Returns defaults for the settings of known mail providers.
#[utoipa::path(get, path = "/api/mail/config/template", tag = "admin", operation_id = "getMailConfigTemplates",
    responses((status = 200, body = Vec<MailConfigTemplate>)))]
async fn templates() -> Json<Vec<MailConfigTemplate>> {
    Json(vec![
        MailConfigTemplate {
            provider_id: "SENDGRID",
            name: "SendGrid",
            smtp_host: "smtp.sendgrid.net",
            ..TEMPLATE
        },
        MailConfigTemplate {
            provider_id: "GOOGLE",
            name: "Google",
            smtp_host: "smtp.gmail.com",
            authorization_uri: Some(
                "https://accounts.google.com/o/oauth2/v2/auth?prompt=consent&access_type=offline",
            ),
            access_token_uri: Some("https://oauth2.googleapis.com/token"),
            scope: vec!["https://mail.google.com/"],
            help_link: Some("https://support.google.com/googleapi/answer/6158849"),
            ..TEMPLATE
        },
        MailConfigTemplate {
            provider_id: OFFICE_365,
            name: "Office 365",
            smtp_protocol: "SMTP",
            smtp_host: "smtp.office365.com",
            smtp_port: 587,
            authorization_uri: Some("https://login.microsoftonline.com/%s/oauth2/v2.0/authorize"),
            access_token_uri: Some("https://login.microsoftonline.com/%s/oauth2/v2.0/token"),
            scope: vec![
                "https://outlook.office365.com/SMTP.Send",
                "offline_access",
                "openid",
            ],
            help_link: Some(
                "https://learn.microsoft.com/en-us/exchange/client-developer/legacy-protocols/\
                 how-to-authenticate-an-imap-pop-smtp-application-by-using-oauth",
            ),
            ..TEMPLATE
        },
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refresh_token_goes_with_the_account_that_it_is_for() {
        let old = json!({
            "enableOauth2": true, "clientId": "a", "clientSecret": "s", "refreshToken": "r", "refreshTokenExpires": 5,
            "tokenGenerated": true, "smtpPort": 25,
        });
        let mut same = old.clone();
        same["smtpPort"] = json!(26);
        same["refreshTokenExpires"] = json!(6);
        sync_token(&mut same, Some(&old));
        assert_eq!(
            (
                &same["refreshToken"],
                &same["tokenGenerated"],
                &same["refreshTokenExpires"]
            ),
            (&json!("r"), &json!(true), &json!(5))
        );
        for (name, value) in [("clientId", "b"), ("clientSecret", "t"), ("tokenUri", "u")] {
            let mut other = old.clone();
            other[name] = json!(value);
            sync_token(&mut other, Some(&old));
            assert_eq!(
                (
                    other.get("refreshToken"),
                    &other["tokenGenerated"],
                    other.get("refreshTokenExpires")
                ),
                (None, &json!(false), None),
                "{name}"
            );
        }
        let mut new = json!({ "enableOauth2": true, "tokenGenerated": true });
        sync_token(&mut new, None);
        assert_eq!(new["tokenGenerated"], false);
    }

    #[test]
    fn browsers_are_sent_to_pages_of_this_installation_alone() {
        assert!(is_page("/settings/outgoing-mail?tab=2"));
        for wrong in [
            "",
            "x",
            "//evil.example.org",
            "/\\evil.example.org",
            "https://x",
            "/a\nb",
            "/é",
        ] {
            assert!(!is_page(wrong), "{wrong}");
        }
    }
}
