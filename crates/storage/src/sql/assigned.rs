//! Entities that may be assigned to customers, of any kind: devices, assets, entity views.

use std::marker::PhantomData;

use async_trait::async_trait;
use fieldline_core::ports::{Assignable, AssignableStore, ImportRow, ImportedValues, StoreResult};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, TenantId};
use uuid::Uuid;

use super::database::{Changes, Database};
use super::import;
use super::list::{self, Listing};
use super::query::{Columns, Owner, Query};
use super::record::{self, Record, bare};
use super::search::Related;

/// A kind of entities in a table with the columns `tenant_id`, `customer_id`, `name` and `search`.
pub(super) trait Assigned: Record + Assignable {
    /// Their lists. What is read of a row begins with [`Record::SELECT`]; the customer is joined as [`Listing::joins`] says.
    const LISTING: Listing;
    /// The answer where others refer to one that is deleted.
    const IN_USE: &'static str;
    /// What a text search looks through besides what they are called: what their profiles and customers are.
    const RELATED: &'static [Related];

    /// It with what is read beside it.
    fn read_info(columns: &mut Columns<'_>) -> StoreResult<Self::Info>;
    /// Appends what a filter asks for besides the tenant.
    fn matching(query: Query, tenant: TenantId, filter: &Self::Filter) -> Query;
    /// Stores what goes along with imported entities, in the transaction of their own.
    fn attach(
        _along: &[&Self::Along],
        _changes: &mut Changes,
    ) -> impl Future<Output = StoreResult<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// The entities of a kind in a database.
pub(super) struct Rows<E> {
    pub(super) database: Database,
    kind: PhantomData<fn() -> E>,
}

impl<E> Rows<E> {
    pub(super) fn new(database: &Database) -> Self {
        Self {
            database: database.clone(),
            kind: PhantomData,
        }
    }
}

#[async_trait]
impl<E: Assigned> AssignableStore<E> for Rows<E> {
    async fn save(&self, entity: E, create: bool) -> StoreResult<E> {
        record::save(&self.database, entity, create).await
    }

    async fn get(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E>> {
        record::get(&self.database, Owner::Tenant(tenant.0), bare(id)).await
    }

    async fn info(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E::Info>> {
        let query = Query::new("SELECT ")
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
        record::by_name(&self.database, Owner::Tenant(tenant.0), name).await
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[E::Id]) -> StoreResult<Vec<E>> {
        let ids = ids.iter().map(|id| bare(*id));
        record::by_ids(&self.database, Owner::Tenant(tenant.0), ids).await
    }

    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<E>> {
        record::by_names(&self.database, Owner::Tenant(tenant.0), names).await
    }

    async fn import(
        &self,
        rows: Vec<ImportRow<E>>,
        values: &dyn ImportedValues,
    ) -> StoreResult<Vec<StoreResult<E>>> {
        import::all(&self.database, &rows, values).await
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &E::Filter,
        page: &PageLink,
    ) -> StoreResult<PageData<E::Info>> {
        let owner = Owner::Tenant(tenant.0);
        let condition = |query: Query| E::matching(query.owned_by(owner), tenant, filter);
        let place = (owner, E::RELATED);
        list::indexed_page(&self.database, &E::LISTING, page, place, condition, E::read_info).await
    }

    async fn delete(&self, tenant: TenantId, id: E::Id) -> StoreResult<bool> {
        let (owner, subject) = (Owner::Tenant(tenant.0), record::subject(tenant, id));
        record::delete_leaving::<E>(&self.database, owner, subject, E::IN_USE).await
    }

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        record::count::<E>(&self.database, Owner::Tenant(tenant.0)).await
    }
}

/// Narrows to what a customer has.
pub(super) fn of_customer(query: Query, customer: Option<CustomerId>) -> Query {
    match customer {
        Some(customer) => query.push(" AND customer_id = ").bind(customer.0),
        None => query,
    }
}

/// Narrows to what has the profile of a name, and the profile of an id.
pub(super) fn of_profile(
    mut query: Query,
    tenant: TenantId,
    profiles: &'static str,
    name: Option<&str>,
    id: Option<Uuid>,
) -> Query {
    if let Some(name) = name {
        query = query
            .push(" AND profile_id = (SELECT id FROM ")
            .push(profiles)
            .push(" WHERE name = ")
            .bind(name)
            .owned_by(Owner::Tenant(tenant.0))
            .push(")");
    }
    match id {
        Some(id) => query.push(" AND profile_id = ").bind(id),
        None => query,
    }
}

/// The customer of an entity, for [`Assigned::RELATED`].
pub(super) const BY_CUSTOMER: Related = Related {
    column: "customer_id",
    table: "customer",
};
