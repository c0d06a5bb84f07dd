//! Subscriptions to the entities of a query and their values.

use std::collections::BTreeMap;

use fieldline_core::ports::ValueSource;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::Authority;
use fieldline_model::page::PageData;
use fieldline_model::query::{EntityData, EntityDataQuery, EntityQueryKey, KeyType, TsValue};
use fieldline_model::timeseries::DataPoint;
use fieldline_model::{EntityId, EntityKey, EntityType};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::active_command::{CommandContext, CommandError, CommandResult};
use super::aggregated::AggregatedUntil;
use super::commands::{AggregateCommand, EntityDataCommand, PointsCommand};
use super::hub::bit;
use super::latest::{self, subject_of};
use super::mailbox::PendingValues;
use super::updates::{self, EntityUpdate};
use crate::error::ApiError;
use crate::telemetry::{PointsQuery, SeriesSource, TimeWindow, read_points, read_value};

/// Most entities per command.
pub(super) const MAX_ENTITIES: usize = 10_000;
/// Most series that a command reads.
const MAX_SERIES: usize = 50_000;
/// Memory of an entity without its values, bytes.
const ENTITY_COST: usize = 256;
/// How far before a window the previous point is searched, milliseconds.
const PREVIOUS_MS: i64 = 365 * 86_400_000;

/// Series whose points are sent as they arrive.
#[derive(Default)]
struct FollowedSeries {
    /// Sent as `timeseries` of the entity.
    points: FxHashSet<String>,
    /// Sent as latest values, even if the query does not show them as such.
    latest: FxHashSet<String>,
}

/// Values that a command has read of an entity.
#[derive(Default, Clone)]
struct ReadValues {
    points: BTreeMap<String, Vec<TsValue>>,
    aggregates: BTreeMap<i64, Value>,
}

/// A subscription to entities; see the module.
pub(super) struct EntityWatch {
    command: i64,
    query: EntityDataQuery,
    page: PageData<EntityData>,
    positions: FxHashMap<EntityId, usize>,
    /// Keys whose changes are sent.
    keys: Vec<EntityQueryKey>,
    followed: FollowedSeries,
    /// The newest points read, which the hub may deliver again if they were stored meanwhile.
    newest_read: FxHashMap<(EntityId, String), TsValue>,
    /// What the aggregated values sent are made of.
    aggregated: AggregatedUntil,
    /// Entities that are watched.
    watched: FxHashSet<EntityKey>,
    is_sent: bool,
}

impl EntityWatch {
    /// Finds the entities, sends the requested values and subscribes to them.
    pub(super) async fn start(
        scope: &mut CommandContext,
        mut command: EntityDataCommand,
    ) -> Result<Self, CommandError> {
        let query = command
            .query
            .take()
            .ok_or_else(|| CommandError::bad("Query is empty!"))?;
        let mut watch = Self {
            command: command.cmd_id,
            query,
            page: PageData {
                data: Vec::new(),
                total_pages: 0,
                total_elements: 0,
                has_next: false,
            },
            positions: FxHashMap::default(),
            keys: Vec::new(),
            followed: FollowedSeries::default(),
            newest_read: FxHashMap::default(),
            aggregated: AggregatedUntil::default(),
            watched: FxHashSet::default(),
            is_sent: false,
        };
        let outcome = watch.apply(scope, command, true).await;
        if outcome.is_err() {
            watch.end(scope, watch.command);
        }
        outcome.map(|()| watch)
    }

    /// Replaces the requested values.
    pub(super) async fn change(
        &mut self,
        scope: &mut CommandContext,
        mut command: EntityDataCommand,
    ) -> CommandResult {
        if command.asks_for_values() {
            self.end(scope, self.command);
            scope.mailbox.discard_command(self.command);
            self.watched.clear();
            self.newest_read.clear();
            self.aggregated = AggregatedUntil::default();
            self.keys.clear();
            self.followed = FollowedSeries::default();
        }
        let query = command.query.take();
        let is_new = query.is_some();
        if let Some(query) = query {
            self.query = query;
            self.is_sent = false;
        }
        self.apply(scope, command, is_new).await
    }

    pub(super) fn end(&self, scope: &CommandContext, command: i64) {
        for subject in &self.watched {
            scope.api.hub.unwatch(*subject, command, &scope.mailbox);
        }
    }

