//! Usage of the platform by tenants, compared with the limits of their profiles.
//!
//! Counting is one relaxed addition to a counter shared by few threads, and a check is one relaxed load.
//! [`TenantUsage::take_report`], called from time to time, gathers the counts: it returns the points to store on the
//! tenant's usage entity, and the features whose state has changed. Counts cover the calendar month in UTC, with the
//! start of the month as the time of the point, and the hour, under the key with the suffix `Hourly`.

mod counter;
mod entity;
mod key;
mod limits;
mod store;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use chrono::{DateTime, Datelike as _, NaiveDate};
use fieldline_model::kv::KvValue;
use parking_lot::Mutex;

use crate::overload::RefusalCounts;

pub use counter::UsageCounter;
pub use entity::{ApiUsageState, usage_id, usage_subject};
pub use key::{ApiFeature, UsageKey, UsageState, storage_points};
pub use limits::UsageLimits;
pub use store::{Options, UsageStore};

const KEYS: usize = UsageKey::ALL.len();
const FEATURES: usize = ApiFeature::ALL.len();
const SHARDS: usize = 8;
const HOUR_MS: i64 = 3_600_000;

/// Counters shared by few threads, on their own cache lines.
#[repr(align(128))]
#[derive(Default)]
struct CounterShard([AtomicU64; KEYS]);

/// The usage of one tenant.
pub struct TenantUsage {
    shards: [CounterShard; SHARDS],
    /// The states of all features, two bits each.
    states: AtomicU32,
    cycle: Mutex<UsageCycle>,
    refusals: RefusalCounts,
}

/// The counts of the current month and hour.
struct UsageCycle {
    month: i64,
    hour: i64,
    totals: [u64; KEYS],
    hourly: [u64; KEYS],
    /// Gauges set since the last report.
    gauges: [Option<u64>; KEYS],
    states: [UsageState; FEATURES],
    limits: UsageLimits,
}

/// A point to store.
#[derive(Debug, Clone, PartialEq)]
pub struct UsagePoint {
    /// Name of the series.
    pub key: Cow<'static, str>,
    /// Its time, milliseconds.
    pub ts: i64,
    /// Its value.
    pub value: KvValue,
}

/// A feature that has become enabled, close to its limit, or disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageChange {
    /// The feature.
    pub feature: ApiFeature,
    /// The new state.
    pub state: UsageState,
    /// The count that decides the state: the most restrictive one of the feature.
    pub key: UsageKey,
    /// The amount used.
    pub value: u64,
    /// The limit; 0 for unlimited.
    pub limit: u64,
}

/// The result of a report: points to store, and changes to announce.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageReport {
    /// Points of the usage entity.
    pub points: Vec<UsagePoint>,
    /// Features whose state has changed; to be stored with the entity and announced to people.
    pub changes: Vec<UsageChange>,
    /// What has been counted since the last report.
    pub counted: Vec<(UsageKey, u64)>,
}

/// The stored state of one count, from which counting continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredUsage {
    /// The count.
    pub key: UsageKey,
    /// Its newest point: the time of its month, and the count.
    pub month: Option<(i64, u64)>,
    /// Its newest hourly point: the time of its hour, and the count.
    pub hour: Option<(i64, u64)>,
}

impl TenantUsage {
    /// Continues from the stored counts; points of an earlier month or hour are ignored.
    pub fn new(stored: &[StoredUsage], limits: UsageLimits, now_ms: i64) -> Self {
        let mut cycle = UsageCycle {
            month: month_of(now_ms),
            hour: hour_of(now_ms),
            totals: [0; KEYS],
            hourly: [0; KEYS],
            gauges: [None; KEYS],
            states: [UsageState::Enabled; FEATURES],
            limits,
        };
        cycle.go_on(stored);
        // Changes announced before the start are not announced again.
        cycle.check_states();
        let usage = Self {
            shards: Default::default(),
            states: AtomicU32::new(0),
            cycle: Mutex::new(cycle),
            refusals: RefusalCounts::default(),
        };
        usage.publish(&usage.cycle.lock());
        usage
    }

    /// Continues from the stored counts, limits and states, and keeps what was counted before. If no state is stored,
    /// as for a new tenant, the report holds states and limits to store.
    pub fn restore(
        &self,
        stored: &[StoredUsage],
        states: &[(ApiFeature, UsageState)],
        limits: UsageLimits,
        now_ms: i64,
    ) -> UsageReport {
        let mut cycle = self.cycle.lock();
        let mut report = UsageReport::default();
        cycle.roll_over(now_ms, &mut report);
        report.points.clear();
        cycle.go_on(stored);
        let is_new = states.is_empty();
        for key in UsageKey::ALL.into_iter().filter(|_| is_new) {
            if let Some(name) = key.limit_key() {
                report.points.push(point(name, now_ms, limits.limit(key)));
            }
        }
        cycle.limits = limits;
        if is_new {
            cycle.check_states();
            for (feature, state) in ApiFeature::ALL.into_iter().zip(cycle.states) {
                report.points.push(state_point(feature, state, now_ms));
            }
        }
        for (feature, state) in states {
            if let Some(known) = cycle.states.get_mut(feature.index()) {
                *known = *state;
            }
        }
        self.finish(&mut cycle, now_ms, report)
    }

