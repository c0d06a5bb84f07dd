//! Entities of a query with their values, as they change.

use std::collections::BTreeMap;

use fieldline_core::access::Operation;
use fieldline_core::ports::ValueSource;
use fieldline_model::entity::Authority;
use fieldline_model::page::PageData;
use fieldline_model::query::{EntityData, EntityDataQuery, EntityKey, KeyType, TsValue};
use fieldline_model::timeseries::{AttributeScope, Point};
use fieldline_model::{EntityId, EntityType, Subject};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::commands::{AggregateCommand, EntityDataCommand, PointsCommand};
use super::hub::{ATTRIBUTES, bit};
use super::mailbox::{NewValue, News};
use super::session::{Failed, Outcome, Scope};
use super::updates::{self, EntityUpdate};
use super::values::failed;
use crate::error::ApiError;
use crate::telemetry::{PointsQuery, Source, one, points};

/// Most entities that a command follows.
pub(super) const MAX_ENTITIES: usize = 10_000;
/// Most series of entities that a command reads.
const MAX_SERIES: usize = 50_000;
/// Most points that a command reads.
const MAX_POINTS: usize = 500_000;
/// How far back the point before a window is looked for, milliseconds.
const PREVIOUS_MS: i64 = 365 * 86_400_000;

/// Series whose points are sent as they come.
#[derive(Default)]
struct Followed {
    /// Each as `timeseries` of its entity.
    points: FxHashSet<String>,
    /// Each as a latest value, though it is not shown as one.
    latest: FxHashSet<String>,
}

/// See the module.
pub(super) struct EntityWatch {
    command: i64,
    query: EntityDataQuery,
    page: PageData<EntityData>,
    places: FxHashMap<EntityId, usize>,
    /// Keys whose changes are sent.
    keys: Vec<EntityKey>,
    followed: Followed,
    /// Entities that are watched.
    watched: FxHashSet<Subject>,
    is_sent: bool,
}

impl EntityWatch {
    /// Finds entities, and sends and follows what is asked for of them.
    pub(super) async fn start(scope: &mut Scope, mut command: EntityDataCommand) -> Result<Self, Failed> {
        let query = command
            .query
            .take()
            .ok_or_else(|| Failed::bad("Query is empty!"))?;
        let mut watch = Self {
            command: command.cmd_id,
            query,
            page: PageData {
                data: Vec::new(),
                total_pages: 0,
                total_elements: 0,
                has_next: false,
            },
            places: FxHashMap::default(),
            keys: Vec::new(),
            followed: Followed::default(),
            watched: FxHashSet::default(),
            is_sent: false,
        };
        let outcome = watch.apply(scope, command, true).await;
        if outcome.is_err() {
            watch.end(scope, watch.command);
        }
        outcome.map(|()| watch)
    }

    /// Sends and follows something else.
    pub(super) async fn change(&mut self, scope: &mut Scope, mut command: EntityDataCommand) -> Outcome {
        if command.asks_for_values() {
            self.end(scope, self.command);
            self.watched.clear();
            self.keys.clear();
            self.followed = Followed::default();
        }
        let query = command.query.take();
        let is_new = query.is_some();
        if let Some(query) = query {
            self.query = query;
            self.is_sent = false;
        }
        self.apply(scope, command, is_new).await
    }

    pub(super) fn end(&self, scope: &Scope, command: i64) {
        for subject in &self.watched {
            scope.api.hub.unwatch(*subject, command, &scope.mailbox);
        }
    }

    async fn apply(&mut self, scope: &mut Scope, command: EntityDataCommand, is_new: bool) -> Outcome {
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
            self.find(scope).await?;
        }
        let sources = self.sources();
        if sources != 0 {
            self.watch(scope, sources).await;
            if !self.keys.is_empty() {
                // First who watches, then what there is: nothing is missed between the two.
                self.find(scope).await?;
                self.watch(scope, sources).await;
            }
        }
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

