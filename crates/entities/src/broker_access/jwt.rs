//! Tokens: clients that show a signed JWT as their password.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldline_core::ports::{ClientGrant, RestEndpoints};
use fieldline_model::entity::{MqttClientType, null_as_default};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::key_sets::{KeySet, KeySetConfiguration};
use super::login::ClientLogin;
use super::rules::CompiledRules;
use super::token_keys::{VerifyingKey, header_of};
use super::values::{TopicRuleLists, check_rules};
use crate::services::{ServiceError, ServiceResult};

/// Least bytes of a secret.
const LEAST_SECRET: usize = 32;
/// Most claims that are compared.
const MOST_CLAIMS: usize = 50;
/// Stand for what a client says with its CONNECT, in the value that is expected of a claim.
const USERNAME: &str = "${username}";
const CLIENT_ID: &str = "${clientId}";

/// Settings of `JWT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct JwtConfiguration {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) default_client_type: MqttClientType,
    pub(super) jwt_verifier_configuration: JwtVerifierConfiguration,
    /// Claims and what they have to be.
    #[serde(deserialize_with = "null_as_default")]
    pub(super) auth_claims: BTreeMap<String, String>,
    /// Claims that make a client one of the other type, if all of them are so.
    #[serde(deserialize_with = "null_as_default")]
    pub(super) client_type_claims: BTreeMap<String, String>,
    /// The topics of a client whose token names none.
    pub(super) auth_rules: Option<TopicRuleLists>,
    /// The claim with the expressions of topics to publish on.
    pub(super) pub_auth_rule_claim: Option<String>,
    /// The claim with the expressions of filters to subscribe to.
    pub(super) sub_auth_rule_claim: Option<String>,
}

/// What the signature of a token is checked with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "jwtVerifierType", rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum JwtVerifierConfiguration {
    /// One key.
    #[serde(rename_all = "camelCase")]
    AlgorithmBased {
        jwt_sign_algorithm_configuration: SignatureConfiguration,
    },
    /// The keys that a server publishes.
    Jwks(KeySetConfiguration),
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum SignatureConfiguration {
    /// A secret that whoever signs has, too.
    HmacBased {
        #[serde(default)]
        secret: Option<String>,
    },
    /// A public key, or a certificate, of RSA, an elliptic curve or Ed25519.
    #[serde(rename_all = "camelCase")]
    PemKey {
        #[serde(default)]
        public_pem_key: Option<String>,
        #[serde(default)]
        public_pem_key_file_name: Option<String>,
    },
}

impl Default for JwtConfiguration {
    fn default() -> Self {
        Self {
            default_client_type: MqttClientType::Device,
            jwt_verifier_configuration: JwtVerifierConfiguration::AlgorithmBased {
                jwt_sign_algorithm_configuration: SignatureConfiguration::HmacBased { secret: None },
            },
            auth_claims: BTreeMap::new(),
            client_type_claims: BTreeMap::new(),
            auth_rules: Some(TopicRuleLists::everything()),
            pub_auth_rule_claim: None,
            sub_auth_rule_claim: None,
        }
    }
}

fn invalid(message: impl Into<String>) -> ServiceError {
    ServiceError::invalid(message)
}

fn is_blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

impl JwtConfiguration {
    /// Checks settings before they are stored.
    pub(super) fn check(&self) -> ServiceResult<()> {
        check_rules(self.auth_rules.as_ref(), None)?;
        if self.auth_claims.len() + self.client_type_claims.len() > MOST_CLAIMS {
            return Err(invalid(format!("There may be {MOST_CLAIMS} claims at most!")));
        }
        match &self.jwt_verifier_configuration {
            JwtVerifierConfiguration::Jwks(key_set) => key_set.check(),
            JwtVerifierConfiguration::AlgorithmBased {
                jwt_sign_algorithm_configuration: signature,
            } => signature.check(),
        }
    }

