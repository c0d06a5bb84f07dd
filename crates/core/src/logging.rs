//! Rate-limited logging, so that one bad device cannot flood the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// Lets a few events per second through and counts the rest.
///
/// ```
/// # use fieldline_core::logging::LogGate;
/// static GATE: LogGate = LogGate::new(5);
/// if let Some(suppressed) = GATE.open() {
///     tracing::warn!(suppressed, "dropped malformed packet");
/// }
/// ```
#[derive(Debug)]
pub struct LogGate {
    per_second: u32,
    window: Mutex<Option<(Instant, u32)>>,
    suppressed: AtomicU64,
}

impl LogGate {
    /// Creates a gate that lets `per_second` events through each second.
    pub const fn new(per_second: u32) -> Self {
        Self {
            per_second,
            window: Mutex::new(None),
            suppressed: AtomicU64::new(0),
        }
    }

    /// Decides whether to log this event: `Some` with the number suppressed since the last logged event, or `None`.
    pub fn open(&self) -> Option<u64> {
        let now = Instant::now();
        let mut window = self.window.lock();
        let (started, count) = match *window {
            Some((started, count)) if now.duration_since(started).as_secs() < 1 => (started, count),
            _ => (now, 0),
        };
        *window = Some((started, count.saturating_add(1)));
        if count < self.per_second {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}
