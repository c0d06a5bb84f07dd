//! Persistent calls to devices.

use async_trait::async_trait;
use fieldline_core::ports::{RpcStore, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::{Rpc, RpcStatus};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DeviceId, EntityKey, RpcId, TenantId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, SqlArg, SqlQuery, SqlRow, unreadable};
use super::statement_error::StatementError;

const COLUMNS: &str = "id, created_time, tenant_id, device_id, expiration_time, status, number, request, response, \
                       additional_info";
/// As the indexes of open calls have it; one that needs no answer has ended when it was delivered. Text inside the request has
/// its quotes escaped, so that only the field itself reads like that.
const IS_OPEN: &str = "status IN ('QUEUED', 'SENT', 'DELIVERED', 'TIMEOUT') AND NOT (status = 'DELIVERED' AND \
                       request LIKE '%\"oneway\":true%')";

const LISTING: ListDefinition = ListDefinition {
    table: "rpc",
    select: COLUMNS,
    joins: "",
    sorts: &[
        ("createdTime", "rpc.created_time"),
        ("expirationTime", "rpc.expiration_time"),
        ("status", "rpc.status"),
        ("request", "rpc.request"),
        ("response", "rpc.response"),
    ],
};

/// Persistent calls in a database.
pub(super) struct SqlRpcs(pub(super) EntityDatabase);

fn text(value: &impl Serialize) -> StoreResult<String> {
    serde_json::to_string(value).map_err(|error| {
        StoreError::new(StoreErrorKind::Invalid, "A call cannot be written").caused_by(error)
    })
}

