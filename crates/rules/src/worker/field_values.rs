//! Calculated fields of values on a worker: their states are brought up to date, and evaluated.

use std::sync::Arc;

use fieldline_calculated_fields::{
    ArgumentUpdate, CalculatedFieldState, CompiledField, FieldEvaluationError, FieldInput, FieldInputKind,
    FieldInputRole, FieldInputSource, FieldOutcome, NoScriptRunner, rolling_number,
};
use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::StateKey;
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::{DataPoint, PointOrder, RangeQuery};
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey};
use tracing::warn;

use super::RuleWorker;
use super::field_calls::{FieldEvaluation, FieldScriptCall, ValueFieldEvaluation};
use super::fields::fan_out::walk_path;
use super::fields::{FieldDebugEvent, owner_of, takers};
use super::walk::{MessageHandle, WalkTask};
use crate::fields::{FieldEvent, FieldEventKind, RegisteredField};
use crate::originators::Originator;

/// Bytes of the points of one argument.
const MAX_POINTS_BYTES: usize = 4 << 20;

/// An update that owns what it brings.
enum OwnedArgumentUpdate {
    Value(usize, EntityId, i64, KvValue),
    Missing(usize, EntityId),
    Points(usize, Vec<(i64, f64)>),
    Zones(usize, Vec<EntityId>),
    Related(Vec<EntityId>),
}

impl OwnedArgumentUpdate {
    fn as_update(&self) -> ArgumentUpdate<'_> {
        match self {
            Self::Value(argument, entity, ts, value) => ArgumentUpdate::Value {
                argument: *argument,
                entity: *entity,
                ts: *ts,
                value: value.as_ref(),
            },
            Self::Missing(argument, entity) => ArgumentUpdate::Missing {
                argument: *argument,
                entity: *entity,
            },
            Self::Points(argument, points) => ArgumentUpdate::Points {
                argument: *argument,
                points,
            },
            Self::Zones(argument, entities) => ArgumentUpdate::Zones {
                argument: *argument,
                entities,
            },
            Self::Related(entities) => ArgumentUpdate::Related(entities),
        }
    }
}

