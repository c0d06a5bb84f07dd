//! Kept items, which are processed individually: a message of a slow lane, or a kept state that is due.
//!
//! Records are noted as batches; each kept item is noted from its start to its end, however many are in flight, because
//! another thread may crash on its behalf. Items that were in flight at a crash start again one after the other, with a
//! pause in between, so that the next crash shows which one caused it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fieldline_model::TenantId;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::suspects::CrashCount;
use super::{EXCLUSIVE_TIMEOUT, InFlightTracker, InFlightWork, LentGuard, NoteSlot, SUSPICION_TIME};

/// How long other items that were in flight at the same crash wait for one that has started, which may itself be
/// waiting. The time doubles with each crash that did not show the cause.
const KEPT_WAIT_TIMEOUT: Duration = Duration::from_millis(250);
/// Limits the wait to 64 seconds, longer than any lane lets an item take.
const MAX_DOUBLINGS: u32 = 8;
/// Most suspects remembered: beyond it, the oldest of the least suspected is dropped.
const MAX_KEPT: usize = 4_000;
/// An item that has not come again within this time will not: it was deleted, or kept anew under the same key.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// A kept item of a tenant that is processed individually.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlightKept {
    /// The tenant.
    pub tenant: TenantId,
    /// Its id, the same each time it comes: that of a message, or one derived from the key of a kept state.
    pub id: Uuid,
}

/// A kept item that was in flight at a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SuspectKept {
    kept: InFlightKept,
    deaths: CrashCount,
}

/// The kept items that may have crashed the process, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct KeptSuspects {
    entries: Vec<SuspectKept>,
    /// Crashes with several suspects in flight again, which prove nothing against any of them.
    open_deaths: u32,
}

impl KeptSuspects {
    /// Counts a crash with these items in flight. Items of an earlier crash start one at a time: all others in flight
    /// came later.
    pub(super) fn count(&mut self, in_hand: &[InFlightKept], is_undisturbed: bool) {
        let is_known = |kept: &&InFlightKept| self.deaths_of(**kept).is_some();
        let again: Vec<InFlightKept> = in_hand.iter().filter(is_known).copied().collect();
        for kept in in_hand {
            self.deaths_mut(*kept);
        }
        match (in_hand, again.as_slice()) {
            ([kept], _) => self.deaths_mut(*kept).add(is_undisturbed),
            (_, [kept]) => self.deaths_mut(*kept).add(false),
            (_, [_, _, ..]) => self.open_deaths = self.open_deaths.saturating_add(1),
            _ => {}
        }
        while self.entries.len() > MAX_KEPT {
            let entries = self.entries.iter().enumerate();
            let innocent = entries.min_by_key(|(_, entry)| (entry.deaths.is_proof(), entry.deaths.alone));
            self.entries.remove(innocent.map_or(0, |(at, _)| at));
        }
    }

    /// The number of crashes with this item in flight; adds an entry if there is none.
    fn deaths_mut(&mut self, kept: InFlightKept) -> &mut CrashCount {
        let known = self.entries.iter().position(|entry| entry.kept == kept);
        let at = known.unwrap_or_else(|| {
            let deaths = CrashCount::default();
            self.entries.push(SuspectKept { kept, deaths });
            self.entries.len() - 1
        });
        &mut self.entries[at].deaths
    }

    /// The number of crashes with this item in flight; `None` if there was none.
    fn deaths_of(&self, kept: InFlightKept) -> Option<CrashCount> {
        let known = self.entries.iter().find(|entry| entry.kept == kept);
        known.map(|entry| entry.deaths)
    }

