//! Settings of the ways in which clients show who they are.

use std::fmt::Display;

use fieldline_core::ports::RestEndpoints;
use fieldline_model::entity::null_as_default;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::http_provider::{HttpAuthenticator, HttpConfiguration};
use super::jwt::{JwtConfiguration, JwtVerifier};
use super::providers::AuthProviderType;
use crate::services::{ServiceError, ServiceResult};

/// By what `MQTT_BASIC` credentials are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BasicStrategy {
    /// The client identifier.
    ClientId,
    /// The user name.
    Username,
    /// Each alone, and both together.
    #[default]
    ClientIdAndUsername,
}

/// Whether clients that use TLS show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ClientCertificates {
    /// They are not looked at.
    #[serde(rename = "CLIENT_AUTH_NONE")]
    None,
    /// They may.
    #[default]
    #[serde(rename = "CLIENT_AUTH_REQUESTED")]
    Requested,
    /// They must.
    #[serde(rename = "CLIENT_AUTH_REQUIRED")]
    Required,
}

/// Settings of `MQTT_BASIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BasicConfiguration {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) auth_strategy: BasicStrategy,
}

/// Settings of `X_509`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CertificateConfiguration {
    pub(super) skip_validity_check_for_client_cert: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) client_auth_type: ClientCertificates,
}

/// Settings of `SCRAM`, which has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct ScramConfiguration {}

fn invalid_configuration(error: impl Display) -> ServiceError {
    ServiceError::invalid(format!("MQTT auth provider configuration is invalid: {error}"))
}

/// Settings of a provider.
pub(super) trait ProviderConfiguration:
    Default + Clone + PartialEq + Serialize + for<'de> Deserialize<'de>
{
    /// Whose they are.
    const KIND: AuthProviderType;

    /// Checks them before they are stored, or come into force.
    fn check(&self) -> ServiceResult<()> {
        Ok(())
    }

    /// Takes the secrets of other settings where these have none.
    fn keep_secrets(&mut self, _before: &Self) {}

    /// The settings without secrets.
    #[must_use]
    fn shown(self) -> Self {
        self
    }
}

impl ProviderConfiguration for BasicConfiguration {
    const KIND: AuthProviderType = AuthProviderType::MqttBasic;
}

impl ProviderConfiguration for CertificateConfiguration {
    const KIND: AuthProviderType = AuthProviderType::X509;
}

impl ProviderConfiguration for ScramConfiguration {
    const KIND: AuthProviderType = AuthProviderType::Scram;
}

impl ProviderConfiguration for JwtConfiguration {
    const KIND: AuthProviderType = AuthProviderType::Jwt;

    fn check(&self) -> ServiceResult<()> {
        self.check()
    }

    fn keep_secrets(&mut self, before: &Self) {
        self.keep_secrets(before);
    }

    fn shown(self) -> Self {
        self.shown()
    }
}

impl ProviderConfiguration for HttpConfiguration {
    const KIND: AuthProviderType = AuthProviderType::Http;

    fn check(&self) -> ServiceResult<()> {
        self.check()
    }

    fn keep_secrets(&mut self, before: &Self) {
        self.keep_secrets(before);
    }

    fn shown(self) -> Self {
        self.shown()
    }
}

/// One provider: whether it is asked, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "C: ProviderConfiguration")]
pub(super) struct ProviderSettings<C> {
    pub(super) enabled: bool,
    pub(super) configuration: C,
    additional_info: Value,
}

impl<C: ProviderConfiguration> Default for ProviderSettings<C> {
    fn default() -> Self {
        Self {
            enabled: C::KIND == AuthProviderType::MqttBasic,
            configuration: C::default(),
            additional_info: json!({ "description": C::KIND.description() }),
        }
    }
}

impl<C: ProviderConfiguration> ProviderSettings<C> {
    fn shown(&self) -> AuthProvider {
        let mut configuration = json!({ "type": C::KIND.name() });
        if let (Value::Object(shown), Value::Object(fields)) =
            (&mut configuration, json!(self.configuration.clone().shown()))
        {
            shown.extend(fields);
        }
        AuthProvider {
            kind: C::KIND,
            enabled: self.enabled,
            configuration,
            additional_info: self.additional_info.clone(),
        }
    }

    fn change(&mut self, change: &AuthProviderChange) -> ServiceResult<()> {
        let given = &change.configuration;
        let named = given.get("type").and_then(Value::as_str);
        if !given.is_object() || named.is_some_and(|named| named != C::KIND.name()) {
            return Err(ServiceError::invalid(
                "MQTT auth provider configuration should be specified!",
            ));
        }
        let mut configuration = C::deserialize(given).map_err(invalid_configuration)?;
        configuration.keep_secrets(&self.configuration);
        configuration.check()?;
        *self = Self {
            enabled: change.enabled.unwrap_or(self.enabled),
            configuration,
            additional_info: change.additional_info.clone(),
        };
        Ok(())
    }

