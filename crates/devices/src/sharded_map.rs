//! A map in many small parts. What looks at every entry, or makes room for more of them, does so part by part, so that
//! nobody waits for a walk over all: the lock that guards the map is given back between two parts.

use std::hash::Hash;

use fieldline_model::DeviceId;
use fieldline_model::EntityKey;
use rustc_hash::FxHashMap;
use uuid::Uuid;

/// How many parts there are: of a million entries each has four thousand, which are looked at in tens of microseconds.
pub(crate) const SHARD_COUNT: usize = 256;

/// What says in which part its entry is.
pub(crate) trait ShardKey: Eq + Hash {
    /// An id that differs from entry to entry.
    fn id(&self) -> Uuid;
}

impl ShardKey for EntityKey {
    fn id(&self) -> Uuid {
        self.entity.id
    }
}

impl ShardKey for DeviceId {
    fn id(&self) -> Uuid {
        self.0
    }
}

/// A map of [`SHARD_COUNT`] parts.
pub(crate) struct ShardedMap<K, V>(Box<[FxHashMap<K, V>]>);

impl<K, V> Default for ShardedMap<K, V> {
    fn default() -> Self {
        Self((0..SHARD_COUNT).map(|_| FxHashMap::default()).collect())
    }
}

/// The number of the part that the entry of an id is in.
pub(crate) fn shard_of(id: Uuid) -> usize {
    // Ids that were made one after the other differ in a few bits only, so all of them have their say.
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let (high, low) = id.as_u64_pair();
    let mixed = (high ^ low.rotate_left(32)).wrapping_mul(ODD);
    (mixed >> 56) as usize % SHARD_COUNT
}

impl<K: ShardKey, V> ShardedMap<K, V> {
    /// The part that the entry of a key is in.
    pub(crate) fn of(&self, key: &K) -> &FxHashMap<K, V> {
        &self.0[shard_of(key.id())]
    }

    /// The same, to be changed.
    pub(crate) fn of_mut(&mut self, key: &K) -> &mut FxHashMap<K, V> {
        &mut self.0[shard_of(key.id())]
    }

    /// A part by its number, which is below [`SHARD_COUNT`].
    pub(crate) fn part_mut(&mut self, number: usize) -> &mut FxHashMap<K, V> {
        &mut self.0[number]
    }

    /// All parts.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> impl Iterator<Item = &FxHashMap<K, V>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_has_much_more_than_the_others() {
        let time_ordered = |_| fieldline_model::new_uuid();
        let counted = |number: u128| Uuid::from_u128(number);
        for (kind, ids) in [
            ("new", (0..25_600).map(time_ordered).collect::<Vec<_>>()),
            ("counted", (0..25_600).map(counted).collect()),
        ] {
            let mut counts = [0; SHARD_COUNT];
            for id in ids {
                counts[shard_of(id)] += 1;
            }
            assert!(counts.iter().all(|count| (1..300).contains(count)), "{kind}");
        }
    }
}
