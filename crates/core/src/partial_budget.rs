//! The memory for partially received packets, over all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Buffer size that every connection may hold outside the budget, bytes.
const FREE: usize = 4 << 10;

/// A budget of bytes, shared by all connections.
#[derive(Debug)]
pub struct PartialBudget {
    used: AtomicUsize,
    limit: usize,
}

impl PartialBudget {
    /// Makes a budget of so many bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            limit,
        })
    }

    /// Returns a reservation that holds nothing yet.
    pub fn share(self: &Arc<Self>) -> BufferReservation {
        BufferReservation {
            budget: self.clone(),
            held: 0,
        }
    }
}

/// The share of one connection in the budget; given back when dropped.
#[derive(Debug)]
pub struct BufferReservation {
    budget: Arc<PartialBudget>,
    held: usize,
}

impl BufferReservation {
    /// Resizes the reservation for a buffer of that capacity. Returns whether the budget had room; if not, the
    /// reservation stays as it was.
    pub fn resize(&mut self, capacity: usize) -> bool {
        let wanted = if capacity <= FREE { 0 } else { capacity };
        if wanted == self.held {
            return true;
        }
        if wanted < self.held {
            self.budget.used.fetch_sub(self.held - wanted, Ordering::Relaxed);
        } else {
            let more = wanted - self.held;
            if self.budget.used.fetch_add(more, Ordering::Relaxed) + more > self.budget.limit {
                self.budget.used.fetch_sub(more, Ordering::Relaxed);
                return false;
            }
        }
        self.held = wanted;
        true
    }
}

impl Drop for BufferReservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_does_not_fit_takes_nothing() {
        let budget = PartialBudget::new(100 << 10);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.resize(FREE) && first.resize(60 << 10));
        assert!(!second.resize(60 << 10));
        drop(first);
        assert!(second.resize(60 << 10));
        drop(second);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
