//! Settings of the installation: the public address, the mail server, the provider of text messages, and others that
//! are stored as they are.

use axum::Json;
use axum::extract::{Path, State};
use fieldline_entities::audit::{hide_secrets, is_secret};
use fieldline_entities::broker_access::{AuthProviderType, ORDER_KEY, PROVIDERS_KEY, auth_provider_order};
use fieldline_model::entity::{AdminSettings, EntityDraft};
use fieldline_model::{AdminSettingsId, TenantId, new_uuid};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa_axum::routes;

use super::admin_mail;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::JsonBody;
use crate::mails::{self, MAIL};
use crate::state::{ApiState, DevicePorts, SharedApi};

/// Settings that have endpoints of their own, because they are checked, or parts of them must not be shown.
const SEPARATE_SETTINGS: [&str; 3] = ["securitySettings", "jwt", PROVIDERS_KEY];
/// Key of the settings of the provider of text messages.
const SMS: &str = "sms";
/// Longest phone number, in bytes.
const MAX_NUMBER: usize = 64;
/// Longest text message, in bytes; providers accept less.
const MAX_MESSAGE: usize = 16_384;
/// Largest settings, in bytes.
const MAX_SETTINGS: usize = 65_536;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(get)))
        .add(S.changes(routes!(save), AuditRule::Nothing))
        .add(S.changes(routes!(test_mail), AuditRule::Nothing))
        .add(S.changes(routes!(test_sms), AuditRule::TestSms))
        .add(S.reads(routes!(features)))
}

/// Returns the default settings of a key.
pub(super) fn default(api: &ApiState, key: &str) -> Option<Value> {
    Some(match key {
        "general" => {
            let url = api.options.public_url.as_str();
            let url = if url.is_empty() {
                "http://localhost:8080"
            } else {
                url
            };
            json!({ "baseUrl": url, "prohibitDifferentUrl": !api.options.public_url.is_empty() })
        }
        MAIL => json!({
            "mailFrom": "sysadmin@localhost.localdomain", "smtpProtocol": "smtp", "smtpHost": "localhost",
            "smtpPort": "25", "timeout": "10000", "enableTls": false, "tlsVersion": "TLSv1.2", "username": "",
            "enableProxy": false, "showChangePassword": false,
        }),
        "connectivity" => connectivity(api.device_ports.get().copied().unwrap_or_default()),
        ORDER_KEY => {
            let order = auth_provider_order(None).unwrap_or_default();
            json!({ "priorities": order.into_iter().map(AuthProviderType::name).collect::<Vec<_>>() })
        }
        _ => return None,
    })
}

/// Where devices connect to as long as nobody has said so: to the servers of this program.
fn connectivity(ports: DevicePorts) -> Value {
    let host = |listens: Option<u16>, usual: u16| {
        let port = listens.unwrap_or(usual).to_string();
        json!({ "enabled": listens.is_some(), "host": "", "port": port })
    };
    json!({
        "http": host(Some(ports.http), 8080), "https": host(None, 443), "mqtt": host(Some(ports.mqtt), 1883),
        "mqtts": host(ports.mqtts, 8883), "coap": host(ports.coap, 5683), "coaps": host(ports.coaps, 5684),
    })
}

/// Removes passwords from the settings, at any depth.
fn without_secrets(mut settings: AdminSettings) -> AdminSettings {
    hide_secrets(&mut settings.json_value);
    settings
}

/// Keeps stored passwords that a request leaves out: clients never see them.
fn keep_secrets(new: &mut Value, old: &Value) {
    let (Value::Object(new), Value::Object(old)) = (new, old) else {
        return;
    };
    for (name, old) in old {
        match new.get_mut(name) {
            Some(inner) => keep_secrets(inner, old),
            None if is_secret(name) => {
                new.insert(name.clone(), old.clone());
            }
            None => {}
        }
    }
}

/// The same for the settings of a key. The secrets of one provider of text messages must not be sent to another one,
/// nor to another host.
fn keep_known(key: &str, new: &mut Value, old: &Value) {
    let is_same = |name: &str| new.get(name) == old.get(name);
    if key != SMS || ["type", "host", "port"].into_iter().all(is_same) {
        keep_secrets(new, old);
    }
}

/// Returns the settings of a key.
#[utoipa::path(get, path = "/api/admin/settings/{key}", tag = "admin", operation_id = "getAdminSettings",
    params(("key" = String, Path)), responses((status = 200, body = AdminSettings)))]
async fn get(State(api): State<SharedApi>, Path(key): Path<String>) -> ApiResult<Json<AdminSettings>> {
    let unknown = || ApiError::not_found(format!("No Administration settings found for key: {key}"));
    if SEPARATE_SETTINGS.contains(&key.as_str()) {
        return Err(unknown());
    }
    if let Some(stored) = api.entities.settings.admin(&key).await? {
        return Ok(Json(without_secrets(stored)));
    }
    let json_value = default(&api, &key).ok_or_else(unknown)?;
    Ok(Json(AdminSettings {
        key,
        json_value,
        ..AdminSettings::default()
    }))
}

/// Saves the settings of a key. Passwords that are left out stay as they are.
#[utoipa::path(post, path = "/api/admin/settings", tag = "admin", operation_id = "saveAdminSettings",
    request_body = AdminSettings, responses((status = 200, body = AdminSettings)))]
