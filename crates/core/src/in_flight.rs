//! Records the work in flight in the process, so that after a crash the next process knows the possible causes.
//!
//! Each worker notes the batch that it begins, and each load notes the item that it compiles, in notes that outlive the
//! process. Notes found at a start were in flight when the previous process died, so their work is suspected. Records
//! of a suspected batch are processed one by one, with one suspected record in flight at a time; a record that was
//! alone in flight at a crash is tried once more with nothing else running. If the process dies again, the record is
//! set aside. A suspected load is isolated in the same way, and is then skipped until somebody saves it anew.
//!
//! A single crash proves nothing: it looks the same as a `kill -9` by an operator or by the kernel when memory runs
//! out.

mod kept;
mod suspects;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fieldline_model::TenantId;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{
    Mutex as Turn, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, oneshot,
};
use tracing::{error, info, warn};
use uuid::Uuid;

pub use self::kept::{InFlightKept, KeptNote, KeptProof, KeptTurn};
pub(crate) use self::suspects::RecordTreatment;
pub use self::suspects::{CrashCount, CrashSuspects};
use crate::logging::LogGate;
use crate::ports::{InFlightNotes, Offset, Partition};

/// How long a record that must run alone waits for the work in flight, and how long other work waits for it.
const EXCLUSIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the process has to live with a suspect before the suspicion ends.
const SUSPICION_TIME: Duration = Duration::from_secs(60);
static NOTE_GATE: LogGate = LogGate::new(1);

/// How a batch was isolated from other work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchIsolation {
    /// Other batches may have been in flight.
    Usual,
    /// A suspected record, with no other suspected record in flight.
    Apart,
    /// A suspected record, with no other batch in flight.
    Exclusively,
}

/// Records that a worker processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightBatch {
    /// Their partition.
    pub partition: Partition,
    /// Position of the first one.
    pub first: Offset,
    /// Position after the last one, whether or not the journal has a record there.
    pub end: Offset,
    /// How it was isolated from other work.
    pub isolation: BatchIsolation,
}

impl InFlightBatch {
    pub(crate) const fn is_single(&self) -> bool {
        self.end.0 == self.first.0 + 1
    }
}

/// An item of a tenant that is compiled or started, such as a rule chain or a calculated field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadInHand {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its id.
    pub id: Uuid,
    /// Its version: after a save, it counts as another item.
    pub version: i64,
}

/// The work in flight in one note slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlightWork {
    /// Records.
    Pack(InFlightBatch),
    /// An item that was being loaded.
    Load(LoadInHand),
    /// A kept item, whether it was being processed or waiting.
    Kept(InFlightKept),
}

impl InFlightWork {
    fn pack(&self) -> Option<InFlightBatch> {
        match self {
            Self::Pack(pack) => Some(*pack),
            Self::Load(_) | Self::Kept(_) => None,
        }
    }

    fn load(&self) -> Option<LoadInHand> {
        match self {
            Self::Load(load) => Some(*load),
            Self::Pack(_) | Self::Kept(_) => None,
        }
    }

    fn kept(&self) -> Option<InFlightKept> {
        match self {
            Self::Kept(kept) => Some(*kept),
            Self::Pack(_) | Self::Load(_) => None,
        }
    }
}

/// See the module.
pub struct InFlightTracker {
    /// `None` if nothing is noted.
    notes: Option<Arc<dyn InFlightNotes>>,
    suspects: Mutex<CrashSuspects>,
    has_records: AtomicBool,
    has_loads: AtomicBool,
    has_kept: AtomicBool,
    /// Whether a suspected kept item has recently waited for its turn.
    has_kept_waiting: AtomicBool,
    has_ended: AtomicBool,
    slots: Mutex<NoteSlots>,
    /// Held shared by each batch in flight while something is suspected, and exclusively by a record that must run
    /// alone.
    gate: Arc<RwLock<()>>,
    /// Held by the suspected record in flight.
    suspect_lock: Arc<Turn<()>>,
    /// Held by the suspected load in flight.
    load_lock: Arc<Turn<()>>,
    /// Held by the suspected kept item in flight.
    kept_lock: Arc<Turn<()>>,
    /// Runs the timers that end exclusive turns, even if the thread that holds the turn is stuck.
    runtime: Option<Handle>,
}