    /// Finds the entities and what is shown of them.
    async fn find(&mut self, scope: &Scope) -> Outcome {
        let mut query = self.query.clone();
        query.page_link.page_size = query.page_link.page_size.min(MAX_ENTITIES as i64);
        let found = scope.api.queries.find(&scope.who, &query).await;
        self.page = found.map_err(ApiError::from)?;
        let places = self.page.data.iter().enumerate();
        self.places = places.map(|(place, data)| (data.entity_id, place)).collect();
        Ok(())
    }

    /// Where what is followed is kept, as bits.
    fn sources(&self) -> u8 {
        let latest = bit(ValueSource::Latest);
        let of_points = !self.followed.points.is_empty() || !self.followed.latest.is_empty();
        self.keys
            .iter()
            .fold(if of_points { latest } else { 0 }, |bits, key| {
                bits | match key.key_type {
                    KeyType::TimeSeries => latest,
                    KeyType::Attribute => ATTRIBUTES,
                    KeyType::ClientAttribute => bit(ValueSource::Attribute(AttributeScope::Client)),
                    KeyType::SharedAttribute => bit(ValueSource::Attribute(AttributeScope::Shared)),
                    KeyType::ServerAttribute => bit(ValueSource::Attribute(AttributeScope::Server)),
                    KeyType::EntityField | KeyType::AlarmField => 0,
                }
            })
    }

    async fn watch(&mut self, scope: &Scope, sources: u8) {
        for data in &self.page.data {
            let subject = subject_of(scope, data.entity_id);
            if !self.watched.contains(&subject) && may_read(scope, data.entity_id).await {
                scope
                    .api
                    .hub
                    .watch(subject, sources, self.command, &scope.mailbox);
                self.watched.insert(subject);
            }
        }
        // Those who are no longer found are watched no longer.
        let gone: Vec<Subject> = self
            .watched
            .iter()
            .copied()
            .filter(|subject| !self.places.contains_key(&subject.entity))
            .collect();
        for subject in gone {
            scope.api.hub.unwatch(subject, self.command, &scope.mailbox);
            self.watched.remove(&subject);
        }
    }

    fn send_page(&mut self, scope: &mut Scope) {
        scope
            .out
            .push(updates::entity_page(self.command, &self.page, MAX_ENTITIES));
        self.is_sent = true;
    }

    /// Reads points and aggregated values, and sends them: with the first page, or as changes of it.
    async fn read(&mut self, scope: &mut Scope, command: &EntityDataCommand) -> Outcome {
        if let Some(values) = &command.agg_history_cmd {
            self.aggregate(scope, values, (values.start_ts, values.end_ts))
                .await?;
        }
        if let Some(values) = &command.agg_ts_cmd {
            let end = values.start_ts.saturating_add(values.time_window);
            self.aggregate(scope, values, (values.start_ts, end)).await?;
        }
        if let Some(points) = &command.history_cmd {
            self.points(scope, points, (points.start_ts, points.end_ts))
                .await?;
        }
        if let Some(points) = &command.ts_cmd {
            let end = points.start_ts.saturating_add(points.time_window);
            self.points(scope, points, (points.start_ts, end)).await?;
        }
        Ok(())
    }

    async fn points(
        &mut self,
        scope: &mut Scope,
        command: &PointsCommand,
        (start, end): (i64, i64),
    ) -> Outcome {
        check_series(self.page.data.len(), command.keys.len())?;
        let query = PointsQuery {
            start,
            end,
            agg: command.agg.as_deref(),
            interval: command.interval,
            interval_type: command.interval_type.as_deref(),
            zone: command.time_zone_id.as_deref(),
            limit: command.limit,
        };
        let store = scope.api.series.clone();
        let mut left = MAX_POINTS;
        for data in &mut self.page.data {
            let source = source_of(scope, data.entity_id).await;
            for key in &command.keys {
                let mut found: Vec<Point> = Vec::new();
                if let Some(source) = source
                    .as_ref()
                    .filter(|source| !source.shown(std::slice::from_ref(key)).is_empty())
                {
                    let within = PointsQuery {
                        start: query.start.max(source.window.start),
                        end: query.end.min(source.window.end),
                        ..query
                    };
                    found = points(store.as_ref(), source.subject, key, within)
                        .await
                        .map_err(failed)?;
                    if command.fetch_latest_previous_point {
                        let before = (start.saturating_sub(PREVIOUS_MS).max(source.window.start), start);
                        found.extend(
                            one(store.as_ref(), source.subject, key, None, before)
                                .await
                                .map_err(failed)?,
                        );
                    }
                }
                left = left.checked_sub(found.len()).ok_or_else(|| {
                    Failed::bad(format!("A command must not read more than {MAX_POINTS} points!"))
                })?;
                let shown = found.into_iter().map(|point| shown(&point)).collect();
                data.timeseries.insert(key.clone(), shown);
            }
        }
        self.send_read(scope);
        Ok(())
    }