    async fn apply(
        &mut self,
        scope: &mut CommandContext,
        command: EntityDataCommand,
        is_new: bool,
    ) -> CommandResult {
        if let Some(latest) = &command.latest_cmd {
            for key in &latest.keys {
                if key.key_type != KeyType::EntityField && !self.query.latest_values.contains(key) {
                    self.query.latest_values.push(key.clone());
                }
            }
            self.keys.clone_from(&latest.keys);
        }
        if let Some(points) = &command.ts_cmd {
            self.followed.points = points.keys.iter().cloned().collect();
        }
        if let Some(values) = &command.agg_ts_cmd {
            self.followed.latest = values.keys.iter().map(|key| key.key.clone()).collect();
        }
        if is_new || command.latest_cmd.is_some() {
            if !self.keys.is_empty() {
                // Subscribe first, then read: no change is missed in between.
                let page = self.find_without_values(scope).await?;
                self.show(page);
                self.update_watched(scope, self.sources()).await;
            }
            let page = self.find(scope).await?;
            self.show(page);
        }
        self.follow(scope).await?;
        self.read(scope, &command).await?;
        if !self.is_sent {
            self.send_page(scope);
        } else if command.latest_cmd.is_some() {
            let shown = |data: &EntityData| EntityUpdate {
                entity_id: data.entity_id,
                latest: Some(data.latest.clone()),
                timeseries: None,
                agg_latest: None,
            };
            let all: Vec<EntityUpdate> = self.page.data.iter().map(shown).collect();
            scope
                .out
                .push(updates::entity_changes(self.command, &all, MAX_ENTITIES));
        }
        Ok(())
    }

    /// Finds the entities with the requested values.
    async fn find(&self, scope: &CommandContext) -> Result<PageData<EntityData>, CommandError> {
        self.find_by(scope, self.query.clone()).await
    }

    /// Finds the same entities at a part of the cost.
    async fn find_without_values(
        &self,
        scope: &CommandContext,
    ) -> Result<PageData<EntityData>, CommandError> {
        let query = EntityDataQuery {
            entity_fields: Vec::new(),
            latest_values: Vec::new(),
            ..self.query.clone()
        };
        self.find_by(scope, query).await
    }

    async fn find_by(
        &self,
        scope: &CommandContext,
        mut query: EntityDataQuery,
    ) -> Result<PageData<EntityData>, CommandError> {
        query.page_link.page_size = query.page_link.page_size.min(MAX_ENTITIES as i64);
        let found = scope.api.queries.find(&scope.who, &query).await;
        Ok(found.map_err(ApiError::from)?)
    }

    fn show(&mut self, page: PageData<EntityData>) {
        self.page = page;
        let places = self.page.data.iter().enumerate();
        self.positions = places.map(|(place, data)| (data.entity_id, place)).collect();
    }

    /// Watches the entities of the page.
    async fn follow(&mut self, scope: &CommandContext) -> CommandResult {
        let sources = self.sources();
        if sources != 0 && self.update_watched(scope, sources).await && !self.keys.is_empty() {
            // Some are there since it was looked who they are.
            let page = self.find(scope).await?;
            self.show(page);
            self.update_watched(scope, sources).await;
        }
        Ok(())
    }

    /// The bits of the sources whose changes are followed.
    fn sources(&self) -> u8 {
        let has_points = !self.followed.points.is_empty() || !self.followed.latest.is_empty();
        latest::sources(&self.keys) | (u8::from(has_points) * bit(ValueSource::Latest))
    }

    /// Watches the entities of the page. Returns whether any of them was not watched before.
    async fn update_watched(&mut self, scope: &CommandContext, sources: u8) -> bool {
        let mut is_any_new = false;
        for data in &self.page.data {
            let subject = subject_of(scope, data.entity_id);
            if !self.watched.contains(&subject) && may_read(scope, data.entity_id).await {
                scope
                    .api
                    .hub
                    .watch(subject, sources, self.command, &scope.mailbox);
                self.watched.insert(subject);
                is_any_new = true;
            }
        }
        // Entities that are no longer found are no longer watched.
        let gone: Vec<EntityKey> = self
            .watched
            .iter()
            .copied()
            .filter(|subject| !self.positions.contains_key(&subject.entity))
            .collect();
        for subject in gone {
            scope.api.hub.unwatch(subject, self.command, &scope.mailbox);
            self.watched.remove(&subject);
        }
        is_any_new
    }

