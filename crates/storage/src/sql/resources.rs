//! Resources and their files.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ports::{
    RESOURCE_PIECE, ResourceFilter, ResourceStore, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{ResourceReference, ResourceType, StoredFile, TbResourceInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, EntityType, TbResourceId, TenantId};
use uuid::Uuid;

use super::database::{EntityDatabase, SqlTransaction};
use super::entities::{SqlEntities, TenantRecord};
use super::housekeeper;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::{self, EntityRecord, EntityRowKey, IDS_A_STATEMENT};
use super::statement_error::StatementError;

fn number(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

impl EntityRecord for TbResourceInfo {
    const NAME: &'static str = "Resource";
    const TABLE: &'static str = "tb_resource";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "kind",
        "sub_kind",
        "title",
        "search",
        "resource_key",
        "is_public",
        "public_key",
        "etag",
        "file_id",
        "data_size",
        "preview_id",
        "preview_size",
        "lwm2m",
    ];
    const SELECT: &'static str = "tb_resource.id, tb_resource.created_time, tb_resource.version, tb_resource.doc, \
                                  tb_resource.tenant_id, tb_resource.kind, tb_resource.sub_kind, tb_resource.title, \
                                  tb_resource.resource_key, tb_resource.is_public, tb_resource.public_key, \
                                  tb_resource.etag, tb_resource.file_id, tb_resource.data_size, tb_resource.preview_id, \
                                  tb_resource.preview_size, tb_resource.lwm2m";
    const IN_COLUMNS: &'static [&'static str] = &[
        "tenantId",
        "title",
        "name",
        "resourceType",
        "resourceSubType",
        "resourceKey",
        "public",
        "publicResourceKey",
        "etag",
        "link",
        "publicLink",
    ];
    const BROKEN_REFERENCE: &'static str = "Resource is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::new(self, RowOwner::of(self.tenant_id), self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        let kind = self
            .resource_type
            .ok_or_else(|| record::invalid("Resource type should be specified!"))?;
        let key = self
            .resource_key
            .as_deref()
            .ok_or_else(|| record::invalid("Resource key should be specified!"))?;
        let public_key = self.public_resource_key.as_deref();
        Ok(vec![
            (!self.tenant_id.is_null()).then_some(self.tenant_id.0).into(),
            kind.name().into(),
            self.resource_sub_type
                .map_or("", |sub_type| sub_type.name())
                .into(),
            record::bounded("title", &self.title)?,
            record::search_text(&[Some(&self.title)]),
            record::bounded("resourceKey", key)?,
            self.is_public.into(),
            match public_key {
                Some(key) => record::bounded("publicResourceKey", key)?,
                None => SqlArg::Text(None),
            },
            record::bounded("etag", self.etag.as_deref().unwrap_or_default())?,
            self.stored.file.into(),
            number(self.stored.size).into(),
            self.stored.preview.map(|(file, _)| file).into(),
            self.stored.preview.map(|(_, size)| number(size)).into(),
            self.lwm2m_object.as_ref().map(ToString::to_string).into(),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.optional_id()?.unwrap_or_default();
        let kind: String = columns.next()?;
        self.resource_type = Some(kind.parse().map_err(unreadable)?);
        let sub_kind: String = columns.next()?;
        self.resource_sub_type = match sub_kind.as_str() {
            "" => None,
            name => Some(name.parse().map_err(unreadable)?),
        };
        self.title = columns.next()?;
        self.resource_key = Some(columns.next()?);
        self.is_public = columns.next()?;
        self.public_resource_key = columns.next()?;
        self.etag = Some(columns.next()?);
        let unsigned = |size: i64| u64::try_from(size).unwrap_or_default();
        let file = columns.next()?;
        let size = unsigned(columns.next()?);
        let preview: Option<Uuid> = columns.next()?;
        let preview_size: Option<i64> = columns.next()?;
        self.stored = StoredFile {
            file,
            size,
            preview: preview.zip(preview_size.map(unsigned)),
        };
        let object: Option<String> = columns.next()?;
        self.lwm2m_object = match object {
            Some(text) => Some(serde_json::from_str(&text).map_err(unreadable)?),
            None => None,
        };
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        match constraint {
            "tb_resource_tenant_id_kind_resource_key_key" | "tb_resource_kind_resource_key_key" => {
                Some("Resource with such key already exists!".to_owned())
            }
            "tb_resource_public_key_key" => Some("Resource with such public key already exists!".to_owned()),
            _ => None,
        }
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: TbResourceInfo::TABLE,
    select: TbResourceInfo::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "tb_resource.created_time"),
        ("title", "tb_resource.search"),
        ("name", "tb_resource.search"),
        ("resourceType", "tb_resource.kind"),
        ("tenantId", "tb_resource.tenant_id"),
    ],
};

