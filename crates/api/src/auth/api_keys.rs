//! Authentication by API key. Keys are cached, so that most requests need no database query.

use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_entities::services::ApiKeyService;
use fieldline_model::entity::ApiKeyInfo;
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::TokenIdentity;
use super::tokens::ISSUED_BY_KEY;
use crate::error::{ApiError, ApiResult};

const CACHED_KEYS: usize = 10_000;
/// How long a cached key is used: it bounds how late a change by another node takes effect.
const CACHED_MS: i64 = 30_000;
/// Longest text that can be a key, bytes.
const MAX_VALUE: usize = 255;

/// Looks up the owners of API keys.
pub(crate) struct ApiKeyCache {
    keys: ApiKeyService,
    /// By key value; unknown values are not cached.
    cache: Cache<String, (ApiKeyInfo, i64)>,
    /// Counts the changes, so that a key read before a change is not cached after it.
    changes: AtomicU64,
}

impl ApiKeyCache {
    pub(crate) fn new(keys: ApiKeyService) -> Self {
        Self {
            keys,
            cache: Cache::new(CACHED_KEYS),
            changes: AtomicU64::new(0),
        }
    }

    /// Returns the identity that a key stands for at this time, like a token that was issued just now.
    pub(crate) async fn identity(&self, value: &str, now_ms: i64) -> ApiResult<TokenIdentity> {
        let key = self.known(value, now_ms).await?;
        let key = key.filter(|key| key.enabled && !key.is_expired(now_ms));
        let key = key.ok_or_else(ApiError::unauthenticated)?;
        Ok(TokenIdentity {
            user: key.user_id,
            // A key cannot be logged out.
            session: Uuid::new_v4(),
            public: false,
            issued: ISSUED_BY_KEY,
        })
    }

    async fn known(&self, value: &str, now_ms: i64) -> ApiResult<Option<ApiKeyInfo>> {
        if value.len() > MAX_VALUE {
            return Ok(None);
        }
        if let Some((key, read_at)) = self.cache.get(value)
            && (read_at..read_at + CACHED_MS).contains(&now_ms)
        {
            return Ok(Some(key));
        }
        let before = self.changes.load(Ordering::Acquire);
        let found = self.keys.find(value).await?;
        match &found {
            Some(key) => {
                self.cache.insert(value.to_owned(), (key.clone(), now_ms));
                if self.changes.load(Ordering::Acquire) != before {
                    self.cache.remove(value);
                }
            }
            None => {
                self.cache.remove(value);
            }
        }
        Ok(found)
    }

    /// Drops all cached keys: a key was changed or deleted.
    pub(crate) fn forget(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cache.clear();
    }
}
