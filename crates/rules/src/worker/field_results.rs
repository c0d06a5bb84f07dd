//! What evaluations of calculated fields say is done: values are stored or sent through rule chains, relations made.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::{AttributeParts, RelationKey, RowParts};
use fieldline_core::services::ServiceErrorKind;
use fieldline_model::entity::calculated_field::AggregationFunction;
use fieldline_model::entity::{EntityRelation, RelationTypeGroup};
use fieldline_model::kv::{Value, pack};
use fieldline_model::message::{Message, Metadata, MsgType};
use fieldline_model::timeseries::{Aggregation, AttributeScope, Bucket, Order, RangeQuery};
use fieldline_model::{EntityId, Subject};
use rustc_hash::FxHashSet;
use tracing::warn;
use uuid::Uuid;

use super::Worker;
use super::effects::{AttributeValues, TelemetryValues};
use super::fields::{Shown, salt};
use super::marks::EffectSource;
use super::walk::{Move, Ticket};
use crate::calculated_fields::{
    Field, IntervalAnswer, IntervalQuery, Outcome, Output, OutputKind, OutputStrategyType, RelationChange,
    State, Targets,
};
use crate::feed::{Update, What};
use crate::fields::{Entry, News};
use crate::message::{Data, Msg, derive_id};
use crate::node::Step;
use crate::originators::Originator;

/// Points that are read at once to count different values.
const CHUNK: usize = 10_000;
/// Bytes of them.
const PAGE_BYTES: usize = 4 << 20;
/// Different values that are told apart.
const MAX_UNIQUE: usize = 100_000;
/// Bytes of values that are looked at to tell them apart.
const MAX_UNIQUE_BYTES: usize = 16 << 20;