impl TenantRecord for TbResourceInfo {
    const IN_USE: &'static str = "The resource is in use and cannot be deleted!";

    async fn delete(database: &EntityDatabase, tenant: TenantId, id: TbResourceId) -> StoreResult<bool> {
        let owner = RowOwner::of(tenant);
        let mut changes = database.begin().await?;
        let files = files_of(&mut changes, owner, id).await?;
        let deletion = record::deletion::<Self>(owner, id.0);
        if changes.execute(deletion).await? == 0 {
            return Ok(false);
        }
        changes
            .execute(housekeeper::note(record::subject(tenant, id)))
            .await?;
        for file in files {
            discard(&mut changes, file).await?;
        }
        changes.commit().await?;
        Ok(true)
    }
}

/// The files that a resource has.
async fn files_of(changes: &mut SqlTransaction, owner: RowOwner, id: TbResourceId) -> StoreResult<Vec<Uuid>> {
    let query = SqlQuery::new("SELECT file_id, preview_id FROM tb_resource WHERE id = ")
        .bind(id.0)
        .owned_by(owner);
    let mut files = Vec::new();
    for row in &changes.rows(query).await? {
        let mut columns = row.columns();
        files.push(columns.next::<Uuid>()?);
        files.extend(columns.next::<Option<Uuid>>()?);
    }
    Ok(files)
}

/// The condition that a file is of no resource.
const IS_LOOSE: &str = "NOT EXISTS (SELECT 1 FROM tb_resource WHERE tb_resource.file_id = resource_file.id) \
                        AND NOT EXISTS (SELECT 1 FROM tb_resource WHERE tb_resource.preview_id = resource_file.id)";

async fn discard(changes: &mut SqlTransaction, file: Uuid) -> StoreResult<()> {
    let deletion = SqlQuery::new("DELETE FROM resource_file WHERE id = ")
        .bind(file)
        .push(" AND ")
        .push(IS_LOOSE);
    changes.execute(deletion).await?;
    Ok(())
}

/// Bytes of all files of a tenant's resources.
fn attached_bytes(tenant: TenantId) -> SqlQuery {
    // A sum of whole numbers is of another type in PostgreSQL.
    SqlQuery::new("SELECT CAST(COALESCE(SUM(data_size + COALESCE(preview_size, 0)), 0) AS BIGINT) FROM tb_resource WHERE TRUE")
        .owned_by(RowOwner::of(tenant))
}

/// Where links to resources are: the type of the entities, what is selected, and the columns that are looked through.
const HOLDERS: [(EntityType, &str, &[&str]); 6] = [
    (
        EntityType::WidgetType,
        "SELECT id, name, tenant_id FROM widget_type WHERE (",
        &["doc LIKE ", "body LIKE "],
    ),
    (
        EntityType::WidgetsBundle,
        "SELECT id, title, tenant_id FROM widgets_bundle WHERE (",
        &["doc LIKE "],
    ),
    (
        EntityType::DeviceProfile,
        "SELECT id, name, tenant_id FROM device_profile WHERE (",
        &["doc LIKE "],
    ),
    (
        EntityType::AssetProfile,
        "SELECT id, name, tenant_id FROM asset_profile WHERE (",
        &["doc LIKE "],
    ),
    (
        EntityType::Dashboard,
        "SELECT id, title, tenant_id FROM dashboard WHERE (",
        &["doc LIKE ", "body LIKE "],
    ),
    (
        EntityType::RuleChain,
        "SELECT id, name, tenant_id FROM rule_chain WHERE id IN (SELECT chain_id FROM rule_node WHERE ",
        &["rule_node.doc LIKE "],
    ),
];

#[async_trait]
impl ResourceStore for SqlEntities<TbResourceInfo> {
    async fn list(&self, filter: &ResourceFilter, page: &PageLink) -> StoreResult<PageData<TbResourceInfo>> {
        let condition = |query: SqlQuery| {
            let mut query = match (filter.tenant.is_null(), filter.with_system) {
                (true, _) => query.push(" AND tenant_id IS NULL"),
                (false, false) => query.push(" AND tenant_id = ").bind(filter.tenant.0),
                (false, true) => query
                    .push(" AND (tenant_id = ")
                    .bind(filter.tenant.0)
                    .push(
                        " OR (tenant_id IS NULL AND NOT EXISTS (SELECT 1 FROM tb_resource own WHERE own.tenant_id = ",
                    )
                    .bind(filter.tenant.0)
                    .push(" AND own.kind = tb_resource.kind AND own.resource_key = tb_resource.resource_key)))"),
            };
            if !filter.kinds.is_empty() {
                query = query
                    .push(" AND kind IN (")
                    .bind_list(filter.kinds.iter().map(|kind| kind.name()))
                    .push(")");
            }
            if !filter.sub_types.is_empty() {
                query = query
                    .push(" AND sub_kind IN (")
                    .bind_list(filter.sub_types.iter().map(|kind| kind.name()))
                    .push(")");
            }
            if !filter.keys.is_empty() {
                query = query
                    .push(" AND resource_key IN (")
                    .bind_list(filter.keys.iter().map(String::as_str))
                    .push(")");
            }
            query
        };
        let read = TbResourceInfo::read;
        list::page(&self.database, &LISTING, page, condition, list::own_text, read).await
    }

