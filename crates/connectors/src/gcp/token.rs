//! Access tokens for service accounts (RFC 7523).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::config::ConnectorConfigError;
use crate::egress::HttpClient;
use crate::http;
use crate::percent;
use crate::secret::Secret;

/// The scope of all services.
pub(crate) const CLOUD_PLATFORM: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How long a token is asked for.
const LIFETIME_SECS: i64 = 3600;
/// A token is renewed so long before it expires.
const MARGIN: Duration = Duration::from_secs(120);

/// The file that Google hands out for a service account.
#[derive(Deserialize)]
struct ServiceAccountKey {
    client_email: String,
    private_key: Secret,
    #[serde(default)]
    private_key_id: String,
    #[serde(default = "default_token_uri")]
    token_uri: String,
}

fn default_token_uri() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

/// Why there is no token.
#[derive(Debug)]
pub(crate) struct TokenError {
    pub(crate) message: String,
    /// The same request may succeed later.
    pub(crate) is_transient: bool,
}

/// Gets tokens of a service account, and keeps the one that is valid.
pub(crate) struct TokenSource {
    client_email: String,
    private_key_id: String,
    token_uri: String,
    key: RsaKeyPair,
    scope: &'static str,
    current: Mutex<Option<(Secret, Instant)>>,
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSource")
            .field("client_email", &self.client_email)
            .finish_non_exhaustive()
    }
}

impl TokenSource {
    /// Reads the key file of a service account; `field` names it in errors.
    pub(crate) fn new(
        field: &str,
        key_file: &Secret,
        scope: &'static str,
    ) -> Result<Self, ConnectorConfigError> {
        let wrong = |problem: &str| ConnectorConfigError::new(field, problem);
        let file: ServiceAccountKey = serde_json::from_str(key_file.expose())
            .map_err(|_| wrong("must be the key file of a service account, in JSON"))?;
        let der = PrivateKeyDer::from_pem_slice(file.private_key.expose().as_bytes())
            .map_err(|_| wrong("has no private key in PEM"))?;
        let key = match &der {
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
            _ => return Err(wrong("has a private key that is not RSA")),
        }
        .map_err(|_| wrong("has a private key that is not a valid RSA key"))?;
        Ok(Self {
            client_email: file.client_email,
            private_key_id: file.private_key_id,
            token_uri: file.token_uri,
            key,
            scope,
            current: Mutex::new(None),
        })
    }

    /// Returns a valid token, a new one if there is none.
    pub(crate) async fn token(&self, client: &HttpClient) -> Result<Secret, TokenError> {
        let mut current = self.current.lock().await;
        if let Some((token, renewal)) = current.as_ref()
            && Instant::now() < *renewal
        {
            return Ok(token.clone());
        }
        let (token, lifetime) = self.fetch(client).await?;
        *current = Some((token.clone(), Instant::now() + lifetime.saturating_sub(MARGIN)));
        Ok(token)
    }

    /// Forgets a token that the service has refused.
    pub(crate) async fn invalidate(&self, refused: &Secret) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|(token, _)| token == refused) {
            *current = None;
        }
    }

    async fn fetch(&self, client: &HttpClient) -> Result<(Secret, Duration), TokenError> {
        let failed = |passing: bool, reason: &str| TokenError {
            message: format!("no access token: {reason}"),
            is_transient: passing,
        };
        let assertion = self
            .assertion(chrono::Utc::now().timestamp())
            .map_err(|error| failed(false, &error))?;
        let grant = percent::encode("urn:ietf:params:oauth:grant-type:jwt-bearer");
        let request = client
            .post(&self.token_uri)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("grant_type={grant}&assertion={assertion}"));
        let answer = http::exchange(client, request)
            .await
            .map_err(|error| failed(true, &error))?;
        let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        match text("access_token") {
            Some(token) if answer.status.is_success() => {
                let lifetime = body.get("expires_in").and_then(Value::as_u64).unwrap_or(3600);
                Ok((Secret::new(token), Duration::from_secs(lifetime)))
            }
            _ => {
                let reason = text("error_description").or(text("error"));
                Err(failed(
                    answer.status.is_server_error(),
                    reason.unwrap_or(answer.status.as_str()),
                ))
            }
        }
    }

    /// Signs who asks, and for what.
    fn assertion(&self, now: i64) -> Result<String, String> {
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.private_key_id});
        let claims = json!({
            "iss": self.client_email,
            "scope": self.scope,
            "aud": self.token_uri,
            "iat": now,
            "exp": now + LIFETIME_SECS,
        });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                signed.as_bytes(),
                &mut signature,
            )
            .map_err(|_| "the private key does not sign".to_owned())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
