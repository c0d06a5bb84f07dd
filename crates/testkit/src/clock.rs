//! A clock that is moved by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fieldline_core::clock::Clock;

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    pub fn at(now_ms: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(now_ms)))
    }

    /// Moves the clock, backwards where `ms` is negative.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
