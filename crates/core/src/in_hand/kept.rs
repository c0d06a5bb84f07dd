//! What was kept and is worked on by itself: a message of a slow lane, something that has come due.
//!
//! Records are noted as packs; each of these is noted from its beginning to its end, however many are under way: it may die
//! of what another thread does for it. What was in hand at a death begins again one after the other, with a pause, so that
//! the next death tells which one it was.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::{Deaths, EXCLUSIVE_PATIENCE, Hand, InHand, Lent, LoadInHand, Slot};

/// For how long others that were in hand at one death, too, wait for what has begun: it may be waiting itself. Twice as long
/// with each death that has not told which one it was.
const PATIENCE: Duration = Duration::from_millis(250);
/// More than a minute is longer than anything of a lane may take.
const MAX_DOUBLINGS: u32 = 8;

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
    pub deaths: Deaths,
    kept: LoadInHand,
    in_hand: Arc<InHand>,
}

impl KeptProof {
    /// It is kept no longer. What it came from may be done again after the crash, and keep it once more: it is known for
    /// some time.
    pub fn ended(self) {
        self.in_hand.acquit_later(self.kept);
    }
}

/// Something that was kept is in hand.
pub struct KeptNote {
    kept: LoadInHand,
    is_suspected: bool,
    slot: Slot,
    _turn: Option<Lent<OwnedMutexGuard<()>>>,
}

impl KeptNote {
    /// It has come to its end: nobody suspects it any longer.
    pub fn ended(self) {
        if self.is_suspected {
            self.slot.in_hand.acquit(self.kept);
        }
    }
}

impl InHand {
    /// Notes that something is worked on, if it may be.
    pub(crate) fn take_kept(self: &Arc<Self>, kept: LoadInHand) -> KeptTurn {
        let deaths = self.deaths_of(kept);
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
            Some(deaths) => match self.kept_turn.clone().try_lock_owned() {
                Ok(turn) => {
                    let open = self.suspects.lock().open_deaths();
                    let patience = PATIENCE.saturating_mul(1 << open.min(MAX_DOUBLINGS));
                    let least = if deaths.alone == 0 {
                        PATIENCE
                    } else {
                        EXCLUSIVE_PATIENCE
                    };
                    Some(self.lend(turn, patience.max(least)))
                }
                Err(_) => return KeptTurn::Later,
            },
        };
        let mut slot = self.slot();
        slot.note(Some(Hand::Kept(kept)));
        KeptTurn::Now(Some(KeptNote {
            kept,
            is_suspected: deaths.is_some(),
            slot,
            _turn: turn,
        }))
    }
}
