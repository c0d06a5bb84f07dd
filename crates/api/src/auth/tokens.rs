//! Access and refresh tokens: JWTs signed with HS512, with the claims that clients of the API read.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_model::entity::{Authority, Customer, User};
use fieldline_model::{CustomerId, NULL_UUID, TenantId, UserId};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header};
use parking_lot::RwLock;
use rand::Rng as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::token_settings::{PreparedTokens, TokenSettings, TokenSigner};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::options::Options;

const ISSUER: &str = "thingsboard.io";
const REFRESH_SCOPE: &str = "REFRESH_TOKEN";
/// HS512 needs a key as long as its output.
const KEY_BYTES: usize = 64;

/// The key that signs tokens.
#[derive(Clone)]
pub struct TokenKey(Arc<[u8]>);

/// Why there is no usable key.
#[derive(Debug, thiserror::Error)]
pub enum TokenKeyError {
    /// The file could not be read or written.
    #[error("the token signing key cannot be read or written")]
    Io(#[from] io::Error),
    /// The content is not base64 or too short.
    #[error("the token signing key must be at least 64 bytes in base64")]
    Malformed,
}

impl TokenKey {
    /// Makes a key of these bytes.
    ///
    /// # Errors
    /// There are fewer than 64 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TokenKeyError> {
        if bytes.len() < KEY_BYTES {
            return Err(TokenKeyError::Malformed);
        }
        Ok(Self(bytes.into()))
    }

    pub(super) fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.0)
    }

    /// Generates a random key.
    pub fn random() -> Self {
        let mut bytes = [0; KEY_BYTES];
        rand::rng().fill(&mut bytes);
        Self(Arc::from(bytes))
    }

    /// Reads the base64 key of a file; the first start generates the key in a file that only the owner can read.
    ///
    /// # Errors
    /// See [`TokenKeyError`].
    pub fn load_or_create(path: &Path) -> Result<Self, TokenKeyError> {
        match fs::read_to_string(path) {
            Ok(text) => {
                let bytes = STANDARD.decode(text.trim());
                Self::from_bytes(&bytes.map_err(|_| TokenKeyError::Malformed)?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = Self::random();
                write_private(path, &STANDARD.encode(&key.0))?;
                Ok(key)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes the file whole or not at all: a crash must not leave half a key.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("key.part");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// A new pair of tokens.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JwtPair)]
pub(crate) struct TokenPair {
    /// Access token: authenticates the caller.
    token: String,
    /// Refresh token: can be exchanged for a new pair.
    refresh_token: String,
}

/// The ids of a session and of its refresh token.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenIds {
    pub(super) session: Uuid,
    pub(super) token: Uuid,
}

/// Time of issue, and the time before which tokens of the user are invalid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenTimes {
    pub(crate) now_ms: i64,
    pub(crate) valid_from_ms: i64,
}

impl TokenTimes {
    /// Time that the tokens carry, before it is cut to seconds: right after a change of password, tokens are valid only
    /// from the next full second on.
    pub(super) fn issued_ms(self) -> i64 {
        self.now_ms.max(self.valid_from_ms)
    }
}

/// A new pair with its expiry times.
pub(super) struct IssuedTokens {
    pub(super) pair: TokenPair,
    /// When the access token expires, milliseconds.
    pub(super) access_until: i64,
    /// When the refresh token expires, milliseconds.
    pub(super) until: i64,
}

/// Claims of an access token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccessClaims {
    sub: String,
    user_id: Uuid,
    scopes: Vec<String>,
    session_id: Uuid,
    exp: i64,
    iss: String,
    iat: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_name: Option<String>,
    enabled: bool,
    is_public: bool,
    tenant_id: Uuid,
    customer_id: Uuid,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefreshClaims {
    sub: String,
    user_id: Uuid,
    scopes: Vec<String>,
    session_id: Uuid,
    is_public: bool,
    jti: Uuid,
    iss: String,
    iat: i64,
    exp: i64,
}

/// The identity that a token of either kind carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenIdentity {
    /// The user; in a public session the id of the public customer.
    pub(crate) user: UserId,
    pub(crate) session: Uuid,
    /// Whether this is a public session, with the rights of the public customer.
    pub(crate) public: bool,
    /// When it was issued, seconds.
    pub(crate) issued: i64,
}

/// Issue time in seconds of the identity of an API key: a change of password ends sessions, but leaves keys valid.
pub(super) const ISSUED_BY_KEY: i64 = i64::MAX / 1_000;

impl TokenIdentity {
    /// Whether the identity belongs to an API key, which cannot be logged out.
    pub(super) const fn is_key(&self) -> bool {
        self.issued == ISSUED_BY_KEY
    }
}

/// The identity that a refresh token carries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefreshTokenIdentity {
    pub(crate) identity: TokenIdentity,
    /// Id of the token within its session.
    pub(super) token: Uuid,
}

impl AccessClaims {
    /// Returns the owner of the token, and when it was issued.
    pub(crate) fn identity(&self) -> TokenIdentity {
        TokenIdentity {
            user: UserId(if self.is_public {
                self.customer_id
            } else {
                self.user_id
            }),
            session: self.session_id,
            public: self.is_public,
            issued: self.iat,
        }
    }
}

