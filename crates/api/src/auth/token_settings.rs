//! Token settings: the signing key, the lifetimes and the issuer.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_core::ports::{SettingsStore, StoreResult};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tokens::TokenKey;
use crate::error::{ApiError, ApiResult};

/// Key under which the settings are stored.
pub(crate) const JWT: &str = "jwt";
const MIN_ACCESS_SECONDS: i64 = 60;
const MIN_REFRESH_SECONDS: i64 = 15 * 60;
/// Longest issuer, bytes: every token contains it.
const MAX_ISSUER: usize = 255;

/// Token settings, as the system administrator has set them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
#[schema(as = JwtSettings)]
pub struct TokenSettings {
    /// Lifetime of an access token in seconds, at least 60.
    token_expiration_time: i64,
    /// Lifetime of a refresh token in seconds, at least 900.
    refresh_token_exp_time: i64,
    /// Issuer of the tokens.
    token_issuer: String,
    /// The signing key, at least 64 bytes in base64; never returned.
    #[serde(skip_serializing)]
    token_signing_key: Option<String>,
}

impl TokenSettings {
    /// Returns the settings including the key, for the store alone.
    pub(crate) fn with_key(&self) -> Value {
        json!({
            "tokenExpirationTime": self.token_expiration_time,
            "refreshTokenExpTime": self.refresh_token_exp_time,
            "tokenIssuer": self.token_issuer,
            "tokenSigningKey": self.token_signing_key,
        })
    }
}

/// Returns the saved settings, if any.
///
/// # Errors
/// The store failed. Settings that cannot be parsed count as absent, so that the program starts.
pub async fn stored_token_settings(settings: &dyn SettingsStore) -> StoreResult<Option<TokenSettings>> {
    let stored = settings.admin(JWT).await?;
    Ok(stored.and_then(|stored| serde_json::from_value(stored.json_value).ok()))
}

/// Signs and verifies tokens with one set of settings.
pub(crate) struct TokenSigner {
    pub(super) encoding: EncodingKey,
    pub(super) decoding: DecodingKey,
    pub(super) validation: Validation,
    pub(super) access_seconds: i64,
    pub(super) refresh_seconds: i64,
    pub(super) issuer: String,
    key: Arc<[u8]>,
}

/// Checked token settings, ready to be stored and used.
pub(crate) struct PreparedTokens {
    /// The settings to store.
    pub(crate) settings: TokenSettings,
    /// The signer for [`TokenIssuer::replace`](super::TokenIssuer::replace).
    pub(crate) signer: TokenSigner,
}

impl TokenSigner {
    pub(super) fn new(key: Arc<[u8]>, issuer: &str, access_seconds: i64, refresh_seconds: i64) -> Self {
        let mut validation = Validation::new(Algorithm::HS512);
        validation.set_issuer(&[issuer]);
        // The expiry is checked against the injected clock instead.
        validation.validate_exp = false;
        Self {
            encoding: EncodingKey::from_secret(&key),
            decoding: DecodingKey::from_secret(&key),
            validation,
            access_seconds,
            refresh_seconds,
            issuer: issuer.to_owned(),
            key,
        }
    }

    pub(super) fn settings(&self) -> TokenSettings {
        TokenSettings {
            token_expiration_time: self.access_seconds,
            refresh_token_exp_time: self.refresh_seconds,
            token_issuer: self.issuer.clone(),
            token_signing_key: None,
        }
    }

    /// Checks new settings and builds their signer.
    pub(super) fn with_settings(&self, settings: TokenSettings) -> ApiResult<PreparedTokens> {
        let invalid = |message: &str| Err(ApiError::bad_request(message));
        let issuer = settings.token_issuer.trim();
        if issuer.is_empty() || issuer.len() > MAX_ISSUER {
            return invalid("JWT token issuer should be specified!");
        }
        let (access, refresh) = (settings.token_expiration_time, settings.refresh_token_exp_time);
        if refresh < MIN_REFRESH_SECONDS {
            return invalid("JWT refresh token expiration time should be at least 15 minutes!");
        }
        if access < MIN_ACCESS_SECONDS {
            return invalid("JWT token expiration time should be at least 1 minute!");
        }
        if access >= refresh {
            return invalid(
                "JWT token expiration time should be less than JWT refresh token expiration time!",
            );
        }
        let given = settings
            .token_signing_key
            .as_deref()
            .filter(|key| !key.is_empty());
        let key = match given {
            None => Arc::clone(&self.key),
            Some(text) => {
                let Ok(bytes) = STANDARD.decode(text.trim()) else {
                    return invalid("JWT token signing key should be a valid Base64 encoded string!");
                };
                match TokenKey::from_bytes(&bytes) {
                    Ok(key) => key.bytes(),
                    Err(_) => {
                        return invalid(
                            "JWT token signing key should be a Base64 encoded string representing at least 512 bits \
                             of data!",
                        );
                    }
                }
            }
        };
        Ok(PreparedTokens {
            settings: TokenSettings {
                token_issuer: issuer.to_owned(),
                token_signing_key: Some(STANDARD.encode(&key)),
                ..settings.clone()
            },
            signer: Self::new(key, issuer, access, refresh),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(access: i64, refresh: i64, issuer: &str, key: Option<&str>) -> TokenSettings {
        TokenSettings {
            token_expiration_time: access,
            refresh_token_exp_time: refresh,
            token_issuer: issuer.to_owned(),
            token_signing_key: key.map(str::to_owned),
        }
    }

    #[test]
    fn settings_that_would_lock_everybody_out_are_refused() {
        let signer = TokenSigner::new(Arc::from([7; 64]), "a", 9_000, 604_800);
        for wrong in [
            settings(59, 900, "a", None),
            settings(60, 899, "a", None),
            settings(900, 900, "a", None),
            settings(60, 900, " ", None),
            settings(60, 900, "a", Some("not base64!")),
            settings(60, 900, "a", Some("c2hvcnQ=")),
        ] {
            assert!(signer.with_settings(wrong).is_err());
        }
        let prepared = signer.with_settings(settings(60, 900, "b", None)).unwrap();
        let (stored, changed) = (prepared.settings, prepared.signer);
        assert_eq!(changed.key, signer.key, "a key that is left out stays");
        assert_eq!(stored.with_key()["tokenSigningKey"], STANDARD.encode([7; 64]));
        let shown = serde_json::to_value(stored).unwrap();
        assert!(shown.get("tokenSigningKey").is_none());
        let other = STANDARD.encode([8; 64]);
        let prepared = signer
            .with_settings(settings(60, 900, "b", Some(&other)))
            .unwrap();
        assert_eq!(*prepared.signer.key, [8; 64]);
    }
}