fn value<T: DeserializeOwned>(text: &str) -> StoreResult<T> {
    serde_json::from_str(text).map_err(unreadable)
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<Rpc> {
    let id = RpcId(columns.next()?);
    let created_time = columns.next()?;
    let tenant_id = TenantId(columns.next()?);
    let device_id = DeviceId(columns.next()?);
    let expiration_time = columns.next()?;
    let status: String = columns.next()?;
    let number: i64 = columns.next()?;
    let request: String = columns.next()?;
    let response: Option<String> = columns.next()?;
    let additional_info: Option<String> = columns.next()?;
    Ok(Rpc {
        id,
        created_time,
        tenant_id,
        device_id,
        expiration_time,
        request: value(&request)?,
        response: response.as_deref().map(value::<Value>).transpose()?,
        status: RpcStatus::from_name(&status)
            .ok_or_else(|| unreadable(format!("unknown status of a call {status}")))?,
        additional_info: additional_info.as_deref().map(value::<Value>).transpose()?,
        number: i32::try_from(number).map_err(unreadable)?,
    })
}

fn read_all(rows: &[SqlRow]) -> StoreResult<Vec<Rpc>> {
    rows.iter().map(|row| read(&mut row.columns())).collect()
}

fn select() -> SqlQuery {
    SqlQuery::new("SELECT ").push(COLUMNS).push(" FROM rpc WHERE ")
}

#[async_trait]
impl RpcStore for SqlRpcs {
    async fn insert(&self, call: &Rpc) -> StoreResult<()> {
        let response = call.response.as_ref().map(text).transpose()?;
        let additional_info = call.additional_info.as_ref().map(text).transpose()?;
        let insertion = SqlQuery::new(
            "INSERT INTO rpc (id, created_time, tenant_id, device_id, expiration_time, status, number, request, response, \
             additional_info) VALUES (",
        )
        .bind_list([
            SqlArg::from(call.id.0),
            call.created_time.into(),
            call.tenant_id.0.into(),
            call.device_id.0.into(),
            call.expiration_time.into(),
            call.status.name().into(),
            i64::from(call.number).into(),
            text(&call.request)?.into(),
            response.into(),
            additional_info.into(),
        ])
        .push(")");
        match self.0.execute(insertion).await {
            Ok(_) => Ok(()),
            Err(StatementError::BrokenReference) => Err(StoreError::new(
                StoreErrorKind::Invalid,
                "The call refers to a device that does not exist!",
            )),
            Err(failure) => Err(failure.into_error()),
        }
    }

    async fn set_status(
        &self,
        tenant: TenantId,
        id: RpcId,
        status: RpcStatus,
        response: Option<&Value>,
    ) -> StoreResult<Option<Rpc>> {
        let mut update = SqlQuery::new("UPDATE rpc SET status = ").bind(status.name());
        if let Some(response) = response {
            update = update.push(", response = ").bind(text(response)?);
        }
        let update = update
            .push(" WHERE id = ")
            .bind(id.0)
            .push(" AND tenant_id = ")
            .bind(tenant.0)
            .push(" AND ")
            .push(IS_OPEN)
            .push(" RETURNING ")
            .push(COLUMNS);
        Ok(read_all(&self.0.write(update).await?)?.pop())
    }

    async fn get(&self, tenant: TenantId, id: RpcId) -> StoreResult<Option<Rpc>> {
        let query = select()
            .push("id = ")
            .bind(id.0)
            .push(" AND tenant_id = ")
            .bind(tenant.0);
        Ok(read_all(&self.0.read(query).await?)?.pop())
    }

    async fn delete(&self, tenant: TenantId, id: RpcId) -> StoreResult<bool> {
        let deletion = SqlQuery::new("DELETE FROM rpc WHERE id = ")
            .bind(id.0)
            .push(" AND tenant_id = ")
            .bind(tenant.0);
        Ok(self.0.execute(deletion).await? > 0)
    }

    async fn list(
        &self,
        tenant: TenantId,
        device: DeviceId,
        status: Option<RpcStatus>,
        page: &PageLink,
    ) -> StoreResult<PageData<Rpc>> {
        let condition = |query: SqlQuery| {
            let query = query
                .push(" AND rpc.tenant_id = ")
                .bind(tenant.0)
                .push(" AND rpc.device_id = ")
                .bind(device.0);
            match status {
                Some(status) => query.push(" AND rpc.status = ").bind(status.name()),
                None => query,
            }
        };
        // There is no text to search in.
        let search = |query: SqlQuery, _: &str| query.push("TRUE");
        list::page(&self.0, &LISTING, page, condition, search, read).await
    }

    async fn open_of(&self, tenant: TenantId, device: DeviceId, limit: u32) -> StoreResult<Vec<Rpc>> {
        let query = select()
            .push("tenant_id = ")
            .bind(tenant.0)
            .push(" AND device_id = ")
            .bind(device.0)
            .push(" AND ")
            .push(IS_OPEN)
            .push(" ORDER BY created_time, number LIMIT ")
            .bind(i64::from(limit));
        read_all(&self.0.read(query).await?)
    }

    async fn due(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<Rpc>> {
        let query = select()
            .push("expiration_time <= ")
            .bind(now_ms)
            .push(" AND ")
            .push(IS_OPEN)
            .push(" ORDER BY expiration_time LIMIT ")
            .bind(i64::from(limit));
        read_all(&self.0.read(query).await?)
    }

    async fn waiting_devices(&self, after: Option<DeviceId>, limit: u32) -> StoreResult<Vec<EntityKey>> {
        let mut query = SqlQuery::new("SELECT DISTINCT tenant_id, device_id FROM rpc WHERE ").push(IS_OPEN);
        if let Some(after) = after {
            query = query.push(" AND device_id > ").bind(after.0);
        }
        let query = query.push(" ORDER BY device_id LIMIT ").bind(i64::from(limit));
        let rows = self.0.read(query).await?;
        rows.iter()
            .map(|row| {
                let mut columns = row.columns();
                let tenant = TenantId(columns.next()?);
                Ok(EntityKey::device(tenant, DeviceId(columns.next()?)))
            })
            .collect()
    }

    async fn delete_before(&self, tenant: TenantId, created_ms: i64) -> StoreResult<u64> {
        let deletion = SqlQuery::new("DELETE FROM rpc WHERE tenant_id = ")
            .bind(tenant.0)
            .push(" AND created_time < ")
            .bind(created_ms);
        Ok(self.0.execute(deletion).await?)
    }
}
