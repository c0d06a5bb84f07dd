//! Users and how they log in.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{CustomerId, TenantId, UserId};

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Authority {
    /// Runs the installation: tenants, profiles, settings; no tenant's data.
    SysAdmin,
    /// Runs a tenant.
    TenantAdmin,
    /// Uses what is assigned to a customer.
    #[default]
    CustomerUser,
}

impl Authority {
    /// The name in the REST API and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SysAdmin => "SYS_ADMIN",
            Self::TenantAdmin => "TENANT_ADMIN",
            Self::CustomerUser => "CUSTOMER_USER",
        }
    }

    /// The authority of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::SysAdmin, Self::TenantAdmin, Self::CustomerUser]
            .into_iter()
            .find(|authority| authority.name() == name)
    }
}

/// A person who logs in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct User {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<UserId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: UserId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant; null id for a system administrator.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// The customer; null id for all but customer users.
    #[serde(deserialize_with = "super::null_as_default")]
    pub customer_id: CustomerId,
    /// E-mail address, unique in the installation regardless of case; the login name.
    #[serde(deserialize_with = "super::null_as_default")]
    pub email: String,
    /// Same as the e-mail address; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// What the user may do.
    #[serde(deserialize_with = "super::null_as_default")]
    pub authority: Authority,
    /// Given name.
    pub first_name: Option<String>,
    /// Family name.
    pub last_name: Option<String>,
    /// Phone number.
    pub phone: Option<String>,
    /// Free-form JSON.
    pub additional_info: Option<Value>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(User: UserId);

/// How a user logs in. Never leaves the server.
#[derive(Clone, PartialEq, Default)]
pub struct UserCredentials {
    /// Whose credentials they are.
    pub user_id: UserId,
    /// Whether the user may log in.
    pub enabled: bool,
    /// Password hash in PHC string format; absent until the user is activated.
    pub password_hash: Option<String>,
    /// Token that activates the user, while it is pending.
    pub activate_token: Option<String>,
    /// Token that allows to set another password, while that was asked for.
    pub reset_token: Option<String>,
    /// Tokens issued before this time (milliseconds) no longer count.
    pub tokens_valid_from: i64,
    /// When the password was set, milliseconds; 0 where nobody knows.
    pub password_time: i64,
    /// Earlier passwords, oldest first.
    pub past_passwords: Vec<PastPassword>,
    /// When the user last logged in, milliseconds; 0 for never. Saving leaves it as it is.
    pub last_login: i64,
    /// Wrong passwords since then. Saving leaves it as it is.
    pub failed_logins: u32,
    /// Counts the changes, for optimistic locking; absent to replace whatever there is.
    pub version: Option<i64>,
}

/// A password that a user had.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PastPassword {
    /// When it was set, milliseconds.
    pub time: i64,
    /// Password hash in PHC string format.
    pub hash: String,
}

impl std::fmt::Debug for UserCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserCredentials")
            .field("user_id", &self.user_id)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}
