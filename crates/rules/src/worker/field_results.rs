//! What evaluations of calculated fields say is done: values are stored or sent through rule chains, relations made.

use bytes::Bytes;
use fieldline_calculated_fields::{
    CalculatedFieldState, FieldOutcome, IntervalAnswer, IntervalQuery, Output, OutputKind,
    OutputStrategyType, OutputTargets, RelationChange,
};
use fieldline_core::ingest::IngestShutdown;
use fieldline_core::ports::{AttributeSaveStrategy, RelationKey, TelemetrySaveStrategy};
use fieldline_entities::services::ServiceErrorKind;
use fieldline_model::entity::calculated_field::AggregationFunction;
use fieldline_model::entity::{EntityRelation, RelationTypeGroup};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::timeseries::{Aggregation, AggregationBucket, AttributeScope, PointOrder, RangeQuery};
use fieldline_model::{EntityId, EntityKey, TenantId};
use rustc_hash::FxHashSet;

use super::effects::{AttributeValues, TelemetryValues};
use super::field_values::EvaluateValueField;
use super::fields::{EvaluateField, FieldDebugEvent, salt};
use super::marks::EffectSource;
use super::retry::{AttemptError, AttemptTexts, spawn_attempt, with_retry};
use super::walk::{WalkContext, WalkTask};
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

/// What an evaluation of a field says is done.
#[derive(Clone, Copy)]
pub(super) struct ApplyFieldOutcome<'a> {
    pub(super) evaluated: EvaluateValueField<'a>,
    pub(super) state: &'a CalculatedFieldState,
}

impl ApplyFieldOutcome<'_> {
    pub(super) async fn run(
        self,
        outcome: FieldOutcome,
        cx: &mut WalkContext<'_>,
    ) -> Result<(), IngestShutdown> {
        let EvaluateValueField { about, field } = self.evaluated;
        let EvaluateField {
            entry,
            originator,
            event,
            ..
        } = about;
        if let Some(reason) = outcome.not_ready {
            let shown = FieldDebugEvent {
                arguments: Some(field.arguments_json(self.state).to_string()),
                error: Some(reason),
                ..FieldDebugEvent::default()
            };
            cx.show_field(entry, originator.id, event, shown);
            return Ok(());
        }
        let mut outputs = outcome.outputs;
        if !outcome.queries.is_empty() {
            cx.apply_pending().await?;
            let of = EntityKey {
                entity: originator.id,
                ..event.subject
            };
            let mut answers = Vec::with_capacity(outcome.queries.len());
            for query in outcome.queries {
                let value = cx.interval(of, &query).await?;
                answers.push(IntervalAnswer { query, value });
            }
            match field.answer(&answers) {
                Ok(more) => outputs.extend(more),
                Err(error) => self.evaluated.fail(self.state, &error, cx),
            }
        }
        for change in outcome.relations {
            cx.relate(event.subject.tenant, change).await?;
        }
        if entry.debug.stores_all(cx.worker.now_ms()) && !outputs.is_empty() {
            let results: Vec<String> = outputs.iter().map(Output::message_body).collect();
            let shown = FieldDebugEvent {
                arguments: Some(field.arguments_json(self.state).to_string()),
                result: Some(results.join(", ")),
                error: None,
            };
            cx.show_field(entry, originator.id, event, shown);
        }
        let event = FieldEvent {
            previous: outcome.previous.iter().map(|id| id.0).collect(),
            ..event.clone()
        };
        let about = EvaluateField {
            event: &event,
            ..about
        };
        for output in &outputs {
            let targets = match &output.targets {
                OutputTargets::Own => vec![originator.id],
                OutputTargets::Entities(entities) => entities.clone(),
            };
            for target in targets {
                cx.apply_output(about, output, target).await?;
            }
        }
        Ok(())
    }
}

