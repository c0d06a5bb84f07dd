//! Making messages of records, and starting them.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ingest::{DeliveredBatch, EffectWriter, IngestShutdown};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{Offset, Partition};
use fieldline_core::usage::ApiFeature;
use fieldline_model::budget::EvaluationBudget;
use fieldline_model::message::{DataType, MsgType, QueueMessage};
use fieldline_model::record::diverted::DivertedRecord;
use fieldline_model::record::{JournalRecord, RecordBody, message, rows};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, EntityKey, EntityType, RuleNodeId, TenantId};
use rustc_hash::{FxHashMap, FxHashSet};
use tracing::{error, warn};
use uuid::Uuid;

use super::RuleWorker;
use super::batch::MessageOrigin;
use super::fields::{DeliverFieldEvents, DeliverFieldMessage, FireFieldTimer};
use super::late_messages::{self, LateNote};
use super::node_run::{FireNodeTimer, RunNode};
use super::retry::with_retry;
use super::rounds::BatchRun;
use super::walk::{NodeRef, WalkTask};
use crate::fields::FIELD_MESSAGE;
use crate::message::{MessageBody, MessageMetadata, RuleMessage, derive_id};
use crate::node::{ConnectionLabel, NodeResult};
use crate::originators::Originator;
use crate::stats::LastFailure;

/// Originators that are looked up with one query.
const LOOKUP_BATCH: usize = 500;
static LOOK_UP_GATE: LogGate = LogGate::new(2);

