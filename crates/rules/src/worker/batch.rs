//! The messages of one batch, and how it stands with each.

use bytes::Bytes;
use fieldline_core::ingest::DeliveredBatch;
use fieldline_core::ports::StateKey;
use fieldline_model::record::{RecordBody, rows};
use fieldline_model::{RuleNodeId, fnv};
use rustc_hash::FxHashMap;

use super::walk::MessageHandle;
use crate::stats::LastFailure;
use crate::strategy::MessageOutcome;

/// Where a message of a batch comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MessageOrigin {
    /// Index of the record, or of what has come due.
    pub(super) record_index: u32,
    /// Where its row begins within the record's rows.
    pub(super) row: u32,
}

/// One message of a batch.
#[derive(Debug)]
pub(super) struct BatchEntry {
    pub(super) origin: MessageOrigin,
    /// How many of what it has become are on their way.
    pub(super) pending: u32,
    pub(super) outcome: MessageOutcome,
    /// Its outcome is final, and it is not tried again.
    pub(super) given_up: bool,
    /// It goes on in a slow lane: what becomes of it is none of the batch's business.
    pub(super) diverted: bool,
    /// The generation that its handles have; what has another one comes too late.
    generation: u64,
}

impl BatchEntry {
    fn new(origin: MessageOrigin, generation: u64) -> Self {
        Self {
            origin,
            pending: 0,
            outcome: MessageOutcome::Open,
            given_up: false,
            diverted: false,
            generation,
        }
    }
}

/// The generation of no handle.
const NO_GENERATION: u64 = 0;

/// Something that was kept and has come due.
#[derive(Debug, Clone)]
pub(crate) struct DueTimer {
    pub(crate) key: StateKey,
    pub(crate) value: Bytes,
    /// When it has come due, milliseconds.
    pub(crate) at: i64,
}

impl DueTimer {
    /// The same for the same thing that comes due once more after a crash, and for nothing else.
    pub(super) fn hash(&self) -> u64 {
        kept_hash(&self.key, &self.value) ^ self.at.cast_unsigned().rotate_left(29)
    }
}

/// A number that follows from what is kept.
pub(super) fn kept_hash(key: &StateKey, value: &[u8]) -> u64 {
    let (high, low) = key.owner.as_u64_pair();
    let begin = (high ^ low.rotate_left(17)).wrapping_add(key.number);
    fnv::hash(begin, value.iter().copied())
}

/// The messages that are worked on together.
#[derive(Default)]
pub(super) struct MessageBatch {
    /// Tells batches apart: what belongs to an earlier one came too late.
    pub(super) generation: u64,
    /// Where its records end, or [`DUE`](super::marks::DUE).
    pub(super) record: u64,
    pub(super) entries: Vec<BatchEntry>,
    /// Entries that are on their way.
    pub(super) open: usize,
    pub(super) failures: FxHashMap<u32, LastFailure>,
    /// Entries that have ended since somebody last looked, where that matters.
    pub(super) ended: Vec<u32>,
    pub(super) notes_ends: bool,
    /// Entries that go to a slow lane and are not there yet.
    pub(super) leaving: Vec<u32>,
    /// Nothing may leave: no record holds what it began with.
    pub(super) is_fixed: bool,
    /// Nothing leaves any more: the journal has not taken it.
    pub(super) is_diverting_stopped: bool,
    /// Messages that belong to this partition, and the node that they have come home to, if it is one.
    homes: FxHashMap<u32, RuleNodeId>,
}

impl MessageBatch {
    /// Forgets everything and begins the next one.
    pub(super) fn begin(&mut self) {
        self.generation += 1;
        self.entries.clear();
        self.open = 0;
        self.failures.clear();
        self.ended.clear();
        self.notes_ends = false;
        self.leaving.clear();
        self.is_fixed = false;
        self.is_diverting_stopped = false;
        self.homes.clear();
    }

    pub(super) fn add(&mut self, origin: MessageOrigin) {
        self.entries.push(BatchEntry::new(origin, self.generation));
    }

