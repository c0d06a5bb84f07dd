//! Changes of alarms: raising, updating, deleting.

use fieldline_core::ports::{AlarmApiResult, AlarmChange, AlarmDraft, AlarmPropagation, StoreResult};
use fieldline_model::entity::{Alarm, AlarmAssignee, AlarmInfo, AlarmSeverity, User};
use fieldline_model::{AlarmId, EntityId, TenantId};
use serde_json::Value;
use uuid::Uuid;

use super::alarm_rows::{self, alarm_columns};
use super::alarms::{SqlAlarms, select};
use super::database::SqlTransaction;
use super::names::{names, type_code};
use super::query::{RowOwner, SqlQuery, SqlRow};
use super::record;
use super::statement_error::StatementError;

/// A result in which nothing has changed.
pub(super) fn unchanged(alarm: Alarm) -> AlarmApiResult {
    AlarmApiResult {
        old: Some(alarm.clone()),
        alarm,
        created: false,
        modified: false,
        cleared: false,
        replayed: false,
        propagated: Vec::new(),
    }
}

fn changed(alarm: Alarm, old: Alarm) -> AlarmApiResult {
    AlarmApiResult {
        modified: true,
        old: Some(old),
        ..unchanged(alarm)
    }
}

/// The values of an alarm that raising it again replaces.
pub(super) struct AlarmValues<'a> {
    pub(super) severity: AlarmSeverity,
    pub(super) start_ts: i64,
    pub(super) end_ts: i64,
    pub(super) details: Option<&'a Value>,
    pub(super) propagation: &'a AlarmPropagation,
}

impl AlarmValues<'_> {
    fn differ_from(&self, alarm: &Alarm) -> bool {
        alarm.severity != Some(self.severity)
            || (alarm.start_ts, alarm.end_ts) != (self.start_ts, self.end_ts)
            || alarm.details.as_ref() != self.details.filter(|details| !details.is_null())
            || AlarmPropagation::of(alarm) != *self.propagation
    }
}

