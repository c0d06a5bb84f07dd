//! Blocks addresses that keep sending wrong credentials for a while.
//!
//! Code that checks credentials reports success and failure here, and asks before it checks the next ones. One guard
//! serves all device servers: an address blocked by one is blocked by all.

use std::net::{IpAddr, Ipv6Addr};

use metrics::{Counter, counter, describe_counter};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::clock::SharedClock;
use crate::logging::LogGate;
use crate::options::HumanDuration;

static BLOCKED_GATE: LogGate = LogGate::new(10);
const BLOCKS: &str = "fieldline_transport_blocked_addresses_total";
const TURNED_AWAY: &str = "fieldline_transport_turned_away_total";

/// Most addresses remembered.
const MAX_ADDRESSES: usize = 100_000;
/// Shortest time between two sweeps of the table, milliseconds.
const SWEEP_MS: i64 = 1_000;
/// Failures are forgotten when no other follows within this time, milliseconds.
const FORGOTTEN_MS: i64 = 600_000;

/// Settings of the block after wrong credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Whether the device servers block addresses (an IPv6 /64) that keep sending wrong credentials. Unsuitable for
    /// devices behind a proxy or a shared router, because they all share one address.
    pub enabled: bool,
    /// Wrong credentials in a row after which an address is blocked.
    pub max_wrong_credentials: u32,
    /// How long an address stays blocked.
    pub block_timeout: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: false,
            max_wrong_credentials: 10,
            block_timeout: HumanDuration::secs(60),
        }
    }
}

/// Describes the metrics to the recorder; call once at start.
pub fn describe_metrics() {
    describe_counter!(BLOCKS, "Addresses blocked after wrong credentials of devices");
    describe_counter!(
        TURNED_AWAY,
        "Connections and requests of devices turned away because their address is blocked"
    );
}

/// The failures and the block of one address.
struct AddressRecord {
    failures: u32,
    last_ms: i64,
    blocked_until_ms: i64,
}

#[derive(Default)]
struct AddressTable {
    of: FxHashMap<IpAddr, AddressRecord>,
    /// Time of the last sweep.
    swept_ms: Option<i64>,
}

impl AddressTable {
    /// Forgets the addresses that matter least. A sweep looks at every address, so it runs at most once per
    /// [`SWEEP_MS`]; addresses that are new in between are not remembered.
    fn make_room(&mut self, now: i64, block_ms: i64) {
        let is_soon = |swept: i64| (0..SWEEP_MS).contains(&now.saturating_sub(swept));
        if self.swept_ms.is_some_and(is_soon) {
            return;
        }
        self.swept_ms = Some(now);
        let keep_ms = block_ms.max(FORGOTTEN_MS);
        self.of
            .retain(|_, record| now.saturating_sub(record.last_ms) < keep_ms);
        if self.of.len() >= MAX_ADDRESSES {
            // An attacker with this many addresses gets through; nobody is blocked because of others.
            self.of.retain(|_, record| record.is_blocked(now, block_ms));
        }
    }
}

/// See the module.
pub struct AddressGuard {
    options: Options,
    block_ms: i64,
    clock: SharedClock,
    records: Mutex<AddressTable>,
    blocks: Counter,
    turned_away: Counter,
}

impl AddressGuard {
    /// Creates a guard that knows no address yet.
    pub fn new(options: Options, clock: SharedClock) -> Self {
        Self {
            block_ms: i64::try_from(options.block_timeout.0.as_millis()).unwrap_or(i64::MAX),
            options,
            clock,
            records: Mutex::default(),
            blocks: counter!(BLOCKS),
            turned_away: counter!(TURNED_AWAY),
        }
    }

    /// Returns whether an address may present credentials.
    pub fn try_admit(&self, address: IpAddr) -> bool {
        if !self.options.enabled {
            return true;
        }
        let now = self.clock.now_ms();
        let records = self.records.lock();
        let is_blocked = records
            .of
            .get(&network(address))
            .is_some_and(|record| record.is_blocked(now, self.block_ms));
        drop(records);
        if is_blocked {
            self.turned_away.increment(1);
        }
        !is_blocked
    }

