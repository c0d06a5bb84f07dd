//! What is no more, so that workers keep nothing of it any longer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_model::{EntityKey, TenantId};
use parking_lot::Mutex;
use uuid::Uuid;

/// What workers may have to catch up on, a second's worth. Beyond that the oldest is left to them for good.
const MAX_NOTED: usize = 100_000;

/// Something that is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deletion {
    /// A rule node or calculated field, by its id.
    Keeper(Uuid),
    /// An entity.
    Entity(EntityKey),
    /// A tenant, with all that it had.
    Tenant(TenantId),
}

/// Notes what has gone, for workers that look at it from time to time.
#[derive(Default)]
pub struct DeletionLog {
    noted: Mutex<VecDeque<(u64, Deletion)>>,
    count: AtomicU64,
}

impl DeletionLog {
    /// Notes that something is no more.
    pub fn note(&self, gone: Deletion) {
        let mut noted = self.noted.lock();
        let number = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        noted.push_back((number, gone));
        if noted.len() > MAX_NOTED {
            noted.pop_front();
        }
    }

    /// How much was ever noted: where [`DeletionLog::since`] goes on from later.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// What was noted after a count.
    pub fn since(&self, count: u64) -> Vec<Deletion> {
        let noted = self.noted.lock();
        let from = noted.partition_point(|(number, _)| *number <= count);
        noted.range(from..).map(|(_, gone)| *gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_told_once_and_the_oldest_is_forgotten() {
        let log = DeletionLog::default();
        let number = |number: usize| Deletion::Keeper(Uuid::from_u128(number as u128));
        log.note(number(0));
        let count = log.count();
        assert_eq!((log.since(0), log.since(count)), (vec![number(0)], vec![]));
        for n in 1..=MAX_NOTED {
            log.note(number(n));
        }
        let since = log.since(0);
        assert_eq!((since.len(), since.first()), (MAX_NOTED, Some(&number(1))));
        assert_eq!(log.since(log.count() - 1), [number(MAX_NOTED)]);
    }
}