impl SqlAlarms {
    pub(super) async fn by_id(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>> {
        let query = select()
            .push("alarm.id = ")
            .bind(id.0)
            .owned_by(RowOwner::Tenant(tenant.0));
        alarm_rows::first(&self.0.read(query).await?)
    }

    /// Sets the values of an alarm; `None` where it is gone, or not active though it must be.
    pub(super) async fn set(&self, old: Alarm, values: &AlarmValues<'_>, only_active: bool) -> AlarmChange {
        if !values.differ_from(&old) {
            return Ok(Some(unchanged(old)));
        }
        let propagation = values.propagation;
        let query = SqlQuery::new("UPDATE alarm SET severity = ")
            .bind(values.severity.name())
            .push(", start_ts = ")
            .bind(values.start_ts)
            .push(", end_ts = ")
            .bind(values.end_ts)
            .push(", details = ")
            .bind(alarm_rows::details(values.details))
            .push(", propagate = ")
            .bind(propagation.related)
            .push(", propagate_to_owner = ")
            .bind(propagation.owner)
            .push(", propagate_to_tenant = ")
            .bind(propagation.tenant)
            .push(", relation_types = ")
            .bind(alarm_rows::relation_types(&propagation.relation_types))
            .push(if only_active {
                " WHERE NOT cleared AND id = "
            } else {
                " WHERE id = "
            })
            .bind(old.id.0)
            .owned_by(RowOwner::Tenant(old.tenant_id.0))
            .push(concat!(" RETURNING ", alarm_columns!()));
        let alarm = alarm_rows::first(&self.0.write(query).await?)?;
        Ok(alarm.map(|alarm| changed(alarm, old)))
    }

    /// Inserts a new alarm; `None` where another one is active, or has the id.
    pub(super) async fn insert(&self, draft: &AlarmDraft, id: AlarmId) -> StoreResult<Option<Alarm>> {
        let mut changes = self.0.begin().await?;
        let rows = changes
            .rows(insertion(draft, id)?)
            .await
            .map_err(|failure| match failure {
                StatementError::BrokenReference => {
                    record::invalid("Alarm is referencing to non-existent tenant!")
                }
                failure => failure.into_error(),
            })?;
        let Some(alarm) = alarm_rows::first(&rows)? else {
            return Ok(None);
        };
        show_at(&mut changes, draft.tenant, id, &[draft.originator]).await?;
        let known = SqlQuery::new("INSERT INTO alarm_type (tenant_id, type, search) VALUES (")
            .bind(draft.tenant.0)
            .push(", ")
            .bind(draft.alarm_type.as_str())
            .push(", ")
            .bind(record::search_text(&[Some(&draft.alarm_type)]))
            .push(") ON CONFLICT DO NOTHING");
        changes.execute(known).await?;
        changes.commit().await?;
        Ok(Some(alarm))
    }

    /// Runs an update that finds the alarm only where it changes something.
    pub(super) async fn change(
        &self,
        tenant: TenantId,
        id: AlarmId,
        update: SqlQuery,
        condition: impl FnOnce(SqlQuery) -> SqlQuery,
    ) -> AlarmChange {
        let Some(old) = self.by_id(tenant, id).await? else {
            return Ok(None);
        };
        let query = condition(
            update
                .push(" WHERE id = ")
                .bind(id.0)
                .owned_by(RowOwner::Tenant(tenant.0)),
        );
        let rows = self
            .0
            .write(query.push(concat!(" RETURNING ", alarm_columns!())))
            .await?;
        match alarm_rows::first(&rows)? {
            Some(alarm) => Ok(Some(changed(alarm, old))),
            None => Ok(self.by_id(tenant, id).await?.map(unchanged)),
        }
    }

    /// Alarms with what lists show beside them.
    pub(super) async fn infos(&self, tenant: TenantId, alarms: Vec<Alarm>) -> StoreResult<Vec<AlarmInfo>> {
        let originators = alarms.iter().filter_map(|alarm| alarm.originator);
        let names = names(&self.0, tenant, originators).await?;
        let users: Vec<Uuid> = alarms
            .iter()
            .filter_map(|alarm| alarm.assignee_id)
            .map(|id| id.0)
            .collect();
        let users: Vec<User> = record::by_ids(&self.0, RowOwner::Tenant(tenant.0), users.into_iter()).await?;
        let infos = alarms.into_iter().map(|alarm| {
            let named = alarm.originator.and_then(|originator| names.get(&originator));
            let name = named.map_or("Deleted", |named| &named.name).to_owned();
            let label = named.and_then(|named| named.label.clone());
            let assignee = alarm.assignee_id.and_then(|id| {
                let user = users.iter().find(|user| user.id == id)?;
                Some(AlarmAssignee {
                    id,
                    first_name: user.first_name.clone(),
                    last_name: user.last_name.clone(),
                    email: user.email.clone(),
                })
            });
            AlarmInfo {
                alarm,
                originator_display_name: Some(label.clone().unwrap_or_else(|| name.clone())),
                originator_name: Some(name),
                originator_label: label,
                assignee,
            }
        });
        Ok(infos.collect())
    }

    /// Deletes what a statement says, and the types that no alarm has any more; returns what was deleted.
    pub(super) async fn remove(&self, tenant: TenantId, deletion: SqlQuery) -> StoreResult<Vec<Alarm>> {
        let mut changes = self.0.begin().await?;
        let rows = changes
            .rows(deletion.push(concat!(" RETURNING ", alarm_columns!())))
            .await?;
        let alarms = read_all(&rows)?;
        let mut types: Vec<&str> = alarms.iter().map(|alarm| alarm.alarm_type.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        for alarm_type in types {
            let unused = SqlQuery::new("DELETE FROM alarm_type WHERE tenant_id = ")
                .bind(tenant.0)
                .push(" AND type = ")
                .bind(alarm_type)
                .push(
                    " AND NOT EXISTS (SELECT 1 FROM alarm WHERE alarm.tenant_id = alarm_type.tenant_id AND \
                     alarm.type = alarm_type.type)",
                );
            changes.execute(unused).await?;
        }
        changes.commit().await?;
        Ok(alarms)
    }
}

pub(super) fn read_all(rows: &[SqlRow]) -> StoreResult<Vec<Alarm>> {
    rows.iter()
        .map(|row| alarm_rows::read(&mut row.columns()))
        .collect()
}

fn insertion(draft: &AlarmDraft, id: AlarmId) -> StoreResult<SqlQuery> {
    let propagation = &draft.propagation;
    Ok(SqlQuery::new(
        "INSERT INTO alarm (id, created_time, tenant_id, customer_id, originator_type, originator_id, type, severity, \
         start_ts, end_ts, propagate, propagate_to_owner, propagate_to_tenant, relation_types, details, search, \
         acknowledged, cleared, ack_ts, clear_ts, assign_ts) VALUES (",
    )
    .bind(id.0)
    .push(", ")
    .bind(draft.created_time)
    .push(", ")
    .bind(draft.tenant.0)
    .push(", ")
    .bind(draft.customer.filter(|customer| !customer.is_null()).map(|customer| customer.0))
    .push(", ")
    .bind(type_code(draft.originator.entity_type))
    .push(", ")
    .bind(draft.originator.id)
    .push(", ")
    .bind(record::bounded("type", &draft.alarm_type)?)
    .push(", ")
    .bind(draft.severity.name())
    .push(", ")
    .bind(draft.start_ts)
    .push(", ")
    .bind(draft.end_ts)
    .push(", ")
    .bind(propagation.related)
    .push(", ")
    .bind(propagation.owner)
    .push(", ")
    .bind(propagation.tenant)
    .push(", ")
    .bind(alarm_rows::relation_types(&propagation.relation_types))
    .push(", ")
    .bind(alarm_rows::details(draft.details.as_ref()))
    .push(", ")
    .bind(record::search_text(&[Some(&draft.alarm_type)]))
    .push(concat!(
        ", FALSE, FALSE, 0, 0, 0) ON CONFLICT DO NOTHING RETURNING ",
        alarm_columns!()
    )))
}

/// Lets an alarm of the tenant show at entities.
pub(super) async fn show_at(
    changes: &mut SqlTransaction,
    tenant: TenantId,
    id: AlarmId,
    entities: &[EntityId],
) -> StoreResult<()> {
    for entity in entities {
        let query = SqlQuery::new(
            "INSERT INTO entity_alarm (alarm_id, tenant_id, entity_type, entity_id) SELECT id, tenant_id, ",
        )
        .push("CAST(")
        .bind(type_code(entity.entity_type))
        .push(" AS BIGINT), ")
        .bind(entity.id)
        .push(" FROM alarm WHERE id = ")
        .bind(id.0)
        .owned_by(RowOwner::Tenant(tenant.0))
        .push(" ON CONFLICT DO NOTHING");
        changes.execute(query).await?;
    }
    Ok(())
}
