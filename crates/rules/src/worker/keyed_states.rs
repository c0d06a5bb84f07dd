//! What nodes, alarm rules and calculated fields keep between messages, with the times at which it comes due.
//!
//! A row's value is `due i64 · bytes`, where the time is `i64::MAX` for what never comes due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;
use fieldline_core::ports::{Partition, StateKey, StateRow};
use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

use super::batch::DueTimer;
use crate::deletions::Deletion;

const NEVER: i64 = i64::MAX;
/// Timers that no longer hold and are kept nevertheless.
const MAX_STALE_TIMERS: usize = 1024;

/// The states of one worker's partitions.
#[derive(Default)]
pub struct KeyedStates {
    rows: FxHashMap<StateKey, (Partition, i64, Box<[u8]>)>,
    /// May hold entries that no longer hold; `rows` decides.
    due: BinaryHeap<Reverse<(i64, StateKey)>>,
    changed: FxHashMap<StateKey, Partition>,
}

impl KeyedStates {
    /// Takes the rows of a partition that were stored.
    pub fn load(&mut self, partition: Partition, rows: Vec<StateRow>) {
        for row in rows {
            let Some((due, value)) = row.value.split_first_chunk::<8>() else {
                continue;
            };
            let due = i64::from_le_bytes(*due);
            self.insert(partition, row.key, due, value);
        }
    }

    /// Drops those of a partition that now belongs to somebody else.
    pub fn drop_partition(&mut self, partition: Partition) {
        self.rows.retain(|_, (of, ..)| *of != partition);
        self.changed.retain(|_, of| *of != partition);
    }

    /// What is kept.
    pub fn get(&self, key: &StateKey) -> Option<Bytes> {
        self.rows
            .get(key)
            .map(|(_, _, value)| Bytes::copy_from_slice(value))
    }

    /// What is kept, without a copy.
    pub fn peek(&self, key: &StateKey) -> Option<&[u8]> {
        self.rows.get(key).map(|(_, _, value)| &**value)
    }

    /// Keeps something.
    pub fn put(&mut self, partition: Partition, key: StateKey, due_ms: Option<i64>, value: &[u8]) {
        self.changed.insert(key.clone(), partition);
        self.insert(partition, key, due_ms.unwrap_or(NEVER), value);
    }

    /// Keeps something that is stored at once; returns the row of it.
    pub fn put_stored(&mut self, partition: Partition, key: StateKey, value: &[u8]) -> StateRow {
        self.insert(partition, key.clone(), NEVER, value);
        StateRow {
            key,
            value: row_value(NEVER, value),
        }
    }

    fn insert(&mut self, partition: Partition, key: StateKey, due: i64, value: &[u8]) {
        let before = self.rows.insert(key.clone(), (partition, due, value.into()));
        if due != NEVER && before.is_none_or(|(_, at, _)| at != due) {
            self.due.push(Reverse((due, key)));
            if self.due.len() > 2 * self.rows.len() + MAX_STALE_TIMERS {
                self.rebuild();
            }
        }
    }

    /// Drops the entries of timers that no longer hold.
    fn rebuild(&mut self) {
        let held = self.rows.iter().filter(|(_, (_, due, _))| *due != NEVER);
        self.due = held
            .map(|(key, (_, due, _))| Reverse((*due, key.clone())))
            .collect();
    }

    /// Changes when something comes due, where that is another time than it was, and what is kept with it.
    pub fn schedule(&mut self, key: &StateKey, due_ms: Option<i64>, value: &[u8]) {
        let due = due_ms.unwrap_or(NEVER);
        if let Some((partition, at, _)) = self.rows.get(key)
            && *at != due
        {
            self.put(*partition, key.clone(), due_ms, value);
        }
    }

    /// Keeps it no longer.
    pub fn remove(&mut self, key: &StateKey) -> Option<(Partition, Box<[u8]>)> {
        let (partition, _, value) = self.rows.remove(key)?;
        self.changed.insert(key.clone(), partition);
        Some((partition, value))
    }

