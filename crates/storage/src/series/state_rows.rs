//! What the rule engine keeps for a partition: changed rows wait in memory for the next checkpoint.
//!
//! ```text
//! key := queue u16 · partition u16 · subject · keeper [16] · number u64
//! ```

use std::collections::HashMap;

use bytes::Bytes;
use fieldline_core::ports::{Partition, QueueId, StateKey, StateRow, StoreResult};
use fieldline_model::kv::CorruptData;
use parking_lot::Mutex;
use uuid::Uuid;

use super::backing::{SeriesBatch, SeriesTable};
use super::{error, keys};

const PARTITION_BYTES: usize = 4;

/// Rows that have changed since the last checkpoint, by their keys. An empty value removes the row.
#[derive(Default)]
pub(super) struct StateRowBuffer {
    changed: Mutex<HashMap<Vec<u8>, Bytes>>,
}

/// What a checkpoint has taken.
pub(super) type StateRowChanges = HashMap<Vec<u8>, Bytes>;

impl StateRowBuffer {
    /// Takes rows. Whoever calls holds the positions, so that a checkpoint sees both or neither.
    pub(super) fn put(&self, partition: Partition, rows: &[StateRow]) {
        if rows.is_empty() {
            return;
        }
        let mut changed = self.changed.lock();
        for row in rows {
            changed.insert(key_of(partition, &row.key), row.value.clone());
        }
    }

    pub(super) fn has_changed(&self) -> bool {
        !self.changed.lock().is_empty()
    }

    /// Hands the rows to a checkpoint. Whoever calls holds the positions.
    pub(super) fn take(&self) -> StateRowChanges {
        std::mem::take(&mut *self.changed.lock())
    }

    /// Takes back what a checkpoint could not write.
    pub(super) fn restore(&self, taken: StateRowChanges) {
        let mut changed = self.changed.lock();
        for (key, value) in taken {
            changed.entry(key).or_insert(value);
        }
    }

    /// The rows of a partition.
    pub(super) fn of(&self, table: &SeriesTable, partition: Partition) -> StoreResult<Vec<StateRow>> {
        let prefix = prefix_of(partition);
        let mut rows = HashMap::new();
        for entry in table.prefix(&prefix) {
            let (key, value) = entry?;
            rows.insert(key.to_vec(), Bytes::copy_from_slice(&value));
        }
        let changed = self.changed.lock();
        let of_partition = changed.iter().filter(|(key, _)| key.starts_with(&prefix));
        rows.extend(of_partition.map(|(key, value)| (key.clone(), value.clone())));
        drop(changed);
        rows.into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| {
                let key = read_key(&key)
                    .ok_or_else(|| error::corrupt(&key, CorruptData("a state's key does not decode")))?;
                Ok(StateRow { key, value })
            })
            .collect()
    }
}

/// Adds what was taken to a checkpoint's batch.
pub(super) fn write(taken: &StateRowChanges, table: &SeriesTable, batch: &mut SeriesBatch) {
    for (key, value) in taken {
        if value.is_empty() {
            batch.remove(table, key.as_slice());
        } else {
            batch.insert(table, key.as_slice(), value.as_ref());
        }
    }
}

fn prefix_of(partition: Partition) -> [u8; PARTITION_BYTES] {
    let [a, b] = partition.queue.0.to_be_bytes();
    let [c, d] = partition.index.to_be_bytes();
    [a, b, c, d]
}

/// The key of a row in the table.
pub(super) fn key_of(partition: Partition, key: &StateKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PARTITION_BYTES + keys::SUBJECT_BYTES + 16 + 8);
    bytes.extend_from_slice(&prefix_of(partition));
    bytes.extend_from_slice(&keys::subject_key(key.subject));
    bytes.extend_from_slice(key.owner.as_bytes());
    bytes.extend_from_slice(&key.number.to_be_bytes());
    bytes
}

/// The partition and the key of a row in the table.
pub(super) fn read(bytes: &[u8]) -> Option<(Partition, StateKey)> {
    let &[a, b, c, d] = bytes.first_chunk()?;
    let partition = Partition {
        queue: QueueId(u16::from_be_bytes([a, b])),
        index: u16::from_be_bytes([c, d]),
    };
    Some((partition, read_key(bytes)?))
}

fn read_key(bytes: &[u8]) -> Option<StateKey> {
    let rest = bytes.get(PARTITION_BYTES..)?;
    let subject = keys::read_subject(rest)?;
    let (keeper, number) = rest.get(keys::SUBJECT_BYTES..)?.split_first_chunk::<16>()?;
    Some(StateKey {
        subject,
        owner: Uuid::from_bytes(*keeper),
        number: u64::from_be_bytes(number.try_into().ok()?),
    })
}
