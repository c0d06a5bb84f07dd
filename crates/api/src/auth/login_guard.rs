//! Slows down password guessing: a lockout per user and address, and a rate limit per address, both in bounded memory.
//!
//! A client that guesses locks out its own address first, for longer each time, so that nobody can lock others out of
//! their accounts with wrong passwords. If guesses come from many addresses, unknown addresses get one try per network;
//! from still more addresses, none. Addresses from which the user has logged in before are never affected: persistent
//! attackers lock out only themselves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parking_lot::Mutex;
use quick_cache::sync::Cache;

use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::options::Options;

/// Most users and addresses remembered; beyond that the least recently used are forgotten.
const MAX_REMEMBERED: usize = 20_000;
const MINUTE_MS: i64 = 60_000;
/// Concurrent requests may finish out of order: times this little in the future do not mean that the clock was set
/// back.
const SLACK_MS: i64 = 60_000;
/// Number of addresses: if a user gets as many wrong passwords as this many addresses may send within one lockout time,
/// unknown addresses get only one try per network.
const ADDRESSES: u32 = 10;
/// The same number at which unknown addresses get no try.
const MANY_ADDRESSES: u32 = 100;
/// Most addresses remembered per user who has logged in from them.
pub(crate) const MAX_PROVEN_ADDRESSES: u32 = 8;
/// Longest lockout of an address that keeps guessing; a longer configured lockout stays as it is.
const LONGEST_LOCKOUT_MS: i64 = 86_400_000;

/// The origins by which wrong passwords for a user are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LoginOrigin {
    Address(IpAddr),
    /// The network around an address.
    Network(IpAddr),
    /// All origins together, and requests with an unknown address.
    Everywhere,
}

/// A lower-case login name and the origin that is counted.
type LoginAttemptKey = (String, LoginOrigin);

/// Wrong passwords that count together, with the times of the first and the last one.
#[derive(Clone, Copy)]
struct LoginFailures {
    count: u32,
    first: i64,
    last: i64,
    /// Lockouts in close succession.
    lockouts: u32,
}

/// Counts login attempts and failures.
pub(crate) struct LoginGuard {
    max_failures: u32,
    lockout_ms: i64,
    per_minute: u32,
    failures: Cache<LoginAttemptKey, LoginFailures>,
    /// Addresses from which users have logged in, by lower-case login name, the latest last. Only a right password adds
    /// one, so that an attacker cannot evict the entries of others.
    proven_addresses: Cache<String, Vec<IpAddr>>,
    /// Number of attempts, and the start of the minute they were made in.
    attempts: Cache<IpAddr, (u32, i64)>,
    /// Makes the read and write of an entry atomic.
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

    /// Counts an attempt, and refuses it if its address has made too many or the user is locked out. The result does
    /// not depend on whether the user exists.
    pub(crate) fn count_and_check(&self, peer: Option<IpAddr>, login: &str, now_ms: i64) -> ApiResult<()> {
        self.count(peer, now_ms)?;
        self.check(peer, login, now_ms)
    }

    /// Counts an attempt, and refuses it if its address has made too many.
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

    /// Refuses an attempt if the user is locked out for its address. The result does not depend on whether the user
    /// exists.
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

    /// Whether there were too many wrong passwords from this address, or, unless the user has logged in from it before,
    /// from all addresses together.
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

    /// Whether the user has logged in from this address before.
    fn is_proven(&self, login: &str, address: IpAddr) -> bool {
        self.proven_addresses
            .get(login)
            .is_some_and(|known| known.contains(&address))
    }

    /// Whether the addresses of a user's earlier logins are loaded; see [`Self::learn`].
    pub(crate) fn knows(&self, login: &str) -> bool {
        self.proven_addresses.get(&login.to_lowercase()).is_some()
    }

    /// Loads the addresses of a user's earlier logins, as [`source_of`] wrote them, the latest last.
    pub(crate) fn learn(&self, login: &str, sources: &[String]) {
        let known = sources.iter().filter_map(|source| source.parse().ok()).collect();
        let _turn = self.lock.lock();
        let login = login.to_lowercase();
        if self.proven_addresses.get(&login).is_none() {
            self.proven_addresses.insert(login, known);
        }
    }