    /// Keeps nothing any longer of what is no more, nor of what it has kept.
    pub fn purge(&mut self, gone: &FxHashSet<Deletion>) {
        let KeyedStates { rows, changed, .. } = self;
        rows.retain(|key, (partition, ..)| {
            let stays = !gone.contains(&Deletion::Keeper(key.owner))
                && !gone.contains(&Deletion::Entity(key.subject))
                && !gone.contains(&Deletion::Tenant(key.subject.tenant));
            if !stays {
                changed.insert(key.clone(), *partition);
            }
            stays
        });
    }

    /// When the next one comes due.
    pub fn next_due(&mut self) -> Option<i64> {
        loop {
            let Reverse((due, key)) = self.due.peek()?;
            if self.rows.get(key).is_some_and(|(_, at, _)| at == due) {
                return Some(*due);
            }
            self.due.pop();
        }
    }

    /// Takes the next one that is due.
    pub(crate) fn take_due(&mut self, now_ms: i64) -> Option<(Partition, DueTimer)> {
        if self.next_due()? > now_ms {
            return None;
        }
        let Reverse((at, key)) = self.due.pop()?;
        let (partition, value) = self.remove(&key)?;
        let value = Bytes::from(value);
        Some((partition, DueTimer { key, value, at }))
    }

    /// What has changed in a partition since it was last asked for, as rows to be stored.
    pub fn take_changes(&mut self, partition: Partition) -> Vec<StateRow> {
        if self.changed.is_empty() {
            return Vec::new();
        }
        let mut rows = Vec::new();
        let KeyedStates {
            rows: kept, changed, ..
        } = self;
        changed.retain(|key, of| {
            if *of != partition {
                return true;
            }
            let value = match kept.get(key) {
                Some((_, due, value)) => row_value(*due, value),
                None => Bytes::new(),
            };
            rows.push(StateRow {
                key: key.clone(),
                value,
            });
            false
        });
        rows
    }

    /// Whether anything has changed since changes were last asked for.
    pub fn have_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether something of a partition has changed.
    pub fn has_changes(&self, partition: Partition) -> bool {
        self.changed.values().any(|of| *of == partition)
    }

    /// The keys under which a keeper keeps something in a partition.
    pub fn keys_of(&self, keeper: Uuid, partition: Partition) -> Vec<StateKey> {
        let rows = self.rows.iter();
        rows.filter(|(key, (of, ..))| key.owner == keeper && *of == partition)
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// How many are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// The value of a row.
fn row_value(due: i64, value: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(8 + value.len());
    bytes.extend_from_slice(&due.to_le_bytes());
    bytes.extend_from_slice(value);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldline_core::ports::QueueId;
    use fieldline_model::{DeviceId, EntityKey, TenantId};

    const PARTITION: Partition = Partition {
        queue: QueueId(0),
        index: 0,
    };

    fn key(number: u64) -> StateKey {
        StateKey {
            subject: EntityKey::device(TenantId::NULL, DeviceId::NULL),
            owner: Uuid::nil(),
            number,
        }
    }

    #[test]
    fn timers_that_are_set_again_and_again_take_no_more_room() {
        let mut states = KeyedStates::default();
        for due in 0..200_000 {
            // The later the time, the longer the entries before would stay.
            states.put(PARTITION, key(0), Some(1_000_000 - due), b"");
            states.put(PARTITION, key(1), Some(1_000_000 + due), b"");
            assert!(states.due.len() <= 2 * states.len() + MAX_STALE_TIMERS + 1);
        }
        assert_eq!(states.next_due(), Some(1_000_000 - 199_999));
        let taken: Vec<_> = std::iter::from_fn(|| states.take_due(i64::MAX - 1))
            .map(|(_, due)| (due.key.number, due.at))
            .collect();
        assert_eq!(taken, [(0, 800_001), (1, 1_199_999)]);
        assert_eq!((states.next_due(), states.len()), (None, 0));
    }
}
