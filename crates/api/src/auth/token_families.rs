//! Stored sessions of users: the current refresh token of each, and which sessions have ended.

use std::cmp::Reverse;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fieldline_core::clock::SharedClock;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{SignInOrigin, SignInStore, StoreErrorKind, StoreResult, TokenFamily};
use fieldline_model::UserId;
use quick_cache::sync::Cache;
use tokio::sync::OnceCell;
use tracing::warn;
use uuid::Uuid;

use super::TokenIdentity;
use super::tokens::{IssuedTokens, TokenIds, TokenTimes};
use crate::error::ApiResult;

/// Most sessions of a user that can be refreshed; beyond that the least recently used one can no longer get new tokens.
const SESSIONS_OF_USER: u32 = 1_000;
/// Most ended sessions whose access tokens have not expired yet. Beyond that some are forgotten.
const ENDED_SESSIONS: u32 = 100_000;
/// Most sessions whose latest use is remembered. Of others their last tokens tell it.
const USED_SESSIONS: usize = 10_000;
/// The latest use of a session is remembered as precisely as this.
const USE_MS: u64 = 1_000;
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
    /// When sessions were used last. It is not stored: no request writes to the database.
    used: Cache<Uuid, i64>,
    /// Set once the sessions that ended before the start are loaded.
    loaded: OnceCell<()>,
}

impl TokenFamilies {
    /// Opens the sessions of a store, and starts the task that deletes expired ones.
    pub(super) fn start(store: Arc<dyn SignInStore>, clock: SharedClock) -> Arc<Self> {
        let families = Arc::new(Self {
            store,
            ended: Cache::new(ENDED_SESSIONS as usize),
            used: Cache::new(USED_SESSIONS),
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

    /// Notes that a token was used.
    pub(super) fn note_use(&self, ticket: &TokenIdentity, now_ms: i64) {
        if ticket.public || ticket.is_key() {
            return;
        }
        let noted = self.used.get(&ticket.session);
        if noted.is_none_or(|at| at.abs_diff(now_ms) >= USE_MS) {
            self.used.insert(ticket.session, now_ms);
        }
    }

    /// The open sessions of a user that count, last used first: those whose last tokens were issued since a time.
    pub(super) async fn of_user(
        &self,
        user: UserId,
        now_ms: i64,
        issued_since: i64,
    ) -> StoreResult<Vec<TokenFamily>> {
        let mut found = self.store.of_user(user, now_ms, SESSIONS_OF_USER).await?;
        found.retain(|family| family.used_at >= issued_since);
        for family in &mut found {
            if let Some(at) = self.used.get(&family.session) {
                family.used_at = family.used_at.max(at);
            }
        }
        found.sort_by_key(|family| Reverse(family.used_at));
        Ok(found)
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
        times: TokenTimes,
        origin: SignInOrigin,
    ) -> StoreResult<()> {
        let replaced = before
            .as_ref()
            .map_or_else(Vec::new, |before| replaced_by(before, times.now_ms));
        let (opened_at, origin) = match before {
            Some(before) => (before.opened_at, before.origin),
            None => (Some(times.now_ms), origin),
        };
        let family = TokenFamily {
            session: ids.session,
            user,
            opened_at,
            origin,
            current: ids.token,
            replaced,
            used_at: times.issued_ms(),
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

    /// Ends a stored session, whose access tokens expire by that time.
    pub(super) async fn end_stored(
        &self,
        session: Uuid,
        now_ms: i64,
        access_until: i64,
    ) -> StoreResult<bool> {
        self.ended.insert(session, ());
        let access_until = access_until.saturating_add(GRACE_MS);
        self.store.end(session, now_ms, access_until).await
    }

    /// Ends all sessions of a user but one, whose access tokens expire by that time.
    pub(super) async fn end_others(
        &self,
        user: UserId,
        kept: Uuid,
        now_ms: i64,
        access_until: i64,
    ) -> StoreResult<()> {
        let access_until = access_until.saturating_add(GRACE_MS);
        let ended = self.store.end_others(user, kept, now_ms, access_until).await?;
        for session in ended {
            self.ended.insert(session, ());
        }
        Ok(())
    }

    /// Ends the session of a token, whose access tokens expire by that time.
    pub(super) async fn end(&self, ticket: TokenIdentity, now_ms: i64, access_until: i64) -> ApiResult<()> {
        // Anyone can open a public session again, and a key cannot be logged out: there is nothing to store.
        if ticket.public || ticket.is_key() {
            self.ended.insert(ticket.session, ());
            return Ok(());
        }
        if !self.end_stored(ticket.session, now_ms, access_until).await? {
            // The session has already ended, maybe with access tokens that count longer, or could not be stored when it was
            // opened.
            let before = self.store.family(ticket.session).await?;
            let stored = before.map_or(0, |before| before.access_until);
            let access_until = access_until.saturating_add(GRACE_MS).max(stored);
            let family = TokenFamily {
                session: ticket.session,
                user: ticket.user,
                opened_at: None,
                origin: SignInOrigin::default(),
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
