//! Messages that go on when their batch does not wait for them any longer.
//!
//! Each is noted until it has ended, as something that is kept: the note is stored with the position behind its batch,
//! so that a message is always before the position or noted. What a start finds noted begins anew, with the same id; in
//! a queue that tenants share it goes to its tenant's slow lane for that.
//!
//! ```text
//! note := 0 u8 · received i64 · body of the diverted record, without the name of its queue
//!       | 1 u8 · due i64 · number u64 · keeper [16] · what was kept
//! ```

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::{Partition, StateKey};
use fieldline_model::record::diverted::{self, DivertedRecord};
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, split};
use fieldline_model::{EntityKey, TenantId};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::batch::DueTimer;
use super::keyed_states::KeyedStates;
use super::rounds::BatchRun;
use super::walk::MessageHandle;
use crate::engine::{QueueHandle, QueueRole};

/// Who keeps the notes.
pub(super) const NOTE_STATE_OWNER: Uuid = Uuid::from_u128(0x1a7e_0000_0000_4000_8000_0000_0000_0001);
const RECORD: u8 = 0;
const DUE: u8 = 1;
/// Bits of a note's number that say where its row begins.
const ROW_BITS: u32 = 24;
/// Bytes of the notes of a worker whose queue is one tenant's own.
const OWN_BYTES: u64 = 32 << 20;
/// How often it is looked at whether the lanes are open, milliseconds.
const LANE_CHECK_INTERVAL_MS: i64 = 100;

/// A message that goes on.
pub(super) struct LateMessage {
    /// Where its note is kept.
    key: StateKey,
    partition: Partition,
    bytes: u64,
    /// How many of what it has become are on their way.
    pending: u32,
}

/// The messages of a worker that go on in the background.
pub(super) struct LateMessageTable {
    queue: Arc<QueueHandle>,
    messages: FxHashMap<(u64, u32), LateMessage>,
    bytes: u64,
}

impl LateMessageTable {
    pub(super) fn new(queue: Arc<QueueHandle>) -> Self {
        Self {
            queue,
            messages: FxHashMap::default(),
            bytes: 0,
        }
    }

    fn has_room(&self, tenant: TenantId, bytes: u64) -> bool {
        match &self.queue.role {
            QueueRole::Own => self.bytes + bytes <= OWN_BYTES,
            QueueRole::Shared(lanes) | QueueRole::Lane(lanes) => lanes.try_reserve_note(tenant, bytes),
        }
    }

    fn add(&mut self, of: (u64, u32), late: LateMessage) {
        self.bytes += late.bytes;
        self.messages.insert(of, late);
    }

    /// Whether a handle is one of a message that goes on.
    pub(super) fn has(&self, handle: MessageHandle) -> bool {
        !self.messages.is_empty() && self.messages.contains_key(&(handle.generation, handle.entry))
    }

    /// Something of a message has begun.
    pub(super) fn begin(&mut self, handle: MessageHandle) {
        if let Some(late) = self.messages.get_mut(&(handle.generation, handle.entry)) {
            late.pending += 1;
        }
    }

    /// Something of a message has ended; the note goes with the last of it.
    pub(super) fn end(&mut self, handle: MessageHandle, states: &mut KeyedStates) {
        if let Some(late) = self.messages.get_mut(&(handle.generation, handle.entry)) {
            late.pending = late.pending.saturating_sub(1);
            if late.pending == 0 {
                self.end_all(handle, states);
            }
        }
    }

    /// A message is over as a whole.
    pub(super) fn end_all(&mut self, handle: MessageHandle, states: &mut KeyedStates) {
        if let Some(late) = self.messages.remove(&(handle.generation, handle.entry)) {
            self.bytes = self.bytes.saturating_sub(late.bytes);
            states.remove(&late.key);
            self.leave_room(&late);
        }
    }

    /// All messages of a tenant are over.
    pub(super) fn end_tenant(&mut self, tenant: TenantId, states: &mut KeyedStates) {
        for late in self.take_all(|late| late.key.subject.tenant == tenant) {
            states.remove(&late.key);
            self.leave_room(&late);
        }
    }

    /// Another worker goes on with a partition, and finds the notes.
    pub(super) fn drop_partition(&mut self, partition: Partition) {
        for late in self.take_all(|late| late.partition == partition) {
            self.leave_room(&late);
        }
    }

