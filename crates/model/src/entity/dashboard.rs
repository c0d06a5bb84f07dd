//! Dashboards: what people look at. Their configuration is the user interface's own and kept as it is.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::draft::stored_entity;
use crate::{CustomerId, DashboardId, TenantId};

/// A customer that a dashboard is assigned to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ShortCustomerInfo {
    /// The customer.
    #[serde(deserialize_with = "super::null_as_default")]
    pub customer_id: CustomerId,
    /// Its title.
    #[serde(deserialize_with = "super::null_as_default")]
    pub title: String,
    /// Whether that is the public customer.
    #[serde(rename = "public", deserialize_with = "super::null_as_default")]
    pub is_public: bool,
}

/// A dashboard without what it shows, as lists have it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DashboardInfo {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<DashboardId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: DashboardId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Title; several dashboards may have the same.
    #[serde(deserialize_with = "super::null_as_default")]
    pub title: String,
    /// Same as the title; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Picture, as a data or resource URL.
    pub image: Option<String>,
    /// The customers whose users may see it; ignored in requests, as assigning has calls of its own.
    pub assigned_customers: Option<Vec<ShortCustomerInfo>>,
    /// Whether mobile applications leave it out.
    #[serde(deserialize_with = "super::null_as_default")]
    pub mobile_hide: bool,
    /// Its place in the lists of mobile applications, smallest first.
    pub mobile_order: Option<i64>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(DashboardInfo: DashboardId);

impl DashboardInfo {
    /// Whether users of this customer may see it.
    pub fn is_assigned_to(&self, customer: CustomerId) -> bool {
        let assigned = self.assigned_customers.as_deref().unwrap_or_default();
        !customer.is_null() && assigned.iter().any(|one| one.customer_id == customer)
    }
}

/// A dashboard.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Dashboard {
    /// What lists show of it.
    #[serde(flatten)]
    pub info: DashboardInfo,
    /// What it shows.
    pub configuration: Option<Value>,
    /// Id in the system it was imported from.
    pub external_id: Option<DashboardId>,
    /// Pictures and scripts that came along with an import, kept as they are.
    pub resources: Option<Value>,
}

stored_entity!(Dashboard info: DashboardId);

/// The dashboard that somebody sees first.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HomeDashboard {
    /// The dashboard.
    #[serde(flatten)]
    pub dashboard: Dashboard,
    /// Whether its tools are hidden.
    pub hide_dashboard_toolbar: bool,
}

/// Which dashboard somebody sees first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HomeDashboardInfo {
    /// The dashboard; absent for none.
    pub dashboard_id: Option<DashboardId>,
    /// Whether its tools are hidden.
    #[serde(deserialize_with = "super::null_as_default")]
    pub hide_dashboard_toolbar: bool,
}

impl Default for HomeDashboardInfo {
    fn default() -> Self {
        Self {
            dashboard_id: None,
            hide_dashboard_toolbar: true,
        }
    }
}

/// The dashboards that somebody has visited or starred.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
#[schema(as = UserDashboardsInfo)]
pub struct UserDashboards {
    /// Visited, the last one first.
    pub last: Vec<LastVisitedDashboard>,
    /// Starred, the last one first.
    pub starred: Vec<StarredDashboard>,
}

/// A dashboard that was visited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LastVisitedDashboardInfo)]
pub struct LastVisitedDashboard {
    /// Bare id.
    pub id: Uuid,
    /// Its title now.
    #[serde(default)]
    pub title: String,
    /// Whether it is starred.
    #[serde(default)]
    pub starred: bool,
    /// When it was visited last, milliseconds.
    pub last_visited: i64,
}

/// A dashboard that is starred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StarredDashboardInfo)]
pub struct StarredDashboard {
    /// Bare id.
    pub id: Uuid,
    /// Its title now.
    #[serde(default)]
    pub title: String,
    /// When it was starred, milliseconds.
    pub starred_at: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_dashboard_is_read_whole_and_in_its_order() {
        let text = r#"{"title":"Office","image":null,"mobileHide":false,"mobileOrder":null,
            "configuration":{"widgets":{"z":{"sizeX":8.5,"config":{"x":[1,null,"é"]}},"a":{}},"description":"",
            "states":{"default":{"name":"Office","root":true}}},"name":"Office","resources":[{"link":"/x"}]}"#;
        let read: Dashboard = serde_json::from_str(text).unwrap();
        assert_eq!(read.info.title, "Office");
        let written = serde_json::to_string(&read.configuration).unwrap();
        assert!(
            written.starts_with(r#"{"widgets":{"z":{"sizeX":8.5,"#),
            "{written}"
        );
        assert_eq!(read.resources.unwrap()[0]["link"], "/x");
    }
}
