//! Making messages of records, and starting them.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ingest::{DeliveredBatch, EffectWriter, IngestShutdown};
use fieldline_core::ports::{Offset, Partition};
use fieldline_core::usage::ApiFeature;
use fieldline_model::budget::EvaluationBudget;
use fieldline_model::message::{DataType, MsgType, QueueMessage};
use fieldline_model::record::diverted::DivertedRecord;
use fieldline_model::record::{JournalRecord, RecordBody, message, rows};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityKey, RuleNodeId, TenantId};
use tracing::warn;
use uuid::Uuid;

use super::RuleWorker;
use super::batch::MessageOrigin;
use super::fields::{DeliverFieldEvents, DeliverFieldMessage, FireFieldTimer};
use super::late_messages::{self, LateNote};
use super::node_run::{FireNodeTimer, RunNode};
use super::originator_lookup::find_originator_among;
use super::rounds::BatchRun;
use super::walk::{NodeRef, WalkContext, WalkTask};
use crate::fields::FIELD_MESSAGE;
use crate::message::{MessageBody, MessageMetadata, RuleMessage, derive_id};
use crate::node::{ConnectionLabel, NodeResult};
use crate::originators::Originator;
use crate::stats::LastFailure;

impl BatchRun<'_> {
    /// Starts a message of the batch.
    pub(super) async fn submit(&mut self, index: u32) -> Result<(), IngestShutdown> {
        let Some(entry) = self.worker.messages.batch.entries.get(index as usize) else {
            return Ok(());
        };
        let origin = entry.origin;
        let Some(delivered) = self.delivered else {
            return self.worker.submit_due(index, origin, self.writer).await;
        };
        let Some((offset, record)) = delivered.readable.get(origin.record_index as usize) else {
            return Ok(());
        };
        let source = MessageSource {
            id: message_id(
                self.worker.log_number,
                delivered.records.partition,
                *offset,
                origin.row,
            ),
            row: origin.row,
            bytes: &delivered.records.bytes,
        };
        let among = Some((delivered, origin.record_index));
        let handle = self.worker.handle(index);
        let mut cx = self.worker.walk_context(handle, self.writer);
        cx.start_record(record, source, among).await
    }
}

impl RuleWorker {
    /// Starts what has come due.
    pub(super) async fn submit_due(
        &mut self,
        index: u32,
        origin: MessageOrigin,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let Some((partition, due)) = self.due.get(origin.record_index as usize).cloned() else {
            return Ok(());
        };
        self.local.partition = partition;
        let due = match late_messages::read(&due) {
            Some(LateNote::Record(DivertedRecord { id, record, .. })) => {
                let source = MessageSource {
                    id,
                    row: 0,
                    bytes: &due.value,
                };
                let handle = self.handle(index);
                let mut cx = self.walk_context(handle, writer);
                return cx.start_record(&record, source, None).await;
            }
            Some(LateNote::Due(noted)) => noted,
            None => due,
        };
        let tenant = due.key.subject.tenant;
        let chains = self.chains(tenant, writer).await?;
        self.messages.batch.begin_of(index);
        let handle = self.handle(index);
        let mut cx = self.walk_context(handle, writer);
        let first = match chains.node(RuleNodeId(due.key.owner)) {
            Some((chain, at)) => {
                let place = NodeRef::new(chain, at);
                WalkTask::NodeTimer(FireNodeTimer { due, place })
            }
            None => WalkTask::FieldTimer(FireFieldTimer(due)),
        };
        cx.walk([first]).await
    }
}

