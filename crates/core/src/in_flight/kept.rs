//! What was kept and is worked on by itself: a message of a slow lane, something that has come due.
//!
//! Records are noted as batches; each of these is noted from its beginning to its end, however many are under way: it
//! may die of what another thread does for it. What was in hand at a death begins again one after the other, with a
//! pause, so that the next death tells which one it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fieldline_model::TenantId;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::suspects::CrashCount;
use super::{EXCLUSIVE_TIMEOUT, InFlightTracker, InFlightWork, LentGuard, NoteSlot, SUSPICION_TIME};

/// For how long others that were in hand at one death, too, wait for what has begun: it may be waiting itself. Twice as long
/// with each death that has not told which one it was.
const KEPT_WAIT_TIMEOUT: Duration = Duration::from_millis(250);
/// More than a minute is longer than anything of a lane may take.
const MAX_DOUBLINGS: u32 = 8;
/// More is not remembered: the oldest of those that are suspected least goes.
const MAX_KEPT: usize = 4_000;
/// What has not come again in this time will not: it was deleted, or kept anew under the same key.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// Something of a tenant's that was kept and is worked on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlightKept {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its id, the same however often it comes: that of a message, or one made of a kept state's key.
    pub id: Uuid,
}

/// Something that was kept and was in hand when the process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SuspectKept {
    kept: InFlightKept,
    deaths: CrashCount,
}

/// Of what was kept, what the process may have died of; the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct KeptSuspects {
    entries: Vec<SuspectKept>,
    /// Deaths with several suspects in hand again, which is no proof against any of them.
    open_deaths: u32,
}

impl KeptSuspects {
    /// Counts a death with these in hand. What was in hand at a death before begins by itself: what else is in hand has come
    /// since.
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

    /// How often the process died with this in hand, entered if it never did.
    fn deaths_mut(&mut self, kept: InFlightKept) -> &mut CrashCount {
        let known = self.entries.iter().position(|entry| entry.kept == kept);
        let at = known.unwrap_or_else(|| {
            let deaths = CrashCount::default();
            self.entries.push(SuspectKept { kept, deaths });
            self.entries.len() - 1
        });
        &mut self.entries[at].deaths
    }

    /// How often the process died with this in hand; `None` where it never did.
    fn deaths_of(&self, kept: InFlightKept) -> Option<CrashCount> {
        let known = self.entries.iter().find(|entry| entry.kept == kept);
        known.map(|entry| entry.deaths)
    }

    /// Suspects something no longer. Returns whether it was suspected.
    fn acquit(&mut self, kept: InFlightKept) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.kept != kept);
        if self.entries.is_empty() {
            self.open_deaths = 0;
        }
        self.entries.len() < before
    }

    /// How long others wait for one of which the process has died so often.
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

/// Whether something that was kept may begin.
pub enum KeptTurn {
    /// It may; it is in hand until the note is dropped. There is none where nothing is noted.
    Now(Option<KeptNote>),
    /// Something else that is suspected is in hand.
    Later,
    /// The process has died of it too often.
    Never(KeptProof),
}

/// That the process has died of something that was kept, until that is no more.
pub struct KeptProof {
    /// How often.
    pub deaths: CrashCount,
    kept: InFlightKept,
    in_hand: Arc<InFlightTracker>,
}

impl KeptProof {
    /// It is kept no longer. What it came from may be done again after the crash, and keep it once more: it is known for
    /// some time.
    pub fn finish(self) {
        let kept = self.kept;
        self.in_hand
            .after(SUSPICION_TIME, move |in_hand| in_hand.acquit_kept(kept));
    }
}

/// Something that was kept is in hand.
pub struct KeptNote {
    kept: InFlightKept,
    is_suspected: bool,
    slot: NoteSlot,
    _turn: Option<LentGuard<OwnedMutexGuard<()>>>,
}

impl KeptNote {
    /// It has come to its end: nobody suspects it any longer.
    pub fn finish(self) {
        if self.is_suspected {
            self.slot.tracker.acquit_kept(self.kept);
        }
    }
}

impl InFlightTracker {
    /// Notes that something is worked on, if it may be.
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

    /// Suspects something that was kept no longer.
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

    /// Suspects nothing that was kept once the process has lived for some time and none of it waits for its turn: another
    /// state under the same key would be taken for it.
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
        // Alone, two suffice.
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
