//! Pages of alarms in the order of their entities, which who asks has sorted by what this database does not know.

use fieldline_core::ports::{AlarmQuery, AlarmScope, StoreResult};
use fieldline_model::entity::Alarm;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, TenantId};

use super::alarm_changes::read_all;
use super::alarm_rows::{self, alarm_columns};
use super::database::EntityDatabase;
use super::list;
use super::query::SqlQuery;
use super::record;

/// The entities in whose order a query wants its alarms, if it does.
pub(super) fn entities(query: &AlarmQuery) -> Option<&[EntityId]> {
    match &query.scope {
        AlarmScope::Originators(entities) | AlarmScope::AffectingAny(entities) if query.by_entity => {
            Some(entities)
        }
        _ => None,
    }
}

/// A page of the alarms of these entities, the newest of each first.
pub(super) async fn page(
    database: &EntityDatabase,
    tenant: TenantId,
    query: &AlarmQuery,
    entities: &[EntityId],
    link: &PageLink,
) -> StoreResult<PageData<Alarm>> {
    let pattern = list::pattern(link.text_search.as_deref())?;
    let searched = |sql: SqlQuery| match &pattern {
        Some(pattern) => alarm_rows::containing(sql.push(" AND "), pattern),
        None => sql,
    };
    let counted = SqlQuery::new("SELECT COUNT(*) FROM alarm WHERE TRUE");
    let counted = searched(alarm_rows::matching(counted, tenant, query));
    let total = record::number(&database.read(counted).await?)?;
    if link.offset() >= total {
        return Ok(PageData::new(Vec::new(), total, link));
    }
    let select = SqlQuery::new(concat!("SELECT ", alarm_columns!(), " FROM alarm JOIN (SELECT "));
    let joined = if matches!(query.scope, AlarmScope::AffectingAny(_)) {
        // An alarm that shows at several of them stands where the first one does.
        named(
            select.push("entity_alarm.alarm_id AS id, MIN(named.column2) AS place"),
            entities,
        )
        .push(" JOIN entity_alarm ON entity_alarm.entity_id = named.column1 AND entity_alarm.tenant_id = ")
        .bind(tenant.0)
        .push(" GROUP BY entity_alarm.alarm_id) AS shown ON shown.id = alarm.id")
    } else {
        named(
            select.push("named.column1 AS id, named.column2 AS place"),
            entities,
        )
        .push(") AS shown ON shown.id = alarm.originator_id")
    };
    let narrowed = AlarmQuery {
        scope: AlarmScope::All,
        ..query.clone()
    };
    let matching = alarm_rows::matching(joined.push(" WHERE TRUE"), tenant, &narrowed);
    let rows = searched(matching)
        .push(" ORDER BY shown.place, alarm.created_time DESC, alarm.id DESC LIMIT ")
        .bind(i64::from(link.page_size.max(1)))
        .push(" OFFSET ")
        .bind(i64::try_from(link.offset()).unwrap_or(i64::MAX));
    let alarms = read_all(&database.read(rows).await?)?;
    Ok(PageData::new(alarms, total, link))
}

/// Appends the entities with their places, in columns that both databases give the same names.
fn named(select: SqlQuery, entities: &[EntityId]) -> SqlQuery {
    let mut query = select.push(" FROM (VALUES ");
    for (place, entity) in (0i64..).zip(entities) {
        query = query
            .push(if place == 0 { "(" } else { ", (" })
            .bind(entity.id)
            .push(", ")
            .bind(place)
            .push(")");
    }
    query.push(") AS named")
}