    /// Ends the suspicion of an item. Returns whether it was suspected.
    fn acquit(&mut self, kept: InFlightKept) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.kept != kept);
        if self.entries.is_empty() {
            self.open_deaths = 0;
        }
        self.entries.len() < before
    }

    /// How long other items wait for one with this crash count.
    fn patience(&self, deaths: CrashCount) -> Duration {
        let patience = KEPT_WAIT_TIMEOUT.saturating_mul(1 << self.open_deaths.min(MAX_DOUBLINGS));
        match deaths.alone {
            0 => patience,
            _ => patience.max(EXCLUSIVE_TIMEOUT),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Whether a kept item may start.
pub enum KeptTurn {
    /// Yes; it is in flight until the note is dropped. There is no note if nothing is noted.
    Now(Option<KeptNote>),
    /// Not yet: another suspect is in flight.
    Later,
    /// No: the process has crashed on it too often.
    Never(KeptProof),
}

/// Proof that a kept item crashes the process, valid until the item is gone.
pub struct KeptProof {
    /// The number of crashes.
    pub deaths: CrashCount,
    kept: InFlightKept,
    in_hand: Arc<InFlightTracker>,
}

impl KeptProof {
    /// Records that the item is no longer kept. Its source may be processed again after the crash and keep it once
    /// more, so the proof is remembered for some time.
    pub fn finish(self) {
        let kept = self.kept;
        self.in_hand
            .after(SUSPICION_TIME, move |in_hand| in_hand.acquit_kept(kept));
    }
}

/// Notes a kept item in flight.
pub struct KeptNote {
    kept: InFlightKept,
    is_suspected: bool,
    slot: NoteSlot,
    _turn: Option<LentGuard<OwnedMutexGuard<()>>>,
}

impl KeptNote {
    /// Records that the item is done, which ends its suspicion.
    pub fn finish(self) {
        if self.is_suspected {
            self.slot.tracker.acquit_kept(self.kept);
        }
    }
}

impl InFlightTracker {
    /// Notes that an item is being processed, if it may be.
    pub(crate) fn take_kept(self: &Arc<Self>, kept: InFlightKept) -> KeptTurn {
        let deaths = self.deaths_of_kept(kept);
        let turn = match deaths {
            None => None,
            Some(deaths) if deaths.is_proof() => {
                let in_hand = self.clone();
                return KeptTurn::Never(KeptProof {
                    deaths,
                    kept,
                    in_hand,
                });
            }
            Some(deaths) => match self.kept_lock.clone().try_lock_owned() {
                Ok(turn) => {
                    let patience = self.suspects.lock().kept.patience(deaths);
                    Some(self.lend(turn, patience))
                }
                Err(_) => {
                    self.has_kept_waiting.store(true, Ordering::Release);
                    return KeptTurn::Later;
                }
            },
        };
        let mut slot = self.slot();
        slot.note(Some(InFlightWork::Kept(kept)));
        KeptTurn::Now(Some(KeptNote {
            kept,
            is_suspected: deaths.is_some(),
            slot,
            _turn: turn,
        }))
    }

    fn deaths_of_kept(&self, kept: InFlightKept) -> Option<CrashCount> {
        if !self.has_kept.load(Ordering::Acquire) {
            return None;
        }
        self.suspects.lock().kept.deaths_of(kept)
    }

    /// Ends the suspicion of a kept item.
    pub(crate) fn acquit_kept(&self, kept: InFlightKept) {
        let acquitted = {
            let mut suspects = self.suspects.lock();
            let acquitted = suspects.kept.acquit(kept);
            self.has_kept.store(!suspects.kept.is_empty(), Ordering::Release);
            acquitted
        };
        if acquitted {
            self.save();
        }
    }

    /// Ends the suspicion of all kept items once the process has lived for some time and none waits for its turn.
    /// Otherwise another state under the same key would be mistaken for a suspect.
    pub(super) fn acquit_kept_in_time(self: &Arc<Self>) {
        if !self.has_kept.load(Ordering::Acquire) {
            return;
        }
        self.after(FORGET_AFTER, |in_hand| {
            if in_hand.has_kept_waiting.swap(false, Ordering::AcqRel) {
                return in_hand.acquit_kept_in_time();
            }
            in_hand.suspects.lock().kept = KeptSuspects::default();
            in_hand.has_kept.store(false, Ordering::Release);
            in_hand.save();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(id: u64) -> InFlightKept {
        InFlightKept {
            tenant: TenantId(Uuid::from_u128(1)),
            id: Uuid::from_u128(id.into()),
        }
    }

    fn after(deaths: &[&[InFlightKept]]) -> KeptSuspects {
        let mut suspected = KeptSuspects::default();
        for in_hand in deaths {
            suspected.count(in_hand, true);
        }
        suspected
    }

    #[test]
    fn the_one_that_is_in_hand_again_is_found_among_others_that_come() {
        let first = [kept(1), kept(2)];
        let mut suspected = after(&[&first]);
        assert_eq!(suspected.deaths_of(kept(1)), Some(CrashCount::default()));
        for deaths in 1..=5 {
            suspected.count(&[kept(1), kept(10 + u64::from(deaths))], true);
            let found = suspected.deaths_of(kept(1)).unwrap();
            assert_eq!((found.alone, found.is_proof()), (deaths, deaths == 5));
        }
        assert_eq!(suspected.deaths_of(kept(2)), Some(CrashCount::default()));
        assert_eq!(suspected.deaths_of(kept(11)), Some(CrashCount::default()));
        // An item alone needs two crashes.
        let alone = after(&[&first, &[kept(1)], &[kept(1)]]);
        assert!(alone.deaths_of(kept(1)).unwrap().is_proof());
    }

    #[test]
    fn several_suspects_that_are_in_hand_again_get_more_time() {
        let both = [kept(1), kept(2)];
        let mut suspected = after(&[&both, &both, &both]);
        assert_eq!(suspected.deaths_of(kept(1)), Some(CrashCount::default()));
        assert_eq!(suspected.patience(CrashCount::default()), KEPT_WAIT_TIMEOUT * 4);
        assert!(suspected.acquit(kept(1)) && suspected.acquit(kept(2)));
        assert_eq!(suspected.patience(CrashCount::default()), KEPT_WAIT_TIMEOUT);
        assert!(suspected.is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_proven_stays() {
        let mut suspected = after(&[&[kept(1)], &[kept(1)], &[kept(2)]]);
        for id in (3..=MAX_KEPT as u64 + 4).step_by(2) {
            suspected.count(&[kept(id), kept(id + 1)], true);
        }
        assert_eq!(suspected.entries.len(), MAX_KEPT);
        assert!(suspected.deaths_of(kept(1)).unwrap().is_proof());
        assert_eq!(suspected.deaths_of(kept(2)).unwrap().alone, 1);
        assert_eq!(suspected.deaths_of(kept(3)), None);
    }
}
