//! Keeps guessing the secrets of devices slow. Whoever guesses waits for longer each time; others wait only after a wrong
//! secret of their own, so that strangers keep nobody from claiming what is theirs.

use fieldline_model::{CustomerId, DeviceId, TenantId, UserId};
use parking_lot::Mutex;
use quick_cache::sync::Cache;

/// Users, devices and tenants that are remembered; beyond so many the least recently used are forgotten.
const CACHE_CAPACITY: usize = 20_000;
/// Wrong secrets of a user, and of a customer for one device, before they have to wait.
const FREE_GUESSES: u32 = 5;
/// The same where many guess at the same device, or in the same tenant.
const FREE_GUESSES_IN_CROWD: u32 = 1;
/// Wrong secrets for a device, and in a tenant, that make a crowd.
const CROWD_AT_DEVICE: u32 = 50;
const CROWD_IN_TENANT: u32 = 500;
/// The first wait, milliseconds; each is twice as long as the one before.
const FIRST_WAIT_MS: i64 = 1_000;
const LONGEST_WAIT_MS: i64 = 3_600_000;
/// Times that lie so little ahead are no sign of a clock that was set back.
const SLACK_MS: i64 = 60_000;
/// How long wrong secrets are remembered after the wait for them is over.
const MEMORY_MS: i64 = 3_600_000;

/// What wrong secrets are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ClaimGuessKey {
    By(UserId),
    For(CustomerId, DeviceId),
    At(DeviceId),
    In(TenantId),
}

/// Wrong secrets in a row.
#[derive(Debug, Clone, Copy, Default)]
struct ClaimGuessStreak {
    count: u32,
    last: i64,
    /// When the next one may come.
    until: i64,
}

/// One who tells a secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimGuess {
    pub(super) user: UserId,
    pub(super) customer: CustomerId,
    pub(super) device: DeviceId,
    pub(super) tenant: TenantId,
}

impl ClaimGuess {
    /// Those who have to wait after a wrong one.
    const fn own(&self) -> [ClaimGuessKey; 2] {
        [
            ClaimGuessKey::By(self.user),
            ClaimGuessKey::For(self.customer, self.device),
        ]
    }

    /// What is guessed at, with how many wrong ones make a crowd.
    const fn around(&self) -> [(ClaimGuessKey, u32); 2] {
        [
            (ClaimGuessKey::At(self.device), CROWD_AT_DEVICE),
            (ClaimGuessKey::In(self.tenant), CROWD_IN_TENANT),
        ]
    }
}

/// Counts wrong secrets.
pub(super) struct ClaimGuessLimiter {
    wrong: Cache<ClaimGuessKey, ClaimGuessStreak>,
    /// A read and a write of one entry belong together.
    turn: Mutex<()>,
}

impl Default for ClaimGuessLimiter {
    fn default() -> Self {
        Self {
            wrong: Cache::new(CACHE_CAPACITY),
            turn: Mutex::new(()),
        }
    }
}

impl ClaimGuessLimiter {
    fn known(&self, of: ClaimGuessKey, now_ms: i64) -> ClaimGuessStreak {
        let known = self.wrong.get(&of).filter(|wrong| {
            // A time that is still to come was noted before the clock was set back.
            let over = wrong.last.max(wrong.until).saturating_add(MEMORY_MS);
            (wrong.last.saturating_sub(SLACK_MS)..over).contains(&now_ms)
        });
        known.unwrap_or_default()
    }