    fn enable(&mut self, enabled: bool) -> ServiceResult<()> {
        if enabled {
            self.configuration.check()?;
        }
        self.enabled = enabled;
        Ok(())
    }

    /// Whether it works as it does with other settings.
    pub(super) fn works_as(&self, other: &Self) -> bool {
        self.enabled == other.enabled && self.configuration == other.configuration
    }
}

/// Settings of all providers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AuthProviders {
    #[serde(rename = "MQTT_BASIC")]
    pub(super) basic: ProviderSettings<BasicConfiguration>,
    #[serde(rename = "X_509")]
    pub(super) certificates: ProviderSettings<CertificateConfiguration>,
    #[serde(rename = "JWT")]
    pub(super) jwt: ProviderSettings<JwtConfiguration>,
    #[serde(rename = "SCRAM")]
    pub(super) scram: ProviderSettings<ScramConfiguration>,
    #[serde(rename = "HTTP")]
    pub(super) http: ProviderSettings<HttpConfiguration>,
}

/// A provider as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthProvider {
    /// Which one.
    pub kind: AuthProviderType,
    /// Whether it is asked.
    pub enabled: bool,
    /// How it works, with its `type`.
    pub configuration: Value,
    /// What else a user interface keeps with it.
    pub additional_info: Value,
}

impl AuthProvider {
    /// What it does, in the words of its further information.
    pub fn description(&self) -> Option<&str> {
        self.additional_info.get("description")?.as_str()
    }
}

/// New settings of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthProviderChange {
    /// Which one.
    pub kind: AuthProviderType,
    /// Whether it is asked; `None` leaves that as it is.
    pub enabled: Option<bool>,
    /// How it works.
    pub configuration: Value,
    /// What else a user interface keeps with it.
    pub additional_info: Value,
}

impl AuthProviders {
    /// A provider as people see it.
    pub(super) fn shown(&self, kind: AuthProviderType) -> AuthProvider {
        match kind {
            AuthProviderType::MqttBasic => self.basic.shown(),
            AuthProviderType::X509 => self.certificates.shown(),
            AuthProviderType::Jwt => self.jwt.shown(),
            AuthProviderType::Scram => self.scram.shown(),
            AuthProviderType::Http => self.http.shown(),
        }
    }

    /// Replaces the settings of a provider.
    pub(super) fn change(&mut self, change: &AuthProviderChange) -> ServiceResult<()> {
        match change.kind {
            AuthProviderType::MqttBasic => self.basic.change(change),
            AuthProviderType::X509 => self.certificates.change(change),
            AuthProviderType::Jwt => self.jwt.change(change),
            AuthProviderType::Scram => self.scram.change(change),
            AuthProviderType::Http => self.http.change(change),
        }
    }

    /// Has a provider asked or not.
    pub(super) fn enable(&mut self, kind: AuthProviderType, enabled: bool) -> ServiceResult<()> {
        match kind {
            AuthProviderType::MqttBasic => self.basic.enable(enabled),
            AuthProviderType::X509 => self.certificates.enable(enabled),
            AuthProviderType::Jwt => self.jwt.enable(enabled),
            AuthProviderType::Scram => self.scram.enable(enabled),
            AuthProviderType::Http => self.http.enable(enabled),
        }
    }

    /// Checks that a provider can be made ready to be asked.
    pub(super) fn check_usable(
        &self,
        kind: AuthProviderType,
        endpoints: &dyn RestEndpoints,
    ) -> ServiceResult<()> {
        let usable = match kind {
            AuthProviderType::Jwt => JwtVerifier::new(&self.jwt.configuration, None, endpoints).map(drop),
            AuthProviderType::Http => HttpAuthenticator::new(&self.http.configuration, endpoints).map(drop),
            AuthProviderType::MqttBasic | AuthProviderType::X509 | AuthProviderType::Scram => Ok(()),
        };
        usable.map_err(invalid_configuration)
    }