    /// Takes the secrets of other settings where these have none: people do not see them, and send what they see.
    pub(super) fn keep_secrets(&mut self, before: &Self) {
        match (
            &mut self.jwt_verifier_configuration,
            &before.jwt_verifier_configuration,
        ) {
            (
                JwtVerifierConfiguration::AlgorithmBased {
                    jwt_sign_algorithm_configuration: SignatureConfiguration::HmacBased { secret },
                },
                JwtVerifierConfiguration::AlgorithmBased {
                    jwt_sign_algorithm_configuration: SignatureConfiguration::HmacBased { secret: kept },
                },
            ) if is_blank(secret.as_deref()) => secret.clone_from(kept),
            (JwtVerifierConfiguration::Jwks(new), JwtVerifierConfiguration::Jwks(kept)) => {
                new.keep_secrets(kept);
            }
            _ => {}
        }
    }

    /// The settings without secrets.
    pub(super) fn shown(mut self) -> Self {
        match &mut self.jwt_verifier_configuration {
            JwtVerifierConfiguration::AlgorithmBased {
                jwt_sign_algorithm_configuration: SignatureConfiguration::HmacBased { secret },
            } => *secret = None,
            JwtVerifierConfiguration::AlgorithmBased { .. } => {}
            JwtVerifierConfiguration::Jwks(key_set) => key_set.hide_secrets(),
        }
        self
    }
}

impl SignatureConfiguration {
    fn check(&self) -> ServiceResult<()> {
        match self {
            Self::HmacBased { secret } => {
                let secret = secret.as_deref().unwrap_or_default();
                if secret.trim().is_empty() {
                    return Err(invalid("Secret should be specified!"));
                }
                if secret.len() < LEAST_SECRET {
                    return Err(invalid(format!(
                        "Secret must be at least {LEAST_SECRET} bytes long!"
                    )));
                }
            }
            Self::PemKey {
                public_pem_key,
                public_pem_key_file_name,
            } => {
                if is_blank(public_pem_key_file_name.as_deref()) {
                    return Err(invalid("Public key file name should be specified!"));
                }
                if is_blank(public_pem_key.as_deref()) {
                    return Err(invalid("Public key should be specified!"));
                }
            }
        }
        self.key().map(drop).map_err(invalid)
    }

    fn key(&self) -> Result<VerifyingKey, String> {
        match self {
            Self::HmacBased { secret } => {
                let secret = secret.as_deref().unwrap_or_default();
                if secret.len() < LEAST_SECRET {
                    return Err("No secret is set".to_owned());
                }
                Ok(VerifyingKey::of_secret(secret))
            }
            Self::PemKey { public_pem_key, .. } => {
                VerifyingKey::of_pem(public_pem_key.as_deref().unwrap_or_default())
            }
        }
    }
}

/// Why a token lets nobody in.
pub(super) enum TokenError {
    /// It is none, or not for this broker.
    Refused(String),
    /// It cannot be checked now.
    NoKeys(String),
}

/// What the signature of a token is checked with.
enum TokenKeys {
    One(VerifyingKey),
    Published(KeySet),
}

/// The settings, ready to check tokens.
pub(super) struct JwtVerifier {
    keys: TokenKeys,
    configuration: JwtConfiguration,
    rules: Arc<CompiledRules>,
}

impl JwtVerifier {
    /// Reads the keys. Those that `last` has fetched from the same place stay.
    ///
    /// # Errors
    /// Why no token can be checked.
    pub(super) fn new(
        configuration: &JwtConfiguration,
        last: Option<&Self>,
        endpoints: &dyn RestEndpoints,
    ) -> Result<Self, String> {
        let keys = match &configuration.jwt_verifier_configuration {
            JwtVerifierConfiguration::AlgorithmBased {
                jwt_sign_algorithm_configuration: signature,
            } => TokenKeys::One(signature.key()?),
            JwtVerifierConfiguration::Jwks(key_set) => {
                let kept = last.and_then(|last| last.key_set(key_set));
                let keys = match kept {
                    Some(kept) => kept.clone(),
                    None => KeySet::new(key_set, endpoints)?,
                };
                TokenKeys::Published(keys)
            }
        };
        let lists = configuration.auth_rules.clone().unwrap_or_default();
        Ok(Self {
            keys,
            rules: Arc::new(CompiledRules::new(&[&lists], None)?),
            configuration: configuration.clone(),
        })
    }