    /// Stops updates of entities that the caller may no longer see.
    pub(super) fn drop_entities(&mut self, scope: &CommandContext, lost: &FxHashSet<EntityId>) {
        let command = self.command;
        self.watched.retain(|subject| {
            let is_lost = lost.contains(&subject.entity);
            if is_lost {
                scope.api.hub.unwatch(*subject, command, &scope.mailbox);
            }
            !is_lost
        });
        self.positions.retain(|entity, _| !lost.contains(entity));
    }

    /// Returns the approximate number of bytes that it keeps.
    pub(super) fn held(&self) -> usize {
        let entities = self.page.data.iter();
        let entities: usize = entities
            .map(|data| ENTITY_COST + latest::cost(&data.latest))
            .sum();
        let read = self
            .newest_read
            .iter()
            .map(|((_, name), value)| ENTITY_COST + name.len() + value.value.len());
        entities + read.sum::<usize>() + self.aggregated.held()
    }

    fn send_page(&mut self, scope: &mut CommandContext) {
        scope
            .out
            .push(updates::entity_page(self.command, &self.page, MAX_ENTITIES));
        self.is_sent = true;
    }

    /// Reads points and aggregated values, and sends them: the first ones with the first page, the others as updates
    /// of it. Aggregates that the client continues end with the newest point that is stored now: later ones arrive as
    /// values, so that none counts twice.
    async fn read(&mut self, scope: &mut CommandContext, command: &EntityDataCommand) -> CommandResult {
        self.aggregated = self.newest(scope, &command.followed_aggregates()).await?;
        // The page shows the newest values that its aggregates contain.
        let unsent = if self.is_sent {
            &mut [][..]
        } else {
            &mut self.page.data
        };
        for data in unsent {
            for name in &self.followed.latest {
                if let Some(newest) = self.aggregated.newest(data.entity_id, name) {
                    let shown = data.latest.entry(KeyType::TimeSeries).or_default();
                    shown.insert(name.clone(), newest.clone());
                }
            }
        }
        if let Some(values) = &command.agg_history_cmd {
            let window = TimeWindow::new(values.start_ts, values.end_ts);
            let answer = self.aggregate(scope, values, window).await?;
            self.send_read(scope, answer);
        }
        if let Some(values) = &command.agg_ts_cmd {
            let window = TimeWindow::of_length(values.start_ts, values.time_window);
            let answer = self.aggregate(scope, values, window).await?;
            self.send_read(scope, answer);
        }
        if let Some(points) = &command.history_cmd {
            let window = TimeWindow::new(points.start_ts, points.end_ts);
            let answer = self.points(scope, points, window, false).await?;
            self.send_read(scope, answer);
        }
        if let Some(points) = &command.ts_cmd {
            let window = TimeWindow::of_length(points.start_ts, points.time_window);
            let answer = self.points(scope, points, window, true).await?;
            self.send_read(scope, answer);
        }
        self.aggregated.end_read();
        Ok(())
    }

    /// Returns the newest points of series of the page's entities.
    async fn newest(
        &self,
        scope: &CommandContext,
        names: &[String],
    ) -> Result<AggregatedUntil, CommandError> {
        check_series(self.page.data.len(), names.len())?;
        let store = scope.api.series.as_ref();
        let mut reading = scope.reading();
        let mut newest = AggregatedUntil::default();
        let now_ms = scope.api.clock.now_ms();
        for data in self.page.data.iter().filter(|_| !names.is_empty()) {
            let Some(source) = source_of(scope, data.entity_id).await else {
                continue;
            };
            for name in names {
                if source.shown(std::slice::from_ref(name)).is_empty() {
                    continue;
                }
                let (subject, window) = (source.subject, source.window);
                let found = read_value(&mut reading, store, subject, name, None, window, i64::MAX).await?;
                newest.insert(data.entity_id, name, found.map(|point| shown(&point)), now_ms);
            }
        }
        Ok(newest)
    }

