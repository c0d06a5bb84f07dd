//! Subscriptions to values of one entity: its series or attributes, and their history.

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::ValueSource;
use fieldline_entities::access::{AccessError, AccessOperation};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::active_command::{CommandContext, CommandError, CommandResult};
use super::commands::SubscriptionCommand;
use super::hub::{ATTRIBUTES, bit};
use super::mailbox::PendingValues;
use super::updates::SubscriptionUpdate;
use crate::telemetry::{PointsQuery, SeriesSource, TimeWindow, read_points};

/// Most series per command.
const MAX_KEYS: usize = 1_000;
/// Memory of a name without its text and value, bytes.
const NAME_COST: usize = 96;

/// A subscription to series or attributes of an entity.
pub(super) struct ValueWatch {
    /// The requested entity.
    pub(super) entity: EntityId,
    /// The entity whose values are shown: the requested one, or the one that an entity view shows.
    subject: EntityKey,
    /// The names; `None` for all.
    names: Option<Vec<String>>,
    /// Only points in this range are sent.
    window: TimeWindow,
    /// Timestamps of the latest values, if only these were requested.
    newest: Option<FxHashMap<String, i64>>,
    /// The newest values of the first message, which the hub may deliver again if they were stored meanwhile.
    initial_values: FxHashMap<String, (i64, String)>,
    held: usize,
}

/// Returns the entity, if the caller may perform the operation on it.
pub(super) async fn entity(
    scope: &CommandContext,
    watch: &SubscriptionCommand,
    operation: AccessOperation,
) -> Result<AnyEntity, CommandError> {
    if watch.entity_id.is_empty() {
        return Err(CommandError::bad("Device id is empty!"));
    }
    let kind = watch
        .entity_type
        .parse()
        .map_err(|_| CommandError::bad(format!("Invalid entity type: {}", watch.entity_type)))?;
    let id: Uuid = watch
        .entity_id
        .parse()
        .map_err(|_| CommandError::bad(format!("Invalid UUID string: {}", watch.entity_id)))?;
    let found = scope
        .api
        .check(&scope.who, EntityId::new(kind, id), operation)
        .await;
    found.map_err(|error| match error {
        AccessError::NotFound(_) | AccessError::Denied => CommandError::unauthorized(),
        AccessError::Store(error) => CommandError::internal(&error, "Failed to fetch data!"),
    })
}

fn names(watch: &SubscriptionCommand) -> Result<Option<Vec<String>>, CommandError> {
    let names = watch.names();
    if names.as_ref().is_some_and(|names| names.len() > MAX_KEYS) {
        return Err(CommandError::bad(format!(
            "A command must not name more than {MAX_KEYS} keys!"
        )));
    }
    Ok(names)
}

impl ValueWatch {
    /// Sends attributes, and subscribes to them.
    pub(super) async fn attributes(
        scope: &mut CommandContext,
        watch: SubscriptionCommand,
    ) -> Result<Self, CommandError> {
        let subject = entity(scope, &watch, AccessOperation::ReadAttributes)
            .await?
            .subject();
        let scopes = match watch.scope.as_str() {
            "" | "ANY_SCOPE" => AttributeScope::ALL.to_vec(),
            name => vec![
                AttributeScope::from_name(name)
                    .ok_or_else(|| CommandError::bad(format!("Invalid attribute scope: {name}")))?,
            ],
        };
        let names = names(&watch)?;
        let bits = scopes
            .iter()
            .fold(0, |bits, one| bits | bit(ValueSource::Attribute(*one)))
            & ATTRIBUTES;
        // Subscribe first, then read: no change is missed in between.
        scope.api.hub.watch(subject, bits, watch.cmd_id, &scope.mailbox);
        let mut update = SubscriptionUpdate::new(watch.cmd_id);
        for one in scopes {
            let found = scope.api.attributes.get(subject, one, names.as_deref()).await;
            let found = found.map_err(|error| {
                scope.api.hub.unwatch(subject, watch.cmd_id, &scope.mailbox);
                CommandError::internal(&error, "Failed to fetch attributes!")
            })?;
            for attribute in found {
                update.add(
                    &attribute.key,
                    attribute.last_update_ts,
                    attribute.value.to_text(),
                );
            }
        }
        scope.out.push(update.text());
        Ok(Self {
            entity: subject.entity,
            subject,
            names,
            window: TimeWindow::ALL,
            newest: None,
            initial_values: update.newest(),
            held: 0,
        }
        .with_size())
    }

