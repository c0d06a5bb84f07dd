//! Assets and their profiles.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{AssetId, AssetProfileId, CustomerId, EntityId, TenantId};

/// An asset: a building, a vehicle, anything that devices belong to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Asset {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<AssetId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: AssetId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// The customer it is assigned to; null id for none.
    #[serde(deserialize_with = "super::null_as_default")]
    pub customer_id: CustomerId,
    /// Name, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Name of its profile.
    #[serde(rename = "type")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub asset_type: String,
    /// Label for people.
    pub label: Option<String>,
    /// Its profile.
    pub asset_profile_id: Option<AssetProfileId>,
    /// Id in the system it was imported from.
    pub external_id: Option<AssetId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
    /// Free-form JSON, such as `description`.
    pub additional_info: Option<Value>,
}

stored_entity!(Asset: AssetId);

/// An asset with what lists show beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetInfo {
    /// The asset.
    #[serde(flatten)]
    pub asset: Asset,
    /// Title of the customer it is assigned to.
    pub customer_title: Option<String>,
    /// Whether that is the public customer.
    pub customer_is_public: bool,
    /// Name of its profile.
    pub asset_profile_name: String,
}

/// What assets of one kind share.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AssetProfile {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<AssetProfileId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: AssetProfileId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Name, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Picture, as a data or resource URL.
    pub image: Option<String>,
    /// Whether assets without a type get it.
    #[serde(rename = "default")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub is_default: bool,
    /// Rule chain of its assets; the root chain where absent.
    pub default_rule_chain_id: Option<EntityId>,
    /// Dashboard shown for its assets.
    pub default_dashboard_id: Option<EntityId>,
    /// Queue of its assets' messages; `Main` where absent.
    pub default_queue_name: Option<String>,
    /// Rule chain of its assets on edges.
    pub default_edge_rule_chain_id: Option<EntityId>,
    /// Id in the system it was imported from.
    pub external_id: Option<AssetProfileId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(AssetProfile: AssetProfileId);

/// The short form of an asset profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetProfileInfo {
    /// Id with its entity type.
    pub id: AssetProfileId,
    /// The tenant it belongs to.
    pub tenant_id: TenantId,
    /// Name.
    pub name: String,
    /// Picture.
    pub image: Option<String>,
    /// Dashboard shown for its assets.
    pub default_dashboard_id: Option<EntityId>,
}

impl From<AssetProfile> for AssetProfileInfo {
    fn from(profile: AssetProfile) -> Self {
        Self {
            id: profile.id,
            tenant_id: profile.tenant_id,
            name: profile.name,
            image: profile.image,
            default_dashboard_id: profile.default_dashboard_id,
        }
    }
}
