//! Keys that programs use in the place of a user's password.

use serde::{Deserialize, Serialize};

use super::draft::stored_entity;
use crate::{ApiKeyId, TenantId, UserId};

/// A key without its value, which nobody is shown again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiKeyInfo {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<ApiKeyId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: ApiKeyId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant of its user; the null id for a system administrator.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Whoever has the key is this user.
    #[serde(deserialize_with = "super::null_as_default")]
    pub user_id: UserId,
    /// When it stops to count, milliseconds; 0 for never.
    #[serde(deserialize_with = "super::null_as_default")]
    pub expiration_time: i64,
    /// What it is for.
    #[serde(deserialize_with = "super::null_as_default")]
    pub description: String,
    /// Whether it counts.
    #[serde(deserialize_with = "super::null_as_default")]
    pub enabled: bool,
    /// Whether it has stopped to count; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub expired: bool,
}

stored_entity!(ApiKeyInfo: ApiKeyId);

impl ApiKeyInfo {
    /// Whether it has stopped to count at a time, milliseconds.
    pub const fn is_expired(&self, now_ms: i64) -> bool {
        self.expiration_time != 0 && now_ms > self.expiration_time
    }
}

/// A key as it is shown once, when it is created.
#[derive(Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ApiKey {
    /// The key without its value.
    #[serde(flatten)]
    pub info: ApiKeyInfo,
    /// What a program shows in the header `X-Authorization: ApiKey <value>`.
    pub value: Option<String>,
}
