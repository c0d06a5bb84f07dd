//! Stored sessions of users: the current refresh token of each, and which sessions have ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use fieldline_core::clock::SharedClock;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{SignInStore, StoreErrorKind, StoreResult, TokenFamily};
use fieldline_model::UserId;
use quick_cache::sync::Cache;
use tokio::sync::OnceCell;
use tracing::warn;
use uuid::Uuid;

use super::TokenIdentity;
use super::tokens::{IssuedTokens, TokenIds};
use crate::error::ApiResult;

/// Most sessions of a user that can be refreshed; beyond that the least recently used one can no longer get new tokens.
const SESSIONS_OF_USER: u32 = 1_000;
/// Most ended sessions whose access tokens have not expired yet. Beyond that some are forgotten.
const ENDED_SESSIONS: u32 = 100_000;
/// How long a replaced refresh token still gets the token that replaced it: threads and tabs of one client refresh at
/// the same time.
pub(super) const GRACE_MS: i64 = 30_000;
/// Most replaced tokens of a session remembered within that time; older ones count as stolen.
pub(super) const REPLACED_TOKENS: usize = 16;
/// How often expired sessions are deleted.
const PURGE_INTERVAL: Duration = Duration::from_secs(600);
/// How long the addresses of a user's logins are remembered.
const SOURCES_MS: i64 = 180 * 86_400_000;

static STORE_GATE: LogGate = LogGate::new(2);

/// Returns the replaced tokens of a family, including its current one.
pub(super) fn replaced_by(family: &TokenFamily, now_ms: i64) -> Vec<(Uuid, i64)> {
    let mut replaced = family.replaced.clone();
    replaced.retain(|(_, at)| now_ms - at < GRACE_MS);
    replaced.push((family.current, now_ms));
    replaced.drain(..replaced.len().saturating_sub(REPLACED_TOKENS));
    replaced
}

/// Stored sessions; see the module.
pub(super) struct TokenFamilies {
    pub(super) store: Arc<dyn SignInStore>,
    ended: Cache<Uuid, ()>,
    /// Set once the sessions that ended before the start are loaded.
    loaded: OnceCell<()>,
}

impl TokenFamilies {
    /// Opens the sessions of a store, and starts the task that deletes expired ones.
    pub(super) fn start(store: Arc<dyn SignInStore>, clock: SharedClock) -> Arc<Self> {
        let families = Arc::new(Self {
            store,
            ended: Cache::new(ENDED_SESSIONS as usize),
            loaded: OnceCell::new(),
        });
        tokio::spawn(purge(Arc::downgrade(&families), clock));
        families
    }

    /// Whether a session was ended. The first call loads the sessions that ended before the start.
    pub(super) async fn has_ended(&self, session: Uuid, now_ms: i64) -> StoreResult<bool> {
        self.loaded.get_or_try_init(|| self.load(now_ms)).await?;
        Ok(self.ended.get(&session).is_some())
    }

    async fn load(&self, now_ms: i64) -> StoreResult<()> {
        for (session, _) in self.store.ended(now_ms, ENDED_SESSIONS).await? {
            self.ended.insert(session, ());
        }
        Ok(())
    }

    /// Stores the first tokens of a session, or replaces its previous ones. A full store must not prevent a login: the
    /// user who frees space has to log in first. The refresh token of a session that could not be stored gets no new
    /// tokens.
    pub(super) async fn open(
        &self,
        user: UserId,
        ids: TokenIds,
        before: Option<TokenFamily>,
        issued: &IssuedTokens,
        now_ms: i64,
    ) -> StoreResult<()> {
        let family = TokenFamily {
            session: ids.session,
            user,
            current: ids.token,
            replaced: before.map_or_else(Vec::new, |before| replaced_by(&before, now_ms)),
            used_at: now_ms,
            // A token from the end of the grace period lives longer by that period.
            access_until: issued.access_until.saturating_add(GRACE_MS),
            until: issued.until.saturating_add(GRACE_MS),
            ended_at: None,
        };
        match self.store.open(&family, SESSIONS_OF_USER).await {
            Err(error)
                if matches!(
                    error.kind(),
                    StoreErrorKind::DiskFull | StoreErrorKind::Unavailable
                ) =>
            {
                if let Some(suppressed) = STORE_GATE.open() {
                    warn!(%user, %error, suppressed, "cannot keep a session, which will end with its access token");
                }
                Ok(())
            }
            done => done,
        }
    }

    /// Ends the session of a token, whose access tokens expire by that time.
    pub(super) async fn end(&self, ticket: TokenIdentity, now_ms: i64, access_until: i64) -> ApiResult<()> {
        self.ended.insert(ticket.session, ());
        // Anyone can open a public session again, and a key cannot be logged out: there is nothing to store.
        if ticket.public || ticket.is_key() {
            return Ok(());
        }
        let access_until = access_until.saturating_add(GRACE_MS);
        if !self.store.end(ticket.session, now_ms, access_until).await? {
            // The session has already ended, or could not be stored when it was opened.
            let family = TokenFamily {
                session: ticket.session,
                user: ticket.user,
                current: Uuid::new_v4(),
                replaced: Vec::new(),
                used_at: now_ms,
                access_until,
                until: access_until,
                ended_at: Some(now_ms),
            };
            self.store.open(&family, SESSIONS_OF_USER).await?;
        }
        Ok(())
    }
}

/// Deletes expired sessions periodically, until the families are dropped.
async fn purge(families: Weak<TokenFamilies>, clock: SharedClock) {
    loop {
        tokio::time::sleep(PURGE_INTERVAL).await;
        let Some(families) = families.upgrade() else {
            return;
        };
        let now = clock.now_ms();
        if let Err(error) = families.store.purge(now, now - SOURCES_MS).await
            && let Some(suppressed) = STORE_GATE.open()
        {
            warn!(%error, suppressed, "cannot forget sessions that have expired");
        }
    }
}
