//! Sign-ins of users: the chain of tokens in a session, and the sources of sign-ins.

use async_trait::async_trait;
use fieldline_model::UserId;
use uuid::Uuid;

use super::StoreResult;

/// Where a session was opened, as its user recognizes it. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignInOrigin {
    /// Address of the client.
    pub address: Option<String>,
    /// Name and version of the browser or program.
    pub browser: Option<String>,
    /// Name of the operating system.
    pub os: Option<String>,
}

/// The chain of refresh tokens of one session, each exchanged for the next. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFamily {
    /// The session id in the tokens.
    pub session: Uuid,
    /// The user.
    pub user: UserId,
    /// Time of the sign-in; `None` if the session is older than this field.
    pub opened_at: Option<i64>,
    /// Where it was opened.
    pub origin: SignInOrigin,
    /// The token that can be exchanged for the next one.
    pub current: Uuid,
    /// The former tokens, latest last, with the time at which each was replaced.
    pub replaced: Vec<(Uuid, i64)>,
    /// Time at which its last token was issued.
    pub used_at: i64,
    /// Time at which its last access token expires.
    pub access_until: i64,
    /// Time at which its last token expires.
    pub until: i64,
    /// Time at which it was ended, if it was.
    pub ended_at: Option<i64>,
}

/// Sign-ins, deleted with their user. Writes are durable once the call returns.
#[async_trait]
pub trait SignInStore: Send + Sync {
    /// Stores a family, replacing the stored one of the session unless that has ended. Of the user's families, the
    /// `most` that were used last are kept; of the ended ones, ten times as many are kept until their access tokens
    /// have expired. The user must exist.
    async fn open(&self, family: &TokenFamily, most: u32) -> StoreResult<()>;
    /// The family of a session, open or ended.
    async fn family(&self, session: Uuid) -> StoreResult<Option<TokenFamily>>;
    /// The families of a user that have neither ended nor expired, last used first; the first `limit`.
    async fn of_user(&self, user: UserId, now_ms: i64, limit: u32) -> StoreResult<Vec<TokenFamily>>;
    /// Replaces the tokens of a family if it has not ended and its current token is still `current`; returns whether it
    /// did. Who opened it when stays as it is.
    async fn rotate(&self, family: &TokenFamily, current: Uuid) -> StoreResult<bool>;
    /// Ends a family at `at_ms`, with access tokens that expire by `access_until`, or later if that is stored. A family that has ended or does not
    /// exist stays as it is. Returns whether it was open.
    async fn end(&self, session: Uuid, at_ms: i64, access_until: i64) -> StoreResult<bool>;
    /// Ends all open families of a user but that of the session `kept`, like [`Self::end`]; returns their sessions.
    async fn end_others(
        &self,
        user: UserId,
        kept: Uuid,
        at_ms: i64,
        access_until: i64,
    ) -> StoreResult<Vec<Uuid>>;
    /// The ended sessions with access tokens that have not expired yet, each with the time of its end; the `limit` that
    /// ended last.
    async fn ended(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<(Uuid, i64)>>;
    /// Deletes the families whose tokens have expired, and sources without a sign-in since a time; returns their
    /// number.
    async fn purge(&self, now_ms: i64, sources_since_ms: i64) -> StoreResult<u64>;
    /// The sources from which a user has signed in, latest last.
    async fn sources(&self, user: UserId) -> StoreResult<Vec<String>>;
    /// Records the source of a sign-in; the `most` latest of a user are kept. The user must exist.
    async fn note_source(&self, user: UserId, source: &str, at_ms: i64, most: u32) -> StoreResult<()>;
    /// Deletes the sources of a user's sign-ins.
    async fn forget_sources(&self, user: UserId) -> StoreResult<()>;
}
