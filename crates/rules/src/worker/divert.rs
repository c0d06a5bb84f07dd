//! Messages that leave a shared queue for the lane of their tenant, so that nobody waits for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::ingest::DeliveredBatch;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::AppendFuture;
use fieldline_model::record::diverted::DivertedRecord;
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, message, rows};
use fieldline_model::{EntityKey, TenantId};
use tracing::warn;

use super::batch::MessageOrigin;
use super::late_messages::{self, LateNote};
use super::rounds::{BatchRun, MAX_SUSPENDED};
use super::submit::message_id;
use super::walk::NodeRef;
use crate::engine::{QueueHandle, QueueRole};
use crate::events::EventRecorder;
use crate::fields::FIELD_MESSAGE;
use crate::lanes::SlowLanes;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, NodeError, NodeFuture, NodeResult};
use crate::strategy::MessageOutcome;

/// Messages of one tenant that wait at the same time in a worker that tenants share.
pub(super) const TENANT_SUSPENDED: usize = MAX_SUSPENDED / 4;
/// Bytes that are appended to a lane together.
const BATCH_BYTES: usize = 256 << 10;
/// For how long the messages of a tenant that is alone hold a position: nobody knows who waits behind them.
const LONGEST_HOLD: Duration = Duration::from_secs(10);
/// How old the first record of a delivery is where a worker is behind, milliseconds.
const BEHIND_MS: i64 = 200;
/// How often something that has to stay is tried again while others wait.
const MAX_TRIES: u32 = 3;
/// Another tenant, whichever.
const ANY_OTHER_TENANT: TenantId = TenantId::NULL;
static LANE_GATE: LogGate = LogGate::new(2);
static GIVEN_UP_GATE: LogGate = LogGate::new(1);

/// What leaves the queue of one tenant together.
struct LaneBatch {
    tenant: TenantId,
    records: RecordBatch,
    entries: Vec<(u32, u64)>,
}

