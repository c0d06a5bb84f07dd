//! Entity views.

use async_trait::async_trait;
use fieldline_core::ports::{EntityViewFilter, EntityViewStore, StoreResult};
use fieldline_model::TenantId;
use fieldline_model::entity::{EntityView, EntityViewInfo};

use super::assignables::{AssignableRecord, BY_CUSTOMER, of_customer};
use super::entities::{SqlEntities, TenantRecord};
use super::kinds::KindTitles;
use super::list::ListDefinition;
use super::names::{entity_id, type_code};
use super::query::{ColumnReader, SqlArg, SqlQuery};
use super::record::{self, EntityRecord, EntityRowKey};
use super::search::RelatedTable;

/// What a view is read from.
macro_rules! view_columns {
    () => {
        "entity_view.id, entity_view.created_time, entity_view.version, entity_view.doc, entity_view.tenant_id, \
         entity_view.customer_id, entity_view.entity_type, entity_view.entity_id, entity_view.name, entity_view.type"
    };
}

/// What is read beside it for an [`EntityViewInfo`].
macro_rules! info_columns {
    () => {
        concat!(
            view_columns!(),
            ", customer.title, COALESCE(customer.is_public, FALSE)"
        )
    };
}

/// The most types that are listed.
const MAX_TYPES: i64 = 1_000;

impl EntityRecord for EntityView {
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

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
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

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.customer_id = columns.optional_id()?.unwrap_or_default();
        self.entity_id = Some(entity_id(columns)?);
        self.name = columns.next()?;
        self.view_type = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "entity_view_tenant_id_name_key")
            .then(|| "Entity view with such name already exists!".into())
    }
}

impl TenantRecord for EntityView {
    const IN_USE: &'static str = "The entity view is in use and cannot be deleted!";
}

impl AssignableRecord for EntityView {
    const LISTING: ListDefinition = ListDefinition {
        table: EntityView::TABLE,
        select: info_columns!(),
        joins: "LEFT JOIN customer ON customer.id = entity_view.customer_id",
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
    const TITLES: KindTitles = KindTitles {
        select: "SELECT id, name, doc FROM entity_view WHERE id IN (",
        labeled: false,
    };
    const RELATED: &'static [RelatedTable] = &[BY_CUSTOMER];

    fn read_info(columns: &mut ColumnReader<'_>) -> StoreResult<EntityViewInfo> {
        Ok(EntityViewInfo {
            view: EntityView::read(columns)?,
            customer_title: columns.next()?,
            customer_is_public: columns.next()?,
        })
    }

    fn matching(query: SqlQuery, _: TenantId, filter: &EntityViewFilter) -> SqlQuery {
        let mut query = of_customer(query, filter.customer);
        if let Some(view_type) = &filter.view_type {
            query = query.push(" AND type = ").bind(view_type.as_str());
        }
        match filter.entity {
            Some(entity) => query
                .push(" AND entity_id = ")
                .bind(entity.id)
                .push(" AND entity_type = ")
                .bind(type_code(entity.entity_type)),
            None => query,
        }
    }
}

#[async_trait]
impl EntityViewStore for SqlEntities<EntityView> {
    async fn types(&self, tenant: TenantId) -> StoreResult<Vec<String>> {
        let query = SqlQuery::new("SELECT DISTINCT type FROM entity_view WHERE tenant_id = ")
            .bind(tenant.0)
            .push(" ORDER BY type LIMIT ")
            .bind(MAX_TYPES);
        let rows = self.database.read(query).await?;
        rows.iter().map(|row| row.columns().next()).collect()
    }
}
