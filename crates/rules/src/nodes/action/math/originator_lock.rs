//! Messages of one originator take turns.

use std::sync::{Arc, LazyLock};

use fieldline_model::EntityKey;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

/// Those whose turn it is, or who wait. Nodes of all chains share them, as they share what is saved.
static ORIGINATOR_LOCKS: LazyLock<Mutex<FxHashMap<EntityKey, Arc<Lock<()>>>>> = LazyLock::new(Mutex::default);

/// A turn; the next one begins when it is dropped.
pub(super) struct OriginatorLockGuard {
    subject: EntityKey,
    guard: Option<OwnedMutexGuard<()>>,
}

/// What waits for a turn.
pub(super) struct OriginatorLockWaiter {
    subject: EntityKey,
    lock: Arc<Lock<()>>,
}

impl OriginatorLockWaiter {
    /// Waits.
    pub(super) async fn acquire(self) -> OriginatorLockGuard {
        OriginatorLockGuard::new(self.subject, Arc::clone(&self.lock).lock_owned().await)
    }
}

impl Drop for OriginatorLockWaiter {
    fn drop(&mut self) {
        // Where this one has given up, and nobody else is left but the table.
        remove_unused(&mut ORIGINATOR_LOCKS.lock(), &self.subject, 2);
    }
}

/// Forgets the lock of a subject that only so many hold.
fn remove_unused(turns: &mut FxHashMap<EntityKey, Arc<Lock<()>>>, subject: &EntityKey, holders: usize) {
    if turns
        .get(subject)
        .is_some_and(|lock| Arc::strong_count(lock) == holders)
    {
        turns.remove(subject);
    }
}

impl OriginatorLockGuard {
    /// The turn, where nobody has it; else what waits for it.
    pub(super) fn try_acquire(subject: EntityKey) -> Result<Self, OriginatorLockWaiter> {
        let lock = Arc::clone(ORIGINATOR_LOCKS.lock().entry(subject).or_default());
        match Arc::clone(&lock).try_lock_owned() {
            Ok(guard) => Ok(Self::new(subject, guard)),
            Err(_) => Err(OriginatorLockWaiter { subject, lock }),
        }
    }

    const fn new(subject: EntityKey, guard: OwnedMutexGuard<()>) -> Self {
        Self {
            subject,
            guard: Some(guard),
        }
    }
}

impl Drop for OriginatorLockGuard {
    fn drop(&mut self) {
        let mut turns = ORIGINATOR_LOCKS.lock();
        self.guard = None;
        // Whoever waits holds the lock, too.
        remove_unused(&mut turns, &self.subject, 1);
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::{DeviceId, TenantId};

    use super::*;

    fn is_known(subject: EntityKey) -> bool {
        ORIGINATOR_LOCKS.lock().contains_key(&subject)
    }

    #[tokio::test]
    async fn one_goes_after_the_other_and_leaves_nothing() {
        let subject = EntityKey::device(TenantId::new(), DeviceId::new());
        let Ok(first) = OriginatorLockGuard::try_acquire(subject) else {
            panic!("it is free")
        };
        let Err(second) = OriginatorLockGuard::try_acquire(subject) else {
            panic!("it is taken")
        };
        let Err(third) = OriginatorLockGuard::try_acquire(subject) else {
            panic!("it is taken")
        };
        let mut second = Box::pin(second.acquire());
        tokio::select! {
            biased;
            _ = &mut second => panic!("two have a turn"),
            () = tokio::task::yield_now() => {}
        }
        drop(first);
        drop(third);
        drop(second.await);
        assert!(!is_known(subject));

        let Ok(first) = OriginatorLockGuard::try_acquire(subject) else {
            panic!("it is free")
        };
        let Err(given_up) = OriginatorLockGuard::try_acquire(subject) else {
            panic!("it is taken")
        };
        drop(first);
        drop(given_up);
        assert!(!is_known(subject));
    }
}
