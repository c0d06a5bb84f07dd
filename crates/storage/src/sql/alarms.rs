//! Alarms.

use async_trait::async_trait;
use fieldline_core::ports::{
    AlarmApiResult, AlarmChange, AlarmDraft, AlarmEndUpdate, AlarmQuery, AlarmStore, AlarmUpdate, StoreError,
    StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{
    Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmInfo, AlarmSeverity,
};
use fieldline_model::page::{PageData, PageLink, SortOrder};
use fieldline_model::{AlarmId, EntityId, TenantId, UserId};
use serde_json::Value;

use super::alarm_changes::{AlarmValues, read_all, show_at, unchanged};
use super::alarm_comments;
use super::alarm_order;
use super::alarm_rows::{self, alarm_columns};
use super::database::EntityDatabase;
use super::list;
use super::names::{entity_id, type_code};
use super::query::{RowOwner, SqlQuery};
use super::record;

/// How often raising an alarm is tried while others raise and end it at the same moment.
const MOST_TRIES: u32 = 8;

/// The most active alarms of an originator that are returned.
const MAX_ACTIVE: i64 = 1_000;

/// Alarms in a database.
pub(super) struct SqlAlarms(pub(super) EntityDatabase);

/// `SELECT … FROM alarm WHERE `, to be continued with a condition.
pub(super) fn select() -> SqlQuery {
    SqlQuery::new(concat!("SELECT ", alarm_columns!(), " FROM alarm WHERE "))
}

#[async_trait]
impl AlarmStore for SqlAlarms {
    async fn create_or_update_active(&self, draft: AlarmDraft) -> AlarmChange {
        let id = draft.id.unwrap_or_default();
        let id = if id.is_null() { AlarmId::new() } else { id };
        let values = AlarmValues {
            severity: draft.severity,
            start_ts: draft.start_ts,
            end_ts: draft.end_ts,
            details: draft.details.as_ref(),
            propagation: &draft.propagation,
        };
        for _ in 0..MOST_TRIES {
            if draft.id.is_some()
                && let Some(alarm) = self.by_id(draft.tenant, id).await?
            {
                return Ok(Some(AlarmApiResult {
                    replayed: true,
                    ..unchanged(alarm)
                }));
            }
            let active = self
                .latest_active(draft.tenant, draft.originator, &draft.alarm_type)
                .await?;
            if let Some(old) = active {
                if let Some(result) = self.set(old, &values, true).await? {
                    return Ok(Some(result));
                }
            } else if !draft.may_create {
                return Ok(None);
            } else if let Some(alarm) = self.insert(&draft, id).await? {
                return Ok(Some(AlarmApiResult {
                    created: true,
                    modified: true,
                    old: None,
                    ..unchanged(alarm)
                }));
            }
            // Somebody has raised or ended it in between.
        }
        Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "The alarm is being changed by others",
        ))
    }

    async fn update(&self, update: AlarmUpdate) -> AlarmChange {
        let Some(old) = self.by_id(update.tenant, update.id).await? else {
            return Ok(None);
        };
        let values = AlarmValues {
            severity: update.severity,
            start_ts: update.start_ts,
            end_ts: update.end_ts,
            details: update.details.as_ref(),
            propagation: &update.propagation,
        };
        self.set(old, &values, false).await
    }

    async fn acknowledge(&self, tenant: TenantId, id: AlarmId, ts: i64) -> AlarmChange {
        let update = SqlQuery::new("UPDATE alarm SET acknowledged = TRUE, ack_ts = ").bind(ts);
        self.change(tenant, id, update, |query| query.push(" AND NOT acknowledged"))
            .await
    }

    async fn clear(&self, tenant: TenantId, id: AlarmId, ts: i64, details: Option<&Value>) -> AlarmChange {
        let mut update = SqlQuery::new("UPDATE alarm SET cleared = TRUE, clear_ts = ").bind(ts);
        if let Some(details) = alarm_rows::details(details) {
            update = update.push(", details = ").bind(details);
        }
        let result = self
            .change(tenant, id, update, |query| query.push(" AND NOT cleared"))
            .await?;
        Ok(result.map(|result| AlarmApiResult {
            cleared: result.modified,
            ..result
        }))
    }

    async fn assign(&self, tenant: TenantId, id: AlarmId, assignee: Option<UserId>, ts: i64) -> AlarmChange {
        let assignee = assignee.map(|user| user.0);
        let update = SqlQuery::new("UPDATE alarm SET assignee_id = ")
            .bind(assignee)
            .push(", assign_ts = ")
            .bind(ts);
        self.change(tenant, id, update, |query| match assignee {
            Some(user) => query
                .push(" AND (assignee_id IS NULL OR assignee_id <> ")
                .bind(user)
                .push(")"),
            None => query.push(" AND assignee_id IS NOT NULL"),
        })
        .await
    }

    async fn extend(&self, touches: &[AlarmEndUpdate]) -> StoreResult<()> {
        if touches.is_empty() {
            return Ok(());
        }
        // In the order of ids, so that concurrent batches do not lock each other out.
        let mut touches: Vec<&AlarmEndUpdate> = touches.iter().collect();
        touches.sort_by_key(|touch| (touch.alarm, touch.end_ts));
        let mut changes = self.0.begin().await?;
        for touch in touches {
            let mut query = SqlQuery::new("UPDATE alarm SET end_ts = ").bind(touch.end_ts);
            if let Some(details) = alarm_rows::details(touch.details.as_ref()) {
                query = query.push(", details = ").bind(details);
            }
            let query = query
                .push(" WHERE id = ")
                .bind(touch.alarm.0)
                .push(" AND NOT cleared AND end_ts <= ")
                .bind(touch.end_ts)
                .owned_by(RowOwner::Tenant(touch.tenant.0));
            changes.execute(query).await?;
        }
        changes.commit().await?;
        Ok(())
    }

    async fn propagate(&self, tenant: TenantId, id: AlarmId, entities: &[EntityId]) -> StoreResult<()> {
        let mut changes = self.0.begin().await?;
        show_at(&mut changes, tenant, id, entities).await?;
        changes.commit().await?;
        Ok(())
    }

    async fn propagated(&self, tenant: TenantId, ids: &[AlarmId]) -> StoreResult<Vec<(AlarmId, EntityId)>> {
        let mut found = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(record::IDS_A_STATEMENT) {
            let query = SqlQuery::new(
                "SELECT alarm_id, entity_type, entity_id FROM entity_alarm WHERE alarm_id IN (",
            )
            .bind_list(chunk.iter().map(|id| id.0))
            .push(")")
            .owned_by(RowOwner::Tenant(tenant.0));
            for row in &self.0.read(query).await? {
                let mut columns = row.columns();
                found.push((AlarmId(columns.next()?), entity_id(&mut columns)?));
            }
        }
        Ok(found)
    }

    async fn delete(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>> {
        let deletion = SqlQuery::new("DELETE FROM alarm WHERE id = ")
            .bind(id.0)
            .owned_by(RowOwner::Tenant(tenant.0));
        Ok(self.remove(tenant, deletion).await?.pop())
    }

    async fn delete_of(&self, tenant: TenantId, entity: EntityId) -> StoreResult<u64> {
        let deletion = SqlQuery::new("DELETE FROM alarm WHERE originator_id = ")
            .bind(entity.id)
            .push(" AND originator_type = ")
            .bind(type_code(entity.entity_type))
            .owned_by(RowOwner::Tenant(tenant.0));
        let deleted = self.remove(tenant, deletion).await?.len();
        let hide = SqlQuery::new("DELETE FROM entity_alarm WHERE entity_id = ")
            .bind(entity.id)
            .push(" AND entity_type = ")
            .bind(type_code(entity.entity_type))
            .owned_by(RowOwner::Tenant(tenant.0));
        self.0.execute(hide).await?;
        Ok(deleted as u64)
    }

    async fn delete_before(&self, tenant: TenantId, end_ts: i64, limit: u32) -> StoreResult<Vec<Alarm>> {
        let deletion = SqlQuery::new("DELETE FROM alarm WHERE id IN (SELECT id FROM alarm WHERE end_ts < ")
            .bind(end_ts)
            .owned_by(RowOwner::Tenant(tenant.0))
            .push(" ORDER BY end_ts LIMIT ")
            .bind(i64::from(limit))
            // One that has gone on while this waited for its row is not old any more.
            .push(") AND end_ts < ")
            .bind(end_ts)
            .owned_by(RowOwner::Tenant(tenant.0));
        self.remove(tenant, deletion).await
    }

    async fn get(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>> {
        self.by_id(tenant, id).await
    }

    async fn info(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<AlarmInfo>> {
        let alarm = self.by_id(tenant, id).await?;
        Ok(self.infos(tenant, alarm.into_iter().collect()).await?.pop())
    }

    async fn latest_active(
        &self,
        tenant: TenantId,
        originator: EntityId,
        alarm_type: &str,
    ) -> StoreResult<Option<Alarm>> {
        let query = select()
            .push("NOT alarm.cleared AND alarm.originator_id = ")
            .bind(originator.id)
            .push(" AND alarm.type = ")
            .bind(alarm_type)
            .owned_by(RowOwner::Tenant(tenant.0));
        alarm_rows::first(&self.0.read(query).await?)
    }

    async fn active_of(&self, tenant: TenantId, originator: EntityId) -> StoreResult<Vec<Alarm>> {
        let query = select()
            .push("NOT alarm.cleared AND alarm.originator_id = ")
            .bind(originator.id)
            .push(" AND alarm.originator_type = ")
            .bind(type_code(originator.entity_type))
            .owned_by(RowOwner::Tenant(tenant.0))
            .push(" ORDER BY alarm.created_time DESC, alarm.id DESC LIMIT ")
            .bind(MAX_ACTIVE);
        read_all(&self.0.read(query).await?)
    }

    async fn list(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
        page: &PageLink,
    ) -> StoreResult<PageData<AlarmInfo>> {
        alarm_rows::check(query)?;
        let condition = |sql: SqlQuery| alarm_rows::matching(sql, tenant, query);
        let found = match alarm_order::entities(query) {
            Some(entities) => alarm_order::page(&self.0, tenant, query, entities, page).await?,
            None => {
                list::page(
                    &self.0,
                    &alarm_rows::LISTING,
                    page,
                    condition,
                    alarm_rows::containing,
                    alarm_rows::read,
                )
                .await?
            }
        };
        let PageData {
            data,
            total_pages,
            total_elements,
            has_next,
        } = found;
        Ok(PageData {
            data: self.infos(tenant, data).await?,
            total_pages,
            total_elements,
            has_next,
        })
    }

    async fn count(&self, tenant: TenantId, query: &AlarmQuery) -> StoreResult<u64> {
        alarm_rows::check(query)?;
        let sql = SqlQuery::new("SELECT COUNT(*) FROM alarm WHERE TRUE");
        record::number(&self.0.read_list(alarm_rows::matching(sql, tenant, query)).await?)
    }

    async fn highest_severity(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
    ) -> StoreResult<Option<AlarmSeverity>> {
        alarm_rows::check(query)?;
        let sql = SqlQuery::new("SELECT DISTINCT alarm.severity FROM alarm WHERE TRUE");
        let rows = self.0.read_list(alarm_rows::matching(sql, tenant, query)).await?;
        let mut severities = Vec::with_capacity(rows.len());
        for row in &rows {
            let name: String = row.columns().next()?;
            severities.push(alarm_rows::severity_of(&name)?);
        }
        // The worst comes first in their order.
        Ok(severities.into_iter().min())
    }

    async fn types(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<String>> {
        let pattern = list::pattern(page.text_search.as_deref())?;
        let matching = |query: SqlQuery| {
            let query = query.push(" FROM alarm_type WHERE tenant_id = ").bind(tenant.0);
            match &pattern {
                Some(pattern) => list::own_text(query.push(" AND "), pattern),
                None => query,
            }
        };
        let total = record::number(
            &self
                .0
                .read_list(matching(SqlQuery::new("SELECT COUNT(*)")))
                .await?,
        )?;
        let query = matching(SqlQuery::new("SELECT type"))
            .push(match page.sort_order.unwrap_or_default() {
                SortOrder::Asc => " ORDER BY type ASC LIMIT ",
                SortOrder::Desc => " ORDER BY type DESC LIMIT ",
            })
            .bind(i64::from(page.page_size.max(1)))
            .push(" OFFSET ")
            .bind(i64::try_from(page.offset()).unwrap_or(i64::MAX));
        let rows = self.0.read_list(query).await?;
        let data = rows
            .iter()
            .map(|row| row.columns().next())
            .collect::<StoreResult<Vec<String>>>()?;
        Ok(PageData::new(data, total, page))
    }

    async fn assigned_to(&self, tenant: TenantId, user: UserId, limit: u32) -> StoreResult<Vec<AlarmId>> {
        let query = SqlQuery::new("SELECT id FROM alarm WHERE assignee_id = ")
            .bind(user.0)
            .owned_by(RowOwner::Tenant(tenant.0))
            .push(" ORDER BY id LIMIT ")
            .bind(i64::from(limit));
        let rows = self.0.read(query).await?;
        rows.iter().map(|row| row.columns().next().map(AlarmId)).collect()
    }

    async fn save_comment(&self, tenant: TenantId, comment: AlarmComment) -> StoreResult<AlarmComment> {
        alarm_comments::save(&self.0, tenant, &comment).await
    }

    async fn comment(
        &self,
        tenant: TenantId,
        alarm: AlarmId,
        id: AlarmCommentId,
    ) -> StoreResult<Option<AlarmComment>> {
        alarm_comments::get(&self.0, tenant, alarm, id).await
    }

    async fn comments(
        &self,
        tenant: TenantId,
        alarm: AlarmId,
        page: &PageLink,
    ) -> StoreResult<PageData<AlarmCommentInfo>> {
        alarm_comments::list(&self.0, tenant, alarm, page).await
    }
}
