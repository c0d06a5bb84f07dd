//! Rows of alarms: what they are read from and written as, and which of them a query finds.

use fieldline_core::ports::{AlarmQuery, AlarmScope, AlarmTime, MAX_ALARM_ENTITIES, StoreResult};
use fieldline_model::entity::{Alarm, AlarmSeverity};
use fieldline_model::{AlarmId, CustomerId, TenantId, UserId};
use serde_json::Value;
use uuid::Uuid;

use super::list::{self, ListDefinition};
use super::names::{entity_id, type_code};
use super::query::{ColumnReader, SqlQuery, SqlRow, unreadable};
use super::record;

/// What an alarm is read from.
macro_rules! alarm_columns {
    () => {
        "alarm.id, alarm.created_time, alarm.tenant_id, alarm.customer_id, alarm.originator_type, alarm.originator_id, \
         alarm.type, alarm.severity, alarm.acknowledged, alarm.cleared, alarm.assignee_id, alarm.start_ts, \
         alarm.end_ts, alarm.ack_ts, alarm.clear_ts, alarm.assign_ts, alarm.propagate, alarm.propagate_to_owner, \
         alarm.propagate_to_tenant, alarm.relation_types, alarm.details"
    };
}
pub(super) use alarm_columns;

pub(super) fn read(columns: &mut ColumnReader<'_>) -> StoreResult<Alarm> {
    let id = AlarmId(columns.next()?);
    let created_time = columns.next()?;
    let tenant_id = TenantId(columns.next()?);
    let customer_id: Option<Uuid> = columns.next()?;
    let originator = entity_id(columns)?;
    let alarm_type = columns.next()?;
    let severity: String = columns.next()?;
    let acknowledged = columns.next()?;
    let cleared = columns.next()?;
    let assignee: Option<Uuid> = columns.next()?;
    let start_ts = columns.next()?;
    let end_ts = columns.next()?;
    let ack_ts = columns.next()?;
    let clear_ts = columns.next()?;
    let assign_ts = columns.next()?;
    let propagate = columns.next()?;
    let propagate_to_owner = columns.next()?;
    let propagate_to_tenant = columns.next()?;
    let relation_types: String = columns.next()?;
    let details: Option<String> = columns.next()?;
    Ok(Alarm {
        id,
        created_time,
        tenant_id,
        customer_id: customer_id.map(CustomerId),
        alarm_type,
        originator: Some(originator),
        severity: Some(severity_of(&severity)?),
        acknowledged,
        cleared,
        assignee_id: assignee.map(UserId),
        start_ts,
        end_ts,
        ack_ts,
        clear_ts,
        assign_ts,
        details: details
            .map(|details| serde_json::from_str(&details))
            .transpose()
            .map_err(unreadable)?,
        propagate,
        propagate_to_owner,
        propagate_to_tenant,
        propagate_relation_types: serde_json::from_str(&relation_types).map_err(unreadable)?,
    })
}

/// The alarm in the first row, if there is one.
pub(super) fn first(rows: &[SqlRow]) -> StoreResult<Option<Alarm>> {
    rows.first().map(|row| read(&mut row.columns())).transpose()
}

pub(super) fn severity_of(name: &str) -> StoreResult<AlarmSeverity> {
    AlarmSeverity::from_name(name).ok_or_else(|| unreadable(format!("unknown severity {name}")))
}

/// Details as they are kept; JSON null counts as absent.
pub(super) fn details(details: Option<&Value>) -> Option<String> {
    details
        .filter(|details| !details.is_null())
        .map(ToString::to_string)
}

/// The types of relations as they are kept.
pub(super) fn relation_types(types: &[String]) -> String {
    Value::from(types.to_vec()).to_string()
}

const STATUS: &str = "CASE WHEN alarm.cleared THEN CASE WHEN alarm.acknowledged THEN 'cleared_ack' ELSE \
                      'cleared_unack' END ELSE CASE WHEN alarm.acknowledged THEN 'active_ack' ELSE 'active_unack' END \
                      END";

// The numbers are the codes of the entity types.
const ORIGINATOR_NAME: &str = "COALESCE(CASE alarm.originator_type \
     WHEN 1 THEN (SELECT search FROM tenant WHERE tenant.id = alarm.originator_id) \
     WHEN 3 THEN (SELECT search FROM customer WHERE customer.id = alarm.originator_id) \
     WHEN 4 THEN (SELECT search FROM user_account WHERE user_account.id = alarm.originator_id) \
     WHEN 5 THEN (SELECT search FROM device WHERE device.id = alarm.originator_id) \
     WHEN 7 THEN (SELECT search FROM asset WHERE asset.id = alarm.originator_id) \
     WHEN 9 THEN (SELECT search FROM entity_view WHERE entity_view.id = alarm.originator_id) END, '')";

const ORIGINATOR_LABEL: &str = "COALESCE(CASE alarm.originator_type \
     WHEN 5 THEN (SELECT label_key FROM device WHERE device.id = alarm.originator_id) \
     WHEN 7 THEN (SELECT label_key FROM asset WHERE asset.id = alarm.originator_id) END, '')";

const ASSIGNEE: &str =
    "COALESCE((SELECT email_key FROM user_account WHERE user_account.id = alarm.assignee_id), '')";