    /// Adds to a count.
    pub fn add(&self, key: UsageKey, count: u64) {
        if let Some(counter) = self.shard().0.get(key.index()) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Sets a gauge: [`UsageKey::ActiveDevices`] or [`UsageKey::InactiveDevices`].
    pub fn set(&self, key: UsageKey, value: u64) {
        if let Some(gauge) = self.cycle.lock().gauges.get_mut(key.index())
            && key.is_gauge()
        {
            *gauge = Some(value);
        }
    }

    /// The state of a feature, as of the last report.
    pub fn state(&self, feature: ApiFeature) -> UsageState {
        UsageState::from_bits(self.states.load(Ordering::Relaxed) >> (2 * feature.index()))
    }

    /// Returns whether a feature may be used.
    pub fn allows(&self, feature: ApiFeature) -> bool {
        self.state(feature) != UsageState::Disabled
    }

    /// What limits have refused to the tenant.
    pub const fn refusals(&self) -> &RefusalCounts {
        &self.refusals
    }

    /// The features that are used up, or nearly so, each with the count that decides it.
    pub(crate) fn strained(&self) -> Vec<UsageChange> {
        if self.states.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let cycle = self.cycle.lock();
        let features = ApiFeature::ALL
            .into_iter()
            .filter_map(|feature| cycle.worst(feature));
        features
            .filter(|worst| worst.state != UsageState::Enabled)
            .collect()
    }

    /// The amount used this month, as of the last report.
    pub fn used(&self, key: UsageKey) -> u64 {
        self.cycle.lock().totals.get(key.index()).copied().unwrap_or(0)
    }

    /// What was counted in this month and hour, as of the last report.
    pub(crate) fn counted(&self) -> Vec<StoredUsage> {
        let cycle = self.cycle.lock();
        let counts = UsageKey::ALL.into_iter().filter(|key| !key.is_gauge());
        let of_key = |key: UsageKey| StoredUsage {
            key,
            month: cycle.totals.get(key.index()).map(|count| (cycle.month, *count)),
            hour: cycle.hourly.get(key.index()).map(|count| (cycle.hour, *count)),
        };
        counts.map(of_key).collect()
    }

    /// Gathers the counts; to be called once per report interval, and in between with `urgent_only`.
    pub fn take_report(&self, urgent_only: bool, now_ms: i64) -> UsageReport {
        let mut cycle = self.cycle.lock();
        let mut report = UsageReport::default();
        cycle.roll_over(now_ms, &mut report);
        for key in UsageKey::ALL {
            if urgent_only && !key.is_urgent() {
                continue;
            }
            if key.is_gauge() {
                cycle.take_gauge(key, &mut report);
            } else {
                cycle.count(key, self.take(key), &mut report);
            }
        }
        self.finish(&mut cycle, now_ms, report)
    }

    /// Applies other limits, for example after a change of the tenant's profile.
    pub fn set_limits(&self, limits: UsageLimits, now_ms: i64) -> UsageReport {
        let mut cycle = self.cycle.lock();
        let mut report = UsageReport::default();
        for key in UsageKey::ALL {
            if let Some(name) = key.limit_key()
                && limits.limit(key) != cycle.limits.limit(key)
            {
                report.points.push(point(name, now_ms, limits.limit(key)));
            }
        }
        cycle.limits = limits;
        self.finish(&mut cycle, now_ms, report)
    }

    fn finish(&self, cycle: &mut UsageCycle, now_ms: i64, mut report: UsageReport) -> UsageReport {
        report.changes = cycle.check_states();
        for change in &report.changes {
            report
                .points
                .push(state_point(change.feature, change.state, now_ms));
        }
        self.publish(cycle);
        report
    }

    fn publish(&self, cycle: &UsageCycle) {
        let bits = ApiFeature::ALL
            .iter()
            .zip(cycle.states)
            .fold(0, |bits, (feature, state)| {
                bits | (state.bits() << (2 * feature.index()))
            });
        self.states.store(bits, Ordering::Relaxed);
    }

    /// Takes the amount counted since the last call.
    fn take(&self, key: UsageKey) -> u64 {
        self.shards
            .iter()
            .filter_map(|shard| shard.0.get(key.index()))
            .map(|counter| counter.swap(0, Ordering::Relaxed))
            .fold(0, u64::saturating_add)
    }

    /// The counters of this thread.
    fn shard(&self) -> &CounterShard {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static SHARD: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
        }
        SHARD
            .with(|index| self.shards.get(*index))
            .unwrap_or(&self.shards[0])
    }
}