    /// Counts wrong credentials from an address, and blocks it once there are too many.
    pub fn record_failure(&self, address: IpAddr) {
        if !self.options.enabled {
            return;
        }
        let now = self.clock.now_ms();
        let mut records = self.records.lock();
        if records.of.len() >= MAX_ADDRESSES {
            records.make_room(now, self.block_ms);
            if records.of.len() >= MAX_ADDRESSES {
                return;
            }
        }
        let record = records.of.entry(network(address)).or_insert(AddressRecord {
            failures: 0,
            last_ms: now,
            blocked_until_ms: 0,
        });
        if now.saturating_sub(record.last_ms) >= FORGOTTEN_MS {
            record.failures = 0;
        }
        record.last_ms = now;
        record.failures = record.failures.saturating_add(1);
        if record.failures < self.options.max_wrong_credentials {
            return;
        }
        record.failures = 0;
        record.blocked_until_ms = now.saturating_add(self.block_ms);
        drop(records);
        self.blocks.increment(1);
        if let Some(suppressed) = BLOCKED_GATE.open() {
            let seconds = self.block_ms / 1_000;
            warn!(%address, seconds, suppressed, "wrong credentials keep coming from an address, it is turned away for a while");
        }
    }

    /// Records right credentials from an address: its failures are forgotten.
    pub fn record_success(&self, address: IpAddr) {
        if self.options.enabled {
            self.records.lock().of.remove(&network(address));
        }
    }
}

impl AddressRecord {
    fn is_blocked(&self, now: i64, block_ms: i64) -> bool {
        let left = self.blocked_until_ms.saturating_sub(now);
        // If the clock was set back, a block still lasts no longer than this.
        (1..=block_ms).contains(&left)
    }
}

/// Maps an address to the network of one peer: an IPv4 address, or the /64 of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::clock::StandingClock;

    fn guard(enabled: bool) -> (AddressGuard, Arc<StandingClock>) {
        let clock = Arc::new(StandingClock(1_000_000.into()));
        let options = Options {
            enabled,
            max_wrong_credentials: 3,
            ..Options::default()
        };
        (AddressGuard::new(options, clock.clone()), clock)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_with_wrong_credentials_in_a_row_is_turned_away_for_a_while() {
        let (guard, clock) = guard(true);
        let (bad, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        for _ in 0..2 {
            guard.record_failure(bad);
            guard.record_failure(bad);
            guard.record_success(bad);
        }
        assert!(guard.try_admit(bad), "never three in a row");
        (0..3).for_each(|_| guard.record_failure(bad));
        assert!(!guard.try_admit(bad) && !guard.try_admit(ip("::ffff:192.0.2.1")));
        assert!(guard.try_admit(other));
        clock.0.fetch_add(59_999, Ordering::SeqCst);
        assert!(!guard.try_admit(bad));
        clock.0.fetch_add(1, Ordering::SeqCst);
        assert!(guard.try_admit(bad), "the time is over");
        (0..2).for_each(|_| guard.record_failure(bad));
        clock.0.fetch_add(FORGOTTEN_MS, Ordering::SeqCst);
        guard.record_failure(bad);
        assert!(guard.try_admit(bad), "what is long ago does not count");
        (0..3).for_each(|_| guard.record_failure(bad));
        clock.0.fetch_add(-3_600_000, Ordering::SeqCst);
        assert!(
            guard.try_admit(bad),
            "a clock that was set back does not prolong it"
        );
    }

    #[test]
    fn a_network_of_one_peer_is_one_address_and_the_memory_is_bounded() {
        let (guard, _) = guard(true);
        for host in ["2001:db8::1", "2001:db8::2", "2001:db8::ffff:1"] {
            guard.record_failure(ip(host));
        }
        assert!(!guard.try_admit(ip("2001:db8::3")) && guard.try_admit(ip("2001:db8:0:1::1")));
        for number in 0..MAX_ADDRESSES as u32 + 10 {
            guard.record_failure(IpAddr::from(number.to_be_bytes()));
        }
        assert!(guard.records.lock().of.len() <= MAX_ADDRESSES);
        assert!(!guard.try_admit(ip("2001:db8::3")), "who is blocked stays so");
    }

    #[test]
    fn nobody_is_turned_away_unless_that_is_asked_for() {
        let (guard, _) = guard(false);
        (0..100).for_each(|_| guard.record_failure(ip("192.0.2.1")));
        assert!(guard.try_admit(ip("192.0.2.1")));
    }
}
