//! Validity of tokens. Users and ended sessions are cached, so that no request queries the database; a refresh does,
//! because each refresh token can be used only once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_core::clock::SharedClock;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::ports::{CustomerStore, EntityStores, SignInOrigin, TokenFamily, UserStore};
use fieldline_entities::access::Principal;
use fieldline_model::entity::{User, UserCredentials};
use fieldline_model::{CustomerId, EntityId, EntityType, UserId};
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::token_families::TokenFamilies;
use super::tokens::{
    AccessClaims, TokenIdentity, TokenIds, TokenIssuer, TokenPair, TokenTimes, is_public, outdated,
    public_user,
};
use crate::error::ApiResult;

const CACHED_USERS: usize = 10_000;
/// How long a cached user is used: it bounds how late a change by another node takes effect.
const CACHED_MS: i64 = 30_000;

/// The user data that token checks need.
pub(crate) struct TokenUser {
    pub(crate) user: User,
    enabled: bool,
    pub(crate) tokens_valid_from: i64,
    read_at: i64,
}

/// Checks whether tokens are still valid.
pub(crate) struct LoginSessions {
    users: Arc<dyn UserStore>,
    customers: Arc<dyn CustomerStore>,
    /// By id and whether it is that of a public customer: the id of a user must not open a public session.
    cache: Cache<(UserId, bool), Arc<TokenUser>>,
    /// The sessions of users: which have ended, and the current refresh token of each.
    pub(super) families: Arc<TokenFamilies>,
    pub(super) clock: SharedClock,
    /// Counts the changes, so that a user read before a change is not cached after it.
    changes: AtomicU64,
}

impl LoginSessions {
    pub(crate) fn new(stores: &EntityStores, clock: SharedClock) -> Self {
        Self {
            users: Arc::clone(&stores.users),
            customers: Arc::clone(&stores.customers),
            families: TokenFamilies::start(Arc::clone(&stores.sign_ins), Arc::clone(&clock)),
            clock,
            cache: Cache::new(CACHED_USERS),
            changes: AtomicU64::new(0),
        }
    }

    /// Returns the principal of an access token that is still valid.
    pub(crate) async fn user(&self, claims: &AccessClaims) -> ApiResult<Principal> {
        let known = self.authenticate(claims.identity()).await?;
        Ok(Principal::of(&known.user))
    }

    /// Returns the user of a token that is still valid.
    pub(crate) async fn authenticate(&self, ticket: TokenIdentity) -> ApiResult<Arc<TokenUser>> {
        let known = self
            .known(ticket.user, ticket.public)
            .await?
            .ok_or_else(outdated)?;
        let issued_ms = ticket.issued.saturating_mul(1_000);
        let now = self.clock.now_ms();
        let left = self.families.has_ended(ticket.session, now).await?;
        if !known.enabled || issued_ms < known.tokens_valid_from || left {
            return Err(outdated());
        }
        self.families.note_use(&ticket, now);
        Ok(known)
    }

    /// Opens a session for a user, or continues one with new tokens. One that is continued keeps its origin.
    pub(crate) async fn open(
        &self,
        tokens: &TokenIssuer,
        user: &User,
        session: Option<Uuid>,
        times: TokenTimes,
        origin: SignInOrigin,
    ) -> ApiResult<TokenPair> {
        let ids = TokenIds {
            session: session.unwrap_or_else(Uuid::new_v4),
            token: Uuid::new_v4(),
        };
        let issued = tokens.issue(user, ids, times)?;
        if !is_public(user) {
            let before = match session {
                Some(session) => self.families.store.family(session).await?,
                None => None,
            };
            self.families
                .open(user.id, ids, before, &issued, times, origin)
                .await?;
        }
        Ok(issued.pair)
    }

