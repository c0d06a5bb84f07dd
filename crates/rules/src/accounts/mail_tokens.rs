//! Access tokens of the mail account in the settings, bought when they are needed and kept while they count.

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
/// A token is renewed so long before it expires, or in the middle of its time if that is short.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);
/// How long a provider that gave no token is left alone.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Refresh tokens of Microsoft count 90 days, and each that is used gives another one.
const OFFICE_365: &str = "OFFICE_365";
const DAY_MS: i64 = 86_400_000;
const REFRESH_TOKEN_MS: i64 = 90 * DAY_MS;
/// How long before its end a refresh token is used, whether mails are sent or not.
const RENEWAL_MS: i64 = 7 * DAY_MS;
const CHECK_INTERVAL: Duration = Duration::from_secs(6 * 3_600);

/// See the module.
pub struct MailTokenCache {
    settings: Arc<dyn SettingsStore>,
    clock: SharedClock,
    /// Held while a token is bought, so that only one is.
    current: Mutex<Option<CachedMailToken>>,
}

/// The last answer of a provider.
struct CachedMailToken {
    /// The settings that it was asked with, and those with the refresh token that it gave: mails that go out at the same time
    /// have read the former.
    of: [MailOauth2Config; 2],
    token: Result<Secret, String>,
    until: Instant,
}

impl MailTokenCache {
    /// Tokens for the account of these settings.
    pub fn new(settings: Arc<dyn SettingsStore>, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            settings,
            clock,
            current: Mutex::new(None),
        })
    }

    /// Settings of a mail server with an access token in the place of the password, where they ask for one.
    ///
    /// # Errors
    /// Why there is none, without secrets.
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

    /// Buys a token for the account as the settings have it.
    async fn request_token(
        &self,
        access: MailOauth2Config,
        current: &mut Option<CachedMailToken>,
    ) -> Result<Secret, String> {
        // A refresh token that could not be stored is the one that counts all the same.
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

    /// Stores a refresh token that takes the place of the one that was used (RFC 6749 §6), unless the settings name
    /// another one by now.
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

    /// Uses the refresh token before it expires, so that an account from which nothing is sent for months stays open. Never
    /// ends.
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
        // What is read while another one buys a token may be used up by then.
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
