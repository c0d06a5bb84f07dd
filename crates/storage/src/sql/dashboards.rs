//! Dashboards, and the customers they are assigned to.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_core::ports::{DashboardFilter, DashboardStore, StoreResult};
use fieldline_model::entity::{Dashboard, DashboardInfo, ShortCustomerInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DashboardId, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::{self, EntityRecord, EntityRowKey, IDS_A_STATEMENT};
use super::statement_error::StatementError;

macro_rules! info_columns {
    () => {
        "dashboard.id, dashboard.created_time, dashboard.tenant_id, dashboard.title, dashboard.mobile_hide, \
         dashboard.mobile_order, dashboard.version, dashboard.doc"
    };
}

/// What a dashboard shows, in a column of its own.
#[derive(Serialize, Deserialize)]
struct DashboardBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Value>,
}

impl EntityRecord for Dashboard {
    const NAME: &'static str = "Dashboard";
    const TABLE: &'static str = "dashboard";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "title",
        "search",
        "mobile_hide",
        "mobile_order",
        "body",
    ];
    const SELECT: &'static str = concat!(info_columns!(), ", dashboard.body");
    const IN_COLUMNS: &'static [&'static str] = &[
        "tenantId",
        "title",
        "name",
        "assignedCustomers",
        "mobileHide",
        "mobileOrder",
        "configuration",
        "resources",
    ];
    const BROKEN_REFERENCE: &'static str = "Dashboard is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        let info = &self.info;
        EntityRowKey::of_tenant(info.tenant_id, info.id, info.created_time, info.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        let shown = DashboardBody {
            configuration: self.configuration.clone(),
            resources: self.resources.clone(),
        };
        let shown = serde_json::to_string(&shown)
            .map_err(|cause| record::invalid("Dashboard cannot be stored").caused_by(cause))?;
        Ok(vec![
            self.info.tenant_id.0.into(),
            record::bounded("title", &self.info.title)?,
            record::search_text(&[Some(&self.info.title)]),
            self.info.mobile_hide.into(),
            self.info.mobile_order.into(),
            shown.into(),
        ])
    }

    fn read(columns: &mut ColumnReader<'_>) -> StoreResult<Self> {
        let mut dashboard = read_kept(columns)?;
        let shown: String = columns.next()?;
        let shown: DashboardBody = serde_json::from_str(&shown).map_err(unreadable)?;
        dashboard.configuration = shown.configuration;
        dashboard.resources = shown.resources;
        Ok(dashboard)
    }

    fn conflict_message(&self, _: &str) -> Option<String> {
        None
    }
}

/// A dashboard without what it shows.
fn read_kept(columns: &mut ColumnReader<'_>) -> StoreResult<Dashboard> {
    let id = DashboardId(columns.next()?);
    let created_time = columns.next()?;
    let tenant_id = TenantId(columns.next()?);
    let title: String = columns.next()?;
    let mobile_hide = columns.next()?;
    let mobile_order = columns.next()?;
    let version = columns.next()?;
    let doc: String = columns.next()?;
    let kept: Dashboard = record::parse(&doc)?;
    Ok(Dashboard {
        info: DashboardInfo {
            id,
            created_time,
            tenant_id,
            name: title.clone(),
            title,
            mobile_hide,
            mobile_order,
            version: Some(version),
            ..kept.info
        },
        ..kept
    })
}

fn read_info(columns: &mut ColumnReader<'_>) -> StoreResult<DashboardInfo> {
    read_kept(columns).map(|dashboard| dashboard.info)
}

const LISTING: ListDefinition = ListDefinition {
    table: Dashboard::TABLE,
    select: info_columns!(),
    joins: "",
    sorts: &[
        ("createdTime", "dashboard.created_time"),
        ("title", "dashboard.search"),
        ("name", "dashboard.search"),
        // Those without a place come last.
        (
            "mobileOrder",
            "COALESCE(dashboard.mobile_order, 9223372036854775807)",
        ),
    ],
};

/// Dashboards in a database.
pub(super) struct SqlDashboards(pub(super) EntityDatabase);

#[async_trait]
impl DashboardStore for SqlDashboards {
    async fn save(&self, dashboard: Dashboard, create: bool) -> StoreResult<Dashboard> {
        let mut saved = record::save(&self.0, dashboard, create).await?;
        self.complete(saved.info.tenant_id, [&mut saved.info]).await?;
        Ok(saved)
    }

    async fn get(&self, tenant: TenantId, id: DashboardId) -> StoreResult<Option<Dashboard>> {
        let found: Option<Dashboard> = record::get(&self.0, RowOwner::Tenant(tenant.0), id.0).await?;
        let Some(mut dashboard) = found else {
            return Ok(None);
        };
        self.complete(tenant, [&mut dashboard.info]).await?;
        Ok(Some(dashboard))
    }

    async fn info(&self, tenant: TenantId, id: DashboardId) -> StoreResult<Option<DashboardInfo>> {
        Ok(self.infos(tenant, &[id]).await?.pop())
    }

