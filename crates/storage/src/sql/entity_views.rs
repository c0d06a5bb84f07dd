//! Entity views.

use async_trait::async_trait;
use fieldline_core::ports::{EntityViewFilter, EntityViewStore, StoreResult};
use fieldline_model::entity::{EntityView, EntityViewInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, EntityViewId, TenantId};
use uuid::Uuid;

use super::database::Database;
use super::list::{self, Listing};
use super::names::{entity_id, type_code};
use super::query::{Arg, Columns, Owner, Query};
use super::record::{self, Record};

/// What a view is read from.
macro_rules! view_columns {
    () => {
        "entity_view.id, entity_view.created_time, entity_view.tenant_id, entity_view.customer_id, \
         entity_view.entity_type, entity_view.entity_id, entity_view.name, entity_view.type, entity_view.version, \
         entity_view.doc"
    };
}

/// What is read beside it for an [`EntityViewInfo`], where `INFO_JOINS` are made.
macro_rules! info_columns {
    () => {
        concat!(
            view_columns!(),
            ", customer.title, COALESCE(customer.is_public, FALSE)"
        )
    };
}

const INFO_JOINS: &str = "LEFT JOIN customer ON customer.id = entity_view.customer_id";

/// The most types that are listed.
const MAX_TYPES: i64 = 1_000;

impl Record for EntityView {
    const NAME: &'static str = "Entity view";
    const TABLE: &'static str = "entity_view";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "customer_id",
        "entity_type",
        "entity_id",
        "name",
        "type",
        "type_key",
        "search",
    ];
    const SELECT: &'static str = view_columns!();
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "customerId", "entityId", "name", "type"];
    const BROKEN_REFERENCE: &'static str = "Entity view is referencing to non-existent tenant or customer!";

    fn id(&self) -> Option<Uuid> {
        self.id.map(|id| id.0)
    }

    fn created_time(&self) -> i64 {
        self.created_time
    }

    fn version(&self) -> Option<i64> {
        self.version
    }

    fn owner(&self) -> Owner {
        Owner::Tenant(self.tenant_id.0)
    }

    fn values(&self) -> StoreResult<Vec<Arg>> {
        let entity = self
            .entity_id
            .ok_or_else(|| record::invalid("Entity view entity id should be specified!"))?;
        Ok(vec![
            self.tenant_id.0.into(),
            (!self.customer_id.is_null()).then_some(self.customer_id.0).into(),
            type_code(entity.entity_type).into(),
            entity.id.into(),
            record::bounded("name", &self.name)?,
            record::bounded("type", &self.view_type)?,
            record::sort_key(Some(&self.view_type)),
            record::search_text(&[Some(&self.name), Some(&self.view_type)]),
        ])
    }

    fn read(columns: &mut Columns<'_>) -> StoreResult<Self> {
        let id = EntityViewId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id = TenantId(columns.next()?);
        let customer_id: Option<Uuid> = columns.next()?;
        let entity = entity_id(columns)?;
        let name = columns.next()?;
        let view_type = columns.next()?;
        let version = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id: Some(id),
            created_time,
            tenant_id,
            customer_id: customer_id.map_or(CustomerId::NULL, CustomerId),
            entity_id: Some(entity),
            name,
            view_type,
            version: Some(version),
            ..record::parse(&doc)?
        })
    }

    fn taken(&self, constraint: &str) -> Option<String> {
        (constraint == "entity_view_tenant_id_name_key")
            .then(|| "Entity view with such name already exists!".into())
    }
}

fn read_info(columns: &mut Columns<'_>) -> StoreResult<EntityViewInfo> {
    Ok(EntityViewInfo {
        view: EntityView::read(columns)?,
        customer_title: columns.next()?,
        customer_is_public: columns.next()?,
    })
}