impl BatchRun<'_> {
    /// Starts a message of the batch.
    pub(super) async fn submit(&mut self, index: u32) -> Result<(), IngestShutdown> {
        let Some(entry) = self.worker.batch.entries.get(index as usize) else {
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
            id: message_id(delivered.records.partition, *offset, origin.row),
            row: origin.row,
            bytes: &delivered.records.bytes,
        };
        let among = Some((delivered, origin.record_index));
        self.worker
            .start_record(index, record, source, among, self.writer)
            .await
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
                return self.start_record(index, &record, source, None, writer).await;
            }
            Some(LateNote::Due(noted)) => noted,
            None => due,
        };
        let tenant = due.key.subject.tenant;
        let chains = self.chains(tenant, writer).await?;
        let handle = self.handle(index);
        self.batch.begin_of(index);
        match chains.node(RuleNodeId(due.key.owner)) {
            Some((chain, at)) => {
                let place = NodeRef::new(chain, at);
                self.walk(
                    handle,
                    [WalkTask::NodeTimer(FireNodeTimer { due, place })],
                    writer,
                )
                .await
            }
            None => {
                self.walk(handle, [WalkTask::FieldTimer(FireFieldTimer(due))], writer)
                    .await
            }
        }
    }

    /// Starts the message of a record, or of a row of it. `among` says which records of a delivery come after it.
    pub(super) async fn start_record(
        &mut self,
        index: u32,
        record: &JournalRecord<'_>,
        source: MessageSource<'_>,
        among: Option<(&DeliveredBatch<'_>, u32)>,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let subject = record.subject;
        let chains = self.chains(subject.tenant, writer).await?;
        let handle = self.handle(index);
        self.batch.begin_of(index);
        if !self.local.meter.allows(subject.tenant, ApiFeature::RuleEngine) {
            self.end(handle, None);
            return Ok(());
        }
        if let RecordBody::Message(bytes) = record.body {
            return self.submit_message(index, record, bytes, writer).await;
        }
        let originator = match among {
            Some((delivered, from)) => self.originator(subject, delivered, from, writer).await?,
            None => self.find(subject, writer).await?,
        };
        let Some(originator) = originator else {
            // It was deleted meanwhile, with all that it has.
            self.end(handle, None);
            return Ok(());
        };
        let Some(msg) = device_message(record, &source, &originator) else {
            self.end(handle, None);
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
                self.walk(handle, [WalkTask::Enter(RunNode { msg, place })], writer)
                    .await
            }
            None => {
                self.end_without_chain(index, chain.is_some());
                Ok(())
            }
        }
    }

    /// A chain without a first node acknowledges all; without a chain nothing can be done.
    fn end_without_chain(&mut self, index: u32, has_chain: bool) {
        let failure = (!has_chain).then(|| LastFailure {
            chain: String::new(),
            node: String::new(),
            error: "the tenant has no root rule chain".to_owned(),
        });
        self.end(self.handle(index), failure);
    }

    async fn submit_message(
        &mut self,
        index: u32,
        record: &JournalRecord<'_>,
        bytes: &[u8],
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let subject = record.subject;
        match message::decode(subject.entity, record.received_ms, bytes) {
            Ok(decoded) => self.submit_decoded(index, subject.tenant, decoded, writer).await,
            Err(error) => {
                warn!(%error, "skipped a message that cannot be decoded");
                self.end(self.handle(index), None);
                Ok(())
            }
        }
    }

    /// Starts a message that waited in a queue.
    pub(super) async fn submit_decoded(
        &mut self,
        index: u32,
        tenant: TenantId,
        decoded: QueueMessage,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let handle = self.handle(index);
        let subject = EntityKey {
            tenant,
            entity: decoded.originator,
        };
        let chains = self.chains(subject.tenant, writer).await?;
        let (from, chain) = (decoded.from.clone(), decoded.rule_chain);
        if !self.queue.role.is_own() {
            self.pin_local_message(index, &decoded);
        }
        let mut msg = RuleMessage::of(subject.tenant, decoded);
        if msg.ttl_seconds == 0 {
            msg.ttl_seconds = chains.ttl_seconds;
        }
        // What a device calls was queued before anybody had looked the device up.
        let is_call = from.is_none() && msg.kind == MsgType::ToServerRpc;
        if msg.customer.is_none() || is_call {
            let found = self.find(subject, writer).await?;
            if let Some(found) = found.as_ref().filter(|_| is_call) {
                msg.meta.set("deviceName", &*found.name);
                msg.meta.set("deviceType", &*found.profile_name);
            }
            msg.customer = msg.customer.or(found.and_then(|found| found.customer));
        }
        if from.is_none() && msg.kind.name() == FIELD_MESSAGE {
            return self
                .walk(handle, [WalkTask::FieldMessage(DeliverFieldMessage(msg))], writer)
                .await;
        }
        let event = match from {
            None => self.field_event_of(&mut msg),
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
                    self.end(handle, None);
                    return Ok(());
                }
            },
            None => {
                let step = match chain {
                    Some(chain) => NodeResult::enter_chain(msg, chain),
                    None => {
                        self.find(subject, writer).await?;
                        NodeResult::enter_default_chain(msg)
                    }
                };
                WalkTask::Result(step, None, subject.tenant)
            }
        };
        if event.is_some() {
            self.batch.begin_of(index);
        }
        let event = event.map(|event| WalkTask::NotifyFields(DeliverFieldEvents(vec![event])));
        self.walk(handle, std::iter::once(first).chain(event), writer)
            .await
    }

    /// The originator of a record. Those that the records after it need are looked up together with it.
    async fn originator(
        &mut self,
        subject: EntityKey,
        delivered: &DeliveredBatch<'_>,
        from: u32,
        writer: &EffectWriter,
    ) -> Result<Option<Arc<Originator>>, IngestShutdown> {
        let originators = &self.shared.services.originators;
        if let Some(known) = originators.peek(subject) {
            return Ok(Some(known));
        }
        let mut missing: FxHashMap<_, FxHashSet<DeviceId>> = FxHashMap::default();
        let mut count = 0;
        for (_, record) in delivered.readable.iter().skip(from as usize) {
            let subject = record.subject;
            if subject.entity.entity_type == EntityType::Device && originators.peek(subject).is_none() {
                count += usize::from(
                    missing
                        .entry(subject.tenant)
                        .or_default()
                        .insert(DeviceId(subject.entity.id)),
                );
                if count >= LOOKUP_BATCH {
                    break;
                }
            }
        }
        let originators = originators.clone();
        let loading = self.shared.services.runtime.spawn(async move {
            for (tenant, ids) in missing {
                let ids: Vec<DeviceId> = ids.into_iter().collect();
                originators.load_devices(tenant, &ids).await?;
            }
            Ok::<_, fieldline_core::ports::StoreError>(())
        });
        if let Ok(Err(error)) = loading.await {
            warn!(%error, "cannot look devices up");
        }
        self.find(subject, writer).await
    }

    /// The originator of a message, waiting until it can be looked up. One that can never be read has no name: its messages
    /// go on as those of somebody without one.
    pub(super) async fn find(
        &mut self,
        subject: EntityKey,
        writer: &EffectWriter,
    ) -> Result<Option<Arc<Originator>>, IngestShutdown> {
        let originators = &self.shared.services.originators;
        if let Some(known) = originators.peek(subject) {
            return Ok(Some(known));
        }
        let look_up = async || {
            let originators = originators.clone();
            self.spawn_attempt(async move { originators.get(subject).await })
                .await
        };
        let found = with_retry(writer, look_up, |error| {
            let Some(suppressed) = LOOK_UP_GATE.open() else {
                return error.decide();
            };
            if error.is_retryable() {
                warn!(%error, suppressed, "cannot look an originator up, trying again");
            } else {
                error!(entity = %subject.entity, %error, suppressed, "an originator cannot be read");
            }
            error.decide()
        });
        Ok(found.await?.unwrap_or_else(|| Some(nameless(subject))))
    }
}

fn nameless(subject: EntityKey) -> Arc<Originator> {
    Arc::new(Originator {
        id: subject.entity,
        name: "".into(),
        label: "".into(),
        profile_name: "".into(),
        customer: None,
        profile: None,
    })
}

/// The same for the same record, however often it is read.
pub(super) fn message_id(partition: Partition, offset: Offset, row: u32) -> Uuid {
    let place = (u64::from(partition.queue.0) << 48) | (u64::from(partition.index) << 32) | u64::from(row);
    derive_id(Uuid::from_u64_pair(offset.0, place), 0)
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
