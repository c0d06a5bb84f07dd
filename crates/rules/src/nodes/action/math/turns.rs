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

/// What waits for a turn.
pub(super) struct Next {
    subject: Subject,
    lock: Arc<Lock<()>>,
}

impl Next {
    /// Waits.
    pub(super) async fn turn(self) -> Turn {
        Turn::new(self.subject, Arc::clone(&self.lock).lock_owned().await)
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        // Where this one has given up, and nobody else is left but the table.
        forget(&mut TURNS.lock(), &self.subject, 2);
    }
}

/// Forgets the lock of a subject that only so many hold.
fn forget(turns: &mut FxHashMap<Subject, Arc<Lock<()>>>, subject: &Subject, holders: usize) {
    if turns
        .get(subject)
        .is_some_and(|lock| Arc::strong_count(lock) == holders)
    {
        turns.remove(subject);
    }
}

impl Turn {
    /// The turn, where nobody has it; else what waits for it.
    pub(super) fn try_take(subject: Subject) -> Result<Self, Next> {
        let lock = Arc::clone(TURNS.lock().entry(subject).or_default());
        match Arc::clone(&lock).try_lock_owned() {
            Ok(guard) => Ok(Self::new(subject, guard)),
            Err(_) => Err(Next { subject, lock }),
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
        forget(&mut turns, &self.subject, 1);
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::{DeviceId, TenantId};

    use super::*;

    fn is_known(subject: Subject) -> bool {
        TURNS.lock().contains_key(&subject)
    }

    #[tokio::test]
    async fn one_goes_after_the_other_and_leaves_nothing() {
        let subject = Subject::device(TenantId::new(), DeviceId::new());
        let Ok(first) = Turn::try_take(subject) else {
            panic!("it is free")
        };
        let Err(second) = Turn::try_take(subject) else {
            panic!("it is taken")
        };
        let Err(third) = Turn::try_take(subject) else {
            panic!("it is taken")
        };
        let mut second = Box::pin(second.turn());
        tokio::select! {
            biased;
            _ = &mut second => panic!("two have a turn"),
            () = tokio::task::yield_now() => {}
        }
        drop(first);
        drop(third);
        drop(second.await);
        assert!(!is_known(subject));

        let Ok(first) = Turn::try_take(subject) else {
            panic!("it is free")
        };
        let Err(given_up) = Turn::try_take(subject) else {
            panic!("it is taken")
        };
        drop(first);
        drop(given_up);
        assert!(!is_known(subject));
    }
}
