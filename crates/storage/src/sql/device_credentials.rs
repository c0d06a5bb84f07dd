//! Device credentials: one row a device.

use async_trait::async_trait;
use fieldline_core::ports::{DeviceCredentialsStore, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::{CredentialsType, Device, DeviceCredentials};
use fieldline_model::{DeviceCredentialsId, DeviceId, TenantId};
use uuid::Uuid;

use super::database::{EntityDatabase, SqlTransaction};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, SqlRow, unreadable};
use super::record::{self, EntityRecord};
use super::statement_error::StatementError;

/// The longest id that fits an index of PostgreSQL whatever it is made of.
const MAX_ID_BYTES: usize = 2_048;

macro_rules! credentials_columns {
    () => {
        "device_credentials.id, device_credentials.created_time, device_credentials.device_id, \
         device_credentials.kind, device_credentials.credentials_id, device_credentials.value, \
         device_credentials.version"
    };
}

/// Device credentials in a database.
pub(super) struct SqlDeviceCredentials(pub(super) EntityDatabase);

#[async_trait]
impl DeviceCredentialsStore for SqlDeviceCredentials {
    async fn save(&self, tenant: TenantId, credentials: DeviceCredentials) -> StoreResult<DeviceCredentials> {
        let saved = self.0.write(upsert(tenant, &credentials)?).await;
        match stored(saved)? {
            Some(saved) => Ok(saved),
            None => Err(self.not_saved(tenant, &credentials).await?),
        }
    }

    async fn get(&self, tenant: TenantId, device: DeviceId) -> StoreResult<Option<DeviceCredentials>> {
        let query = SqlQuery::new(concat!(
            "SELECT ",
            credentials_columns!(),
            " FROM device_credentials JOIN device ON device.id = device_credentials.device_id \
             WHERE device_credentials.device_id = "
        ))
        .bind(device.0)
        .owned_by(RowOwner::Tenant(tenant.0));
        let rows = self.0.read(query).await?;
        rows.first().map(|row| read(&mut row.columns())).transpose()
    }

    async fn find(
        &self,
        kind: CredentialsType,
        credentials_id: &str,
    ) -> StoreResult<Option<(Device, DeviceCredentials)>> {
        let query = SqlQuery::new("SELECT ")
            .push(Device::SELECT)
            .push(concat!(
                ", ",
                credentials_columns!(),
                " FROM device_credentials JOIN device ON device.id = device_credentials.device_id \
                 WHERE device_credentials.credentials_id = "
            ))
            .bind(credentials_id)
            .push(" AND device_credentials.kind = ")
            .bind(kind.name());
        let rows = self.0.read(query).await?;
        let found = |row: &SqlRow| {
            let mut columns = row.columns();
            Ok((Device::read(&mut columns)?, read(&mut columns)?))
        };
        rows.first().map(found).transpose()
    }
}

impl SqlDeviceCredentials {
    /// Why a save changed nothing.
    async fn not_saved(&self, tenant: TenantId, credentials: &DeviceCredentials) -> StoreResult<StoreError> {
        let query = SqlQuery::new("SELECT version FROM device WHERE id = ")
            .bind(credentials.device_id.0)
            .owned_by(RowOwner::Tenant(tenant.0));
        Ok(if self.0.read(query).await?.is_empty() {
            record::not_found(Device::NAME)
        } else {
            record::version_conflict("Device credentials")
        })
    }
}

/// Inserts the credentials of a device that the same transaction has inserted.
pub(super) async fn insert(
    changes: &mut SqlTransaction,
    tenant: TenantId,
    credentials: &DeviceCredentials,
) -> StoreResult<DeviceCredentials> {
    let saved = changes.rows(upsert(tenant, credentials)?).await;
    stored(saved)?.ok_or_else(|| unreadable("saved credentials were not returned"))
}

/// Credentials in one statement: seven values each.
const CREDENTIALS_A_STATEMENT: usize = 500;