/// Issues and verifies tokens.
pub(crate) struct TokenIssuer(RwLock<Arc<TokenSigner>>);

impl TokenIssuer {
    pub(crate) fn new(key: &TokenKey, options: &Options) -> Self {
        let seconds = |span: fieldline_core::options::HumanDuration| {
            i64::try_from(span.0.as_secs()).unwrap_or(i64::MAX)
        };
        let (access, refresh) = (
            seconds(options.access_token_ttl),
            seconds(options.refresh_token_ttl),
        );
        Self(RwLock::new(Arc::new(TokenSigner::new(
            key.bytes(),
            ISSUER,
            access,
            refresh,
        ))))
    }

    /// Applies the settings that the system administrator has saved.
    #[must_use]
    pub(crate) fn with_stored(self, stored: Option<TokenSettings>) -> Self {
        match stored.map(|stored| self.prepare(stored)) {
            Some(Ok(prepared)) => self.replace(prepared.signer),
            Some(Err(error)) => {
                tracing::warn!(
                    error = error.message(),
                    "the saved settings of tokens cannot be used"
                );
            }
            None => {}
        }
        self
    }

    /// Returns the current settings, without the key.
    pub(crate) fn settings(&self) -> TokenSettings {
        self.signer().settings()
    }

    /// Checks new settings; see [`Self::replace`].
    pub(crate) fn prepare(&self, settings: TokenSettings) -> ApiResult<PreparedTokens> {
        self.signer().with_settings(settings)
    }

    /// Uses new settings from now on.
    pub(crate) fn replace(&self, signer: TokenSigner) {
        *self.0.write() = Arc::new(signer);
    }

    fn signer(&self) -> Arc<TokenSigner> {
        Arc::clone(&self.0.read())
    }

    /// Returns the lifetime of an access token, milliseconds.
    pub(super) fn access_ms(&self) -> i64 {
        self.signer().access_seconds.saturating_mul(1_000)
    }

    /// Issues a new pair for a user.
    pub(super) fn issue(&self, user: &User, ids: TokenIds, times: TokenTimes) -> ApiResult<IssuedTokens> {
        let TokenIds { session, token } = ids;
        let signer = self.signer();
        let iat = times.issued_ms().div_euclid(1_000);
        let TenantId(tenant_id) = user.tenant_id;
        let CustomerId(customer_id) = user.customer_id;
        let is_public = is_public(user);
        let user_id = match is_public {
            true => NULL_UUID,
            false => user.id.0,
        };
        let access = AccessClaims {
            sub: user.email.clone(),
            user_id,
            scopes: vec![user.authority.name().to_owned()],
            session_id: session,
            exp: iat.saturating_add(signer.access_seconds),
            iss: signer.issuer.clone(),
            iat,
            first_name: user.first_name.clone(),
            last_name: user.last_name.clone(),
            enabled: true,
            is_public,
            tenant_id,
            customer_id,
        };
        let refresh = RefreshClaims {
            sub: user.email.clone(),
            user_id,
            scopes: vec![REFRESH_SCOPE.to_owned()],
            session_id: session,
            is_public,
            jti: token,
            iss: signer.issuer.clone(),
            iat,
            exp: iat.saturating_add(signer.refresh_seconds),
        };
        Ok(IssuedTokens {
            pair: TokenPair {
                token: sign(&signer, &access)?,
                refresh_token: sign(&signer, &refresh)?,
            },
            access_until: access.exp.saturating_mul(1_000),
            until: refresh.exp.saturating_mul(1_000),
        })
    }

    /// Returns the claims of an access token that is signed with our key and has not expired.
    pub(crate) fn read_access(&self, token: &str, now_ms: i64) -> ApiResult<AccessClaims> {
        let claims: AccessClaims = self.read(token)?;
        check_expiry(claims.exp, now_ms)?;
        let scoped = |scope: &String| Authority::from_name(scope).is_some();
        if claims.scopes.iter().any(scoped) {
            Ok(claims)
        } else {
            Err(ApiError::unauthenticated())
        }
    }

    /// Returns the identity of a refresh token that is signed with our key and has not expired.
    pub(crate) fn read_refresh(&self, token: &str, now_ms: i64) -> ApiResult<RefreshTokenIdentity> {
        let claims: RefreshClaims = self.read(token)?;
        check_expiry(claims.exp, now_ms)?;
        if !claims.scopes.iter().any(|scope| scope == REFRESH_SCOPE) {
            return Err(ApiError::unauthenticated());
        }
        // The subject of a public session is the id of its customer.
        let user = match claims.is_public {
            true => Uuid::from_str(&claims.sub).map_err(|_| ApiError::unauthenticated())?,
            false => claims.user_id,
        };
        let ticket = TokenIdentity {
            user: UserId(user),
            session: claims.session_id,
            public: claims.is_public,
            issued: claims.iat,
        };
        Ok(RefreshTokenIdentity {
            identity: ticket,
            token: claims.jti,
        })
    }

