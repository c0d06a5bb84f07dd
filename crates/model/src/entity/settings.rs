//! What administrators set for the installation, and people for themselves.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{AdminSettingsId, TenantId};

/// Settings of the installation under a key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AdminSettings {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<AdminSettingsId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: AdminSettingsId,
    /// When they were created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The null id: they belong to no tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// What they are about: `general`, `mail`, `sms`, `connectivity`.
    #[serde(deserialize_with = "super::null_as_default")]
    pub key: String,
    /// The settings themselves.
    pub json_value: Value,
}

stored_entity!(AdminSettings: AdminSettingsId);

/// What a password must be like. Absent numbers, and 0, ask for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
#[schema(as = UserPasswordPolicy)]
pub struct PasswordPolicy {
    /// Shortest password, in characters.
    pub minimum_length: Option<u32>,
    /// Longest password, in characters; one that is not longer than the shortest does not count.
    pub maximum_length: Option<u32>,
    /// Letters from A to Z.
    pub minimum_uppercase_letters: Option<u32>,
    /// Letters from a to z.
    pub minimum_lowercase_letters: Option<u32>,
    /// Digits.
    pub minimum_digits: Option<u32>,
    /// ASCII characters that are neither letters nor digits nor spaces.
    pub minimum_special_characters: Option<u32>,
    /// Whether spaces are allowed.
    pub allow_whitespaces: Option<bool>,
    /// Whether those whose password breaks the policy have to set another one before they may log in.
    pub force_user_to_reset_password_if_not_valid: Option<bool>,
    /// Days after which a password has to be changed.
    pub password_expiration_period_days: Option<u32>,
    /// Days in which a password must not be used again.
    pub password_reuse_frequency_days: Option<u32>,
}

impl Default for PasswordPolicy {
    fn default() -> Self {
        Self {
            minimum_length: None,
            maximum_length: None,
            minimum_uppercase_letters: None,
            minimum_lowercase_letters: None,
            minimum_digits: None,
            minimum_special_characters: None,
            allow_whitespaces: Some(true),
            force_user_to_reset_password_if_not_valid: Some(false),
            password_expiration_period_days: None,
            password_reuse_frequency_days: None,
        }
    }
}

/// How people log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SecuritySettings {
    /// What a password must be like.
    #[serde(deserialize_with = "super::null_as_default")]
    pub password_policy: PasswordPolicy,
    /// Wrong passwords in a row after which a user is disabled until an administrator lets it in again; absent or 0 for
    /// never. Whether or not, a user is locked out for a while after some.
    pub max_failed_login_attempts: Option<u32>,
    /// Where a mail goes when a user was disabled so.
    pub user_lockout_notification_email: Option<String>,
    /// Length of the keys by which mobile applications log in.
    pub mobile_secret_key_length: Option<u32>,
    /// Hours that an activation link is valid, 1 to 24.
    pub user_activation_token_ttl: Option<u32>,
    /// Hours that a link to reset a password is valid, 1 to 24.
    pub password_reset_token_ttl: Option<u32>,
}

impl Default for SecuritySettings {
    fn default() -> Self {
        Self {
            password_policy: PasswordPolicy::default(),
            max_failed_login_attempts: None,
            user_lockout_notification_email: None,
            mobile_secret_key_length: Some(64),
            user_activation_token_ttl: Some(24),
            password_reset_token_ttl: Some(24),
        }
    }
}

macro_rules! user_settings_types {
    ($($variant:ident = $name:literal;)*) => {
        /// What settings of a person are about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are their own documentation")]
        pub enum UserSettingsType { $($variant,)* }

        impl UserSettingsType {
            /// The name in the REST API and in the database.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The type of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

user_settings_types! {
    General = "GENERAL";
    VisitedDashboards = "VISITED_DASHBOARDS";
    QuickLinks = "QUICK_LINKS";
    DocLinks = "DOC_LINKS";
    Dashboards = "DASHBOARDS";
    GettingStarted = "GETTING_STARTED";
    Notifications = "NOTIFICATIONS";
    Mobile = "MOBILE";
}

impl UserSettingsType {
    /// Whether the platform writes them, and people do not.
    pub const fn is_reserved(self) -> bool {
        matches!(self, Self::VisitedDashboards | Self::Mobile)
    }
}
