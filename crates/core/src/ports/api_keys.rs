//! API keys, which programs use instead of a user's password.

use async_trait::async_trait;
use fieldline_model::entity::ApiKeyInfo;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{ApiKeyId, UserId};

use super::StoreResult;

/// What of a key is changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApiKeyChange<'a> {
    /// The new description.
    pub description: Option<&'a str>,
    /// Whether it counts from now on.
    pub enabled: Option<bool>,
}

/// API keys, deleted with their user. Only hashes of their values are stored.
#[async_trait]
pub trait ApiKeyStore: Send + Sync {
    /// Inserts a key with the hash of its value. Id and user must be set, and the user must exist.
    async fn create(&self, key: ApiKeyInfo, hash: &str) -> StoreResult<ApiKeyInfo>;
    /// Changes what is given, and nothing else: somebody may disable a key while another one describes it. Returns the key,
    /// if it exists.
    async fn update(&self, id: ApiKeyId, change: ApiKeyChange<'_>) -> StoreResult<Option<ApiKeyInfo>>;
    /// The key with this id, of any user.
    async fn get(&self, id: ApiKeyId) -> StoreResult<Option<ApiKeyInfo>>;
    /// The key whose value has this hash.
    async fn by_hash(&self, hash: &str) -> StoreResult<Option<ApiKeyInfo>>;
    /// A page of the keys of a user; text search in the description. Sorts by createdTime, description, enabled,
    /// expirationTime.
    async fn list(&self, user: UserId, page: &PageLink) -> StoreResult<PageData<ApiKeyInfo>>;
    /// Deletes a key; returns whether it existed.
    async fn delete(&self, id: ApiKeyId) -> StoreResult<bool>;
}
