//! What evaluations of calculated fields say is done: values are stored or sent through rule chains, relations made.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::{AttributeSaveStrategy, RelationKey, TelemetrySaveStrategy};
use fieldline_entities::services::ServiceErrorKind;
use fieldline_model::entity::calculated_field::AggregationFunction;
use fieldline_model::entity::{EntityRelation, RelationTypeGroup};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::timeseries::{Aggregation, AggregationBucket, AttributeScope, PointOrder, RangeQuery};
use fieldline_model::{EntityId, EntityKey};
use rustc_hash::FxHashSet;
use tracing::warn;
use uuid::Uuid;

use super::RuleWorker;
use super::effects::{AttributeValues, TelemetryValues};
use super::fields::{FieldDebugEvent, salt};
use super::marks::EffectSource;
use super::walk::{MessageHandle, WalkTask};
use crate::calculated_fields::{
    CalculatedFieldState, CompiledField, FieldOutcome, IntervalAnswer, IntervalQuery, Output, OutputKind,
    OutputStrategyType, OutputTargets, RelationChange,
};
use crate::fields::{FieldEvent, RegisteredField};
use crate::message::{MessageBody, RuleMessage, derive_id};
use crate::node::NodeResult;
use crate::originators::Originator;
use crate::value_update::{UpdatedValues, ValueUpdate};

/// Points that are read at once to count different values.
const CHUNK: usize = 10_000;
/// Bytes of them.
const PAGE_BYTES: usize = 4 << 20;
/// Different values that are told apart.
const MAX_UNIQUE: usize = 100_000;
/// Bytes of values that are looked at to tell them apart.
const MAX_UNIQUE_BYTES: usize = 16 << 20;