/// The note slots, which are reused.
#[derive(Default)]
struct NoteSlots {
    free: Vec<usize>,
    used: usize,
}

impl InFlightTracker {
    /// Creates a tracker that notes nothing and suspects nothing.
    pub fn nowhere() -> Arc<Self> {
        Self::of(None, CrashSuspects::default(), None)
    }

    /// Suspects the work that was in flight when the previous process died, and begins the notes of this process. If
    /// notes cannot be written, for example on a full disk, the tracker works without them. Call on the runtime that
    /// lives as long as the program.
    pub fn start(notes: Arc<dyn InFlightNotes>) -> Arc<Self> {
        let mut left = notes.previous_run();
        if !left.in_flight.is_empty() {
            warn!(in_hand = ?left.in_flight, "the process before has died, what it had in hand is taken up one by one");
        }
        left.suspects.count(&left.in_flight);
        let begun = notes.save(&left.suspects).and_then(|()| notes.begin());
        let notes = match begun {
            Ok(()) => Some(notes),
            Err(error) => {
                warn!(%error, "what is in hand is not noted, and not known if the process dies");
                None
            }
        };
        let in_hand = Self::of(notes, left.suspects, Handle::try_current().ok());
        in_hand.acquit_kept_in_time();
        in_hand
    }

    fn of(
        notes: Option<Arc<dyn InFlightNotes>>,
        suspects: CrashSuspects,
        runtime: Option<Handle>,
    ) -> Arc<Self> {
        Arc::new(Self {
            notes,
            has_records: suspects.has_records().into(),
            has_loads: suspects.has_loads().into(),
            has_kept: (!suspects.kept.is_empty()).into(),
            has_kept_waiting: false.into(),
            has_ended: false.into(),
            suspects: Mutex::new(suspects),
            slots: Mutex::default(),
            gate: Arc::default(),
            suspect_lock: Arc::default(),
            load_lock: Arc::default(),
            kept_lock: Arc::default(),
            runtime,
        })
    }

    /// Reserves a note slot for one worker. The slot is freed when the worker drops it, except during a panic.
    pub(crate) fn slot(self: &Arc<Self>) -> NoteSlot {
        let mut slots = self.slots.lock();
        let index = slots.free.pop().unwrap_or_else(|| {
            slots.used += 1;
            slots.used - 1
        });
        NoteSlot {
            tracker: self.clone(),
            index,
            is_noted: false,
        }
    }

    /// Records an orderly stop: work still in flight at this point is not the cause of a crash.
    pub(crate) fn end(&self) {
        let Some(notes) = &self.notes else { return };
        let slots = self.slots.lock();
        self.has_ended.store(true, Ordering::Release);
        for slot in 0..slots.used {
            if let Err(error) = notes.note(slot, None) {
                warn!(%error, "cannot note that nothing is in hand");
            }
        }
    }

    /// Returns whether any record is suspected. If none is, none will become so.
    pub(crate) fn suspects_records(&self) -> bool {
        self.has_records.load(Ordering::Acquire)
    }

    pub(crate) fn treatment(
        &self,
        partition: Partition,
        at: Offset,
        next: Offset,
    ) -> (RecordTreatment, Offset) {
        self.suspects.lock().treatment(partition, at, next)
    }

    /// Waits for the turn of a batch.
    pub(crate) async fn acquire(&self, treatment: RecordTreatment) -> BatchPermit {
        if !self.suspects_records() {
            return BatchPermit::free();
        }
        match treatment {
            RecordTreatment::Usual => BatchPermit {
                isolation: BatchIsolation::Usual,
                _suspect: None,
                _gate: Some(GateGuard::Shared(self.gate.clone().read_owned().await)),
            },
            RecordTreatment::Apart | RecordTreatment::SetAside(_) => BatchPermit {
                isolation: BatchIsolation::Apart,
                _suspect: Some(self.suspect_lock.clone().lock_owned().await),
                _gate: Some(GateGuard::Shared(self.gate.clone().read_owned().await)),
            },
            RecordTreatment::Exclusively => self.acquire_exclusive().await,
        }
    }