impl fmt::Debug for TenantUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantUsage").finish_non_exhaustive()
    }
}

impl UsageCycle {
    /// Adds the stored counts of this month and hour.
    fn go_on(&mut self, stored: &[StoredUsage]) {
        for usage in stored {
            let at = usage.key.index();
            if let (Some((ts, count)), Some(total)) = (usage.month, self.totals.get_mut(at))
                && ts == self.month
            {
                *total = total.saturating_add(count);
            }
            if let (Some((ts, count)), Some(hourly)) = (usage.hour, self.hourly.get_mut(at))
                && ts == self.hour
            {
                *hourly = hourly.saturating_add(count);
            }
        }
    }

    /// Begins a new month or hour when it is due; the counts of a new month are stored as zeros.
    fn roll_over(&mut self, now_ms: i64, report: &mut UsageReport) {
        let (month, hour) = (month_of(now_ms), hour_of(now_ms));
        if hour != self.hour {
            self.hour = hour;
            self.hourly = [0; KEYS];
        }
        if month != self.month {
            self.month = month;
            self.totals = [0; KEYS];
            for key in UsageKey::ALL.into_iter().filter(|key| !key.is_gauge()) {
                report.points.push(point(key.count_key(), month, 0));
            }
        }
    }

    fn count(&mut self, key: UsageKey, count: u64, report: &mut UsageReport) {
        let at = key.index();
        let (Some(total), Some(hourly)) = (self.totals.get_mut(at), self.hourly.get_mut(at)) else {
            return;
        };
        if count == 0 {
            return;
        }
        *total = total.saturating_add(count);
        *hourly = hourly.saturating_add(count);
        report.counted.push((key, count));
        // Replaces the zero of a month that has just begun.
        report
            .points
            .retain(|point| point.key != key.count_key() || point.ts != self.month);
        report.points.push(point(key.count_key(), self.month, *total));
        report.points.push(point(key.hourly_key(), self.hour, *hourly));
    }

    /// Reports a gauge: the newest value for the month, the largest for the hour.
    fn take_gauge(&mut self, key: UsageKey, report: &mut UsageReport) {
        let at = key.index();
        let Some(value) = self.gauges.get_mut(at).and_then(Option::take) else {
            return;
        };
        if let Some(total) = self.totals.get_mut(at) {
            *total = value;
            report.points.push(point(key.count_key(), self.month, value));
        }
        if let Some(hourly) = self.hourly.get_mut(at) {
            *hourly = value.max(*hourly);
            report.points.push(point(key.hourly_key(), self.hour, *hourly));
        }
    }

    /// Updates the states; returns those that changed.
    fn check_states(&mut self) -> Vec<UsageChange> {
        let mut changes = Vec::new();
        for feature in ApiFeature::ALL {
            let Some(worst) = self.worst(feature) else {
                continue;
            };
            if let Some(known) = self.states.get_mut(feature.index())
                && *known != worst.state
            {
                *known = worst.state;
                changes.push(worst);
            }
        }
        changes
    }

    /// The state of a feature by the most restrictive one of its counts.
    fn worst(&self, feature: ApiFeature) -> Option<UsageChange> {
        UsageKey::ALL
            .into_iter()
            .filter(|key| key.feature() == Some(feature))
            .map(|key| {
                let value = self.totals.get(key.index()).copied().unwrap_or(0);
                UsageChange {
                    feature,
                    state: self.limits.state(key, value),
                    key,
                    value,
                    limit: self.limits.limit(key),
                }
            })
            // `max_by_key` returns the last of equals, so this picks the first.
            .rev()
            .max_by_key(|change| change.state)
    }
}

fn point(key: impl Into<Cow<'static, str>>, ts: i64, value: u64) -> UsagePoint {
    UsagePoint {
        key: key.into(),
        ts,
        value: KvValue::Long(i64::try_from(value).unwrap_or(i64::MAX)),
    }
}

fn state_point(feature: ApiFeature, state: UsageState, now_ms: i64) -> UsagePoint {
    UsagePoint {
        key: feature.state_key().into(),
        ts: now_ms,
        value: KvValue::Text(state.name().into()),
    }
}

fn hour_of(now_ms: i64) -> i64 {
    now_ms - now_ms.rem_euclid(HOUR_MS)
}

/// The start of the month of a time, in UTC.
fn month_of(now_ms: i64) -> i64 {
    DateTime::from_timestamp_millis(now_ms)
        .and_then(|now| NaiveDate::from_ymd_opt(now.year(), now.month(), 1))
        .and_then(|first| first.and_hms_opt(0, 0, 0))
        .map_or(0, |first| first.and_utc().timestamp_millis())
}
