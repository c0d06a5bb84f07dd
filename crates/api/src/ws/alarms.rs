//! Subscriptions to alarms and counts: queries evaluated now, and again when the result may have changed.

use std::collections::HashSet;

use fieldline_core::ports::{AlarmQuery, AlarmScope, ValueSource};
use fieldline_entities::access::{self, AccessOperation};
use fieldline_model::page::PageData;
use fieldline_model::query::EntityCountQuery;
use fieldline_model::{EntityId, EntityKey};
use rustc_hash::FxHashSet;

use super::active_command::{CommandContext, CommandError, CommandResult};
use super::commands::{AlarmStatusCommand, QueryCommand};
use super::latest::{self, subject_of};
use super::mailbox::PendingValues;
use super::updates;
use crate::alarm_data::{self, AlarmCountQuery, AlarmData, AlarmDataQuery};
use crate::error::ApiError;

/// The query, and the result that the client knows.
enum AlarmWatchKind {
    Entities(EntityCountQuery, u64),
    Page(AlarmDataQuery, PageData<AlarmData>),
    Count(Option<AlarmCountQuery>, u64),
    Status(EntityId, AlarmQuery, bool),
}

/// A query that is evaluated repeatedly.
pub(super) struct AlarmWatch {
    kind: AlarmWatchKind,
    /// Watched entities: those whose values are shown, or the one whose alarm status is requested.
    watched: FxHashSet<EntityKey>,
    /// Bytes of the page.
    held: usize,
}

impl From<AlarmWatchKind> for AlarmWatch {
    fn from(kind: AlarmWatchKind) -> Self {
        Self {
            kind,
            watched: FxHashSet::default(),
            held: 0,
        }
    }
}

impl AlarmWatch {
    /// Starts a count of entities.
    pub(super) async fn entities(
        scope: &mut CommandContext,
        command: QueryCommand<EntityCountQuery>,
    ) -> Result<Self, CommandError> {
        let query = command
            .query
            .ok_or_else(|| CommandError::bad("Query is empty!"))?;
        let count = scope
            .api
            .queries
            .count(&scope.who, &query)
            .await
            .map_err(ApiError::from)?;
        scope.out.push(updates::entity_count(command.cmd_id, count));
        Ok(AlarmWatchKind::Entities(query, count).into())
    }

    /// Starts a page of alarms.
    pub(super) async fn page(
        scope: &mut CommandContext,
        command: QueryCommand<AlarmDataQuery>,
    ) -> Result<Self, CommandError> {
        let query = command
            .query
            .ok_or_else(|| CommandError::bad("Query is empty!"))?;
        check_tenant(scope)?;
        let page = alarm_data::find(&scope.api, &scope.who, &query).await?;
        let mut watch = Self::from(AlarmWatchKind::Page(query, page));
        let outcome = watch.follow(scope, command.cmd_id).await;
        if let Err(failed) = outcome {
            watch.end(scope, command.cmd_id);
            return Err(failed);
        }
        if let AlarmWatchKind::Page(_, page) = &watch.kind {
            let text = updates::alarms(command.cmd_id, page, None);
            watch.held = text.len();
            scope.out.push(text);
        }
        Ok(watch)
    }

    /// Starts a count of alarms.
    pub(super) async fn count(
        scope: &mut CommandContext,
        command: QueryCommand<AlarmCountQuery>,
    ) -> Result<Self, CommandError> {
        check_tenant(scope)?;
        let count = count(scope, command.query.as_ref()).await?;
        scope.out.push(updates::alarm_count(command.cmd_id, count));
        Ok(AlarmWatchKind::Count(command.query, count).into())
    }

    /// Starts to report whether an entity has active alarms.
    pub(super) async fn status(
        scope: &mut CommandContext,
        command: AlarmStatusCommand,
    ) -> Result<Self, CommandError> {
        let originator = command
            .originator_id
            .ok_or_else(|| CommandError::bad("Originator id is empty!"))?;
        let query = AlarmQuery {
            scope: AlarmScope::Originators(vec![originator]),
            types: command.type_list,
            severities: command.severity_list,
            cleared: Some(false),
            ..AlarmQuery::default()
        };
        let active = is_active(scope, originator, &query).await?;
        scope.out.push(updates::alarm_status(command.cmd_id, active));
        let mut watch = Self::from(AlarmWatchKind::Status(originator, query, active));
        watch.update_watched(scope, command.cmd_id, [originator].into(), 0);
        Ok(watch)
    }

    /// Whether changed alarms require a refresh.
    pub(super) const fn shows_alarms(&self) -> bool {
        !matches!(self.kind, AlarmWatchKind::Entities(..))
    }