pub(super) const LISTING: ListDefinition = ListDefinition {
    table: "alarm",
    select: alarm_columns!(),
    joins: "",
    sorts: &[
        ("createdTime", "alarm.created_time"),
        ("startTs", "alarm.start_ts"),
        ("endTs", "alarm.end_ts"),
        ("ackTs", "alarm.ack_ts"),
        ("clearTs", "alarm.clear_ts"),
        ("assignTs", "alarm.assign_ts"),
        ("type", "alarm.search"),
        ("name", "alarm.search"),
        ("severity", "alarm.severity"),
        ("status", STATUS),
        ("originator", ORIGINATOR_NAME),
        ("originatorName", ORIGINATOR_NAME),
        ("originatorLabel", ORIGINATOR_LABEL),
        ("originatorType", "alarm.originator_type"),
        ("assignee", ASSIGNEE),
    ],
};

/// A text search in type, severity and status.
pub(super) fn containing(query: SqlQuery, pattern: &str) -> SqlQuery {
    list::own_text(query.push("("), pattern)
        .push(" OR LOWER(alarm.severity) LIKE ")
        .bind(pattern)
        .push(" ESCAPE '\\' OR ")
        .push(STATUS)
        .push(" LIKE ")
        .bind(pattern)
        .push(" ESCAPE '\\')")
}

/// Refuses queries that name more than they may.
pub(super) fn check(query: &AlarmQuery) -> StoreResult<()> {
    let entities = match &query.scope {
        AlarmScope::AffectingAny(entities) | AlarmScope::Originators(entities) => entities.len(),
        _ => 0,
    };
    if entities > MAX_ALARM_ENTITIES || query.types.len() > MAX_ALARM_ENTITIES {
        return Err(record::invalid(format!(
            "A query of alarms must not name more than {MAX_ALARM_ENTITIES} entities or types!"
        )));
    }
    Ok(())
}

/// Appends the conditions of a query.
pub(super) fn matching(mut sql: SqlQuery, tenant: TenantId, query: &AlarmQuery) -> SqlQuery {
    sql = in_scope(
        sql.push(" AND alarm.tenant_id = ").bind(tenant.0),
        tenant,
        &query.scope,
    );
    if let Some(customer) = query.customer {
        sql = sql.push(" AND alarm.customer_id = ").bind(customer.0);
    }
    if let Some(cleared) = query.cleared {
        sql = sql.push(if cleared {
            " AND alarm.cleared"
        } else {
            " AND NOT alarm.cleared"
        });
    }
    if let Some(acknowledged) = query.acknowledged {
        sql = sql.push(if acknowledged {
            " AND alarm.acknowledged"
        } else {
            " AND NOT alarm.acknowledged"
        });
    }
    if !query.severities.is_empty() {
        sql = sql
            .push(" AND alarm.severity IN (")
            .bind_list(query.severities.iter().map(|severity| severity.name()))
            .push(")");
    }
    if !query.types.is_empty() {
        sql = sql
            .push(" AND alarm.type IN (")
            .bind_list(query.types.iter().map(String::as_str))
            .push(")");
    }
    if let Some(assignee) = query.assignee {
        sql = sql.push(" AND alarm.assignee_id = ").bind(assignee.0);
    }
    let (from, to) = match query.time {
        AlarmTime::Created => (" AND alarm.created_time >= ", " AND alarm.created_time <= "),
        AlarmTime::Start => (" AND alarm.start_ts >= ", " AND alarm.start_ts <= "),
    };
    if let Some(time) = query.from {
        sql = sql.push(from).bind(time);
    }
    if let Some(time) = query.to {
        sql = sql.push(to).bind(time);
    }
    sql
}

fn in_scope(sql: SqlQuery, tenant: TenantId, scope: &AlarmScope) -> SqlQuery {
    let affecting = |sql: SqlQuery| {
        sql.push(" AND alarm.id IN (SELECT alarm_id FROM entity_alarm WHERE entity_alarm.tenant_id = ")
            .bind(tenant.0)
    };
    match scope {
        AlarmScope::All => sql,
        AlarmScope::Affecting(entity) => affecting(sql)
            .push(" AND entity_alarm.entity_id = ")
            .bind(entity.id)
            .push(" AND entity_alarm.entity_type = ")
            .bind(type_code(entity.entity_type))
            .push(")"),
        AlarmScope::AffectingType(entity_type) => affecting(sql)
            .push(" AND entity_alarm.entity_type = ")
            .bind(type_code(*entity_type))
            .push(")"),
        AlarmScope::OriginatorType(entity_type) => sql
            .push(" AND alarm.originator_type = ")
            .bind(type_code(*entity_type)),
        AlarmScope::AffectingAny(entities) if !entities.is_empty() => affecting(sql)
            .push(" AND entity_alarm.entity_id IN (")
            .bind_list(entities.iter().map(|entity| entity.id))
            .push("))"),
        AlarmScope::Originators(entities) if !entities.is_empty() => sql
            .push(" AND alarm.originator_id IN (")
            .bind_list(entities.iter().map(|entity| entity.id))
            .push(")"),
        AlarmScope::AffectingAny(_) | AlarmScope::Originators(_) => sql.push(" AND FALSE"),
    }
}