    /// Whether the user has logged in from known addresses, but never from this one.
    pub(crate) fn is_stranger(&self, peer: Option<IpAddr>, login: &str) -> bool {
        let known = self
            .proven_addresses
            .get(&login.to_lowercase())
            .unwrap_or_default();
        let peer = peer.map(network);
        peer.is_some_and(|peer| !known.is_empty() && !known.contains(&peer))
    }

    /// Returns how many wrong passwords of an origin lead to a lockout, for a client at this address.
    fn most(&self, origin: LoginOrigin, address: Option<IpAddr>) -> u32 {
        match origin {
            LoginOrigin::Everywhere if address.is_some() => self.max_failures.saturating_mul(ADDRESSES),
            // For a network the time of the last failure counts, not a number of failures.
            LoginOrigin::Network(_) => u32::MAX,
            _ => self.max_failures,
        }
    }

    /// Returns how long wrong passwords count: until the lockout they cause is over, which is twice as long as the
    /// previous one if that has just ended.
    fn window(&self, failures: &LoginFailures, most: u32) -> i64 {
        if failures.count < most || failures.lockouts < 2 {
            return self.lockout_ms;
        }
        let doubled = self
            .lockout_ms
            .saturating_mul(1 << (failures.lockouts - 1).min(20));
        doubled.min(self.lockout_ms.max(LONGEST_LOCKOUT_MS))
    }

    /// Whether a failure still counts. A failure in the future was recorded before the clock was set back; it must not
    /// lock the user out until the clock has caught up.
    fn is_counted(&self, failed_ms: i64, window: i64, now_ms: i64) -> bool {
        (-SLACK_MS..window).contains(&now_ms.saturating_sub(failed_ms))
    }

    /// Records a wrong password.
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
            // For all origins together, only failures within one lockout time count. Otherwise a few addresses that are
            // locked out again and again would look like many.
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

    /// Forgets wrong passwords of a user after the right one: those of this address and, if the user has logged in from
    /// it before, as many of the others as one address may send. Refuses the login if too many wrong ones came while
    /// the password was checked: parallel guesses must not be allowed more than sequential ones.
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

    /// Forgets the wrong passwords of a user who has set a new password, and the addresses where the old one was used.
    pub(crate) fn forget(&self, peer: Option<IpAddr>, login: &str) {
        let _turn = self.lock.lock();
        for key in attempt_keys(peer.map(network), login) {
            self.failures.remove(&key);
        }
        self.proven_addresses.insert(login.to_lowercase(), Vec::new());
    }
}

/// Returns the keys under which an attempt counts.
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

/// Returns the text form of the address that identifies a client.
pub(crate) fn source_of(peer: Option<IpAddr>) -> Option<String> {
    peer.map(|peer| network(peer).to_string())
}

/// Returns the network of an address: an IPv6 client usually has the 2⁶⁴ addresses of its /64, so those count as one.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

/// Returns the network around an address that one party can easily get as a whole: an IPv4 /24, an IPv6 /48.
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
        // The clock was set back by an hour right after a lockout.
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
        // Guesses from many addresses lock the user out elsewhere.
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
                // Each address guesses again as soon as it may.
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
        // Each success subtracts some of the failures, until unknown addresses are let in.
        for _ in 0..3 {
            assert!(guard.record_success(home, "ann", 2).is_ok());
        }
        assert!(guard.count_and_check(address(100), "ann", 2).is_ok());
        // Guesses from the known address lock that address out, too.
        guess_from(200..201);
        assert!(guard.count_and_check(home, "ann", 2).is_err());
        // After a change of password no address is known any more.
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
        // After a long pause the lockout times start again.
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
        // Guesses from so many addresses lock out all unknown addresses, but not those of earlier logins.
        let home = address(201, 1);
        guard.learn("Ann", &source_of(home).into_iter().collect::<Vec<_>>());
        assert!(guard.knows("ann") && guard.is_stranger(traveller, "ann") && !guard.is_stranger(home, "ann"));
        guess_from(0..100);
        assert!(guard.count_and_check(address(202, 1), "ann", 1).is_err());
        assert!(guard.count_and_check(home, "ann", 1).is_ok());
    }
}