    /// Sends points or latest values of series, and subscribes to them.
    pub(super) async fn series(
        scope: &mut CommandContext,
        watch: SubscriptionCommand,
    ) -> Result<Self, CommandError> {
        let entity = entity(scope, &watch, AccessOperation::ReadTelemetry).await?;
        let source = SeriesSource::of(&entity);
        let asked = names(&watch)?;
        let shown = match &asked {
            Some(names) => Some(source.shown(names)),
            None => source.all().map(<[String]>::to_vec),
        };
        let (own, subject) = (entity.subject(), source.subject);
        let command = watch.cmd_id;
        scope
            .api
            .hub
            .watch(subject, bit(ValueSource::Latest), command, &scope.mailbox);
        let mut started = Self {
            entity: own.entity,
            subject,
            names: shown,
            window: source.window,
            newest: None,
            initial_values: FxHashMap::default(),
            held: 0,
        };
        if own != subject {
            // The view is watched for changes of itself, not for values.
            scope.api.hub.watch(own, 0, command, &scope.mailbox);
        }
        let update = first(scope, &watch, &source, started.names.as_deref())
            .await
            .inspect_err(|_| started.end(scope, command))?;
        started.newest = (watch.scope == "LATEST_TELEMETRY").then(|| update.times());
        started.initial_values = update.newest();
        scope.out.push(update.text());
        Ok(started.with_size())
    }

    /// Returns the approximate bytes of the names and of the first message.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    fn with_size(mut self) -> Self {
        let first = self.initial_values.iter();
        let first = first.map(|(name, (_, text))| NAME_COST + name.len() + text.len());
        let names = self.names.iter().flatten();
        let names = names.map(|name| NAME_COST + name.len());
        self.held = first.sum::<usize>() + names.sum::<usize>();
        self
    }

    pub(super) fn end(&self, scope: &CommandContext, command: i64) {
        let own = EntityKey {
            entity: self.entity,
            ..self.subject
        };
        for subject in [self.subject, own] {
            scope.api.hub.unwatch(subject, command, &scope.mailbox);
        }
    }

    /// Returns the message about a change, if there is one.
    pub(super) fn update(
        &mut self,
        command: i64,
        source: ValueSource,
        news: &PendingValues,
    ) -> Option<String> {
        let mut update = SubscriptionUpdate::new(command);
        let is_asked = |name: &str| {
            self.names
                .as_ref()
                .is_none_or(|names| names.iter().any(|one| one == name))
        };
        if news.all_deleted {
            for name in self.names.iter().flatten() {
                update.add(name, 0, String::new());
            }
        }
        for (name, (ts, value)) in news.values.iter().filter(|(name, _)| is_asked(name)) {
            let Some(value) = value else {
                update.add(name, 0, String::new());
                continue;
            };
            if source == ValueSource::Latest {
                if !self.window.contains(*ts) {
                    continue;
                }
                if let Some(newest) = &mut self.newest {
                    if newest.get(name).is_some_and(|newest| ts < newest) {
                        continue;
                    }
                    newest.insert(name.clone(), *ts);
                }
            }
            let text = value.to_text();
            let is_known = self
                .initial_values
                .get(name)
                .is_some_and(|(at, first)| at == ts && *first == text);
            if !is_known {
                update.add(name, *ts, text);
            }
        }
        (!update.is_empty()).then(|| update.text())
    }
}

/// Reads the first message: points of a window, or latest values.
async fn first(
    scope: &CommandContext,
    watch: &SubscriptionCommand,
    source: &SeriesSource,
    names: Option<&[String]>,
) -> Result<SubscriptionUpdate, CommandError> {
    let mut update = SubscriptionUpdate::new(watch.cmd_id);
    if watch.time_window > 0
        && let Some(names) = names
    {
        let window = TimeWindow::of_length(watch.start_ts, watch.time_window);
        add_points(scope, watch, source, names, window, &mut update).await?;
        return Ok(update);
    }
    let latest = scope.api.series.latest(source.subject, names).await;
    let latest = latest.map_err(|error| CommandError::internal(&error, "Failed to fetch data!"))?;
    for value in latest {
        if source.window.contains(value.point.ts) {
            update.add(&value.key, value.point.ts, value.point.value.to_text());
        }
    }
    Ok(update)
}

async fn add_points(
    scope: &CommandContext,
    watch: &SubscriptionCommand,
    source: &SeriesSource,
    names: &[String],
    window: TimeWindow,
    update: &mut SubscriptionUpdate,
) -> CommandResult {
    let TimeWindow { start, end } = window.within(source.window);
    let query = PointsQuery {
        start,
        end,
        agg: watch.agg.as_deref(),
        interval: watch.interval,
        limit: watch.limit,
        ..PointsQuery::default()
    };
    let mut reading = scope.reading();
    for name in names {
        let store = scope.api.series.as_ref();
        let found = read_points(&mut reading, store, source.subject, name, query).await?;
        for point in found {
            update.add(name, point.ts, point.value.to_text());
        }
    }
    Ok(())
}

/// Sends points of series once.
pub(super) async fn history(scope: &mut CommandContext, watch: SubscriptionCommand) -> CommandResult {
    if watch.keys.is_empty() {
        return Err(CommandError::bad("Keys are empty!"));
    }
    let entity = entity(scope, &watch, AccessOperation::ReadTelemetry).await?;
    let source = SeriesSource::of(&entity);
    let names = source.shown(&names(&watch)?.unwrap_or_default());
    let mut update = SubscriptionUpdate::new(watch.cmd_id);
    let window = TimeWindow::new(watch.start_ts, watch.end_ts);
    add_points(scope, &watch, &source, &names, window, &mut update).await?;
    scope.out.push(update.text());
    Ok(())
}