impl BatchRun<'_> {
    /// Whether a message leaves the batch before it is tried, because its tenant is slow or takes more than its share.
    pub(super) fn check_divert_at_once(&mut self, index: u32, tenant: TenantId) -> bool {
        let Some(lanes) = self.worker.queue.role.shared_lanes() else {
            return false;
        };
        let patience = lanes.options.patience.0;
        if self.worker.shares.begin_message(tenant, patience) {
            self.mark_slow_if_behind(tenant);
        }
        let Some(lanes) = self.worker.queue.role.open_lanes() else {
            return false;
        };
        if self.worker.messages.suspended.len() >= TENANT_SUSPENDED
            && self.worker.messages.suspended.of(tenant) >= TENANT_SUSPENDED
            && !self.worker.shares.is_alone()
        {
            lanes.mark_slow(tenant);
        }
        // What was on its way when the program ended is known to take long.
        let is_slow = self.delivered.is_none() || lanes.is_slow(tenant);
        is_slow && !self.worker.messages.batch.is_diverting_stopped && self.can_divert(index)
    }

    /// A tenant whose messages take much time each, and together more than its share, is slow if others wait behind it.
    fn mark_slow_if_behind(&mut self, tenant: TenantId) {
        let Some(delivered) = self.delivered else { return };
        let now = self.worker.now_ms();
        let is_behind = delivered
            .readable
            .first()
            .is_some_and(|(_, record)| now.saturating_sub(record.received_ms) > BEHIND_MS);
        if !is_behind {
            return;
        }
        let others = delivered.readable.iter().map(|(_, record)| record.subject.tenant);
        if let Some(other) = others.into_iter().find(|other| *other != tenant) {
            self.worker.shares.mark_present(other);
        }
        self.note_waiting_tenants(tenant, delivered);
        if !self.worker.shares.is_alone() {
            self.worker.queue.role.mark_slow(tenant);
        }
    }

    /// Notes that there are others, where they wait behind what was delivered.
    fn note_waiting_tenants(&mut self, tenant: TenantId, delivered: &DeliveredBatch<'_>) {
        if delivered.waits.has_others(tenant) {
            self.worker.shares.mark_present(ANY_OTHER_TENANT);
        }
    }

    /// Whether the record of a message can be read again elsewhere. What belongs to this partition stays: a message that has
    /// come home, and what fields are told.
    fn can_divert(&self, index: u32) -> bool {
        let Some(record) = self.record_of(index) else {
            return false;
        };
        let RecordBody::Message(bytes) = record.body else {
            return true;
        };
        message::decode(record.subject.entity, record.received_ms, bytes).is_ok_and(|message| match &message
            .from
        {
            Some((_, label)) => !label.is_empty(),
            None => message.msg_type.name() != FIELD_MESSAGE,
        })
    }

    fn record_of<'a>(&'a self, index: u32) -> Option<JournalRecord<'a>> {
        let origin = self.worker.messages.batch.entries.get(index as usize)?.origin;
        match self.delivered {
            Some(delivered) => Some(delivered.readable.get(origin.record_index as usize)?.1),
            None => self.noted(origin).map(|noted| noted.record),
        }
    }

    /// The record of a message that has come due as a note.
    fn noted(&self, origin: MessageOrigin) -> Option<DivertedRecord<'_>> {
        match late_messages::read(&self.worker.due.get(origin.record_index as usize)?.1) {
            Some(LateNote::Record(diverted)) => Some(diverted),
            _ => None,
        }
    }

    /// Lets go of the messages that have waited for long: they leave the batch, or go on without it. What is not to be
    /// done twice lightly stays until the time of the batch is up.
    pub(super) fn divert_overdue(&mut self) {
        let Some(patience) = self
            .worker
            .queue
            .role
            .open_lanes()
            .map(|lanes| lanes.options.patience.0)
        else {
            return;
        };
        let Some(before) = Instant::now().checked_sub(patience) else {
            return;
        };
        let batch = &self.worker.messages.batch;
        let overdue = self
            .worker
            .messages
            .suspended
            .overdue(before, |handle| batch.is_under_way(*handle));
        if let (Some(late), Some(delivered)) = (overdue.first(), self.delivered) {
            self.note_waiting_tenants(late.tenant, delivered);
        }
        if self.worker.shares.is_alone() {
            return;
        }
        for late in overdue {
            self.worker.queue.role.mark_slow(late.tenant);
            if late.calls {
                continue;
            }
            // What fields have taken in comes to its end by itself: done again, it would be told to them twice.
            let goes_on =
                self.strategy.keeps_late() && (late.fields || !self.worker.messages.may_divert(late.handle));
            if goes_on {
                self.detach_message(late.handle.entry);
            } else if self.worker.messages.may_divert(late.handle) {
                self.worker.messages.divert(late.handle.entry);
            }
        }
    }

    /// Lets messages leave that are to be tried again: that happens in the lane. Returns those that are left, and how long
    /// they wait.
    pub(super) async fn divert_retries(
        &mut self,
        again: Vec<u32>,
        pause: Duration,
        held: Duration,
        tries: u32,
    ) -> (Vec<u32>, Duration) {
        let may_stay = self.worker.shares.is_alone() && held < LONGEST_HOLD;
        if self.worker.queue.role.open_lanes().is_none() || may_stay {
            return (again, pause);
        }
        let mut stays = false;
        for index in &again {
            let Some(subject) = self.subject_of(*index) else {
                continue;
            };
            if !self.worker.messages.batch.is_unsuccessful(*index) {
                continue;
            }
            self.worker.queue.role.mark_slow(subject.tenant);
            if !self.worker.messages.batch.is_diverting_stopped && self.can_divert(*index) {
                self.worker.messages.divert(*index);
            } else if tries >= MAX_TRIES {
                self.worker.queue.give_up(
                    subject,
                    "it has failed again and again where it cannot leave its queue",
                    &self.worker.shared.events,
                );
                self.worker.messages.batch.give_up_one(*index);
            } else {
                stays = true;
            }
        }
        self.flush_leaving().await;
        // What has succeeded is not done again because another one's message has failed.
        let is_left = |index: &u32| {
            self.worker.messages.batch.outcome(*index) != MessageOutcome::Done
                && !self.worker.messages.batch.is_given_up(*index)
        };
        let left = again.into_iter().filter(is_left).collect();
        (left, if stays { pause } else { Duration::ZERO })
    }

    /// Appends what has left the batch to its lanes, and waits until it is durable. What the journal does not take
    /// comes back into the batch, which is then left by nothing more.
    pub(super) async fn flush_leaving(&mut self) {
        if self.worker.messages.batch.leaving.is_empty() {
            return;
        }
        let QueueRole::Shared(lanes) = self.worker.queue.role.clone() else {
            return;
        };
        self.worker.shares.rest();
        let patience = self.worker.queue.strategy.read().timeout;
        let mut batches = Vec::new();
        let mut appends: Vec<(LaneBatch, Option<AppendFuture>)> = Vec::new();
        for index in std::mem::take(&mut self.worker.messages.batch.leaving) {
            self.encode_leaving(index, &lanes, &mut batches);
            let full = batches
                .iter()
                .position(|batch: &LaneBatch| batch.records.as_bytes().len() >= BATCH_BYTES);
            if let Some(full) = full {
                let batch = batches.swap_remove(full);
                let append = append(&lanes, &batch, patience).await;
                appends.push((batch, append));
            }
        }
        for batch in batches {
            let append = append(&lanes, &batch, patience).await;
            appends.push((batch, append));
        }
        for (batch, append) in appends {
            let is_durable = match append {
                Some(append) => append.await.is_ok(),
                None => false,
            };
            let messages = batch.entries.len() as u64;
            if is_durable {
                lanes.note(batch.tenant, |counts| counts.diverted += messages);
                metrics::counter!("fieldline_rules_diverted_total").increment(messages);
                continue;
            }
            self.worker.messages.batch.is_diverting_stopped = true;
            for (index, bytes) in batch.entries {
                lanes.release(batch.tenant, bytes);
                self.worker.messages.batch.reinstate(index);
            }
        }
    }

    fn encode_leaving(&mut self, index: u32, lanes: &SlowLanes, batches: &mut Vec<LaneBatch>) {
        let Some(diverted) = self.diverted(index) else {
            self.worker.messages.batch.reinstate(index);
            self.worker.messages.batch.is_diverting_stopped = true;
            return;
        };
        let (subject, bytes) = (diverted.record.subject, diverted.body_len() as u64);
        if !lanes.try_reserve(subject.tenant, bytes) {
            self.worker.queue.give_up(
                subject,
                "too many messages of the tenant wait in its slow lane",
                &self.worker.shared.events,
            );
            self.worker.messages.batch.give_up_one(index);
            return;
        }
        let at = batches.iter().position(|batch| batch.tenant == subject.tenant);
        let at = at.unwrap_or_else(|| {
            batches.push(LaneBatch {
                tenant: subject.tenant,
                records: RecordBatch::new(),
                entries: Vec::new(),
            });
            batches.len() - 1
        });
        if let Some(batch) = batches.get_mut(at) {
            batch.records.push_diverted(&diverted);
            batch.entries.push((index, bytes));
        }
    }

    /// A message of the batch as it goes to a lane.
    pub(super) fn diverted<'a>(&'a self, index: u32) -> Option<DivertedRecord<'a>> {
        let origin = self.worker.messages.batch.entries.get(index as usize)?.origin;
        let Some(delivered) = self.delivered else {
            return Some(DivertedRecord {
                queue: &self.worker.queue.name,
                ..self.noted(origin)?
            });
        };
        let (offset, record) = delivered.readable.get(origin.record_index as usize)?;
        let body = match record.body {
            RecordBody::Telemetry {
                ttl_seconds,
                rows: packed,
            } => {
                let from = packed.get(origin.row as usize..)?;
                let first = rows(from).next()?.ok()?;
                RecordBody::Telemetry {
                    ttl_seconds,
                    rows: from.get(..16 + first.values.len())?,
                }
            }
            body => body,
        };
        Some(DivertedRecord {
            id: message_id(
                self.worker.log_number,
                delivered.records.partition,
                *offset,
                origin.row,
            ),
            queue: &self.worker.queue.name,
            record: JournalRecord { body, ..*record },
        })
    }
}

