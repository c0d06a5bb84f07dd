//! Keeps guessing passwords slow: a lock-out per user and address, and a rate per address, both in bounded memory.
//!
//! Whoever guesses locks out their own address first, for longer each time, so that nobody keeps others out of their accounts
//! with wrong passwords. Where so many come from many addresses, newcomers have one try a network, and where still more come
//! none; but never those who come from where the user has logged in before: strangers who keep at it lock themselves out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parking_lot::Mutex;
use quick_cache::sync::Cache;

use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::options::Options;

/// Users and addresses that are remembered; beyond so many the least recently used are forgotten.
const MAX_REMEMBERED: usize = 20_000;
const MINUTE_MS: i64 = 60_000;
/// Who came first may be answered last: times that lie so little ahead are no sign of a clock that was set back.
const SLACK_MS: i64 = 60_000;
/// From how many addresses a user may be guessed at as often as one may within one time of lock-out, before newcomers have
/// one try a network.
const ADDRESSES: u32 = 10;
/// The same before newcomers have none.
const MANY_ADDRESSES: u32 = 100;
/// Addresses that are remembered of a user who has logged in from there.
pub(crate) const MAX_PROVEN_ADDRESSES: u32 = 8;
/// Longest lock-out of an address, however often it comes back; one that is set to be longer stays.
const LONGEST_LOCKOUT_MS: i64 = 86_400_000;

/// What wrong passwords of a user are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LoginOrigin {
    Address(IpAddr),
    /// The addresses around one.
    Network(IpAddr),
    /// All together, and those of unknown address.
    Everywhere,
}

/// A lower-case login name, and what it is counted by.
type LoginAttemptKey = (String, LoginOrigin);

/// Wrong passwords that count together, and when the first and the last of them came.
#[derive(Clone, Copy)]
struct LoginFailures {
    count: u32,
    first: i64,
    last: i64,
    /// How many lock-outs there were, one soon after the other.
    lockouts: u32,
}

/// Counts failed and attempted logins.
pub(crate) struct LoginGuard {
    max_failures: u32,
    lockout_ms: i64,
    per_minute: u32,
    failures: Cache<LoginAttemptKey, LoginFailures>,
    /// From where users have logged in, by lower-case login name, the latest last. Only a right password adds to it, so that
    /// nobody pushes out what is known of others.
    proven_addresses: Cache<String, Vec<IpAddr>>,
    /// Attempts and the start of the minute they were made in.
    attempts: Cache<IpAddr, (u32, i64)>,
    /// A read and a write of one entry belong together.
    lock: Mutex<()>,
}

