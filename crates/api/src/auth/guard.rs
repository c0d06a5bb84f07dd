//! Keeps guessing passwords slow: a lock-out per user and address, and a rate per address, both in bounded memory.
//!
//! Whoever guesses locks out their own address first, so that nobody keeps others out of their accounts with a few wrong
//! passwords; only where so many come from many addresses, the user is locked out from everywhere. Not even then from where
//! the user has logged in before: strangers who keep at it lock themselves out, and newcomers.

use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;
use quick_cache::sync::Cache;

use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::options::Options;

/// Users and addresses that are remembered; beyond so many the least recently used are forgotten.
const REMEMBERED: usize = 20_000;
const MINUTE_MS: i64 = 60_000;
/// From how many addresses a user may be guessed at as often as one may within one time of lock-out, before it is locked out
/// for all.
const ADDRESSES: u32 = 10;
/// Addresses that are remembered of a user who has logged in from there.
const PROVEN: usize = 8;

/// A lower-case login name, and the address that it was tried from; `None` for all addresses together.
type Attempted = (String, Option<IpAddr>);

/// Wrong passwords that count together, and when the first and the last of them came.
#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    first: i64,
    last: i64,
}

/// Counts failed and attempted logins.
pub(crate) struct LoginGuard {
    max_failures: u32,
    lockout_ms: i64,
    per_minute: u32,
    failures: Cache<Attempted, Failures>,
    /// From where users have logged in, by lower-case login name, the latest last. Only a right password adds to it, so that
    /// nobody pushes out what is known of others.
    proven: Cache<String, Vec<IpAddr>>,
    /// Attempts and the start of the minute they were made in.
    attempts: Cache<IpAddr, (u32, i64)>,
    /// A read and a write of one entry belong together.
    turn: Mutex<()>,
}

