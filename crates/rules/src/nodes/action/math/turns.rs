//! Messages of one originator take turns.

use std::sync::{Arc, LazyLock};

use fieldline_model::Subject;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

/// Those whose turn it is, or who wait. Nodes of all chains share them, as they share what is saved.
static TURNS: LazyLock<Mutex<FxHashMap<Subject, Arc<Lock<()>>>>> = LazyLock::new(Mutex::default);

/// A turn; the next one begins when it is dropped.
pub(super) struct Turn {
    subject: Subject,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turn {
    /// The turn, where nobody has it; else what waits for it.
    pub(super) fn try_take(subject: Subject) -> Result<Self, impl Future<Output = Self> + Send + 'static> {
        let lock = Arc::clone(TURNS.lock().entry(subject).or_default());
        match Arc::clone(&lock).try_lock_owned() {
            Ok(guard) => Ok(Self::new(subject, guard)),
            Err(_) => Err(async move { Self::new(subject, lock.lock_owned().await) }),
        }
    }

    const fn new(subject: Subject, guard: OwnedMutexGuard<()>) -> Self {
        Self {
            subject,
            guard: Some(guard),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = TURNS.lock();
        self.guard = None;
        // Whoever waits holds the lock, too.
        if turns.get(&self.subject).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(&self.subject);
        }
    }
}