    async fn points(
        &mut self,
        scope: &CommandContext,
        command: &PointsCommand,
        window: TimeWindow,
        is_followed: bool,
    ) -> Result<Vec<ReadValues>, CommandError> {
        check_series(self.page.data.len(), command.keys.len())?;
        let query = PointsQuery {
            start: window.start,
            end: window.end,
            agg: command.agg.as_deref(),
            interval: command.interval,
            interval_type: command.interval_type.as_deref(),
            zone: command.time_zone_id.as_deref(),
            limit: command.limit,
            until: i64::MAX,
        };
        let store = scope.api.series.clone();
        let mut reading = scope.reading();
        let mut answer = Vec::with_capacity(self.page.data.len());
        for data in &self.page.data {
            let source = source_of(scope, data.entity_id).await;
            let mut values = ReadValues::default();
            for key in &command.keys {
                let mut found: Vec<DataPoint> = Vec::new();
                if let Some(source) = source
                    .as_ref()
                    .filter(|source| !source.shown(std::slice::from_ref(key)).is_empty())
                {
                    let TimeWindow { start, end } = window.within(source.window);
                    let until = self.aggregated.until(data.entity_id, key);
                    let within = PointsQuery {
                        start,
                        end,
                        until,
                        ..query
                    };
                    found = read_points(&mut reading, store.as_ref(), source.subject, key, within).await?;
                    if command.fetch_latest_previous_point {
                        let earliest = window.start.saturating_sub(PREVIOUS_MS);
                        let before = TimeWindow::new(earliest.max(source.window.start), window.start);
                        let (store, subject) = (store.as_ref(), source.subject);
                        found.extend(
                            read_value(&mut reading, store, subject, key, None, before, i64::MAX).await?,
                        );
                    }
                }
                let newest = found.iter().max_by_key(|point| point.ts).map(shown);
                if let Some(newest) = newest.filter(|newest| newest.value.len() <= updates::MAX_REMEMBERED)
                    && is_followed
                {
                    self.newest_read.insert((data.entity_id, key.clone()), newest);
                }
                let shown = found.into_iter().map(|point| shown(&point)).collect();
                values.points.insert(key.clone(), shown);
            }
            answer.push(values);
        }
        Ok(answer)
    }

    async fn aggregate(
        &self,
        scope: &CommandContext,
        command: &AggregateCommand,
        window: TimeWindow,
    ) -> Result<Vec<ReadValues>, CommandError> {
        check_series(self.page.data.len(), command.keys.len())?;
        let store = scope.api.series.clone();
        let mut reading = scope.reading();
        let mut answer = vec![ReadValues::default(); self.page.data.len()];
        for (data, values) in self.page.data.iter().zip(&mut answer) {
            let Some(source) = source_of(scope, data.entity_id).await else {
                continue;
            };
            for key in &command.keys {
                if source.shown(std::slice::from_ref(&key.key)).is_empty() {
                    continue;
                }
                let subject = source.subject;
                let mut value = async |window: TimeWindow| {
                    let within = window.within(source.window);
                    let (store, agg) = (store.as_ref(), key.agg.as_deref());
                    let until = self.aggregated.until(data.entity_id, &key.key);
                    let point =
                        read_value(&mut reading, store, subject, &key.key, agg, within, until).await?;
                    Ok::<_, CommandError>(point.map_or_else(TsValue::default, |point| shown(&point)))
                };
                let mut compared = serde_json::Map::new();
                if key.previous_value_only != Some(true) {
                    compared.insert("current".to_owned(), json!(value(window).await?));
                }
                if let (Some(start), Some(end)) = (key.previous_start_ts, key.previous_end_ts) {
                    compared.insert(
                        "previous".to_owned(),
                        json!(value(TimeWindow::new(start, end)).await?),
                    );
                }
                values.aggregates.insert(key.id, Value::Object(compared));
            }
        }
        Ok(answer)
    }

