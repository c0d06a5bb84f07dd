//! What a worker has on its own thread, lent to nodes while they handle a message.

use fieldline_core::ports::{Partition, StateKey, StateRow};
use fieldline_core::usage::UsageCounter;
use fieldline_model::EntityKey;

use super::effects::{AttributeValues, PendingEffects, TelemetryValues};
use super::fields::FieldEventQueue;
use super::keyed_states::KeyedStates;
use super::marks::{EffectMarks, EffectSource};
use crate::engine::EngineShared;
use crate::fields::FieldEvent;
use crate::node::NodeFuture;
use crate::value_update::ValueUpdate;

/// What a worker has on its own thread.
pub struct WorkerState {
    /// What waits to be stored.
    pub effects: PendingEffects,
    /// What is kept between messages.
    pub states: KeyedStates,
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
    /// Further work that the message has led to; it is acknowledged when that is done too.
    pub branches: Vec<NodeFuture>,
    /// The calculated fields of tenants, and what they are to be told.
    pub field_events: FieldEventQueue,
    /// Counts what tenants use.
    pub meter: UsageCounter,
}

impl WorkerState {
    /// Parts of a worker of a queue with so many partitions.
    pub(super) fn new(partitions: u16, partition: Partition, common: &EngineShared) -> Self {
        Self {
            effects: PendingEffects::default(),
            states: KeyedStates::default(),
            marks: EffectMarks::default(),
            record: None,
            partition,
            is_lane: false,
            partitions,
            branches: Vec::new(),
            field_events: FieldEventQueue::default(),
            meter: UsageCounter::new(common.services.usage.clone()),
        }
    }

    /// Has values stored, unless they were before the message was done again; returns whether they are.
    pub fn save_telemetry(&mut self, source: EffectSource, values: TelemetryValues) -> bool {
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
    pub fn save_attributes(&mut self, source: EffectSource, values: AttributeValues) {
        let is_new = self.marks.is_empty()
            || !self
                .marks
                .contains(source.attributes_mark(values.subject, values.scope, &values.values));
        if is_new {
            let from = self.record.map(|record| (source, record));
            self.effects.attributes(values, from);
        }
    }

    /// Marks what waits and belongs to records that are not done with; returns what is to be stored with it.
    pub fn mark_pending(&mut self, partition: Partition) -> Vec<StateRow> {
        let marks = self.effects.marks();
        self.marks.add(partition, marks, &mut self.states)
    }

    /// A record is done with, whatever waits of it.
    pub fn end_record(&mut self, partition: Partition, number: u64) {
        self.effects.end_record(number);
        self.marks
            .forget(partition, &mut self.states, |record| record == number);
    }

    /// Keeps something.
    pub fn set_state(&mut self, key: StateKey, due_ms: Option<i64>, value: &[u8]) {
        self.states.put(self.partition, key, due_ms, value);
    }

    /// Keeps it no longer.
    pub fn clear_state(&mut self, key: &StateKey) {
        self.states.remove(key);
    }

    /// Whether an entity's states are kept in the partition that is being worked on.
    pub fn owns(&self, subject: EntityKey) -> bool {
        !self.is_lane
            && fieldline_core::ingest::partition_index(subject.entity.id, self.partitions)
                == self.partition.index
    }

    /// Tells calculated fields, which are evaluated before the message goes on.
    pub fn notify_fields(&mut self, update: ValueUpdate<'_>) {
        if let Some(fields) = self.field_events.of(update.subject.tenant)
            && let Some(news) = FieldEvent::of_update(fields, &update)
        {
            self.field_events.pending.push(news);
        }
    }
}
