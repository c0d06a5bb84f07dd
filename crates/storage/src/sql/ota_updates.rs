//! Which OTA package each device shall have, and which it has been told of.

use async_trait::async_trait;
use fieldline_core::ports::{OtaScope, OtaTarget, OtaUpdate, OtaUpdateStore, StoreResult};
use fieldline_model::entity::OtaKind;
use fieldline_model::{DeviceId, DeviceProfileId, OtaPackageId, TenantId};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::query::{SqlArg, SqlQuery, unreadable};
use super::record;
use super::statement_error::StatementError;

/// What of OTA updates is in a database.
pub(super) struct SqlOtaUpdates(pub(super) EntityDatabase);

/// The package that `device` shall have.
const fn wanted(kind: OtaKind) -> &'static str {
    match kind {
        OtaKind::Firmware => "COALESCE(device.firmware_id, profile.firmware_id)",
        OtaKind::Software => "COALESCE(device.software_id, profile.software_id)",
    }
}

/// The package that `device` has of its own.
const fn own(kind: OtaKind) -> &'static str {
    match kind {
        OtaKind::Firmware => "device.firmware_id",
        OtaKind::Software => "device.software_id",
    }
}

const FROM: &str = " FROM device JOIN device_profile profile ON profile.tenant_id = device.tenant_id \
                    AND profile.id = device.profile_id ";

impl SqlOtaUpdates {
    async fn note_all(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        targets: &[(&OtaTarget, OtaPackageId)],
        now_ms: i64,
    ) -> Result<(), StatementError> {
        let mut query = SqlQuery::new(
            "INSERT INTO ota_update (device_id, kind, tenant_id, package_id, is_own, is_told, ts, not_before) VALUES ",
        );
        for (index, (target, package)) in targets.iter().enumerate() {
            query = query
                .push(if index == 0 { "(" } else { ", (" })
                .bind_list([
                    SqlArg::from(target.device.0),
                    kind.name().into(),
                    tenant.0.into(),
                    package.0.into(),
                    target.is_own.into(),
                    false.into(),
                    now_ms.into(),
                    0_i64.into(),
                ])
                .push(")");
        }
        let query = query.push(
            " ON CONFLICT (device_id, kind) DO UPDATE SET package_id = excluded.package_id, is_own = excluded.is_own, \
             is_told = excluded.is_told, ts = excluded.ts, not_before = 0",
        );
        self.0.execute(query).await.map(drop)
    }
}

/// Continues a change of one that waits, as long as it waits for this package.
fn of_update(change: SqlQuery, update: &OtaUpdate) -> SqlQuery {
    change
        .push(" WHERE device_id = ")
        .bind(update.device.0)
        .push(" AND kind = ")
        .bind(update.kind.name())
        .push(" AND package_id = ")
        .bind(update.package.0)
}

impl SqlOtaUpdates {
    /// The next one of the first tenant whose id compares so.
    async fn next_of(
        &self,
        compares: &'static str,
        tenant: TenantId,
        now_ms: i64,
    ) -> StoreResult<Option<OtaUpdate>> {
        let query = SqlQuery::new(
            "SELECT tenant_id, device_id, package_id, kind, ts FROM ota_update WHERE NOT is_told AND tenant_id",
        )
        .push(compares)
        .bind(tenant.0)
        .push(" AND not_before <= ")
        .bind(now_ms)
        .push(" ORDER BY tenant_id, not_before, is_own DESC, ts, device_id LIMIT 1");
        let rows = self.0.read(query).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let mut columns = row.columns();
        let tenant = TenantId(columns.next()?);
        let device = DeviceId(columns.next()?);
        let package = OtaPackageId(columns.next()?);
        let kind: String = columns.next()?;
        Ok(Some(OtaUpdate {
            tenant,
            device,
            package,
            kind: kind.parse().map_err(unreadable)?,
            ts: columns.next()?,
        }))
    }
}

#[async_trait]
impl OtaUpdateStore for SqlOtaUpdates {
    async fn assigned(
        &self,
        tenant: TenantId,
        device: DeviceId,
        kind: OtaKind,
    ) -> StoreResult<Option<OtaPackageId>> {
        let query = SqlQuery::new("SELECT ")
            .push(wanted(kind))
            .push(FROM)
            .push("WHERE device.id = ")
            .bind(device.0)
            .push(" AND device.tenant_id = ")
            .bind(tenant.0);
        let rows = self.0.read(query).await?;
        let package: Option<Uuid> = match rows.first() {
            Some(row) => row.columns().next()?,
            None => None,
        };
        Ok(package.map(OtaPackageId))
    }