    /// Sends values that were read, an element per entity of the page.
    fn send_read(&mut self, scope: &mut CommandContext, answer: Vec<ReadValues>) {
        if self.is_sent {
            let shown = |(data, values): (&EntityData, ReadValues)| EntityUpdate {
                entity_id: data.entity_id,
                latest: None,
                timeseries: Some(values.points),
                agg_latest: Some(values.aggregates),
            };
            let all: Vec<EntityUpdate> = self.page.data.iter().zip(answer).map(shown).collect();
            scope
                .out
                .push(updates::entity_changes(self.command, &all, MAX_ENTITIES));
            return;
        }
        for (data, values) in self.page.data.iter_mut().zip(answer) {
            data.timeseries = values.points;
            data.agg_latest = values.aggregates;
        }
        self.send_page(scope);
        for data in &mut self.page.data {
            data.timeseries.clear();
            data.agg_latest.clear();
        }
    }

    /// Returns the update for changed values of an entity, if there is one.
    pub(super) fn update(
        &mut self,
        subject: EntityKey,
        source: ValueSource,
        news: &PendingValues,
    ) -> Option<EntityUpdate> {
        let place = *self.positions.get(&subject.entity)?;
        let data = self.page.data.get_mut(place)?;
        let followed = &self.followed;
        let also =
            |key_type: KeyType, name: &str| key_type == KeyType::TimeSeries && followed.latest.contains(name);
        let latest = latest::merge_changes(&mut data.latest, source, news, &self.keys, also);
        let mut series = BTreeMap::<String, Vec<TsValue>>::new();
        for (name, value) in &news.values {
            let is_point = source == ValueSource::Latest && value.1.is_some();
            if is_point
                && followed.points.contains(name)
                && !self.aggregated.contains(subject.entity, name, value.0)
            {
                let shown = latest::to_ts_value(value);
                let read = self.newest_read.get(&(subject.entity, name.clone()));
                if read != Some(&shown) {
                    series.entry(name.clone()).or_default().push(shown);
                }
            }
        }
        let has_news = !latest.is_empty() || !series.is_empty();
        has_news.then(|| EntityUpdate {
            entity_id: subject.entity,
            latest: (!latest.is_empty()).then_some(latest),
            timeseries: (!series.is_empty()).then_some(series),
            agg_latest: None,
        })
    }

    /// Whether the query is evaluated repeatedly.
    pub(super) const fn is_dynamic(&self) -> bool {
        self.query.page_link.dynamic
    }

    /// Finds the entities again, and sends the page if other ones are found.
    pub(super) async fn refresh(&mut self, scope: &mut CommandContext) -> CommandResult {
        let ids = |page: &PageData<EntityData>| -> Vec<EntityId> {
            page.data.iter().map(|data| data.entity_id).collect()
        };
        let page = self.find(scope).await?;
        // If they are the same, the known values stay: changes arrive through the mailbox.
        if ids(&page) != ids(&self.page) || page.total_elements != self.page.total_elements {
            self.show(page);
            self.follow(scope).await?;
            self.send_page(scope);
        }
        Ok(())
    }
}

fn check_series(entities: usize, keys: usize) -> CommandResult {
    if entities.saturating_mul(keys) > MAX_SERIES {
        return Err(CommandError::bad(format!(
            "A command must not read more than {MAX_SERIES} series!"
        )));
    }
    Ok(())
}

fn shown(point: &DataPoint) -> TsValue {
    TsValue {
        ts: point.ts,
        value: point.value.to_text(),
    }
}

/// Returns whether the caller may read values of a found entity. Customer users also find entities that they can see
/// only in part.
async fn may_read(scope: &CommandContext, entity: EntityId) -> bool {
    let in_part = !matches!(
        entity.entity_type,
        EntityType::Device | EntityType::Asset | EntityType::EntityView | EntityType::Customer
    );
    if scope.who.authority != Authority::CustomerUser || !in_part {
        return true;
    }
    scope
        .api
        .check(&scope.who, entity, AccessOperation::ReadTelemetry)
        .await
        .is_ok()
}

/// Returns the source of an entity's series, if the caller may read them.
async fn source_of(scope: &CommandContext, entity: EntityId) -> Option<SeriesSource> {
    if entity.entity_type != EntityType::EntityView {
        let subject = subject_of(scope, entity);
        return may_read(scope, entity).await.then(|| SeriesSource::own(subject));
    }
    let found = scope
        .api
        .check(&scope.who, entity, AccessOperation::ReadTelemetry)
        .await
        .ok()?;
    Some(SeriesSource::of(&found))
}