impl Worker {
    /// Does what an outcome says.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn carry_out(
        &mut self,
        ticket: Ticket,
        (entry, field): (&Arc<Entry>, &Arc<Field>),
        state: &State,
        outcome: Outcome,
        originator: &Arc<Originator>,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        if let Some(reason) = outcome.not_ready {
            let shown = Shown {
                arguments: Some(field.arguments_json(state).to_string()),
                error: Some(reason),
                ..Shown::default()
            };
            self.show_field(entry, originator.id, news, shown);
            return Ok(());
        }
        let mut outputs = outcome.outputs;
        if !outcome.queries.is_empty() {
            self.apply_pending(ticket.partition, store).await?;
            let of = Subject {
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
            let shown = Shown {
                arguments: Some(field.arguments_json(state).to_string()),
                result: Some(results.join(", ")),
                error: None,
            };
            self.show_field(entry, originator.id, news, shown);
        }
        let previous: Arc<[Uuid]> = outcome.previous.iter().map(|id| id.0).collect();
        let news = News {
            previous,
            ..news.clone()
        };
        for output in &outputs {
            let targets = match &output.targets {
                Targets::Own => vec![originator.id],
                Targets::Entities(entities) => entities.clone(),
            };
            for target in targets {
                self.give(ticket, entry, output, target, originator, &news, store, moves)
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
    async fn give(
        &mut self,
        ticket: Ticket,
        entry: &Arc<Entry>,
        output: &Output,
        target: EntityId,
        originator: &Arc<Originator>,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let subject = Subject {
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

    fn save_points(&mut self, output: &Output, subject: Subject, msg: &Msg) {
        let (strategy, now) = (output.strategy, self.now_ms());
        let ttl_seconds = match strategy.ttl {
            0 => self
                .parts
                .feeding
                .of(subject.tenant)
                .map_or(0, |fields| fields.ttl_seconds),
            // Beyond the range is as good as for ever.
            ttl => u32::try_from(ttl).unwrap_or(0),
        };
        let parts = RowParts {
            history: strategy.save_time_series,
            latest: strategy.save_latest,
            shown: strategy.send_ws_update,
        };
        for row in &output.rows {
            let ts = row.ts.unwrap_or(now);
            let values = packed(row.values.iter().map(|(key, value)| (&**key, value)));
            if !parts.is_nothing() {
                let row = TelemetryValues {
                    subject,
                    ts,
                    ttl_seconds,
                    parts,
                    values: values.clone(),
                };
                self.parts.save_telemetry(EffectSource::of(msg, msg.id), row);
            }
            if strategy.process_cfs {
                let what = What::Telemetry { ts, values: &values };
                self.parts.feed(Update { subject, what, msg });
            }
        }
    }

    async fn save_result_attributes(
        &mut self,
        ticket: Ticket,
        output: &Output,
        (subject, scope): (Subject, AttributeScope),
        msg: &Msg,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let (strategy, now) = (output.strategy, self.now_ms());
        let mut values: Vec<(&str, &Value)> = output
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
        let parts = AttributeParts {
            stored: strategy.save_attribute,
            shown: strategy.send_ws_update,
        };
        if parts.stored || parts.shown {
            let saved = AttributeValues {
                subject,
                scope,
                ts: now,
                parts,
                values: packed.clone(),
            };
            self.parts.save_attributes(EffectSource::of(msg, msg.id), saved);
        }
        if parts.stored {
            self.parts.effects.tell_device(subject, scope, packed.clone());
        }
        if strategy.process_cfs {
            let what = What::Attributes {
                scope,
                values: &packed,
            };
            self.parts.feed(Update { subject, what, msg });
        }
        if strategy.send_attributes_updated_notification {
            let metadata = Metadata::from_iter([("scope", scope.name())]);
            let body = Data::Packed(packed).to_text().into_owned();
            let mut told = Message::new(MsgType::AttributesUpdated, subject.entity, now, metadata, body);
            told.id = derive_id(msg.id, scope as u64);
            self.send(ticket, subject.tenant, vec![told], moves);
        }
        Ok(())
    }

    fn send_through_chain(
        &mut self,
        ticket: Ticket,
        entry: &Entry,
        output: &Output,
        mut msg: Msg,
        originator: &Originator,
        moves: &mut Vec<Move>,
    ) {
        let mut metadata = Metadata::from_iter([("calculatedFieldName", entry.name.to_string())]);
        msg.kind = match output.kind {
            OutputKind::TimeSeries => MsgType::PostTelemetry,
            OutputKind::Attributes(scope) => {
                metadata.set("scope", scope.name());
                MsgType::PostAttributes
            }
        };
        msg.meta = metadata.into();
        msg.data = Data::text(output.message_body());
        let tenant = msg.tenant;
        if msg.originator == originator.id {
            self.begin(ticket);
            moves.push(Move::Answer(Step::EnterDefault(msg), None, tenant));
        } else {
            self.send(ticket, tenant, vec![msg.to_message()], moves);
        }
    }

    async fn relate(&mut self, news: &News, change: RelationChange, store: &Applier) -> Result<(), Stopping> {
        let tenant = news.subject.tenant;
        loop {
            let relations = self.common.services.rules.relations.clone();
            let change = change.clone();
            let done = self.common.services.runtime.spawn(async move {
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
        of: Subject,
        query: &IntervalQuery,
        store: &Applier,
    ) -> Result<Option<Value>, Stopping> {
        let aggregation = match query.function {
            AggregationFunction::Min => Aggregation::Min,
            AggregationFunction::Max => Aggregation::Max,
            AggregationFunction::Sum => Aggregation::Sum,
            AggregationFunction::Avg => Aggregation::Avg,
            AggregationFunction::Count => Aggregation::Count,
            AggregationFunction::CountUnique => return self.unique(of, query, store).await,
        };
        let bucket = Bucket {
            start: query.start,
            end: query.end,
        };
        loop {
            match self
                .common
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
        of: Subject,
        query: &IntervalQuery,
        store: &Applier,
    ) -> Result<Option<Value>, Stopping> {
        let mut seen: FxHashSet<Box<str>> = FxHashSet::default();
        let mut seen_bytes = 0;
        let mut start = query.start;
        loop {
            let range = RangeQuery {
                start,
                end: query.end,
                limit: CHUNK,
                order: Order::Ascending,
            };
            let series = &self.common.services.series;
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
                return Ok((count > 0).then_some(Value::Long(count)));
            }
        }
    }
}

fn packed<'a>(values: impl Iterator<Item = (&'a str, &'a Value)>) -> Bytes {
    let mut out = Vec::new();
    for (key, value) in values {
        pack(key, value.as_ref(), &mut out);
    }
    out.into()
}