/// Inserts or replaces those of devices that the same transaction has stored. An error is about one of them.
pub(super) async fn replace_all(
    changes: &mut SqlTransaction,
    credentials: &[&DeviceCredentials],
) -> StoreResult<()> {
    for some in credentials.chunks(CREDENTIALS_A_STATEMENT) {
        let mut query = SqlQuery::new(
            "INSERT INTO device_credentials (device_id, id, created_time, kind, credentials_id, value, version) VALUES ",
        );
        for (index, one) in some.iter().enumerate() {
            check_id(one)?;
            query = query
                .push(if index == 0 { "(" } else { ", (" })
                .bind_list([
                    SqlArg::from(one.device_id.0),
                    one.id.0.into(),
                    one.created_time.into(),
                    one.credentials_type.name().into(),
                    one.credentials_id.clone().into(),
                    one.credentials_value.clone().into(),
                ])
                .push(", 1)");
        }
        let query = query.push(REPLACING);
        match changes.execute(query).await {
            Ok(_) => {}
            Err(failure) => {
                stored(Err(failure))?;
            }
        }
    }
    Ok(())
}

/// What becomes of credentials that are there already; row id and creation time stay those of the first.
const REPLACING: &str = " ON CONFLICT (device_id) DO UPDATE SET kind = excluded.kind, \
    credentials_id = excluded.credentials_id, value = excluded.value, version = device_credentials.version + 1";

fn check_id(credentials: &DeviceCredentials) -> StoreResult<()> {
    let id = credentials.credentials_id.as_ref();
    if id.is_some_and(|id| id.len() > MAX_ID_BYTES) {
        return Err(record::invalid(format!(
            "Validation error: credentialsId length must be equal or less than {MAX_ID_BYTES} bytes"
        )));
    }
    Ok(())
}

/// Inserts or replaces, provided that the tenant has the device; row id and creation time stay those of the first.
fn upsert(tenant: TenantId, credentials: &DeviceCredentials) -> StoreResult<SqlQuery> {
    let credentials_id = credentials.credentials_id.clone();
    check_id(credentials)?;
    let query = SqlQuery::new(
        "INSERT INTO device_credentials (device_id, id, created_time, kind, credentials_id, value, version) SELECT ",
    )
    .bind(credentials.device_id.0)
    .push(", ")
    .bind(credentials.id.0)
    .push(", ")
    .bind(credentials.created_time)
    .push(", ")
    .bind(credentials.credentials_type.name())
    .push(", ")
    .bind(credentials_id)
    .push(", ")
    .bind(credentials.credentials_value.clone())
    .push(", 1 FROM device WHERE id = ")
    .bind(credentials.device_id.0)
    .owned_by(RowOwner::Tenant(tenant.0))
    .push(REPLACING);
    let query = match credentials.version {
        Some(version) => query.push(" WHERE device_credentials.version = ").bind(version),
        None => query,
    };
    Ok(query.push(concat!(" RETURNING ", credentials_columns!())))
}

fn stored(saved: Result<Vec<SqlRow>, StatementError>) -> StoreResult<Option<DeviceCredentials>> {
    match saved {
        Ok(rows) => rows.first().map(|row| read(&mut row.columns())).transpose(),
        Err(StatementError::Taken(_)) => Err(StoreError::new(
            StoreErrorKind::Conflict,
            "Specified credentials are already registered!",
        )),
        Err(failure) => Err(failure.into_error()),
    }
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<DeviceCredentials> {
    let id: Uuid = columns.next()?;
    let created_time = columns.next()?;
    let device_id = DeviceId(columns.next()?);
    let kind: String = columns.next()?;
    Ok(DeviceCredentials {
        id: DeviceCredentialsId(id),
        created_time,
        device_id,
        credentials_type: CredentialsType::from_name(&kind)
            .ok_or_else(|| unreadable("unknown type of credentials"))?,
        credentials_id: columns.next()?,
        credentials_value: columns.next()?,
        version: Some(columns.next()?),
    })
}