impl RuleWorker {
    /// Does what an outcome says.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn apply_outcome(
        &mut self,
        ticket: MessageHandle,
        (entry, field): (&Arc<RegisteredField>, &Arc<CompiledField>),
        state: &CalculatedFieldState,
        outcome: FieldOutcome,
        originator: &Arc<Originator>,
        news: &FieldEvent,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        if let Some(reason) = outcome.not_ready {
            let shown = FieldDebugEvent {
                arguments: Some(field.arguments_json(state).to_string()),
                error: Some(reason),
                ..FieldDebugEvent::default()
            };
            self.show_field(entry, originator.id, news, shown);
            return Ok(());
        }
        let mut outputs = outcome.outputs;
        if !outcome.queries.is_empty() {
            self.apply_pending(ticket.partition, store).await?;
            let of = EntityKey {
                entity: originator.id,
                ..news.subject
            };
            let mut answers = Vec::with_capacity(outcome.queries.len());
            for query in outcome.queries {
                let value = self.interval(of, &query, store).await?;
                answers.push(IntervalAnswer { query, value });
            }
            match field.answer(&answers) {
                Ok(more) => outputs.extend(more),
                Err(error) => self.field_failed(entry, field, state, news, &error),
            }
        }
        for change in outcome.relations {
            self.relate(news, change, store).await?;
        }
        if entry.debug.stores_all(self.now_ms()) && !outputs.is_empty() {
            let results: Vec<String> = outputs.iter().map(Output::message_body).collect();
            let shown = FieldDebugEvent {
                arguments: Some(field.arguments_json(state).to_string()),
                result: Some(results.join(", ")),
                error: None,
            };
            self.show_field(entry, originator.id, news, shown);
        }
        let previous: Arc<[Uuid]> = outcome.previous.iter().map(|id| id.0).collect();
        let news = FieldEvent {
            previous,
            ..news.clone()
        };
        for output in &outputs {
            let targets = match &output.targets {
                OutputTargets::Own => vec![originator.id],
                OutputTargets::Entities(entities) => entities.clone(),
            };
            for target in targets {
                self.apply_output(ticket, entry, output, target, originator, &news, store, moves)
                    .await?;
            }
        }
        Ok(())
    }

    /// Gives results to one entity.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    async fn apply_output(
        &mut self,
        ticket: MessageHandle,
        entry: &Arc<RegisteredField>,
        output: &Output,
        target: EntityId,
        originator: &Arc<Originator>,
        news: &FieldEvent,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let subject = EntityKey {
            entity: target,
            ..news.subject
        };
        let mut msg = self.field_msg(entry, originator, news);
        msg.id = derive_id(msg.id, salt(entry.id.0, target, 1));
        if target != originator.id {
            msg.originator = target;
            msg.customer = None;
        }
        if output.strategy.kind == OutputStrategyType::RuleChain {
            self.send_through_chain(ticket, entry, output, msg, originator, moves);
            return Ok(());
        }
        match output.kind {
            OutputKind::TimeSeries => self.save_points(output, subject, &msg),
            OutputKind::Attributes(scope) => {
                self.save_result_attributes(ticket, output, (subject, scope), &msg, store, moves)
                    .await?;
            }
        }
        Ok(())
    }

    fn save_points(&mut self, output: &Output, subject: EntityKey, msg: &RuleMessage) {
        let (strategy, now) = (output.strategy, self.now_ms());
        let ttl_seconds = match strategy.ttl {
            0 => self
                .state
                .field_events
                .of(subject.tenant)
                .map_or(0, |fields| fields.ttl_seconds),
            // Beyond the range is as good as for ever.
            ttl => u32::try_from(ttl).unwrap_or(0),
        };
        let parts = TelemetrySaveStrategy {
            history: strategy.save_time_series,
            latest: strategy.save_latest,
            published: strategy.send_ws_update,
        };
        for row in &output.rows {
            let ts = row.ts.unwrap_or(now);
            let values = packed(row.values.iter().map(|(key, value)| (&**key, value)));
            if !parts.is_nothing() {
                let row = TelemetryValues {
                    subject,
                    ts,
                    ttl_seconds,
                    strategy: parts,
                    values: values.clone(),
                };
                self.state.save_telemetry(EffectSource::of(msg, msg.id), row);
            }
            if strategy.process_cfs {
                let what = UpdatedValues::Telemetry { ts, values: &values };
                self.state.notify_fields(ValueUpdate {
                    subject,
                    values: what,
                    msg,
                });
            }
        }
    }

    async fn save_result_attributes(
        &mut self,
        ticket: MessageHandle,
        output: &Output,
        (subject, scope): (EntityKey, AttributeScope),
        msg: &RuleMessage,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let (strategy, now) = (output.strategy, self.now_ms());
        let mut values: Vec<(&str, &KvValue)> = output
            .rows
            .iter()
            .flat_map(|row| row.values.iter().map(|(key, value)| (&**key, value)))
            .collect();
        if strategy.update_attributes_only_on_value_change {
            self.apply_pending(ticket.partition, store).await?;
            let mut changed = Vec::with_capacity(values.len());
            for (key, value) in values {
                let stored = self.attribute(subject, scope, key, store).await?;
                if stored.is_none_or(|(_, stored)| stored != *value) {
                    changed.push((key, value));
                }
            }
            values = changed;
        }
        if values.is_empty() {
            return Ok(());
        }
        let packed = packed(values.into_iter());
        let parts = AttributeSaveStrategy {
            stored: strategy.save_attribute,
            published: strategy.send_ws_update,
        };
        if parts.stored || parts.published {
            let saved = AttributeValues {
                subject,
                scope,
                ts: now,
                strategy: parts,
                values: packed.clone(),
            };
            self.state.save_attributes(EffectSource::of(msg, msg.id), saved);
        }
        if parts.stored {
            self.state.effects.notify_device(subject, scope, packed.clone());
        }
        if strategy.process_cfs {
            let what = UpdatedValues::Attributes {
                scope,
                values: &packed,
            };
            self.state.notify_fields(ValueUpdate {
                subject,
                values: what,
                msg,
            });
        }
        if strategy.send_attributes_updated_notification {
            let metadata = MetadataMap::from_iter([("scope", scope.name())]);
            let body = MessageBody::Packed(packed).to_text().into_owned();
            let mut told = QueueMessage::new(MsgType::AttributesUpdated, subject.entity, now, metadata, body);
            told.id = derive_id(msg.id, scope as u64);
            self.send(ticket, subject.tenant, vec![told], moves);
        }
        Ok(())
    }

    fn send_through_chain(
        &mut self,
        ticket: MessageHandle,
        entry: &RegisteredField,
        output: &Output,
        mut msg: RuleMessage,
        originator: &Originator,
        moves: &mut Vec<WalkTask>,
    ) {
        let mut metadata = MetadataMap::from_iter([("calculatedFieldName", entry.name.to_string())]);
        msg.kind = match output.kind {
            OutputKind::TimeSeries => MsgType::PostTelemetry,
            OutputKind::Attributes(scope) => {
                metadata.set("scope", scope.name());
                MsgType::PostAttributes
            }
        };
        msg.meta = metadata.into();
        msg.data = MessageBody::text(output.message_body());
        let tenant = msg.tenant;
        if msg.originator == originator.id {
            self.begin(ticket);
            moves.push(WalkTask::Answer(NodeResult::EnterDefault(msg), None, tenant));
        } else {
            self.send(ticket, tenant, vec![msg.to_message()], moves);
        }
    }

    async fn relate(
        &mut self,
        news: &FieldEvent,
        change: RelationChange,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let tenant = news.subject.tenant;
        loop {
            let relations = self.shared.services.rules.relations.clone();
            let change = change.clone();
            let done = self.shared.services.runtime.spawn(async move {
                if change.exists {
                    let relation = EntityRelation::new(change.from, change.to, &*change.relation_type);
                    relations.save(tenant, relation).await.map(drop)
                } else {
                    let key = RelationKey {
                        from: change.from,
                        to: change.to,
                        relation_type: change.relation_type.to_string(),
                        group: RelationTypeGroup::Common,
                    };
                    relations.delete(tenant, &key).await.map(drop)
                }
            });
            match done.await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) if error.kind() == ServiceErrorKind::NotFound => return Ok(()),
                Ok(Err(error)) if error.kind() != ServiceErrorKind::Unavailable => {
                    warn!(%error, "a relation of a calculated field was refused");
                    return Ok(());
                }
                Ok(Err(error)) => warn!(%error, "cannot change a relation, trying again"),
                Err(error) => {
                    warn!(%error, "changing a relation has failed");
                    return Ok(());
                }
            }
            store.pause().await?;
        }
    }

    /// An aggregate over an interval of a series.
    async fn interval(
        &mut self,
        of: EntityKey,
        query: &IntervalQuery,
        store: &EffectWriter,
    ) -> Result<Option<KvValue>, IngestShutdown> {
        let aggregation = match query.function {
            AggregationFunction::Min => Aggregation::Min,
            AggregationFunction::Max => Aggregation::Max,
            AggregationFunction::Sum => Aggregation::Sum,
            AggregationFunction::Avg => Aggregation::Avg,
            AggregationFunction::Count => Aggregation::Count,
            AggregationFunction::CountUnique => return self.unique(of, query, store).await,
        };
        let bucket = AggregationBucket {
            start: query.start,
            end: query.end,
        };
        loop {
            match self
                .shared
                .services
                .series
                .aggregate(of, &query.key, aggregation, &[bucket])
                .await
            {
                Ok(points) => return Ok(points.into_iter().next().map(|point| point.value)),
                Err(error) if !error.kind().is_retryable() => {
                    warn!(%error, "cannot aggregate for a calculated field");
                    return Ok(None);
                }
                Err(error) => warn!(%error, "cannot aggregate, trying again"),
            }
            store.pause().await?;
        }
    }

    /// How many different values an interval has.
    async fn unique(
        &mut self,
        of: EntityKey,
        query: &IntervalQuery,
        store: &EffectWriter,
    ) -> Result<Option<KvValue>, IngestShutdown> {
        let mut seen: FxHashSet<Box<str>> = FxHashSet::default();
        let mut seen_bytes = 0;
        let mut start = query.start;
        loop {
            let range = RangeQuery {
                start,
                end: query.end,
                limit: CHUNK,
                order: PointOrder::Ascending,
            };
            let series = &self.shared.services.series;
            let page = match series.page_or_point(of, &query.key, range, PAGE_BYTES).await {
                Ok(page) => page,
                Err(error) if !error.kind().is_retryable() => {
                    warn!(%error, "cannot count for a calculated field");
                    return Ok(None);
                }
                Err(error) => {
                    warn!(%error, "cannot count, trying again");
                    store.pause().await?;
                    continue;
                }
            };
            for point in page.points {
                let text = point.value.to_text();
                if seen.len() < MAX_UNIQUE && seen_bytes < MAX_UNIQUE_BYTES {
                    seen_bytes += text.len();
                    seen.insert(text.into());
                }
            }
            if let Some((rest, _)) = page.rest {
                start = rest;
            } else {
                let count = i64::try_from(seen.len()).unwrap_or(i64::MAX);
                return Ok((count > 0).then_some(KvValue::Long(count)));
            }
        }
    }
}

fn packed<'a>(values: impl Iterator<Item = (&'a str, &'a KvValue)>) -> Bytes {
    let mut out = Vec::new();
    for (key, value) in values {
        pack(key, value.as_ref(), &mut out);
    }
    out.into()
}