impl LoginGuard {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            max_failures: options.max_failed_logins,
            lockout_ms: i64::try_from(options.lockout.0.as_millis()).unwrap_or(i64::MAX),
            per_minute: options.logins_per_minute,
            failures: Cache::new(REMEMBERED),
            proven: Cache::new(REMEMBERED),
            attempts: Cache::new(REMEMBERED),
            turn: Mutex::new(()),
        }
    }

    /// Counts an attempt, and refuses it where its address has made too many or the user is locked out. Whether the user
    /// exists makes no difference.
    pub(crate) fn attempt(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) -> ApiResult<()> {
        let _turn = self.turn.lock();
        if let Some(peer) = peer.filter(|_| self.per_minute > 0).map(network) {
            let (count, started) = match self.attempts.get(&peer) {
                Some((count, started)) if (0..MINUTE_MS).contains(&(now_ms - started)) => (count, started),
                _ => (0, now_ms),
            };
            if count >= self.per_minute {
                return Err(ApiError::new(
                    ErrorCode::TooManyRequests,
                    "Too many login attempts from this address!",
                ));
            }
            self.attempts.insert(peer, (count + 1, started));
        }
        self.check(&attempted(peer, login), now_ms)
    }

    /// Refuses where too many wrong passwords have come: from this address, or, unless the user is known to come from there,
    /// from all together.
    fn check(&self, attempted: &[Attempted], now_ms: i64) -> ApiResult<()> {
        let counted = if self.is_proven(attempted) {
            1
        } else {
            attempted.len()
        };
        let locked = attempted.iter().take(counted).any(|key| {
            let most = self.most(key, attempted.len());
            self.failures.get(key).is_some_and(|failures| {
                most > 0 && failures.count >= most && self.counts(failures.last, now_ms)
            })
        });
        if locked {
            return Err(ApiError::new(
                ErrorCode::Authentication,
                "User account is locked due to security policy",
            ));
        }
        Ok(())
    }

    /// Whether the user has logged in from there before.
    fn is_proven(&self, attempted: &[Attempted]) -> bool {
        let Some((login, Some(peer))) = attempted.first() else {
            return false;
        };
        self.proven.get(login).is_some_and(|known| known.contains(peer))
    }

    /// Wrong passwords that lock out; where addresses are not known, all come from one.
    fn most(&self, (_, peer): &Attempted, kinds: usize) -> u32 {
        match peer {
            None if kinds > 1 => self.max_failures.saturating_mul(ADDRESSES),
            _ => self.max_failures,
        }
    }

    /// Whether a failure still counts. One that lies in the future was noted before the clock was set back, and must not
    /// lock its user out until the clock has come there again.
    fn counts(&self, failed_ms: i64, now_ms: i64) -> bool {
        (0..self.lockout_ms).contains(&now_ms.saturating_sub(failed_ms))
    }

    /// Remembers that a password was wrong.
    pub(crate) fn failed(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) {
        let _turn = self.turn.lock();
        let attempted = attempted(peer, login);
        for key in &attempted {
            let most = self.most(key, attempted.len());
            let of_all = key.1.is_none() && attempted.len() > 1;
            let before = self.failures.get(key).filter(|failures| {
                // Of all together those within one time count. Else a few addresses, each of which is locked out again and
                // again, would make up for many.
                let begun = if of_all && failures.count < most {
                    failures.first
                } else {
                    failures.last
                };
                self.counts(begun, now_ms)
            });
            let failures = Failures {
                count: before.map_or(0, |before| before.count).saturating_add(1),
                first: before.map_or(now_ms, |before| before.first),
                last: now_ms,
            };
            self.failures.insert(key.clone(), failures);
        }
    }

    /// Forgets the wrong passwords of a user who has shown the right one, those of this address, and as many of the others as
    /// one address may send where the user has come from here before. Refuses it where too many wrong ones have come while
    /// it was checked: many guesses at the same time are not allowed more than one after the other.
    pub(crate) fn succeeded(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) -> ApiResult<()> {
        let _turn = self.turn.lock();
        let attempted = attempted(peer, login);
        self.check(&attempted, now_ms)?;
        let Some(own) = attempted.first() else {
            return Ok(());
        };
        let mut forgiven = self
            .failures
            .remove(own)
            .map_or(0, |(_, failures)| failures.count);
        if self.is_proven(&attempted) {
            forgiven = forgiven.saturating_add(self.max_failures);
        }
        if let Some(all) = attempted.get(1)
            && let Some(failures) = self.failures.get(all)
        {
            let count = failures.count.saturating_sub(forgiven);
            self.failures.insert(all.clone(), Failures { count, ..failures });
        }
        if let (login, Some(peer)) = own {
            let mut known = self.proven.get(login).unwrap_or_default();
            known.retain(|known| known != peer);
            known.push(*peer);
            known.drain(..known.len().saturating_sub(PROVEN));
            self.proven.insert(login.clone(), known);
        }
        Ok(())
    }

    /// Forgets the wrong passwords of a user who has set another one, and from where the old one was used.
    pub(crate) fn forget(&self, peer: Option<IpAddr>, login: &str) {
        let _turn = self.turn.lock();
        for key in attempted(peer, login) {
            self.failures.remove(&key);
        }
        self.proven.remove(&login.to_lowercase());
    }
}

/// What an attempt counts for: that of an address first, where it is known.
fn attempted(peer: Option<IpAddr>, login: &str) -> Vec<Attempted> {
    let login = login.to_lowercase();
    let own = peer.map(network).map(|peer| (login.clone(), Some(peer)));
    own.into_iter().chain([(login, None)]).collect()
}