const LISTING: Listing = Listing {
    table: EntityView::TABLE,
    select: info_columns!(),
    joins: INFO_JOINS,
    sorts: &[
        ("createdTime", "entity_view.created_time"),
        ("name", "entity_view.search"),
        ("type", "entity_view.type_key"),
        (
            "customerTitle",
            "COALESCE((SELECT search FROM customer WHERE customer.id = entity_view.customer_id), '')",
        ),
    ],
};

/// Entity views in a database.
pub(super) struct EntityViews(pub(super) Database);

#[async_trait]
impl EntityViewStore for EntityViews {
    async fn save(&self, view: EntityView, create: bool) -> StoreResult<EntityView> {
        record::save(&self.0, view, create).await
    }

    async fn get(&self, tenant: TenantId, id: EntityViewId) -> StoreResult<Option<EntityView>> {
        record::get(&self.0, Owner::Tenant(tenant.0), id.0).await
    }

    async fn info(&self, tenant: TenantId, id: EntityViewId) -> StoreResult<Option<EntityViewInfo>> {
        let query = Query::new(concat!("SELECT ", info_columns!(), " FROM entity_view "))
            .push(INFO_JOINS)
            .push(" WHERE entity_view.id = ")
            .bind(id.0)
            .push(" AND entity_view.tenant_id = ")
            .bind(tenant.0);
        let rows = self.0.read(query).await?;
        rows.first().map(|row| read_info(&mut row.columns())).transpose()
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<EntityView>> {
        let query = record::select::<EntityView>()
            .push("name = ")
            .bind(name)
            .owned_by(Owner::Tenant(tenant.0));
        record::first(&self.0.read(query).await?)
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[EntityViewId]) -> StoreResult<Vec<EntityView>> {
        record::by_ids(&self.0, Owner::Tenant(tenant.0), ids.iter().map(|id| id.0)).await
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &EntityViewFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityViewInfo>> {
        let condition = |query: Query| matching(query, tenant, filter);
        let search = |query: Query, pattern: &str| containing(query, tenant, pattern);
        list::page(&self.0, &LISTING, page, condition, search, read_info).await
    }

    async fn types(&self, tenant: TenantId) -> StoreResult<Vec<String>> {
        let query = Query::new("SELECT DISTINCT type FROM entity_view WHERE tenant_id = ")
            .bind(tenant.0)
            .push(" ORDER BY type LIMIT ")
            .bind(MAX_TYPES);
        let rows = self.0.read(query).await?;
        rows.iter().map(|row| row.columns().next()).collect()
    }

    async fn delete(&self, tenant: TenantId, id: EntityViewId) -> StoreResult<bool> {
        let in_use = "The entity view is in use and cannot be deleted!";
        record::delete::<EntityView>(&self.0, Owner::Tenant(tenant.0), id.0, in_use).await
    }
}

/// The views of a tenant that a filter lets through.
fn matching(mut query: Query, tenant: TenantId, filter: &EntityViewFilter) -> Query {
    query = query.push(" AND entity_view.tenant_id = ").bind(tenant.0);
    if let Some(customer) = filter.customer {
        query = query.push(" AND entity_view.customer_id = ").bind(customer.0);
    }
    if let Some(view_type) = &filter.view_type {
        query = query.push(" AND entity_view.type = ").bind(view_type.as_str());
    }
    if let Some(entity) = filter.entity {
        query = query
            .push(" AND entity_view.entity_id = ")
            .bind(entity.id)
            .push(" AND entity_view.entity_type = ")
            .bind(type_code(entity.entity_type));
    }
    query
}

/// A text search in name and type, and in the title of the customer.
fn containing(query: Query, tenant: TenantId, pattern: &str) -> Query {
    let query = query
        .push("(entity_view.search LIKE ")
        .bind(pattern)
        .push(" ESCAPE '\\' OR entity_view.customer_id IN (SELECT id FROM customer WHERE ");
    list::own_text(query, pattern)
        .owned_by(Owner::Tenant(tenant.0))
        .push("))")
}
