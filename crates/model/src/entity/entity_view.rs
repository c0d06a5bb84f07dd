//! Entity views: a part of a device's or asset's data, shown as an entity of its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{CustomerId, EntityId, EntityViewId, TenantId};

/// Which attributes a view shows, by scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct AttributeKeys {
    /// Client attributes.
    #[serde(deserialize_with = "super::null_as_default")]
    pub cs: Vec<String>,
    /// Server attributes.
    #[serde(deserialize_with = "super::null_as_default")]
    pub ss: Vec<String>,
    /// Shared attributes.
    #[serde(deserialize_with = "super::null_as_default")]
    pub sh: Vec<String>,
}

/// Which keys a view shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ViewKeys {
    /// Time series.
    #[serde(deserialize_with = "super::null_as_default")]
    pub timeseries: Vec<String>,
    /// Attributes.
    #[serde(deserialize_with = "super::null_as_default")]
    pub attributes: AttributeKeys,
}

/// An entity view.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct EntityView {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<EntityViewId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: EntityViewId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The device or asset whose data it shows.
    pub entity_id: Option<EntityId>,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// The customer it is assigned to; null id for none.
    #[serde(deserialize_with = "super::null_as_default")]
    pub customer_id: CustomerId,
    /// Name, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Type, a free text.
    #[serde(rename = "type")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub view_type: String,
    /// What it shows.
    pub keys: Option<ViewKeys>,
    /// Nothing before this time is shown, milliseconds; 0 for no bound.
    #[serde(deserialize_with = "super::null_as_default")]
    pub start_time_ms: i64,
    /// Nothing after this time is shown, milliseconds; 0 for no bound.
    #[serde(deserialize_with = "super::null_as_default")]
    pub end_time_ms: i64,
    /// Id in the system it was imported from.
    pub external_id: Option<EntityViewId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
    /// Free-form JSON, such as `description`.
    pub additional_info: Option<Value>,
}

stored_entity!(EntityView: EntityViewId);

/// An entity view with what lists show beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityViewInfo {
    /// The view.
    #[serde(flatten)]
    pub view: EntityView,
    /// Title of the customer it is assigned to.
    pub customer_title: Option<String>,
    /// Whether that is the public customer.
    pub customer_is_public: bool,
}