/// Whoever has one IPv6 address usually has the 2⁶⁴ beside it, so those count as one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldline_core::options::Span;

    fn guard() -> LoginGuard {
        LoginGuard::new(&Options {
            max_failed_logins: 2,
            lockout: Span::secs(60),
            logins_per_minute: 3,
            ..Options::default()
        })
    }

    #[test]
    fn a_user_is_locked_out_for_a_while_after_too_many_wrong_passwords() {
        let guard = guard();
        guard.failed(None, "Ann@example.org", 0);
        assert!(guard.attempt(None, "ann@example.org", 1).is_ok());
        guard.failed(None, "ann@example.org", 2);
        assert!(guard.attempt(None, "ANN@example.org", 3).is_err());
        assert!(guard.attempt(None, "bob@example.org", 3).is_ok());
        assert!(guard.attempt(None, "ann@example.org", 60_002).is_ok());
        // The clock was set back by an hour right after somebody was locked out.
        let later = 3_600_000;
        guard.failed(None, "eve@example.org", later);
        guard.failed(None, "eve@example.org", later);
        assert!(guard.attempt(None, "eve@example.org", later).is_err());
        assert!(guard.attempt(None, "eve@example.org", 1).is_ok());
    }

    #[test]
    fn an_address_may_try_only_so_often_a_minute() {
        let guard = guard();
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..3 {
            assert!(guard.attempt(peer, "a", 0).is_ok());
        }
        assert!(guard.attempt(peer, "b", 1).is_err());
        assert!(guard.attempt(Some(IpAddr::from([192, 0, 2, 2])), "a", 1).is_ok());
        assert!(guard.attempt(peer, "a", 60_000).is_ok());
        for last in 0..3 {
            let peer = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
            assert!(guard.attempt(Some(peer), "a", 0).is_ok());
        }
        let neighbour = IpAddr::from([0x2001, 0xdb8, 0, 0, 9, 9, 9, 9]);
        assert!(guard.attempt(Some(neighbour), "a", 1).is_err());
    }

    #[test]
    fn nobody_keeps_others_out_from_one_address() {
        let guard = LoginGuard::new(&Options {
            logins_per_minute: 0,
            max_failed_logins: 2,
            ..Options::default()
        });
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        for _ in 0..5 {
            guard.failed(address(1), "ann", 0);
        }
        assert!(guard.attempt(address(1), "Ann", 1).is_err());
        assert!(guard.attempt(address(2), "Ann", 1).is_ok(), "where she is");
        // From many addresses it is another matter.
        for last in 3..12 {
            guard.failed(address(last), "ann", 1);
            guard.failed(address(last), "ann", 1);
        }
        assert!(guard.attempt(address(2), "ann", 2).is_err());
        assert!(guard.attempt(address(2), "bob", 2).is_ok());
    }

    #[test]
    fn few_addresses_that_keep_at_it_are_no_more_than_few() {
        let guard = LoginGuard::new(&Options {
            logins_per_minute: 0,
            max_failed_logins: 2,
            lockout: Span::secs(60),
            ..Options::default()
        });
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        for turn in 0..40 {
            for stranger in [1, 2] {
                // Each begins again as soon as it may.
                let now = turn * 60_000 + i64::from(stranger);
                for _ in 0..2 {
                    if guard.attempt(address(stranger), "ann", now).is_ok() {
                        guard.failed(address(stranger), "ann", now);
                    }
                }
            }
        }
        assert!(guard.attempt(address(3), "ann", 39 * 60_000 + 3).is_ok());
    }

    #[test]
    fn strangers_lock_nobody_out_from_where_they_log_in() {
        let guard = LoginGuard::new(&Options {
            logins_per_minute: 0,
            max_failed_logins: 2,
            ..Options::default()
        });
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let guess_from = |range: std::ops::Range<u8>| {
            for last in range {
                guard.failed(address(last), "ann", 1);
                guard.failed(address(last), "ann", 1);
            }
        };
        let home = address(200);
        assert!(guard.attempt(home, "Ann", 0).is_ok());
        assert!(guard.succeeded(home, "Ann", 0).is_ok());
        guess_from(0..12);
        assert!(guard.attempt(address(100), "ann", 2).is_err());
        assert!(guard.attempt(home, "ann", 2).is_ok());
        // Each success takes some of the wrong ones off, until newcomers are let in.
        for _ in 0..3 {
            assert!(guard.succeeded(home, "ann", 2).is_ok());
        }
        assert!(guard.attempt(address(100), "ann", 2).is_ok());
        // Guesses from the known address count there, too.
        guess_from(200..201);
        assert!(guard.attempt(home, "ann", 2).is_err());
        // With another password nobody is known.
        guard.forget(address(100), "ann");
        guess_from(0..12);
        assert!(guard.attempt(home, "ann", 2).is_err());
        assert!(guard.attempt(address(100), "ann", 2).is_err());
    }

    #[test]
    fn of_a_user_few_addresses_are_kept() {
        let guard = guard();
        for last in 0..100 {
            assert!(guard.succeeded(Some([192, 0, 2, last].into()), "ann", 0).is_ok());
        }
        assert_eq!(guard.proven.get("ann").unwrap().len(), PROVEN);
    }

    #[test]
    fn guesses_at_the_same_time_are_as_few_as_one_after_the_other() {
        let guard = guard();
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..3 {
            assert!(guard.attempt(peer, "ann", 0).is_ok(), "none is answered yet");
        }
        guard.failed(peer, "ann", 1);
        assert!(guard.succeeded(peer, "ann", 1).is_ok());
        guard.failed(peer, "ann", 1);
        guard.failed(peer, "ann", 1);
        assert!(
            guard.succeeded(peer, "ann", 1).is_err(),
            "the third guess is right, and too late"
        );
    }
}
