//! Calculated fields of values on a worker: their states are brought up to date, and evaluated.

use std::ops::ControlFlow;
use std::sync::Arc;

use fieldline_calculated_fields::{
    ArgumentUpdate, CalculatedFieldState, CompiledField, FieldEvaluationError, FieldInput, FieldInputKind,
    FieldInputRole, FieldInputSource, FieldOutcome, NoScriptRunner, rolling_number,
};
use fieldline_core::ingest::IngestShutdown;
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::{DataPoint, PointOrder, RangeQuery};
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey};

use super::field_calls::{FieldEvaluation, FieldScriptCall, ValueFieldEvaluation};
use super::field_results::ApplyFieldOutcome;
use super::fields::fan_out::walk_path;
use super::fields::{EvaluateField, FieldDebugEvent, key_of, owner_of, takers};
use super::retry::{AttemptError, AttemptTexts, spawn_attempt, with_retry};
use super::walk::WalkContext;
use crate::fields::{FieldEvent, FieldEventKind};
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

/// A field of values is brought up to date, and evaluated where that is a reason to.
#[derive(Clone, Copy)]
pub(super) struct EvaluateValueField<'a> {
    pub(super) about: EvaluateField<'a>,
    pub(super) field: &'a Arc<CompiledField>,
}

impl EvaluateValueField<'_> {
    pub(super) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let Self { about, field } = self;
        let EvaluateField { subject, event, .. } = about;
        let now = cx.worker.now_ms();
        // What was given up for its size begins anew when somebody has changed the field.
        let known = self
            .kept(cx)
            .filter(|state| !(event.change == FieldEventKind::Started && state.is_oversized()));
        let is_new = known.is_none();
        let mut state = known.unwrap_or_else(|| field.new_state(subject.entity));
        let mut updates = Vec::new();
        if is_new {
            cx.apply_pending().await?;
            updates = cx.everything(field, subject, about.originator).await?;
        } else if event.change == FieldEventKind::Relations || field.relations_due(&state, now) {
            cx.apply_pending().await?;
            updates = cx.relations(field, Some(&state), subject).await?;
        }
        updates.extend(self.argument_updates(cx).await?);
        let updates: Vec<ArgumentUpdate<'_>> = updates.iter().map(OwnedArgumentUpdate::as_update).collect();
        let previous: Vec<CalculatedFieldId> =
            event.previous.iter().map(|id| CalculatedFieldId(*id)).collect();
        let was_oversized = state.is_oversized();
        let changed = match field.update(&mut state, &updates, &previous, now) {
            Ok(changed) => changed,
            Err(error) => {
                if was_oversized {
                    return Ok(());
                }
                self.fail(&state, &error, cx);
                true
            }
        };
        if !(changed || is_new || event.change == FieldEventKind::Started) {
            return Ok(());
        }
        self.evaluate(state, cx).await
    }

    /// Evaluates the field because time has passed.
    pub(super) async fn fire_timer(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let Self { about, field } = self;
        let now = cx.worker.now_ms();
        let Some(mut state) = self.kept(cx) else {
            // The field has other arguments than it had.
            let event = FieldEvent {
                change: FieldEventKind::Started,
                ..about.event.clone()
            };
            let about = EvaluateField {
                event: &event,
                ..about
            };
            return EvaluateValueField { about, field }.run(cx).await;
        };
        field.restore(&mut state, now);
        if field.relations_due(&state, now) {
            cx.apply_pending().await?;
            let updates = cx.relations(field, Some(&state), about.subject).await?;
            let updates: Vec<ArgumentUpdate<'_>> =
                updates.iter().map(OwnedArgumentUpdate::as_update).collect();
            if let Err(error) = field.update(&mut state, &updates, &[], now) {
                self.fail(&state, &error, cx);
            }
        }
        self.evaluate(state, cx).await
    }

    /// What the entity has under the field.
    fn kept(&self, cx: &WalkContext<'_>) -> Option<CalculatedFieldState> {
        let subject = self.about.subject;
        let key = key_of(self.about.entry, subject);
        let bytes = cx.worker.local.keyed_states.peek(&key)?;
        self.field.decode(subject.entity, bytes).ok()
    }

    async fn evaluate(
        self,
        mut state: CalculatedFieldState,
        cx: &mut WalkContext<'_>,
    ) -> Result<(), IngestShutdown> {
        let Self { about, field } = self;
        let (now, key) = (cx.worker.now_ms(), key_of(about.entry, about.subject));
        if field.calls_scripts() {
            // What it has taken in is kept while its scripts run.
            let (due, bytes) = (field.next_check(&state, now), field.encode(&state));
            let keyed_states = &mut cx.worker.local.keyed_states;
            keyed_states.put(cx.handle.partition, key.clone(), due, &bytes);
            let call = FieldScriptCall {
                handle: cx.handle,
                key,
                entry: about.entry.clone(),
            };
            let evaluation = ValueFieldEvaluation {
                field: field.clone(),
                state,
                originator: about.originator.clone(),
                event: about.event.clone(),
            };
            return cx.call_field(call, FieldEvaluation::Values(evaluation)).await;
        }
        let outcome = field.evaluate(&mut state, &mut NoScriptRunner, now);
        self.finish(&state, outcome, cx).await
    }

    /// Keeps the state of the field, which was evaluated, and does what comes of it.
    pub(super) async fn finish(
        self,
        state: &CalculatedFieldState,
        outcome: Result<FieldOutcome, FieldEvaluationError>,
        cx: &mut WalkContext<'_>,
    ) -> Result<(), IngestShutdown> {
        let Self { about, field } = self;
        let due = field.next_check(state, cx.worker.now_ms());
        cx.worker.local.keyed_states.put(
            cx.handle.partition,
            key_of(about.entry, about.subject),
            due,
            &field.encode(state),
        );
        match outcome {
            Ok(outcome) => {
                let command = ApplyFieldOutcome {
                    evaluated: self,
                    state,
                };
                command.run(outcome, cx).await
            }
            Err(error) => {
                self.fail(state, &error, cx);
                Ok(())
            }
        }
    }

    /// Counts and shows that an evaluation has failed.
    pub(super) fn fail(
        &self,
        state: &CalculatedFieldState,
        error: &FieldEvaluationError,
        cx: &WalkContext<'_>,
    ) {
        metrics::counter!("fieldline_rules_field_errors_total").increment(1);
        let shown = FieldDebugEvent {
            arguments: Some(self.field.arguments_json(state).to_string()),
            error: Some(error.to_string()),
            ..FieldDebugEvent::default()
        };
        cx.show_field(self.about.entry, state.entity(), self.about.event, shown);
    }

    /// What has happened, as the arguments of the field see it.
    async fn argument_updates(
        &self,
        cx: &mut WalkContext<'_>,
    ) -> Result<Vec<OwnedArgumentUpdate>, IngestShutdown> {
        let EvaluateField {
            entry,
            subject,
            originator,
            event,
        } = self.about;
        let inputs = self.field.inputs();
        let source = event.subject;
        let mut updates = Vec::new();
        match &event.change {
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
                    cx.apply_pending().await?;
                }
                for argument in removed {
                    let Some(need) = inputs.get(argument) else {
                        continue;
                    };
                    if scope.is_some() {
                        updates.push(OwnedArgumentUpdate::Missing(argument, source.entity));
                    } else if let Some(update) = cx.value_of(argument, need, source).await? {
                        // An older point may be left.
                        updates.push(update);
                    }
                }
            }
            FieldEventKind::Owner => {
                cx.apply_pending().await?;
                let owner = EntityKey {
                    entity: owner_of(originator, subject.tenant),
                    ..subject
                };
                for (argument, need) in inputs.iter().enumerate() {
                    if need.source == FieldInputSource::Owner {
                        updates.extend(cx.value_of(argument, need, owner).await?);
                    }
                }
            }
            _ => {}
        }
        Ok(updates)
    }
}