impl WalkContext<'_> {
    /// Starts the message of a record, or of a row of it. `among` says which records of a delivery come after it.
    pub(super) async fn start_record(
        &mut self,
        record: &JournalRecord<'_>,
        source: MessageSource<'_>,
        among: Option<(&DeliveredBatch<'_>, u32)>,
    ) -> Result<(), IngestShutdown> {
        let subject = record.subject;
        let chains = self.worker.chains(subject.tenant, self.writer).await?;
        self.worker.messages.batch.begin_of(self.handle.entry);
        if !self
            .worker
            .local
            .meter
            .allows(subject.tenant, ApiFeature::RuleEngine)
        {
            self.end();
            return Ok(());
        }
        if let RecordBody::Message(bytes) = record.body {
            return self.start_message(record, bytes).await;
        }
        let services = &self.worker.shared.services;
        let originator = match among {
            Some((delivered, from)) => {
                find_originator_among(services, subject, delivered, from, self.writer).await?
            }
            None => self.find(subject).await?,
        };
        let Some(originator) = originator else {
            // It was deleted meanwhile, with all that it has.
            self.end();
            return Ok(());
        };
        let Some(msg) = device_message(record, &source, &originator) else {
            self.end();
            return Ok(());
        };
        let chain = originator.profile.as_ref().and_then(|profile| profile.rule_chain);
        let chain = match chain {
            Some(id) => chains.chain(id).or_else(|| chains.root()),
            None => chains.root(),
        };
        match chain.and_then(|chain| Some((chain, chain.first?))) {
            Some((chain, at)) => {
                let place = NodeRef::new(chain, at);
                self.walk([WalkTask::Enter(RunNode { msg, place })]).await
            }
            None => {
                // A chain without a first node acknowledges all; without a chain nothing can be done.
                let failure = chain.is_none().then(|| LastFailure {
                    chain: String::new(),
                    node: String::new(),
                    error: "the tenant has no root rule chain".to_owned(),
                });
                self.end_with(failure);
                Ok(())
            }
        }
    }

    async fn start_message(
        &mut self,
        record: &JournalRecord<'_>,
        bytes: &[u8],
    ) -> Result<(), IngestShutdown> {
        let subject = record.subject;
        match message::decode(subject.entity, record.received_ms, bytes) {
            Ok(decoded) => self.start_decoded(subject.tenant, decoded).await,
            Err(error) => {
                warn!(%error, "skipped a message that cannot be decoded");
                self.end();
                Ok(())
            }
        }
    }

    /// Starts a message that waited in a queue.
    pub(super) async fn start_decoded(
        &mut self,
        tenant: TenantId,
        decoded: QueueMessage,
    ) -> Result<(), IngestShutdown> {
        let subject = EntityKey {
            tenant,
            entity: decoded.originator,
        };
        let chains = self.worker.chains(subject.tenant, self.writer).await?;
        let (from, chain) = (decoded.from.clone(), decoded.rule_chain);
        if !self.worker.queue.role.is_own() {
            self.worker
                .messages
                .pin_local_message(self.handle.entry, &decoded);
        }
        let mut msg = RuleMessage::of(subject.tenant, decoded);
        if msg.ttl_seconds == 0 {
            msg.ttl_seconds = chains.ttl_seconds;
        }
        // What a device calls was queued before anybody had looked the device up.
        let is_call = from.is_none() && msg.kind == MsgType::ToServerRpc;
        if msg.customer.is_none() || is_call {
            let found = self.find(subject).await?;
            if let Some(found) = found.as_ref().filter(|_| is_call) {
                msg.meta.set("deviceName", &*found.name);
                msg.meta.set("deviceType", &*found.profile_name);
            }
            msg.customer = msg.customer.or(found.and_then(|found| found.customer));
        }
        if from.is_none() && msg.kind.name() == FIELD_MESSAGE {
            return self
                .walk([WalkTask::FieldMessage(DeliverFieldMessage(msg))])
                .await;
        }
        let event = match from {
            None => self.worker.local.field_events.event_of(&mut msg),
            Some(_) => None,
        };
        let first = match from {
            Some((node, label)) => match chains.node(node) {
                Some((chain, at)) => {
                    let place = NodeRef::new(chain, at);
                    if label.is_empty() {
                        WalkTask::Enter(RunNode { msg, place })
                    } else {
                        WalkTask::Leave(msg, place, ConnectionLabel::from(label))
                    }
                }
                // The node was removed meanwhile.
                None => {
                    self.end();
                    return Ok(());
                }
            },
            None => {
                let step = match chain {
                    Some(chain) => NodeResult::enter_chain(msg, chain),
                    None => {
                        self.find(subject).await?;
                        NodeResult::enter_default_chain(msg)
                    }
                };
                WalkTask::Result(step, None, subject.tenant)
            }
        };
        if event.is_some() {
            self.worker.messages.batch.begin_of(self.handle.entry);
        }
        let event = event.map(|event| WalkTask::NotifyFields(DeliverFieldEvents(vec![event])));
        self.walk(std::iter::once(first).chain(event)).await
    }
}

/// The same for the same record, however often it is read, and another one for each record of another log: what is made
/// of a message has its id from it.
pub(super) fn message_id(log_number: u64, partition: Partition, offset: Offset, row: u32) -> Uuid {
    let place = (u64::from(partition.queue.0) << 48) | (u64::from(partition.index) << 32) | u64::from(row);
    derive_id(Uuid::from_u64_pair(offset.0, place), log_number)
}

/// Where a message comes from that is made of a record.
pub(super) struct MessageSource<'a> {
    /// The message's id.
    pub(super) id: Uuid,
    /// Where its row begins within the record's rows.
    pub(super) row: u32,
    /// What the record is part of.
    pub(super) bytes: &'a Bytes,
}

fn device_message(
    record: &JournalRecord<'_>,
    &MessageSource { id, row, bytes }: &MessageSource<'_>,
    originator: &Arc<Originator>,
) -> Option<RuleMessage> {
    let base = |kind, ts, data, ttl_seconds| RuleMessage {
        id,
        ts: record.received_ms,
        tenant: record.subject.tenant,
        kind,
        originator: record.subject.entity,
        customer: originator.customer,
        meta: MessageMetadata::Device {
            device: originator.clone(),
            ts,
        },
        data_type: DataType::Json,
        data,
        ttl_seconds,
        hops: 0,
        moves: 0,
        callers: None,
        previous_fields: None,
        budget: EvaluationBudget::new(),
    };
    match record.body {
        RecordBody::Telemetry {
            ttl_seconds,
            rows: packed,
        } => {
            let row = rows(packed.get(row as usize..)?).next()?.ok()?;
            let values = MessageBody::Packed(bytes.slice_ref(row.values));
            Some(base(MsgType::PostTelemetry, Some(row.ts), values, ttl_seconds))
        }
        RecordBody::Attributes { scope, values } => {
            let values = MessageBody::Packed(bytes.slice_ref(values));
            let mut msg = base(MsgType::PostAttributes, None, values, 0);
            if scope != AttributeScope::Client {
                msg.meta.set("scope", scope.name());
            }
            Some(msg)
        }
        RecordBody::Message(_) | RecordBody::Diverted(_) => None,
    }
}