    async fn aggregate(
        &mut self,
        scope: &mut Scope,
        command: &AggregateCommand,
        window: (i64, i64),
    ) -> Outcome {
        check_series(self.page.data.len(), command.keys.len())?;
        let store = scope.api.series.clone();
        for data in &mut self.page.data {
            let Some(source) = source_of(scope, data.entity_id).await else {
                continue;
            };
            for key in &command.keys {
                let subject = source.subject;
                let value = async |(start, end): (i64, i64)| {
                    let within = (start.max(source.window.start), end.min(source.window.end));
                    let point = one(store.as_ref(), subject, &key.key, key.agg.as_deref(), within).await;
                    point
                        .map_err(failed)
                        .map(|point| point.map_or_else(TsValue::default, |point| shown(&point)))
                };
                let mut compared = serde_json::Map::new();
                if key.previous_value_only != Some(true) {
                    compared.insert("current".to_owned(), json!(value(window).await?));
                }
                if let (Some(start), Some(end)) = (key.previous_start_ts, key.previous_end_ts) {
                    compared.insert("previous".to_owned(), json!(value((start, end)).await?));
                }
                data.agg_latest.insert(key.id, Value::Object(compared));
            }
        }
        self.send_read(scope);
        Ok(())
    }

    /// Sends what was read, which is then forgotten.
    fn send_read(&mut self, scope: &mut Scope) {
        if self.is_sent {
            let shown = |data: &EntityData| EntityUpdate {
                entity_id: data.entity_id,
                latest: None,
                timeseries: Some(data.timeseries.clone()),
                agg_latest: Some(data.agg_latest.clone()),
            };
            let all: Vec<EntityUpdate> = self.page.data.iter().map(shown).collect();
            scope
                .out
                .push(updates::entity_changes(self.command, &all, MAX_ENTITIES));
        } else {
            self.send_page(scope);
        }
        for data in &mut self.page.data {
            data.timeseries.clear();
            data.agg_latest.clear();
        }
    }

