//! Records that were taken out of their queue.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ports::{SetAsideOutcome, SetAsideQuota, SetAsideRawRecord, SetAsideStore, StoreResult};
use fieldline_model::entity::{SetAsideInfo, SetAsideReason};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{SetAsideId, TenantId};
use uuid::Uuid;

use super::database::{EntityDatabase, ProgramLock, SqlTransaction};
use super::list::{self, ListDefinition};
use super::names::{self, type_code};
use super::query::{ColumnReader, SqlQuery, unreadable};
use super::record;
use super::statement_error::StatementError;

const COLUMNS: &str = "id, created_time, tenant_id, entity_type, entity_id, queue_name, queue_partition, queue_offset, \
    received_time, reason, details, deaths, size";

const LISTING: ListDefinition = ListDefinition {
    table: "set_aside",
    select: "set_aside.id, set_aside.created_time, set_aside.tenant_id, set_aside.entity_type, set_aside.entity_id, \
             set_aside.queue_name, set_aside.queue_partition, set_aside.queue_offset, set_aside.received_time, \
             set_aside.reason, set_aside.details, set_aside.deaths, set_aside.size",
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("receivedTime", "received_time"),
        ("reason", "reason"),
        ("size", "size"),
    ],
};

/// Records that were set aside, in a database.
pub(super) struct SqlSetAside(pub(super) EntityDatabase);

/// What a record counts.
fn weight(size: i64) -> i64 {
    size.saturating_add(i64::try_from(SetAsideQuota::OVERHEAD).unwrap_or(i64::MAX))
}

