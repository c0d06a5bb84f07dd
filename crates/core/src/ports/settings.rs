//! Settings of the installation and of users.

use async_trait::async_trait;
use fieldline_model::UserId;
use fieldline_model::entity::{AdminSettings, UserSettingsType};
use serde_json::Value;

use super::StoreResult;

/// Settings: whole documents, by key.
#[async_trait]
pub trait SettingsStore: Send + Sync {
    /// The settings of the installation under a key.
    async fn admin(&self, key: &str) -> StoreResult<Option<AdminSettings>>;
    /// Inserts or replaces the settings under their key, and returns them as stored. Id and creation time keep their
    /// original values. The `id` must be set.
    async fn save_admin(&self, settings: AdminSettings) -> StoreResult<AdminSettings>;
    /// Replaces the settings under their key if they still equal `read`; otherwise returns `None` and changes nothing.
    /// For changes derived from the settings that were read.
    async fn replace_admin(
        &self,
        settings: AdminSettings,
        read: &Value,
    ) -> StoreResult<Option<AdminSettings>>;
    /// The settings of a user.
    async fn of_user(&self, user: UserId, kind: UserSettingsType) -> StoreResult<Option<Value>>;
    /// Inserts or replaces the settings of a user, who must exist. They are deleted with the user.
    async fn save_of_user(&self, user: UserId, kind: UserSettingsType, settings: &Value) -> StoreResult<()>;
}