    async fn differing(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        scope: &OtaScope,
        after: Option<DeviceId>,
        limit: u32,
    ) -> StoreResult<Vec<OtaTarget>> {
        let mut query = SqlQuery::new("SELECT device.id, device.profile_id, ")
            .push(wanted(kind))
            .push(", ")
            .push(own(kind))
            .push(" IS NOT NULL")
            .push(FROM)
            .push("LEFT JOIN ota_update ON ota_update.device_id = device.id AND ota_update.kind = ")
            .bind(kind.name())
            .push(" WHERE device.tenant_id = ")
            .bind(tenant.0)
            .push(" AND ")
            .push(wanted(kind))
            .push(" IS DISTINCT FROM ota_update.package_id");
        if let Some(after) = after {
            query = query.push(" AND device.id > ").bind(after.0);
        }
        query = match scope {
            OtaScope::All => query,
            OtaScope::Profile(profile) => query.push(" AND device.profile_id = ").bind(profile.0),
            OtaScope::Devices(devices) => query
                .push(" AND device.id IN (")
                .bind_list(devices.iter().map(|device| device.0))
                .push(")"),
        };
        let query = query.push(" ORDER BY device.id LIMIT ").bind(i64::from(limit));
        let rows = self.0.read(query).await?;
        let targets = rows.iter().map(|row| {
            let mut columns = row.columns();
            let device = DeviceId(columns.next()?);
            let profile = DeviceProfileId(columns.next()?);
            let package: Option<Uuid> = columns.next()?;
            Ok(OtaTarget {
                device,
                profile,
                package: package.map(OtaPackageId),
                is_own: columns.next()?,
            })
        });
        targets.collect()
    }

    async fn note(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        targets: &[OtaTarget],
        now_ms: i64,
    ) -> StoreResult<()> {
        for some in targets.chunks(record::IDS_A_STATEMENT) {
            let gone = some.iter().filter(|target| target.package.is_none());
            let gone: Vec<Uuid> = gone.map(|target| target.device.0).collect();
            if !gone.is_empty() {
                let deletion = SqlQuery::new("DELETE FROM ota_update WHERE kind = ")
                    .bind(kind.name())
                    .push(" AND device_id IN (")
                    .bind_list(gone)
                    .push(")");
                self.0.execute(deletion).await?;
            }
            let new = some
                .iter()
                .filter_map(|target| target.package.map(|package| (target, package)));
            let new: Vec<_> = new.collect();
            if new.is_empty() {
                continue;
            }
            match self.note_all(tenant, kind, &new, now_ms).await {
                Err(StatementError::BrokenReference) => {}
                done => {
                    done?;
                    continue;
                }
            }
            // One of them was deleted just now.
            for one in &new {
                match self
                    .note_all(tenant, kind, std::slice::from_ref(one), now_ms)
                    .await
                {
                    Err(StatementError::BrokenReference) => {}
                    done => done?,
                }
            }
        }
        Ok(())
    }

    async fn next(&self, after: TenantId, now_ms: i64) -> StoreResult<Option<OtaUpdate>> {
        if let Some(next) = self.next_of(" > ", after, now_ms).await? {
            return Ok(Some(next));
        }
        // The null id is not the smallest one.
        self.next_of(" >= ", TenantId(Uuid::nil()), now_ms).await
    }

    async fn put_off(&self, update: &OtaUpdate, until_ms: i64) -> StoreResult<()> {
        let query = SqlQuery::new("UPDATE ota_update SET not_before = ").bind(until_ms);
        self.0.execute(of_update(query, update)).await?;
        Ok(())
    }

    async fn put_off_until(&self) -> StoreResult<Option<i64>> {
        let query = SqlQuery::new("SELECT MIN(not_before) FROM ota_update WHERE NOT is_told");
        let rows = self.0.read(query).await?;
        match rows.first() {
            Some(row) => row.columns().next(),
            None => Ok(None),
        }
    }

    async fn mark_notified(&self, update: &OtaUpdate) -> StoreResult<()> {
        let query = SqlQuery::new("UPDATE ota_update SET is_told = TRUE");
        self.0.execute(of_update(query, update)).await?;
        Ok(())
    }

    async fn count_following(
        &self,
        tenant: TenantId,
        profile: DeviceProfileId,
        kind: OtaKind,
    ) -> StoreResult<u64> {
        let query = SqlQuery::new("SELECT COUNT(*) FROM device WHERE tenant_id = ")
            .bind(tenant.0)
            .push(" AND profile_id = ")
            .bind(profile.0)
            .push(" AND ")
            .push(own(kind))
            .push(" IS NULL");
        record::number(&self.0.read(query).await?)
    }
}
