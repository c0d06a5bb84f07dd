//! Entities that may be assigned to customers, of any kind: devices, assets, entity views.

use async_trait::async_trait;
use fieldline_core::ports::{AssignableEntity, AssignableStore, ImportRow, ImportValueStore, StoreResult};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, TenantId};
use uuid::Uuid;

use super::database::SqlTransaction;
use super::entities::{SqlEntities, TenantRecord};
use super::import;
use super::kinds::KindTitles;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlQuery};
use super::record::{self, bare};
use super::search::RelatedTable;

/// A kind of entities in a table with the columns `tenant_id`, `customer_id`, `name` and `search`.
pub(super) trait AssignableRecord: TenantRecord + AssignableEntity {
    /// Their lists. What is read of a row begins with [`EntityRecord::SELECT`](super::record::EntityRecord::SELECT); the customer is joined as [`ListDefinition::joins`] says.
    const LISTING: ListDefinition;
    /// What people call them, for lists of what refers to them.
    const TITLES: KindTitles;
    /// What a text search looks through besides what they are called: what their profiles and customers are.
    const RELATED: &'static [RelatedTable];

    /// It with what is read beside it.
    fn read_info(columns: &mut ColumnReader<'_>) -> StoreResult<Self::AssignableInfo>;
    /// Appends what a filter asks for besides the tenant.
    fn matching(query: SqlQuery, tenant: TenantId, filter: &Self::AssignableFilter) -> SqlQuery;
    /// Stores what goes along with imported entities, in the transaction of their own.
    fn attach(
        _along: &[&Self::ImportExtra],
        _changes: &mut SqlTransaction,
    ) -> impl Future<Output = StoreResult<()>> + Send {
        std::future::ready(Ok(()))
    }
}

#[async_trait]
impl<E: AssignableRecord> AssignableStore<E> for SqlEntities<E> {
    async fn info(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E::AssignableInfo>> {
        let query = SqlQuery::new("SELECT ")
            .push(E::LISTING.select)
            .push(" FROM ")
            .push(E::TABLE)
            .push(" ")
            .push(E::LISTING.joins)
            .push(" WHERE ")
            .push(E::TABLE)
            .push(".id = ")
            .bind(bare(id))
            .push(" AND ")
            .push(E::TABLE)
            .push(".tenant_id = ")
            .bind(tenant.0);
        let rows = self.database.read(query).await?;
        rows.first()
            .map(|row| E::read_info(&mut row.columns()))
            .transpose()
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<E>> {
        record::by_name(&self.database, RowOwner::Tenant(tenant.0), name).await
    }

    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<E>> {
        record::by_names(&self.database, RowOwner::Tenant(tenant.0), names).await
    }

    async fn import(
        &self,
        rows: Vec<ImportRow<E>>,
        values: &dyn ImportValueStore,
    ) -> StoreResult<Vec<StoreResult<E>>> {
        import::all(&self.database, &rows, values).await
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &E::AssignableFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<E::AssignableInfo>> {
        let owner = RowOwner::Tenant(tenant.0);
        let condition = |query: SqlQuery| E::matching(query.owned_by(owner), tenant, filter);
        let place = (owner, E::RELATED);
        list::indexed_page(&self.database, &E::LISTING, page, place, condition, E::read_info).await
    }
}

/// Narrows to what a customer has.
pub(super) fn of_customer(query: SqlQuery, customer: Option<CustomerId>) -> SqlQuery {
    match customer {
        Some(customer) => query.push(" AND customer_id = ").bind(customer.0),
        None => query,
    }
}

/// Narrows to what has the profile of a name, and the profile of an id.
pub(super) fn of_profile(
    mut query: SqlQuery,
    tenant: TenantId,
    profiles: &'static str,
    name: Option<&str>,
    id: Option<Uuid>,
) -> SqlQuery {
    if let Some(name) = name {
        query = query
            .push(" AND profile_id = (SELECT id FROM ")
            .push(profiles)
            .push(" WHERE name = ")
            .bind(name)
            .owned_by(RowOwner::Tenant(tenant.0))
            .push(")");
    }
    match id {
        Some(id) => query.push(" AND profile_id = ").bind(id),
        None => query,
    }
}

/// The customer of an entity, for [`AssignableRecord::RELATED`].
pub(super) const BY_CUSTOMER: RelatedTable = RelatedTable {
    column: "customer_id",
    table: "customer",
};
