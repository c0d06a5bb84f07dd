//! Dashboards, and the customers they are assigned to.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_core::ports::{DashboardFilter, DashboardStore, SavedBy, StoreResult};
use fieldline_model::entity::{Dashboard, DashboardInfo, ShortCustomerInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DashboardId, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::database::EntityDatabase;
use super::entities::{SqlEntities, TenantRecord};
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::{self, EntityRecord, EntityRowKey, IDS_A_STATEMENT};
use super::statement_error::StatementError;
use super::versions::{self, Snapshot};

macro_rules! info_columns {
    () => {
        "dashboard.id, dashboard.created_time, dashboard.version, dashboard.doc, dashboard.tenant_id, dashboard.title, \
         dashboard.mobile_hide, dashboard.mobile_order"
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
        EntityRowKey::of_tenant(self, self.info.tenant_id, self.info.version)
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

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        fill_info(self, version, columns)?;
        let shown: String = columns.next()?;
        let shown: DashboardBody = serde_json::from_str(&shown).map_err(unreadable)?;
        self.configuration = shown.configuration;
        self.resources = shown.resources;
        Ok(())
    }

    fn conflict_message(&self, _: &str) -> Option<String> {
        None
    }

    async fn insert(self, database: &EntityDatabase) -> StoreResult<Self> {
        let mut saved = record::insert(database, self).await?;
        complete(database, saved.info.tenant_id, [&mut saved.info]).await?;
        Ok(saved)
    }

    async fn update(self, database: &EntityDatabase) -> StoreResult<Self> {
        let mut saved = record::update(database, self).await?;
        complete(database, saved.info.tenant_id, [&mut saved.info]).await?;
        Ok(saved)
    }
}

/// Fills in what is known of a dashboard without what it shows.
fn fill_info(dashboard: &mut Dashboard, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
    let info = &mut dashboard.info;
    info.version = Some(version);
    info.tenant_id = columns.id()?;
    info.title = columns.next()?;
    info.name.clone_from(&info.title);
    info.mobile_hide = columns.next()?;
    info.mobile_order = columns.next()?;
    Ok(())
}

fn read_info(columns: &mut ColumnReader<'_>) -> StoreResult<DashboardInfo> {
    record::read(columns, fill_info).map(|dashboard| dashboard.info)
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

impl TenantRecord for Dashboard {
    const IN_USE: &'static str = "The dashboard is in use and cannot be deleted!";

    async fn complete(database: &EntityDatabase, tenant: TenantId, found: &mut [Self]) -> StoreResult<()> {
        complete(
            database,
            tenant,
            found.iter_mut().map(|dashboard| &mut dashboard.info),
        )
        .await
    }
}

#[async_trait]
impl DashboardStore for SqlEntities<Dashboard> {
    async fn insert_by(&self, dashboard: Dashboard, by: &SavedBy) -> StoreResult<Dashboard> {
        let mut changes = self.database.begin().await?;
        let mut saved = record::insert_within(&mut changes, &dashboard).await?;
        snapshot(&saved)?.keep(&mut changes, by).await?;
        changes.commit().await?;
        complete(&self.database, saved.info.tenant_id, [&mut saved.info]).await?;
        Ok(saved)
    }

    async fn update_by(&self, dashboard: Dashboard, by: &SavedBy) -> StoreResult<Dashboard> {
        let (tenant, id) = (dashboard.info.tenant_id, dashboard.info.id);
        let first = match versions::any(&self.database, tenant, id).await? {
            true => None,
            // It was saved before there were versions.
            false => record::get::<Dashboard>(&self.database, RowOwner::of(tenant), id.0).await?,
        };
        let mut changes = self.database.begin().await?;
        if let Some(old) = first {
            let at_ms = old.info.created_time;
            snapshot(&old)?
                .keep(&mut changes, &SavedBy { at_ms, user: None })
                .await?;
        }
        let Some(mut saved) = record::update_within(&mut changes, &dashboard).await? else {
            drop(changes);
            return Err(record::not_updated(&self.database, &dashboard).await?);
        };
        snapshot(&saved)?.keep(&mut changes, by).await?;
        changes.commit().await?;
        complete(&self.database, tenant, [&mut saved.info]).await?;
        Ok(saved)
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
        let mut page =
            list::indexed_page(&self.database, &LISTING, page, place, condition, read_info).await?;
        complete(&self.database, tenant, &mut page.data).await?;
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
}

/// What is kept of a saved dashboard: all but whom it is assigned to, and its version.
fn snapshot(dashboard: &Dashboard) -> StoreResult<Snapshot> {
    let info = &dashboard.info;
    let kept = KeptDashboard {
        info: DashboardInfo {
            version: None,
            ..info.clone()
        },
        configuration: dashboard.configuration.as_ref(),
        external_id: dashboard.external_id,
        resources: dashboard.resources.as_ref(),
    };
    Snapshot::new(info.tenant_id, info.id, info.version, &info.title, &kept)
}

/// A dashboard as a version keeps it, in the form of [`Dashboard`]: what it shows may be large, and is not copied.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeptDashboard<'a> {
    #[serde(flatten)]
    info: DashboardInfo,
    configuration: Option<&'a Value>,
    external_id: Option<DashboardId>,
    resources: Option<&'a Value>,
}

impl SqlEntities<Dashboard> {
    /// Those of a tenant that a condition selects, without what they show.
    pub(super) async fn selected(
        &self,
        tenant: TenantId,
        condition: impl FnOnce(SqlQuery) -> SqlQuery,
    ) -> StoreResult<Vec<DashboardInfo>> {
        let select = SqlQuery::new(concat!("SELECT ", info_columns!(), " FROM dashboard WHERE "));
        let rows = self.database.read(condition(select)).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            found.push(read_info(&mut row.columns())?);
        }
        complete(&self.database, tenant, &mut found).await?;
        Ok(found)
    }

    /// Runs a statement on assignments, and counts the dashboard's version up if it changed any.
    async fn change_assignment(
        &self,
        tenant: TenantId,
        id: DashboardId,
        change: SqlQuery,
    ) -> StoreResult<bool> {
        let mut changes = self.database.begin().await?;
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
}

/// Adds the customers that dashboards of a tenant are assigned to.
async fn complete(
    database: &EntityDatabase,
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
        for row in &database.read(query).await? {
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
