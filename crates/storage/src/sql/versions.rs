//! What dashboards and rule chains were at each save.

use async_trait::async_trait;
use fieldline_core::ports::{SavedBy, StoreResult, VersionStore};
use fieldline_model::entity::EntityVersion;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, EntityType, TenantId, UserId};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::database::{EntityDatabase, SqlTransaction};
use super::query::{SqlArg, SqlQuery, unreadable};
use super::record::{self, number};

/// The table of a kind of entities that versions are kept of.
const fn table(kind: EntityType) -> &'static str {
    match kind {
        EntityType::RuleChain => "rule_chain_version",
        _ => "dashboard_version",
    }
}

/// What is to be kept as a version.
pub(super) struct Snapshot {
    pub(super) tenant: TenantId,
    pub(super) entity: EntityId,
    pub(super) version: i64,
    pub(super) title: String,
    content: Vec<u8>,
}

impl Snapshot {
    /// A snapshot of something as JSON.
    pub(super) fn new(
        tenant: TenantId,
        entity: impl Into<EntityId>,
        version: Option<i64>,
        title: &str,
        what: &impl Serialize,
    ) -> StoreResult<Self> {
        let text = serde_json::to_vec(what)
            .map_err(|cause| record::invalid("The version cannot be stored").caused_by(cause))?;
        Ok(Self {
            tenant,
            entity: entity.into(),
            version: version.unwrap_or_default(),
            title: title.to_owned(),
            content: lz4_flex::compress_prepend_size(&text),
        })
    }

    /// Keeps it, unless the newest version is the same; older ones make room.
    pub(super) async fn keep(self, changes: &mut SqlTransaction, by: &SavedBy) -> StoreResult<()> {
        let (table, tenant, id) = (table(self.entity.entity_type), self.tenant.0, self.entity.id);
        let (user, name) = by.user.clone().unzip();
        let bytes = i64::try_from(self.content.len()).unwrap_or(i64::MAX);
        let insertion = SqlQuery::new("INSERT INTO ")
            .push(table)
            .push(
                " (tenant_id, entity_id, version, created_time, user_id, user_name, title, bytes, content) SELECT ",
            )
            .bind(tenant)
            .push(", ")
            .bind(id)
            .push(", ")
            .bind(self.version)
            .push(", ")
            .bind(by.at_ms)
            .push(", ")
            .bind(user.map(|user: UserId| user.0))
            .push(", ")
            .bind(name)
            .push(", ")
            .bind(self.title)
            .push(", ")
            .bind(bytes)
            .push(", ")
            .bind(SqlArg::Bytes(self.content.clone()))
            .push(" WHERE NOT EXISTS (SELECT 1 FROM ");
        let newest =
            of_entity(insertion.push(table), tenant, id).push(" AND version = (SELECT MAX(version) FROM ");
        let insertion = of_entity(newest.push(table), tenant, id)
            .push(") AND content = ")
            .bind(SqlArg::Bytes(self.content))
            .push(") ON CONFLICT DO NOTHING");
        if changes.execute(insertion).await? == 0 {
            return Ok(());
        }
        let places = SqlQuery::new("DELETE FROM ").push(table);
        let places = of_entity(places, tenant, id)
            .push(
                " AND version IN (SELECT version FROM (SELECT version, \
                 ROW_NUMBER() OVER (ORDER BY version DESC) AS place, \
                 SUM(bytes) OVER (ORDER BY version DESC) AS together FROM ",
            )
            .push(table);
        let excess = of_entity(places, tenant, id)
            .push(") kept WHERE place > ")
            .bind(<dyn VersionStore>::MAX_VERSIONS)
            .push(" OR together > ")
            .bind(<dyn VersionStore>::MAX_VERSION_BYTES)
            .push(")");
        changes.execute(excess).await?;
        Ok(())
    }
}

fn of_entity(query: SqlQuery, tenant: Uuid, entity: Uuid) -> SqlQuery {
    query
        .push(" WHERE tenant_id = ")
        .bind(tenant)
        .push(" AND entity_id = ")
        .bind(entity)
}

/// Whether any version of something is kept.
pub(super) async fn any(
    database: &EntityDatabase,
    tenant: TenantId,
    entity: impl Into<EntityId>,
) -> StoreResult<bool> {
    let entity = entity.into();
    let query = SqlQuery::new("SELECT version FROM ").push(table(entity.entity_type));
    let query = of_entity(query, tenant.0, entity.id).push(" LIMIT 1");
    Ok(!database.read(query).await?.is_empty())
}

/// Versions in an SQL database.
pub(super) struct SqlVersions(pub(super) EntityDatabase);

#[async_trait]
impl VersionStore for SqlVersions {
    async fn list(
        &self,
        tenant: TenantId,
        entity: EntityId,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityVersion>> {
        let table = table(entity.entity_type);
        let counted = SqlQuery::new("SELECT COUNT(*) FROM ").push(table);
        let total = number(&self.0.read(of_entity(counted, tenant.0, entity.id)).await?)?;
        let query =
            SqlQuery::new("SELECT version, created_time, user_id, user_name, title FROM ").push(table);
        let query = of_entity(query, tenant.0, entity.id)
            .push(" ORDER BY version DESC LIMIT ")
            .bind(i64::from(page.page_size.max(1)))
            .push(" OFFSET ")
            .bind(i64::try_from(page.offset()).unwrap_or(i64::MAX));
        let mut found = Vec::new();
        for row in &self.0.read(query).await? {
            let mut columns = row.columns();
            found.push(EntityVersion {
                version: columns.next()?,
                created_time: columns.next()?,
                user_id: columns.optional_id()?,
                user_name: columns.next()?,
                title: columns.next()?,
            });
        }
        Ok(PageData::new(found, total, page))
    }

    async fn get(&self, tenant: TenantId, entity: EntityId, version: i64) -> StoreResult<Option<Value>> {
        let query = SqlQuery::new("SELECT content FROM ").push(table(entity.entity_type));
        let query = of_entity(query, tenant.0, entity.id)
            .push(" AND version = ")
            .bind(version);
        let rows = self.0.read(query).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let content: Vec<u8> = row.columns().next()?;
        let text = lz4_flex::decompress_size_prepended(&content).map_err(unreadable)?;
        serde_json::from_slice(&text).map(Some).map_err(unreadable)
    }
}