    async fn acquire_exclusive(&self) -> BatchPermit {
        let suspect = self.suspect_lock.clone().lock_owned().await;
        let alone = tokio::time::timeout(EXCLUSIVE_TIMEOUT, self.gate.clone().write_owned()).await;
        let (taken, gate) = match alone {
            Ok(gate) => (BatchIsolation::Exclusively, self.hold(gate)),
            // Some batch takes longer than other work can be made to wait.
            Err(_) => {
                let gate = self.gate.clone().read_owned().await;
                (BatchIsolation::Apart, GateGuard::Shared(gate))
            }
        };
        BatchPermit {
            isolation: taken,
            _suspect: Some(suspect),
            _gate: Some(gate),
        }
    }

    /// Keeps others out until the turn ends, for at most [`EXCLUSIVE_TIMEOUT`].
    fn hold(&self, gate: OwnedRwLockWriteGuard<()>) -> GateGuard {
        match self.lend(gate, EXCLUSIVE_TIMEOUT) {
            LentGuard::Back(gate) => GateGuard::Alone(gate),
            LentGuard::Until(end) => GateGuard::Lent(end),
        }
    }

    /// Holds a value until the returned sender is dropped, or until `patience` has passed.
    fn lend<T: Send + 'static>(&self, held: T, patience: Duration) -> LentGuard<T> {
        let Some(runtime) = &self.runtime else {
            return LentGuard::Back(held);
        };
        let (end, ended) = oneshot::channel::<()>();
        runtime.spawn(async move {
            let _ = tokio::time::timeout(patience, ended).await;
            drop(held);
        });
        LentGuard::Until(end)
    }

    /// Clears the suspects of a partition before a position: everything before it is stored durably.
    pub(crate) fn clear_before(&self, partition: Partition, position: Offset) {
        if !self.suspects_records() {
            return;
        }
        let (was_feared, is_over) = {
            let mut suspects = self.suspects.lock();
            let was_feared = suspects.clear_before(partition, position);
            (was_feared, !suspects.has_records())
        };
        // The next start finds most suspects stored and forgets them anyway, so they need no save.
        if was_feared || is_over {
            self.save();
        }
        if is_over {
            info!("all records that were in hand when the process before died are stored or set aside");
            self.has_records.store(false, Ordering::Release);
        }
    }

    /// Clears the suspects from `end` on: the partition ends there, and what follows is new.
    pub(crate) fn truncate_at(&self, partition: Partition, end: Offset) {
        if !self.suspects_records() {
            return;
        }
        let mut suspects = self.suspects.lock();
        suspects.cut_off(partition, end);
        self.has_records.store(suspects.has_records(), Ordering::Release);
    }

    fn save(&self) {
        let Some(notes) = &self.notes else { return };
        let suspects = self.suspects.lock();
        if let Err(error) = notes.save(&suspects) {
            warn!(%error, "cannot write down what is suspected");
        }
    }

    /// Notes that an item is being loaded, until the returned note is dropped. Suspected items are loaded one at a
    /// time.
    ///
    /// # Errors
    /// The process died too often while loading it; the text explains this to those who can change the item.
    pub async fn begin_load(self: &Arc<Self>, load: LoadInHand) -> Result<LoadNote, Box<str>> {
        let turn = match self.deaths_of(load) {
            Some(deaths) if !deaths.is_proof() => Some(self.load_lock.clone().lock_owned().await),
            _ => None,
        };
        let mut note = self.begin_load_now(load)?;
        note._turn = turn;
        Ok(note)
    }

    /// Like [`Self::begin_load`], without waiting for other loads.
    ///
    /// # Errors
    /// See [`Self::begin_load`].
    pub fn begin_load_now(self: &Arc<Self>, load: LoadInHand) -> Result<LoadNote, Box<str>> {
        let deaths = self.deaths_of(load);
        if let Some(deaths) = deaths.filter(|deaths| deaths.is_proof()) {
            error!(tenant = %load.tenant, id = %load.id, version = load.version, deaths = deaths.alone, "the process died of loading this, it is left out until it is saved anew");
            let why = format!(
                "the server died {} times while this was loaded: change it and save it anew",
                deaths.alone
            );
            return Err(why.into());
        }
        let note = self.note_start(load);
        Ok(LoadNote {
            is_suspected: deaths.is_some(),
            ..note
        })
    }

    /// Notes the start of an item that is already loaded.
    pub fn note_start(self: &Arc<Self>, load: LoadInHand) -> LoadNote {
        let mut slot = self.slot();
        slot.note(Some(InFlightWork::Load(load)));
        LoadNote {
            is_suspected: false,
            load,
            slot,
            _turn: None,
        }
    }

    fn deaths_of(&self, load: LoadInHand) -> Option<CrashCount> {
        if !self.has_loads.load(Ordering::Acquire) {
            return None;
        }
        self.suspects.lock().deaths_of(load)
    }

    /// Ends the suspicion of an item.
    pub(crate) fn acquit(&self, load: LoadInHand) {
        let acquitted = {
            let mut suspects = self.suspects.lock();
            let acquitted = suspects.acquit(load);
            self.has_loads.store(suspects.has_loads(), Ordering::Release);
            acquitted
        };
        if acquitted {
            self.save();
        }
    }

    fn acquit_later(self: &Arc<Self>, load: LoadInHand) {
        self.after(SUSPICION_TIME, move |in_hand| in_hand.acquit(load));
    }

    /// Runs `act` after the process has lived for `time`.
    fn after(self: &Arc<Self>, time: Duration, act: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let in_hand = Arc::downgrade(self);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                tokio::time::sleep(time).await;
                if let Some(in_hand) = in_hand.upgrade() {
                    act(&in_hand);
                }
            });
        }
    }
}