    /// What a client is told of changed values of an entity, if anything.
    pub(super) fn update(
        &mut self,
        subject: Subject,
        source: ValueSource,
        news: &News,
    ) -> Option<EntityUpdate> {
        let place = *self.places.get(&subject.entity)?;
        let data = self.page.data.get_mut(place)?;
        let mut latest = BTreeMap::<KeyType, BTreeMap<String, TsValue>>::new();
        let mut series = BTreeMap::<String, Vec<TsValue>>::new();
        let types = key_types(source);
        if news.all_deleted {
            let of_source = self.keys.iter().filter(|key| types.contains(&key.key_type));
            for key in of_source {
                let value = TsValue::default();
                data.latest
                    .entry(key.key_type)
                    .or_default()
                    .insert(key.key.clone(), value.clone());
                latest
                    .entry(key.key_type)
                    .or_default()
                    .insert(key.key.clone(), value);
            }
        }
        for (name, value) in &news.values {
            let shown = told(value);
            let is_latest = self.followed.latest.contains(name) && source == ValueSource::Latest;
            for key_type in types {
                let is_asked = self
                    .keys
                    .iter()
                    .any(|key| key.key_type == *key_type && key.key == *name);
                if !(is_asked || is_latest && *key_type == KeyType::TimeSeries) {
                    continue;
                }
                let held = data
                    .latest
                    .entry(*key_type)
                    .or_default()
                    .entry(name.clone())
                    .or_default();
                // An older point is no latest value; a deletion has no time.
                if value.1.is_some() && (shown.ts < held.ts || shown == *held) {
                    continue;
                }
                held.clone_from(&shown);
                latest
                    .entry(*key_type)
                    .or_default()
                    .insert(name.clone(), shown.clone());
            }
            if source == ValueSource::Latest && value.1.is_some() && self.followed.points.contains(name) {
                series.entry(name.clone()).or_default().push(shown);
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

    /// Finds the entities again where the query is dynamic, and sends the page if others are found.
    pub(super) async fn refresh(&mut self, scope: &mut Scope, _id: i64) -> Outcome {
        if !self.query.page_link.dynamic {
            return Ok(());
        }
        let ids = |page: &PageData<EntityData>| -> Vec<EntityId> {
            page.data.iter().map(|data| data.entity_id).collect()
        };
        let (known, total) = (ids(&self.page), self.page.total_elements);
        self.find(scope).await?;
        if known != ids(&self.page) || total != self.page.total_elements {
            let sources = self.sources();
            if sources != 0 {
                self.watch(scope, sources).await;
            }
            self.send_page(scope);
        }
        Ok(())
    }
}

fn check_series(entities: usize, keys: usize) -> Outcome {
    if entities.saturating_mul(keys) > MAX_SERIES {
        return Err(Failed::bad(format!(
            "A command must not read more than {MAX_SERIES} series!"
        )));
    }
    Ok(())
}

/// Under which types of keys values of a source are shown.
const fn key_types(source: ValueSource) -> &'static [KeyType] {
    match source {
        ValueSource::Latest => &[KeyType::TimeSeries],
        ValueSource::Attribute(AttributeScope::Client) => &[KeyType::ClientAttribute, KeyType::Attribute],
        ValueSource::Attribute(AttributeScope::Shared) => &[KeyType::SharedAttribute, KeyType::Attribute],
        ValueSource::Attribute(AttributeScope::Server) => &[KeyType::ServerAttribute, KeyType::Attribute],
    }
}

fn told((ts, value): &NewValue) -> TsValue {
    match value {
        Some(value) => TsValue {
            ts: *ts,
            value: value.to_text(),
        },
        None => TsValue::default(),
    }
}

fn shown(point: &Point) -> TsValue {
    TsValue {
        ts: point.ts,
        value: point.value.to_text(),
    }
}

/// Whose values an entity shows: a tenant belongs to itself.
fn subject_of(scope: &Scope, entity: EntityId) -> Subject {
    let tenant = match entity.entity_type {
        EntityType::Tenant => fieldline_model::TenantId(entity.id),
        _ => scope.tenant(),
    };
    Subject { tenant, entity }
}

/// Whether values may be read of an entity that was found. A customer's users find some that they see in part only.
async fn may_read(scope: &Scope, entity: EntityId) -> bool {
    let in_part = !matches!(
        entity.entity_type,
        EntityType::Device | EntityType::Asset | EntityType::EntityView | EntityType::Customer
    );
    if scope.who.authority != Authority::CustomerUser || !in_part {
        return true;
    }
    scope
        .api
        .check(&scope.who, entity, Operation::ReadTelemetry)
        .await
        .is_ok()
}

/// Where the series of an entity are read from, if they may be.
async fn source_of(scope: &Scope, entity: EntityId) -> Option<Source> {
    if entity.entity_type != EntityType::EntityView {
        let subject = subject_of(scope, entity);
        return may_read(scope, entity).await.then(|| Source::own(subject));
    }
    let found = scope
        .api
        .check(&scope.who, entity, Operation::ReadTelemetry)
        .await
        .ok()?;
    Some(Source::of(&found))
}
