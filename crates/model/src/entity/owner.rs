//! Those who own things: tenants, their profiles, and customers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{CustomerId, TenantId, TenantProfileId};

/// Postal address and contact of a tenant or customer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Contact {
    /// Country.
    pub country: Option<String>,
    /// State or province.
    pub state: Option<String>,
    /// City.
    pub city: Option<String>,
    /// First address line.
    pub address: Option<String>,
    /// Second address line.
    pub address2: Option<String>,
    /// Postal code.
    pub zip: Option<String>,
    /// Phone number.
    pub phone: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
}

/// A tenant: one walled-off organisation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Tenant {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<TenantId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: TenantId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// Title, unique in the installation.
    #[serde(deserialize_with = "super::null_as_default")]
    pub title: String,
    /// Same as the title; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Region.
    pub region: Option<String>,
    /// Profile with its limits; the default profile where absent in a request.
    pub tenant_profile_id: Option<TenantProfileId>,
    /// Address and contact.
    #[serde(flatten)]
    pub contact: Contact,
    /// Free-form JSON.
    pub additional_info: Option<Value>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(Tenant: TenantId);

/// A tenant with the name of its profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantInfo {
    /// The tenant.
    #[serde(flatten)]
    pub tenant: Tenant,
    /// Name of its profile.
    pub tenant_profile_name: String,
}

/// Limits and settings that tenants share. `profile_data` is kept whole; what Fieldline enforces is read from it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TenantProfile {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<TenantProfileId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: TenantProfileId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// Name, unique in the installation.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Whether new tenants get it.
    #[serde(rename = "default")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub is_default: bool,
    /// Whether rule engine queues are the tenant's own.
    #[serde(deserialize_with = "super::null_as_default")]
    pub isolated_tb_rule_engine: bool,
    /// `{"configuration": {...}, "queueConfiguration": [...]}`.
    pub profile_data: Value,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(TenantProfile: TenantProfileId);

impl TenantProfile {
    /// A value of `profileData.configuration`.
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.profile_data.get("configuration")?.get(name)
    }

    /// A numeric limit of `profileData.configuration`; 0 means unlimited, as does absence.
    pub fn limit(&self, name: &str) -> u64 {
        self.setting(name).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Seconds that points are kept where neither the message nor the device profile says otherwise; 0 for ever.
    pub fn storage_ttl_seconds(&self) -> u32 {
        u32::try_from(self.limit("defaultStorageTtlDays").saturating_mul(86_400)).unwrap_or(u32::MAX)
    }
}

/// The short form of a tenant profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TenantProfileInfo {
    /// Id with its entity type.
    pub id: TenantProfileId,
    /// Name.
    pub name: String,
}

/// A customer of a tenant: the people whom devices are assigned to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Customer {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<CustomerId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: CustomerId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Title, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub title: String,
    /// Same as the title; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Address and contact.
    #[serde(flatten)]
    pub contact: Contact,
    /// Free-form JSON; `isPublic` marks the public customer.
    pub additional_info: Option<Value>,
    /// Id in the system it was imported from.
    pub external_id: Option<CustomerId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(Customer: CustomerId);

impl Customer {
    /// Whether this is the tenant's public customer, whose things anyone may see.
    pub fn is_public(&self) -> bool {
        self.additional_info
            .as_ref()
            .and_then(|info| info.get("isPublic"))
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }
}
