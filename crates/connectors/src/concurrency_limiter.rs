//! How many may do something at a time, and how many may wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Lets a number of callers in and a number wait; more are turned away.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter {
    slots: Semaphore,
    waiting: AtomicUsize,
    max_waiting: usize,
}

/// As many wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitQueueFull;

struct WaiterGuard<'a>(&'a AtomicUsize);

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConcurrencyLimiter {
    pub(crate) const fn new(slots: usize, max_waiting: usize) -> Self {
        Self {
            slots: Semaphore::const_new(slots),
            waiting: AtomicUsize::new(0),
            max_waiting,
        }
    }

    /// Waits for a slot, which is held until the permit is dropped.
    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, WaitQueueFull> {
        if let Ok(permit) = self.slots.try_acquire() {
            return Ok(permit);
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(WaitQueueFull);
        }
        let _waiting = WaiterGuard(&self.waiting);
        // The semaphore is never closed.
        self.slots.acquire().await.map_err(|_| WaitQueueFull)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_is_counted_and_turned_away() {
        let gate = ConcurrencyLimiter::new(1, 1);
        let first = gate.acquire().await;
        let mut second = std::pin::pin!(gate.acquire());
        tokio::select! {
            biased;
            _ = &mut second => panic!("two were let in"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(gate.acquire().await.err(), Some(WaitQueueFull));
        drop(first);
        assert!(second.await.is_ok());
    }
}
