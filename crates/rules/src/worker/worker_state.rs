//! What a worker has on its own thread, lent to nodes while they handle a message.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::{Offset, Partition, StateKey, StateRow};
use fieldline_core::usage::UsageCounter;
use fieldline_devices::downlink::DeviceLink;
use fieldline_model::EntityKey;

use super::effects::{AttributeValues, PendingEffects, TelemetryValues};
use super::fields::FieldEventQueue;
use super::keyed_states::KeyedStates;
use super::marks::{EffectMarks, EffectSource};
use super::time_shares::TimeShares;
use crate::engine::EngineShared;
use crate::fields::FieldEvent;
use crate::value_update::ValueUpdate;

/// What takes less to store is not worth being divided among tenants.
const MIN_CHARGED_STORE_TIME: Duration = Duration::from_millis(1);

/// What a worker has on its own thread.
pub struct WorkerState {
    /// What waits to be stored.
    pub effects: PendingEffects,
    /// What is kept between messages.
    pub keyed_states: KeyedStates,
    /// What has been stored already of messages that are not done with.
    pub marks: EffectMarks,
    /// Number of the record that the message belongs to, where that is not done with.
    pub record: Option<u64>,
    /// Partition of the message that is being handled.
    pub partition: Partition,
    /// Nothing is kept where it works: messages go home for that.
    pub is_lane: bool,
    /// Partitions of its queue, by which originators are divided.
    pub partitions: u16,
    /// The calculated fields of tenants, and what they are to be told.
    pub field_events: FieldEventQueue,
    /// Counts what tenants use.
    pub meter: UsageCounter,
    /// Is told what it has stored.
    devices: Arc<dyn DeviceLink>,
}

impl WorkerState {
    /// Parts of a worker of a queue with so many partitions.
    pub(crate) fn new(partitions: u16, partition: Partition, shared: &EngineShared) -> Self {
        Self {
            effects: PendingEffects::default(),
            keyed_states: KeyedStates::default(),
            marks: EffectMarks::default(),
            record: None,
            partition,
            is_lane: false,
            partitions,
            field_events: FieldEventQueue::default(),
            meter: UsageCounter::new(shared.services.usage.clone()),
            devices: shared.services.devices.clone(),
        }
    }

    /// Applies what waits, with what is kept, as of a position.
    pub(super) async fn apply(
        &mut self,
        partition: Partition,
        next: Offset,
        shares: &mut TimeShares,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.meter.flush();
        if !self.is_lane {
            let is_done = |record| record <= next.0;
            self.marks.forget(partition, &mut self.keyed_states, is_done);
        }
        let states = self.keyed_states.take_changes(partition);
        let effects = self.effects.with(states);
        let began = Instant::now();
        writer.apply(partition, next, &effects).await?;
        self.charge_storing(began.elapsed(), shares);
        self.effects.complete(&*self.devices);
        Ok(())
    }

    /// The same between records.
    pub(super) async fn apply_between_records(
        &mut self,
        partition: Partition,
        shares: &mut TimeShares,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.meter.flush();
        let mut states = self.keyed_states.take_changes(partition);
        if self.is_lane {
            // Of messages that go on.
            states.extend(self.mark_pending(partition));
        }
        let effects = self.effects.with(states);
        let began = Instant::now();
        writer.apply_between_records(partition, &effects).await?;
        self.charge_storing(began.elapsed(), shares);
        self.effects.complete(&*self.devices);
        Ok(())
    }

    /// Applies what waits where partitions stand.
    pub(super) async fn apply_everywhere(
        &mut self,
        partitions: &[Partition],
        shares: &mut TimeShares,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.meter.flush();
        for partition in partitions {
            if !self.effects.is_empty() || self.keyed_states.has_changes(*partition) {
                self.apply_between_records(*partition, shares, writer).await?;
            }
        }
        Ok(())
    }

    /// Applies what messages have done so far, so that what is read next is as they left it. What is kept waits for the end
    /// of the batch: it belongs to the position behind it.
    pub(super) async fn apply_pending(
        &mut self,
        partition: Partition,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        if self.effects.is_empty() {
            return Ok(());
        }
        let marks = self.mark_pending(partition);
        writer
            .apply_between_records(partition, &self.effects.with(marks))
            .await?;
        self.effects.complete(&*self.devices);
        Ok(())
    }

    /// What takes long to store has cost its tenants that time, as if their messages had taken it.
    fn charge_storing(&self, took: Duration, shares: &mut TimeShares) {
        if took >= MIN_CHARGED_STORE_TIME {
            shares.charge(took, &self.effects.bytes_of_tenants());
        }
    }

    /// Marks what waits and belongs to records that are not done with; returns what is to be stored with it.
    pub fn mark_pending(&mut self, partition: Partition) -> Vec<StateRow> {
        let marks = self.effects.marks();
        self.marks.add(partition, marks, &mut self.keyed_states)
    }

    /// A record is done with, whatever waits of it.
    pub fn end_record(&mut self, partition: Partition, number: u64) {
        self.effects.end_record(number);
        self.marks
            .forget(partition, &mut self.keyed_states, |record| record == number);
    }
}

/// What nodes do with it.
impl WorkerState {
    /// Has values stored, unless they were before the message was done again; returns whether they are.
    pub(crate) fn save_telemetry(&mut self, source: EffectSource, values: TelemetryValues) -> bool {
        let is_new = self.marks.is_empty()
            || !self
                .marks
                .contains(source.telemetry_mark(values.subject, values.ts, &values.values));
        if is_new {
            let from = self.record.map(|record| (source, record));
            self.effects.telemetry(values, from);
        }
        is_new
    }

    /// The same for attributes.
    pub(crate) fn save_attributes(&mut self, source: EffectSource, values: AttributeValues) {
        let is_new = self.marks.is_empty()
            || !self
                .marks
                .contains(source.attributes_mark(values.subject, values.scope, &values.values));
        if is_new {
            let from = self.record.map(|record| (source, record));
            self.effects.attributes(values, from);
        }
    }

    /// Keeps something, until a time where one is given.
    pub(crate) fn set_state(&mut self, key: StateKey, due_ms: Option<i64>, value: &[u8]) {
        self.keyed_states.put(self.partition, key, due_ms, value);
    }

    /// Keeps it no longer.
    pub(crate) fn clear_state(&mut self, key: &StateKey) {
        self.keyed_states.remove(key);
    }

    /// Whether an entity's states are kept in the partition that is being worked on.
    pub(crate) fn owns(&self, subject: EntityKey) -> bool {
        !self.is_lane
            && fieldline_core::ingest::partition_index(subject.entity.id, self.partitions)
                == self.partition.index
    }

    /// Tells calculated fields, which are evaluated before the message goes on.
    pub(crate) fn notify_fields(&mut self, update: ValueUpdate<'_>) {
        if let Some(fields) = self.field_events.of(update.subject.tenant)
            && let Some(event) = FieldEvent::of_update(fields, &update)
        {
            self.field_events.pending.push(event);
        }
    }
}
