//! Access to mail accounts by OAuth 2 (RFC 6749): an administrator allows it once, which gives a refresh token, and that
//! buys the access tokens that servers take in the place of a password (XOAUTH2).

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::egress::Egress;
use crate::http;
use crate::lenient;
use crate::percent;
use crate::secret::Secret;

/// How long a provider may take to answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long a token counts where the provider does not say.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
/// The longest reason of a provider that is shown, in characters.
const MAX_REASON: usize = 300;

/// What the system's settings under the key `mail` say of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MailOauth2Config {
    /// Whether the account is entered this way at all.
    #[serde(deserialize_with = "lenient::boolean")]
    pub enable_oauth2: bool,
    /// Who has the account: `GOOGLE`, `OFFICE_365` or something else.
    #[serde(deserialize_with = "lenient::string")]
    pub provider_id: String,
    /// The name of the platform at the provider.
    #[serde(deserialize_with = "lenient::string")]
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// Where people allow access.
    #[serde(deserialize_with = "lenient::string")]
    pub auth_uri: String,
    /// Where tokens are bought.
    #[serde(deserialize_with = "lenient::string")]
    pub token_uri: String,
    /// Where the provider sends people back to.
    #[serde(deserialize_with = "lenient::string")]
    pub redirect_uri: String,
    /// What access is asked for.
    pub scope: Vec<String>,
    /// Buys access tokens.
    pub refresh_token: Secret,
}

/// What a provider gave.
#[derive(Debug, Clone)]
pub struct TokenGrant {
    /// Stands for the password for a while.
    pub access_token: Secret,
    /// How long that is.
    pub lifetime: Duration,
    /// Takes the place of the refresh token, where there is one.
    pub refresh_token: Option<Secret>,
}

impl ConnectorConfig for MailOauth2Config {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        if self.enable_oauth2 { self.check() } else { Ok(()) }
    }
}

impl MailOauth2Config {
    /// Whether tokens can be asked for.
    fn check(&self) -> Result<(), ConnectorConfigError> {
        require("clientId", &self.client_id)?;
        address("tokenUri", &self.token_uri)
    }

    /// Where an administrator allows access (RFC 6749 §4.1.1).
    pub fn consent_url(&self, state: &str) -> Result<String, ConnectorConfigError> {
        self.check()?;
        address("authUri", &self.auth_uri)?;
        address("redirectUri", &self.redirect_uri)?;
        let scope = self.scope.join(" ");
        require("scope", &scope)?;
        let base = self.auth_uri.trim();
        // The addresses of some providers have a query of their own.
        let joint = if base.contains('?') { '&' } else { '?' };
        let query = form(&[
            ("client_id", self.client_id.trim()),
            ("redirect_uri", self.redirect_uri.trim()),
            ("response_type", "code"),
            ("scope", &scope),
            ("state", state),
        ]);
        Ok(format!("{base}{joint}{query}"))
    }

    /// Turns the code that the provider has sent into tokens (RFC 6749 §4.1.3).
    pub async fn exchange_code(&self, code: &str) -> Result<TokenGrant, String> {
        let redirect_uri = self.redirect_uri.trim();
        self.request_token(&[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
        ])
        .await
    }

    /// Buys an access token (RFC 6749 §6).
    pub async fn refresh(&self) -> Result<TokenGrant, String> {
        self.request_token(&[
            ("grant_type", "refresh_token"),
            ("refresh_token", self.refresh_token.expose()),
        ])
        .await
    }

    async fn request_token(&self, parameters: &[(&str, &str)]) -> Result<TokenGrant, String> {
        let failed = |reason: &str| format!("Error while retrieving access token: {reason}");
        self.check().map_err(|error| failed(&error.to_string()))?;
        // The provider is the operator's choice.
        let client =
            http::service_client(&Egress::open(), TIMEOUT).map_err(|error| failed(&error.to_string()))?;
        let identity = [
            ("client_id", self.client_id.trim()),
            ("client_secret", self.client_secret.expose()),
        ];
        let request = client
            .post(self.token_uri.trim())
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form(&[parameters, &identity].concat()));
        let answer = http::exchange(&client, request)
            .await
            .map_err(|error| failed(&error))?;
        let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let Some(access_token) = text("access_token").filter(|_| answer.status.is_success()) else {
            let reason = text("error_description").or(text("error"));
            let reason: String = reason
                .unwrap_or(answer.status.as_str())
                .chars()
                .filter(|character| !character.is_control())
                .take(MAX_REASON)
                .collect();
            return Err(failed(&reason));
        };
        let lifetime = match body.get("expires_in") {
            Some(Value::String(text)) => text.parse().ok(),
            other => other.and_then(Value::as_u64),
        };
        Ok(TokenGrant {
            access_token: Secret::new(access_token),
            lifetime: lifetime.map_or(DEFAULT_LIFETIME, Duration::from_secs),
            refresh_token: text("refresh_token").map(Secret::new),
        })
    }
}

fn form(parameters: &[(&str, &str)]) -> String {
    let pairs = parameters
        .iter()
        .map(|(name, value)| format!("{name}={}", percent::encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn address(field: &str, text: &str) -> Result<(), ConnectorConfigError> {
    require(field, text)?;
    let text = text.trim();
    if (text.starts_with("https://") || text.starts_with("http://")) && !text.contains(char::is_whitespace) {
        Ok(())
    } else {
        Err(ConnectorConfigError::new(
            field,
            "must be an address that begins with https:// or http://",
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_are_sent_where_they_allow_access() {
        let mut settings = json!({
            "enableOauth2": "true", "clientId": "fieldline", "authUri": "https://mail.example.org/auth?prompt=consent", "scope": ["a/b", "c"],
            "tokenUri": "https://mail.example.org/token", "redirectUri": "https://iot.example.org/code",
        });
        let access = MailOauth2Config::from_json(&settings).unwrap();
        assert_eq!(
            access.consent_url("s&t").unwrap(),
            "https://mail.example.org/auth?prompt=consent&client_id=fieldline&redirect_uri=https%3A%2F%2F\
             iot.example.org%2Fcode&response_type=code&scope=a%2Fb%20c&state=s%26t"
        );
        settings["redirectUri"] = json!("");
        let access = MailOauth2Config::from_json(&settings).unwrap();
        assert_eq!(access.consent_url("s").unwrap_err().field(), "redirectUri");
        settings["tokenUri"] = json!("file:///etc/passwd");
        assert_eq!(
            MailOauth2Config::from_json(&settings).unwrap_err().field(),
            "tokenUri"
        );
        settings["enableOauth2"] = json!("false");
        assert!(!MailOauth2Config::from_json(&settings).unwrap().enable_oauth2);
    }
}
