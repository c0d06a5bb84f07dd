//! Provisioning: a device that shows the key and the secret of a device profile gets its credentials.

use std::sync::Arc;

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{AttributeRow, StoreResult};
use fieldline_devices::directory::same_secret;
use fieldline_model::EntityKey;
use fieldline_model::entity::{CredentialsType, Device, DeviceCredentials, DeviceProfile};
use fieldline_model::json::lenient;
use fieldline_model::kv::{self, KvValueRef};
use fieldline_model::timeseries::AttributeScope;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::{
    DeviceService, EntityAction, EntityActionService, NameConflict, NewCredentials, ServiceContext,
    ServiceResult, random_text,
};
use super::DeviceLocks;

/// Server attribute of a device that was provisioned.
const STATE: &str = "provisionState";
const PROVISIONED: &str = "provisioned";
const NAME_LENGTH: usize = 20;

/// What a device shows. It holds secrets, hence no `Debug`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionRequest {
    /// Name of the device; a new one gets a random name where it has none.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub device_name: Option<String>,
    /// Key of the profile.
    #[serde(deserialize_with = "lenient::text")]
    pub provision_device_key: String,
    /// Secret of the profile.
    #[serde(deserialize_with = "lenient::text")]
    pub provision_device_secret: String,
    /// Kind of the credentials that a new device brings; an access token is made up where absent.
    #[serde(default)]
    pub credentials_type: Option<CredentialsType>,
    /// Access token.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub token: Option<String>,
    /// Client id of MQTT basic credentials.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub client_id: Option<String>,
    /// User name of MQTT basic credentials.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub username: Option<String>,
    /// Password of MQTT basic credentials.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub password: Option<String>,
    /// Certificate.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub hash: Option<String>,
    /// Whether a new device is a gateway.
    #[serde(default, deserialize_with = "lenient::optional_flag")]
    pub gateway: Option<bool>,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ProvisionStatus {
    /// The device has credentials.
    Success,
    /// No profile has such a key and secret.
    NotFound,
    /// The profile does not provision this device.
    Failure,
}

/// What a device is answered. It holds secrets, hence no `Debug`.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionResponse {
    /// How it went.
    pub status: ProvisionStatus,
    /// Kind of the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials_type: Option<CredentialsType>,
    /// The credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials_value: Option<Value>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_msg: Option<&'static str>,
}

impl ProvisionResponse {
    /// Kind and text of the credentials, if the device has any now.
    pub fn credentials(&self) -> Option<(CredentialsType, String)> {
        let value = match self.credentials_value.as_ref()? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some((self.credentials_type?, value))
    }

    fn refused(status: ProvisionStatus) -> Self {
        Self {
            status,
            credentials_type: None,
            credentials_value: None,
            error_msg: Some(match status {
                ProvisionStatus::NotFound => "Provision data was not found!",
                _ => "Failed to provision device!",
            }),
        }
    }

    fn with(credentials: DeviceCredentials) -> Self {
        let value = credentials.credentials_value.unwrap_or_default();
        let shown = match credentials.credentials_type {
            CredentialsType::AccessToken => credentials.credentials_id.unwrap_or_default().into(),
            CredentialsType::MqttBasic => serde_json::from_str(&value).unwrap_or(Value::String(value)),
            _ => Value::String(value),
        };
        Self {
            status: ProvisionStatus::Success,
            credentials_type: Some(credentials.credentials_type),
            credentials_value: Some(shown),
            error_msg: None,
        }
    }
}

/// See the module.
pub struct DeviceProvisionService {
    context: Arc<ServiceContext>,
    devices: DeviceService,
    actions: EntityActionService,
    locks: DeviceLocks,
}

