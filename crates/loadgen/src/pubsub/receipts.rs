//! Which messages were acknowledged, and which have arrived.

use std::ops::Range;

/// Numbers from 0, each there or not.
#[derive(Debug, Clone, Default)]
pub(super) struct NumberSet(Vec<u64>);

impl NumberSet {
    /// Adds a number; returns whether it was not there.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        match self.0.get_mut(word) {
            Some(bits) if *bits & bit == 0 => {
                *bits |= bit;
                true
            }
            _ => false,
        }
    }

    /// How many there are that another set does not have.
    fn missing_in(&self, other: &Self) -> u64 {
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        self.0
            .iter()
            .zip(others)
            .map(|(own, other)| u64::from((own & !other).count_ones()))
            .sum()
    }
}

/// What a subscriber, or those of a shared subscription together, have received.
#[derive(Debug, Default)]
pub(super) struct ReceiptLedger {
    /// The publishers that are expected, and where their logs begin.
    expected: Vec<(Range<u32>, usize)>,
    logs: Vec<NumberSet>,
    /// Messages that arrived once more.
    pub(super) duplicated: u64,
    /// Messages of publishers that are not expected.
    pub(super) unexpected: u64,
}

impl ReceiptLedger {
    /// Expects the messages of these publishers.
    pub(super) fn new(publishers: impl IntoIterator<Item = Range<u32>>) -> Self {
        let mut ledger = Self::default();
        for range in publishers {
            let first = ledger.logs.len();
            ledger.logs.resize_with(first + range.len(), NumberSet::default);
            ledger.expected.push((range, first));
        }
        ledger
    }

    /// A message has arrived; returns whether for the first time.
    pub(super) fn note(&mut self, publisher: u32, number: u32) -> bool {
        let at = self.expected.iter().find_map(|(range, first)| {
            range
                .contains(&publisher)
                .then(|| first + (publisher - range.start) as usize)
        });
        let Some(log) = at.and_then(|at| self.logs.get_mut(at)) else {
            self.unexpected += 1;
            return false;
        };
        let is_new = log.insert(number);
        self.duplicated += u64::from(!is_new);
        is_new
    }

    /// How many of the messages that were acknowledged to their publishers have not arrived.
    pub(super) fn missing(&self, acknowledged: &[NumberSet]) -> u64 {
        let of_range = |(range, first): &(Range<u32>, usize)| {
            let sets = acknowledged.get(range.start as usize..range.end as usize);
            let logs = self.logs.get(*first..*first + range.len());
            sets.into_iter()
                .flatten()
                .zip(logs.into_iter().flatten())
                .map(|(sent, received)| sent.missing_in(received))
                .sum::<u64>()
        };
        self.expected.iter().map(of_range).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_what_came_twice_do_not_make_up_for_each_other() {
        let mut acknowledged = vec![NumberSet::default(); 5];
        for number in 0..200 {
            acknowledged[3].insert(number);
        }
        acknowledged[0].insert(0);
        let mut ledger = ReceiptLedger::new([0..1, 3..5]);
        assert_eq!(ledger.missing(&acknowledged), 201);
        for number in (0..200).filter(|number| *number != 77) {
            assert!(ledger.note(3, number));
        }
        assert!(!ledger.note(3, 5));
        assert!(!ledger.note(1, 0), "of a publisher that is not expected");
        // Not acknowledged, and there all the same.
        assert!(ledger.note(4, 1_000));
        assert_eq!(
            (
                ledger.missing(&acknowledged),
                ledger.duplicated,
                ledger.unexpected
            ),
            (2, 1, 1)
        );
    }
}
