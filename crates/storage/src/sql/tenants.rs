//! Tenants.

use async_trait::async_trait;
use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult, TenantStore};
use fieldline_model::entity::Tenant;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityType, TenantId};

use super::entities::SqlEntities;
use super::housekeeper;
use super::kinds::assigned_tables;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery};
use super::record::{self, EntityRecord, EntityRowKey};
use super::statement_error::StatementError;

impl EntityRecord for Tenant {
    const NAME: &'static str = "Tenant";
    const TABLE: &'static str = "tenant";
    const COLUMNS: &'static [&'static str] = &[
        "title",
        "tenant_profile_id",
        "search",
        "email_key",
        "region_key",
        "country_key",
        "city_key",
    ];
    const SELECT: &'static str = "id, created_time, version, doc, title, tenant_profile_id";
    const IN_COLUMNS: &'static [&'static str] = &["title", "name", "tenantProfileId"];
    const BROKEN_REFERENCE: &'static str = "Tenant is referencing to non-existent tenant profile!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::new(self, RowOwner::Installation, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        Ok(vec![
            record::bounded("title", &self.title)?,
            self.tenant_profile_id.map(|id| id.0).into(),
            record::search_text(&[Some(&self.title)]),
            record::sort_key(self.contact.email.as_deref()),
            record::sort_key(self.region.as_deref()),
            record::sort_key(self.contact.country.as_deref()),
            record::sort_key(self.contact.city.as_deref()),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.title = columns.next()?;
        self.name.clone_from(&self.title);
        self.tenant_profile_id = columns.optional_id()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "tenant_title_key").then(|| "Tenant with such title already exists!".into())
    }
}

const PROFILE_NAME: &str =
    "(SELECT tenant_profile.search FROM tenant_profile WHERE tenant_profile.id = tenant.tenant_profile_id)";

const LISTING: ListDefinition = ListDefinition {
    table: Tenant::TABLE,
    select: Tenant::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("title", "search"),
        ("name", "search"),
        ("email", "email_key"),
        ("region", "region_key"),
        ("country", "country_key"),
        ("city", "city_key"),
        ("tenantProfileName", PROFILE_NAME),
    ],
};

/// Rows of a tenant that may be many: they go some at a time before the tenant, so that others can write in between.
struct BulkTable {
    table: &'static str,
    /// An order that is that of an index, and so of most of the pages that a statement changes.
    order: &'static str,
    a_statement: u64,
}

/// Who gets in.
const FIRST_TABLES: [BulkTable; 2] = [
    BulkTable::by_time("user_account"),
    BulkTable::new("rpc", " ORDER BY created_time"),
];

/// What goes behind all that customers may have.
const LAST_TABLES: [BulkTable; 14] = [
    BulkTable::by_time("alarm"),
    BulkTable::new("relation", ""),
    BulkTable::by_time("calculated_field"),
    BulkTable::of_versions("dashboard_version"),
    BulkTable::of_versions("rule_chain_version"),
    BulkTable::by_time("dashboard"),
    BulkTable::by_time("customer"),
    BulkTable::by_time("widgets_bundle"),
    BulkTable::by_time("widget_type"),
    BulkTable::by_time("tb_resource"),
    BulkTable::heavy("resource_file", BY_TIME),
    BulkTable::large("audit_log", BY_TIME),
    BulkTable::large("set_aside", BY_TIME),
    BulkTable::large("event", ""),
];

/// All of them in the order in which they go: who gets in first, then what refers to others before these.
fn bulk_tables() -> impl Iterator<Item = BulkTable> {
    let assignable = assigned_tables().map(BulkTable::by_time);
    FIRST_TABLES.into_iter().chain(assignable).chain(LAST_TABLES)
}

const BY_TIME: &str = " ORDER BY created_time, id";

impl BulkTable {
    const fn new(table: &'static str, order: &'static str) -> Self {
        Self {
            table,
            order,
            a_statement: 1_000,
        }
    }

    const fn by_time(table: &'static str) -> Self {
        Self::new(table, BY_TIME)
    }

    /// Of rows that take many bytes.
    const fn large(table: &'static str, order: &'static str) -> Self {
        Self {
            table,
            order,
            a_statement: 250,
        }
    }

    /// Of rows that have others below them, of many bytes.
    const fn heavy(table: &'static str, order: &'static str) -> Self {
        Self {
            table,
            order,
            a_statement: 10,
        }
    }

    /// Of what was saved, of which each row may be large.
    const fn of_versions(table: &'static str) -> Self {
        Self {
            table,
            order: "",
            a_statement: 20,
        }
    }

    /// Deletes some. They are found again by where they are: by their keys, a database may go through the whole tenant for them.
    /// In a table of parts that is a place in each of them, of which others may have theirs.
    fn deletion(&self, tenant: TenantId, place: &'static str) -> SqlQuery {
        SqlQuery::new("DELETE FROM ")
            .push(self.table)
            .push(" WHERE ")
            .push(place)
            .push(" IN (SELECT ")
            .push(place)
            .push(" FROM ")
            .push(self.table)
            .push(" WHERE tenant_id = ")
            .bind(tenant.0)
            .push(self.order)
            .push(" LIMIT ")
            .bind(self.a_statement as i64)
            .push(") AND tenant_id = ")
            .bind(tenant.0)
    }
}

#[async_trait]
impl TenantStore for SqlEntities<Tenant> {
    async fn get(&self, id: TenantId) -> StoreResult<Option<Tenant>> {
        record::get(&self.database, RowOwner::Installation, id.0).await
    }

    async fn list(&self, page: &PageLink) -> StoreResult<PageData<Tenant>> {
        let place = (RowOwner::Installation, [].as_slice());
        list::indexed_page(&self.database, &LISTING, page, place, |query| query, Tenant::read).await
    }

    async fn by_ids(&self, ids: &[TenantId]) -> StoreResult<Vec<Tenant>> {
        record::by_ids(&self.database, RowOwner::Installation, ids.iter().map(|id| id.0)).await
    }

    async fn delete(&self, id: TenantId) -> StoreResult<bool> {
        let note = housekeeper::note_from(id, EntityType::Tenant)
            .push("tenant WHERE id = ")
            .bind(id.0);
        if self.database.execute(housekeeper::noted(note)).await? == 0 {
            return Ok(false);
        }
        let place = if self.database.is_sqlite() {
            "rowid"
        } else {
            "ctid"
        };
        for rows in bulk_tables() {
            loop {
                match self.database.execute(rows.deletion(id, place)).await {
                    Ok(deleted) if deleted >= rows.a_statement => {}
                    // Something that refers to one has just come: both go with the tenant.
                    Ok(_) | Err(StatementError::BrokenReference) => break,
                    Err(failure) => return Err(failure.into_error()),
                }
            }
        }
        // What is left refers to the tenant by a foreign key that cascades. What came meanwhile is there before that begins.
        let mut changes = self.database.begin().await?;
        changes.lock_row(Tenant::TABLE, id.0).await?;
        let deletion = record::deletion::<Tenant>(RowOwner::Installation, id.0);
        let is_deleted = match changes.execute(deletion).await {
            Ok(deleted) => deleted > 0,
            Err(StatementError::BrokenReference) => {
                return Err(StoreError::new(
                    StoreErrorKind::Conflict,
                    "The tenant is in use and cannot be deleted!",
                ));
            }
            Err(failure) => return Err(failure.into_error()),
        };
        changes.commit().await?;
        Ok(is_deleted)
    }
}