impl LoginGuard {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            max_failures: options.max_failed_logins,
            lockout_ms: i64::try_from(options.lockout.0.as_millis()).unwrap_or(i64::MAX),
            per_minute: options.logins_per_minute,
            failures: Cache::new(MAX_REMEMBERED),
            proven_addresses: Cache::new(MAX_REMEMBERED),
            attempts: Cache::new(MAX_REMEMBERED),
            lock: Mutex::new(()),
        }
    }

    /// Counts an attempt, and refuses it where its address has made too many or the user is locked out. Whether the user
    /// exists makes no difference.
    pub(crate) fn count_and_check(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) -> ApiResult<()> {
        self.count(peer, now_ms)?;
        self.check(peer, login, now_ms)
    }

    /// Counts an attempt, and refuses it where its address has made too many.
    pub(crate) fn count(&self, peer: Option<IpAddr>, now_ms: i64) -> ApiResult<()> {
        let Some(peer) = peer.filter(|_| self.per_minute > 0).map(network) else {
            return Ok(());
        };
        let _turn = self.lock.lock();
        let (count, started) = match self.attempts.get(&peer) {
            Some((count, started)) if (-SLACK_MS..MINUTE_MS).contains(&(now_ms - started)) => {
                (count, started)
            }
            _ => (0, now_ms),
        };
        if count >= self.per_minute {
            return Err(ApiError::new(
                ErrorCode::TooManyRequests,
                "Too many login attempts from this address!",
            ));
        }
        self.attempts.insert(peer, (count + 1, started));
        Ok(())
    }

    /// Refuses an attempt where the user is locked out for its address. Whether the user exists makes no difference.
    pub(crate) fn check(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) -> ApiResult<()> {
        let _turn = self.lock.lock();
        self.check_within(&login.to_lowercase(), peer.map(network), now_ms)
    }

    fn check_within(&self, login: &str, address: Option<IpAddr>, now_ms: i64) -> ApiResult<()> {
        if self.is_locked_out(login, address, now_ms) {
            return Err(ApiError::new(
                ErrorCode::Authentication,
                "User account is locked due to security policy",
            ));
        }
        Ok(())
    }

    /// Whether too many wrong passwords have come: from this address, or, unless the user is known to come from there, from
    /// all together.
    fn is_locked_out(&self, login: &str, address: Option<IpAddr>, now_ms: i64) -> bool {
        let counted = |origin| {
            let failures = self.failures.get(&(login.to_owned(), origin));
            let most = self.most(origin, address);
            let counts = |failures: &LoginFailures| {
                self.is_counted(failures.last, self.window(failures, most), now_ms)
            };
            failures.filter(counts).map_or(0, |failures| failures.count)
        };
        if self.max_failures == 0 {
            return false;
        }
        let own = address.map_or(LoginOrigin::Everywhere, LoginOrigin::Address);
        if counted(own) >= self.max_failures {
            return true;
        }
        let Some(address) = address.filter(|address| !self.is_proven(login, *address)) else {
            return false;
        };
        let all = counted(LoginOrigin::Everywhere);
        let is_besieged = all >= self.max_failures.saturating_mul(ADDRESSES);
        let is_overrun = all >= self.max_failures.saturating_mul(MANY_ADDRESSES);
        is_overrun || (is_besieged && counted(LoginOrigin::Network(surroundings(address))) > 0)
    }

    /// Whether the user has logged in from there before.
    fn is_proven(&self, login: &str, address: IpAddr) -> bool {
        self.proven_addresses
            .get(login)
            .is_some_and(|known| known.contains(&address))
    }

    /// Whether it is known from where a user has logged in; see [`Self::learn`].
    pub(crate) fn knows(&self, login: &str) -> bool {
        self.proven_addresses.get(&login.to_lowercase()).is_some()
    }

    /// Takes up from where a user has logged in before, as [`source_of`] wrote it down, the latest last.
    pub(crate) fn learn(&self, login: &str, sources: &[String]) {
        let known = sources.iter().filter_map(|source| source.parse().ok()).collect();
        let _turn = self.lock.lock();
        let login = login.to_lowercase();
        if self.proven_addresses.get(&login).is_none() {
            self.proven_addresses.insert(login, known);
        }
    }

    /// Whether a user who has logged in from somewhere has never done so from this address.
    pub(crate) fn is_stranger(&self, peer: Option<IpAddr>, login: &str) -> bool {
        let known = self
            .proven_addresses
            .get(&login.to_lowercase())
            .unwrap_or_default();
        let peer = peer.map(network);
        peer.is_some_and(|peer| !known.is_empty() && !known.contains(&peer))
    }

    /// Wrong passwords after which something follows, of an origin of one who comes from an address.
    fn most(&self, origin: LoginOrigin, address: Option<IpAddr>) -> u32 {
        match origin {
            LoginOrigin::Everywhere if address.is_some() => self.max_failures.saturating_mul(ADDRESSES),
            // There the last one counts, and no number of them.
            LoginOrigin::Network(_) => u32::MAX,
            _ => self.max_failures,
        }
    }

    /// How long wrong passwords count: until the lock-out that follows from them is over, which is twice as long as the last
    /// one where that has just ended.
    fn window(&self, failures: &LoginFailures, most: u32) -> i64 {
        if failures.count < most || failures.lockouts < 2 {
            return self.lockout_ms;
        }
        let doubled = self
            .lockout_ms
            .saturating_mul(1 << (failures.lockouts - 1).min(20));
        doubled.min(self.lockout_ms.max(LONGEST_LOCKOUT_MS))
    }

    /// Whether a failure still counts. One that lies in the future was noted before the clock was set back, and must not
    /// lock its user out until the clock has come there again.
    fn is_counted(&self, failed_ms: i64, window: i64, now_ms: i64) -> bool {
        (-SLACK_MS..window).contains(&now_ms.saturating_sub(failed_ms))
    }

    /// Remembers that a password was wrong.
    pub(crate) fn record_failure(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) {
        let _turn = self.lock.lock();
        let address = peer.map(network);
        for key in attempt_keys(address, login) {
            let failures = self.add_failure(&key, address, now_ms);
            self.failures.insert(key, failures);
        }
    }

    fn add_failure(&self, key: &LoginAttemptKey, address: Option<IpAddr>, now_ms: i64) -> LoginFailures {
        let most = self.most(key.1, address);
        let of_all = key.1 == LoginOrigin::Everywhere && address.is_some();
        let mut failures = LoginFailures {
            count: 0,
            first: now_ms,
            last: now_ms,
            lockouts: 0,
        };
        if let Some(before) = self.failures.get(key) {
            let window = self.window(&before, most);
            // Of all together those within one time count. Else a few addresses, each of which is locked out again and again,
            // would make up for many.
            let begun = if of_all && before.count < most {
                before.first
            } else {
                before.last
            };
            if self.is_counted(begun, window, now_ms) {
                (failures.count, failures.first) = (before.count, before.first);
                failures.last = now_ms.max(before.last);
            }
            if self.is_counted(before.last, window.saturating_mul(2), now_ms) {
                failures.lockouts = before.lockouts;
            }
        }
        failures.count = failures.count.saturating_add(1);
        if failures.count == most && !of_all {
            failures.lockouts = failures.lockouts.saturating_add(1);
        }
        failures
    }

    /// Forgets the wrong passwords of a user who has shown the right one, those of this address, and as many of the others as
    /// one address may send where the user has come from here before. Refuses it where too many wrong ones have come while
    /// it was checked: many guesses at the same time are not allowed more than one after the other.
    pub(crate) fn record_success(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) -> ApiResult<()> {
        let _turn = self.lock.lock();
        let (address, login) = (peer.map(network), login.to_lowercase());
        self.check_within(&login, address, now_ms)?;
        let Some(address) = address else {
            self.failures.remove(&(login, LoginOrigin::Everywhere));
            return Ok(());
        };
        let own = (login.clone(), LoginOrigin::Address(address));
        let mut forgiven = self
            .failures
            .remove(&own)
            .map_or(0, |(_, failures)| failures.count);
        let around = (login.clone(), LoginOrigin::Network(surroundings(address)));
        self.failures.remove(&around);
        if self.is_proven(&login, address) {
            forgiven = forgiven.saturating_add(self.max_failures);
        }
        let all = (login.clone(), LoginOrigin::Everywhere);
        if let Some(failures) = self.failures.get(&all) {
            let count = failures.count.saturating_sub(forgiven);
            self.failures.insert(all, LoginFailures { count, ..failures });
        }
        let mut known = self.proven_addresses.get(&login).unwrap_or_default();
        known.retain(|known| *known != address);
        known.push(address);
        known.drain(..known.len().saturating_sub(MAX_PROVEN_ADDRESSES as usize));
        self.proven_addresses.insert(login, known);
        Ok(())
    }

    /// Forgets the wrong passwords of a user who has set another one, and from where the old one was used.
    pub(crate) fn forget(&self, peer: Option<IpAddr>, login: &str) {
        let _turn = self.lock.lock();
        for key in attempt_keys(peer.map(network), login) {
            self.failures.remove(&key);
        }
        self.proven_addresses.insert(login.to_lowercase(), Vec::new());
    }
}

