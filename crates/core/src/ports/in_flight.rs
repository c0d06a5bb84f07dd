//! Notes of the work in flight, for the next process.

use super::StoreResult;
use crate::in_flight::{CrashSuspects, InFlightWork};

/// The notes found at the start.
#[derive(Debug, Clone, Default)]
pub struct PreviousRunNotes {
    /// The work in flight when the previous process died; empty if it stopped in an orderly way, or if `suspects`
    /// already includes it.
    pub in_flight: Vec<InFlightWork>,
    /// The suspects so far.
    pub suspects: CrashSuspects,
}

/// Notes that outlive the process. They need not survive a crash of the machine.
pub trait InFlightNotes: Send + Sync {
    /// Returns the notes found when these were opened.
    fn previous_run(&self) -> PreviousRunNotes;

    /// Saves the suspects, with the previous run's work included, all or nothing.
    fn save(&self, suspects: &CrashSuspects) -> StoreResult<()>;

    /// Begins the notes of this process, and clears those of the previous one. Call once, after its work was saved as
    /// suspected.
    fn begin(&self) -> StoreResult<()>;

    /// Sets the note of a slot, replacing the former one. It costs one system call and waits for no disk.
    fn note(&self, slot: usize, hand: Option<InFlightWork>) -> StoreResult<()>;
}
