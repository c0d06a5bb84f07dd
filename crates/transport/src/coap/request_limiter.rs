//! Limits the number of requests in progress, overall and per owner.

use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::counts::BoundedCounts;

/// Permits for requests in progress; see the module.
pub(super) struct RequestLimiter<K> {
    free: Arc<Semaphore>,
    all: u32,
    taken: Mutex<BoundedCounts<K>>,
    each: usize,
}

/// A permit for one request; given back when dropped.
pub(super) struct RequestPermit<K: Copy + Eq + Hash> {
    limiter: Arc<RequestLimiter<K>>,
    owner: K,
    _permit: OwnedSemaphorePermit,
}

impl<K: Copy + Eq + Hash> RequestLimiter<K> {
    /// Allows `all` permits overall, at least one, and at most `each` per owner.
    pub(super) fn new(all: usize, each: usize) -> Arc<Self> {
        let all = all.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Arc::new(Self {
            free: Arc::new(Semaphore::new(all)),
            all: all as u32,
            taken: Mutex::default(),
            each,
        })
    }

    /// Takes a permit for this owner; `None` if there is none left.
    pub(super) fn try_acquire(self: &Arc<Self>, owner: K) -> Option<RequestPermit<K>> {
        let permit = self.free.clone().try_acquire_owned().ok()?;
        self.taken
            .lock()
            .try_increment(owner, self.each)
            .then(|| RequestPermit {
                limiter: self.clone(),
                owner,
                _permit: permit,
            })
    }

    /// Waits until all permits were given back.
    pub(super) async fn wait_idle(&self) {
        let _ = self.free.acquire_many(self.all).await;
    }
}

impl<K: Copy + Eq + Hash> Drop for RequestPermit<K> {
    fn drop(&mut self) {
        self.limiter.taken.lock().decrement(&self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_more_than_a_part_and_all_no_more_than_there_are() {
        let places = RequestLimiter::new(5, 2);
        let first: Vec<_> = (0..4).filter_map(|_| places.try_acquire('a')).collect();
        assert_eq!(first.len(), 2);
        let second: Vec<_> = (0..4).filter_map(|_| places.try_acquire('b')).collect();
        let third: Vec<_> = (0..4).filter_map(|_| places.try_acquire('c')).collect();
        assert_eq!((second.len(), third.len()), (2, 1));
        drop(first);
        assert!(places.try_acquire('c').is_some());
        drop((second, third));
        assert!(places.taken.lock().is_empty());
    }
}