impl RuleWorker {
    /// Brings what an entity has under a field up to date, and evaluates it where that is a reason to.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn notify_value_field(
        &mut self,
        ticket: MessageHandle,
        entry: &Arc<RegisteredField>,
        field: &Arc<CompiledField>,
        key: StateKey,
        originator: &Arc<Originator>,
        news: &FieldEvent,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let (subject, now) = (key.subject, self.now_ms());
        let known = self
            .state
            .states
            .peek(&key)
            .and_then(|bytes| field.decode(subject.entity, bytes).ok());
        // What was given up for its size begins anew when somebody has changed the field.
        let known = known.filter(|state| !(news.change == FieldEventKind::Started && state.is_oversized()));
        let is_new = known.is_none();
        let mut state = known.unwrap_or_else(|| field.new_state(subject.entity));
        let mut updates = Vec::new();
        if is_new {
            self.apply_pending(ticket.partition, store).await?;
            updates = self.everything(field, subject, originator, store).await?;
        } else if news.change == FieldEventKind::Relations || field.relations_due(&state, now) {
            self.apply_pending(ticket.partition, store).await?;
            updates = self.relations(field, Some(&state), subject, store).await?;
        }
        updates.extend(
            self.argument_updates(ticket, entry, field, subject, originator, news, store)
                .await?,
        );
        let updates: Vec<ArgumentUpdate<'_>> = updates.iter().map(OwnedArgumentUpdate::as_update).collect();
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
        if !(changed || is_new || news.change == FieldEventKind::Started) {
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
        ticket: MessageHandle,
        entry: &Arc<RegisteredField>,
        field: &Arc<CompiledField>,
        originator: &Arc<Originator>,
        news: &FieldEvent,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let (subject, now) = (news.subject, self.now_ms());
        let key = super::fields::key_of(entry, subject);
        let Some(mut state) = self
            .state
            .states
            .peek(&key)
            .and_then(|bytes| field.decode(subject.entity, bytes).ok())
        else {
            // The field has other arguments than it had.
            let news = FieldEvent {
                change: FieldEventKind::Started,
                ..news.clone()
            };
            return self
                .notify_value_field(ticket, entry, field, key, originator, &news, store, moves)
                .await;
        };
        field.restore(&mut state, now);
        if field.relations_due(&state, now) {
            self.apply_pending(ticket.partition, store).await?;
            let updates = self.relations(field, Some(&state), subject, store).await?;
            let updates: Vec<ArgumentUpdate<'_>> =
                updates.iter().map(OwnedArgumentUpdate::as_update).collect();
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
        ticket: MessageHandle,
        (entry, field): (&Arc<RegisteredField>, &Arc<CompiledField>),
        key: StateKey,
        mut state: CalculatedFieldState,
        originator: &Arc<Originator>,
        news: &FieldEvent,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let case = |state| ValueFieldEvaluation {
            field: field.clone(),
            state,
            originator: originator.clone(),
            event: news.clone(),
        };
        let now = self.now_ms();
        if field.calls_scripts() {
            // What it has taken in is kept while its scripts run.
            let due = field.next_check(&state, now);
            let bytes = field.encode(&state);
            self.state.states.put(ticket.partition, key.clone(), due, &bytes);
            let call = FieldScriptCall {
                handle: ticket,
                key,
                entry: entry.clone(),
            };
            return self
                .call_field(call, FieldEvaluation::Values(case(state)), store, moves)
                .await;
        }
        let evaluated = field.evaluate(&mut state, &mut NoScriptRunner, now);
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
        ticket: MessageHandle,
        entry: &Arc<RegisteredField>,
        key: StateKey,
        case: ValueFieldEvaluation,
        evaluated: Result<FieldOutcome, FieldEvaluationError>,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let ValueFieldEvaluation {
            field,
            state,
            originator,
            event: news,
        } = case;
        let due = field.next_check(&state, self.now_ms());
        self.state
            .states
            .put(ticket.partition, key, due, &field.encode(&state));
        match evaluated {
            Ok(outcome) => {
                let about = (entry, &field);
                self.apply_outcome(ticket, about, &state, outcome, &originator, &news, store, moves)
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
        entry: &RegisteredField,
        field: &CompiledField,
        state: &CalculatedFieldState,
        news: &FieldEvent,
        error: &FieldEvaluationError,
    ) {
        metrics::counter!("fieldline_rules_field_errors_total").increment(1);
        let shown = FieldDebugEvent {
            arguments: Some(field.arguments_json(state).to_string()),
            error: Some(error.to_string()),
            ..FieldDebugEvent::default()
        };
        self.show_field(entry, state.entity(), news, shown);
    }

    /// What news says to the arguments of a field.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    async fn argument_updates(
        &mut self,
        ticket: MessageHandle,
        entry: &Arc<RegisteredField>,
        field: &CompiledField,
        subject: EntityKey,
        originator: &Originator,
        news: &FieldEvent,
        store: &EffectWriter,
    ) -> Result<Vec<OwnedArgumentUpdate>, IngestShutdown> {
        let source = news.subject;
        let mut updates = Vec::new();
        match &news.change {
            FieldEventKind::Values { scope, values } => {
                for (ts, key, value) in values {
                    for (argument, watch) in takers(entry, originator, source) {
                        if watch.takes(*scope, key) {
                            updates.push(OwnedArgumentUpdate::Value(
                                argument,
                                source.entity,
                                *ts,
                                value.clone(),
                            ));
                        }
                    }
                }
            }
            FieldEventKind::Removed { scope, keys } => {
                let is_removed = |key: &str| keys.iter().any(|removed| **removed == *key);
                let removed: Vec<usize> = takers(entry, originator, source)
                    .filter(|(_, watch)| watch.scope == *scope && is_removed(&watch.key))
                    .map(|(argument, _)| argument)
                    .collect();
                if scope.is_none() && !removed.is_empty() {
                    self.apply_pending(ticket.partition, store).await?;
                }
                for argument in removed {
                    let Some(need) = field.inputs().get(argument) else {
                        continue;
                    };
                    if scope.is_some() {
                        updates.push(OwnedArgumentUpdate::Missing(argument, source.entity));
                    } else if let Some(update) = self.value_of(argument, need, source, store).await? {
                        // An older point may be left.
                        updates.push(update);
                    }
                }
            }
            FieldEventKind::Owner => {
                self.apply_pending(ticket.partition, store).await?;
                let owner = EntityKey {
                    entity: owner_of(originator, subject.tenant),
                    ..subject
                };
                for (argument, need) in field.inputs().iter().enumerate() {
                    if need.source == FieldInputSource::Owner {
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
        field: &CompiledField,
        subject: EntityKey,
        originator: &Originator,
        store: &EffectWriter,
    ) -> Result<Vec<OwnedArgumentUpdate>, IngestShutdown> {
        let mut updates = self.relations(field, None, subject, store).await?;
        for (argument, need) in field.inputs().iter().enumerate() {
            let entity = match (&need.source, need.role) {
                (_, FieldInputRole::Related) | (FieldInputSource::Path(_), _) => continue,
                (FieldInputSource::Own, _) => subject.entity,
                (FieldInputSource::Entity(entity), _) => *entity,
                (FieldInputSource::Owner, _) => owner_of(originator, subject.tenant),
            };
            updates.extend(
                self.value_of(argument, need, EntityKey { entity, ..subject }, store)
                    .await?,
            );
        }
        Ok(updates)
    }

    /// The related entities and zones of a field with the values of those that a state does not know yet.
    async fn relations(
        &mut self,
        field: &CompiledField,
        state: Option<&CalculatedFieldState>,
        subject: EntityKey,
        store: &EffectWriter,
    ) -> Result<Vec<OwnedArgumentUpdate>, IngestShutdown> {
        let mut updates = Vec::new();
        if let Some(level) = field.relation() {
            let related = self.along(subject, std::slice::from_ref(level), store).await?;
            updates.push(OwnedArgumentUpdate::Related(related.clone()));
            let is_known = |entity: &EntityId| state.is_some_and(|state| state.related().contains(entity));
            for entity in related.into_iter().filter(|entity| !is_known(entity)) {
                for (argument, need) in field.inputs().iter().enumerate() {
                    if need.role == FieldInputRole::Related {
                        updates.extend(
                            self.value_of(argument, need, EntityKey { entity, ..subject }, store)
                                .await?,
                        );
                    }
                }
            }
        }
        for (argument, need) in field.inputs().iter().enumerate() {
            let FieldInputSource::Path(path) = &need.source else {
                continue;
            };
            let found = self.along(subject, path, store).await?;
            if need.role == FieldInputRole::Zones {
                updates.push(OwnedArgumentUpdate::Zones(argument, found.clone()));
            }
            for entity in found {
                updates.extend(
                    self.value_of(argument, need, EntityKey { entity, ..subject }, store)
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
        need: &FieldInput,
        of: EntityKey,
        store: &EffectWriter,
    ) -> Result<Option<OwnedArgumentUpdate>, IngestShutdown> {
        let found = match (need.kind, need.role) {
            (_, FieldInputRole::Series) => return Ok(None),
            (FieldInputKind::Latest, _) => self.latest(of, &need.key, store).await?,
            (FieldInputKind::Attribute(scope), _) => self.attribute(of, scope, &need.key, store).await?,
            (FieldInputKind::Rolling { limit, window_ms }, _) => {
                let points = self.points(of, &need.key, limit, window_ms, store).await?;
                let points = points
                    .iter()
                    .map(|point| (point.ts, rolling_number(point.value.as_ref())))
                    .collect();
                return Ok(Some(OwnedArgumentUpdate::Points(argument, points)));
            }
        };
        Ok(Some(match found {
            Some((ts, value)) => OwnedArgumentUpdate::Value(argument, of.entity, ts, value),
            None if need.role == FieldInputRole::Zones => return Ok(None),
            None => OwnedArgumentUpdate::Missing(argument, of.entity),
        }))
    }

    async fn points(
        &mut self,
        of: EntityKey,
        key: &str,
        limit: usize,
        window_ms: i64,
        store: &EffectWriter,
    ) -> Result<Vec<DataPoint>, IngestShutdown> {
        let query = RangeQuery {
            start: self.now_ms().saturating_sub(window_ms).max(0),
            end: i64::MAX,
            limit,
            order: PointOrder::Descending,
        };
        loop {
            // Of long texts, the newest that fit.
            let series = &self.shared.services.series;
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
        subject: EntityKey,
        path: &[RelationLevel],
        store: &EffectWriter,
    ) -> Result<Vec<EntityId>, IngestShutdown> {
        loop {
            let services = self.shared.services.clone();
            let path = path.to_vec();
            let asked = self
                .shared
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
