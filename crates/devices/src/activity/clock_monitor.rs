//! Whether time goes on as usual: a clock that is set, or a program that is stopped for a while, makes everybody look
//! silent who was not.

use std::time::{Duration, Instant};

/// Time that goes on by so much more or less than it should was set, or the program was stopped.
const STEP: Duration = Duration::from_secs(2);

/// Wall clock and monotonic time, as they were when somebody looked last.
#[derive(Debug)]
pub(super) struct ClockMonitor {
    wall_ms: i64,
    at: Instant,
    /// Longest time between two looks, unless the program is stopped or kept waiting.
    period: Duration,
}

impl ClockMonitor {
    /// Looks from now on.
    pub(super) const fn starting(wall_ms: i64, at: Instant, period: Duration) -> Self {
        Self { wall_ms, at, period }
    }

    /// Whether time went on as usual since the last look.
    pub(super) fn advance(&mut self, wall_ms: i64, at: Instant) -> bool {
        let passed = at.saturating_duration_since(self.at);
        let by_the_clock = wall_ms.saturating_sub(self.wall_ms);
        (self.wall_ms, self.at) = (wall_ms, at);
        let passed_ms = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        let was_set = by_the_clock.abs_diff(passed_ms) > STEP.as_millis() as u64;
        !was_set && passed <= self.period + STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_jumps_or_stands_still_is_noticed() {
        let start = Instant::now();
        let mut course = ClockMonitor::starting(0, start, Duration::from_secs(3));
        let mut look =
            |passed_s: u64, wall_ms: i64| course.advance(wall_ms, start + Duration::from_secs(passed_s));
        assert!(
            look(3, 3_000) && look(6, 7_000),
            "a clock that is adjusted a little"
        );
        assert!(!look(9, 3_610_000) && look(12, 3_613_000), "set forward");
        assert!(!look(15, 16_000) && look(18, 19_000), "set back");
        assert!(!look(40, 41_000) && look(43, 44_000), "stopped");
    }
}
