//! Latency distributions, in microseconds.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::report::LatencySummary;

/// Longest recorded time, an hour; longer times count as this.
const LONGEST_US: u64 = 3_600_000_000;

/// Significant digits of recorded values: a precision of 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Summarizes a distribution of microseconds for a report.
#[must_use]
pub fn latency_of(histogram: &Histogram<u64>) -> LatencySummary {
    if histogram.is_empty() {
        return LatencySummary::default();
    }
    LatencySummary {
        count: histogram.len(),
        mean: histogram.mean(),
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    }
}

/// Records times by interval and for the whole run.
#[derive(Debug, Clone)]
pub struct LatencyRecorder {
    /// Times since the last interval was taken.
    interval: Histogram<u64>,
    /// Times of all intervals taken so far.
    taken: Histogram<u64>,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyRecorder {
    /// Creates an empty recorder.
    #[must_use]
    pub fn new() -> Self {
        let empty =
            Histogram::new_with_max(LONGEST_US, SIGNIFICANT_DIGITS).expect("constant bounds are valid");
        Self {
            interval: empty.clone(),
            taken: empty,
        }
    }

    /// Records a time in microseconds; times longer than an hour count as an hour.
    pub fn record(&mut self, us: u64) {
        self.interval.saturating_record(us);
    }

    /// Records a time.
    pub fn record_duration(&mut self, time: Duration) {
        self.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Summarizes the times since the last call, and begins a new interval.
    pub fn take_interval(&mut self) -> LatencySummary {
        let latency = latency_of(&self.interval);
        add(&mut self.taken, &self.interval);
        self.interval.reset();
        latency
    }

    /// Summarizes all times.
    #[must_use]
    pub fn total(&self) -> LatencySummary {
        if self.interval.is_empty() {
            return latency_of(&self.taken);
        }
        let mut all = self.taken.clone();
        add(&mut all, &self.interval);
        latency_of(&all)
    }

    /// Adds the times of another recorder: its interval to this interval, its total to this total.
    pub fn absorb(&mut self, other: &Self) {
        add(&mut self.interval, &other.interval);
        add(&mut self.taken, &other.taken);
    }
}

/// Adds one histogram to another; all of them have the same bounds.
fn add(to: &mut Histogram<u64>, from: &Histogram<u64>) {
    to.add(from).expect("the bounds are the same");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a value is correct to the recorded precision.
    fn is_about(value: u64, exact: u64) -> bool {
        value.abs_diff(exact) <= exact / 1_000 + 1
    }

    #[test]
    fn percentiles_are_those_of_the_recorded_times() {
        let mut recorder = LatencyRecorder::new();
        for us in (1..=100_000).rev() {
            recorder.record(us);
        }
        let total = recorder.total();
        assert_eq!(total.count, 100_000);
        assert!((total.mean - 50_000.5).abs() < 50.0, "{total:?}");
        for (value, exact) in [
            (total.p50, 50_000),
            (total.p90, 90_000),
            (total.p99, 99_000),
            (total.p999, 99_900),
            (total.max, 100_000),
        ] {
            assert!(is_about(value, exact), "{value} instead of {exact}");
        }
    }

    #[test]
    fn an_interval_is_taken_once_and_stays_in_the_total() {
        let mut recorder = LatencyRecorder::new();
        recorder.record(10);
        recorder.record_duration(Duration::from_micros(20));
        let first = recorder.take_interval();
        assert_eq!((first.count, first.p50, first.max), (2, 10, 20));
        assert_eq!(recorder.take_interval(), LatencySummary::default());
        recorder.record(30);
        assert_eq!(recorder.total().count, 3);
        assert_eq!((recorder.take_interval().p50, recorder.total().max), (30, 30));
    }

    #[test]
    fn times_beyond_the_longest_count_as_the_longest() {
        let mut recorder = LatencyRecorder::new();
        recorder.record(u64::MAX);
        recorder.record_duration(Duration::MAX);
        let total = recorder.total();
        assert_eq!(total.count, 2);
        assert!(is_about(total.max, LONGEST_US), "{total:?}");
    }

    #[test]
    fn recorders_of_several_threads_add_up() {
        let (mut one, mut other) = (LatencyRecorder::new(), LatencyRecorder::new());
        one.record(100);
        other.record(200);
        other.take_interval();
        other.record(300);
        one.absorb(&other);
        assert_eq!(one.total().count, 3);
        let interval = one.take_interval();
        assert_eq!((interval.count, interval.max), (2, 300));
    }
}