impl fmt::Debug for InFlightTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightTracker").finish_non_exhaustive()
    }
}

/// The turn of a batch; ends when dropped.
pub(crate) struct BatchPermit {
    pub(crate) isolation: BatchIsolation,
    _suspect: Option<OwnedMutexGuard<()>>,
    _gate: Option<GateGuard>,
}

impl BatchPermit {
    const fn free() -> Self {
        Self {
            isolation: BatchIsolation::Usual,
            _suspect: None,
            _gate: None,
        }
    }
}

/// A value that is held for a limited time.
enum LentGuard<T> {
    /// Held until this is dropped, or the time is up.
    Until(oneshot::Sender<()>),
    /// Handed back: there is no runtime to hold it.
    Back(T),
}

#[expect(dead_code, reason = "held until they are dropped")]
enum GateGuard {
    Shared(OwnedRwLockReadGuard<()>),
    Alone(OwnedRwLockWriteGuard<()>),
    Lent(oneshot::Sender<()>),
}

/// A slot for the note of one worker.
pub(crate) struct NoteSlot {
    tracker: Arc<InFlightTracker>,
    index: usize,
    is_noted: bool,
}

impl NoteSlot {
    /// Notes the work in flight from now on. If the write fails, only the search for the cause of a crash suffers.
    pub(crate) fn note(&mut self, hand: Option<InFlightWork>) {
        self.is_noted = hand.is_some();
        let Some(notes) = &self.tracker.notes else { return };
        if self.tracker.has_ended.load(Ordering::Acquire) {
            return;
        }
        if let Err(error) = notes.note(self.index, hand)
            && let Some(suppressed) = NOTE_GATE.open()
        {
            warn!(%error, suppressed, "cannot note what is in hand");
        }
    }
}

impl Drop for NoteSlot {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The next start must see this work, so the slot is not reused.
            return;
        }
        if self.is_noted {
            self.note(None);
        }
        self.tracker.slots.lock().free.push(self.index);
    }
}

/// Notes an item that is being loaded, until dropped.
pub struct LoadNote {
    load: LoadInHand,
    is_suspected: bool,
    slot: NoteSlot,
    _turn: Option<OwnedMutexGuard<()>>,
}

impl LoadNote {
    /// Marks the item as loaded. If the process survives its first actions, the suspicion ends.
    pub fn finish(self) {
        if self.is_suspected {
            self.slot.tracker.acquit_later(self.load);
        }
    }
}
