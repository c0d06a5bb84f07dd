//! Customers.

use async_trait::async_trait;
use fieldline_core::ports::{CustomerStore, StoreResult};
use fieldline_model::entity::Customer;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, EntityType, TenantId};

use super::database::EntityDatabase;
use super::entities::{SqlEntities, TenantRecord};
use super::housekeeper;
use super::kinds::assigned_tables;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery};
use super::record::{self, EntityRecord, EntityRowKey};

/// Entities that are unassigned in one statement, so that others can write in between.
const UNASSIGNED_A_STATEMENT: u64 = 1_000;

/// Takes some of what a customer has from it.
fn unassignment(table: &'static str, owner: RowOwner, customer: CustomerId) -> SqlQuery {
    SqlQuery::new("UPDATE ")
        .push(table)
        .push(" SET customer_id = NULL, version = version + 1 WHERE id IN (SELECT id FROM ")
        .push(table)
        .push(" WHERE customer_id = ")
        .bind(customer.0)
        .owned_by(owner)
        .push(" ORDER BY created_time, id LIMIT ")
        .bind(UNASSIGNED_A_STATEMENT as i64)
        // Another process may have given one of them to somebody else while this one waited for its row.
        .push(") AND customer_id = ")
        .bind(customer.0)
}

impl EntityRecord for Customer {
    const NAME: &'static str = "Customer";
    const TABLE: &'static str = "customer";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "title",
        "is_public",
        "search",
        "email_key",
        "country_key",
        "city_key",
    ];
    const SELECT: &'static str = "id, created_time, version, doc, tenant_id, title";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "title", "name"];
    const BROKEN_REFERENCE: &'static str = "Customer is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        Ok(vec![
            self.tenant_id.0.into(),
            record::bounded("title", &self.title)?,
            self.is_public().into(),
            record::search_text(&[Some(&self.title)]),
            record::sort_key(self.contact.email.as_deref()),
            record::sort_key(self.contact.country.as_deref()),
            record::sort_key(self.contact.city.as_deref()),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.title = columns.next()?;
        self.name.clone_from(&self.title);
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "customer_tenant_id_title_key")
            .then(|| "Customer with such title already exists!".into())
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: Customer::TABLE,
    select: Customer::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("title", "search"),
        ("name", "search"),
        ("email", "email_key"),
        ("country", "country_key"),
        ("city", "city_key"),
    ],
};

impl TenantRecord for Customer {
    const IN_USE: &'static str = "The customer is in use and cannot be deleted!";

    async fn delete(database: &EntityDatabase, tenant: TenantId, id: CustomerId) -> StoreResult<bool> {
        let owner = RowOwner::Tenant(tenant.0);
        for table in assigned_tables() {
            while database.execute(unassignment(table, owner, id)).await? > 0 {}
        }
        let mut changes = database.begin().await?;
        changes.lock_row(Self::TABLE, id.0).await?;
        // What was assigned just now.
        for table in assigned_tables() {
            while changes.execute(unassignment(table, owner, id)).await? > 0 {}
        }
        let users = housekeeper::note_from(tenant, EntityType::User)
            .push("user_account WHERE customer_id = ")
            .bind(id.0)
            .owned_by(owner);
        changes.execute(housekeeper::noted(users)).await?;
        // Users go with their customer by a foreign key that cascades.
        let deleted = changes.execute(record::deletion::<Customer>(owner, id.0)).await?;
        if deleted == 0 {
            return Ok(false);
        }
        changes
            .execute(housekeeper::note(record::subject(tenant, id)))
            .await?;
        changes.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl CustomerStore for SqlEntities<Customer> {
    async fn by_title(&self, tenant: TenantId, title: &str) -> StoreResult<Option<Customer>> {
        let query = record::select::<Customer>()
            .push("title = ")
            .bind(title)
            .owned_by(RowOwner::Tenant(tenant.0));
        record::first(&self.database.read(query).await?)
    }

    async fn public(&self, id: CustomerId) -> StoreResult<Option<Customer>> {
        let query = record::select::<Customer>()
            .push("is_public AND id = ")
            .bind(id.0);
        record::first(&self.database.read(query).await?)
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Customer>> {
        let owner = RowOwner::Tenant(tenant.0);
        let of_tenant = |query: SqlQuery| query.owned_by(owner);
        list::indexed_page(
            &self.database,
            &LISTING,
            page,
            (owner, &[]),
            of_tenant,
            Customer::read,
        )
        .await
    }
}