impl DeviceProvisionService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            devices: DeviceService::new(context),
            actions: EntityActionService::new(context),
            locks: DeviceLocks::default(),
        }
    }

    /// Gives a device its credentials, as the profile that it names allows.
    ///
    /// # Errors
    /// The store failed.
    pub async fn provision(&self, request: &ProvisionRequest) -> StoreResult<ProvisionResponse> {
        let key = request.provision_device_key.as_str();
        let profile = match key.is_empty() {
            true => None,
            false => self.context.stores.device_profiles.by_provision_key(key).await?,
        };
        let Some(profile) = profile.filter(|profile| admits(profile, &request.provision_device_secret))
        else {
            return Ok(ProvisionResponse::refused(ProvisionStatus::NotFound));
        };
        let name = request.device_name.as_deref().unwrap_or_default();
        if !name.is_empty() && name.trim().is_empty() {
            return Ok(ProvisionResponse::refused(ProvisionStatus::Failure));
        }
        let name = name.trim();
        let known = match name.is_empty() {
            true => None,
            false => {
                self.context
                    .stores
                    .devices
                    .by_name(profile.tenant_id, name)
                    .await?
            }
        };
        match (profile.provision_type.as_deref(), known) {
            (Some("ALLOW_CREATE_NEW_DEVICES"), Some(known)) => {
                self.notify_rule_engine(EntityAction::ProvisionFailed, &known, request)
                    .await;
                Ok(ProvisionResponse::refused(ProvisionStatus::Failure))
            }
            (Some("ALLOW_CREATE_NEW_DEVICES"), None) => self.create(&profile, name, request).await,
            (Some("CHECK_PRE_PROVISIONED_DEVICES"), Some(known))
                if known.device_profile_id == Some(profile.id) =>
            {
                self.check(&known, request).await
            }
            (Some("CHECK_PRE_PROVISIONED_DEVICES"), _) => {
                Ok(ProvisionResponse::refused(ProvisionStatus::Failure))
            }
            _ => Ok(ProvisionResponse::refused(ProvisionStatus::NotFound)),
        }
    }

    /// The profile that takes devices whose certificates this authority has issued, by the hash of its certificate.
    ///
    /// # Errors
    /// The store failed.
    pub async fn profile_of_authority(&self, hash: &str) -> StoreResult<Option<DeviceProfile>> {
        let found = self.context.stores.device_profiles.by_provision_key(hash).await?;
        Ok(found.filter(|profile| profile.provision_type.as_deref() == Some("X509_CERTIFICATE_CHAIN")))
    }

    /// Gives a device of the profile the certificate that it has shown, which the profile's authority has issued. Its name is
    /// what the pattern of the profile finds in the common name. Returns whether the device has the certificate now.
    ///
    /// # Errors
    /// The store failed.
    pub async fn provision_by_chain(
        &self,
        profile: &DeviceProfile,
        common_name: &str,
        certificate: &str,
    ) -> StoreResult<bool> {
        let setting = |name: &str| profile.profile_data.get("provisionConfiguration")?.get(name);
        let pattern = setting("certificateRegExPattern").and_then(Value::as_str);
        let pattern = pattern.unwrap_or_default();
        let creates = setting("allowCreateNewDevicesByX509Certificate").and_then(Value::as_bool);
        let Some(name) = device_name(pattern, common_name) else {
            tracing::info!(profile = %profile.name, "the pattern finds no device name in a certificate");
            return Ok(false);
        };
        let tenant = profile.tenant_id;
        let x509 = |kept: DeviceCredentials| DeviceCredentials {
            credentials_type: CredentialsType::X509Certificate,
            credentials_id: None,
            credentials_value: Some(certificate.to_owned()),
            ..kept
        };
        let known = self.context.stores.devices.by_name(tenant, &name).await?;
        let outcome = match known {
            Some(known) if known.device_profile_id == Some(profile.id) => {
                let id = known.id;
                let stored = self.context.stores.device_credentials.get(tenant, id).await?;
                match stored {
                    Some(stored) if stored.credentials_type == CredentialsType::X509Certificate => self
                        .devices
                        .save_credentials(tenant, id, x509(stored).into())
                        .await
                        .map(drop),
                    // A device that shows something else was not made for this.
                    _ => return Ok(false),
                }
            }
            None if creates == Some(true) => {
                let device = Device {
                    name,
                    device_profile_id: Some(profile.id),
                    ..Device::default()
                };
                let credentials = NewCredentials::Given(x509(DeviceCredentials::default()).into());
                let saved = self
                    .devices
                    .save_with_credentials(tenant, device.into(), credentials, &NameConflict::Fail)
                    .await;
                match saved {
                    Ok(saved) => {
                        self.mark(EntityKey::device(tenant, saved.id)).await?;
                        let entity = AnyEntity::Device(saved);
                        self.actions.push_created_by_platform(&entity).await;
                        Ok(())
                    }
                    Err(error) => Err(error),
                }
            }
            _ => return Ok(false),
        };
        if let Err(error) = &outcome {
            tracing::info!(profile = %profile.name, %error, "a device could not be provisioned");
        }
        Ok(outcome.is_ok())
    }

    async fn create(
        &self,
        profile: &DeviceProfile,
        name: &str,
        request: &ProvisionRequest,
    ) -> StoreResult<ProvisionResponse> {
        let made_up = || random_text(NAME_LENGTH);
        let device = Device {
            name: if name.is_empty() {
                made_up()
            } else {
                name.to_owned()
            },
            device_profile_id: Some(profile.id),
            additional_info: request
                .gateway
                .filter(|is| *is)
                .map(|_| json!({ "gateway": true })),
            ..Device::default()
        };
        let Some(credentials) = credentials(request) else {
            return Ok(ProvisionResponse::refused(ProvisionStatus::Failure));
        };
        let tenant = profile.tenant_id;
        let saved: ServiceResult<Device> = self
            .devices
            .save_with_credentials(tenant, device.into(), credentials, &NameConflict::Fail)
            .await;
        let saved = match saved {
            Ok(saved) => saved,
            Err(error) => {
                // The device is told no more than that.
                tracing::info!(profile = %profile.name, %error, "a device could not be provisioned");
                return Ok(ProvisionResponse::refused(ProvisionStatus::Failure));
            }
        };
        let id = saved.id;
        self.mark(EntityKey::device(tenant, id)).await?;
        let entity = AnyEntity::Device(saved.clone());
        self.actions.push_created_by_platform(&entity).await;
        self.succeed(&saved, request).await
    }

    async fn check(&self, known: &Device, request: &ProvisionRequest) -> StoreResult<ProvisionResponse> {
        let subject = EntityKey::device(known.tenant_id, known.id);
        // Of two who ask at the same time, one is told.
        let Some(_turn) = self.locks.try_lock(known.id) else {
            return Ok(ProvisionResponse::refused(ProvisionStatus::Failure));
        };
        let keys = [STATE.to_owned()];
        let state = self
            .context
            .attributes
            .get(subject, AttributeScope::Server, Some(&keys))
            .await?;
        if !state.is_empty() {
            self.notify_rule_engine(EntityAction::ProvisionFailed, known, request)
                .await;
            return Ok(ProvisionResponse::refused(ProvisionStatus::Failure));
        }
        self.mark(subject).await?;
        self.succeed(known, request).await
    }

    async fn succeed(&self, device: &Device, request: &ProvisionRequest) -> StoreResult<ProvisionResponse> {
        self.notify_rule_engine(EntityAction::Provisioned, device, request)
            .await;
        let id = device.id;
        let stores = &self.context.stores.device_credentials;
        Ok(match stores.get(device.tenant_id, id).await? {
            Some(credentials) => ProvisionResponse::with(credentials),
            None => ProvisionResponse::refused(ProvisionStatus::Failure),
        })
    }

    async fn mark(&self, subject: EntityKey) -> StoreResult<()> {
        let mut values = Vec::new();
        kv::pack(STATE, KvValueRef::Text(PROVISIONED), &mut values);
        let row = AttributeRow {
            subject,
            scope: AttributeScope::Server,
            ts: self.context.now(),
            values: &values,
        };
        self.context.attributes.save(&[row]).await
    }

    /// Tells the rule engine, which is not told the secrets.
    async fn notify_rule_engine(&self, action: EntityAction, device: &Device, request: &ProvisionRequest) {
        let body = json!({
            "deviceName": device.name,
            "credentialsType": request.credentials_type,
            "credentials": { "provisionDeviceKey": request.provision_device_key },
        });
        self.actions.push_about_device(action, device, &body).await;
    }
}

