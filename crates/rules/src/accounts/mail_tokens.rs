//! Access tokens of the mail account in the settings, requested when they are needed and cached while they are valid.

use std::sync::Arc;
use std::time::Duration;

use fieldline_connectors::mail::{MailOauth2Config, TokenGrant};
use fieldline_connectors::{ConnectorConfig as _, Secret};
use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{SettingsStore, StoreResult};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};

const MAIL: &str = "mail";
/// A token is renewed this long before it expires, or after half of its lifetime if that is later.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);
/// Pause after a provider gave no token before it is asked again.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Provider whose refresh tokens (Microsoft's) are valid for 90 days; each use of one returns a new one.
const OFFICE_365: &str = "OFFICE_365";
const DAY_MS: i64 = 86_400_000;
const REFRESH_TOKEN_MS: i64 = 90 * DAY_MS;
/// Remaining lifetime at which a refresh token is renewed, whether or not mails are sent.
const RENEWAL_MS: i64 = 7 * DAY_MS;
const CHECK_INTERVAL: Duration = Duration::from_secs(6 * 3_600);

/// A cache of the mail account's access token; see the module.
pub struct MailTokenCache {
    settings: Arc<dyn SettingsStore>,
    clock: SharedClock,
    /// Locked while a token is requested, so that only one request runs at a time.
    current: Mutex<Option<CachedMailToken>>,
}

/// The last answer of a provider.
struct CachedMailToken {
    /// The settings of the request, and the same settings with the refresh token of its answer: concurrent mails may
    /// have read the former.
    of: [MailOauth2Config; 2],
    token: Result<Secret, String>,
    until: Instant,
}

impl MailTokenCache {
    /// A cache of tokens for the account in these settings.
    pub fn new(settings: Arc<dyn SettingsStore>, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            settings,
            clock,
            current: Mutex::new(None),
        })
    }

    /// Returns the mail server's settings, with an access token in place of the password if they use OAuth 2.
    ///
    /// # Errors
    /// There is no token; the text says why, without secrets.
    pub(super) async fn with_password(&self, server: &Value) -> Result<Value, String> {
        let mut server = server.clone();
        if matches!(server.get("enableOauth2"), None | Some(Value::Bool(false))) {
            return Ok(server);
        }
        let access = MailOauth2Config::from_json(&server).map_err(|error| error.to_string())?;
        if access.enable_oauth2 {
            let token = self.token(access).await?;
            if let Some(fields) = server.as_object_mut() {
                fields.insert("password".to_owned(), token.expose().into());
            }
        }
        Ok(server)
    }

    async fn token(&self, access: MailOauth2Config) -> Result<Secret, String> {
        if access.refresh_token.is_empty() {
            return Err("Refresh token was not generated. Please, generate refresh token.".to_owned());
        }
        let mut current = self.current.lock().await;
        if let Some(known) = &*current
            && known.of.contains(&access)
            && Instant::now() < known.until
        {
            return known.token.clone();
        }
        self.request_token(access, &mut current).await
    }

    /// Requests a token for the account in the settings.
    async fn request_token(
        &self,
        access: MailOauth2Config,
        current: &mut Option<CachedMailToken>,
    ) -> Result<Secret, String> {
        // A newer refresh token counts even if it could not be stored.
        let mut next = match &*current {
            Some(CachedMailToken { of, .. }) if of.contains(&access) => of[1].clone(),
            _ => access.clone(),
        };
        let (token, lifetime) = match next.refresh().await {
            Ok(grant) => {
                self.store_refresh_token([&access, &next], &grant).await;
                if let Some(newer) = grant.refresh_token {
                    next.refresh_token = newer;
                }
                let margin = EXPIRY_MARGIN.min(grant.lifetime / 2);
                (Ok(grant.access_token), grant.lifetime - margin)
            }
            Err(error) => (Err(error), RETRY_DELAY),
        };
        *current = Some(CachedMailToken {
            of: [access, next],
            token: token.clone(),
            until: Instant::now() + lifetime.min(Duration::from_secs(86_400)),
        });
        token
    }

    /// Stores the refresh token that replaces the one just used (RFC 6749 §6), unless the settings name a different one
    /// by now.
    async fn store_refresh_token(&self, known: [&MailOauth2Config; 2], grant: &TokenGrant) {
        if let Some(newer) = &grant.refresh_token
            && let Err(error) = self.replace_refresh_token(known, newer).await
        {
            warn!(%error, "the refresh token of the mail account was not kept");
        }
    }

    async fn replace_refresh_token(&self, known: [&MailOauth2Config; 2], newer: &Secret) -> StoreResult<()> {
        loop {
            let Some(mut stored) = self.settings.admin(MAIL).await? else {
                return Ok(());
            };
            let read = stored.json_value.clone();
            let token = read.get("refreshToken").and_then(Value::as_str);
            let is_known = |token: &str| known.iter().any(|access| access.refresh_token.expose() == token);
            let Some(fields) = stored.json_value.as_object_mut() else {
                return Ok(());
            };
            if !token.is_some_and(is_known) {
                return Ok(());
            }
            fields.insert("refreshToken".to_owned(), newer.expose().into());
            if known[0].provider_id == OFFICE_365 {
                let expires = self.clock.now_ms() + REFRESH_TOKEN_MS;
                fields.insert("refreshTokenExpires".to_owned(), expires.into());
            }
            if self.settings.replace_admin(stored, &read).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Renews the refresh token before it expires, so that an account that sends nothing for months keeps its access.
    /// Never returns.
    pub async fn run_renewal(self: Arc<Self>) {
        let mut look = tokio::time::interval(CHECK_INTERVAL);
        loop {
            look.tick().await;
            if let Err(error) = self.renew_if_due().await {
                warn!(error, "the refresh token of the mail account was not renewed");
            }
        }
    }

    pub(super) async fn renew_if_due(&self) -> Result<(), String> {
        // The settings are read under the lock: a token request that runs meanwhile may use up the refresh token.
        let mut current = self.current.lock().await;
        let stored = self.settings.admin(MAIL).await;
        let Some(stored) = stored.map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let server = stored.json_value;
        let expires = server.get("refreshTokenExpires").and_then(Value::as_i64);
        let is_due = expires.is_some_and(|expires| expires - self.clock.now_ms() < RENEWAL_MS);
        if !is_due {
            return Ok(());
        }
        let access = MailOauth2Config::from_json(&server).map_err(|error| error.to_string())?;
        if !access.enable_oauth2 || access.provider_id != OFFICE_365 || access.refresh_token.is_empty() {
            return Ok(());
        }
        info!("renewing the refresh token of the mail account");
        self.request_token(access, &mut current).await.map(|_| ())
    }
}
