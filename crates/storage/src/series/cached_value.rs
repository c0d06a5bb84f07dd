//! One named value with its time: how it is stored, and where it belongs among others.

use std::sync::Arc;

use fieldline_core::ports::StoredValue;
use fieldline_model::kv::{CorruptData, KvValue, pack_value, take_array, unpack_value};

use super::keys::{GROUP_BYTES, ValueGroupKey};

const CELL_COST: usize = 88;

/// A named value with its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CachedValue {
    pub(super) name: Arc<str>,
    pub(super) ts: i64,
    pub(super) ttl: u32,
    pub(super) value: KvValue,
    /// The page it is stored in, where pages are stored.
    pub(super) page: u16,
    /// Not written yet.
    pub(super) dirty: bool,
}

impl CachedValue {
    pub(super) fn cost(&self) -> usize {
        CELL_COST + self.value.heap_bytes()
    }

    pub(super) fn stored(&self) -> StoredValue<'_> {
        StoredValue {
            ts: self.ts,
            ttl_seconds: self.ttl,
            value: self.value.as_ref(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.value.heap_bytes());
        out.extend_from_slice(&self.ts.to_le_bytes());
        out.extend_from_slice(&self.ttl.to_le_bytes());
        pack_value(self.value.as_ref(), &mut out);
        out
    }

    pub(super) fn decode(name: Arc<str>, mut bytes: &[u8]) -> Result<Self, CorruptData> {
        let bytes = &mut bytes;
        Ok(Self {
            name,
            ts: i64::from_le_bytes(take_array(bytes)?),
            ttl: u32::from_le_bytes(take_array(bytes)?),
            value: unpack_value(bytes)?.to_value(),
            page: 0,
            dirty: false,
        })
    }
}

/// Inserts values at the places where they belong, in one pass however many they are; of several with one name the last
/// one. Returns what they cost.
pub(super) fn insert_all(cells: &mut Vec<CachedValue>, mut added: Vec<(usize, CachedValue)>) -> usize {
    added.sort_by(|(at, cell), (other_at, other)| (at, &cell.name).cmp(&(other_at, &other.name)));
    added.dedup_by(|(_, later), (_, earlier)| {
        let is_same = later.name == earlier.name;
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
    let cost = added.iter().map(|(_, cell)| cell.cost()).sum();
    let needed = cells.len() + added.len();
    // Most groups have a few values and keep them: no doubling.
    let room = match needed > cells.capacity() {
        true => needed + cells.len() / 4,
        false => cells.capacity(),
    };
    if added.len() == 1 {
        cells.reserve_exact(room - cells.len());
        for (at, cell) in added {
            cells.insert(at, cell);
        }
        return cost;
    }
    let mut old = std::mem::replace(cells, Vec::with_capacity(room)).into_iter();
    let mut taken = 0;
    for (at, cell) in added {
        cells.extend(old.by_ref().take(at - taken));
        taken = at;
        cells.push(cell);
    }
    cells.extend(old);
    cost
}

/// Key of a stored value.
pub(super) fn cell_key(group: &ValueGroupKey, name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(GROUP_BYTES + name.len());
    key.extend_from_slice(group);
    key.extend_from_slice(name.as_bytes());
    key
}

/// Time and time-to-live of a stored value, for those who read the table past the cache.
pub(super) fn stored_expiry(bytes: &[u8]) -> Result<(i64, u32), CorruptData> {
    let mut bytes = bytes;
    let ts = i64::from_le_bytes(take_array(&mut bytes)?);
    Ok((ts, u32::from_le_bytes(take_array(&mut bytes)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, ts: i64) -> CachedValue {
        CachedValue {
            name: name.into(),
            ts,
            ttl: 0,
            value: KvValue::Long(ts),
            page: 0,
            dirty: true,
        }
    }

    #[test]
    fn cells_come_to_their_places_however_many_come_at_once_and_the_last_of_a_name_counts() {
        let mut cells: Vec<CachedValue> = Vec::new();
        let rounds: [&[(&str, i64)]; 4] = [
            &[("m", 1)],
            &[("z", 2), ("a", 3), ("m2", 4), ("a", 5)],
            &[("b", 6), ("0", 7), ("zz", 8), ("n", 9)],
            &[("c", 10), ("c", 11)],
        ];
        for round in rounds {
            let added = round.iter().filter_map(|(name, ts)| {
                let at = cells.binary_search_by(|held| held.name.as_ref().cmp(name));
                Some((at.err()?, cell(name, *ts)))
            });
            let added: Vec<_> = added.collect();
            let cost = insert_all(&mut cells, added);
            assert_eq!(cost % CELL_COST, 0);
        }
        let held: Vec<(&str, i64)> = cells.iter().map(|cell| (&*cell.name, cell.ts)).collect();
        let expected = [
            ("0", 7),
            ("a", 5),
            ("b", 6),
            ("c", 11),
            ("m", 1),
            ("m2", 4),
            ("n", 9),
            ("z", 2),
            ("zz", 8),
        ];
        assert_eq!(held, expected);
    }
}
