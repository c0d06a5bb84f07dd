//! The stores of the broker's clients, which no unit test asks for.

use async_trait::async_trait;
use fieldline_core::ports::{
    MqttClientStore, MqttCredentialsCount, MqttCredentialsFilter, SharedSubscriptionStore, StoreResult,
};
use fieldline_model::entity::{
    ApplicationSharedSubscription, BlockedClient, BlockedClientType, MqttClientCredentials, RegexMatchTarget,
};
use fieldline_model::page::{PageData, PageLink};
use uuid::Uuid;

use super::absent;
use super::absent::Absent;

#[async_trait]
impl MqttClientStore for Absent {
    async fn insert(&self, _: &MqttClientCredentials) -> StoreResult<()> {
        absent()
    }
    async fn update(&self, _: &MqttClientCredentials, _: &str) -> StoreResult<bool> {
        absent()
    }
    async fn get(&self, _: Uuid) -> StoreResult<Option<MqttClientCredentials>> {
        absent()
    }
    async fn by_name(&self, _: &str) -> StoreResult<Option<MqttClientCredentials>> {
        absent()
    }
    async fn by_credentials_ids(&self, _: &[String]) -> StoreResult<Vec<MqttClientCredentials>> {
        absent()
    }
    async fn certificate_patterns(&self, _: u32) -> StoreResult<Vec<MqttClientCredentials>> {
        absent()
    }
    async fn list(
        &self,
        _: &MqttCredentialsFilter,
        _: &PageLink,
    ) -> StoreResult<PageData<MqttClientCredentials>> {
        absent()
    }
    async fn count(&self) -> StoreResult<MqttCredentialsCount> {
        absent()
    }
    async fn delete(&self, _: Uuid) -> StoreResult<bool> {
        absent()
    }
    async fn block(&self, _: &BlockedClient) -> StoreResult<()> {
        absent()
    }
    async fn unblock(&self, _: BlockedClientType, _: &str, _: Option<RegexMatchTarget>) -> StoreResult<bool> {
        absent()
    }
    async fn blocked(&self, _: u32) -> StoreResult<Vec<BlockedClient>> {
        absent()
    }
    async fn forget_blocked(&self, _: i64) -> StoreResult<u64> {
        absent()
    }
}

#[async_trait]
impl SharedSubscriptionStore for Absent {
    async fn insert(&self, _: &ApplicationSharedSubscription) -> StoreResult<()> {
        absent()
    }
    async fn rename(&self, _: Uuid, _: &str) -> StoreResult<bool> {
        absent()
    }
    async fn get(&self, _: Uuid) -> StoreResult<Option<ApplicationSharedSubscription>> {
        absent()
    }
    async fn by_filter(&self, _: &str) -> StoreResult<Option<ApplicationSharedSubscription>> {
        absent()
    }
    async fn list(&self, _: &PageLink) -> StoreResult<PageData<ApplicationSharedSubscription>> {
        absent()
    }
    async fn delete(&self, _: Uuid) -> StoreResult<bool> {
        absent()
    }
}