    /// Takes a guess for a wrong one until [`Self::uncount_guess`] says otherwise, so that many at the same time are no more than one
    /// after the other.
    ///
    /// # Errors
    /// How long it has to wait, milliseconds.
    pub(super) fn count_guess(&self, guess: &ClaimGuess, now_ms: i64) -> Result<(), i64> {
        let _turn = self.turn.lock();
        let until = guess.own().map(|of| self.known(of, now_ms).until);
        let wait = until.into_iter().max().unwrap_or(0) - now_ms;
        if wait > 0 {
            return Err(wait);
        }
        let mut free = FREE_GUESSES;
        for (of, crowd) in guess.around() {
            let known = self.known(of, now_ms);
            if known.count >= crowd {
                free = FREE_GUESSES_IN_CROWD;
            }
            let count = known.count.saturating_add(1);
            let wrong = ClaimGuessStreak {
                count,
                last: now_ms,
                until: 0,
            };
            self.wrong.insert(of, wrong);
        }
        for of in guess.own() {
            let count = self.known(of, now_ms).count.saturating_add(1);
            let until = match count.checked_sub(free) {
                Some(beyond) => now_ms.saturating_add(wait_after(beyond)),
                None => 0,
            };
            let wrong = ClaimGuessStreak {
                count,
                last: now_ms,
                until,
            };
            self.wrong.insert(of, wrong);
        }
        Ok(())
    }

    /// A guess was right, or none at all. The wrong ones before it still count: a device that is one's own makes nobody free
    /// to guess at others.
    pub(super) fn uncount_guess(&self, guess: &ClaimGuess) {
        let _turn = self.turn.lock();
        let around = guess.around().map(|(of, _)| of);
        for of in guess.own().into_iter().chain(around) {
            if let Some(wrong) = self.wrong.get(&of) {
                let count = wrong.count.saturating_sub(1);
                let wrong = ClaimGuessStreak {
                    count,
                    until: 0,
                    ..wrong
                };
                self.wrong.insert(of, wrong);
            }
        }
    }
}

/// The wait after so many wrong ones beyond those that are free.
fn wait_after(beyond: u32) -> i64 {
    let doubled = FIRST_WAIT_MS
        .checked_shl(beyond.min(30))
        .unwrap_or(LONGEST_WAIT_MS);
    doubled.min(LONGEST_WAIT_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess() -> ClaimGuess {
        ClaimGuess {
            user: UserId::new(),
            customer: CustomerId::new(),
            device: DeviceId::new(),
            tenant: TenantId::new(),
        }
    }

    #[test]
    fn who_guesses_waits_twice_as_long_each_time() {
        let guesses = ClaimGuessLimiter::default();
        let guess = guess();
        for _ in 0..FREE_GUESSES {
            assert_eq!(guesses.count_guess(&guess, 0), Ok(()));
        }
        let mut now = 0;
        for wait in [1_000, 2_000, 4_000, 8_000] {
            assert_eq!(guesses.count_guess(&guess, now), Err(wait));
            assert_eq!(guesses.count_guess(&guess, now + wait - 1), Err(1));
            now += wait;
            assert_eq!(guesses.count_guess(&guess, now), Ok(()));
        }
        let elsewhere = ClaimGuess {
            device: DeviceId::new(),
            ..guess
        };
        assert!(
            guesses.count_guess(&elsewhere, now).is_err(),
            "nor for another device"
        );
        let colleague = ClaimGuess {
            user: UserId::new(),
            ..guess
        };
        assert!(
            guesses.count_guess(&colleague, now).is_err(),
            "nor the same customer"
        );
        for _ in 0..100 {
            now += LONGEST_WAIT_MS;
            assert_eq!(guesses.count_guess(&guess, now), Ok(()));
        }
        assert_eq!(guesses.count_guess(&guess, now), Err(LONGEST_WAIT_MS));
        now += LONGEST_WAIT_MS + MEMORY_MS;
        for _ in 0..FREE_GUESSES {
            assert_eq!(guesses.count_guess(&guess, now), Ok(()), "forgotten");
        }
    }

    #[test]
    fn strangers_who_guess_leave_others_their_try() {
        let guesses = ClaimGuessLimiter::default();
        let owner = guess();
        for _ in 0..CROWD_AT_DEVICE {
            let stranger = ClaimGuess {
                user: UserId::new(),
                customer: CustomerId::new(),
                ..owner
            };
            assert_eq!(guesses.count_guess(&stranger, 0), Ok(()));
        }
        assert_eq!(guesses.count_guess(&owner, 1), Ok(()));
        assert_eq!(guesses.count_guess(&owner, 1), Err(1_000), "one, in a crowd");
        guesses.uncount_guess(&owner);
        assert_eq!(guesses.count_guess(&owner, 1), Ok(()));
    }
}
