//! Wall-clock time behind a port, so that tests can control it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970, UTC. May jump when the machine's clock is set.
    fn now_ms(&self) -> i64;
}

/// A clock shared by the whole process.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as i64)
    }
}

/// Server-assigned times of one device: never the same twice, and never backwards, whatever the clock does.
#[derive(Debug, Default)]
pub struct MonotonicTimes {
    last: AtomicI64,
}

impl MonotonicTimes {
    /// Creates times that continue after `last_ms`, a time given out earlier.
    pub const fn after(last_ms: i64) -> Self {
        Self {
            last: AtomicI64::new(last_ms),
        }
    }

    /// The last time given out. It runs ahead of the clock when more than one time per millisecond was requested.
    pub fn last(&self) -> i64 {
        self.last.load(Ordering::Relaxed)
    }

    /// The time for a new point: now, or one millisecond after the last time given out if that is later.
    pub fn next(&self, now_ms: i64) -> i64 {
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let next = now_ms.max(last.saturating_add(1));
            match self
                .last
                .compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return next,
                Err(current) => last = current,
            }
        }
    }
}

/// A clock that only moves when a test moves it.
#[cfg(test)]
pub(crate) struct StandingClock(pub(crate) AtomicI64);

#[cfg(test)]
impl Clock for StandingClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_messages_within_a_millisecond_get_two_times() {
        let times = MonotonicTimes::default();
        assert_eq!(
            [times.next(100), times.next(100), times.next(90), times.next(200)],
            [100, 101, 102, 200]
        );
    }
}