fn admits(profile: &DeviceProfile, secret: &str) -> bool {
    let wanted = profile
        .profile_data
        .pointer("/provisionConfiguration/provisionDeviceSecret")
        .and_then(Value::as_str);
    !secret.is_empty() && wanted.is_some_and(|wanted| same_secret(wanted.as_bytes(), secret.as_bytes()))
}

/// Longest pattern of device names, and longest common name, bytes.
const MAX_PATTERN: usize = 2_000;
/// Memory of a compiled pattern, and of what matching keeps, bytes.
const MAX_COMPILED: usize = 512 << 10;
/// Steps back that matching one name may take.
const MAX_BACKTRACKS: usize = 10_000;

/// What the first group of the pattern finds; nothing where it is too much to ask for.
fn device_name(pattern: &str, common_name: &str) -> Option<String> {
    if pattern.len() > MAX_PATTERN || common_name.len() > MAX_PATTERN {
        return None;
    }
    let pattern = fancy_regex::RegexBuilder::new(pattern)
        .backtrack_limit(MAX_BACKTRACKS)
        .delegate_size_limit(MAX_COMPILED)
        .delegate_dfa_size_limit(MAX_COMPILED)
        .max_prog_size(MAX_PATTERN * 8)
        .build()
        .ok()?;
    let found = pattern.captures(common_name).ok()??;
    let name = found.get(1)?.as_str();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The credentials that a new device brings; `None` where they make no sense.
fn credentials(request: &ProvisionRequest) -> Option<NewCredentials> {
    let given = |credentials_type, credentials_value: Option<String>| {
        let credentials = DeviceCredentials {
            credentials_type,
            credentials_value,
            ..DeviceCredentials::default()
        };
        NewCredentials::Given(credentials.into())
    };
    Some(match request.credentials_type {
        None | Some(CredentialsType::AccessToken) => NewCredentials::AccessToken(request.token.clone()),
        Some(CredentialsType::MqttBasic) => {
            let value = json!({
                "clientId": request.client_id, "userName": request.username, "password": request.password,
            });
            given(CredentialsType::MqttBasic, Some(value.to_string()))
        }
        Some(CredentialsType::X509Certificate) => {
            given(CredentialsType::X509Certificate, Some(request.hash.clone()?))
        }
        Some(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_group_of_the_pattern_is_the_name() {
        assert_eq!(
            device_name("(.*)@example[.]com", "meter-7@example.com").as_deref(),
            Some("meter-7")
        );
        for (pattern, name) in [
            ("(.*)@example[.]com", "meter-7@example.org"),
            ("meter", "meter"),
            ("(.*", "meter"),
            ("()meter", "meter"),
            (r"(\w{100}{100})", "meter"),
            ("(m)".repeat(MAX_PATTERN).as_str(), "meter"),
            (
                "(a+)+$",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
            ),
        ] {
            assert_eq!(device_name(pattern, name), None, "{pattern}");
        }
    }
}