async fn save(
    State(api): State<SharedApi>,
    JsonBody(settings): JsonBody<EntityDraft<AdminSettings>>,
) -> ApiResult<Json<AdminSettings>> {
    let key = settings.key.trim();
    if key.is_empty() || SEPARATE_SETTINGS.contains(&key) {
        return Err(ApiError::bad_request("Key should be specified!"));
    }
    if !settings.json_value.is_object() {
        return Err(ApiError::bad_request("Json value should be specified!"));
    }
    if settings.json_value.to_string().len() > MAX_SETTINGS {
        return Err(ApiError::bad_request(format!(
            "The settings take more than {MAX_SETTINGS} bytes!"
        )));
    }
    let store = &api.entities.settings;
    loop {
        let old = store.admin(key).await?.map(|old| old.json_value);
        let mut json_value = settings.json_value.clone();
        if let Some(old) = &old {
            keep_known(key, &mut json_value, old);
        }
        match key {
            MAIL => admin_mail::sync_token(&mut json_value, old.as_ref()),
            SMS => api.sms.check(&json_value).map_err(ApiError::bad_request)?,
            ORDER_KEY => drop(auth_provider_order(Some(&json_value)).map_err(ApiError::bad_request)?),
            _ => {}
        }
        let new = AdminSettings {
            id: settings.id.unwrap_or(AdminSettingsId(new_uuid())),
            created_time: api.clock.now_ms(),
            tenant_id: TenantId::NULL,
            key: key.to_owned(),
            json_value,
        };
        let saved = match &old {
            Some(old) => store.replace_admin(new, old).await,
            None => store.save_admin(new).await.map(Some),
        };
        // One that has failed may be stored as well.
        if key == ORDER_KEY {
            api.services.broker_access.forget_providers();
        }
        // Another request has saved them meanwhile, perhaps with a new refresh token, which must not be overwritten.
        if let Some(saved) = saved? {
            return Ok(Json(without_secrets(saved)));
        }
    }
}

/// Sends a mail to the caller through the mail server in the request, which need not be saved yet.
#[utoipa::path(post, path = "/api/admin/settings/testMail", tag = "admin", operation_id = "sendTestMail",
    request_body = AdminSettings, responses((status = 200), (status = 400, body = crate::error::ErrorBody)))]
async fn test_mail(
    ApiCall { api, caller }: ApiCall,
    JsonBody(settings): JsonBody<AdminSettings>,
) -> ApiResult<()> {
    if settings.key != MAIL {
        return Err(ApiError::bad_request("Only mail settings can be tried out!"));
    }
    let mut server = settings.json_value;
    if let Some(stored) = api.mails.server().await? {
        keep_secrets(&mut server, &stored);
    }
    let user = api.entities.users.get(caller.tenant, caller.user).await?;
    let user = user.ok_or_else(ApiError::unauthenticated)?;
    let sent = api.mails.send(&server, &mails::test(&user.email)).await;
    // A failure is caused by the settings in the request.
    sent.map_err(|error| ApiError::bad_request(error.message()))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct TestSmsRequest {
    /// The provider: settings as they are saved under the key `sms`.
    #[serde(default)]
    #[schema(value_type = Object)]
    provider_configuration: Value,
    /// Phone number of the recipient.
    #[serde(default)]
    number_to: String,
    /// Text of the message.
    #[serde(default)]
    message: String,
}

/// Sends a text message through the provider in the request, which need not be saved yet.
#[utoipa::path(post, path = "/api/admin/settings/testSms", tag = "admin", operation_id = "sendTestSms",
    request_body = TestSmsRequest, responses((status = 200), (status = 400, body = crate::error::ErrorBody)))]
async fn test_sms(
    State(api): State<SharedApi>,
    JsonBody(request): JsonBody<TestSmsRequest>,
) -> ApiResult<()> {
    let failed = |error: &str| ApiError::bad_request(format!("Unable to send SMS: {error}"));
    let number = request.number_to.trim();
    if number.is_empty() || number.len() > MAX_NUMBER || number.contains(',') {
        return Err(failed("one phone number should be specified"));
    }
    if request.message.is_empty() || request.message.len() > MAX_MESSAGE {
        return Err(failed("a message should be specified, and no long one"));
    }
    let mut provider = request.provider_configuration;
    if let Some(stored) = api.entities.settings.admin(SMS).await? {
        keep_known(SMS, &mut provider, &stored.json_value);
    }
    let sent = api.sms.send(&provider, number, &request.message).await;
    sent.map_err(|error| failed(&error))
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct FeaturesInfo {
    sms_enabled: bool,
    email_enabled: bool,
    oauth_enabled: bool,
    two_fa_enabled: bool,
    notification_enabled: bool,
}

/// Returns which features are set up.
#[utoipa::path(get, path = "/api/admin/featuresInfo", tag = "admin", operation_id = "getFeaturesInfo",
    responses((status = 200, body = FeaturesInfo)))]
async fn features(State(api): State<SharedApi>) -> ApiResult<Json<FeaturesInfo>> {
    Ok(Json(FeaturesInfo {
        sms_enabled: api.entities.settings.admin(SMS).await?.is_some(),
        email_enabled: api.mails.server().await?.is_some(),
        oauth_enabled: false,
        two_fa_enabled: false,
        notification_enabled: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_kept() {
        let stored = json!({
            "smtpHost": "a", "password": "s1",
            "configuration": { "type": "TWILIO", "accountToken": "s2", "numberFrom": "+1" },
        });
        let shown = without_secrets(AdminSettings {
            json_value: stored.clone(),
            ..AdminSettings::default()
        });
        assert!(!shown.json_value.to_string().contains("s1") && !shown.json_value.to_string().contains("s2"));
        let mut saved = shown.json_value;
        keep_secrets(&mut saved, &stored);
        assert_eq!(saved, stored);
        let mut of_another = json!({ "type": "SMPP" });
        keep_known(SMS, &mut of_another, &stored);
        assert!(of_another.get("password").is_none());
        let mut replaced = json!({ "password": "new" });
        keep_secrets(&mut replaced, &stored);
        assert_eq!(replaced["password"], "new");
    }
}