    /// Begins anew with a single entry, whatever the others are at.
    pub(super) fn begin_one(&mut self, index: u32, origin: MessageOrigin) {
        self.generation += 1;
        let entry = BatchEntry::new(origin, self.generation);
        match self.entries.get_mut(index as usize) {
            Some(slot) => *slot = entry,
            None => self.entries.push(entry),
        }
        self.failures.remove(&index);
        self.homes.remove(&index);
    }

    /// A single entry is over; the place may be used again.
    pub(super) fn end_one(&mut self, index: u32) {
        let notes_ends = std::mem::take(&mut self.notes_ends);
        self.finish(index, |entry| entry.pending = 0);
        self.notes_ends = notes_ends;
        self.homes.remove(&index);
    }

    /// The generation that handles of an entry have.
    pub(super) fn generation_of(&self, index: u32) -> u64 {
        self.entries
            .get(index as usize)
            .map_or(self.generation, |entry| entry.generation)
    }

    /// How many of what an entry has become are on their way.
    pub(super) fn pending_of(&self, index: u32) -> u32 {
        self.entries.get(index as usize).map_or(0, |entry| entry.pending)
    }

    /// The entries that have begun and not ended, as they go on now.
    pub(super) fn under_way(&self) -> Vec<u32> {
        let entries = (0..).zip(&self.entries);
        let live = entries.filter(|(_, entry)| entry.pending > 0 && entry.generation != NO_GENERATION);
        live.map(|(index, _)| index).collect()
    }

    /// Whether a handle is one of an entry as it goes on now.
    pub(super) fn is_current(&self, handle: MessageHandle) -> bool {
        self.entries
            .get(handle.entry as usize)
            .is_some_and(|entry| entry.generation == handle.generation)
    }

    /// Notes that a message belongs to this partition, and the node that it has come home to.
    pub(super) fn pin(&mut self, index: u32, home: Option<RuleNodeId>) {
        self.homes.insert(index, home.unwrap_or(RuleNodeId::NULL));
    }

    /// The node that a message has come home to.
    pub(super) fn home_of(&self, index: u32) -> Option<RuleNodeId> {
        let home = self.homes.get(&index).copied();
        home.filter(|node| *node != RuleNodeId::NULL)
    }

    /// Whether an entry may leave, as far as is known of it.
    pub(super) fn may_divert(&self, index: u32) -> bool {
        !self.is_fixed && !self.homes.contains_key(&index)
    }

    /// An entry ends here, whatever of it is still on its way, and goes on in a slow lane.
    pub(super) fn divert(&mut self, index: u32) {
        self.finish(index, |entry| {
            entry.pending = 0;
            entry.outcome = MessageOutcome::Done;
            entry.diverted = true;
        });
        self.failures.remove(&index);
        self.leaving.push(index);
    }

    /// An entry is not waited for any longer: it is late, and may go on in the background.
    pub(super) fn detach(&mut self, index: u32) {
        self.finish(index, |entry| entry.given_up = true);
    }

    /// An entry is given up, as one that has failed.
    pub(super) fn give_up_one(&mut self, index: u32) {
        self.finish(index, |entry| {
            entry.pending = 0;
            entry.outcome = MessageOutcome::Failed;
            entry.diverted = false;
            entry.given_up = true;
        });
    }

    /// Whether a message of the batch has not ended yet.
    pub(super) fn is_under_way(&self, handle: MessageHandle) -> bool {
        let entry = self.entries.get(handle.entry as usize);
        entry.is_some_and(|entry| entry.generation == handle.generation && entry.pending > 0)
    }

    fn finish(&mut self, index: u32, change: impl FnOnce(&mut BatchEntry)) {
        let Some(entry) = self.entries.get_mut(index as usize) else {
            return;
        };
        let was_known = std::mem::replace(&mut entry.generation, NO_GENERATION) != NO_GENERATION;
        if entry.pending > 0 && was_known {
            self.open = self.open.saturating_sub(1);
        }
        change(entry);
        if self.notes_ends && was_known {
            self.ended.push(index);
        }
    }

