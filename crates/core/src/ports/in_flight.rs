//! Notes of what the process works on, for the process after it.

use super::StoreResult;
use crate::in_flight::{CrashSuspects, InFlightWork};

/// What was there at the start.
#[derive(Debug, Clone, Default)]
pub struct PreviousRunNotes {
    /// What the process before had in hand when it died; nothing where it ended by itself, or where `suspects` counts it
    /// already.
    pub in_flight: Vec<InFlightWork>,
    /// What was suspected until then.
    pub suspects: CrashSuspects,
}

/// Notes that outlive the process. They need not outlive the machine.
pub trait InFlightNotes: Send + Sync {
    /// What was there when it was opened.
    fn previous_run(&self) -> PreviousRunNotes;

    /// Keeps what is suspected from now on, what was left behind counted in, all or nothing of it.
    fn save(&self, suspects: &CrashSuspects) -> StoreResult<()>;

    /// Begins the notes of this process: what was left behind is gone. To be called once, after it was saved as suspected.
    fn begin(&self) -> StoreResult<()>;

    /// Notes what a slot has in hand, in the place of what it had. It costs one call of the system and waits for no disk.
    fn note(&self, slot: usize, hand: Option<InFlightWork>) -> StoreResult<()>;
}
