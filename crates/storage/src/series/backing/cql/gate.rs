//! Readers that must see chunks and blocks as they are at one moment, and what changes them, slot by slot.
//!
//! Cassandra has no snapshots. There is one process that writes, so it is enough that it moves no points of a slot while
//! one of its own readers is reading there.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::place::SLOTS;

/// How long a writer lets new readers pass it.
const WRITER_PATIENCE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Default)]
struct SlotUse {
    readers: u32,
    is_written: bool,
    /// A writer has waited long: readers that hold nothing yet come after it.
    is_awaited: bool,
}

/// Who reads and who writes which slot. A writer takes all of its slots at once, so that it waits for nobody once it has
/// any; a reader may take them one by one.
pub(super) struct SlotGate {
    slots: Mutex<Vec<SlotUse>>,
    changed: Condvar,
}

impl Default for SlotGate {
    fn default() -> Self {
        Self {
            slots: Mutex::new(vec![SlotUse::default(); usize::from(SLOTS)]),
            changed: Condvar::new(),
        }
    }
}

impl SlotGate {
    /// Begins to read in a slot. `is_first`: the reader holds no other slot.
    pub(super) fn enter(&self, slot: u16, is_first: bool) {
        let mut slots = self.slots.lock();
        while let Some(found) = slots.get_mut(usize::from(slot)) {
            let must_wait = found.is_written || (is_first && found.is_awaited);
            if !must_wait {
                found.readers += 1;
                return;
            }
            self.changed.wait(&mut slots);
        }
    }

    /// Ends reading in slots.
    pub(super) fn leave(&self, held: &BTreeSet<u16>) {
        let mut slots = self.slots.lock();
        for slot in held {
            if let Some(found) = slots.get_mut(usize::from(*slot)) {
                found.readers = found.readers.saturating_sub(1);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until nobody reads or writes in some slots, and keeps others out of them for as long as the answer lives.
    pub(super) fn write(&self, wanted: BTreeSet<u16>) -> SlotWrite<'_> {
        let started = Instant::now();
        let mut slots = self.slots.lock();
        loop {
            let is_free = |slot: &u16| {
                let found = slots.get(usize::from(*slot));
                found.is_none_or(|found| found.readers == 0 && !found.is_written)
            };
            if wanted.iter().all(is_free) {
                break;
            }
            if started.elapsed() >= WRITER_PATIENCE {
                Self::set(&mut slots, &wanted, |found| found.is_awaited = true);
            }
            self.changed.wait_for(&mut slots, WRITER_PATIENCE);
        }
        Self::set(&mut slots, &wanted, |found| {
            found.is_written = true;
            found.is_awaited = false;
        });
        SlotWrite { gate: self, wanted }
    }

    /// The same of one slot, where nobody is there now.
    pub(super) fn try_write(&self, slot: u16) -> Option<SlotWrite<'_>> {
        let mut slots = self.slots.lock();
        let found = slots.get_mut(usize::from(slot))?;
        if found.readers > 0 || found.is_written || found.is_awaited {
            return None;
        }
        found.is_written = true;
        Some(SlotWrite {
            gate: self,
            wanted: BTreeSet::from([slot]),
        })
    }

    fn set(slots: &mut [SlotUse], wanted: &BTreeSet<u16>, change: impl Fn(&mut SlotUse)) {
        for slot in wanted {
            if let Some(found) = slots.get_mut(usize::from(*slot)) {
                change(found);
            }
        }
    }
}

/// Slots that are being written.
pub(super) struct SlotWrite<'a> {
    gate: &'a SlotGate,
    wanted: BTreeSet<u16>,
}

impl Drop for SlotWrite<'_> {
    fn drop(&mut self) {
        let mut slots = self.gate.slots.lock();
        SlotGate::set(&mut slots, &self.wanted, |found| found.is_written = false);
        self.gate.changed.notify_all();
    }
}
