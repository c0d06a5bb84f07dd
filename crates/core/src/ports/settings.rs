//! Settings of the installation and of people.

use async_trait::async_trait;
use fieldline_model::UserId;
use fieldline_model::entity::{AdminSettings, UserSettingsType};
use serde_json::Value;

use super::StoreResult;

/// Settings, whole documents by their keys.
#[async_trait]
pub trait SettingsStore: Send + Sync {
    /// The settings of the installation under a key.
    async fn admin(&self, key: &str) -> StoreResult<Option<AdminSettings>>;
    /// Inserts or replaces the settings of that key, and returns what is stored. Id and creation time stay as they were
    /// inserted. The `id` must be set.
    async fn save_admin(&self, settings: AdminSettings) -> StoreResult<AdminSettings>;
    /// Replaces the settings of that key if they still say what they did when they were read: else `None`, and nothing is
    /// changed. For changes that are made of what was read.
    async fn replace_admin(
        &self,
        settings: AdminSettings,
        read: &Value,
    ) -> StoreResult<Option<AdminSettings>>;
    /// The settings of a user.
    async fn of_user(&self, user: UserId, kind: UserSettingsType) -> StoreResult<Option<Value>>;
    /// Inserts or replaces the settings of a user, who must exist. They go with the user.
    async fn save_of_user(&self, user: UserId, kind: UserSettingsType, settings: &Value) -> StoreResult<()>;
}
