//! The messages of one pack, and how it stands with each.

use bytes::Bytes;
use fieldline_core::ingest::Delivered;
use fieldline_core::ports::StateKey;
use fieldline_model::fnv;
use fieldline_model::record::{RecordBody, rows};
use rustc_hash::FxHashMap;

use crate::stats::LastFailure;
use crate::strategy::Outcome;

/// Where a message of a pack comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// Index of the record, or of what has come due.
    pub(super) record: u32,
    /// Where its row begins within the record's rows.
    pub(super) row: u32,
}

/// One message of a pack.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) origin: Origin,
    /// How many of what it has become are on their way.
    pub(super) live: u32,
    pub(super) outcome: Outcome,
    /// Its outcome is final, and it is not tried again.
    pub(super) given_up: bool,
}

/// Something that was kept and has come due.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    pub(crate) key: StateKey,
    pub(crate) value: Bytes,
    /// When it has come due, milliseconds.
    pub(crate) at: i64,
}

impl Due {
    /// The same for the same thing that comes due once more after a crash, and for nothing else.
    pub(super) fn hash(&self) -> u64 {
        kept_hash(&self.key, &self.value) ^ self.at.cast_unsigned().rotate_left(29)
    }
}

/// A number that follows from what is kept.
pub(super) fn kept_hash(key: &StateKey, value: &[u8]) -> u64 {
    let (high, low) = key.keeper.as_u64_pair();
    let begin = (high ^ low.rotate_left(17)).wrapping_add(key.number);
    fnv::hash(begin, value.iter().copied())
}

/// The messages that are worked on together.
#[derive(Default)]
pub(super) struct Pack {
    /// Tells packs apart: what belongs to an earlier one came too late.
    pub(super) number: u64,
    pub(super) entries: Vec<Entry>,
    /// Entries that are on their way.
    pub(super) open: usize,
    pub(super) failures: FxHashMap<u32, LastFailure>,
    /// Entries that have ended since somebody last looked, where that matters.
    pub(super) ended: Vec<u32>,
    pub(super) notes_ends: bool,
}

impl Pack {
    /// Forgets everything and begins the next one.
    pub(super) fn begin(&mut self) {
        self.number += 1;
        self.entries.clear();
        self.open = 0;
        self.failures.clear();
        self.ended.clear();
        self.notes_ends = false;
    }

    pub(super) fn add(&mut self, origin: Origin) {
        self.entries.push(Entry {
            origin,
            live: 0,
            outcome: Outcome::Open,
            given_up: false,
        });
    }

    /// Begins again with some of the entries: what of them is still on its way belongs to an earlier pack.
    pub(super) fn begin_again(&mut self, which: &[u32]) {
        self.number += 1;
        self.open = 0;
        for index in which {
            if let Some(entry) = self.entries.get_mut(*index as usize) {
                entry.live = 0;
                entry.outcome = Outcome::Open;
            }
        }
        self.failures.clear();
        self.ended.clear();
    }

    /// Adds a message for each row and message of the records.
    pub(super) fn fill(&mut self, delivered: &Delivered<'_>) {
        for (record, (_, content)) in (0..).zip(delivered.readable) {
            let RecordBody::Telemetry { rows: bytes, .. } = content.body else {
                self.add(Origin { record, row: 0 });
                continue;
            };
            let mut row = 0;
            for next in rows(bytes).filter_map(Result::ok) {
                self.add(Origin { record, row });
                row += 16 + next.values.len() as u32;
            }
        }
    }

    /// Something of an entry has begun. What was given up as a whole does not begin again with what still comes back of it.
    pub(super) fn begin_of(&mut self, index: u32) {
        let Some(entry) = self.entries.get_mut(index as usize) else {
            return;
        };
        if entry.live == 0 {
            if entry.outcome != Outcome::Open {
                return;
            }
            self.open += 1;
        }
        entry.live += 1;
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
            .filter(|entry| entry.live > 0)
        else {
            return;
        };
        if failed {
            entry.outcome = Outcome::Failed;
        }
        entry.live = entry.live.saturating_sub(1);
        if entry.live == 0 {
            if entry.outcome == Outcome::Open {
                entry.outcome = Outcome::Done;
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
            .filter(|entry| entry.live > 0)
        {
            entry.live = 1;
            self.end_of(index, Some(failure));
        }
    }

    /// The entries as retry strategies see them: what is given up is none of their business.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Outcome> + Clone + '_ {
        let outcomes = self.entries.iter().zip(self.outcomes());
        outcomes.map(|(entry, outcome)| if entry.given_up { Outcome::Done } else { outcome })
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
            if entry.live == 0 && entry.outcome == Outcome::Open {
                untried.push(index);
            } else {
                entry.given_up = true;
            }
        }
        (!untried.is_empty()).then_some(untried)
    }

    /// How it stands with each entry.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = Outcome> + Clone + '_ {
        self.entries.iter().map(|entry| {
            if entry.live > 0 {
                Outcome::Open
            } else {
                entry.outcome
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_of_an_entry_that_was_given_up_does_not_make_it_a_success() {
        let mut pack = Pack::default();
        pack.begin();
        pack.add(Origin { record: 0, row: 0 });
        // Of two branches one waits, and the other one is given up with all of the message.
        pack.begin_of(0);
        pack.begin_of(0);
        pack.abort(0, LastFailure::default());
        assert_eq!((pack.open, pack.outcomes().collect()), (0, vec![Outcome::Failed]));
        // The one that waited becomes two.
        pack.begin_of(0);
        pack.end_of(0, None);
        pack.end_of(0, None);
        assert_eq!((pack.open, pack.outcomes().collect()), (0, vec![Outcome::Failed]));

        pack.begin_again(&[0]);
        pack.begin_of(0);
        pack.end_of(0, None);
        assert_eq!((pack.open, pack.outcomes().collect()), (0, vec![Outcome::Done]));
    }
}
