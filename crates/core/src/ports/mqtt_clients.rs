//! Clients of the publish/subscribe broker: their credentials, which of them are blocked, and announced subscriptions.

use async_trait::async_trait;
use fieldline_model::entity::{
    ApplicationSharedSubscription, BlockedClient, BlockedClientType, MqttClientCredentials, MqttClientType,
    MqttCredentialsType, RegexMatchTarget,
};
use fieldline_model::page::{PageData, PageLink};
use uuid::Uuid;

use super::StoreResult;

/// The credentials that a list covers: those that meet all that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MqttCredentialsFilter {
    /// Of these kinds of clients; empty for all.
    pub client_types: Vec<MqttClientType>,
    /// Of these types; empty for all.
    pub credentials_types: Vec<MqttCredentialsType>,
    /// With a user name that contains this, whatever the case.
    pub username: Option<String>,
    /// With a client identifier that contains this, whatever the case.
    pub client_id: Option<String>,
    /// With a common name, or a pattern of it, that contains this, whatever the case.
    pub common_name: Option<String>,
}

/// How many credentials there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MqttCredentialsCount {
    /// Of clients of the type DEVICE.
    pub devices: u64,
    /// Of clients of the type APPLICATION.
    pub applications: u64,
}

/// Credentials of clients of the broker, and the clients that are blocked. Names and credentials ids are unique; one that
/// is taken is a conflict.
#[async_trait]
pub trait MqttClientStore: Send + Sync {
    /// Inserts credentials under their id.
    async fn insert(&self, credentials: &MqttClientCredentials) -> StoreResult<()>;
    /// Replaces the credentials with this id if their value still equals `read`; the creation time stays. Returns whether it did:
    /// otherwise they have another value, or there are none. For changes derived from the credentials that were read.
    async fn update(&self, credentials: &MqttClientCredentials, read: &str) -> StoreResult<bool>;
    /// The credentials with this id.
    async fn get(&self, id: Uuid) -> StoreResult<Option<MqttClientCredentials>>;
    /// The credentials of this name.
    async fn by_name(&self, name: &str) -> StoreResult<Option<MqttClientCredentials>>;
    /// The credentials with these credentials ids, in no particular order.
    async fn by_credentials_ids(&self, ids: &[String]) -> StoreResult<Vec<MqttClientCredentials>>;
    /// The oldest `limit` credentials for certificates whose common name is an expression, oldest first.
    async fn certificate_patterns(&self, limit: u32) -> StoreResult<Vec<MqttClientCredentials>>;
    /// A page of credentials; text search in the name. Sorts by createdTime, name, clientType, credentialsType.
    async fn list(
        &self,
        filter: &MqttCredentialsFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<MqttClientCredentials>>;
    /// Counts all credentials.
    async fn count(&self) -> StoreResult<MqttCredentialsCount>;
    /// Deletes credentials; returns whether they existed.
    async fn delete(&self, id: Uuid) -> StoreResult<bool>;
    /// Blocks clients. The same type, value and target again is a conflict.
    async fn block(&self, client: &BlockedClient) -> StoreResult<()>;
    /// Ends a block; returns whether it existed.
    async fn unblock(
        &self,
        kind: BlockedClientType,
        value: &str,
        target: Option<RegexMatchTarget>,
    ) -> StoreResult<bool>;
    /// The first `limit` blocks, those that have expired included, by type, value and target.
    async fn blocked(&self, limit: u32) -> StoreResult<Vec<BlockedClient>>;
    /// Deletes the blocks that expired before a time, milliseconds; returns their number.
    async fn forget_blocked(&self, before_ms: i64) -> StoreResult<u64>;
}

/// Shared subscriptions that were announced. Topic filters are unique; one that is taken is a conflict.
#[async_trait]
pub trait SharedSubscriptionStore: Send + Sync {
    /// Inserts a subscription under its id.
    async fn insert(&self, subscription: &ApplicationSharedSubscription) -> StoreResult<()>;
    /// Gives the subscription with this id another name; returns whether it exists. Nothing else of it changes.
    async fn rename(&self, id: Uuid, name: &str) -> StoreResult<bool>;
    /// The subscription with this id.
    async fn get(&self, id: Uuid) -> StoreResult<Option<ApplicationSharedSubscription>>;
    /// The subscription of this topic filter.
    async fn by_filter(&self, filter: &str) -> StoreResult<Option<ApplicationSharedSubscription>>;
    /// A page of subscriptions; text search in the name. Sorts by createdTime, name, topicFilter, partitions.
    async fn list(&self, page: &PageLink) -> StoreResult<PageData<ApplicationSharedSubscription>>;
    /// Deletes a subscription; returns whether it existed.
    async fn delete(&self, id: Uuid) -> StoreResult<bool>;
}