    fn leave_room(&self, late: &LateMessage) {
        if let Some(lanes) = self.queue.role.shared_lanes() {
            lanes.release_note(late.key.subject.tenant, late.bytes);
        }
    }

    /// When it is looked again whether something that is due may begin; `None` where it may. Notes wait for the lanes, which
    /// are opened a moment after their queue.
    pub(super) fn waits_for_lanes(&self, due: &DueTimer, now: i64) -> Option<i64> {
        let lanes = self.queue.role.shared_lanes().filter(|_| is_note(&due.key))?;
        let are_coming = lanes.options.count > 0 && !lanes.are_open();
        are_coming.then_some(now + LANE_CHECK_INTERVAL_MS)
    }

    fn take_all(&mut self, is_meant: impl Fn(&LateMessage) -> bool) -> Vec<LateMessage> {
        let messages = self.messages.extract_if(|_, late| is_meant(late));
        let messages: Vec<LateMessage> = messages.map(|(_, late)| late).collect();
        self.bytes -= messages.iter().map(|late| late.bytes).sum::<u64>();
        messages
    }
}

/// What a note says.
pub(super) enum LateNote<'a> {
    /// A record, or a row of one.
    Record(DivertedRecord<'a>),
    /// Something that had come due.
    Due(DueTimer),
}

/// Whether something that was kept is a note.
pub(super) fn is_note(key: &StateKey) -> bool {
    key.owner == NOTE_STATE_OWNER
}

/// Has what the program before was at begin anew.
pub(super) fn load(partition: Partition, states: &mut KeyedStates, now: i64) {
    for key in states.keys_of(NOTE_STATE_OWNER, partition) {
        if let Some(note) = states.get(&key) {
            let due = time_of(&note).min(now);
            states.schedule(&key, Some(due), &note);
        }
    }
}

/// Reads a note; `None` where it is none.
pub(super) fn read(due: &DueTimer) -> Option<LateNote<'_>> {
    if !is_note(&due.key) {
        return None;
    }
    let (kind, rest) = due.value.split_first()?;
    let (time, rest) = rest.split_first_chunk()?;
    let time = i64::from_le_bytes(*time);
    let subject = due.key.subject;
    match *kind {
        RECORD => diverted::decode(subject, time, rest).ok().map(LateNote::Record),
        DUE => {
            let (number, rest) = rest.split_first_chunk()?;
            let (keeper, value) = rest.split_first_chunk()?;
            let key = StateKey {
                subject,
                owner: Uuid::from_bytes(*keeper),
                number: u64::from_le_bytes(*number),
            };
            let value = due.value.slice_ref(value);
            Some(LateNote::Due(DueTimer { key, value, at: time }))
        }
        _ => None,
    }
}

/// When the message of a note was received or came due.
fn time_of(value: &[u8]) -> i64 {
    let time = value.get(1..).and_then(<[u8]>::first_chunk);
    time.map_or(0, |time| i64::from_le_bytes(*time))
}

fn note_of_record(diverted: &DivertedRecord<'_>) -> Option<Vec<u8>> {
    let mut batch = RecordBatch::new();
    // A worker knows the name of its queue.
    batch.push_diverted(&DivertedRecord {
        queue: "",
        ..*diverted
    });
    let record = split(batch.as_bytes()).next()?.ok()?;
    let RecordBody::Diverted(body) = JournalRecord::decode(record).ok()?.body else {
        return None;
    };
    let mut note = Vec::with_capacity(1 + 8 + body.len());
    note.push(RECORD);
    note.extend_from_slice(&diverted.record.received_ms.to_le_bytes());
    note.extend_from_slice(body);
    Some(note)
}

fn note_of_due(due: &DueTimer) -> Vec<u8> {
    let mut note = Vec::with_capacity(1 + 8 + 8 + 16 + due.value.len());
    note.push(DUE);
    note.extend_from_slice(&due.at.to_le_bytes());
    note.extend_from_slice(&due.key.number.to_le_bytes());
    note.extend_from_slice(due.key.owner.as_bytes());
    note.extend_from_slice(&due.value);
    note
}