    async fn by_key(
        &self,
        tenant: TenantId,
        kind: ResourceType,
        key: &str,
    ) -> StoreResult<Option<TbResourceInfo>> {
        let query = record::select::<TbResourceInfo>()
            .push("kind = ")
            .bind(kind.name())
            .push(" AND resource_key = ")
            .bind(key)
            .owned_by(RowOwner::of(tenant));
        record::first(&self.database.read(query).await?)
    }

    async fn keys(
        &self,
        tenant: TenantId,
        kind: ResourceType,
        prefix: &str,
        limit: u32,
    ) -> StoreResult<Vec<String>> {
        let pattern = list::containing(prefix);
        let query = SqlQuery::new("SELECT resource_key FROM tb_resource WHERE kind = ")
            .bind(kind.name())
            .push(" AND resource_key LIKE ")
            .bind(pattern.trim_start_matches('%'))
            .push(" ESCAPE '\\'")
            .owned_by(RowOwner::of(tenant))
            .push(" LIMIT ")
            .bind(i64::from(limit));
        let rows = self.database.read(query).await?;
        rows.iter().map(|row| row.columns().next()).collect()
    }

    async fn by_etag(
        &self,
        tenant: TenantId,
        kind: ResourceType,
        etag: &str,
    ) -> StoreResult<Option<TbResourceInfo>> {
        let query = record::select::<TbResourceInfo>()
            .push("kind = ")
            .bind(kind.name())
            .push(" AND etag = ")
            .bind(etag)
            .push(" AND (tenant_id IS NULL OR tenant_id = ")
            .bind(tenant.0)
            .push(") ORDER BY created_time, id LIMIT 1");
        record::first(&self.database.read(query).await?)
    }

    async fn visible(&self, tenant: TenantId, ids: &[TbResourceId]) -> StoreResult<Vec<TbResourceInfo>> {
        let mut found = Vec::with_capacity(ids.len().min(IDS_A_STATEMENT));
        for some in ids.chunks(IDS_A_STATEMENT) {
            let query = record::select::<TbResourceInfo>()
                .push("id IN (")
                .bind_list(some.iter().map(|id| id.0))
                .push(") AND (tenant_id IS NULL OR tenant_id = ")
                .bind(tenant.0)
                .push(")");
            for row in &self.database.read(query).await? {
                found.push(TbResourceInfo::read(&mut row.columns())?);
            }
        }
        Ok(found)
    }

    async fn public_image(&self, key: &str) -> StoreResult<Option<TbResourceInfo>> {
        let query = record::select::<TbResourceInfo>()
            .push("is_public AND kind = ")
            .bind(ResourceType::Image.name())
            .push(" AND public_key = ")
            .bind(key);
        record::first(&self.database.read(query).await?)
    }

    async fn has_public_key(&self, key: &str) -> StoreResult<bool> {
        let query = SqlQuery::new("SELECT 1 FROM tb_resource WHERE public_key = ").bind(key);
        Ok(!self.database.read(query).await?.is_empty())
    }

    async fn references(
        &self,
        tenant: TenantId,
        kinds: &[EntityType],
        text: &str,
        limit: u32,
    ) -> StoreResult<Vec<ResourceReference>> {
        let owner = match tenant.is_null() {
            true => RowOwner::Installation,
            false => RowOwner::Tenant(tenant.0),
        };
        let mut found = Vec::new();
        for (kind, select, columns) in HOLDERS.iter().filter(|(kind, ..)| kinds.contains(kind)) {
            let patterns = match kind {
                EntityType::RuleChain => vec![list::containing(text)],
                // JSON may be a text within JSON, where its quotes have a backslash before them.
                _ => ["\"", "\\\"", "/preview"]
                    .map(|end| list::containing(&format!("{text}{end}")))
                    .into(),
            };
            let mut query = SqlQuery::new(select);
            let conditions = columns
                .iter()
                .flat_map(|column| patterns.iter().map(move |pattern| (*column, pattern)));
            for (index, (column, pattern)) in conditions.enumerate() {
                query = query
                    .push(if index == 0 { "" } else { " OR " })
                    .push(column)
                    .bind(pattern.as_str())
                    .push(" ESCAPE '\\'");
            }
            let query = query
                .push(")")
                .owned_by(owner)
                .push(" ORDER BY created_time, id LIMIT ")
                .bind(i64::from(limit));
            for row in &self.database.read_list(query).await? {
                let mut columns = row.columns();
                let id: Uuid = columns.next()?;
                let name: String = columns.next()?;
                found.push(ResourceReference {
                    id: EntityId::new(*kind, id),
                    title: name.clone(),
                    name,
                    tenant_id: columns.optional_id()?.unwrap_or_default(),
                });
            }
        }
        Ok(found)
    }