    /// An entry that was to leave has to be tried here after all.
    pub(super) fn reinstate(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            // Its generation stays nobody's until it begins again: what still comes back of it must not count for it.
            entry.pending = 0;
            entry.outcome = MessageOutcome::Open;
            entry.diverted = false;
        }
    }

    /// How it stands with an entry.
    pub(super) fn outcome(&self, index: u32) -> MessageOutcome {
        match self.entries.get(index as usize) {
            Some(entry) if entry.pending == 0 => entry.outcome,
            _ => MessageOutcome::Open,
        }
    }

    /// Whether an entry goes on in a slow lane.
    pub(super) fn is_diverted(&self, index: u32) -> bool {
        self.entries
            .get(index as usize)
            .is_some_and(|entry| entry.diverted)
    }

    /// Whether an entry was tried, and has not come to a good end.
    pub(super) fn is_unsuccessful(&self, index: u32) -> bool {
        self.entries.get(index as usize).is_some_and(|entry| {
            !entry.given_up && (entry.pending > 0 || entry.outcome == MessageOutcome::Failed)
        })
    }

    /// Begins again with some of the entries: what of them is still on its way belongs to an earlier batch.
    pub(super) fn begin_again(&mut self, which: &[u32]) {
        self.generation += 1;
        self.open = 0;
        for entry in &mut self.entries {
            entry.generation = NO_GENERATION;
        }
        for index in which {
            if let Some(entry) = self.entries.get_mut(*index as usize) {
                entry.generation = self.generation;
                entry.pending = 0;
                entry.outcome = MessageOutcome::Open;
            }
        }
        self.failures.clear();
        self.ended.clear();
    }

    /// Adds a message for each row and message of the records.
    pub(super) fn fill(&mut self, delivered: &DeliveredBatch<'_>) {
        for (record_index, (_, content)) in (0..).zip(delivered.readable) {
            let RecordBody::Telemetry { rows: bytes, .. } = content.body else {
                self.add(MessageOrigin { record_index, row: 0 });
                continue;
            };
            let mut row = 0;
            for next in rows(bytes).filter_map(Result::ok) {
                self.add(MessageOrigin { record_index, row });
                row += 16 + next.values.len() as u32;
            }
        }
    }

    /// Something of an entry has begun. What was given up as a whole does not begin again with what still comes back of it.
    pub(super) fn begin_of(&mut self, index: u32) {
        let Some(entry) = self.entries.get_mut(index as usize) else {
            return;
        };
        if entry.pending == 0 {
            if entry.outcome != MessageOutcome::Open {
                return;
            }
            self.open += 1;
        }
        entry.pending += 1;
    }

    /// Something of an entry has ended.
    pub(super) fn end_of(&mut self, index: u32, failure: Option<LastFailure>) {
        let failed = failure.is_some();
        if let Some(failure) = failure {
            self.failures.insert(index, failure);
        }
        let Some(entry) = self
            .entries
            .get_mut(index as usize)
            .filter(|entry| entry.pending > 0)
        else {
            return;
        };
        if failed {
            entry.outcome = MessageOutcome::Failed;
        }
        entry.pending = entry.pending.saturating_sub(1);
        if entry.pending == 0 {
            if entry.outcome == MessageOutcome::Open {
                entry.outcome = MessageOutcome::Done;
            }
            self.open = self.open.saturating_sub(1);
            if self.notes_ends {
                self.ended.push(index);
            }
        }
    }

    /// An entry has ended as a whole, whatever of it is still on its way.
    pub(super) fn abort(&mut self, index: u32, failure: LastFailure) {
        if let Some(entry) = self
            .entries
            .get_mut(index as usize)
            .filter(|entry| entry.pending > 0)
        {
            entry.pending = 1;
            self.end_of(index, Some(failure));
        }
    }

    /// The entries as retry strategies see them: what is given up is none of their business.
    pub(super) fn wanted(&self) -> impl Iterator<Item = MessageOutcome> + Clone + '_ {
        let outcomes = self.entries.iter().zip(self.outcomes());
        outcomes.map(|(entry, outcome)| {
            if entry.given_up {
                MessageOutcome::Done
            } else {
                outcome
            }
        })
    }

    /// Whether an entry is not tried again.
    pub(super) fn is_given_up(&self, index: u32) -> bool {
        self.entries
            .get(index as usize)
            .is_some_and(|entry| entry.given_up)
    }

    /// Makes the outcome of all entries that were submitted final. Returns those that never were, if there are any.
    pub(super) fn give_up(&mut self) -> Option<Vec<u32>> {
        let mut untried = Vec::new();
        for (index, entry) in (0..).zip(&mut self.entries) {
            if entry.pending == 0 && entry.outcome == MessageOutcome::Open {
                untried.push(index);
            } else {
                entry.given_up = true;
            }
        }
        (!untried.is_empty()).then_some(untried)
    }

    /// How it stands with each entry.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = MessageOutcome> + Clone + '_ {
        self.entries.iter().map(|entry| {
            if entry.pending > 0 {
                MessageOutcome::Open
            } else {
                entry.outcome
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::ports::{Partition, QueueId};

    use super::*;

    #[test]
    fn what_comes_back_of_an_entry_that_was_given_up_does_not_make_it_a_success() {
        let mut batch = MessageBatch::default();
        batch.begin();
        batch.add(MessageOrigin::default());
        // Of two branches one waits, and the other one is given up with all of the message.
        batch.begin_of(0);
        batch.begin_of(0);
        batch.abort(0, LastFailure::default());
        assert_eq!(
            (batch.open, batch.outcomes().collect()),
            (0, vec![MessageOutcome::Failed])
        );
        // The one that waited becomes two.
        batch.begin_of(0);
        batch.end_of(0, None);
        batch.end_of(0, None);
        assert_eq!(
            (batch.open, batch.outcomes().collect()),
            (0, vec![MessageOutcome::Failed])
        );

        batch.begin_again(&[0]);
        batch.begin_of(0);
        batch.end_of(0, None);
        assert_eq!(
            (batch.open, batch.outcomes().collect()),
            (0, vec![MessageOutcome::Done])
        );
    }

    #[test]
    fn what_leaves_a_pack_is_done_there_and_what_comes_back_of_it_belongs_to_nobody() {
        let mut batch = MessageBatch::default();
        batch.begin();
        batch.notes_ends = true;
        batch.add(MessageOrigin::default());
        let handle = MessageHandle {
            generation: batch.generation_of(0),
            entry: 0,
            partition: Partition {
                queue: QueueId(0),
                index: 0,
            },
            home: 0,
        };
        batch.begin_of(0);
        batch.begin_of(0);
        batch.end_of(0, Some(LastFailure::default()));
        assert!(batch.is_current(handle) && batch.is_unsuccessful(0));
        batch.divert(0);
        assert!(!batch.is_current(handle) && !batch.is_unsuccessful(0));
        assert_eq!(
            (batch.open, batch.outcome(0), batch.is_diverted(0)),
            (0, MessageOutcome::Done, true)
        );
        assert_eq!((&*batch.ended, &*batch.leaving), (&[0][..], &[0][..]));
        assert_eq!(batch.wanted().collect::<Vec<_>>(), [MessageOutcome::Done]);
        // The journal has not taken it: it is tried here, as if it never had been.
        batch.reinstate(0);
        assert_eq!(
            (batch.outcome(0), batch.is_diverted(0)),
            (MessageOutcome::Open, false)
        );
        assert_eq!(batch.give_up(), Some(vec![0]));
    }

    #[test]
    fn what_is_let_go_is_late_and_not_waited_for() {
        let mut batch = MessageBatch::default();
        batch.begin();
        batch.add(MessageOrigin::default());
        batch.begin_of(0);
        batch.detach(0);
        assert_eq!((batch.open, batch.outcome(0)), (0, MessageOutcome::Open));
        assert_eq!(batch.give_up(), None);
    }
}
