//! Notes of what the worker is at that is no record of its queue: a message of a lane, something that has come due. The
//! process that dies of it twice leaves it out: a message is set aside, what was kept is given up.

use bytes::Bytes;
use fieldline_core::in_hand::{Deaths, LoadInHand};
use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::{Offset, StateKey};
use fieldline_model::fnv;
use fieldline_model::record::diverted::Diverted;
use fieldline_model::record::{RecordBatch, split};
use uuid::Uuid;

use super::Worker;
use super::lane_book::LaneItem;
use super::marks::DUE;
use super::walk::{DETACHED, Ticket};

/// The same for the same thing that is kept, after a crash as well.
pub(super) fn kept(key: &StateKey) -> LoadInHand {
    let ids = [key.subject.entity.id, key.keeper];
    let bytes = ids.iter().flat_map(|id| id.as_bytes()).copied();
    let id = fnv::hash_128(bytes.chain(key.number.to_le_bytes()));
    LoadInHand {
        tenant: key.subject.tenant,
        id: Uuid::from_u128(id),
        version: 0,
    }
}

impl Worker {
    /// What is kept of the message of a ticket, if that is how it is done again after a crash.
    fn kept_of(&self, ticket: Ticket) -> Option<LoadInHand> {
        let is_lane = self.queue.role.is_lane();
        if !is_lane && self.pack.record != DUE {
            return None;
        }
        if ticket.pack == DETACHED || !self.pack.is_current(ticket) {
            return None;
        }
        if is_lane {
            let run = self.lane.running(ticket.entry)?;
            return Some(kept(&run.item.key));
        }
        let entry = self.pack.entries.get(ticket.entry as usize)?;
        let (_, due) = self.due.get(entry.origin.record as usize)?;
        Some(kept(&due.key))
    }

    /// Notes that the message of a ticket is worked on, where nothing else tells.
    pub(super) fn take_in_hand(&mut self, ticket: Ticket) {
        let kept = self.kept_of(ticket);
        if let (Some(hand), Some(kept)) = (&mut self.hand, kept) {
            hand.take(kept);
        }
    }

    /// How often the process has died of what is kept, where that is too often to work on it again.
    pub(super) fn proof_against(&mut self, key: &StateKey, store: &Applier) -> Option<Deaths> {
        if self.watch.is_some() {
            return None;
        }
        if self.hand.is_none() {
            self.hand = store.kept_hand();
        }
        self.hand.as_ref()?.proof_against(kept(key))
    }

    /// What was kept has come to its end.
    pub(super) fn kept_has_ended(&mut self, key: &StateKey) {
        if let Some(hand) = &mut self.hand {
            hand.ended(kept(key));
        }
    }

    /// Sets a message of the lane aside; returns false where there is nowhere to keep it.
    pub(super) async fn set_aside_of_lane(
        &mut self,
        item: &LaneItem,
        diverted: &Diverted<'_>,
        deaths: Deaths,
        store: &Applier,
    ) -> Result<bool, Stopping> {
        let mut records = RecordBatch::new();
        records.diverted(diverted);
        let Some(Ok(record)) = split(records.as_bytes()).next() else {
            return Ok(false);
        };
        let (at, record) = (Offset(item.key.number), Bytes::copy_from_slice(record));
        store.set_aside(item.partition, at, record, deaths).await
    }
}