    async fn data_bytes(&self, tenant: TenantId) -> StoreResult<u64> {
        let attached = record::number(&self.database.read(attached_bytes(tenant)).await?)?;
        let pieces = SqlQuery::new(
            "SELECT COUNT(*) FROM resource_file JOIN resource_piece ON resource_piece.file_id = resource_file.id WHERE ",
        )
        .push(IS_LOOSE)
        .owned_by(RowOwner::of(tenant));
        let pieces = record::number(&self.database.read(pieces).await?)?;
        Ok(attached.saturating_add(pieces.saturating_mul(RESOURCE_PIECE as u64)))
    }

    async fn begin_file(&self, tenant: TenantId, file: Uuid, now_ms: i64) -> StoreResult<()> {
        let owner = (!tenant.is_null()).then_some(tenant.0);
        let insertion = SqlQuery::new("INSERT INTO resource_file (id, tenant_id, created_time) VALUES (")
            .bind_list([SqlArg::from(file), owner.into(), now_ms.into()])
            .push(")");
        inserted(self.database.execute(insertion).await)
    }

    async fn append(&self, file: Uuid, number: u32, piece: Bytes) -> StoreResult<()> {
        let insertion = SqlQuery::new("INSERT INTO resource_piece (file_id, number, bytes) VALUES (")
            .bind_list([
                SqlArg::from(file),
                i64::from(number).into(),
                SqlArg::Bytes(piece.into()),
            ])
            .push(")");
        inserted(self.database.execute(insertion).await)
    }

    async fn save_with_file(
        &self,
        resource: TbResourceInfo,
        is_new: bool,
        limit: Option<u64>,
    ) -> StoreResult<Option<TbResourceInfo>> {
        let (tenant, owner) = (resource.tenant_id, RowOwner::of(resource.tenant_id));
        let mut changes = self.database.begin().await?;
        if limit.is_some() {
            record::take_turn(&mut changes, RowOwner::Tenant(tenant.0)).await?;
        }
        let before = files_of(&mut changes, owner, resource.id).await?;
        let saved = match is_new {
            true => Some(record::insert_within(&mut changes, &resource).await?),
            false => record::update_within(&mut changes, &resource).await?,
        };
        let Some(saved) = saved else {
            drop(changes);
            return Err(record::not_updated(&self.database, &resource).await?);
        };
        if let Some(limit) = limit
            && record::number(&changes.rows(attached_bytes(tenant)).await?)? > limit
        {
            return Ok(None);
        }
        for file in before {
            discard(&mut changes, file).await?;
        }
        changes.commit().await?;
        Ok(Some(saved))
    }

    async fn discard_file(&self, file: Uuid) -> StoreResult<()> {
        let mut changes = self.database.begin().await?;
        discard(&mut changes, file).await?;
        Ok(changes.commit().await?)
    }

    async fn discard_files_before(&self, begun_ms: i64) -> StoreResult<u64> {
        let deletion = SqlQuery::new("DELETE FROM resource_file WHERE created_time < ")
            .bind(begun_ms)
            .push(" AND ")
            .push(IS_LOOSE);
        Ok(self.database.execute(deletion).await?)
    }

    async fn piece(&self, tenant: TenantId, file: Uuid, number: u32) -> StoreResult<Option<Bytes>> {
        let query = SqlQuery::new(
            "SELECT resource_piece.bytes FROM resource_file \
             JOIN resource_piece ON resource_piece.file_id = resource_file.id WHERE resource_file.id = ",
        )
        .bind(file)
        .push(" AND resource_piece.number = ")
        .bind(i64::from(number))
        .owned_by(RowOwner::of(tenant));
        let rows = self.database.read(query).await?;
        let piece: Option<Vec<u8>> = rows.first().map(|row| row.columns().next()).transpose()?;
        Ok(piece.map(Bytes::from))
    }
}

fn inserted(result: Result<u64, StatementError>) -> StoreResult<()> {
    match result {
        Ok(_) => Ok(()),
        Err(StatementError::BrokenReference) => Err(StoreError::new(
            StoreErrorKind::Invalid,
            "The tenant or the upload of this data is gone!",
        )),
        Err(failure) => Err(failure.into_error()),
    }
}
