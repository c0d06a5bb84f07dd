//! The time by which expired data is deleted for good.

use std::time::{Duration, Instant};

/// A clock that gains more than this on the time that has passed was set forward.
const TOLERANCE_MS: i64 = 60_000;

/// Follows the wall clock, but believes it only once it has stood for a while: a clock that ran ahead and is put right
/// again must have cost no data. What has expired by the wall clock is hidden at once, which can be taken back.
#[derive(Debug)]
pub(super) struct ExpiryClock {
    grace: Duration,
    /// The wall clock, and when it was read.
    seen: Option<(i64, Instant)>,
    /// When the program was started, or the clock was set forward.
    unsure_since: Option<Instant>,
    believed_ms: i64,
}

impl ExpiryClock {
    /// A clock that has to stand for `grace` before it is believed.
    pub(super) const fn new(grace: Duration) -> Self {
        Self {
            grace,
            seen: None,
            unsure_since: None,
            believed_ms: i64::MIN,
        }
    }

    /// What has expired before this time may be deleted. `wall_ms` is what the wall clock shows at the moment `at`.
    pub(super) fn now_ms(&mut self, wall_ms: i64, at: Instant) -> i64 {
        let passed_ms = match self.seen.replace((wall_ms, at)) {
            Some((before_ms, then)) => {
                let passed_ms = i64::try_from((at - then).as_millis()).unwrap_or(i64::MAX);
                if wall_ms.saturating_sub(before_ms) > passed_ms.saturating_add(TOLERANCE_MS) {
                    self.unsure_since = Some(at);
                }
                passed_ms
            }
            None => {
                self.unsure_since = Some(at);
                0
            }
        };
        self.unsure_since = self.unsure_since.filter(|since| at - *since < self.grace);
        self.believed_ms = match self.unsure_since {
            // What was believed before goes on, as far as the clock does not contradict it.
            Some(_) => self.believed_ms.saturating_add(passed_ms).min(wall_ms),
            None => wall_ms,
        };
        self.believed_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;
    const GRACE: Duration = Duration::from_secs(3_600);

    /// A clock, and what it is told: how long the program has run, and how far the wall clock is off.
    fn clock() -> impl FnMut(i64, i64) -> i64 {
        let (mut clock, start) = (ExpiryClock::new(GRACE), Instant::now());
        move |passed, off| {
            let at = start + Duration::from_millis(passed as u64);
            clock.now_ms(passed + off, at)
        }
    }

    #[test]
    fn a_clock_that_ran_ahead_and_came_back_was_never_believed() {
        let mut now = clock();
        assert!(
            now(0, 0) < 0 && now(HOUR - 1, 0) < 0,
            "nobody knows how the clock came to be"
        );
        assert_eq!(now(HOUR, 0), HOUR);
        assert_eq!(now(2 * HOUR, 0), 2 * HOUR);
        assert_eq!(now(2 * HOUR + 10, DAY), 2 * HOUR + 10, "time goes on as it did");
        assert_eq!(now(2 * HOUR + 20, DAY), 2 * HOUR + 20);
        assert_eq!(
            now(2 * HOUR + 30, -HOUR),
            HOUR + 30,
            "a clock that was set back deletes less"
        );
        // Put right again it is set forward as well.
        assert_eq!(now(2 * HOUR + 40, 0), HOUR + 40);
        assert_eq!(now(3 * HOUR + 40, 0), 3 * HOUR + 40);
    }

    #[test]
    fn a_clock_that_stays_ahead_is_believed_in_the_end() {
        let mut now = clock();
        now(0, 0);
        now(2 * HOUR, 0);
        assert_eq!(now(2 * HOUR, DAY), 2 * HOUR);
        assert_eq!(now(3 * HOUR - 1, DAY), 3 * HOUR - 1);
        assert_eq!(now(3 * HOUR, DAY), DAY + 3 * HOUR);
    }

    #[test]
    fn a_clock_that_is_adjusted_a_little_stays_believed() {
        let mut now = clock();
        now(0, 0);
        for minute in 60..600 {
            let (passed, off) = (minute * 60_000, minute * 50);
            assert_eq!(now(passed, off), passed + off);
        }
    }
}