    /// The keys that are published at a place, if that is where these are from.
    fn key_set(&self, place: &KeySetConfiguration) -> Option<&KeySet> {
        match (&self.configuration.jwt_verifier_configuration, &self.keys) {
            (JwtVerifierConfiguration::Jwks(own), TokenKeys::Published(keys)) if own == place => Some(keys),
            _ => None,
        }
    }

    /// What a client may do, or why its token says nothing.
    pub(super) async fn grant(
        &self,
        login: &ClientLogin<'_>,
        now_ms: i64,
    ) -> Result<ClientGrant, TokenError> {
        let refused = |what: &str| TokenError::Refused(format!("JWT authentication failed: {what}"));
        let password = login.password.ok_or_else(|| refused("no password"))?;
        let token = std::str::from_utf8(password).map_err(|_| refused("no token"))?;
        let header = header_of(token).map_err(refused)?;
        let claims = match &self.keys {
            TokenKeys::One(key) => key.claims(token, header.alg).map_err(TokenError::Refused)?,
            TokenKeys::Published(keys) => keys.claims(token, &header, now_ms).await?,
        };
        self.grant_of(&claims, login).map_err(TokenError::Refused)
    }

    fn grant_of(&self, claims: &Map<String, Value>, login: &ClientLogin<'_>) -> Result<ClientGrant, String> {
        let configuration = &self.configuration;
        for (name, expected) in &configuration.auth_claims {
            let expected = match expected.as_str() {
                USERNAME => login.username,
                CLIENT_ID => Some(login.client_id),
                literal => Some(literal),
            };
            // Nobody is let in by a claim that is not there.
            if expected.is_none() || text_of(claims.get(name)).as_deref() != expected {
                return Err(format!("JWT claim '{name}' is not what it has to be"));
            }
        }
        let flips = &configuration.client_type_claims;
        let is_other = !flips.is_empty()
            && flips
                .iter()
                .all(|(name, expected)| text_of(claims.get(name)).as_deref() == Some(expected));
        let client_type = match (configuration.default_client_type, is_other) {
            (MqttClientType::Device, true) => MqttClientType::Application,
            (MqttClientType::Application, true) => MqttClientType::Device,
            (kind, false) => kind,
        };
        Ok(ClientGrant {
            client_type: client_type.into(),
            rules: Some(self.rules_of(claims)?),
        })
    }

    /// The topics that a token names, each list for itself, or else those of the settings. A list that cannot be used is no reason
    /// to permit more than it.
    fn rules_of(&self, claims: &Map<String, Value>) -> Result<Arc<CompiledRules>, String> {
        let configuration = &self.configuration;
        let list = |name: &Option<String>| -> Result<Option<Vec<String>>, String> {
            let name = name.as_deref().filter(|name| !name.trim().is_empty());
            let Some((name, claim)) = name.and_then(|name| Some((name, claims.get(name)?))) else {
                return Ok(None);
            };
            let texts = claim.as_array().and_then(|list| {
                list.iter()
                    .map(|one| one.as_str().map(str::to_owned))
                    .collect::<Option<Vec<String>>>()
            });
            texts
                .map(Some)
                .ok_or_else(|| format!("JWT claim '{name}' is no list of expressions"))
        };
        let publish = list(&configuration.pub_auth_rule_claim)?;
        let subscribe = list(&configuration.sub_auth_rule_claim)?;
        if publish.is_none() && subscribe.is_none() {
            return Ok(self.rules.clone());
        }
        let own = configuration.auth_rules.clone().unwrap_or_default();
        let lists = TopicRuleLists {
            pub_auth_rule_patterns: publish.or(own.pub_auth_rule_patterns),
            sub_auth_rule_patterns: subscribe.or(own.sub_auth_rule_patterns),
        };
        check_rules(Some(&lists), None).map_err(|error| format!("JWT: {}", error.message()))?;
        Ok(Arc::new(CompiledRules::new(&[&lists], None)?))
    }
}

/// A claim as text; `None` for one that is none, such as a list.
fn text_of(claim: Option<&Value>) -> Option<String> {
    match claim? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