impl WalkContext<'_> {
    /// All that a new state wants to know, as it is stored.
    async fn everything(
        &mut self,
        field: &CompiledField,
        subject: EntityKey,
        originator: &Originator,
    ) -> Result<Vec<OwnedArgumentUpdate>, IngestShutdown> {
        let mut updates = self.relations(field, None, subject).await?;
        for (argument, input) in field.inputs().iter().enumerate() {
            let entity = match (&input.source, input.role) {
                (_, FieldInputRole::Related) | (FieldInputSource::Path(_), _) => continue,
                (FieldInputSource::Own, _) => subject.entity,
                (FieldInputSource::Entity(entity), _) => *entity,
                (FieldInputSource::Owner, _) => owner_of(originator, subject.tenant),
            };
            updates.extend(
                self.value_of(argument, input, EntityKey { entity, ..subject })
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
    ) -> Result<Vec<OwnedArgumentUpdate>, IngestShutdown> {
        let mut updates = Vec::new();
        if let Some(level) = field.relation() {
            let related = self.along(subject, std::slice::from_ref(level)).await?;
            updates.push(OwnedArgumentUpdate::Related(related.clone()));
            let is_known = |entity: &EntityId| state.is_some_and(|state| state.related().contains(entity));
            for entity in related.into_iter().filter(|entity| !is_known(entity)) {
                for (argument, input) in field.inputs().iter().enumerate() {
                    if input.role == FieldInputRole::Related {
                        updates.extend(
                            self.value_of(argument, input, EntityKey { entity, ..subject })
                                .await?,
                        );
                    }
                }
            }
        }
        for (argument, input) in field.inputs().iter().enumerate() {
            let FieldInputSource::Path(path) = &input.source else {
                continue;
            };
            let found = self.along(subject, path).await?;
            if input.role == FieldInputRole::Zones {
                updates.push(OwnedArgumentUpdate::Zones(argument, found.clone()));
            }
            for entity in found {
                updates.extend(
                    self.value_of(argument, input, EntityKey { entity, ..subject })
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
        input: &FieldInput,
        of: EntityKey,
    ) -> Result<Option<OwnedArgumentUpdate>, IngestShutdown> {
        let found = match (input.kind, input.role) {
            (_, FieldInputRole::Series) => return Ok(None),
            (FieldInputKind::Latest, _) => self.latest(of, &input.key).await?,
            (FieldInputKind::Attribute(scope), _) => self.attribute(of, scope, &input.key).await?,
            (FieldInputKind::Rolling { limit, window_ms }, _) => {
                let points = self.points(of, &input.key, limit, window_ms).await?;
                let points = points
                    .iter()
                    .map(|point| (point.ts, rolling_number(point.value.as_ref())))
                    .collect();
                return Ok(Some(OwnedArgumentUpdate::Points(argument, points)));
            }
        };
        Ok(Some(match found {
            Some((ts, value)) => OwnedArgumentUpdate::Value(argument, of.entity, ts, value),
            None if input.role == FieldInputRole::Zones => return Ok(None),
            None => OwnedArgumentUpdate::Missing(argument, of.entity),
        }))
    }

    async fn points(
        &mut self,
        of: EntityKey,
        key: &str,
        limit: usize,
        window_ms: i64,
    ) -> Result<Vec<DataPoint>, IngestShutdown> {
        const TEXTS: AttemptTexts = AttemptTexts::reading(
            "cannot read points, trying again",
            "cannot read points for a calculated field",
        );
        let query = RangeQuery {
            start: self.worker.now_ms().saturating_sub(window_ms).max(0),
            end: i64::MAX,
            limit,
            order: PointOrder::Descending,
        };
        // Of long texts, the newest that fit.
        let series = &self.worker.shared.services.series;
        let read = async || Ok(series.page(of, key, query, MAX_POINTS_BYTES).await?);
        let page = with_retry(self.writer, read, |error| TEXTS.log(error)).await?;
        Ok(page.map_or_else(Vec::new, |page| page.points))
    }

    /// The entities at the end of a path of relations.
    async fn along(
        &mut self,
        subject: EntityKey,
        path: &[RelationLevel],
    ) -> Result<Vec<EntityId>, IngestShutdown> {
        const TEXTS: AttemptTexts = AttemptTexts {
            unavailable: "cannot follow relations, trying again",
            refused: "cannot follow relations for a calculated field",
            panicked: "following relations has failed",
        };
        let worker = &*self.worker;
        let follow = async || {
            let (services, path) = (worker.shared.services.clone(), path.to_vec());
            spawn_attempt(&worker.shared.services, async move {
                walk_path(&services, subject.tenant, subject.entity, &path).await
            })
            .await
        };
        let found = with_retry(self.writer, follow, |error| match error {
            AttemptError::Panicked(_) => {
                let _ = TEXTS.log(error);
                ControlFlow::Continue(())
            }
            _ => TEXTS.log(error),
        });
        Ok(Box::pin(found).await?.unwrap_or_default())
    }
}