    /// Returns the approximate number of bytes that it keeps.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    pub(super) fn end(&self, scope: &CommandContext, command: i64) {
        for subject in &self.watched {
            scope.api.hub.unwatch(*subject, command, &scope.mailbox);
        }
    }

    /// Stops updates of entities that the caller may no longer see.
    pub(super) fn drop_entities(&mut self, scope: &CommandContext, command: i64, lost: &FxHashSet<EntityId>) {
        let left = self.watched.iter().map(|subject| subject.entity);
        let left: HashSet<EntityId> = left.filter(|entity| !lost.contains(entity)).collect();
        self.update_watched(scope, command, left, 0);
    }

    /// Watches exactly these entities. Returns whether any of them was not watched before.
    fn update_watched(
        &mut self,
        scope: &CommandContext,
        command: i64,
        wanted: HashSet<EntityId>,
        sources: u8,
    ) -> bool {
        let hub = &scope.api.hub;
        self.watched.retain(|subject| {
            let is_wanted = wanted.contains(&subject.entity);
            if !is_wanted {
                hub.unwatch(*subject, command, &scope.mailbox);
            }
            is_wanted
        });
        let before = self.watched.len();
        for entity in wanted {
            let subject = subject_of(scope, entity);
            if self.watched.insert(subject) {
                hub.watch(subject, sources, command, &scope.mailbox);
            }
        }
        self.watched.len() > before
    }

    /// Watches the entities of the page whose values it shows.
    async fn follow(&mut self, scope: &CommandContext, command: i64) -> CommandResult {
        // Subscribe first, then read: no change is missed in between.
        for _ in 0..2 {
            let AlarmWatchKind::Page(query, page) = &self.kind else {
                return Ok(());
            };
            let sources = latest::sources(query.latest_keys());
            if sources == 0 {
                return Ok(());
            }
            // The caller may see an alarm without its entity: it was propagated, or the entity has moved.
            let shown = page.data.iter().filter_map(|alarm| alarm.entity_id);
            let entities = &scope.api.entities;
            let wanted =
                access::filter_permitted(entities, &scope.who, AccessOperation::ReadTelemetry, shown)
                    .await
                    .map_err(|error| CommandError::internal(&error, "Failed to fetch alarms!"))?;
            if !self.update_watched(scope, command, wanted, sources) {
                return Ok(());
            }
            if let AlarmWatchKind::Page(query, page) = &mut self.kind {
                *page = alarm_data::find(&scope.api, &scope.who, query).await?;
            }
        }
        Ok(())
    }

    /// Returns the message about changed values of an entity, if there is one.
    pub(super) fn update(
        &mut self,
        command: i64,
        subject: EntityKey,
        source: ValueSource,
        news: &PendingValues,
    ) -> Option<String> {
        let AlarmWatchKind::Page(query, page) = &mut self.kind else {
            return None;
        };
        let keys = query.latest_keys();
        let mut changed = Vec::new();
        for (place, alarm) in page.data.iter_mut().enumerate() {
            if alarm.entity_id == Some(subject.entity)
                && !latest::merge_changes(&mut alarm.latest, source, news, keys, |_, _| false).is_empty()
            {
                changed.push(place);
            }
        }
        let changed: Vec<&AlarmData> = changed.iter().filter_map(|place| page.data.get(*place)).collect();
        (!changed.is_empty()).then(|| updates::alarms(command, page, Some(&changed)))
    }

    /// Evaluates the query again, and sends what has changed.
    pub(super) async fn refresh(&mut self, scope: &mut CommandContext, id: i64) -> CommandResult {
        match &mut self.kind {
            AlarmWatchKind::Entities(query, known) => {
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
            AlarmWatchKind::Count(query, known) => {
                let now = count(scope, query.as_ref()).await?;
                if std::mem::replace(known, now) != now {
                    scope.out.push(updates::alarm_count(id, now));
                }
            }
            AlarmWatchKind::Status(originator, query, known) => {
                let now = is_active(scope, *originator, query).await?;
                if std::mem::replace(known, now) != now {
                    scope.out.push(updates::alarm_status(id, now));
                }
            }
            AlarmWatchKind::Page(query, known) => {
                let now = alarm_data::find(&scope.api, &scope.who, query).await?;
                let before = std::mem::replace(known, now);
                self.follow(scope, id).await?;
                if let AlarmWatchKind::Page(_, now) = &self.kind
                    && let Some(text) = difference(id, &before, now)
                {
                    self.held = self.held.max(text.len());
                    scope.out.push(text);
                }
            }
        }
        Ok(())
    }
}

/// Refuses callers without a tenant: alarms belong to a tenant.
fn check_tenant(scope: &CommandContext) -> CommandResult {
    if scope.tenant().is_null() {
        return Err(CommandError::unauthorized());
    }
    Ok(())
}

async fn count(scope: &CommandContext, query: Option<&AlarmCountQuery>) -> Result<u64, CommandError> {
    let all = AlarmCountQuery::default();
    Ok(alarm_data::count(&scope.api, &scope.who, query.unwrap_or(&all)).await?)
}

/// Returns whether an entity that the caller may see has active alarms.
async fn is_active(
    scope: &CommandContext,
    originator: EntityId,
    query: &AlarmQuery,
) -> Result<bool, CommandError> {
    let seen = scope
        .api
        .check(&scope.who, originator, AccessOperation::Read)
        .await;
    seen.map_err(ApiError::from)?;
    let found = scope.api.entities.alarms.count(scope.tenant(), query).await;
    let count = found.map_err(|error| CommandError::internal(&error, "Failed to fetch alarms!"))?;
    Ok(count > 0)
}

/// Returns the message to send: only the changed alarms if the page has the same alarms as before, otherwise the page.
fn difference(id: i64, known: &PageData<AlarmData>, now: &PageData<AlarmData>) -> Option<String> {
    if known == now {
        return None;
    }
    let ids = |page: &PageData<AlarmData>| -> Vec<_> {
        page.data.iter().map(|alarm| alarm.info.alarm.id).collect()
    };
    if ids(known) != ids(now) || known.total_elements != now.total_elements {
        return Some(updates::alarms(id, now, None));
    }
    let both = known.data.iter().zip(&now.data);
    let changed: Vec<&AlarmData> = both.filter(|(old, new)| old != new).map(|(_, new)| new).collect();
    Some(updates::alarms(id, now, Some(&changed)))
}