    /// Ends a session: none of its tokens is valid any more. This survives a restart, except for public sessions and
    /// API keys.
    ///
    /// # Errors
    /// The store failed: the tokens become valid again after a restart.
    pub(crate) async fn log_out(&self, tokens: &TokenIssuer, ticket: TokenIdentity) -> ApiResult<()> {
        let now = self.clock.now_ms();
        self.families.end(ticket, now, now + tokens.access_ms()).await
    }

    /// Returns the sessions of the user of a token that have neither ended nor expired, last used first.
    pub(crate) async fn own(&self, ticket: TokenIdentity) -> ApiResult<Vec<TokenFamily>> {
        let known = self.authenticate(ticket).await?;
        let (now, since) = (self.clock.now_ms(), known.tokens_valid_from);
        Ok(self.families.of_user(known.user.id, now, since).await?)
    }

    /// Ends a session of a user, like a log-out; returns whether the user had it.
    pub(crate) async fn end(&self, tokens: &TokenIssuer, user: UserId, session: Uuid) -> ApiResult<bool> {
        let now = self.clock.now_ms();
        let family = self.families.store.family(session).await?;
        let is_own = family
            .is_some_and(|family| family.user == user && family.ended_at.is_none() && family.until > now);
        if is_own {
            self.families
                .end_stored(session, now, now + tokens.access_ms())
                .await?;
        }
        Ok(is_own)
    }

    /// Ends all sessions of the user of a token but its own.
    pub(crate) async fn end_others(&self, tokens: &TokenIssuer, ticket: TokenIdentity) -> ApiResult<()> {
        let now = self.clock.now_ms();
        let access_until = now + tokens.access_ms();
        Ok(self
            .families
            .end_others(ticket.user, ticket.session, now, access_until)
            .await?)
    }

    /// Returns the user of a public session for a public customer; `None` if the customer is not public.
    pub(crate) async fn public(&self, customer: CustomerId) -> ApiResult<Option<Arc<TokenUser>>> {
        self.known(UserId(customer.0), true).await
    }

    async fn known(&self, id: UserId, public: bool) -> ApiResult<Option<Arc<TokenUser>>> {
        let (now, key) = (self.clock.now_ms(), (id, public));
        if let Some(known) = self.cache.get(&key)
            && (known.read_at..known.read_at + CACHED_MS).contains(&now)
        {
            return Ok(Some(known));
        }
        let before = self.changes.load(Ordering::Acquire);
        let found = match public {
            true => {
                let customer = self.customers.public(CustomerId(id.0)).await?;
                customer.map(|customer| TokenUser::public(public_user(&customer), now))
            }
            false => match (self.users.by_id(id).await?, self.users.credentials(id).await?) {
                (Some(user), Some(credentials)) => Some(TokenUser::new(user, &credentials, now)),
                _ => None,
            },
        };
        let Some(known) = found.map(Arc::new) else {
            self.cache.remove(&key);
            return Ok(None);
        };
        self.cache.insert(key, Arc::clone(&known));
        if self.changes.load(Ordering::Acquire) != before {
            self.cache.remove(&key);
        }
        Ok(Some(known))
    }
}

impl TokenUser {
    fn new(user: User, credentials: &UserCredentials, read_at: i64) -> Self {
        Self {
            user,
            enabled: credentials.enabled,
            tokens_valid_from: credentials.tokens_valid_from,
            read_at,
        }
    }

    fn public(user: User, read_at: i64) -> Self {
        Self {
            user,
            enabled: true,
            tokens_valid_from: 0,
            read_at,
        }
    }
}

impl EntityListener for LoginSessions {
    fn on_change(&self, change: EntityChange) {
        let EntityId { entity_type, id } = change.subject.entity;
        match (entity_type, change.what) {
            (EntityType::User, ChangeKind::Saved | ChangeKind::Deleted) => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.cache.remove(&(UserId(id), false));
            }
            (EntityType::Tenant | EntityType::Customer, ChangeKind::Deleted) => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.cache.clear();
            }
            _ => {}
        }
    }
}
