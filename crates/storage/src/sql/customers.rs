//! Customers.

use async_trait::async_trait;
use fieldline_core::ports::{CustomerStore, StoreResult};
use fieldline_model::entity::Customer;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, EntityType, TenantId};

use super::database::EntityDatabase;
use super::housekeeper;
use super::kinds::kind_table;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery};
use super::record::{self, EntityRecord, EntityRowKey};

/// Entities that are unassigned in one statement, so that others can write in between.
const UNASSIGNED_A_STATEMENT: u64 = 1_000;

/// The tables of what may be assigned to a customer.
fn assigned_tables() -> impl Iterator<Item = &'static str> {
    EntityType::ALL
        .iter()
        .filter_map(|kind| kind_table(*kind)?.assigned)
}

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
        .push(")")
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
    const SELECT: &'static str = "id, created_time, tenant_id, title, version, doc";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "title", "name"];
    const BROKEN_REFERENCE: &'static str = "Customer is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self.tenant_id, self.id, self.created_time, self.version)
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

    fn read(columns: &mut ColumnReader<'_>) -> StoreResult<Self> {
        let id = CustomerId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id = TenantId(columns.next()?);
        let title: String = columns.next()?;
        let version = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id,
            created_time,
            tenant_id,
            name: title.clone(),
            title,
            version: Some(version),
            ..record::parse(&doc)?
        })
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

/// Customers in a database.
pub(super) struct SqlCustomers(pub(super) EntityDatabase);

#[async_trait]
impl CustomerStore for SqlCustomers {
    async fn save(&self, customer: Customer, create: bool) -> StoreResult<Customer> {
        record::save(&self.0, customer, create).await
    }

    async fn get(&self, tenant: TenantId, id: CustomerId) -> StoreResult<Option<Customer>> {
        record::get(&self.0, RowOwner::Tenant(tenant.0), id.0).await
    }

    async fn by_title(&self, tenant: TenantId, title: &str) -> StoreResult<Option<Customer>> {
        let query = record::select::<Customer>()
            .push("title = ")
            .bind(title)
            .owned_by(RowOwner::Tenant(tenant.0));
        record::first(&self.0.read(query).await?)
    }

    async fn public(&self, id: CustomerId) -> StoreResult<Option<Customer>> {
        let query = record::select::<Customer>()
            .push("is_public AND id = ")
            .bind(id.0);
        record::first(&self.0.read(query).await?)
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Customer>> {
        let owner = RowOwner::Tenant(tenant.0);
        let of_tenant = |query: SqlQuery| query.owned_by(owner);
        list::indexed_page(&self.0, &LISTING, page, (owner, &[]), of_tenant, Customer::read).await
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[CustomerId]) -> StoreResult<Vec<Customer>> {
        record::by_ids(&self.0, RowOwner::Tenant(tenant.0), ids.iter().map(|id| id.0)).await
    }

    async fn delete(&self, tenant: TenantId, id: CustomerId) -> StoreResult<bool> {
        let owner = RowOwner::Tenant(tenant.0);
        for table in assigned_tables() {
            while self.0.execute(unassignment(table, owner, id)).await? >= UNASSIGNED_A_STATEMENT {}
        }
        let mut changes = self.0.begin().await?;
        // What was assigned just now.
        for table in assigned_tables() {
            changes.execute(unassignment(table, owner, id)).await?;
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

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        record::count::<Customer>(&self.0, RowOwner::Tenant(tenant.0)).await
    }
}
