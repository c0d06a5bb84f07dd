//! The appends of an event loop that are not durable yet.
//!
//! The journal makes many appends durable at once. A loop therefore waits once for each group of them, however many of
//! its connections have appended to it. `K` is the key of a connection.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::ports::{AppendError, AppendFuture};

/// Lists of connections that are kept for the next groups.
const SPARE_LISTS: usize = 4;

/// Which connections wait for which group.
pub struct PendingCommits<K> {
    groups: Vec<PendingGroup<K>>,
    /// Wakes the loop when a group is durable.
    waker: Waker,
    spare: Vec<Vec<K>>,
}

struct PendingGroup<K> {
    /// The first append; the others share its outcome.
    append: AppendFuture,
    waiting: Vec<K>,
}

impl<K> PendingCommits<K> {
    /// Makes an empty list, whose loop `waker` wakes when a group is durable.
    pub const fn new(waker: Waker) -> Self {
        Self {
            groups: Vec::new(),
            waker,
            spare: Vec::new(),
        }
    }

    /// Lets a connection wait for its append, of which [`Self::collect`] will tell, unless it has an outcome already.
    pub fn add(&mut self, mut append: AppendFuture, key: K) -> Poll<Result<(), AppendError>> {
        // The latest group is the one that still gathers.
        let mut groups = self.groups.iter_mut().rev();
        if let Some(group) = groups.find(|group| group.append.shares_group(&append)) {
            group.waiting.push(key);
            return Poll::Pending;
        }
        let outcome = Pin::new(&mut append).poll(&mut Context::from_waker(&self.waker));
        if outcome.is_pending() {
            let mut waiting = self.spare.pop().unwrap_or_default();
            waiting.push(key);
            self.groups.push(PendingGroup { append, waiting });
        }
        outcome
    }

    /// Passes the outcome of each append that has one to `settle`, group by group.
    pub fn collect(&mut self, mut settle: impl FnMut(K, Result<(), AppendError>)) {
        let (spare, mut context) = (&mut self.spare, Context::from_waker(&self.waker));
        self.groups.retain_mut(|group| {
            let Poll::Ready(outcome) = Pin::new(&mut group.append).poll(&mut context) else {
                return true;
            };
            for key in group.waiting.drain(..) {
                settle(key, outcome.clone());
            }
            if spare.len() < SPARE_LISTS {
                spare.push(std::mem::take(&mut group.waiting));
            }
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::ports::CommitGroup;

    use super::*;

    #[test]
    fn connections_are_settled_with_their_group() {
        let (first, second) = (CommitGroup::new(), CommitGroup::new());
        let mut commits = PendingCommits::new(Waker::noop().clone());
        for (group, index) in [(&first, 1), (&second, 2), (&first, 3)] {
            assert!(commits.add(AppendFuture::of(group.clone()), index).is_pending());
        }
        let settled = |commits: &mut PendingCommits<u32>| {
            let mut settled = Vec::new();
            commits.collect(|key, outcome| settled.push((key, outcome)));
            settled
        };
        assert_eq!(settled(&mut commits), []);
        second.complete(Err(AppendError::DiskFull));
        assert_eq!(settled(&mut commits), [(2, Err(AppendError::DiskFull))]);
        first.complete(Ok(()));
        assert_eq!(settled(&mut commits), [(1, Ok(())), (3, Ok(()))]);
        assert!(commits.groups.is_empty());
        assert_eq!(commits.add(AppendFuture::of(first), 4), Poll::Ready(Ok(())));
    }
}
