//! Calculated fields of values on a worker: their states are brought up to date, and evaluated.

use std::sync::Arc;

use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::StateKey;
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::kv::Value;
use fieldline_model::timeseries::{Order, Point, RangeQuery};
use fieldline_model::{CalculatedFieldId, EntityId, Subject};
use tracing::warn;

use super::Worker;
use super::field_calls::{FieldCall, FieldCase, ValuesCase};
use super::fields::reach::walk_path;
use super::fields::{Shown, owner_of, takers};
use super::walk::{Move, Ticket};
use crate::calculated_fields::{
    EvalError, Field, Need, NeedKind, NeedSource, NoScripts, Outcome, Role, State, Update, rolling_number,
};
use crate::fields::{Change, Entry, News};
use crate::originators::Originator;

/// Bytes of the points of one argument.
const MAX_POINTS_BYTES: usize = 4 << 20;

/// An update that owns what it brings.
enum Owned {
    Value(usize, EntityId, i64, Value),
    Missing(usize, EntityId),
    Points(usize, Vec<(i64, f64)>),
    Zones(usize, Vec<EntityId>),
    Related(Vec<EntityId>),
}

impl Owned {
    fn as_update(&self) -> Update<'_> {
        match self {
            Self::Value(argument, entity, ts, value) => Update::Value {
                argument: *argument,
                entity: *entity,
                ts: *ts,
                value: value.as_ref(),
            },
            Self::Missing(argument, entity) => Update::Missing {
                argument: *argument,
                entity: *entity,
            },
            Self::Points(argument, points) => Update::Points {
                argument: *argument,
                points,
            },
            Self::Zones(argument, entities) => Update::Zones {
                argument: *argument,
                entities,
            },
            Self::Related(entities) => Update::Related(entities),
        }
    }
}