    /// Whether a provider is asked.
    pub(super) fn is_enabled(&self, kind: AuthProviderType) -> bool {
        match kind {
            AuthProviderType::MqttBasic => self.basic.enabled,
            AuthProviderType::X509 => self.certificates.enabled,
            AuthProviderType::Jwt => self.jwt.enabled,
            AuthProviderType::Scram => self.scram.enabled,
            AuthProviderType::Http => self.http.enabled,
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::ports::NoRestEndpoints;

    use super::super::fake_server::FakeServer;
    use super::*;

    #[test]
    fn a_new_installation_asks_for_passwords() {
        let providers = AuthProviders::default();
        let basic = providers.shown(AuthProviderType::MqttBasic);
        assert!(basic.enabled);
        for other in [
            AuthProviderType::Jwt,
            AuthProviderType::Scram,
            AuthProviderType::Http,
        ] {
            assert!(!providers.shown(other).enabled, "{}", other.name());
        }
        assert_eq!(
            basic.configuration,
            json!({ "type": "MQTT_BASIC", "authStrategy": "CLIENT_ID_AND_USERNAME" })
        );
        let certificates = providers.shown(AuthProviderType::X509);
        assert!(!certificates.enabled);
        assert_eq!(
            certificates.configuration,
            json!({
                "type": "X_509", "skipValidityCheckForClientCert": false,
                "clientAuthType": "CLIENT_AUTH_REQUESTED",
            })
        );
        let read: AuthProviders = serde_json::from_value(json!(providers)).expect("settings");
        assert_eq!(read, providers);
    }

    fn change(kind: AuthProviderType, configuration: Value) -> AuthProviderChange {
        AuthProviderChange {
            kind,
            enabled: None,
            configuration,
            additional_info: Value::Null,
        }
    }

    #[test]
    fn providers_are_changed_one_by_one() {
        let mut providers = AuthProviders::default();
        let basic = |configuration| change(AuthProviderType::MqttBasic, configuration);
        let usernames = json!({ "type": "MQTT_BASIC", "authStrategy": "USERNAME" });
        providers.change(&basic(usernames)).expect("settings");
        assert_eq!(
            providers.basic.configuration.auth_strategy,
            BasicStrategy::Username
        );
        assert!(providers.basic.enabled);
        for wrong in [
            json!({ "authStrategy": "NOBODY" }),
            json!({ "type": "X_509" }),
            json!(7),
        ] {
            assert!(providers.change(&basic(wrong)).is_err());
        }
        assert_eq!(AuthProviderType::named("X_509"), Some(AuthProviderType::X509));
        assert_eq!(AuthProviderType::named("LDAP"), None);
    }

    #[test]
    fn secrets_are_not_shown_and_stay_where_they_are_left_out() {
        let mut providers = AuthProviders::default();
        let jwt = |secret: Value| {
            let signature = json!({ "algorithm": "HMAC_BASED", "secret": secret });
            let verifier =
                json!({ "jwtVerifierType": "ALGORITHM_BASED", "jwtSignAlgorithmConfiguration": signature });
            change(
                AuthProviderType::Jwt,
                json!({ "jwtVerifierConfiguration": verifier }),
            )
        };
        assert!(
            providers.enable(AuthProviderType::Jwt, true).is_err(),
            "there is no secret"
        );
        assert!(providers.change(&jwt(json!("short"))).is_err());
        providers.change(&jwt(json!("s".repeat(32)))).expect("settings");
        providers.enable(AuthProviderType::Jwt, true).expect("settings");
        let shown = providers.shown(AuthProviderType::Jwt).configuration;
        assert!(!shown.to_string().contains("sss"), "{shown}");
        let before = providers.jwt.configuration.clone();
        providers
            .change(&change(AuthProviderType::Jwt, shown))
            .expect("settings");
        assert_eq!(providers.jwt.configuration, before);

        let http = |url: &str, password: Value| {
            let credentials = json!({ "type": "basic", "username": "u", "password": password });
            let configuration = json!({ "restEndpointUrl": url, "credentials": credentials });
            change(AuthProviderType::Http, configuration)
        };
        providers
            .change(&http("http://one/a", json!("secret")))
            .expect("settings");
        let shown = providers.shown(AuthProviderType::Http).configuration;
        assert!(!shown.to_string().contains("secret"), "{shown}");
        providers
            .change(&change(AuthProviderType::Http, shown))
            .expect("settings");
        assert_eq!(providers.http.configuration.credentials["password"], "secret");
        // It is nobody else's.
        providers
            .change(&http("http://two/a", Value::Null))
            .expect("settings");
        assert_eq!(providers.http.configuration.credentials["password"], Value::Null);
        for wrong in ["two/a", "ftp://two", "http://", "http://:80", "http://a b"] {
            assert!(providers.change(&http(wrong, Value::Null)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_not_usable() {
        let providers = AuthProviders::default();
        for kind in AuthProviderType::ALL {
            let needs_keys = kind == AuthProviderType::Jwt;
            let usable = providers.check_usable(kind, &FakeServer::default());
            assert_eq!(usable.is_err(), needs_keys, "{}", kind.name());
        }
        let unusable = providers.check_usable(AuthProviderType::Http, &NoRestEndpoints);
        let error = unusable.expect_err("no servers can be asked");
        assert!(error.message().contains("cannot be asked"), "{error}");
    }
}
