//! Sign-ins of people: the tokens that follow one another in a session, and from where people have signed in.

use async_trait::async_trait;
use fieldline_model::UserId;
use uuid::Uuid;

use super::StoreResult;

/// The refresh tokens of one session, of which each was bought with the one before. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFamily {
    /// The session, as the tokens name it.
    pub session: Uuid,
    /// Whose it is.
    pub user: UserId,
    /// The token that buys the next one.
    pub current: Uuid,
    /// Those before, the latest last, with when each was replaced.
    pub replaced: Vec<(Uuid, i64)>,
    /// When a token of it was issued last.
    pub used_at: i64,
    /// When none of its access tokens counts any more.
    pub access_until: i64,
    /// When none of its tokens counts any more.
    pub until: i64,
    /// When somebody ended it.
    pub ended_at: Option<i64>,
}

/// Sign-ins, which go with their user. What is written is durable once the call returns.
#[async_trait]
pub trait SignInStore: Send + Sync {
    /// Stores a family, in the place of what there was of the session, except that one that has ended stays so. Of the user's
    /// families the `most` that were used last stay, and of those that have ended ten times as many until their access tokens
    /// have expired. The user must exist.
    async fn open(&self, family: &TokenFamily, most: u32) -> StoreResult<()>;
    /// The family of a session, ended or not.
    async fn family(&self, session: Uuid) -> StoreResult<Option<TokenFamily>>;
    /// Replaces a family that has not ended and whose current token is still that one; returns whether it was so.
    async fn rotate(&self, family: &TokenFamily, current: Uuid) -> StoreResult<bool>;
    /// Ends a family at a time, with access tokens that expire by another one; a family that has ended, or is not there, stays
    /// as it is. Returns whether it was open.
    async fn end(&self, session: Uuid, at_ms: i64, access_until: i64) -> StoreResult<bool>;
    /// The sessions that have ended and some of whose access tokens have not expired yet, with when they ended; the `limit`
    /// that ended last.
    async fn ended(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<(Uuid, i64)>>;
    /// Forgets the families whose tokens have expired, and sources that nobody came from since a time; returns how many.
    async fn purge(&self, now_ms: i64, sources_since_ms: i64) -> StoreResult<u64>;
    /// From where a user has signed in, the latest last.
    async fn sources(&self, user: UserId) -> StoreResult<Vec<String>>;
    /// Notes that a user has signed in from somewhere; the `most` latest of a user stay. The user must exist.
    async fn note_source(&self, user: UserId, source: &str, at_ms: i64, most: u32) -> StoreResult<()>;
    /// Forgets from where a user has signed in.
    async fn forget_sources(&self, user: UserId) -> StoreResult<()>;
}