impl Worker {
    /// Brings what an entity has under a field up to date, and evaluates it where that is a reason to.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn tell_values(
        &mut self,
        ticket: Ticket,
        entry: &Arc<Entry>,
        field: &Arc<Field>,
        key: StateKey,
        originator: &Arc<Originator>,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let (subject, now) = (key.subject, self.now_ms());
        let known = self
            .parts
            .states
            .peek(&key)
            .and_then(|bytes| field.decode(subject.entity, bytes).ok());
        // What was given up for its size begins anew when somebody has changed the field.
        let known = known.filter(|state| !(news.change == Change::Started && state.is_oversized()));
        let is_new = known.is_none();
        let mut state = known.unwrap_or_else(|| field.new_state(subject.entity));
        let mut updates = Vec::new();
        if is_new {
            self.apply_pending(ticket.partition, store).await?;
            updates = self.everything(field, subject, originator, store).await?;
        } else if news.change == Change::Relations || field.relations_due(&state, now) {
            self.apply_pending(ticket.partition, store).await?;
            updates = self.relations(field, Some(&state), subject, store).await?;
        }
        updates.extend(
            self.taken(ticket, entry, field, subject, originator, news, store)
                .await?,
        );
        let updates: Vec<Update<'_>> = updates.iter().map(Owned::as_update).collect();
        let previous: Vec<CalculatedFieldId> =
            news.previous.iter().map(|id| CalculatedFieldId(*id)).collect();
        let was_oversized = state.is_oversized();
        let changed = match field.update(&mut state, &updates, &previous, now) {
            Ok(changed) => changed,
            Err(error) => {
                if was_oversized {
                    return Ok(());
                }
                self.field_failed(entry, field, &state, news, &error);
                true
            }
        };
        if !(changed || is_new || news.change == Change::Started) {
            return Ok(());
        }
        self.evaluate_values(ticket, (entry, field), key, state, originator, news, store, moves)
            .await
    }

    /// Evaluates a field because time has passed.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn values_due(
        &mut self,
        ticket: Ticket,
        entry: &Arc<Entry>,
        field: &Arc<Field>,
        originator: &Arc<Originator>,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let (subject, now) = (news.subject, self.now_ms());
        let key = super::fields::key_of(entry, subject);
        let Some(mut state) = self
            .parts
            .states
            .peek(&key)
            .and_then(|bytes| field.decode(subject.entity, bytes).ok())
        else {
            // The field has other arguments than it had.
            let news = News {
                change: Change::Started,
                ..news.clone()
            };
            return self
                .tell_values(ticket, entry, field, key, originator, &news, store, moves)
                .await;
        };
        field.restore(&mut state, now);
        if field.relations_due(&state, now) {
            self.apply_pending(ticket.partition, store).await?;
            let updates = self.relations(field, Some(&state), subject, store).await?;
            let updates: Vec<Update<'_>> = updates.iter().map(Owned::as_update).collect();
            if let Err(error) = field.update(&mut state, &updates, &[], now) {
                self.field_failed(entry, field, &state, news, &error);
            }
        }
        self.evaluate_values(ticket, (entry, field), key, state, originator, news, store, moves)
            .await
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    async fn evaluate_values(
        &mut self,
        ticket: Ticket,
        (entry, field): (&Arc<Entry>, &Arc<Field>),
        key: StateKey,
        mut state: State,
        originator: &Arc<Originator>,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let case = |state| ValuesCase {
            field: field.clone(),
            state,
            originator: originator.clone(),
            news: news.clone(),
        };
        let now = self.now_ms();
        if field.calls_scripts() {
            // What it has taken in is kept while its scripts run.
            let due = field.next_check(&state, now);
            let bytes = field.encode(&state);
            self.parts.states.put(ticket.partition, key.clone(), due, &bytes);
            let call = FieldCall {
                ticket,
                key,
                entry: entry.clone(),
            };
            return self
                .call_field(call, FieldCase::Values(case(state)), store, moves)
                .await;
        }
        let evaluated = field.evaluate(&mut state, &mut NoScripts, now);
        self.finish_values(ticket, entry, key, case(state), evaluated, store, moves)
            .await
    }

    /// Keeps the state of a field that was evaluated, and does what comes of it.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn finish_values(
        &mut self,
        ticket: Ticket,
        entry: &Arc<Entry>,
        key: StateKey,
        case: ValuesCase,
        evaluated: Result<Outcome, EvalError>,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let ValuesCase {
            field,
            state,
            originator,
            news,
        } = case;
        let due = field.next_check(&state, self.now_ms());
        self.parts
            .states
            .put(ticket.partition, key, due, &field.encode(&state));
        match evaluated {
            Ok(outcome) => {
                let about = (entry, &field);
                self.carry_out(ticket, about, &state, outcome, &originator, &news, store, moves)
                    .await
            }
            Err(error) => {
                self.field_failed(entry, &field, &state, &news, &error);
                Ok(())
            }
        }
    }

    pub(super) fn field_failed(
        &self,
        entry: &Entry,
        field: &Field,
        state: &State,
        news: &News,
        error: &EvalError,
    ) {
        metrics::counter!("fieldline_rules_field_errors_total").increment(1);
        let shown = Shown {
            arguments: Some(field.arguments_json(state).to_string()),
            error: Some(error.to_string()),
            ..Shown::default()
        };
        self.show_field(entry, state.entity(), news, shown);
    }

    /// What news says to the arguments of a field.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    async fn taken(
        &mut self,
        ticket: Ticket,
        entry: &Arc<Entry>,
        field: &Field,
        subject: Subject,
        originator: &Originator,
        news: &News,
        store: &Applier,
    ) -> Result<Vec<Owned>, Stopping> {
        let source = news.subject;
        let mut updates = Vec::new();
        match &news.change {
            Change::Values { scope, values } => {
                for (ts, key, value) in values {
                    for (argument, watch) in takers(entry, originator, source) {
                        if watch.takes(*scope, key) {
                            updates.push(Owned::Value(argument, source.entity, *ts, value.clone()));
                        }
                    }
                }
            }
            Change::Removed { scope, keys } => {
                let is_removed = |key: &str| keys.iter().any(|removed| **removed == *key);
                let removed: Vec<usize> = takers(entry, originator, source)
                    .filter(|(_, watch)| watch.scope == *scope && is_removed(&watch.key))
                    .map(|(argument, _)| argument)
                    .collect();
                if scope.is_none() && !removed.is_empty() {
                    self.apply_pending(ticket.partition, store).await?;
                }
                for argument in removed {
                    let Some(need) = field.needs().get(argument) else {
                        continue;
                    };
                    if scope.is_some() {
                        updates.push(Owned::Missing(argument, source.entity));
                    } else if let Some(update) = self.value_of(argument, need, source, store).await? {
                        // An older point may be left.
                        updates.push(update);
                    }
                }
            }
            Change::Owner => {
                self.apply_pending(ticket.partition, store).await?;
                let owner = Subject {
                    entity: owner_of(originator, subject.tenant),
                    ..subject
                };
                for (argument, need) in field.needs().iter().enumerate() {
                    if need.source == NeedSource::Owner {
                        updates.extend(self.value_of(argument, need, owner, store).await?);
                    }
                }
            }
            _ => {}
        }
        Ok(updates)
    }

    /// All that a new state wants to know, as it is stored.
    async fn everything(
        &mut self,
        field: &Field,
        subject: Subject,
        originator: &Originator,
        store: &Applier,
    ) -> Result<Vec<Owned>, Stopping> {
        let mut updates = self.relations(field, None, subject, store).await?;
        for (argument, need) in field.needs().iter().enumerate() {
            let entity = match (&need.source, need.role) {
                (_, Role::Related) | (NeedSource::Path(_), _) => continue,
                (NeedSource::Own, _) => subject.entity,
                (NeedSource::Entity(entity), _) => *entity,
                (NeedSource::Owner, _) => owner_of(originator, subject.tenant),
            };
            updates.extend(
                self.value_of(argument, need, Subject { entity, ..subject }, store)
                    .await?,
            );
        }
        Ok(updates)
    }

    /// The related entities and zones of a field with the values of those that a state does not know yet.
    async fn relations(
        &mut self,
        field: &Field,
        state: Option<&State>,
        subject: Subject,
        store: &Applier,
    ) -> Result<Vec<Owned>, Stopping> {
        let mut updates = Vec::new();
        if let Some(level) = field.relation() {
            let related = self.along(subject, std::slice::from_ref(level), store).await?;
            updates.push(Owned::Related(related.clone()));
            let is_known = |entity: &EntityId| state.is_some_and(|state| state.related().contains(entity));
            for entity in related.into_iter().filter(|entity| !is_known(entity)) {
                for (argument, need) in field.needs().iter().enumerate() {
                    if need.role == Role::Related {
                        updates.extend(
                            self.value_of(argument, need, Subject { entity, ..subject }, store)
                                .await?,
                        );
                    }
                }
            }
        }
        for (argument, need) in field.needs().iter().enumerate() {
            let NeedSource::Path(path) = &need.source else {
                continue;
            };
            let found = self.along(subject, path, store).await?;
            if need.role == Role::Zones {
                updates.push(Owned::Zones(argument, found.clone()));
            }
            for entity in found {
                updates.extend(
                    self.value_of(argument, need, Subject { entity, ..subject }, store)
                        .await?,
                );
            }
        }
        Ok(updates)
    }

    /// The stored value of an argument.
    async fn value_of(
        &mut self,
        argument: usize,
        need: &Need,
        of: Subject,
        store: &Applier,
    ) -> Result<Option<Owned>, Stopping> {
        let found = match (need.kind, need.role) {
            (_, Role::Series) => return Ok(None),
            (NeedKind::Latest, _) => self.latest(of, &need.key, store).await?,
            (NeedKind::Attribute(scope), _) => self.attribute(of, scope, &need.key, store).await?,
            (NeedKind::Rolling { limit, window_ms }, _) => {
                let points = self.points(of, &need.key, limit, window_ms, store).await?;
                let points = points
                    .iter()
                    .map(|point| (point.ts, rolling_number(point.value.as_ref())))
                    .collect();
                return Ok(Some(Owned::Points(argument, points)));
            }
        };
        Ok(Some(match found {
            Some((ts, value)) => Owned::Value(argument, of.entity, ts, value),
            None if need.role == Role::Zones => return Ok(None),
            None => Owned::Missing(argument, of.entity),
        }))
    }

    async fn points(
        &mut self,
        of: Subject,
        key: &str,
        limit: usize,
        window_ms: i64,
        store: &Applier,
    ) -> Result<Vec<Point>, Stopping> {
        let query = RangeQuery {
            start: self.now_ms().saturating_sub(window_ms).max(0),
            end: i64::MAX,
            limit,
            order: Order::Descending,
        };
        loop {
            // Of long texts, the newest that fit.
            let series = &self.common.services.series;
            match series.page(of, key, query, MAX_POINTS_BYTES).await {
                Ok(page) => return Ok(page.points),
                Err(error) if !error.kind().is_retryable() => {
                    warn!(%error, "cannot read points for a calculated field");
                    return Ok(Vec::new());
                }
                Err(error) => warn!(%error, "cannot read points, trying again"),
            }
            store.pause().await?;
        }
    }

    /// The entities at the end of a path of relations.
    async fn along(
        &mut self,
        subject: Subject,
        path: &[RelationLevel],
        store: &Applier,
    ) -> Result<Vec<EntityId>, Stopping> {
        loop {
            let services = self.common.services.clone();
            let path = path.to_vec();
            let asked = self
                .common
                .services
                .runtime
                .spawn(async move { walk_path(&services, subject.tenant, subject.entity, &path).await });
            match asked.await {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(error)) if !error.kind().is_retryable() => {
                    warn!(%error, "cannot follow relations for a calculated field");
                    return Ok(Vec::new());
                }
                Ok(Err(error)) => warn!(%error, "cannot follow relations, trying again"),
                Err(error) => warn!(%error, "following relations has failed"),
            }
            store.pause().await?;
        }
    }
}
