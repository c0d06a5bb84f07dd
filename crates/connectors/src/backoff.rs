//! Growing pauses between attempts.

use std::time::Duration;

use rand::Rng;

/// Doubles the pause from attempt to attempt, up to a bound, and varies it by a fifth, so that clients that lost the
/// same server do not all come back at once.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses that begin with `first`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// Returns how long to wait before the next attempt.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause.mul_f64(rand::rng().random_range(0.8..1.2))
    }

    /// Begins again with the first pause, after a success.
    pub const fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_bound_and_begin_again() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let mut expect = |secs: f64| {
            let pause = backoff.pause().as_secs_f64();
            assert!(
                (secs * 0.8..=secs * 1.2).contains(&pause),
                "{pause} is not about {secs}"
            );
        };
        for secs in [1.0, 2.0, 4.0, 5.0, 5.0] {
            expect(secs);
        }
        backoff.reset();
        assert!(backoff.pause() < Duration::from_millis(1300));
    }
}