impl WalkContext<'_> {
    /// Gives results to one entity.
    async fn apply_output(
        &mut self,
        about: EvaluateField<'_>,
        output: &Output,
        target: EntityId,
    ) -> Result<(), IngestShutdown> {
        let EvaluateField {
            entry, originator, ..
        } = about;
        let subject = EntityKey {
            entity: target,
            ..about.event.subject
        };
        let mut msg = about.message(self.worker.now_ms());
        msg.id = derive_id(msg.id, salt(entry.id.0, target, 1));
        if target != originator.id {
            msg.originator = target;
            msg.customer = None;
        }
        if output.strategy.kind == OutputStrategyType::RuleChain {
            self.send_through_chain(entry, output, msg, originator);
            return Ok(());
        }
        match output.kind {
            OutputKind::TimeSeries => self.save_points(output, subject, &msg),
            OutputKind::Attributes(scope) => {
                self.save_result_attributes(output, subject, scope, &msg).await?;
            }
        }
        Ok(())
    }

    fn save_points(&mut self, output: &Output, subject: EntityKey, msg: &RuleMessage) {
        let (strategy, now) = (output.strategy, self.worker.now_ms());
        let ttl_seconds = match strategy.ttl {
            0 => self
                .worker
                .local
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
                self.worker
                    .local
                    .save_telemetry(EffectSource::of(msg, msg.id), row);
            }
            if strategy.process_cfs {
                let what = UpdatedValues::Telemetry { ts, values: &values };
                self.worker.local.notify_fields(ValueUpdate {
                    subject,
                    values: what,
                    msg,
                });
            }
        }
    }

    async fn save_result_attributes(
        &mut self,
        output: &Output,
        subject: EntityKey,
        scope: AttributeScope,
        msg: &RuleMessage,
    ) -> Result<(), IngestShutdown> {
        let (strategy, now) = (output.strategy, self.worker.now_ms());
        let mut values: Vec<(&str, &KvValue)> = output
            .rows
            .iter()
            .flat_map(|row| row.values.iter().map(|(key, value)| (&**key, value)))
            .collect();
        if strategy.update_attributes_only_on_value_change {
            self.apply_pending().await?;
            let mut changed = Vec::with_capacity(values.len());
            for (key, value) in values {
                let stored = self.attribute(subject, scope, key).await?;
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
            self.worker
                .local
                .save_attributes(EffectSource::of(msg, msg.id), saved);
        }
        if parts.stored {
            self.worker
                .local
                .effects
                .notify_device(subject, scope, packed.clone());
        }
        if strategy.process_cfs {
            let what = UpdatedValues::Attributes {
                scope,
                values: &packed,
            };
            self.worker.local.notify_fields(ValueUpdate {
                subject,
                values: what,
                msg,
            });
        }
        if strategy.send_attributes_updated_notification {
            let metadata = MetadataMap::from_iter([("scope", scope.name())]);
            let body = MessageBody::Packed(packed).to_text().into_owned();
            let mut update =
                QueueMessage::new(MsgType::AttributesUpdated, subject.entity, now, metadata, body);
            update.id = derive_id(msg.id, scope as u64);
            self.send(subject.tenant, vec![update]);
        }
        Ok(())
    }

    fn send_through_chain(
        &mut self,
        entry: &RegisteredField,
        output: &Output,
        mut msg: RuleMessage,
        originator: &Originator,
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
            self.begin();
            self.push(WalkTask::Result(
                NodeResult::enter_default_chain(msg),
                None,
                tenant,
            ));
        } else {
            self.send(tenant, vec![msg.to_message()]);
        }
    }

    async fn relate(&mut self, tenant: TenantId, change: RelationChange) -> Result<(), IngestShutdown> {
        const TEXTS: AttemptTexts = AttemptTexts {
            unavailable: "cannot change a relation, trying again",
            refused: "a relation of a calculated field was refused",
            panicked: "changing a relation has failed",
        };
        let worker = &*self.worker;
        let attempt = async || {
            let relations = worker.shared.services.rules.relations.clone();
            let change = change.clone();
            let changed = spawn_attempt(&worker.shared.services, async move {
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
            match changed.await {
                Err(AttemptError::Service(error)) if error.kind() == ServiceErrorKind::NotFound => Ok(()),
                changed => changed,
            }
        };
        let changed = with_retry(self.writer, attempt, |error| TEXTS.log(error));
        Box::pin(changed).await.map(drop)
    }

    /// An aggregate over an interval of a series.
    async fn interval(
        &mut self,
        of: EntityKey,
        query: &IntervalQuery,
    ) -> Result<Option<KvValue>, IngestShutdown> {
        const TEXTS: AttemptTexts = AttemptTexts::reading(
            "cannot aggregate, trying again",
            "cannot aggregate for a calculated field",
        );
        let aggregation = match query.function {
            AggregationFunction::Min => Aggregation::Min,
            AggregationFunction::Max => Aggregation::Max,
            AggregationFunction::Sum => Aggregation::Sum,
            AggregationFunction::Avg => Aggregation::Avg,
            AggregationFunction::Count => Aggregation::Count,
            AggregationFunction::CountUnique => return self.unique(of, query).await,
        };
        let bucket = AggregationBucket {
            start: query.start,
            end: query.end,
        };
        let series = &self.worker.shared.services.series;
        let read = async || Ok(series.aggregate(of, &query.key, aggregation, &[bucket]).await?);
        let points = with_retry(self.writer, read, |error| TEXTS.log(error)).await?;
        Ok(points.and_then(|points| Some(points.into_iter().next()?.value)))
    }

    /// How many different values an interval has.
    async fn unique(
        &mut self,
        of: EntityKey,
        query: &IntervalQuery,
    ) -> Result<Option<KvValue>, IngestShutdown> {
        const TEXTS: AttemptTexts = AttemptTexts::reading(
            "cannot count, trying again",
            "cannot count for a calculated field",
        );
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
            let series = &self.worker.shared.services.series;
            let read = async || Ok(series.page_or_point(of, &query.key, range, PAGE_BYTES).await?);
            let Some(page) = with_retry(self.writer, read, |error| TEXTS.log(error)).await? else {
                return Ok(None);
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
