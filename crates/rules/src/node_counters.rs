//! What each node has done, counted always: a few additions a message.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fieldline_core::ports::RuleNodeCounters;
use fieldline_model::RuleNodeId;
use parking_lot::Mutex;

use crate::node::ConnectionLabel;

/// Places of counters a node. Workers that share one slow each other down a little, and lose nothing.
const STRIPES: usize = 4;
/// Of so many runs of nodes, a worker times one: reading the clock costs more than many a node.
pub(crate) const TIMED_RUNS: u32 = 32;
/// Longest text of a failure, bytes.
const MAX_ERROR: usize = 500;

const INPUT: usize = 0;
const FAILURES: usize = 1;
const TIME_NS: usize = 2;
const FIRST_LABEL: usize = 3;
/// Counters in the unit in which processors share memory.
const LINE: usize = 8;

/// Which of a node's places a worker counts in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterStripe(usize);

impl CounterStripe {
    /// The next one, in turn.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES)
    }
}

/// The counters of a node, which it keeps when its chain is saved.
pub(crate) struct NodeCounters {
    since: Instant,
    labels: Box<[Box<str>]>,
    stripes: [OnceLock<Box<[AtomicU64]>>; STRIPES],
    last_failure: Mutex<Option<(Instant, Box<str>)>>,
}

impl NodeCounters {
    /// Counters for the labels of a node's connections.
    pub(crate) fn new(labels: impl IntoIterator<Item = Box<str>>) -> Self {
        let mut distinct: Vec<Box<str>> = Vec::new();
        for label in labels {
            if !distinct.iter().any(|known| known.eq_ignore_ascii_case(&label)) {
                distinct.push(label);
            }
        }
        Self {
            since: Instant::now(),
            labels: distinct.into(),
            stripes: Default::default(),
            last_failure: Mutex::default(),
        }
    }

    /// Counters that go on from those before. Labels that are no longer there are forgotten.
    pub(crate) fn continuing(before: &Self, labels: impl IntoIterator<Item = Box<str>>) -> Self {
        let counters = Self {
            since: before.since,
            last_failure: Mutex::new(before.last_failure.lock().clone()),
            ..Self::new(labels)
        };
        for (slot, from) in [INPUT, FAILURES, TIME_NS].map(|slot| (slot, slot)) {
            counters.add(CounterStripe(0), slot, before.sum(from));
        }
        for (place, label) in counters.labels.iter().enumerate() {
            if let Some(from) = before.place_of(label) {
                let count = before.sum(FIRST_LABEL + from);
                counters.add(CounterStripe(0), FIRST_LABEL + place, count);
            }
        }
        counters
    }

    fn place_of(&self, label: &str) -> Option<usize> {
        self.labels
            .iter()
            .position(|known| known.eq_ignore_ascii_case(label))
    }

    fn add(&self, stripe: CounterStripe, slot: usize, count: u64) {
        let Some(stripe) = self.stripes.get(stripe.0) else {
            return;
        };
        let counters = stripe.get_or_init(|| {
            let slots = (FIRST_LABEL + self.labels.len()).next_multiple_of(LINE);
            (0..slots).map(|_| AtomicU64::new(0)).collect()
        });
        if let Some(counter) = counters.get(slot) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn sum(&self, slot: usize) -> u64 {
        self.stripes
            .iter()
            .filter_map(|stripe| Some(stripe.get()?.get(slot)?.load(Ordering::Relaxed)))
            .sum()
    }

    pub(crate) fn count_input(&self, stripe: CounterStripe) {
        self.add(stripe, INPUT, 1);
    }

    pub(crate) fn count_output(&self, stripe: CounterStripe, label: &ConnectionLabel, error: Option<&str>) {
        if let Some(place) = self.place_of(&label.0) {
            self.add(stripe, FIRST_LABEL + place, 1);
        }
        if label.is_failure() {
            self.count_failure(stripe, error.unwrap_or_default());
        }
    }

    pub(crate) fn count_failure(&self, stripe: CounterStripe, error: &str) {
        self.add(stripe, FAILURES, 1);
        // Whoever fails at the same time has as good a reason to show.
        if !error.is_empty()
            && let Some(mut last) = self.last_failure.try_lock()
        {
            let end = error.floor_char_boundary(MAX_ERROR);
            *last = Some((Instant::now(), error.get(..end).unwrap_or_default().into()));
        }
    }

    /// Adds the time of one run for all those that were not timed.
    pub(crate) fn add_timed_run(&self, stripe: CounterStripe, time: Duration) {
        let time = time.saturating_mul(TIMED_RUNS).as_nanos();
        self.add(stripe, TIME_NS, u64::try_from(time).unwrap_or(u64::MAX));
    }

    /// What has been counted.
    pub(crate) fn read(&self, id: RuleNodeId) -> RuleNodeCounters {
        let output = self.labels.iter().zip(FIRST_LABEL..);
        RuleNodeCounters {
            id,
            age_ms: millis(self.since),
            input: self.sum(INPUT),
            output: output
                .map(|(label, slot)| (label.clone(), self.sum(slot)))
                .collect(),
            failures: self.sum(FAILURES),
            time_us: self.sum(TIME_NS) / 1000,
            last_failure: self
                .last_failure
                .lock()
                .as_ref()
                .map(|(at, error)| (error.clone(), millis(*at))),
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn workers_count_apart_and_are_read_together() {
        let counters = NodeCounters::new(labels(&["Success", "success", "Failure"]));
        for stripe in 0..2 * STRIPES {
            let stripe = CounterStripe(stripe % STRIPES);
            counters.count_input(stripe);
            counters.count_output(stripe, &ConnectionLabel::SUCCESS, None);
        }
        counters.count_output(CounterStripe(1), &ConnectionLabel::FAILURE, Some("no such key"));
        counters.count_output(CounterStripe(1), &ConnectionLabel::from("Unconnected"), None);
        counters.add_timed_run(CounterStripe(2), Duration::from_micros(3));
        let read = counters.read(RuleNodeId::NULL);
        assert_eq!(read.input, 8);
        assert_eq!(read.output, [("Success".into(), 8), ("Failure".into(), 1)]);
        assert_eq!(read.failures, 1);
        assert_eq!(read.time_us, 3 * u64::from(TIMED_RUNS));
        assert_eq!(&*read.last_failure.unwrap().0, "no such key");
    }

    #[test]
    fn a_saved_chain_goes_on_counting_and_forgets_connections_that_are_gone() {
        let before = NodeCounters::new(labels(&["Success", "True"]));
        before.count_input(CounterStripe(3));
        before.count_output(CounterStripe(3), &ConnectionLabel::SUCCESS, None);
        before.count_output(CounterStripe(2), &ConnectionLabel::from("True"), None);
        let after = NodeCounters::continuing(&before, labels(&["False", "Success"]));
        after.count_output(CounterStripe(1), &ConnectionLabel::SUCCESS, None);
        let read = after.read(RuleNodeId::NULL);
        assert_eq!(read.input, 1);
        assert_eq!(read.output, [("False".into(), 0), ("Success".into(), 2)]);
    }

    #[test]
    fn a_long_failure_is_cut_between_characters() {
        let counters = NodeCounters::new([]);
        counters.count_failure(CounterStripe(0), &"ä".repeat(MAX_ERROR));
        let (error, _) = counters.read(RuleNodeId::NULL).last_failure.unwrap();
        assert_eq!(error.chars().count(), MAX_ERROR / 2);
    }
}
