//! How much of a worker's time each tenant takes.

use std::time::{Duration, Instant};

use fieldline_model::TenantId;
use rustc_hash::FxHashMap;

use crate::lanes::SlowLanes;
use crate::script_ledger::ScriptLedger;

/// Messages after which the clock is read, where the tenant stays the same.
const STRIDE: u32 = 16;
/// What shares are taken of.
const WINDOW: Duration = Duration::from_secs(1);
/// For how long a tenant counts as present after it was last seen.
const PRESENCE: Duration = Duration::from_secs(60);
/// Messages that take less in the mean are no tenant's fault, however many they are.
const CHEAP_MESSAGE_TIME: Duration = Duration::from_micros(100);

/// Time and messages of a tenant.
#[derive(Debug, Clone, Copy, Default)]
struct TenantTime {
    time: Duration,
    messages: u32,
}

/// The tenants of one worker and the time they take, in windows of a second.
pub(super) struct TimeShares {
    /// Whose messages go on now, since when, and how many of them have begun since.
    current: Option<(TenantId, Instant, u32)>,
    since: Instant,
    spent: FxHashMap<TenantId, TenantTime>,
    seen: FxHashMap<TenantId, Instant>,
    /// What was measured since somebody last asked.
    measured: Vec<(TenantId, Duration)>,
}

impl TimeShares {
    pub(super) fn new() -> Self {
        Self {
            current: None,
            since: Instant::now(),
            spent: FxHashMap::default(),
            seen: FxHashMap::default(),
            measured: Vec::new(),
        }
    }

    /// A message of a tenant begins. From time to time, the answer is whether the tenant takes more than `patience` and its
    /// share.
    pub(super) fn begin_message(&mut self, tenant: TenantId, patience: Duration) -> bool {
        if let Some((current, _, count)) = &mut self.current
            && *current == tenant
            && *count < STRIDE
        {
            *count += 1;
            return false;
        }
        let now = Instant::now();
        self.settle(now);
        self.seen.insert(tenant, now);
        self.current = Some((tenant, now, 1));
        self.is_greedy(tenant, patience)
    }

    /// Something of a tenant goes on that has begun before.
    pub(super) fn resume_tenant(&mut self, tenant: TenantId) {
        if self.current.is_none_or(|(current, ..)| current != tenant) {
            let now = Instant::now();
            self.settle(now);
            self.current = Some((tenant, now, 0));
        }
    }

    /// The worker waits, or does what is nobody's.
    pub(super) fn rest(&mut self) {
        if self.current.is_some() {
            self.settle(Instant::now());
        }
    }

    /// Something was done for several tenants together, in these parts of the whole.
    pub(super) fn charge(&mut self, time: Duration, parts: &FxHashMap<TenantId, usize>) {
        self.roll(Instant::now());
        let all = parts.values().sum::<usize>().max(1);
        for (tenant, part) in parts {
            let time = time.mul_f64(*part as f64 / all as f64);
            self.spent.entry(*tenant).or_default().time += time;
            self.measured.push((*tenant, time));
        }
    }

    /// Tells the lanes how much time tenants took.
    pub(super) fn report(&mut self, lanes: Option<&SlowLanes>, ledger: &ScriptLedger) {
        self.rest();
        let measured = self.take_measured();
        if let Some(lanes) = lanes {
            for (tenant, time) in measured {
                lanes.note(tenant, |counts| counts.inline += time);
                ledger.note_inline(tenant, time);
            }
        }
    }

    fn settle(&mut self, now: Instant) {
        self.roll(now);
        if let Some((tenant, since, messages)) = self.current.take() {
            let time = now.duration_since(since);
            let spent = self.spent.entry(tenant).or_default();
            spent.time += time;
            spent.messages += messages;
            match self.measured.last_mut().filter(|(last, _)| *last == tenant) {
                Some((_, sum)) => *sum += time,
                None => self.measured.push((tenant, time)),
            }
        }
    }

    /// Begins another window if it is time.
    fn roll(&mut self, now: Instant) {
        if now.duration_since(self.since) >= WINDOW {
            self.since = now;
            self.spent.clear();
            self.seen.retain(|_, seen| now.duration_since(*seen) < PRESENCE);
        }
    }

    fn is_greedy(&self, tenant: TenantId, patience: Duration) -> bool {
        let Some(spent) = self.spent.get(&tenant) else {
            return false;
        };
        let all: Duration = self.spent.values().map(|spent| spent.time).sum();
        let tenants = u32::try_from(self.seen.len()).unwrap_or(u32::MAX).max(1);
        spent.time > patience
            && spent.time > CHEAP_MESSAGE_TIME * spent.messages
            && spent.time > all / (tenants + 1)
    }

    /// A tenant is there, whether or not its turn has come.
    pub(super) fn mark_present(&mut self, tenant: TenantId) {
        self.seen.entry(tenant).or_insert_with(Instant::now);
    }

    /// Whether no more than one tenant has been seen lately.
    pub(super) fn is_alone(&self) -> bool {
        self.seen.len() <= 1
    }

    /// Time that was measured since this was last asked for.
    pub(super) fn take_measured(&mut self) -> Vec<(TenantId, Duration)> {
        std::mem::take(&mut self.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_alone_until_another_one_comes() {
        let [first, second] = [TenantId::new(), TenantId::new()];
        let mut shares = TimeShares::new();
        for _ in 0..100 {
            assert!(!shares.begin_message(first, Duration::ZERO) || shares.is_alone());
        }
        assert!(shares.is_alone());
        shares.begin_message(second, Duration::ZERO);
        assert!(!shares.is_alone());
    }

    #[test]
    fn what_is_stored_for_several_is_charged_by_what_there_is_of_each() {
        let [much, little] = [TenantId::new(), TenantId::new()];
        let mut shares = TimeShares::new();
        shares.mark_present(much);
        shares.mark_present(little);
        let parts = FxHashMap::from_iter([(much, 900), (little, 100)]);
        shares.charge(Duration::from_millis(1000), &parts);
        let patience = Duration::from_millis(250);
        assert!(shares.is_greedy(much, patience));
        assert!(!shares.is_greedy(little, patience));
        let measured: FxHashMap<_, _> = shares.take_measured().into_iter().collect();
        assert_eq!(measured[&little], Duration::from_millis(100));
    }

    #[test]
    fn who_takes_long_for_each_message_and_most_of_the_time_is_greedy_and_who_sends_many_is_not() {
        let [slow, quick] = [TenantId::new(), TenantId::new()];
        let mut shares = TimeShares::new();
        shares.mark_present(slow);
        shares.mark_present(quick);
        let spent = |millis, messages| TenantTime {
            time: Duration::from_millis(millis),
            messages,
        };
        shares.spent.insert(slow, spent(500, 25));
        shares.spent.insert(quick, spent(499, 250_000));
        let patience = Duration::from_millis(250);
        assert!(shares.is_greedy(slow, patience));
        assert!(!shares.is_greedy(quick, patience));
        shares.spent.insert(slow, spent(200, 10));
        assert!(!shares.is_greedy(slow, patience), "that is no more than patience");
    }
}
