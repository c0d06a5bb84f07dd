//! OTA packages and their data.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ports::{
    OTA_PIECE, OtaPackageFilter, OtaPackageStore, StoreError, StoreErrorKind, StoreResult,
    TenantEntityStore as _,
};
use fieldline_model::entity::OtaPackageInfo;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{OtaPackageId, TenantId};
use uuid::Uuid;

use super::database::{EntityDatabase, SqlTransaction};
use super::entities::{SqlEntities, TenantRecord};
use super::housekeeper;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::{self, EntityRecord, EntityRowKey};
use super::statement_error::StatementError;

impl EntityRecord for OtaPackageInfo {
    const NAME: &'static str = "OtaPackage";
    const TABLE: &'static str = "ota_package";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "profile_id",
        "kind",
        "title",
        "package_version",
        "search",
        "version_key",
        "tag_key",
        "url_key",
        "file_key",
        "data_size",
        "has_url",
    ];
    const SELECT: &'static str = "id, created_time, version, doc, tenant_id, profile_id, kind, title, package_version, \
                                  data_size, (upload_id IS NOT NULL OR has_url)";
    const IN_COLUMNS: &'static [&'static str] = &[
        "tenantId",
        "deviceProfileId",
        "type",
        "title",
        "name",
        "dataSize",
        "hasData",
    ];
    const BROKEN_REFERENCE: &'static str = "OtaPackage is referencing to non-existent device profile!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, None)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        let kind = self
            .kind
            .ok_or_else(|| record::invalid("Type should be specified!"))?;
        Ok(vec![
            self.tenant_id.0.into(),
            self.device_profile_id.map(|profile| profile.0).into(),
            kind.name().into(),
            record::bounded("title", &self.title)?,
            record::bounded("version", &self.version)?,
            record::search_text(&[Some(&self.title)]),
            record::sort_key(Some(&self.version)),
            record::sort_key(self.tag.as_deref()),
            record::sort_key(self.url.as_deref()),
            record::sort_key(self.file_name.as_deref()),
            self.data_size.into(),
            self.link().is_some().into(),
        ])
    }

    fn fill(&mut self, _: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.tenant_id = columns.id()?;
        self.device_profile_id = columns.optional_id()?;
        let kind: String = columns.next()?;
        self.kind = Some(kind.parse().map_err(unreadable)?);
        self.title = columns.next()?;
        self.name.clone_from(&self.title);
        self.version = columns.next()?;
        self.data_size = columns.next()?;
        self.has_data = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "ota_package_tenant_id_title_package_version_key")
            .then(|| "OtaPackage with such title and version already exists!".into())
    }

    async fn update(self, database: &EntityDatabase) -> StoreResult<Self> {
        // Data may have come since it was read, of which what is saved knows nothing.
        let (owner, id) = (RowOwner::Tenant(self.tenant_id.0), self.id.0);
        let mut changes = database.begin().await?;
        let as_known = SqlQuery::new(
            "UPDATE ota_package SET data_size = data_size WHERE data_size IS NOT DISTINCT FROM ",
        )
        .bind(self.data_size)
        .push(" AND id = ")
        .bind(id)
        .owned_by(owner);
        let is_as_known = changes.execute(as_known).await? > 0;
        let saved = match is_as_known {
            true => record::update_within(&mut changes, &self).await?,
            false => None,
        };
        let Some(saved) = saved else {
            drop(changes);
            return Err(match record::get::<Self>(database, owner, id).await? {
                Some(_) => record::version_conflict(Self::NAME),
                None => record::not_found(Self::NAME),
            });
        };
        changes.commit().await?;
        Ok(saved)
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: OtaPackageInfo::TABLE,
    select: OtaPackageInfo::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("title", "search"),
        ("name", "search"),
        ("type", "kind"),
        ("version", "version_key"),
        ("tag", "tag_key"),
        ("url", "url_key"),
        ("fileName", "file_key"),
        ("dataSize", "COALESCE(data_size, 0)"),
    ],
};

