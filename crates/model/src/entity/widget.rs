//! The widget library: types of widgets, which dashboards name, and bundles of them. What a type looks like and runs is the
//! user interface's own and kept as it is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{TenantId, WidgetTypeId, WidgetsBundleId};

/// What all forms of a widget type begin with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
#[schema(as = BaseWidgetType)]
pub struct WidgetTypeBase {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<WidgetTypeId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: WidgetTypeId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to, the null id for what the system shares; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Name that dashboards use, unique in the tenant; made from the name where it is missing.
    pub fqn: Option<String>,
    /// Name.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Whether new dashboards should not use it.
    #[serde(deserialize_with = "super::null_as_default")]
    pub deprecated: bool,
    /// Whether it is a symbol of a SCADA drawing.
    #[serde(deserialize_with = "super::null_as_default")]
    pub scada: bool,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

/// What people read about a widget type in lists.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WidgetTypeTexts {
    /// Picture, as a data or resource URL.
    pub image: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Words to find it by.
    pub tags: Option<Vec<String>>,
}

/// A widget type as dashboards load it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct WidgetType {
    /// Which one it is.
    #[serde(flatten)]
    pub base: WidgetTypeBase,
    /// What it looks like and runs.
    pub descriptor: Value,
}

/// A widget type with all that is stored of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WidgetTypeDetails {
    /// Which one it is.
    #[serde(flatten)]
    pub base: WidgetTypeBase,
    /// What lists show of it.
    #[serde(flatten)]
    pub texts: WidgetTypeTexts,
    /// What it looks like and runs: a JSON object with `type`, `sizeX`, `sizeY`, `templateHtml` and more.
    pub descriptor: Value,
    /// Id in the system it was imported from.
    pub external_id: Option<WidgetTypeId>,
    /// Pictures and scripts that it uses, where they are asked for; imported where it is saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<super::ResourceExportData>>,
}

stored_entity!(WidgetTypeDetails base: WidgetTypeId);

impl WidgetTypeDetails {
    /// What its data is: `timeseries`, `latest`, `rpc`, `alarm` or `static`; empty where the descriptor does not say.
    pub fn data_type(&self) -> &str {
        self.descriptor
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl From<WidgetTypeDetails> for WidgetType {
    fn from(details: WidgetTypeDetails) -> Self {
        Self {
            base: details.base,
            descriptor: details.descriptor,
        }
    }
}

/// A widget type without what it looks like, as lists have it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WidgetTypeInfo {
    /// Which one it is.
    #[serde(flatten)]
    pub base: WidgetTypeBase,
    /// What lists show of it.
    #[serde(flatten)]
    pub texts: WidgetTypeTexts,
    /// What its data is: `timeseries`, `latest`, `rpc`, `alarm` or `static`.
    pub widget_type: String,
    /// The bundles that have it; filled in lists only.
    pub bundles: Vec<WidgetsBundleName>,
}

stored_entity!(WidgetTypeInfo base: WidgetTypeId);

impl From<&WidgetTypeDetails> for WidgetTypeInfo {
    fn from(details: &WidgetTypeDetails) -> Self {
        Self {
            base: details.base.clone(),
            texts: details.texts.clone(),
            widget_type: details.data_type().to_owned(),
            bundles: Vec::new(),
        }
    }
}

/// A bundle by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = WidgetsBundleInfo)]
pub struct WidgetsBundleName {
    /// Its id.
    pub id: WidgetsBundleId,
    /// Its title.
    pub name: String,
}

/// A bundle of widget types.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WidgetsBundle {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<WidgetsBundleId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: WidgetsBundleId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to, the null id for what the system shares; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Name that does not change, unique in the tenant; made from the title where it is missing.
    pub alias: Option<String>,
    /// Title.
    #[serde(deserialize_with = "super::null_as_default")]
    pub title: String,
    /// Same as the title; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Picture, as a data or resource URL.
    pub image: Option<String>,
    /// Whether it has symbols of SCADA drawings.
    #[serde(deserialize_with = "super::null_as_default")]
    pub scada: bool,
    /// What it is for.
    pub description: Option<String>,
    /// Its place in lists of user interfaces, smallest first.
    pub order: Option<i64>,
    /// Id in the system it was imported from.
    pub external_id: Option<WidgetsBundleId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(WidgetsBundle: WidgetsBundleId);