/// What an attempt counts for.
fn attempt_keys(address: Option<IpAddr>, login: &str) -> impl Iterator<Item = LoginAttemptKey> {
    let login = login.to_lowercase();
    let origins = address.map(|address| {
        [
            LoginOrigin::Address(address),
            LoginOrigin::Network(surroundings(address)),
        ]
    });
    let origins = origins.into_iter().flatten().chain([LoginOrigin::Everywhere]);
    origins.map(move |origin| (login.clone(), origin))
}

/// The address that somebody is known by, written down.
pub(crate) fn source_of(peer: Option<IpAddr>) -> Option<String> {
    peer.map(|peer| network(peer).to_string())
}

/// Whoever has one IPv6 address usually has the 2⁶⁴ beside it, so those count as one.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

/// The network around an address that is easily had as a whole: an IPv4 /24, an IPv6 /48.
fn surroundings(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << 8)).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 80)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldline_core::options::HumanDuration;

    fn guard() -> LoginGuard {
        LoginGuard::new(&Options {
            max_failed_logins: 2,
            lockout: HumanDuration::secs(60),
            logins_per_minute: 3,
            ..Options::default()
        })
    }

    #[test]
    fn a_user_is_locked_out_for_a_while_after_too_many_wrong_passwords() {
        let guard = guard();
        guard.record_failure(None, "Ann@example.org", 0);
        assert!(guard.count_and_check(None, "ann@example.org", 1).is_ok());
        guard.record_failure(None, "ann@example.org", 2);
        assert!(guard.count_and_check(None, "ANN@example.org", 3).is_err());
        assert!(guard.count_and_check(None, "bob@example.org", 3).is_ok());
        assert!(guard.count_and_check(None, "ann@example.org", 60_002).is_ok());
        // The clock was set back by an hour right after somebody was locked out.
        let later = 3_600_000;
        guard.record_failure(None, "eve@example.org", later);
        guard.record_failure(None, "eve@example.org", later);
        assert!(guard.count_and_check(None, "eve@example.org", later).is_err());
        assert!(guard.count_and_check(None, "eve@example.org", 1).is_ok());
    }

    #[test]
    fn an_address_may_try_only_so_often_a_minute() {
        let guard = guard();
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..3 {
            assert!(guard.count_and_check(peer, "a", 0).is_ok());
        }
        assert!(guard.count_and_check(peer, "b", 1).is_err());
        assert!(
            guard
                .count_and_check(Some(IpAddr::from([192, 0, 2, 2])), "a", 1)
                .is_ok()
        );
        assert!(guard.count_and_check(peer, "a", 60_000).is_ok());
        for last in 0..3 {
            let peer = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
            assert!(guard.count_and_check(Some(peer), "a", 0).is_ok());
        }
        let neighbour = IpAddr::from([0x2001, 0xdb8, 0, 0, 9, 9, 9, 9]);
        assert!(guard.count_and_check(Some(neighbour), "a", 1).is_err());
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
            guard.record_failure(address(1), "ann", 0);
        }
        assert!(guard.count_and_check(address(1), "Ann", 1).is_err());
        assert!(
            guard.count_and_check(address(2), "Ann", 1).is_ok(),
            "where she is"
        );
        // From many addresses it is another matter.
        for last in 3..12 {
            guard.record_failure(address(last), "ann", 1);
            guard.record_failure(address(last), "ann", 1);
        }
        assert!(guard.count_and_check(address(2), "ann", 2).is_err());
        assert!(guard.count_and_check(address(2), "bob", 2).is_ok());
    }

    #[test]
    fn few_addresses_that_keep_at_it_are_no_more_than_few() {
        let guard = LoginGuard::new(&Options {
            logins_per_minute: 0,
            max_failed_logins: 2,
            lockout: HumanDuration::secs(60),
            ..Options::default()
        });
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        for turn in 0..40 {
            for stranger in [1, 2] {
                // Each begins again as soon as it may.
                let now = turn * 60_000 + i64::from(stranger);
                for _ in 0..2 {
                    if guard.count_and_check(address(stranger), "ann", now).is_ok() {
                        guard.record_failure(address(stranger), "ann", now);
                    }
                }
            }
        }
        assert!(guard.count_and_check(address(3), "ann", 39 * 60_000 + 3).is_ok());
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
                guard.record_failure(address(last), "ann", 1);
                guard.record_failure(address(last), "ann", 1);
            }
        };
        let home = address(200);
        assert!(guard.count_and_check(home, "Ann", 0).is_ok());
        assert!(guard.record_success(home, "Ann", 0).is_ok());
        guess_from(0..12);
        assert!(guard.count_and_check(address(100), "ann", 2).is_err());
        assert!(guard.count_and_check(home, "ann", 2).is_ok());
        // Each success takes some of the wrong ones off, until newcomers are let in.
        for _ in 0..3 {
            assert!(guard.record_success(home, "ann", 2).is_ok());
        }
        assert!(guard.count_and_check(address(100), "ann", 2).is_ok());
        // Guesses from the known address count there, too.
        guess_from(200..201);
        assert!(guard.count_and_check(home, "ann", 2).is_err());
        // With another password nobody is known.
        guard.forget(address(100), "ann");
        guess_from(0..12);
        assert!(guard.count_and_check(home, "ann", 2).is_err());
        assert!(guard.count_and_check(address(100), "ann", 2).is_err());
    }

    #[test]
    fn of_a_user_few_addresses_are_kept() {
        let guard = guard();
        for last in 0..100 {
            assert!(
                guard
                    .record_success(Some([192, 0, 2, last].into()), "ann", 0)
                    .is_ok()
            );
        }
        assert_eq!(
            guard.proven_addresses.get("ann").unwrap().len(),
            MAX_PROVEN_ADDRESSES as usize
        );
    }

    #[test]
    fn guesses_at_the_same_time_are_as_few_as_one_after_the_other() {
        let guard = guard();
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..3 {
            assert!(
                guard.count_and_check(peer, "ann", 0).is_ok(),
                "none is answered yet"
            );
        }
        guard.record_failure(peer, "ann", 1);
        assert!(guard.record_success(peer, "ann", 1).is_ok());
        guard.record_failure(peer, "ann", 1);
        guard.record_failure(peer, "ann", 1);
        assert!(
            guard.record_success(peer, "ann", 1).is_err(),
            "the third guess is right, and too late"
        );
    }

    fn unhurried() -> LoginGuard {
        LoginGuard::new(&Options {
            logins_per_minute: 0,
            max_failed_logins: 2,
            lockout: HumanDuration::secs(60),
            ..Options::default()
        })
    }

    #[test]
    fn wrong_passwords_count_in_whatever_order_they_are_answered() {
        let guard = unhurried();
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        guard.record_failure(peer, "ann", 5_000);
        guard.record_failure(peer, "ann", 1_000);
        assert!(guard.count_and_check(peer, "ann", 2_000).is_err());
        assert!(guard.count_and_check(peer, "ann", 64_999).is_err());
        assert!(guard.count_and_check(peer, "ann", 65_000).is_ok());
    }

    #[test]
    fn an_address_that_comes_back_is_locked_out_for_longer_each_time() {
        let guard = unhurried();
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        let mut now = 0;
        for lockout in [60_000, 120_000, 240_000] {
            guard.record_failure(peer, "ann", now);
            guard.record_failure(peer, "ann", now);
            assert!(
                guard.count_and_check(peer, "ann", now + lockout - 1).is_err(),
                "{lockout}"
            );
            assert!(
                guard.count_and_check(peer, "ann", now + lockout).is_ok(),
                "{lockout}"
            );
            now += lockout;
        }
        for _ in 0..100 {
            guard.record_failure(peer, "ann", now);
            guard.record_failure(peer, "ann", now);
            now += LONGEST_LOCKOUT_MS;
        }
        assert!(guard.count_and_check(peer, "ann", now).is_ok());
        // Who stays away for a while begins anew.
        now += LONGEST_LOCKOUT_MS;
        guard.record_failure(peer, "ann", now);
        guard.record_failure(peer, "ann", now);
        assert!(guard.count_and_check(peer, "ann", now + 60_000).is_ok());
    }

    #[test]
    fn who_comes_from_elsewhere_has_a_try_while_many_guess() {
        let guard = unhurried();
        let address = |network: u8, last: u8| Some(IpAddr::from([10, 0, network, last]));
        let guess_from = |networks: std::ops::Range<u8>| {
            for network in networks {
                guard.record_failure(address(network, 1), "ann", 0);
                guard.record_failure(address(network, 1), "ann", 0);
            }
        };
        guess_from(0..10);
        assert!(
            guard.count_and_check(address(0, 2), "ann", 1).is_err(),
            "its network has had its try"
        );
        let traveller = address(200, 1);
        assert!(guard.count_and_check(traveller, "ann", 1).is_ok());
        guard.record_failure(traveller, "ann", 1);
        assert!(
            guard.count_and_check(traveller, "ann", 2).is_err(),
            "a second one"
        );
        assert!(guard.count_and_check(traveller, "ann", 60_001).is_ok());
        // As many as that are kept from guessing altogether, and nobody who has logged in before.
        let home = address(201, 1);
        guard.learn("Ann", &source_of(home).into_iter().collect::<Vec<_>>());
        assert!(guard.knows("ann") && guard.is_stranger(traveller, "ann") && !guard.is_stranger(home, "ann"));
        guess_from(0..100);
        assert!(guard.count_and_check(address(202, 1), "ann", 1).is_err());
        assert!(guard.count_and_check(home, "ann", 1).is_ok());
    }
}