impl QueueHandle {
    /// Sends a message that leaves a node to its tenant's lane, where it goes on.
    pub(super) fn send_to_lane(
        self: &Arc<Self>,
        msg: &RuleMessage,
        place: &NodeRef,
        label: &ConnectionLabel,
    ) -> NodeFuture {
        let mut message = msg.to_message();
        message.rule_chain = Some(place.chain.id);
        message.from = place.node().map(|node| (node.id, label.0.to_string()));
        let (tenant, queue) = (msg.tenant, self.clone());
        Box::pin(async move {
            let QueueRole::Shared(lanes) = &queue.role else {
                return NodeResult::Done;
            };
            let patience = queue.strategy.read().timeout;
            match lanes.divert(tenant, &message, &queue.name, patience).await {
                Ok(()) => NodeResult::Done,
                Err(error) => NodeResult::Fail(
                    RuleMessage::of(tenant, message),
                    NodeError::new(error.to_string()),
                ),
            }
        })
    }

    /// The end of a message that is not tried any more although it was acknowledged: counted, and told to its tenant. All
    /// that is given up for the sake of others comes here.
    pub(super) fn give_up(&self, subject: EntityKey, reason: &str, events: &EventRecorder) {
        metrics::counter!("fieldline_rules_given_up_total").increment(1);
        let count = match &self.role {
            QueueRole::Shared(lanes) | QueueRole::Lane(lanes) => lanes.note_given_up(subject.tenant),
            QueueRole::Own => GIVEN_UP_GATE.open().map(|suppressed| suppressed + 1),
        };
        let Some(count) = count else { return };
        let error = format!("A message was given up: {reason}; {count} so far");
        warn!(tenant = %subject.tenant, entity = %subject.entity, reason, count, "gave messages of a tenant up");
        events.error(subject.tenant, subject.entity, "slowLane", &error);
    }
}

/// `None` where the journal does not take it.
async fn append(lanes: &SlowLanes, batch: &LaneBatch, patience: Duration) -> Option<AppendFuture> {
    match lanes.append(batch.tenant, &batch.records, patience).await {
        Ok(append) => Some(append),
        Err(error) => {
            if let Some(suppressed) = LANE_GATE.open() {
                let tenant = batch.tenant;
                warn!(%tenant, %error, suppressed, "cannot divert messages, they stay where they are");
            }
            None
        }
    }
}