    fn read<T: DeserializeOwned>(&self, token: &str) -> ApiResult<T> {
        let signer = self.signer();
        jsonwebtoken::decode(token, &signer.decoding, &signer.validation)
            .map(|data| data.claims)
            .map_err(|error| match error.kind() {
                ErrorKind::InvalidSignature => outdated(),
                _ => ApiError::unauthenticated(),
            })
    }
}

fn sign(signer: &TokenSigner, claims: &impl Serialize) -> ApiResult<String> {
    jsonwebtoken::encode(&Header::new(Algorithm::HS512), claims, &signer.encoding)
        .map_err(|_| ApiError::new(ErrorCode::General, "The token could not be signed"))
}

/// Returns the stand-in user of public sessions: it has the id of the public customer.
pub(super) fn public_user(customer: &Customer) -> User {
    let id = customer.id;
    User {
        id: UserId(id.0),
        tenant_id: customer.tenant_id,
        customer_id: id,
        email: id.to_string(),
        name: id.to_string(),
        authority: Authority::CustomerUser,
        first_name: Some("Public".to_owned()),
        last_name: Some("Public".to_owned()),
        ..User::default()
    }
}

pub(super) fn is_public(user: &User) -> bool {
    !user.customer_id.is_null() && user.id.0 == user.customer_id.0
}

/// Returns the error for a token that is no longer valid: clients react by refreshing or logging in again.
pub(crate) fn outdated() -> ApiError {
    ApiError::new(ErrorCode::JwtTokenExpired, "Token has expired")
}

fn check_expiry(exp: i64, now_ms: i64) -> ApiResult<()> {
    if now_ms.div_euclid(1_000) < exp {
        Ok(())
    } else {
        Err(outdated())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn user() -> User {
        User {
            id: UserId(Uuid::from_u128(7)),
            email: "sysadmin@thingsboard.org".to_owned(),
            authority: Authority::SysAdmin,
            first_name: Some("Ada".to_owned()),
            ..User::default()
        }
    }

    fn claims(token: &str) -> Value {
        let body = token.split('.').nth(1).unwrap();
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(body)
            .unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn times(now_ms: i64) -> TokenTimes {
        let valid_from_ms = 0;
        TokenTimes {
            now_ms,
            valid_from_ms,
        }
    }

    #[test]
    fn tokens_carry_the_claims_that_clients_read() {
        let tokens = TokenIssuer::new(&TokenKey::random(), &Options::default());
        let ids = TokenIds {
            session: Uuid::from_u128(9),
            token: Uuid::from_u128(8),
        };
        let issued = tokens.issue(&user(), ids, times(1_700_000_000_500)).unwrap();
        assert_eq!(issued.access_until, 1_700_009_000_000);
        let pair = issued.pair;
        let access = claims(&pair.token);
        assert_eq!(access["sub"], "sysadmin@thingsboard.org");
        assert_eq!(access["scopes"], serde_json::json!(["SYS_ADMIN"]));
        assert_eq!(access["tenantId"], NULL_UUID.to_string());
        assert_eq!(access["iss"], "thingsboard.io");
        assert_eq!(access["firstName"], "Ada");
        assert_eq!(
            access["exp"].as_i64().unwrap() - access["iat"].as_i64().unwrap(),
            9_000
        );
        let refresh = claims(&pair.refresh_token);
        assert_eq!(refresh["scopes"], serde_json::json!(["REFRESH_TOKEN"]));
        assert_eq!(refresh["sessionId"], access["sessionId"]);
        assert_eq!(
            refresh["exp"].as_i64().unwrap() - refresh["iat"].as_i64().unwrap(),
            604_800
        );
    }

    #[test]
    fn a_token_counts_until_it_expires_and_only_for_what_it_is() {
        let tokens = TokenIssuer::new(&TokenKey::random(), &Options::default());
        let ids = TokenIds {
            session: Uuid::from_u128(9),
            token: Uuid::from_u128(8),
        };
        let pair = tokens.issue(&user(), ids, times(0)).unwrap().pair;
        assert!(tokens.read_access(&pair.token, 8_999_999).is_ok());
        assert!(tokens.read_access(&pair.token, 9_000_000).is_err());
        assert!(tokens.read_refresh(&pair.refresh_token, 9_000_000).is_ok());
        assert!(tokens.read_refresh(&pair.token, 0).is_err());
        assert!(tokens.read_access(&pair.refresh_token, 0).is_err());
        let other = TokenIssuer::new(&TokenKey::random(), &Options::default());
        assert!(other.read_access(&pair.token, 0).is_err());
    }

    #[test]
    fn the_key_is_made_once_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jwt.key");
        let first = TokenKey::load_or_create(&path).unwrap();
        let second = TokenKey::load_or_create(&path).unwrap();
        assert_eq!(first.0, second.0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&path, "c2hvcnQ=").unwrap();
        assert!(matches!(
            TokenKey::load_or_create(&path),
            Err(TokenKeyError::Malformed)
        ));
    }
}
