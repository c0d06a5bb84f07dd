//! Deleted nodes, fields, entities and tenants, for workers that drop what they keep for them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_model::{EntityKey, TenantId};
use parking_lot::Mutex;
use uuid::Uuid;

/// Most deletions that are remembered, about a second's worth. Workers that are further behind never learn of the
/// oldest.
const MAX_NOTED: usize = 100_000;

/// Something that was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deletion {
    /// A rule node or calculated field, by id.
    Keeper(Uuid),
    /// An entity.
    Entity(EntityKey),
    /// A tenant, with all its data.
    Tenant(TenantId),
}

/// A log of deletions, which workers read from time to time.
#[derive(Default)]
pub struct DeletionLog {
    noted: Mutex<VecDeque<(u64, Deletion)>>,
    count: AtomicU64,
}

impl DeletionLog {
    /// Records a deletion.
    pub fn note(&self, gone: Deletion) {
        let mut noted = self.noted.lock();
        let number = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        noted.push_back((number, gone));
        if noted.len() > MAX_NOTED {
            noted.pop_front();
        }
    }

    /// Number of deletions ever recorded: the position from which [`DeletionLog::since`] continues later.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The deletions recorded after that count.
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
