//! Alarms and counts: what a query finds now, and again when it may have changed.

use fieldline_core::access::Operation;
use fieldline_core::ports::{AlarmQuery, AlarmScope, MAX_ALARM_ENTITIES};
use fieldline_model::page::PageData;
use fieldline_model::query::EntityCountQuery;

use super::commands::{AlarmCountCommand, AlarmDataCommand, AlarmStatusCommand, EntityCountCommand};
use super::session::{Failed, Outcome, Scope};
use super::updates;
use crate::alarm_data::{self, AlarmCountQuery, AlarmData, AlarmDataQuery};
use crate::error::ApiError;

/// What is asked for, and what the client knows.
enum Kind {
    Entities(EntityCountQuery, u64),
    Page(AlarmDataQuery, PageData<AlarmData>),
    Count(Option<AlarmCountQuery>, u64),
    Status(AlarmQuery, bool),
}

/// A query that is evaluated again and again.
pub(super) struct AlarmWatch(Kind);

impl AlarmWatch {
    /// Counts entities.
    pub(super) async fn entities(scope: &mut Scope, command: EntityCountCommand) -> Result<Self, Failed> {
        let query = command.query.ok_or_else(|| Failed::bad("Query is empty!"))?;
        let count = scope
            .api
            .queries
            .count(&scope.who, &query)
            .await
            .map_err(ApiError::from)?;
        scope.out.push(updates::entity_count(command.cmd_id, count));
        Ok(Self(Kind::Entities(query, count)))
    }

    /// Shows a page of alarms.
    pub(super) async fn page(scope: &mut Scope, command: AlarmDataCommand) -> Result<Self, Failed> {
        let query = command.query.ok_or_else(|| Failed::bad("Query is empty!"))?;
        check_tenant(scope)?;
        let page = alarm_data::find(&scope.api, &scope.who, &query).await?;
        scope
            .out
            .push(updates::alarms(command.cmd_id, Some(&page), None, totals(&page)));
        Ok(Self(Kind::Page(query, page)))
    }

    /// Counts alarms.
    pub(super) async fn count(scope: &mut Scope, command: AlarmCountCommand) -> Result<Self, Failed> {
        check_tenant(scope)?;
        let count = count(scope, command.query.as_ref()).await?;
        scope.out.push(updates::alarm_count(command.cmd_id, count));
        Ok(Self(Kind::Count(command.query, count)))
    }

    /// Says whether an entity has alarms.
    pub(super) async fn status(scope: &mut Scope, command: AlarmStatusCommand) -> Result<Self, Failed> {
        let originator = command
            .originator_id
            .ok_or_else(|| Failed::bad("Originator id is empty!"))?;
        scope
            .api
            .check(&scope.who, originator, Operation::Read)
            .await
            .map_err(ApiError::from)?;
        let query = AlarmQuery {
            scope: AlarmScope::Originators(vec![originator]),
            types: command.type_list,
            severities: command.severity_list,
            cleared: Some(false),
            ..AlarmQuery::default()
        };
        let active = is_active(scope, &query).await?;
        scope.out.push(updates::alarm_status(command.cmd_id, active));
        Ok(Self(Kind::Status(query, active)))
    }

    /// Whether a changed alarm is a reason to look again.
    pub(super) const fn shows_alarms(&self) -> bool {
        !matches!(self.0, Kind::Entities(..))
    }

    /// Evaluates the query again, and sends what has changed.
    pub(super) async fn refresh(&mut self, scope: &mut Scope, id: i64) -> Outcome {
        match &mut self.0 {
            Kind::Entities(query, known) => {
                let now = scope
                    .api
                    .queries
                    .count(&scope.who, query)
                    .await
                    .map_err(ApiError::from)?;
                if std::mem::replace(known, now) != now {
                    scope.out.push(updates::entity_count(id, now));
                }
            }
            Kind::Count(query, known) => {
                let now = count(scope, query.as_ref()).await?;
                if std::mem::replace(known, now) != now {
                    scope.out.push(updates::alarm_count(id, now));
                }
            }
            Kind::Status(query, known) => {
                let now = is_active(scope, query).await?;
                if std::mem::replace(known, now) != now {
                    scope.out.push(updates::alarm_status(id, now));
                }
            }
            Kind::Page(query, known) => {
                let now = alarm_data::find(&scope.api, &scope.who, query).await?;
                if let Some(text) = difference(id, known, &now) {
                    scope.out.push(text);
                }
                *known = now;
            }
        }
        Ok(())
    }
}

/// Alarms are a tenant's.
fn check_tenant(scope: &Scope) -> Outcome {
    if scope.tenant().is_null() {
        return Err(Failed::unauthorized());
    }
    Ok(())
}

async fn count(scope: &Scope, query: Option<&AlarmCountQuery>) -> Result<u64, Failed> {
    let all = AlarmCountQuery::default();
    Ok(alarm_data::count(&scope.api, &scope.who, query.unwrap_or(&all)).await?)
}

async fn is_active(scope: &Scope, query: &AlarmQuery) -> Result<bool, Failed> {
    let found = scope.api.entities.alarms.count(scope.tenant(), query).await;
    let count = found.map_err(|error| Failed::internal(&error, "Failed to fetch alarms!"))?;
    Ok(count > 0)
}

fn totals(page: &PageData<AlarmData>) -> (usize, u64) {
    (MAX_ALARM_ENTITIES, page.total_elements)
}

/// What has to be sent: the alarms that have changed where the page has the same ones, else the page.
fn difference(id: i64, known: &PageData<AlarmData>, now: &PageData<AlarmData>) -> Option<String> {
    if known == now {
        return None;
    }
    let ids = |page: &PageData<AlarmData>| -> Vec<_> {
        page.data.iter().map(|alarm| alarm.info.alarm.id).collect()
    };
    if ids(known) != ids(now) || known.total_elements != now.total_elements {
        return Some(updates::alarms(id, Some(now), None, totals(now)));
    }
    let both = known.data.iter().zip(&now.data);
    let changed: Vec<&AlarmData> = both.filter(|(old, new)| old != new).map(|(_, new)| new).collect();
    Some(updates::alarms(id, None, Some(&changed), totals(now)))
}
