//! Bundles of widget types.

use async_trait::async_trait;
use fieldline_core::ports::{StoreResult, WidgetLibraryView, WidgetsBundleStore};
use fieldline_model::entity::{WidgetsBundle, WidgetsBundleName};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{TenantId, WidgetTypeId, WidgetsBundleId};

use super::entities::{SqlEntities, TenantRecord};
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery};
use super::record::{self, EntityRecord, EntityRowKey, IDS_A_STATEMENT};
use super::statement_error::StatementError;
use super::widget_types::{matching, visible};

impl EntityRecord for WidgetsBundle {
    const NAME: &'static str = "Widgets bundle";
    const TABLE: &'static str = "widgets_bundle";
    const COLUMNS: &'static [&'static str] =
        &["tenant_id", "alias", "title", "scada", "search", "full_search"];
    const SELECT: &'static str = "id, created_time, version, doc, tenant_id, alias, title, scada";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "alias", "title", "name", "scada"];
    const BROKEN_REFERENCE: &'static str = "Widgets bundle is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::new(self, RowOwner::of(self.tenant_id), self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        Ok(vec![
            (!self.tenant_id.is_null()).then_some(self.tenant_id.0).into(),
            record::bounded("alias", self.alias.as_deref().unwrap_or_default())?,
            record::bounded("title", &self.title)?,
            self.scada.into(),
            record::search_text(&[Some(&self.title)]),
            record::search_text(&[Some(&self.title), self.description.as_deref()]),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.optional_id()?.unwrap_or_default();
        self.alias = columns.next()?;
        self.title = columns.next()?;
        self.name.clone_from(&self.title);
        self.scada = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        match constraint {
            "widgets_bundle_tenant_id_alias_key" | "widgets_bundle_alias_key" => {
                Some("Widget bundle with such alias already exists!".to_owned())
            }
            _ => None,
        }
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: WidgetsBundle::TABLE,
    select: WidgetsBundle::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "widgets_bundle.created_time"),
        ("title", "widgets_bundle.search"),
        ("name", "widgets_bundle.search"),
        ("tenantId", "widgets_bundle.tenant_id"),
    ],
};

const SCADA_FIRST: ListDefinition = ListDefinition {
    sorts: &[
        (
            "createdTime",
            "CASE WHEN widgets_bundle.scada THEN 0 ELSE 1 END, widgets_bundle.created_time",
        ),
        (
            "title",
            "CASE WHEN widgets_bundle.scada THEN 0 ELSE 1 END, widgets_bundle.search",
        ),
        (
            "name",
            "CASE WHEN widgets_bundle.scada THEN 0 ELSE 1 END, widgets_bundle.search",
        ),
        (
            "tenantId",
            "CASE WHEN widgets_bundle.scada THEN 0 ELSE 1 END, widgets_bundle.tenant_id",
        ),
    ],
    ..LISTING
};

impl TenantRecord for WidgetsBundle {
    const IN_USE: &'static str = "The widgets bundle is in use and cannot be deleted!";
}

#[async_trait]
impl WidgetsBundleStore for SqlEntities<WidgetsBundle> {
    async fn by_alias(&self, tenant: TenantId, alias: &str) -> StoreResult<Option<WidgetsBundle>> {
        let query = record::select::<WidgetsBundle>()
            .push("alias = ")
            .bind(alias)
            .owned_by(RowOwner::of(tenant));
        record::first(&self.database.read(query).await?)
    }

    async fn list(&self, view: &WidgetLibraryView, page: &PageLink) -> StoreResult<PageData<WidgetsBundle>> {
        let listing = if view.scada_first { &SCADA_FIRST } else { &LISTING };
        let condition = |query: SqlQuery| visible(query, view);
        let search = |query: SqlQuery, pattern: &str| matching(query, view, pattern);
        list::page(
            &self.database,
            listing,
            page,
            condition,
            search,
            WidgetsBundle::read,
        )
        .await
    }

    async fn set_types(&self, bundle: WidgetsBundleId, types: &[WidgetTypeId]) -> StoreResult<()> {
        let mut changes = self.database.begin().await?;
        let former = SqlQuery::new("DELETE FROM widgets_bundle_type WHERE bundle_id = ").bind(bundle.0);
        changes.execute(former).await?;
        for (place, id) in types.iter().enumerate() {
            let row = SqlQuery::new("INSERT INTO widgets_bundle_type (bundle_id, place, type_id) VALUES (")
                .bind(bundle.0)
                .push(", ")
                .bind(i64::try_from(place).unwrap_or(i64::MAX))
                .push(", ")
                .bind(id.0)
                .push(")");
            match changes.execute(row).await {
                Err(StatementError::BrokenReference) => {
                    return Err(record::invalid(
                        "The widgets bundle or one of the widget types does not exist!",
                    ));
                }
                inserted => inserted?,
            };
        }
        Ok(changes.commit().await?)
    }

    async fn of_types(&self, types: &[WidgetTypeId]) -> StoreResult<Vec<(WidgetTypeId, WidgetsBundleName)>> {
        let mut found = Vec::new();
        for some in types.chunks(IDS_A_STATEMENT) {
            let query = SqlQuery::new(
                "SELECT widgets_bundle_type.type_id, widgets_bundle.id, widgets_bundle.title FROM widgets_bundle_type \
                 JOIN widgets_bundle ON widgets_bundle.id = widgets_bundle_type.bundle_id WHERE type_id IN (",
            )
            .bind_list(some.iter().map(|id| id.0))
            .push(") ORDER BY widgets_bundle.title");
            for row in &self.database.read(query).await? {
                let mut columns = row.columns();
                let id = columns.id()?;
                let bundle = WidgetsBundleName {
                    id: columns.id()?,
                    name: columns.next()?,
                };
                found.push((id, bundle));
            }
        }
        Ok(found)
    }
}
