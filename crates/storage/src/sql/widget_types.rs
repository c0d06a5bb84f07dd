//! Types of widgets.

use async_trait::async_trait;
use fieldline_core::ports::{
    StoreResult, WidgetLibraryView, WidgetTypeFilter, WidgetTypeStore, WidgetsBundleStore,
};
use fieldline_model::entity::{WidgetTypeDetails, WidgetTypeInfo, WidgetsBundle};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{TenantId, WidgetTypeId, WidgetsBundleId};

use super::database::EntityDatabase;
use super::entities::{SqlEntities, TenantRecord};
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::{self, EntityRecord, EntityRowKey, IDS_A_STATEMENT};

/// Most bytes of descriptors that are read at once.
const MAX_BODIES: u64 = 64 * 1024 * 1024;

macro_rules! info_columns {
    () => {
        "widget_type.id, widget_type.created_time, widget_type.version, widget_type.doc, widget_type.tenant_id, \
         widget_type.fqn, widget_type.name, widget_type.deprecated, widget_type.scada"
    };
}

impl EntityRecord for WidgetTypeDetails {
    const NAME: &'static str = "Widget type";
    const TABLE: &'static str = "widget_type";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "fqn",
        "name",
        "deprecated",
        "scada",
        "kind",
        "search",
        "full_search",
        "body",
    ];
    const SELECT: &'static str = concat!(info_columns!(), ", widget_type.body");
    const IN_COLUMNS: &'static [&'static str] =
        &["tenantId", "fqn", "name", "deprecated", "scada", "descriptor"];
    const BROKEN_REFERENCE: &'static str = "Widget type is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::new(self, RowOwner::of(self.base.tenant_id), self.base.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        let base = &self.base;
        let tags = self.texts.tags.as_deref().unwrap_or_default().join("\n");
        let body = serde_json::to_string(&self.descriptor)
            .map_err(|cause| record::invalid("Widget type cannot be stored").caused_by(cause))?;
        Ok(vec![
            (!base.tenant_id.is_null()).then_some(base.tenant_id.0).into(),
            record::bounded("fqn", base.fqn.as_deref().unwrap_or_default())?,
            record::bounded("name", &base.name)?,
            base.deprecated.into(),
            base.scada.into(),
            record::bounded("type", self.data_type())?,
            record::search_text(&[Some(&base.name)]),
            record::search_text(&[Some(&base.name), self.texts.description.as_deref(), Some(&tags)]),
            body.into(),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        fill_base(self, version, columns)?;
        let body: String = columns.next()?;
        self.descriptor = serde_json::from_str(&body).map_err(unreadable)?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        match constraint {
            "widget_type_tenant_id_fqn_key" | "widget_type_fqn_key" => {
                Some("Widget type with such fqn already exists!".to_owned())
            }
            _ => None,
        }
    }
}

/// Fills in what is known of a type without what it looks like.
fn fill_base(
    details: &mut WidgetTypeDetails,
    version: i64,
    columns: &mut ColumnReader<'_>,
) -> StoreResult<()> {
    let base = &mut details.base;
    base.version = Some(version);
    base.tenant_id = columns.optional_id()?.unwrap_or_default();
    base.fqn = columns.next()?;
    base.name = columns.next()?;
    base.deprecated = columns.next()?;
    base.scada = columns.next()?;
    Ok(())
}

const INFO: &str = concat!(info_columns!(), ", widget_type.kind");

fn read_info(columns: &mut ColumnReader<'_>) -> StoreResult<WidgetTypeInfo> {
    let details: WidgetTypeDetails = record::read(columns, fill_base)?;
    Ok(WidgetTypeInfo {
        widget_type: columns.next()?,
        ..WidgetTypeInfo::from(&details)
    })
}

const LISTING: ListDefinition = ListDefinition {
    table: WidgetTypeDetails::TABLE,
    select: INFO,
    joins: "",
    sorts: &[
        ("createdTime", "widget_type.created_time"),
        ("name", "widget_type.search"),
        ("deprecated", "widget_type.deprecated"),
        ("tenantId", "widget_type.tenant_id"),
    ],
};

const SCADA_FIRST: ListDefinition = ListDefinition {
    sorts: &[
        (
            "createdTime",
            "CASE WHEN widget_type.scada THEN 0 ELSE 1 END, widget_type.created_time",
        ),
        (
            "name",
            "CASE WHEN widget_type.scada THEN 0 ELSE 1 END, widget_type.search",
        ),
        (
            "deprecated",
            "CASE WHEN widget_type.scada THEN 0 ELSE 1 END, widget_type.deprecated",
        ),
        (
            "tenantId",
            "CASE WHEN widget_type.scada THEN 0 ELSE 1 END, widget_type.tenant_id",
        ),
    ],
    ..LISTING
};

impl TenantRecord for WidgetTypeDetails {
    const IN_USE: &'static str = "The widget type is in use and cannot be deleted!";
}

/// Continues a condition with what somebody sees of the library.
pub(super) fn visible(query: SqlQuery, view: &WidgetLibraryView) -> SqlQuery {
    match (view.tenant, view.own_only) {
        (tenant, _) if tenant.is_null() => query.push(" AND tenant_id IS NULL"),
        (tenant, true) => query.push(" AND tenant_id = ").bind(tenant.0),
        (tenant, false) => query
            .push(" AND (tenant_id = ")
            .bind(tenant.0)
            .push(" OR tenant_id IS NULL)"),
    }
}