    async fn infos(&self, tenant: TenantId, ids: &[DashboardId]) -> StoreResult<Vec<DashboardInfo>> {
        let mut found = Vec::new();
        for some in ids.chunks(IDS_A_STATEMENT) {
            let named = |query: SqlQuery| {
                query
                    .push("id IN (")
                    .bind_list(some.iter().map(|id| id.0))
                    .push(")")
                    .owned_by(RowOwner::Tenant(tenant.0))
            };
            found.append(&mut self.selected(tenant, named).await?);
        }
        Ok(found)
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &DashboardFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<DashboardInfo>> {
        let condition = |query: SqlQuery| {
            let mut query = query.push(" AND dashboard.tenant_id = ").bind(tenant.0);
            if filter.mobile {
                query = query.push(" AND NOT dashboard.mobile_hide");
            }
            if let Some(customer) = filter.customer {
                query = query
                    .push(" AND dashboard.id IN (SELECT dashboard_id FROM dashboard_customer WHERE customer_id = ")
                    .bind(customer.0)
                    .owned_by(RowOwner::Tenant(tenant.0))
                    .push(")");
            }
            query
        };
        let place = (RowOwner::Tenant(tenant.0), [].as_slice());
        let mut page = list::indexed_page(&self.0, &LISTING, page, place, condition, read_info).await?;
        self.complete(tenant, &mut page.data).await?;
        Ok(page)
    }

    async fn assign(&self, tenant: TenantId, id: DashboardId, customer: CustomerId) -> StoreResult<bool> {
        let insert =
            SqlQuery::new("INSERT INTO dashboard_customer (tenant_id, dashboard_id, customer_id) VALUES (")
                .bind_list([tenant.0, id.0, customer.0])
                .push(") ON CONFLICT DO NOTHING");
        self.change_assignment(tenant, id, insert).await
    }

    async fn unassign(&self, tenant: TenantId, id: DashboardId, customer: CustomerId) -> StoreResult<bool> {
        let delete = SqlQuery::new("DELETE FROM dashboard_customer WHERE dashboard_id = ")
            .bind(id.0)
            .push(" AND customer_id = ")
            .bind(customer.0)
            .owned_by(RowOwner::Tenant(tenant.0));
        self.change_assignment(tenant, id, delete).await
    }

    async fn delete(&self, tenant: TenantId, id: DashboardId) -> StoreResult<bool> {
        let in_use = "The dashboard is in use and cannot be deleted!";
        let (owner, subject) = (RowOwner::Tenant(tenant.0), record::subject(tenant, id));
        record::delete_leaving::<Dashboard>(&self.0, owner, subject, in_use).await
    }

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        record::count::<Dashboard>(&self.0, RowOwner::Tenant(tenant.0)).await
    }
}

impl SqlDashboards {
    /// Those of a tenant that a condition selects, without what they show.
    pub(super) async fn selected(
        &self,
        tenant: TenantId,
        condition: impl FnOnce(SqlQuery) -> SqlQuery,
    ) -> StoreResult<Vec<DashboardInfo>> {
        let select = SqlQuery::new(concat!("SELECT ", info_columns!(), " FROM dashboard WHERE "));
        let rows = self.0.read(condition(select)).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            found.push(read_info(&mut row.columns())?);
        }
        self.complete(tenant, &mut found).await?;
        Ok(found)
    }

    /// Runs a statement on assignments, and counts the dashboard's version up if it changed any.
    async fn change_assignment(
        &self,
        tenant: TenantId,
        id: DashboardId,
        change: SqlQuery,
    ) -> StoreResult<bool> {
        let mut changes = self.0.begin().await?;
        let changed = match changes.execute(change).await {
            Err(StatementError::BrokenReference) => {
                return Err(record::invalid("Dashboard or customer does not exist!"));
            }
            changed => changed? > 0,
        };
        if changed {
            let count = SqlQuery::new("UPDATE dashboard SET version = version + 1 WHERE id = ")
                .bind(id.0)
                .owned_by(RowOwner::Tenant(tenant.0));
            changes.execute(count).await?;
        }
        changes.commit().await?;
        Ok(changed)
    }

    /// Adds the customers that dashboards of a tenant are assigned to.
    async fn complete(
        &self,
        tenant: TenantId,
        dashboards: impl IntoIterator<Item = &mut DashboardInfo> + Send,
    ) -> StoreResult<()> {
        let mut by_id: BTreeMap<Uuid, &mut DashboardInfo> = dashboards
            .into_iter()
            .map(|dashboard| (dashboard.id.0, dashboard))
            .collect();
        for dashboard in by_id.values_mut() {
            dashboard.assigned_customers = None;
        }
        let ids: Vec<Uuid> = by_id.keys().copied().collect();
        for some in ids.chunks(IDS_A_STATEMENT) {
            let query = SqlQuery::new(
                "SELECT dashboard_customer.dashboard_id, customer.id, customer.title, customer.is_public \
                 FROM dashboard_customer JOIN customer ON customer.id = dashboard_customer.customer_id \
                 WHERE dashboard_customer.tenant_id = ",
            )
            .bind(tenant.0)
            .push(" AND dashboard_customer.dashboard_id IN (")
            .bind_list(some.iter().copied())
            .push(") ORDER BY customer.search, customer.id");
            for row in &self.0.read(query).await? {
                let mut columns = row.columns();
                let id: Uuid = columns.next()?;
                let customer = ShortCustomerInfo {
                    customer_id: CustomerId(columns.next()?),
                    title: columns.next()?,
                    is_public: columns.next()?,
                };
                if let Some(dashboard) = by_id.get_mut(&id) {
                    dashboard
                        .assigned_customers
                        .get_or_insert_default()
                        .push(customer);
                }
            }
        }
        Ok(())
    }
}
