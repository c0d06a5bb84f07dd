//! Decides which messages of a batch may be submitted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Holds messages back until others have ended. Messages are known by their numbers; of those that may be submitted the
/// lowest number is first.
pub(super) enum SubmitScheduler<K> {
    /// So many at a time, and the next ones when all of these have ended.
    Batches {
        size: usize,
        /// How many of the batch are not submitted yet.
        left: usize,
        running: usize,
        waiting: VecDeque<u32>,
    },
    /// One at a time of each kind.
    Queues {
        ready: BinaryHeap<Reverse<u32>>,
        /// What waits for another one of its kind.
        behind: FxHashMap<K, VecDeque<u32>>,
        kinds: FxHashMap<u32, K>,
    },
}

impl<K: Copy + Eq + Hash> SubmitScheduler<K> {
    /// Lets so many through at a time.
    pub(super) fn batches(size: usize, waiting: impl IntoIterator<Item = u32>) -> Self {
        let size = size.max(1);
        Self::Batches {
            size,
            left: size,
            running: 0,
            waiting: waiting.into_iter().collect(),
        }
    }

    /// Lets one of each kind through at a time.
    pub(super) fn queues(waiting: impl IntoIterator<Item = (u32, K)>) -> Self {
        let (mut ready, mut behind) = (BinaryHeap::new(), FxHashMap::default());
        let mut kinds = FxHashMap::default();
        for (index, kind) in waiting {
            kinds.insert(index, kind);
            match behind.get_mut(&kind) {
                None => {
                    ready.push(Reverse(index));
                    behind.insert(kind, VecDeque::new());
                }
                Some(queue) => queue.push_back(index),
            }
        }
        Self::Queues { ready, behind, kinds }
    }

    /// The next message that may be submitted now.
    pub(super) fn next(&mut self) -> Option<u32> {
        match self {
            Self::Batches {
                left,
                running,
                waiting,
                ..
            } => {
                *left = left.checked_sub(1)?;
                let index = waiting.pop_front()?;
                *running += 1;
                Some(index)
            }
            Self::Queues { ready, .. } => ready.pop().map(|Reverse(index)| index),
        }
    }

    /// A message has ended, and those that wait for it may follow.
    pub(super) fn complete(&mut self, index: u32) {
        match self {
            Self::Batches {
                size, left, running, ..
            } => {
                *running = running.saturating_sub(1);
                if *running == 0 {
                    *left = *size;
                }
            }
            Self::Queues { ready, behind, kinds } => {
                let queue = kinds.remove(&index).and_then(|kind| behind.get_mut(&kind));
                if let Some(next) = queue.and_then(VecDeque::pop_front) {
                    ready.push(Reverse(next));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    #[test]
    fn batches_wait_for_each_other() {
        let mut gate = SubmitScheduler::<u32>::batches(2, 0..5);
        assert_eq!([gate.next(), gate.next(), gate.next()], [Some(0), Some(1), None]);
        gate.complete(1);
        assert_eq!(gate.next(), None);
        gate.complete(0);
        assert_eq!([gate.next(), gate.next(), gate.next()], [Some(2), Some(3), None]);
    }

    #[test]
    fn messages_of_a_kind_wait_for_each_other_and_the_lowest_is_first() {
        let mut gate = SubmitScheduler::queues([(0, 'a'), (1, 'a'), (2, 'b'), (3, 'a')]);
        assert_eq!(gate.next(), Some(0));
        gate.complete(0);
        assert_eq!([gate.next(), gate.next(), gate.next()], [Some(1), Some(2), None]);
        gate.complete(2);
        assert_eq!(gate.next(), None);
        gate.complete(1);
        assert_eq!([gate.next(), gate.next()], [Some(3), None]);
        // Twice is as good as once.
        gate.complete(1);
        assert_eq!(gate.next(), None);
    }

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// A kind that counts how often it is looked at.
    #[derive(Clone, Copy)]
    struct Watched(u32);

    impl PartialEq for Watched {
        fn eq(&self, other: &Self) -> bool {
            LOOKS.set(LOOKS.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Watched {}

    impl Hash for Watched {
        fn hash<H: Hasher>(&self, state: &mut H) {
            LOOKS.set(LOOKS.get() + 1);
            self.0.hash(state);
        }
    }

    #[test]
    fn one_busy_kind_costs_no_more_than_many() {
        const MESSAGES: u32 = 20_000;
        let mut gate = SubmitScheduler::queues((0..MESSAGES).map(|index| (index, Watched(0))));
        for index in 0..MESSAGES {
            assert_eq!((gate.next(), gate.next()), (Some(index), None));
            gate.complete(index);
        }
        assert!(LOOKS.get() < 10 * MESSAGES as usize, "{} looks", LOOKS.get());
    }
}