/// Continues a condition with a pattern for the texts that are searched.
pub(super) fn matching(query: SqlQuery, view: &WidgetLibraryView, pattern: &str) -> SqlQuery {
    match view.full_search {
        true => query.push("full_search LIKE ").bind(pattern).push(" ESCAPE '\\'"),
        false => list::own_text(query, pattern),
    }
}

/// Continues a statement with the types of a bundle.
fn in_bundle(query: SqlQuery, bundle: WidgetsBundleId) -> SqlQuery {
    query
        .push(" JOIN widgets_bundle_type ON widgets_bundle_type.type_id = widget_type.id WHERE bundle_id = ")
        .bind(bundle.0)
}

impl SqlEntities<WidgetTypeDetails> {
    async fn add_bundles(database: &EntityDatabase, infos: &mut [WidgetTypeInfo]) -> StoreResult<()> {
        let ids: Vec<WidgetTypeId> = infos.iter().map(|info| info.base.id).collect();
        let bundles = SqlEntities::<WidgetsBundle>::new(database).of_types(&ids).await?;
        for (id, bundle) in bundles {
            if let Some(info) = infos.iter_mut().find(|info| info.base.id == id) {
                info.bundles.push(bundle);
            }
        }
        Ok(())
    }
}

#[async_trait]
impl WidgetTypeStore for SqlEntities<WidgetTypeDetails> {
    async fn info(&self, tenant: TenantId, id: WidgetTypeId) -> StoreResult<Option<WidgetTypeInfo>> {
        let query = SqlQuery::new("SELECT ")
            .push(INFO)
            .push(" FROM widget_type WHERE id = ")
            .bind(id.0)
            .owned_by(RowOwner::of(tenant));
        let rows = self.database.read(query).await?;
        rows.first().map(|row| read_info(&mut row.columns())).transpose()
    }

    async fn by_fqn(&self, tenant: TenantId, fqn: &str) -> StoreResult<Option<WidgetTypeDetails>> {
        let query = record::select::<WidgetTypeDetails>()
            .push("fqn = ")
            .bind(fqn)
            .owned_by(RowOwner::of(tenant));
        record::first(&self.database.read(query).await?)
    }

    async fn id_of(&self, tenant: TenantId, fqn: &str) -> StoreResult<Option<WidgetTypeId>> {
        let query = SqlQuery::new("SELECT id FROM widget_type WHERE fqn = ")
            .bind(fqn)
            .owned_by(RowOwner::of(tenant));
        let rows = self.database.read(query).await?;
        rows.first().map(|row| row.columns().id()).transpose()
    }

    async fn visible(&self, tenant: TenantId, ids: &[WidgetTypeId]) -> StoreResult<Vec<WidgetTypeId>> {
        let view = WidgetLibraryView {
            tenant,
            ..WidgetLibraryView::default()
        };
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_A_STATEMENT) {
            let query = SqlQuery::new("SELECT id FROM widget_type WHERE id IN (")
                .bind_list(some.iter().map(|id| id.0))
                .push(")");
            for row in &self.database.read(visible(query, &view)).await? {
                found.push(row.columns().id()?);
            }
        }
        Ok(found)
    }

    async fn list(
        &self,
        filter: &WidgetTypeFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<WidgetTypeInfo>> {
        let view = &filter.view;
        let condition = |query: SqlQuery| {
            let mut query = visible(query, view);
            if let Some(deprecated) = filter.deprecated {
                query = query.push(" AND deprecated = ").bind(deprecated);
            }
            if !filter.data_types.is_empty() {
                query = query
                    .push(" AND kind IN (")
                    .bind_list(filter.data_types.iter().map(String::as_str))
                    .push(")");
            }
            match filter.bundle {
                Some(bundle) => query
                    .push(" AND id IN (SELECT type_id FROM widgets_bundle_type WHERE bundle_id = ")
                    .bind(bundle.0)
                    .push(")"),
                None => query,
            }
        };
        let listing = if view.scada_first { &SCADA_FIRST } else { &LISTING };
        let search = |query: SqlQuery, pattern: &str| matching(query, view, pattern);
        let mut page = list::page(&self.database, listing, page, condition, search, read_info).await?;
        Self::add_bundles(&self.database, &mut page.data).await?;
        Ok(page)
    }

    async fn of_bundle(&self, bundle: WidgetsBundleId) -> StoreResult<Vec<WidgetTypeDetails>> {
        let sizes = SqlQuery::new(
            "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(body) + OCTET_LENGTH(doc)), 0) AS BIGINT) FROM widget_type",
        );
        let size = record::number(&self.database.read(in_bundle(sizes, bundle)).await?)?;
        if size > MAX_BODIES {
            return Err(record::invalid(format!(
                "The widget types of this bundle have {size} bytes, and {MAX_BODIES} can be read at once: load them one by one"
            )));
        }
        let select = SqlQuery::new("SELECT ")
            .push(WidgetTypeDetails::SELECT)
            .push(" FROM widget_type");
        let query = in_bundle(select, bundle).push(" ORDER BY place");
        let rows = self.database.read(query).await?;
        rows.iter()
            .map(|row| WidgetTypeDetails::read(&mut row.columns()))
            .collect()
    }

    async fn fqns_of_bundle(&self, bundle: WidgetsBundleId) -> StoreResult<Vec<(TenantId, String)>> {
        let select = SqlQuery::new("SELECT widget_type.tenant_id, widget_type.fqn FROM widget_type");
        let query = in_bundle(select, bundle).push(" ORDER BY place");
        let rows = self.database.read(query).await?;
        rows.iter()
            .map(|row| {
                let mut columns = row.columns();
                Ok((columns.optional_id()?.unwrap_or_default(), columns.next()?))
            })
            .collect()
    }
}