/// Who may have a package, and the answer where it is deleted although they do.
const HOLDERS: [(&str, &str); 4] = [
    (
        "SELECT 1 FROM device WHERE firmware_id = ",
        "The otaPackage referenced by the devices cannot be deleted!",
    ),
    (
        "SELECT 1 FROM device_profile WHERE firmware_id = ",
        "The otaPackage referenced by the device profile cannot be deleted!",
    ),
    (
        "SELECT 1 FROM device WHERE software_id = ",
        "The software referenced by the devices cannot be deleted!",
    ),
    (
        "SELECT 1 FROM device_profile WHERE software_id = ",
        "The software referenced by the device profile cannot be deleted!",
    ),
];

/// The condition that an upload is no package's data.
const IS_LOOSE: &str = "NOT EXISTS (SELECT 1 FROM ota_package WHERE ota_package.upload_id = ota_upload.id)";

impl TenantRecord for OtaPackageInfo {
    const IN_USE: &'static str = HOLDERS[0].1;

    async fn delete(database: &EntityDatabase, tenant: TenantId, id: OtaPackageId) -> StoreResult<bool> {
        let owner = RowOwner::Tenant(tenant.0);
        let mut changes = database.begin().await?;
        let data = SqlQuery::new("SELECT upload_id FROM ota_package WHERE id = ")
            .bind(id.0)
            .owned_by(owner);
        let upload: Option<Uuid> = match changes.rows(data).await?.first() {
            Some(row) => row.columns().next()?,
            None => return Ok(false),
        };
        for (holder, refusal) in HOLDERS {
            let held = SqlQuery::new(holder).bind(id.0).push(" LIMIT 1");
            if !changes.rows(held).await?.is_empty() {
                return Err(StoreError::new(StoreErrorKind::Conflict, refusal));
            }
        }
        let deleted = changes
            .execute(record::deletion::<OtaPackageInfo>(owner, id.0))
            .await;
        match deleted {
            Ok(_) => {}
            // Somebody was given it just now.
            Err(StatementError::BrokenReference) => {
                return Err(StoreError::new(StoreErrorKind::Conflict, Self::IN_USE));
            }
            Err(failure) => return Err(failure.into_error()),
        }
        changes
            .execute(housekeeper::note(record::subject(tenant, id)))
            .await?;
        if let Some(upload) = upload {
            discard(&mut changes, upload).await?;
        }
        changes.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl OtaPackageStore for SqlEntities<OtaPackageInfo> {
    async fn list(
        &self,
        tenant: TenantId,
        filter: OtaPackageFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<OtaPackageInfo>> {
        let condition = |query: SqlQuery| {
            let query = query.owned_by(RowOwner::Tenant(tenant.0));
            match filter {
                OtaPackageFilter::All => query,
                OtaPackageFilter::Ready(profile, kind) => query
                    .push(" AND profile_id = ")
                    .bind(profile.0)
                    .push(" AND kind = ")
                    .bind(kind.name())
                    .push(" AND (upload_id IS NOT NULL OR has_url)"),
            }
        };
        let read = OtaPackageInfo::read;
        list::page(&self.database, &LISTING, page, condition, list::own_text, read).await
    }

    async fn data_bytes(&self, tenant: TenantId) -> StoreResult<u64> {
        let attached = record::number(&self.database.read(attached_bytes(tenant)).await?)?;
        let pieces = SqlQuery::new(
            "SELECT COUNT(*) FROM ota_upload JOIN ota_piece ON ota_piece.upload_id = ota_upload.id WHERE ota_upload.tenant_id = ",
        )
        .bind(tenant.0)
        .push(" AND ")
        .push(IS_LOOSE);
        let pieces = record::number(&self.database.read(pieces).await?)?;
        Ok(attached.saturating_add(pieces.saturating_mul(OTA_PIECE as u64)))
    }

    async fn tenants(&self) -> StoreResult<Vec<TenantId>> {
        let query = SqlQuery::new("SELECT tenant_id FROM ota_package UNION SELECT tenant_id FROM ota_update");
        let rows = self.database.read(query).await?;
        rows.iter()
            .map(|row| Ok(TenantId(row.columns().next()?)))
            .collect()
    }

    async fn begin_upload(&self, tenant: TenantId, upload: Uuid, now_ms: i64) -> StoreResult<()> {
        let insertion = SqlQuery::new("INSERT INTO ota_upload (id, tenant_id, created_time) VALUES (")
            .bind_list([SqlArg::from(upload), tenant.0.into(), now_ms.into()])
            .push(")");
        inserted(self.database.execute(insertion).await)
    }

    async fn append(&self, upload: Uuid, number: u32, piece: Bytes) -> StoreResult<()> {
        let insertion = SqlQuery::new("INSERT INTO ota_piece (upload_id, number, bytes) VALUES (")
            .bind_list([
                SqlArg::from(upload),
                i64::from(number).into(),
                SqlArg::Bytes(piece.into()),
            ])
            .push(")");
        inserted(self.database.execute(insertion).await)
    }

    async fn attach(
        &self,
        package: OtaPackageInfo,
        upload: Uuid,
        limit: Option<u64>,
    ) -> StoreResult<Option<OtaPackageInfo>> {
        let mut changes = self.database.begin().await?;
        if limit.is_some() {
            record::take_turn(&mut changes, RowOwner::Tenant(package.tenant_id.0)).await?;
        }
        let attachment = SqlQuery::new("UPDATE ota_package SET upload_id = ")
            .bind(upload)
            .push(" WHERE upload_id IS NULL AND id = ")
            .bind(package.id.0)
            .owned_by(RowOwner::Tenant(package.tenant_id.0));
        if changes.execute(attachment).await? == 0 {
            drop(changes);
            let found = self.get(package.tenant_id, package.id).await?;
            return Err(match found {
                None => record::not_found(OtaPackageInfo::NAME),
                Some(_) => StoreError::new(
                    StoreErrorKind::Conflict,
                    "Updating otaPackage data is prohibited!",
                ),
            });
        }
        let saved = record::update_within(&mut changes, &package).await?;
        let saved = saved.ok_or_else(|| record::not_found(OtaPackageInfo::NAME))?;
        if let Some(limit) = limit {
            let rows = changes.rows(attached_bytes(package.tenant_id)).await?;
            if record::number(&rows)? > limit {
                return Ok(None);
            }
        }
        changes.commit().await?;
        Ok(Some(saved))
    }

    async fn discard(&self, upload: Uuid) -> StoreResult<()> {
        let mut changes = self.database.begin().await?;
        discard(&mut changes, upload).await?;
        Ok(changes.commit().await?)
    }

    async fn discard_before(&self, begun_ms: i64) -> StoreResult<u64> {
        let deletion = SqlQuery::new("DELETE FROM ota_upload WHERE created_time < ")
            .bind(begun_ms)
            .push(" AND ")
            .push(IS_LOOSE);
        Ok(self.database.execute(deletion).await?)
    }

    async fn piece(&self, tenant: TenantId, id: OtaPackageId, number: u32) -> StoreResult<Option<Bytes>> {
        let query = SqlQuery::new(
            "SELECT ota_piece.bytes FROM ota_package \
             JOIN ota_piece ON ota_piece.upload_id = ota_package.upload_id WHERE ota_package.id = ",
        )
        .bind(id.0)
        .push(" AND ota_package.tenant_id = ")
        .bind(tenant.0)
        .push(" AND ota_piece.number = ")
        .bind(i64::from(number));
        let rows = self.database.read(query).await?;
        let piece: Option<Vec<u8>> = rows.first().map(|row| row.columns().next()).transpose()?;
        Ok(piece.map(Bytes::from))
    }
}

/// Bytes of all data of a tenant's packages.
fn attached_bytes(tenant: TenantId) -> SqlQuery {
    // A sum of whole numbers is of another type in PostgreSQL.
    SqlQuery::new(
        "SELECT CAST(COALESCE(SUM(data_size), 0) AS BIGINT) FROM ota_package WHERE upload_id IS NOT NULL",
    )
    .owned_by(RowOwner::Tenant(tenant.0))
}

/// Deletes an upload, unless it is a package's data.
async fn discard(changes: &mut SqlTransaction, upload: Uuid) -> StoreResult<()> {
    let deletion = SqlQuery::new("DELETE FROM ota_upload WHERE id = ")
        .bind(upload)
        .push(" AND ")
        .push(IS_LOOSE);
    changes.execute(deletion).await?;
    Ok(())
}

fn inserted(result: Result<u64, StatementError>) -> StoreResult<()> {
    match result {
        Ok(_) => Ok(()),
        Err(StatementError::BrokenReference) => {
            Err(record::invalid("The tenant or the upload of this data is gone!"))
        }
        Err(failure) => Err(failure.into_error()),
    }
}