fn limit(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[async_trait]
impl SetAsideStore for SqlSetAside {
    async fn keep(&self, record: &SetAsideRawRecord, room: SetAsideQuota) -> StoreResult<SetAsideOutcome> {
        let mut changes = self.0.begin().await?;
        changes.lock(ProgramLock::SET_ASIDE).await?;
        match insert(&mut changes, record).await {
            Ok(true) => {}
            Ok(false) => return Ok(SetAsideOutcome::default()),
            Err(StatementError::BrokenReference) => return Err(record::not_found("Tenant")),
            Err(failure) => return Err(failure.into_error()),
        }
        let dropped = make_room(&mut changes, &record.info, room).await?;
        changes.commit().await?;
        Ok(SetAsideOutcome {
            is_new: true,
            dropped,
        })
    }

    async fn get(&self, tenant: Option<TenantId>, id: SetAsideId) -> StoreResult<Option<SetAsideRawRecord>> {
        let query = SqlQuery::new("SELECT ")
            .push(COLUMNS)
            .push(", bytes FROM set_aside WHERE id = ")
            .bind(id.0);
        let rows = self.0.read(of(query, tenant)).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let mut columns = row.columns();
        let info = read(&mut columns)?;
        let bytes: Vec<u8> = columns.next()?;
        Ok(Some(SetAsideRawRecord {
            info,
            bytes: Bytes::from(bytes),
        }))
    }

    async fn list(&self, tenant: Option<TenantId>, page: &PageLink) -> StoreResult<PageData<SetAsideInfo>> {
        list::page(
            &self.0,
            &LISTING,
            page,
            |query| of(query, tenant),
            list::own_text,
            read,
        )
        .await
    }

    async fn delete(&self, tenant: Option<TenantId>, id: SetAsideId) -> StoreResult<bool> {
        let mut changes = self.0.begin().await?;
        changes.lock(ProgramLock::SET_ASIDE).await?;
        let deletion = SqlQuery::new("DELETE FROM set_aside WHERE id = ").bind(id.0);
        let deletion = of(deletion, tenant).push(" RETURNING tenant_id, size");
        let rows = changes.rows(deletion).await?;
        for row in &rows {
            let mut columns = row.columns();
            let (tenant, size): (Uuid, i64) = (columns.next()?, columns.next()?);
            add_use(&mut changes, tenant, -weight(size)).await?;
        }
        changes.commit().await?;
        Ok(!rows.is_empty())
    }
}

/// The condition that a row is the tenant's, none for anybody's.
fn of(query: SqlQuery, tenant: Option<TenantId>) -> SqlQuery {
    match tenant {
        Some(tenant) => query.push(" AND tenant_id = ").bind(tenant.0),
        None => query,
    }
}

/// Inserts the record and counts it; returns whether it was not there already.
async fn insert(changes: &mut SqlTransaction, record: &SetAsideRawRecord) -> Result<bool, StatementError> {
    let info = &record.info;
    // PostgreSQL cannot store the null character in a text.
    let details = info.details.replace('\0', "\u{fffd}");
    let insertion = SqlQuery::new("INSERT INTO set_aside (")
        .push(COLUMNS)
        .push(", search, bytes) VALUES (")
        .bind_list([
            info.id.0.into(),
            info.created_time.into(),
            info.tenant_id.0.into(),
            type_code(info.entity_id.entity_type).into(),
            info.entity_id.id.into(),
            info.queue_name.as_str().into(),
            i64::from(info.partition).into(),
            info.offset.into(),
            info.received_time.into(),
            info.reason.name().into(),
            details.as_str().into(),
            i64::from(info.deaths).into(),
            info.size.into(),
            record::search_text(&[Some(&info.queue_name), Some(&details)]),
            super::query::SqlArg::Bytes(record.bytes.to_vec()),
        ])
        .push(") ON CONFLICT (id) DO NOTHING");
    if changes.execute(insertion).await? == 0 {
        return Ok(false);
    }
    add_use(changes, info.tenant_id.0, weight(info.size)).await?;
    Ok(true)
}

async fn add_use(changes: &mut SqlTransaction, tenant: Uuid, bytes: i64) -> Result<(), StatementError> {
    let update = SqlQuery::new("INSERT INTO set_aside_use (tenant_id, bytes) VALUES (")
        .bind(tenant)
        .push(", ")
        .bind(bytes)
        .push(") ON CONFLICT (tenant_id) DO UPDATE SET bytes = set_aside_use.bytes + excluded.bytes");
    changes.execute(update).await.map(drop)
}

/// Deletes older records until there is room for this one; returns how many.
async fn make_room(
    changes: &mut SqlTransaction,
    kept: &SetAsideInfo,
    room: SetAsideQuota,
) -> StoreResult<u64> {
    let mut dropped = 0;
    loop {
        let (own, total) = used(changes, kept.tenant_id).await?;
        let from = if own > limit(room.of_tenant) {
            Some(kept.tenant_id.0)
        } else if total > limit(room.in_total) {
            largest(changes).await?
        } else {
            None
        };
        let Some(from) = from else {
            return Ok(dropped);
        };
        // The largest may have nothing but this record, and others little each: then there is nothing to gain.
        if !drop_oldest(changes, from, kept.id).await? {
            return Ok(dropped);
        }
        dropped += 1;
    }
}

/// Bytes of a tenant, and of all.
async fn used(changes: &mut SqlTransaction, tenant: TenantId) -> StoreResult<(i64, i64)> {
    let query = SqlQuery::new("SELECT CAST(COALESCE(SUM(CASE WHEN tenant_id = ")
        .bind(tenant.0)
        .push(" THEN bytes ELSE 0 END), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM set_aside_use");
    let rows = changes.rows(query).await?;
    let Some(row) = rows.first() else {
        return Ok((0, 0));
    };
    let mut columns = row.columns();
    Ok((columns.next()?, columns.next()?))
}

async fn largest(changes: &mut SqlTransaction) -> StoreResult<Option<Uuid>> {
    let query = SqlQuery::new("SELECT tenant_id FROM set_aside_use ORDER BY bytes DESC, tenant_id LIMIT 1");
    let rows = changes.rows(query).await?;
    rows.first().map(|row| row.columns().next()).transpose()
}

/// Deletes the oldest record of a tenant but for one; returns whether there was any.
async fn drop_oldest(changes: &mut SqlTransaction, tenant: Uuid, but: SetAsideId) -> StoreResult<bool> {
    let deletion =
        SqlQuery::new("DELETE FROM set_aside WHERE id IN (SELECT id FROM set_aside WHERE tenant_id = ")
            .bind(tenant)
            .push(" AND id <> ")
            .bind(but.0)
            .push(" ORDER BY created_time, id LIMIT 1) RETURNING size");
    let rows = changes.rows(deletion).await?;
    let Some(row) = rows.first() else {
        return Ok(false);
    };
    let size: i64 = row.columns().next()?;
    add_use(changes, tenant, -weight(size)).await?;
    Ok(true)
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<SetAsideInfo> {
    let id = SetAsideId(columns.next()?);
    let created_time = columns.next()?;
    let tenant_id = TenantId(columns.next()?);
    let entity_id = names::entity_id(columns)?;
    let queue_name = columns.next()?;
    let partition: i64 = columns.next()?;
    let offset = columns.next()?;
    let received_time = columns.next()?;
    let reason: String = columns.next()?;
    let details = columns.next()?;
    let deaths: i64 = columns.next()?;
    Ok(SetAsideInfo {
        id,
        created_time,
        tenant_id,
        entity_id,
        queue_name,
        partition: u16::try_from(partition).map_err(unreadable)?,
        offset,
        received_time,
        reason: SetAsideReason::from_name(&reason)
            .ok_or_else(|| unreadable("unknown reason of a record that was set aside"))?,
        details,
        deaths: u32::try_from(deaths).map_err(unreadable)?,
        size: columns.next()?,
    })
}
