//! What was kept and is worked on by itself: a message of a slow lane, something that has come due.
//!
//! Records are noted as packs; of such things a worker notes the one that it was at last, until that has ended or it is at
//! another one: many of them may be waiting for something. By the same rules as with what is loaded, one death is no proof.

use std::sync::Arc;

use super::{Deaths, Hand, InHand, LoadInHand, Slot};

/// A worker's place for the note of what it is at.
pub struct KeptHand {
    in_hand: Arc<InHand>,
    slot: Slot,
    at: Option<LoadInHand>,
}

impl KeptHand {
    pub(crate) fn new(in_hand: &Arc<InHand>) -> Self {
        Self {
            in_hand: in_hand.clone(),
            slot: in_hand.slot(),
            at: None,
        }
    }

    /// How often the process has died of something, where that is too often to work on it again.
    pub fn proof_against(&self, kept: LoadInHand) -> Option<Deaths> {
        self.in_hand.deaths_of(kept).filter(|deaths| deaths.is_proof())
    }

    /// Notes that it is worked on.
    pub fn take(&mut self, kept: LoadInHand) {
        if self.at != Some(kept) {
            self.at = Some(kept);
            self.slot.note(Some(Hand::Load(kept)));
        }
    }

    /// It has come to its end: it is in hand, and suspected, no longer.
    pub fn ended(&mut self, kept: LoadInHand) {
        if self.at == Some(kept) {
            self.at = None;
            self.slot.note(None);
        }
        if self.in_hand.deaths_of(kept).is_some() {
            self.in_hand.acquit(kept);
        }
    }
}