impl BatchRun<'_> {
    /// Lets go of what is late, where the strategy lets it go on.
    pub(super) fn detach_late(&mut self) {
        if !self.strategy.keeps_late() || self.worker.messages.batch.open == 0 {
            return;
        }
        for index in self.worker.messages.batch.under_way() {
            self.detach_message(index);
        }
    }

    /// The batch does not wait for a message any longer. It goes on in the background, and is noted until it has ended;
    /// where there is no room for the note, it is given up.
    pub(super) fn detach_message(&mut self, index: u32) {
        let (generation, pending) = (
            self.worker.messages.batch.generation_of(index),
            self.worker.messages.batch.pending_of(index),
        );
        let Some((partition, key, note)) = self.note_of(index) else {
            self.worker.messages.batch.detach(index);
            return;
        };
        let (subject, bytes) = (key.subject, note.len() as u64);
        if !self.worker.messages.late.has_room(subject.tenant, bytes) {
            let worker = &mut *self.worker;
            worker.queue.give_up(
                subject,
                "too many messages of the tenant go on in the background",
                &worker.shared.events,
            );
            self.worker.messages.suspended.cancel_message(generation, index);
            self.worker.messages.batch.give_up_one(index);
            return;
        }
        self.worker
            .local
            .keyed_states
            .put(partition, key.clone(), None, &note);
        let late = LateMessage {
            key,
            partition,
            bytes,
            pending,
        };
        self.worker.messages.late.add((generation, index), late);
        self.worker.messages.batch.detach(index);
    }

    /// The note of a message of the batch, and where it is kept.
    fn note_of(&self, index: u32) -> Option<(Partition, StateKey, Bytes)> {
        let origin = self.worker.messages.batch.entries.get(index as usize)?.origin;
        let key = |subject: EntityKey, number| StateKey {
            subject,
            owner: NOTE_STATE_OWNER,
            number,
        };
        let Some(delivered) = self.delivered else {
            let (partition, due) = self.worker.due.get(origin.record_index as usize)?;
            if is_note(&due.key) {
                return Some((*partition, due.key.clone(), due.value.clone()));
            }
            let key = key(due.key.subject, due.hash());
            return Some((*partition, key, note_of_due(due).into()));
        };
        let (offset, record) = delivered.readable.get(origin.record_index as usize)?;
        let note = note_of_record(&self.diverted(index)?)?;
        // In the order of the records.
        let number = (offset.0 << ROW_BITS) | u64::from(origin.row);
        Some((
            delivered.records.partition,
            key(record.subject, number),
            note.into(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::DeviceId;
    use fieldline_model::kv::{KvValueRef, pack};

    use super::*;

    fn key(keeper: Uuid) -> StateKey {
        StateKey {
            subject: EntityKey::device(TenantId::new(), DeviceId::new()),
            owner: keeper,
            number: 7,
        }
    }

    #[test]
    fn notes_say_what_was_noted() {
        let kept = DueTimer {
            key: key(Uuid::from_u128(9)),
            value: Bytes::from_static(b"kept"),
            at: -5,
        };
        assert!(read(&kept).is_none());
        let mut note = DueTimer {
            key: StateKey {
                owner: NOTE_STATE_OWNER,
                number: kept.hash(),
                ..kept.key.clone()
            },
            value: note_of_due(&kept).into(),
            at: 100,
        };
        assert_eq!(time_of(&note.value), -5);
        let Some(LateNote::Due(found)) = read(&note) else {
            panic!("what was due is not found")
        };
        assert_eq!((&found.key, &found.value), (&kept.key, &kept.value));
        assert_eq!(found.hash(), kept.hash(), "what it creates has the same ids");

        let mut batch = RecordBatch::new();
        let mut rows = batch.begin_telemetry(kept.key.subject, 17, 60);
        rows.begin_row(5);
        pack("n", KvValueRef::Long(1), rows.buffer());
        rows.count_point();
        rows.finish();
        let record = JournalRecord::decode(split(batch.as_bytes()).next().unwrap().unwrap()).unwrap();
        let diverted = DivertedRecord {
            id: Uuid::from_u128(3),
            queue: "Main",
            record,
        };
        note.value = note_of_record(&diverted).unwrap().into();
        assert_eq!(time_of(&note.value), 17);
        let Some(LateNote::Record(found)) = read(&note) else {
            panic!("the record is not found")
        };
        assert_eq!((found.id, found.record), (diverted.id, diverted.record));
        note.value.truncate(20);
        assert!(read(&note).is_none());
    }
}
